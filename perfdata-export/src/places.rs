//! What a sink knows about places and other numbers: an index instead of a search for each frame.

use std::num::NonZeroU32;

use crate::tables::Tables;

/// The number of an address in a mapping, or of an offset in a file, which processes map at different
/// addresses. Until [`Tables::epoch`] changes, frames with the same number have the same inlined
/// functions, and are equal except for the address and the mapping, where they have the same offset.
pub(crate) type PlaceId = NonZeroU32;

/// Something for each number, as far as it is known, until the numbers start again.
#[derive(Debug)]
pub(crate) struct ByNumber<T> {
    /// Which numbers these are.
    epoch: u32,
    list: Vec<Option<T>>,
}

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        ByNumber {
            epoch: 0,
            list: Vec::new(),
        }
    }
}

impl<T: Clone> ByNumber<T> {
    /// Returns what is known about a number of an epoch.
    #[inline]
    pub fn get(&self, epoch: u32, number: usize) -> Option<&T> {
        if self.epoch != epoch {
            return None;
        }
        self.list.get(number)?.as_ref()
    }

    /// Sets what is known about a number of an epoch, and forgets those of other epochs.
    pub fn set(&mut self, epoch: u32, number: usize, known: T) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.list.clear();
        }
        if self.list.len() <= number {
            self.list.resize(number.saturating_add(1), None);
        }
        if let Some(place) = self.list.get_mut(number) {
            *place = Some(known);
        }
    }
}

/// What a sink knows about places.
#[derive(Debug)]
pub(crate) struct ByPlace<T>(ByNumber<T>);

impl<T> Default for ByPlace<T> {
    fn default() -> Self {
        ByPlace(ByNumber::default())
    }
}

impl<T: Copy> ByPlace<T> {
    /// Returns what is known about a place.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<T> {
        let at = usize::try_from(place?.get()).ok()?;
        self.0.get(tables.epoch, at).copied()
    }

    /// Sets what is known about a place.
    #[inline]
    pub fn set(&mut self, tables: &Tables, place: Option<PlaceId>, known: T) {
        if let Some(at) = place.and_then(|place| usize::try_from(place.get()).ok()) {
            self.0.set(tables.epoch, at, known);
        }
    }
}

/// A number for each place, as far as it is known, plus one: an entry without room for a flag has
/// half the size.
#[derive(Debug, Default)]
pub(crate) struct Places(ByPlace<NonZeroU32>);

impl Places {
    /// Returns the number of a place.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<u32> {
        let known = self.0.get(tables, place)?;
        Some(known.get().saturating_sub(1))
    }

    /// Sets the number of a place.
    #[inline]
    pub fn set(&mut self, tables: &Tables, place: Option<PlaceId>, number: u32) {
        if let Some(number) = number.checked_add(1).and_then(NonZeroU32::new) {
            self.0.set(tables, place, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_epoch_forgets_all_places() {
        let (mut tables, mut places) = (Tables::default(), Places::default());
        let [one, two] = [1, 2].map(PlaceId::new);
        places.set(&tables, two, 7);
        places.set(&tables, None, 8);
        assert_eq!(places.get(&tables, two), Some(7));
        assert_eq!(places.get(&tables, one), None);
        assert_eq!(places.get(&tables, None), None);
        tables.epoch = 1;
        assert_eq!(places.get(&tables, two), None);
        places.set(&tables, one, 9);
        assert_eq!(places.get(&tables, one), Some(9));
        assert_eq!(places.get(&tables, two), None);
    }
}
