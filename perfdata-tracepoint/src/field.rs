//! The fields of raw data.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use perfdata_core::Endian;

use crate::like::Like;
use crate::number;

/// A field of the raw data of a tracepoint: a line of its `format` file.
#[derive(Debug)]
pub struct Field {
    pub(crate) name: Box<[u8]>,
    pub(crate) type_name: Box<[u8]>,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) element_size: usize,
    pub(crate) is_array: bool,
    pub(crate) is_pointer: bool,
    pub(crate) is_signed: bool,
    pub(crate) is_string: bool,
    pub(crate) is_dynamic: bool,
    pub(crate) is_relative: bool,
    pub(crate) is_long: bool,
    pub(crate) endian: Endian,
    pub(crate) like: Like,
    /// Whether a value was not printable: libtraceevent prints the field as an array of bytes from
    /// then on.
    pub(crate) was_unprintable: AtomicBool,
}

/// The value of a field in raw data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A number.
    Unsigned(u64),
    /// A number of a type with a sign.
    Signed(i64),
    /// A text, without the NUL at its end.
    String(&'a [u8]),
    /// An array that is no text, in the byte order of the recording.
    Bytes(&'a [u8]),
}

/// Where the data of a dynamic field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Offset in the raw data.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
}

impl Clone for Field {
    fn clone(&self) -> Self {
        Field {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            was_unprintable: AtomicBool::new(self.was_unprintable.load(Ordering::Relaxed)),
            ..*self
        }
    }
}

impl Field {
    /// Returns the name: `prev_comm`.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the type as libtraceevent writes it: `char[16]`, `__data_loc char[]`,
    /// `unsigned int`.
    pub fn type_name(&self) -> &[u8] {
        &self.type_name
    }

    /// Returns the offset in the raw data in bytes. That of a dynamic field is the offset of the
    /// number that contains the offset and the length of its data.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the size in bytes. 0 means: the rest of the raw data. That of a dynamic field is 4.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the size of an element of an array in bytes, as far as libtraceevent knows it;
    /// otherwise 0. That of a field which is no array is its size.
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Returns whether the field is an array.
    pub fn is_array(&self) -> bool {
        self.is_array
    }

    /// Returns whether the type contains a pointer.
    pub fn is_pointer(&self) -> bool {
        self.is_pointer
    }

    /// Returns whether the kernel says that the type has a sign.
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Returns whether the field is an array of `char`, `u8` or `s8`, which may be a text.
    pub fn is_string(&self) -> bool {
        self.is_string
    }

    /// Returns whether the length varies (`__data_loc` and `__rel_loc`).
    pub fn is_dynamic(&self) -> bool {
        self.is_dynamic
    }

    /// Returns whether the offset of the data is relative to the end of the field (`__rel_loc`,
    /// Linux 5.17).
    pub fn is_relative(&self) -> bool {
        self.is_relative
    }

    /// Returns the bytes of the field in raw data; the data of a dynamic field, without the number
    /// that contains their offset and length. `None` if they are not completely in the raw data.
    pub fn bytes<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        raw.get(self.range(raw)?)
    }

    /// Returns the place of these bytes in raw data, in bytes from its start. `None` if they are
    /// not completely in the raw data.
    pub fn range(&self, raw: &[u8]) -> Option<Range<usize>> {
        let (start, size) = match self.is_dynamic {
            true => {
                let at = self.location(raw)?;
                (at.offset, at.len)
            }
            false if self.size == 0 => (self.offset, raw.len().checked_sub(self.offset)?),
            false => (self.offset, self.size),
        };
        let range = start..start.checked_add(size)?;
        (range.end <= raw.len()).then_some(range)
    }

    /// Returns the number in raw data, without a sign. `None` if the field is no number, or not
    /// completely in the raw data.
    pub fn number(&self, raw: &[u8]) -> Option<u64> {
        if self.is_array || self.is_dynamic || !matches!(self.size, 1 | 2 | 4 | 8) {
            return None;
        }
        self.bytes(raw)
            .map(|bytes| number::read(bytes, 0, self.size, self.endian))
    }

    /// Returns the number in raw data, with its sign. `None` if the field is no number, or not
    /// completely in the raw data.
    pub fn signed(&self, raw: &[u8]) -> Option<i64> {
        let number = self.number(raw)?;
        Some(match self.size {
            1 => i64::from(number as i8),
            2 => i64::from(number as i16),
            4 => i64::from(number as i32),
            _ => number as i64,
        })
    }

    /// Returns the text in raw data up to its NUL. `None` if the field is no array of characters,
    /// or not completely in the raw data.
    pub fn string<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        self.is_string
            .then(|| self.bytes(raw).map(until_nul))
            .flatten()
    }

    /// Returns the value in raw data. `None` if it is not completely in the raw data.
    pub fn value<'a>(&self, raw: &'a [u8]) -> Option<Value<'a>> {
        if let Some(string) = self.string(raw) {
            return Some(Value::String(string));
        }
        match self.number(raw) {
            Some(_) if self.is_signed => self.signed(raw).map(Value::Signed),
            Some(number) => Some(Value::Unsigned(number)),
            None => self.bytes(raw).map(Value::Bytes),
        }
    }

    /// Returns where the data of a dynamic field are, whether or not they are in the raw data.
    fn location(&self, raw: &[u8]) -> Option<Span> {
        let end = self.offset.checked_add(self.size)?;
        raw.get(self.offset..end)?;
        let location = number::read(raw, self.offset, self.size, self.endian);
        let mut offset = (location & 0xffff) as usize;
        let mut len = (location >> 16 & 0xffff) as usize;
        // Linux before 2.6.32 had no lengths.
        if self.size == 2 {
            len = until_nul(raw.get(offset..).unwrap_or_default()).len();
        }
        if self.is_relative {
            offset = offset.checked_add(end)?;
        }
        Some(Span { offset, len })
    }

    /// Returns where libtraceevent takes the data of a dynamic field from (`dynamic_offset_field`).
    pub(crate) fn span(&self, raw: &[u8]) -> Span {
        let end = self.offset.saturating_add(self.size);
        if self.like.is_library() && end > raw.len() {
            return Span { offset: 0, len: 0 };
        }
        let location = number::read(raw, self.offset, self.size, self.endian);
        let mut offset = (location & 0xffff) as usize;
        let mut len = (location >> 16 & 0xffff) as usize;
        if self.like.is_library() {
            if self.size == 2 {
                len = raw.len().saturating_sub(offset);
            }
            if offset.saturating_add(len) > raw.len() {
                len = 0;
            }
            if offset > raw.len() {
                offset = 0;
            }
        }
        if self.is_relative {
            offset = offset.saturating_add(end);
        }
        Span { offset, len }
    }

    /// Returns whether libtraceevent still takes the field for a text.
    pub(crate) fn may_be_text(&self) -> bool {
        self.is_string && !self.was_unprintable.load(Ordering::Relaxed)
    }

    /// Notes that a value was no text.
    pub(crate) fn is_no_text(&self) {
        self.was_unprintable.store(true, Ordering::Relaxed);
    }
}

/// Returns the bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}
