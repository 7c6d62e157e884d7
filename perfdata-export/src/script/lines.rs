//! The lines of frames and stacks that were shown before.

use std::ops::Range;

use super::fields::Set;
use crate::kept_stacks::{ByKept, KeptId};
use crate::places::{PlaceId, Places};
use crate::tables::{Tables, UNKNOWN};

/// Maximum size of all lines in bytes.
const MOST_TEXT: usize = 8 << 20;

/// The fields that the line of a frame depends on.
const FIELDS: Set = Set::SYM.with(Set::SYMOFF).with(Set::DSO).with(Set::DSOFF);

/// Maximum size of the lines of all stacks in bytes.
const MOST_STACKS: usize = 4 << 20;

/// The lines of frames by their places, and of stacks that repeat.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The fields in the lines.
    fields: Set,
    /// Whether user stacks are unwound after callchains.
    is_unwound: bool,
    /// What follows the address of a frame about which nothing is known.
    unknown: Vec<u8>,
    text: Vec<u8>,
    ranges: Vec<Range<usize>>,
    numbers: Places,
    stacks: Vec<u8>,
    stack_ranges: ByKept<Range<usize>>,
}

impl Lines {
    /// Forgets the lines if they contain other fields, or other frames.
    pub fn set_form(&mut self, fields: Set, is_unwound: bool) {
        let fields = fields.only(FIELDS);
        if self.is_unwound != is_unwound {
            self.is_unwound = is_unwound;
            self.clear_stacks();
        }
        if fields != self.fields || self.unknown.is_empty() {
            self.fields = fields;
            self.clear();
            self.clear_stacks();
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

    /// Returns what is kept of the line of a place.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<&[u8]> {
        let number = self.numbers.get(tables, place)?;
        let range = self.ranges.get(usize::try_from(number).ok()?)?;
        self.text.get(range.clone())
    }

    /// Keeps the line of a place, or its end.
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

    fn clear_stacks(&mut self) {
        self.stacks.clear();
        self.stack_ranges = ByKept::default();
    }

    /// Returns the lines of a stack.
    #[inline]
    pub fn stack(&self, stack: Option<KeptId>) -> Option<&[u8]> {
        self.stacks.get(self.stack_ranges.get(stack)?.clone())
    }

    /// Keeps the lines of a stack.
    pub fn set_stack(&mut self, stack: Option<KeptId>, lines: &[u8]) {
        if stack.is_none() {
            return;
        }
        if self.stacks.len().saturating_add(lines.len()) > MOST_STACKS {
            self.clear_stacks();
        }
        let start = self.stacks.len();
        self.stacks.extend_from_slice(lines);
        self.stack_ranges.set(stack, start..self.stacks.len());
    }
}
