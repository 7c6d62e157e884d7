//! The record stream: whole records from large blocks, without copying them again.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "start and end are places in the buffer, start not behind end"
)]

use std::io::{ErrorKind, Read};

use binrw::Endian;

use crate::error::{Error, Result};
use crate::read::limits::Limits;
use crate::read::record_batch::{Chunk, RecordBatch};
use crate::read::tail::{Remainder, Tail};
use crate::record::{RawRecord, RecordHeader, RecordType};
use crate::recording::Recording;

/// The next item of a record stream. A [`RecordingReader`](super::RecordingReader) returns each
/// record together with the model, as a [`RecordRef`](super::RecordRef).
#[derive(Debug, Clone, Copy)]
pub enum StreamItem<'a, R = RawRecord<'a>> {
    /// A whole record.
    Record(R),
    /// A part of the payload that follows the last record outside its size (AUX data, tracing
    /// data).
    Payload(&'a [u8]),
    /// Bytes that are not records, from the damage up to the end: see [`RecordStream::damage`].
    Unreadable(&'a [u8]),
}

impl<'a, R> StreamItem<'a, R> {
    /// Returns the same item, with a record converted by `change`.
    pub fn map<T>(self, change: impl FnOnce(R) -> T) -> StreamItem<'a, T> {
        match self {
            StreamItem::Record(record) => StreamItem::Record(change(record)),
            StreamItem::Payload(bytes) => StreamItem::Payload(bytes),
            StreamItem::Unreadable(bytes) => StreamItem::Unreadable(bytes),
        }
    }
}

/// Reads the items of a stream, in order.
#[derive(Debug)]
pub struct RecordStream<R> {
    input: R,
    endian: Endian,
    buffer: Vec<u8>,
    /// Start and end of the bytes in `buffer` that are read but not yet returned.
    start: usize,
    end: usize,
    /// Absolute offset of `start` in the input.
    offset: u64,
    /// Number of payload bytes still to come.
    payload: u64,
    at_end: bool,
    damage: Option<Error>,
    remainder: Remainder,
}

/// Location of an item in the buffer.
enum ItemRange {
    Record { from: usize, to: usize, offset: u64 },
    Payload { from: usize, to: usize },
    Unreadable { from: usize, to: usize },
}

/// Number of bytes read at once: enough to make the cost of a system call negligible and to fit any
/// record; few enough to stay in the CPU's own cache until they are processed.
const BLOCK: usize = 256 << 10;

impl<R> RecordStream<R> {
    pub(super) fn map_input<T>(self, wrap: impl FnOnce(R) -> T) -> RecordStream<T> {
        let RecordStream {
            input,
            endian,
            buffer,
            start,
            end,
            offset,
            payload,
            at_end,
            damage,
            remainder,
        } = self;
        RecordStream {
            input: wrap(input),
            endian,
            buffer,
            start,
            end,
            offset,
            payload,
            at_end,
            damage,
            remainder,
        }
    }
}

impl<R: Read> RecordStream<R> {
    /// Returns a stream of the records in `input`, whose first byte has the absolute offset
    /// `offset`.
    pub fn new(input: R, endian: Endian, offset: u64) -> Self {
        Self::with_block(input, endian, offset, BLOCK)
    }

    /// Returns a stream that reads `block` bytes at once, or more if a record is larger.
    pub(super) fn with_block(input: R, endian: Endian, offset: u64, block: usize) -> Self {
        RecordStream {
            input,
            endian,
            buffer: vec![0; block],
            start: 0,
            end: 0,
            offset,
            payload: 0,
            at_end: false,
            damage: None,
            remainder: Remainder::default(),
        }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    /// Returns the absolute offset of the next item.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns why the stream could not be read as records up to its end.
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Classifies the bytes at the end of a stream of `recording` that are not a complete record;
    /// `None` if all bytes are complete records. Records in them are searched within `limits`.
    /// Available after [`next`](Self::next) has returned `None`.
    pub fn tail(&self, recording: &Recording, limits: Limits) -> Option<Tail> {
        self.damage
            .as_ref()
            .map(|damage| self.remainder.judge(damage, recording, limits))
    }

    /// Removes and returns [`damage`](Self::damage) at the end of the stream.
    pub fn take_damage(&mut self) -> Option<Error> {
        self.damage.take()
    }

    /// Returns the next item; `None` at the end of the input.
    ///
    /// # Errors
    /// Fails if the input cannot be read. Invalid bytes are not an error here: see
    /// [`damage`](Self::damage).
    // Not an iterator: an item borrows from the stream.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<StreamItem<'_>>> {
        let endian = self.endian;
        Ok(match self.advance()? {
            None => None,
            Some(ItemRange::Record { from, to, offset }) => Some(StreamItem::Record(
                RawRecord::first(self.slice(from, to), endian, offset)?,
            )),
            Some(ItemRange::Payload { from, to }) => {
                Some(StreamItem::Payload(self.slice(from, to)))
            }
            Some(ItemRange::Unreadable { from, to }) => {
                Some(StreamItem::Unreadable(self.slice(from, to)))
            }
        })
    }

