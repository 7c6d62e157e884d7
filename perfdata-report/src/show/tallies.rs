//! Number and size of the records of each type.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use perfdata_core::record::{RawRecord, RecordType};

use perfdata_convert::json::Json;

/// Number and size of some records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of records.
    pub count: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Tally {
    /// Returns the tally of one record.
    #[inline]
    pub(super) fn of(record: &RawRecord<'_>) -> Self {
        Tally {
            count: 1,
            bytes: record.bytes.len() as u64,
        }
    }

    /// Adds other records.
    #[inline]
    pub(super) fn add(&mut self, more: Tally) {
        self.count = self.count.saturating_add(more.count);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// The tallies of all types. perf has about fifty types, but random data can contain any number.
/// Types that appear after the limit is reached share one tally.
#[derive(Debug, Default)]
pub struct Tallies {
    /// The tallies of the types with low numbers, which include those of perf, by number.
    low: Vec<Tally>,
    high: BTreeMap<RecordType, Tally>,
    others: Tally,
}

impl Tallies {
    /// Maximum number of types with a separate tally.
    const MOST: usize = 1024;
    /// The number of types with low numbers.
    const LOW: usize = 128;

    /// Counts a record of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, kind: RecordType, bytes: usize) {
        let bytes = bytes as u64;
        self.add_all(kind, Tally { count: 1, bytes });
    }

    /// Adds records of a type.
    #[inline]
    pub(super) fn add_all(&mut self, kind: RecordType, more: Tally) {
        if more.count == 0 {
            return;
        }
        let tally = match self.low.get_mut(kind.0 as usize) {
            Some(tally) => tally,
            None => self.place(kind),
        };
        tally.add(more);
    }

    /// Returns the tally of a type that is not in `low`.
    #[cold]
    fn place(&mut self, kind: RecordType) -> &mut Tally {
        let number = kind.0 as usize;
        if number < Self::LOW {
            self.low.resize(number + 1, Tally::default());
            return self.low.get_mut(number).unwrap_or(&mut self.others);
        }
        let is_full = self.high.len() >= Self::MOST - Self::LOW;
        if is_full && !self.high.contains_key(&kind) {
            return &mut self.others;
        }
        self.high.entry(kind).or_default()
    }

    /// Returns the tally of each type that has one.
    pub fn iter(&self) -> impl Iterator<Item = (RecordType, Tally)> {
        let low = (0..).map(RecordType).zip(self.low.iter().copied());
        let high = self.high.iter().map(|(kind, tally)| (*kind, *tally));
        low.filter(|(_, tally)| tally.count > 0).chain(high)
    }

    /// Returns the tally of all other types.
    pub fn others(&self) -> Tally {
        self.others
    }

    /// Returns the tally of one type.
    pub fn get(&self, kind: RecordType) -> Tally {
        let low = self.low.get(kind.0 as usize);
        low.or_else(|| self.high.get(&kind))
            .copied()
            .unwrap_or_default()
    }

    /// Returns the tally of all records.
    pub fn total(&self) -> Tally {
        self.iter().fold(self.others, |mut sum, (_, tally)| {
            sum.add(tally);
            sum
        })
    }

    /// Returns the names of the types, and their tallies.
    fn named(&self) -> impl Iterator<Item = (String, Tally)> {
        let others = (self.others.count > 0).then(|| ("others".to_owned(), self.others));
        self.iter()
            .map(|(kind, tally)| (kind.to_string(), tally))
            .chain(others)
    }

    /// Appends a table for people, under `title`.
    pub fn text(&self, out: &mut String, title: impl Display) {
        let _ = writeln!(out, "\n{title}: {} bytes", self.total().bytes);
        for (name, tally) in self.named() {
            let _ = writeln!(
                out,
                "  {name:<20} {:>10} {:>14} bytes",
                tally.count, tally.bytes
            );
        }
    }

    /// Returns a line for people.
    pub fn line(&self) -> String {
        let counts = self
            .named()
            .map(|(name, tally)| format!("{} {name}", tally.count));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Writes the list `name` in JSON.
    pub fn json(&self, json: &mut Json, name: &'static str) {
        json.list(name);
        for (name, tally) in self.named() {
            json.object("");
            json.text("type", name.as_bytes());
            json.number("count", tally.count);
            json.number("bytes", tally.bytes);
            json.close();
        }
        json.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_takes_no_room() {
        let mut tallies = Tallies::default();
        for round in 0..2 {
            for kind in 0..3000 {
                tallies.add(RecordType(kind), 8);
                tallies.add(RecordType(kind), 16 * round);
            }
        }
        assert_eq!(
            tallies.get(RecordType(7)),
            Tally {
                count: 4,
                bytes: 32
            }
        );
        assert_eq!(tallies.iter().count(), Tallies::MOST);
        assert_eq!(tallies.others().count, 4 * (3000 - Tallies::MOST as u64));
        assert_eq!(
            tallies.total(),
            Tally {
                count: 12_000,
                bytes: 96_000
            }
        );
    }
}
