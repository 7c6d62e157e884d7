//! Notes about objects without a suitable build ID.

use crate::count::number_of;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Notes about objects, without repetitions. There may be as many as mappings; most are only
/// counted.
#[derive(Debug, Default)]
pub struct Notes {
    list: Vec<String>,
    /// Hashes of all notes, including those that are not in the list.
    known: HashSet<u64>,
    hasher: RandomState,
}

impl Notes {
    /// Maximum number of notes shown.
    const MOST: usize = 100;

    /// Adds a note, if it is new.
    pub fn add(&mut self, note: String) {
        if self.known.insert(self.hasher.hash_one(&note)) && self.list.len() < Self::MOST {
            self.list.push(note);
        }
    }

    /// Returns the notes to show, and the number of further notes.
    pub fn all(&self) -> Vec<String> {
        let more = self.known.len() - self.list.len();
        let rest = (more > 0).then(|| {
            format!(
                "{} about build IDs not shown",
                number_of(more as u64, "more note")
            )
        });
        self.list.iter().cloned().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_shown_and_the_others_counted() {
        let mut notes = Notes::default();
        (0..Notes::MOST).for_each(|number| notes.add(number.to_string()));
        notes.add("0".into());
        assert_eq!(notes.all().len(), Notes::MOST);
        (0..3).for_each(|number| notes.add(format!("{number} more")));
        notes.add("1 more".into());
        let all = notes.all();
        assert_eq!(all.len(), Notes::MOST + 1);
        assert!(
            all.last()
                .is_some_and(|rest| rest.starts_with("3 more notes ")),
            "{all:?}"
        );
    }
}
