//! The lines of frames and stacks that were shown before.

use std::num::NonZeroU32;
use std::ops::Range;

use super::fields::Set;
use super::numbers::push_hex;
use crate::kept_stacks::{ByKept, KeptId};
use crate::places::{ByPlace, PlaceId};
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
    /// The line of a frame about which nothing is known, with any address.
    unknown: Vec<u8>,
    text: Vec<u8>,
    ranges: ByPlace<TextRange>,
    stacks: Vec<u8>,
    stack_ranges: ByKept<Range<usize>>,
}

/// Where the line of a place is in the text.
#[derive(Debug, Clone, Copy)]
struct TextRange {
    start: u32,
    len: NonZeroU32,
}

impl TextRange {
    fn of(start: usize, len: usize) -> Option<Self> {
        Some(TextRange {
            start: u32::try_from(start).ok()?,
            len: NonZeroU32::new(u32::try_from(len).ok()?)?,
        })
    }

    #[inline]
    fn bytes(self) -> Range<usize> {
        let number = |number: u32| usize::try_from(number).unwrap_or_default();
        let start = number(self.start);
        start..start.saturating_add(number(self.len.get()))
    }
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
            self.unknown.push(b'\t');
            push_hex(&mut self.unknown, 0, 16);
            if fields.has(Set::SYM) {
                self.unknown.extend([" ", UNKNOWN].concat().bytes());
            }
            if fields.has(Set::DSO) {
                self.unknown.extend([" (", UNKNOWN, ")"].concat().bytes());
            }
            self.unknown.push(b'\n');
        }
    }

    /// Returns the line of a frame about which nothing is known, with any address and the end of the
    /// line.
    #[inline]
    pub fn unknown(&self) -> &[u8] {
        &self.unknown
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ranges = ByPlace::default();
    }

    /// Returns the line of a frame at a place, with the address of any of them.
    #[inline]
    pub fn get(&self, tables: &Tables, place: Option<PlaceId>) -> Option<&[u8]> {
        let range = self.ranges.get(tables, place)?;
        self.text.get(range.bytes())
    }

    /// Keeps the line of a frame at a place.
    pub fn set(&mut self, tables: &Tables, place: Option<PlaceId>, line: &[u8]) {
        if place.is_none() {
            return;
        }
        if self.text.len().saturating_add(line.len()) > MOST_TEXT {
            self.clear();
        }
        if let Some(range) = TextRange::of(self.text.len(), line.len()) {
            self.text.extend_from_slice(line);
            self.ranges.set(tables, place, range);
        }
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
