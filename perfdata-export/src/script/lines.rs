//! The lines of stacks that were shown before, and what lines of frames are made of.

use std::num::NonZeroU32;
use std::ops::Range;

use perfdata_session::MappingId;

use super::fields::Set;
use super::numbers::push_hex;
use crate::tables::UNKNOWN;

/// The fields that the lines of frames depend on.
const FIELDS: Set = Set::SYM
    .with(Set::SYMOFF)
    .with(Set::DSO)
    .with(Set::DSOFF)
    .with(Set::SRCLINE);

/// Maximum size of texts in bytes.
const MOST_TEXT: usize = 8 << 20;

/// Texts by number, and one without a number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    ranges: Vec<Option<TextRange>>,
}

/// Where a text is.
#[derive(Debug, Clone, Copy)]
struct TextRange {
    start: u32,
    len: NonZeroU32,
}

impl TextRange {
    fn of(range: &Range<usize>) -> Option<Self> {
        Some(TextRange {
            start: u32::try_from(range.start).ok()?,
            len: NonZeroU32::new(u32::try_from(range.len()).ok()?)?,
        })
    }

    #[inline]
    fn bytes(self) -> Range<usize> {
        let number = |number: u32| usize::try_from(number).unwrap_or_default();
        let start = number(self.start);
        start..start.saturating_add(number(self.len.get()))
    }
}

impl Texts {
    /// Appends the text of a number to `out`. If it is not known, `make` appends it.
    #[inline]
    pub fn append(
        &mut self,
        number: Option<u32>,
        out: &mut Vec<u8>,
        make: impl FnOnce(&mut Vec<u8>),
    ) {
        let at = number.map_or(Some(0), |number| {
            usize::try_from(number).ok()?.checked_add(1)
        });
        let known = at.and_then(|at| self.ranges.get(at).copied().flatten());
        if let Some(known) = known.and_then(|known| self.bytes.get(known.bytes())) {
            return out.extend_from_slice(known);
        }
        let start = out.len();
        make(out);
        if let Some((at, text)) = at.zip(out.get(start..)) {
            self.set(at, text);
        }
    }

    fn set(&mut self, at: usize, text: &[u8]) {
        if self.bytes.len().saturating_add(text.len()) > MOST_TEXT {
            *self = Texts::default();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        if self.ranges.len() <= at {
            self.ranges.resize(at.saturating_add(1), None);
        }
        if let Some(place) = self.ranges.get_mut(at) {
            *place = TextRange::of(&(start..self.bytes.len()));
        }
    }
}

/// What is known about lines of frames. The line of each frame is made of its parts: they are in the
/// cache more often than the lines of all places would be.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The fields in the lines.
    fields: Set,
    /// The line of a frame about which nothing is known, with any address.
    unknown: Vec<u8>,
    /// What is between the address and the offset in the function, by function.
    pub functions: Texts,
    /// The object, by module.
    pub modules: Texts,
    /// What is added to the addresses in each mapping to show them.
    biases: Vec<Option<u64>>,
}

impl Lines {
    /// Forgets the lines if they contain other fields.
    pub fn set_form(&mut self, fields: Set) {
        let fields = fields.only(FIELDS);
        if fields != self.fields || self.unknown.is_empty() {
            self.fields = fields;
            (self.functions, self.modules) = Default::default();
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

    /// Returns what is added to the addresses in a mapping to show them, which `find` determines at
    /// the first time.
    #[inline]
    pub fn bias(&mut self, id: MappingId, find: impl FnOnce() -> u64) -> u64 {
        let at = id.index();
        if let Some(&Some(bias)) = self.biases.get(at) {
            return bias;
        }
        let bias = find();
        if self.biases.len() <= at {
            self.biases.resize(at.saturating_add(1), None);
        }
        if let Some(place) = self.biases.get_mut(at) {
            *place = Some(bias);
        }
        bias
    }
}
