//! The end of a record stream after the last whole record: the start of a record, perf's own
//! messages, or damage.

use crate::error::{Error, Problem};
use crate::read::limits::Limits;
use crate::read::salvage::{Foreknown, Salvaged};
use crate::read::source::is_zero;
use crate::record::RecordHeader;
use crate::recording::Recording;

/// Classification of the bytes after the last whole record of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tail {
    /// The start of a record: the stream is truncated inside it.
    Cut,
    /// Messages of `perf record`, whose standard error went to the stream.
    Text,
    /// Zeros: space for records that were never written, as `perf stat record` leaves it.
    Zeros,
    /// Anything else: a corrupt record followed by other records, or bytes that are not part of any
    /// record.
    Damage,
}

/// Maximum size of a record, and therefore of a truncated one.
const LARGEST: usize = u16::MAX as usize;

/// Text that `perf record` writes to standard error at its end.
const MESSAGE: &[u8] = b"[ perf record: ";

/// Record types below this number may be added to perf and are accepted at the start of a truncated
/// record: a multiple of the current number of types.
const TYPES: u32 = 128;

impl Tail {
    /// Maximum size of an incomplete record or of messages. A longer tail is
    /// [`Damage`](Self::Damage).
    pub const MOST: u64 = LARGEST as u64;

    /// Classifies `bytes`, which follow the records of `recording`. Records in them are searched
    /// within `limits`.
    pub fn of(bytes: &[u8], recording: &Recording, limits: Limits) -> Self {
        if bytes.len() >= RecordHeader::SIZE && is_zero(bytes) {
            Tail::Zeros
        } else if is_text(bytes) {
            Tail::Text
        } else if is_start(bytes, recording) && !has_records(bytes, recording, limits) {
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

/// Returns whether `bytes` are the start of a record, according to its header.
fn is_start(bytes: &[u8], recording: &Recording) -> bool {
    let Some(header) = RecordHeader::parse(bytes, recording.endian) else {
        return true;
    };
    let is_known =
        header.kind.info().is_some() || (header.kind.0 < TYPES && header.size.is_multiple_of(8));
    is_known && usize::from(header.size) > bytes.len()
}

/// Returns whether `bytes` contain records by the criteria of `recover`.
fn has_records(bytes: &[u8], recording: &Recording, limits: Limits) -> bool {
    let survey = Salvaged::beside(bytes, recording, limits, Foreknown::default())
        .and_then(|rest| rest.survey(|_| ()));
    survey.is_ok_and(|survey| survey.salvaging.left.records > 0)
}

/// The last bytes of a stream, as far as [`Tail`] needs them.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    bytes: Vec<u8>,
    /// Whether there are more bytes than an incomplete record can have.
    is_long: bool,
    /// Whether the bytes are part of a payload.
    is_payload: bool,
}

impl Remainder {
    /// Adds bytes that are not a record.
    pub(super) fn unreadable(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.is_payload) {
            self.bytes.clear();
        }
        let room = LARGEST.saturating_sub(self.bytes.len());
        self.is_long |= bytes.len() > room;
        self.bytes
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    /// Adds a part of a payload, of which `left` bytes are still to come. Keeps the last bytes: if
    /// the stream ends inside the payload, its size may be wrong and it may contain records.
    pub(super) fn payload(&mut self, bytes: &[u8], left: u64) {
        self.is_payload = true;
        if left == 0 {
            return self.bytes.clear();
        }
        let surplus = self
            .bytes
            .len()
            .saturating_add(bytes.len())
            .saturating_sub(LARGEST)
            .min(self.bytes.len());
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(
            bytes
                .get(bytes.len().saturating_sub(LARGEST)..)
                .unwrap_or(bytes),
        );
    }

    /// Classifies the bytes at the end of a stream that became unreadable because of `damage`.
    pub(super) fn judge(&self, damage: &Error, recording: &Recording, limits: Limits) -> Tail {
        if self.is_payload {
            return if has_records(&self.bytes, recording, limits) {
                Tail::Damage
            } else {
                Tail::Cut
            };
        }
        match damage.problem() {
            Problem::Truncated { .. } if !self.is_long => Tail::of(&self.bytes, recording, limits),
            _ if !self.is_long && is_zero(&self.bytes) => Tail::Zeros,
            _ => Tail::Damage,
        }
    }
}
