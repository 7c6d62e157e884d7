//! The lines of frames that were shown before.

use std::ops::Range;

use super::fields::Set;
use crate::places::{PlaceId, Places};
use crate::tables::{Tables, UNKNOWN};

/// Maximum size of all lines in bytes.
const MOST_TEXT: usize = 8 << 20;

/// The fields that the line of a frame depends on.
const FIELDS: Set = Set::SYM.with(Set::SYMOFF).with(Set::DSO).with(Set::DSOFF);

/// The lines of frames, by their places.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The fields in the lines.
    fields: Set,
    /// What follows the address of a frame about which nothing is known.
    unknown: Vec<u8>,
    text: Vec<u8>,
    ranges: Vec<Range<usize>>,
    numbers: Places,
}

impl Lines {
    /// Forgets the lines if they contain other fields.
    pub fn set_fields(&mut self, fields: Set) {
        let fields = fields.only(FIELDS);
        if fields != self.fields || self.unknown.is_empty() {
            self.fields = fields;
            self.clear();
            self.unknown.clear();
            if fields.has(Set::SYM) {
                self.unknown.extend([" ", UNKNOWN].concat().bytes());
            }
            if fields.has(Set::DSO) {
                self.unknown.extend([" (", UNKNOWN, ")"].concat().bytes());
            }
            self.unknown.push(b'\n');
        }
    }

    /// Returns what follows the address of a frame about which nothing is known, with the end of
    /// the line.
    #[inline]
    pub fn unknown(&self) -> &[u8] {
        &self.unknown
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ranges.clear();
        self.numbers = Places::default();
    }

    /// Returns the line of a place.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<&[u8]> {
        let number = self.numbers.get(tables, place)?;
        let range = self.ranges.get(usize::try_from(number).ok()?)?;
        self.text.get(range.clone())
    }

    /// Keeps the line of a place.
    pub fn set(&mut self, tables: &Tables, place: Option<PlaceId>, line: &[u8]) {
        if place.is_none() {
            return;
        }
        if self.text.len().saturating_add(line.len()) > MOST_TEXT {
            self.clear();
        }
        let Ok(number) = u32::try_from(self.ranges.len()) else {
            return;
        };
        let start = self.text.len();
        self.text.extend_from_slice(line);
        self.ranges.push(start..self.text.len());
        self.numbers.set(tables, place, number);
    }
}
