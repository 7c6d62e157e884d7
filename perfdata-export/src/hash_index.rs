//! Finds the entries of a list by their hashes: the entries are only in the list.

/// The numbers of the entries of a list by their hashes.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    /// At the index that follows from the hash of an entry, or behind that. Three quarters of them
    /// at most are in use. Their number is a power of two.
    slots: Vec<Slot>,
    len: u32,
}

/// The high half of an entry's hash, and the entry's number plus one; 0 if the slot is free.
pub(crate) type Slot = (u32, u32);

/// The smallest number of slots.
const FEWEST: usize = 64;

impl HashIndex {
    /// Returns the slots at which an entry with the half of a hash may be, in the order of the
    /// search.
    fn places(&self, half: u32) -> impl Iterator<Item = usize> + use<> {
        let last = self.slots.len().wrapping_sub(1);
        let first = usize::try_from(half).unwrap_or_default();
        (0..self.slots.len()).map(move |step| first.wrapping_add(step) & last)
    }

    /// Returns what is at the first place of an entry with a hash, for
    /// [`find_from`](Self::find_from). If several entries are searched, asking for all of these
    /// before lets their accesses to memory overlap.
    #[inline]
    pub fn first(&self, hash: u64) -> Slot {
        let at = self.places(high(hash)).next();
        let slot = at.and_then(|at| self.slots.get(at)).copied();
        slot.unwrap_or_default()
    }

    /// Returns the number of an entry as [`find`](Self::find) does, also if others were added after
    /// `first` was returned.
    #[inline]
    pub fn find_from(
        &self,
        first: Slot,
        hash: u64,
        mut is_it: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let (known, number) = first;
        if let Some(number) = number.checked_sub(1)
            && known == high(hash)
            && is_it(number)
        {
            return Some(number);
        }
        self.find(hash, is_it)
    }

    /// Returns the number of the entry with this hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let half = high(hash);
        for at in self.places(half) {
            let &(known, number) = self.slots.get(at)?;
            let number = number.checked_sub(1)?;
            if known == half && is_it(number) {
                return Some(number);
            }
        }
        None
    }

    /// Adds a new entry with a number, which is not `u32::MAX`.
    pub fn add(&mut self, hash: u64, number: u32) {
        let used = usize::try_from(self.len).unwrap_or(usize::MAX);
        if used.saturating_mul(4) >= self.slots.len().saturating_mul(3) {
            let size = self.slots.len().saturating_mul(2).max(FEWEST);
            let before = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
            before
                .into_iter()
                .filter(|slot| slot.1 != 0)
                .for_each(|slot| self.set(slot));
        }
        self.set((high(hash), number.saturating_add(1)));
        self.len = self.len.saturating_add(1);
    }

    fn set(&mut self, slot: Slot) {
        let is_free = |at: &usize| self.slots.get(*at).is_some_and(|slot| slot.1 == 0);
        if let Some(at) = self.places(slot.0).find(is_free)
            && let Some(place) = self.slots.get_mut(at)
        {
            *place = slot;
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = HashIndex::default();
    }
}

fn high(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_with_any_hash() {
        // Good hashes, and those that are all the same, or begin at the last slot.
        let hashes: [fn(u64) -> u64; 3] = [
            |entry| entry.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |_| 5 << 32,
            |entry| u64::MAX - entry,
        ];
        for hash in hashes {
            let (mut list, mut index) = (Vec::new(), HashIndex::default());
            for entry in (0..1000_u64).chain(0..1000) {
                let is_it = |number: u32| list[number as usize] == entry;
                let known = index.find(hash(entry), is_it);
                let first = index.first(hash(entry));
                assert_eq!(index.find_from(first, hash(entry), is_it), known);
                assert_eq!(known.is_some(), list.len() == 1000, "{entry}");
                if known.is_none() {
                    index.add(hash(entry), list.len() as u32);
                    list.push(entry);
                }
            }
            assert_eq!(
                index.find(hash(1000), |number| list[number as usize] == 1000),
                None
            );
            index.clear();
            assert_eq!(index.find(hash(1), |_| true), None);
        }
    }
}
