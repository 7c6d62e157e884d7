//! Finds the entries of a list by their hashes: the entries are only in the list.

use hashbrown::HashTable;

/// The numbers of the entries of a list by their hashes.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    /// The high half of an entry's hash, and its number. The half is kept because the table grows
    /// without access to the list.
    table: HashTable<(u32, u32)>,
}

impl HashIndex {
    /// Returns the number of the entry with this hash for which `is_it` is true.
    #[inline]
    pub fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let half = high(hash);
        let is_entry = |&(known, number): &(u32, u32)| known == half && is_it(number);
        let (_, number) = self.table.find(spread(half), is_entry)?;
        Some(*number)
    }

    /// Adds a new entry with a number.
    pub fn add(&mut self, hash: u64, number: u32) {
        let half = high(hash);
        self.table
            .insert_unique(spread(half), (half, number), |&(half, _)| spread(half));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = HashIndex::default();
    }
}

fn high(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or_default()
}

/// Returns a hash with good bits at both ends, all of which `HashTable` uses.
fn spread(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_with_any_hash() {
        // Good hashes, and those that are all the same.
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
