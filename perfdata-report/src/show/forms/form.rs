//! The form of records, and records written in it.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "offsets in a record, which has less than 64 KiB"
)]

use perfdata_core::attr::{ReadFormat, SampleType};
use perfdata_core::record::{CallchainContext, RawRecord, RecordType};
use perfdata_core::wire::until_nul;
use perfdata_core::{Endian, Recording};

use super::learner::Learner;
use crate::show::buffer::{Buffer, Known, Literal};
use crate::show::record::{HeadNumber, Shown};
use perfdata_convert::support::json_text::{NumberForm, is_plain, push_contexts, push_string};
use perfdata_convert::support::text::hex_pair;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// The characters that a byte of a record takes at most: a word of a callchain is written with
/// sixteen digits, a comma, two quotation marks and `0x`.
const PER_BYTE: usize = 3;

/// How the records of one form are written.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) pieces: Vec<TextPiece>,
    /// What follows the last value.
    pub(super) end: Literal,
    /// Room that is needed in addition to [`PER_BYTE`] bytes for each byte of the record.
    pub(super) room: usize,
    /// Size of what follows a text, in bytes.
    pub(super) after_text: usize,
    /// The size of the record in bytes, if the form depends on it.
    pub(super) size: Option<usize>,
}

/// A fixed text, and the value after it.
#[derive(Debug)]
pub(super) struct TextPiece {
    pub(super) before: Literal,
    pub(super) value: Value,
    /// The last number here.
    pub(super) known: Known,
}

/// A value, from the next bytes of the record if nothing else is said.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    /// A number of the record as a whole.
    Head(HeadNumber),
    /// A number of `size` bytes.
    Number { size: usize, form: NumberForm },
    /// A count, and that many words of a callchain.
    Callchain { name: &'static str },
    /// A 32-bit count, and that many bytes.
    Raw,
    /// Bytes.
    Bytes { size: usize },
    /// A text up to the trailer.
    Text,
    /// Bytes that are not shown.
    Filling { size: usize },
}

impl Form {
    /// Returns the form of a record of which [`Key::of`] returns a key.
    pub(super) fn of(
        shown: &Shown<'_>,
        raw: &RawRecord<'_>,
        recording: &Recording,
    ) -> Option<Form> {
        let layout = recording.events.layout_of(raw);
        let has = |part| raw.kind == RecordType::SAMPLE && layout.sample_type.has(part);
        let is_group = has(SampleType::READ) && layout.read_format.has(ReadFormat::GROUP);
        // The size then does not determine how many counters there are.
        if is_group && (has(SampleType::CALLCHAIN) || has(SampleType::RAW)) {
            return None;
        }
        let mut learner = Learner::default();
        shown.write_json(&mut learner);
        learner.end_line();
        learner.into_form(is_group.then_some(raw.bytes.len()))
    }

    /// Returns whether the form is that of a record with its key.
    #[inline]
    pub(super) fn is_that_of(&self, raw: &RawRecord<'_>) -> bool {
        self.size.is_none_or(|size| size == raw.bytes.len())
    }

    /// Returns whether it writes a record as expected.
    pub(super) fn gives(
        &mut self,
        raw: &RawRecord<'_>,
        inner: Option<usize>,
        expected: &[u8],
    ) -> bool {
        let mut out = Buffer::default();
        self.write(raw, inner, &mut out);
        debug_assert!(out.text() == expected, "a record of this form");
        out.text() == expected
    }

