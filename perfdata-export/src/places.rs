//! What a sink knows about places: an index instead of a search for each frame.

use std::num::NonZeroU32;

use crate::tables::Tables;

/// The number of an address in a mapping. Frames with the same number are equal, and have the same
/// inlined functions, until [`Tables::epoch`] changes.
pub(crate) type PlaceId = NonZeroU32;

/// A number for each place, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Places {
    epoch: u32,
    list: Vec<Option<u32>>,
}

impl Places {
    /// Returns the number of a place.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<u32> {
        if self.epoch != tables.epoch {
            return None;
        }
        *self.list.get(usize::try_from(place?.get()).ok()?)?
    }

    /// Sets the number of a place.
    #[inline]
    pub fn set(&mut self, tables: &Tables, place: Option<PlaceId>, number: u32) {
        if let Some(at) = place.and_then(|place| usize::try_from(place.get()).ok()) {
            self.set_at(tables, at, number);
        }
    }

    fn set_at(&mut self, tables: &Tables, at: usize, number: u32) {
        if self.epoch != tables.epoch {
            self.epoch = tables.epoch;
            self.list.clear();
        }
        if self.list.len() <= at {
            self.list.resize(at.saturating_add(1), None);
        }
        if let Some(known) = self.list.get_mut(at) {
            *known = Some(number);
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
