//! A hash table with its entries in the slots: finding one costs one access to memory outside of the
//! cache, not one for its number and another for the entry.

/// Entries in the order of their hashes. Entries that are not in the cache are looked up for each
/// frame, so they should be small.
#[derive(Debug, Clone)]
pub(crate) struct Slots<T> {
    /// None or a power of two, of which at least a quarter is free.
    slots: Vec<Option<T>>,
    len: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            slots: Vec::new(),
            len: 0,
        }
    }
}

/// Minimum number of slots that are not empty.
const FEWEST: usize = 64;

impl<T: Copy> Slots<T> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the indices of slots that may contain an entry with a hash, in the order of the
    /// search.
    #[inline]
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> + use<T> {
        let last = self.slots.len().wrapping_sub(1);
        let first = usize::try_from(hash >> 32).unwrap_or_default();
        (0..self.slots.len()).map(move |step| first.wrapping_add(step) & last)
    }

    /// Returns the entry with a hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        for at in self.places(hash) {
            let entry = self.slots.get(at)?.as_ref()?;
            if is_it(entry) {
                return Some(entry);
            }
        }
        None
    }

    /// Adds an entry that is not in the table. `hash` returns the hash of an entry.
    pub fn add(&mut self, entry: T, hash: impl Fn(&T) -> u64) {
        if self.len.saturating_mul(4) >= self.slots.len().saturating_mul(3) {
            let size = self.slots.len().saturating_mul(2).max(FEWEST);
            let before = std::mem::replace(&mut self.slots, vec![None; size]);
            let entries = before.into_iter().flatten();
            entries.for_each(|entry| self.set(hash(&entry), entry));
        }
        self.set(hash(&entry), entry);
        self.len = self.len.saturating_add(1);
    }

    fn set(&mut self, hash: u64, entry: T) {
        let is_free = |at: &usize| self.slots.get(*at).is_some_and(Option::is_none);
        if let Some(at) = self.places(hash).find(is_free)
            && let Some(slot) = self.slots.get_mut(at)
        {
            *slot = Some(entry);
        }
    }

    /// Returns the entries in no order.
    #[cfg(test)]
    pub fn into_entries(self) -> Vec<T> {
        self.slots.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_with_any_hash() {
        let hashes: [fn(&u64) -> u64; 3] = [
            |entry| entry.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |_| 5 << 32,
            |entry| u64::MAX - entry,
        ];
        for hash in hashes {
            let mut slots = Slots::default();
            assert_eq!(slots.find(hash(&1), |_| true), None);
            for entry in (0..1000_u64).chain(0..1000) {
                let known = slots.find(hash(&entry), |known| *known == entry);
                assert_eq!(known.is_some(), slots.len() == 1000, "{entry}");
                if known.is_none() {
                    slots.add(entry, hash);
                }
            }
            assert_eq!(slots.find(hash(&1000), |known| *known == 1000), None);
            let mut entries = slots.into_entries();
            entries.sort_unstable();
            assert!(entries.into_iter().eq(0..1000));
        }
    }
}
