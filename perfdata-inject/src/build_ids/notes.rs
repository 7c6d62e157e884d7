//! Notes about objects without a suitable build ID.

use crate::notes;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Notes about objects, without repetitions. There may be as many as mappings.
#[derive(Debug, Default)]
pub struct Notes {
    different: notes::Notes,
    /// Hashes of all notes, including those that are not shown.
    known: HashSet<u64>,
    hasher: RandomState,
}

impl Notes {
    /// Adds a note, if it is new.
    pub fn add(&mut self, note: String) {
        if self.known.insert(self.hasher.hash_one(&note)) {
            self.different.add(note);
        }
    }

    /// Returns the notes to show, and the number of further notes.
    pub fn all(&self) -> Vec<String> {
        self.different.all("build IDs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_neither_shown_nor_counted() {
        let mut notes = Notes::default();
        (0..2).for_each(|_| (0..103).for_each(|number| notes.add(number.to_string())));
        let all = notes.all();
        assert_eq!(all.len(), 101);
        assert_eq!(
            all.last().map(String::as_str),
            Some("3 more notes about build IDs not shown")
        );
    }
}