    /// Appends a record.
    pub(super) fn write(&mut self, raw: &RawRecord<'_>, inner: Option<usize>, out: &mut Buffer) {
        let room = self.room + PER_BYTE * raw.bytes.len();
        out.reserve(room);
        let mut rest = raw.body();
        for piece in &mut self.pieces {
            out.literal(&piece.before);
            match piece.value {
                Value::Head(number) => {
                    out.known_decimal(number.of(raw, inner), &mut piece.known);
                }
                Value::Number { size, form } => {
                    let number = number(&mut rest, size, raw.endian);
                    write_number(number, size, form, &mut piece.known, out);
                }
                Value::Callchain { name } => {
                    let count = number(&mut rest, WORD, raw.endian);
                    let words = take(&mut rest, (count as usize).saturating_mul(WORD));
                    write_callchain(name, words, raw.endian, out);
                    out.reserve(room);
                }
                Value::Raw => {
                    let size = number(&mut rest, 4, raw.endian);
                    write_bytes(take(&mut rest, size as usize), out);
                }
                Value::Bytes { size } => write_bytes(take(&mut rest, size), out),
                Value::Text => {
                    let len = rest.len().saturating_sub(self.after_text);
                    write_text(until_nul(take(&mut rest, len)), out);
                    out.reserve(room);
                }
                Value::Filling { size } => {
                    take(&mut rest, size);
                }
            }
        }
        out.literal(&self.end);
    }
}

/// Removes the first bytes.
#[inline]
fn take<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, behind) = rest.split_at_checked(len).unwrap_or_default();
    *rest = behind;
    taken
}

/// Removes a number of 1, 2, 4 or 8 bytes.
#[inline]
fn number(rest: &mut &[u8], size: usize, endian: Endian) -> u64 {
    fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    let bytes = take(rest, size);
    match (size, endian) {
        (8, Endian::Little) => u64::from_le_bytes(word(bytes)),
        (8, Endian::Big) => u64::from_be_bytes(word(bytes)),
        (4, Endian::Little) => u32::from_le_bytes(word(bytes)).into(),
        (4, Endian::Big) => u32::from_be_bytes(word(bytes)).into(),
        (2, Endian::Little) => u16::from_le_bytes(word(bytes)).into(),
        (2, Endian::Big) => u16::from_be_bytes(word(bytes)).into(),
        _ => u8::from_le_bytes(word(bytes)).into(),
    }
}

#[inline]
fn write_number(number: u64, size: usize, form: NumberForm, known: &mut Known, out: &mut Buffer) {
    match form {
        NumberForm::Hexadecimal => write_address(number, out),
        NumberForm::DecimalOrNone if number == u64::MAX >> (64 - 8 * size) => {
            out.byte(b'-');
            out.byte(b'1');
        }
        _ => out.known_decimal(number, known),
    }
}

#[inline]
fn write_address(number: u64, out: &mut Buffer) {
    [b'"', b'0', b'x']
        .into_iter()
        .for_each(|byte| out.byte(byte));
    out.hexadecimal(number);
    out.byte(b'"');
}

fn write_callchain(name: &'static str, words: &[u8], endian: Endian, out: &mut Buffer) {
    let mut has_context = false;
    let words = words.as_chunks::<WORD>().0.iter().map(|word| match endian {
        Endian::Little => u64::from_le_bytes(*word),
        Endian::Big => u64::from_be_bytes(*word),
    });
    out.byte(b'[');
    for (at, word) in words.clone().enumerate() {
        if at > 0 {
            out.byte(b',');
        }
        write_address(word, out);
        has_context |= CallchainContext::of(word).is_some();
    }
    out.byte(b']');
    if has_context {
        out.append(|text| push_contexts(text, name, words));
    }
}

fn write_bytes(bytes: &[u8], out: &mut Buffer) {
    out.byte(b'"');
    let (words, last) = bytes.as_chunks::<WORD>();
    for word in words {
        out.padded_hexadecimal(u64::from_be_bytes(*word));
    }
    for &byte in last {
        hex_pair(byte).into_iter().for_each(|digit| out.byte(digit));
    }
    out.byte(b'"');
}

fn write_text(text: &[u8], out: &mut Buffer) {
    if is_plain(text) {
        out.byte(b'"');
        out.bytes(text);
        out.byte(b'"');
    } else {
        out.append(|to| push_string(to, text));
    }
}
