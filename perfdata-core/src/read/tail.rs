//! What a record stream ends with that is no whole record: the start of a record, perf's own messages, or damage.

use crate::error::{Error, Problem};
use crate::read::salvage::{Foreknown, Salvaged};
use crate::read::source::is_zero;
use crate::record::RecordHeader;
use crate::recording::Recording;

/// What the bytes behind the last whole record of a stream are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The start of a record: the stream ends inside of it.
    Cut,
    /// Messages of `perf record`, whose standard error went where the stream went.
    Text,
    /// Zeros: room for records that were never written, as `perf stat record` leaves it.
    Zeros,
    /// Nothing of this: a damaged record with other records behind it, or bytes that are not part of any record.
    Damage,
}

/// The most bytes of a record, and so of one that is cut.
const LARGEST: usize = u16::MAX as usize;

/// What `perf record` writes to standard error at its end.
const MESSAGE: &[u8] = b"[ perf record: ";

/// Types of records that perf may have one day, and whose start is taken for one: a multiple of what it has today.
const TYPES: u32 = 128;

impl Tail {
    /// The most bytes of an incomplete record and of messages. A longer tail is [`Damage`](Self::Damage).
    pub const MOST: u64 = LARGEST as u64;

    /// What `bytes` are, which follow the records of `recording`.
    pub fn of(bytes: &[u8], recording: &Recording) -> Self {
        if bytes.len() >= RecordHeader::SIZE && is_zero(bytes) {
            Tail::Zeros
        } else if is_text(bytes) {
            Tail::Text
        } else if is_start(bytes, recording) && !has_records(bytes, recording) {
            Tail::Cut
        } else {
            Tail::Damage
        }
    }
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.len() <= LARGEST
        && bytes.windows(MESSAGE.len()).any(|part| part == MESSAGE)
        && std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

/// Whether `bytes` are the start of a record, by its header.
fn is_start(bytes: &[u8], recording: &Recording) -> bool {
    let Some(header) = RecordHeader::parse(bytes, recording.endian) else { return true };
    let is_known = header.kind.info().is_some() || (header.kind.0 < TYPES && header.size.is_multiple_of(8));
    is_known && usize::from(header.size) > bytes.len()
}

/// Whether there are records among `bytes`, as `recover` would find them.
fn has_records(bytes: &[u8], recording: &Recording) -> bool {
    let survey = Salvaged::beside(bytes, recording, Foreknown::default()).and_then(|rest| rest.survey(|_| ()));
    survey.is_ok_and(|survey| survey.salvaging.left.records > 0)
}

/// The last bytes of a stream, as far as [`Tail`] needs them.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    bytes: Vec<u8>,
    /// Whether there are more bytes than can be an incomplete record.
    is_long: bool,
    /// Whether the bytes are part of a payload.
    is_payload: bool,
}

impl Remainder {
    /// Takes bytes that are no record.
    pub(super) fn unreadable(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.is_payload) {
            self.bytes.clear();
        }
        let room = LARGEST.saturating_sub(self.bytes.len());
        self.is_long |= bytes.len() > room;
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Takes a part of a payload, of which `left` bytes are to come. The last bytes are kept: where the stream ends
    /// inside of the payload, its size may be wrong, and there may be records in it.
    pub(super) fn payload(&mut self, bytes: &[u8], left: u64) {
        self.is_payload = true;
        if left == 0 {
            return self.bytes.clear();
        }
        let surplus = self.bytes.len().saturating_add(bytes.len()).saturating_sub(LARGEST).min(self.bytes.len());
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(bytes.get(bytes.len().saturating_sub(LARGEST)..).unwrap_or(bytes));
    }

    /// What the bytes are at the end of a stream that could not be read on because of `damage`.
    pub(super) fn judge(&self, damage: &Error, recording: &Recording) -> Tail {
        if self.is_payload {
            return if has_records(&self.bytes, recording) { Tail::Damage } else { Tail::Cut };
        }
        match damage.problem() {
            Problem::Truncated { .. } if !self.is_long => Tail::of(&self.bytes, recording),
            _ if !self.is_long && is_zero(&self.bytes) => Tail::Zeros,
            _ => Tail::Damage,
        }
    }
}
