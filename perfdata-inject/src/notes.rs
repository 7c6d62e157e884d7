//! Notes of a stage that can be many.

use perfdata_convert::count::number_of;

/// The notes of a stage. There may be one for each process or file in a recording; most are only
/// counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    list: Vec<String>,
    /// The number of further notes.
    more: u64,
}

impl Notes {
    /// Maximum number of notes shown.
    pub(super) const MOST: usize = 100;

    /// Adds a note.
    pub(super) fn add(&mut self, note: String) {
        if self.list.len() < Self::MOST {
            self.list.push(note);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Adds all that `other` shows, and its number of further notes.
    pub(super) fn append(&mut self, other: Notes) {
        self.list.extend(other.list);
        self.more = self.more.saturating_add(other.more);
    }

    /// Returns the notes to show. The last one contains the number of further notes, which are
    /// about `what`.
    pub(super) fn all(&self, what: &str) -> Vec<String> {
        let rest = (self.more > 0).then(|| {
            format!(
                "{} about {what} not shown",
                number_of(self.more, "more note")
            )
        });
        self.list.iter().cloned().chain(rest).collect()
    }
}

impl FromIterator<String> for Notes {
    fn from_iter<I: IntoIterator<Item = String>>(all: I) -> Self {
        let mut notes = Notes::default();
        all.into_iter().for_each(|note| notes.add(note));
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_shown_and_the_others_counted() {
        let of = |count: usize| (0..count).map(|number| number.to_string()).collect();
        let mut notes: Notes = of(Notes::MOST);
        assert_eq!(notes.all("files").len(), Notes::MOST);
        notes.add("another".into());
        notes.append(of(Notes::MOST + 2));
        let all = notes.all("files");
        assert_eq!(all.len(), 2 * Notes::MOST + 1);
        assert_eq!(
            all.last().map(String::as_str),
            Some("3 more notes about files not shown")
        );
    }
}