    /// Returns the next items together, as many records as are in memory; `None` at the end of the
    /// input.
    ///
    /// # Errors
    /// Fails like [`next`](Self::next).
    pub fn next_chunk(&mut self) -> Result<Option<Chunk<'_>>> {
        let endian = self.endian;
        Ok(match self.advance()? {
            None => None,
            Some(ItemRange::Record { from, to, offset }) => {
                let (len, count) = RecordBatch::measure(self.slice(from, self.end), endian);
                self.consume(len.saturating_sub(to - from));
                Some(Chunk::Records(RecordBatch::new(
                    self.slice(from, from + len),
                    count,
                    endian,
                    offset,
                )))
            }
            Some(ItemRange::Payload { from, to }) => Some(Chunk::Payload(self.slice(from, to))),
            Some(ItemRange::Unreadable { from, to }) => {
                Some(Chunk::Unreadable(self.slice(from, to)))
            }
        })
    }

    /// Removes the next item from the buffer.
    fn advance(&mut self) -> Result<Option<ItemRange>> {
        if self.damage.is_some() {
            let Some((from, to)) = self.take_block(u64::MAX)? else {
                return Ok(None);
            };
            self.remainder
                .unreadable(self.buffer.get(from..to).unwrap_or_default());
            return Ok(Some(ItemRange::Unreadable { from, to }));
        }
        if self.payload > 0 {
            let Some((from, to)) = self.take_block(self.payload)? else {
                self.damage =
                    Some(Error::truncated("payload of a record", self.payload, 0).at(self.offset));
                return Ok(None);
            };
            self.payload = self.payload.saturating_sub((to - from) as u64);
            self.remainder
                .payload(self.buffer.get(from..to).unwrap_or_default(), self.payload);
            return Ok(Some(ItemRange::Payload { from, to }));
        }
        match self.whole_record()? {
            None => Ok(None),
            Some(Ok((len, payload))) => {
                let (from, offset) = (self.start, self.offset);
                self.consume(len);
                self.payload = payload;
                Ok(Some(ItemRange::Record {
                    from,
                    to: from + len,
                    offset,
                }))
            }
            Some(Err(damage)) => {
                self.damage = Some(damage);
                self.advance()
            }
        }
    }

    /// Makes the next record available. Returns its length and that of its payload, or why it is
    /// not a record.
    fn whole_record(&mut self) -> Result<Option<Result<(usize, u64)>>> {
        if !self.fill(RecordHeader::SIZE)? && self.start == self.end {
            return Ok(None);
        }
        if let Some(header) = RecordHeader::parse(self.slice(self.start, self.end), self.endian) {
            self.fill(usize::from(header.size))?;
        }
        let record = RawRecord::first(self.slice(self.start, self.end), self.endian, self.offset);
        Ok(Some(record.and_then(|record| {
            Ok((record.bytes.len(), record.payload_len()?))
        })))
    }

    /// Returns whether the next item is already in memory, so that it needs no further input.
    pub(super) fn has_more_at_hand(&self) -> bool {
        let bytes = self.slice(self.start, self.end);
        self.payload == 0
            && self.damage.is_none()
            && RecordHeader::parse(bytes, self.endian)
                .is_some_and(|header| usize::from(header.size) <= bytes.len())
    }

    /// Returns the type of the next record without consuming it; `None` if the next item is not a
    /// record.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn peek_kind(&mut self) -> Result<Option<RecordType>> {
        if self.payload > 0 || self.damage.is_some() || !matches!(self.whole_record()?, Some(Ok(_)))
        {
            return Ok(None);
        }
        Ok(
            RecordHeader::parse(self.slice(self.start, self.end), self.endian)
                .map(|header| header.kind),
        )
    }

    /// Consumes up to `most` bytes of any kind; returns their range in the buffer.
    fn take_block(&mut self, most: u64) -> Result<Option<(usize, usize)>> {
        self.fill(1)?;
        let len = (self.end - self.start).min(usize::try_from(most).unwrap_or(usize::MAX));
        let from = self.start;
        self.consume(len);
        Ok((len > 0).then_some((from, from + len)))
    }

    fn slice(&self, from: usize, to: usize) -> &[u8] {
        self.buffer.get(from..to).unwrap_or_default()
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        self.offset = self.offset.saturating_add(len as u64);
    }

    /// Makes `len` bytes available from `start` on, if the input has them. Bytes returned earlier
    /// may move.
    fn fill(&mut self, len: usize) -> Result<bool> {
        while self.end - self.start < len && !self.at_end {
            if self.buffer.len() - self.start < len || self.start == self.end {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                self.buffer.resize(self.buffer.len().max(len), 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.input.read(room) {
                Ok(0) => self.at_end = true,
                Ok(got) => self.end = (self.end + got).min(self.buffer.len()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // An error of a reader in this crate already contains cause and offset.
                Err(e) => {
                    return Err(e
                        .downcast()
                        .unwrap_or_else(|e| Error::io("record stream", e).at(self.offset)));
                }
            }
        }
        Ok(self.end - self.start >= len)
    }
}
