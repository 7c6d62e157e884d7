//! Several records at once, for code that skips most records.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "lengths and counts of records that are in memory"
)]

use binrw::Endian;

use crate::record::{RawRecord, RecordHeader, RecordType};

/// Whole records, adjacent as in the input. A record that describes the recording as a whole, has a
/// payload or is compressed is alone in its batch.
#[derive(Debug, Clone, Copy)]
pub struct RecordBatch<'a> {
    bytes: &'a [u8],
    count: usize,
    offset: u64,
    endian: Endian,
}

/// A chunk of a record stream.
#[derive(Debug, Clone, Copy)]
pub enum Chunk<'a> {
    /// Whole records.
    Records(RecordBatch<'a>),
    /// A part of the payload that follows the last record outside its size (AUX data, tracing
    /// data).
    Payload(&'a [u8]),
    /// Bytes that are not records, from the damage up to the end.
    Unreadable(&'a [u8]),
}

impl<'a> RecordBatch<'a> {
    /// Returns the records at the start of `bytes`, whose first byte has the absolute offset
    /// `offset`, up to a record that must be alone in its batch, is incomplete or invalid. The
    /// batch may be empty.
    pub fn first(bytes: &'a [u8], endian: Endian, offset: u64) -> Self {
        let (len, count) = Self::measure(bytes, endian);
        Self::new(bytes.get(..len).unwrap_or_default(), count, endian, offset)
    }

    /// Returns a batch of `count` records that occupy all of `bytes`, whose first byte has the
    /// absolute offset `offset`. If there are several, none of them must be alone.
    pub fn new(bytes: &'a [u8], count: usize, endian: Endian, offset: u64) -> Self {
        RecordBatch {
            bytes,
            count,
            offset,
            endian,
        }
    }

    /// Returns the size in bytes and the number of records of the batch at the start of `bytes`.
    pub(super) fn measure(bytes: &[u8], endian: Endian) -> (usize, usize) {
        let (mut len, mut count) = (0, 0);
        while let Some(header) = RecordHeader::parse(bytes.get(len..).unwrap_or_default(), endian) {
            let end = len + usize::from(header.size);
            if usize::from(header.size) < RecordHeader::SIZE || end > bytes.len() {
                break;
            }
            let alone = stands_alone(header.kind);
            if alone && count > 0 {
                break;
            }
            (len, count) = (end, count + 1);
            if alone {
                break;
            }
        }
        (len, count)
    }

    /// Returns a batch of one record.
    #[inline]
    pub fn of(record: &RawRecord<'a>) -> Self {
        RecordBatch {
            bytes: record.bytes,
            count: 1,
            offset: record.offset,
            endian: record.endian,
        }
    }

    /// Returns all bytes of the records.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the record, if it is the only one.
    #[inline]
    pub fn only(&self) -> Option<RawRecord<'a>> {
        match self.count {
            1 => self.iter().next(),
            _ => None,
        }
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the byte order of the records.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the absolute offset of the first record in the input.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns an iterator over the records.
    #[inline]
    pub fn iter(&self) -> Records<'a> {
        Records::of(self.bytes, self.endian, self.offset)
    }

    /// Removes and returns the first part of the batch: a record of a `wanted` type, or all records
    /// before the next such record.
    #[inline]
    pub fn take_part(&mut self, wanted: impl Fn(RecordType) -> bool) -> Option<BatchPart<'a>> {
        let (mut len, mut count) = (0, 0);
        for record in self.iter() {
            if wanted(record.kind) {
                if count > 0 {
                    break;
                }
                self.take(record.bytes.len(), 1);
                return Some(BatchPart::Wanted(record));
            }
            len += record.bytes.len();
            count += 1;
        }
        (count > 0).then(|| BatchPart::Others(self.take(len, count)))
    }

    /// Removes and returns the records at the start for which `keep` is true. `keep` is called for
    /// each of them, and for the next one.
    pub fn take_while(&mut self, mut keep: impl FnMut(&RawRecord<'a>) -> bool) -> Self {
        let (mut len, mut count) = (0, 0);
        for record in self.iter() {
            if !keep(&record) {
                break;
            }
            len += record.bytes.len();
            count += 1;
        }
        self.take(len, count)
    }

    /// Removes and returns the first `count` records, which have `len` bytes.
    fn take(&mut self, len: usize, count: usize) -> Self {
        let (head, tail) = self
            .bytes
            .split_at_checked(len)
            .unwrap_or((self.bytes, &[]));
        let taken = RecordBatch {
            bytes: head,
            count,
            ..*self
        };
        self.bytes = tail;
        self.count = self.count.saturating_sub(count);
        self.offset = self.offset.saturating_add(head.len() as u64);
        taken
    }
}

impl<'a> IntoIterator for RecordBatch<'a> {
    type Item = RawRecord<'a>;
    type IntoIter = Records<'a>;
    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// Returns whether a record is alone in its batch: the following data may depend on it, a file
/// stores its content elsewhere, or it contains records.
#[inline]
pub(super) fn stands_alone(kind: RecordType) -> bool {
    kind.is_metadata()
        || kind.has_payload()
        || kind.is_compressed()
        || kind == RecordType::HEADER_BUILD_ID
}

/// The records of a batch, or of a part of the input.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    offset: u64,
    endian: Endian,
}

impl<'a> Records<'a> {
    /// Returns the records in `bytes`, up to the first one that is incomplete. The first byte has
    /// the absolute offset `offset`.
    pub fn of(bytes: &'a [u8], endian: Endian, offset: u64) -> Self {
        Records {
            bytes,
            offset,
            endian,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawRecord<'a>> {
        let RecordHeader { kind, misc, size } = RecordHeader::parse(self.bytes, self.endian)?;
        let (bytes, rest) = self
            .bytes
            .split_at_checked(usize::from(size).max(RecordHeader::SIZE))?;
        let offset = self.offset;
        self.bytes = rest;
        self.offset = offset.saturating_add(bytes.len() as u64);
        Some(RawRecord {
            offset,
            kind,
            misc,
            bytes,
            endian: self.endian,
        })
    }
}

/// A part of a batch.
#[derive(Debug, Clone, Copy)]
pub enum BatchPart<'a> {
    /// A record of a wanted type.
    Wanted(RawRecord<'a>),
    /// Records of other types.
    Others(RecordBatch<'a>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::wire::Wire;

    /// Returns records that consist only of a header (type and size) and zeros.
    fn records(list: &[(RecordType, u16)]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for &(kind, size) in list {
            let start = bytes.len();
            RecordHeader {
                kind,
                misc: 0,
                size,
            }
            .encode_into(&mut bytes, Endian::Big)?;
            bytes.resize(start + usize::from(size).max(8), 0);
        }
        Ok(bytes)
    }

    fn first(bytes: &[u8]) -> RecordBatch<'_> {
        RecordBatch::first(bytes, Endian::Big, 100)
    }

    #[test]
    fn a_run_ends_where_something_else_begins() -> Result<()> {
        use RecordType as T;
        let len = |list: &[(T, u16)]| {
            records(list).map(|bytes| (first(&bytes).len(), first(&bytes).bytes().len()))
        };
        assert_eq!(len(&[])?, (0, 0));
        assert_eq!(len(&[(T::COMM, 16), (T::SAMPLE, 24)])?, (2, 40));
        assert_eq!(
            len(&[(T::COMM, 16), (T::AUXTRACE, 48), (T::COMM, 16)])?,
            (1, 16)
        );
        assert_eq!(len(&[(T::AUXTRACE, 48), (T::COMM, 16)])?, (1, 48));
        assert_eq!(
            len(&[(T::HEADER_FEATURE, 16), (T::HEADER_FEATURE, 16)])?,
            (1, 16)
        );
        assert_eq!(
            len(&[(T::COMM, 16), (T::HEADER_BUILD_ID, 48), (T::COMM, 16)])?,
            (1, 16)
        );
        assert_eq!(len(&[(T::COMM, 16), (T::COMPRESSED, 48)])?, (1, 16));
        assert_eq!(len(&[(T::COMPRESSED2, 48), (T::COMPRESSED2, 48)])?, (1, 48));
        assert_eq!(len(&[(T::COMM, 16), (T::COMM, 7)])?, (1, 16));
        let cut = records(&[(T::COMM, 16), (T::SAMPLE, 24)])?;
        assert_eq!(first(cut.get(..39).unwrap_or_default()).len(), 1);
        assert_eq!(first(cut.get(..20).unwrap_or_default()).len(), 1);
        Ok(())
    }

    #[test]
    fn parts_are_the_whole() -> Result<()> {
        use RecordType as T;
        let list = [
            (T::COMM, 16),
            (T::SAMPLE, 24),
            (T::COMM, 16),
            (T::COMM, 24),
            (T::SAMPLE, 8),
        ];
        let bytes = records(&list)?;
        let batch = first(&bytes);
        for wanted in [T::COMM, T::SAMPLE, T::EXIT] {
            let (mut found, mut kinds) = (Vec::new(), Vec::new());
            let mut rest = batch;
            while let Some(part) = rest.take_part(|kind| kind == wanted) {
                let of_part: Vec<_> = match part {
                    BatchPart::Wanted(record) => vec![record],
                    BatchPart::Others(batch) => {
                        assert_eq!(batch.len(), batch.iter().count());
                        batch.iter().collect()
                    }
                };
                found.extend(
                    of_part
                        .iter()
                        .map(|record| (record.offset, record.bytes.len())),
                );
                kinds.extend(
                    of_part
                        .iter()
                        .map(|record| (record.kind, matches!(part, BatchPart::Wanted(_)))),
                );
            }
            let expected: Vec<_> = batch
                .iter()
                .map(|record| (record.offset, record.bytes.len()))
                .collect();
            assert_eq!(found, expected);
            assert!(
                kinds
                    .iter()
                    .all(|&(kind, is_wanted)| is_wanted == (kind == wanted))
            );
        }
        Ok(())
    }
}
