//! What a sink knows about places: an index instead of a search for each frame.

use std::num::NonZeroU32;

use crate::tables::Tables;

/// The number of an address in a mapping, or of an offset in a file, which processes map at different
/// addresses. Until [`Tables::epoch`] changes, frames with the same number have the same inlined
/// functions, and are equal except for the address and the mapping, where they have the same offset.
pub(crate) type PlaceId = NonZeroU32;

/// A number for each place, as far as it is known, until the numbers of places start again.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Which numbers of places these are.
    epoch: u32,
    /// Numbers plus one: an entry without room for a flag has half the size.
    list: Vec<Option<NonZeroU32>>,
}

impl Places {
    /// Returns the number of a place.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<u32> {
        if self.epoch != tables.epoch {
            return None;
        }
        let known = *self.list.get(usize::try_from(place?.get()).ok()?)?;
        Some(known?.get().saturating_sub(1))
    }

    /// Sets the number of a place.
    #[inline]
    pub fn set(&mut self, tables: &Tables, place: Option<PlaceId>, number: u32) {
        let Some(at) = place.and_then(|place| usize::try_from(place.get()).ok()) else {
            return;
        };
        if self.epoch != tables.epoch {
            self.epoch = tables.epoch;
            self.list.clear();
        }
        if self.list.len() <= at {
            self.list.resize(at.saturating_add(1), None);
        }
        if let Some(known) = self.list.get_mut(at) {
            *known = number.checked_add(1).and_then(NonZeroU32::new);
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
