//! The rest of the pipeline after a stage, and the recording at its position.

use perfdata_core::read::{Chunk, Limits, RecordBatch};
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_core::{Events, Recording};

use super::chain::Chain;
use crate::error::Result;

/// How a stage handles compressed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressedRecords {
    /// It receives the decompressed records. Forwarded records are compressed again as records of
    /// this type.
    Opened(RecordType),
    /// It receives the decompressed records. Forwarded records remain uncompressed.
    Plain,
    /// It receives the compressed records.
    AsTheyAre,
}

/// The rest of a conversion after a stage: the next stages and the writer.
pub struct Link<'a> {
    chain: Chain<'a>,
    recording: &'a Recording,
    limits: Limits,
    /// Offset of the stage's current record.
    offset: u64,
}

impl<'a> Link<'a> {
    pub(super) fn new(chain: Chain<'a>, recording: &'a Recording, limits: Limits) -> Self {
        Link {
            chain,
            recording,
            limits,
            offset: 0,
        }
    }

    /// Returns the recording before the stage: all events known at this position, and the features
    /// and metadata records so far. In a file, everything is known before the first record.
    #[inline]
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Returns the limits on what the recording may request from its readers: also from a stage
    /// that decompresses its records or holds data of them in memory.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets the current record of the stage, for messages about records derived from it.
    #[inline]
    pub fn at(&mut self, offset: u64) {
        self.offset = offset;
    }

    #[inline]
    pub(super) fn expect_payload(&mut self, has_payload: bool) {
        self.chain.expect_payload(has_payload);
    }

    /// Forwards a record. Its payload is only forwarded with it.
    ///
    /// # Errors
    /// The errors of the next stages, or the output cannot be written.
    #[inline]
    pub fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        self.chain.record(record)
    }

    /// Encodes a new or changed record for the [recording](Self::recording), and forwards it.
    ///
    /// # Errors
    /// The record does not match the attribute of its event, or is too large; and as
    /// [`record`](Self::record).
    pub fn write(&mut self, record: &Record) -> Result<()> {
        self.write_for(record, &self.recording.events).map(|_| ())
    }

    /// Encodes a new or changed record for `events`, which are the events after a stage that
    /// changes attributes, and forwards it. Returns its size in bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_for(&mut self, record: &Record, events: &Events) -> Result<usize> {
        let bytes = record
            .encode_for(events, self.recording.endian)
            .map_err(|error| error.within(self.offset))?;
        self.record(&RawRecord::first(
            &bytes,
            self.recording.endian,
            self.offset,
        )?)?;
        Ok(bytes.len())
    }

    /// Forwards records, a part of a payload, or bytes that are not records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.chain.chunk(chunk)
    }

    /// Forwards several records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        self.chain.records(batch)
    }

    /// Forwards a part of the payload of the last record. Drops it if the last forwarded record has
    /// no payload.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        self.chain.payload(bytes)
    }

    /// Forwards bytes that are not records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn unreadable(&mut self, bytes: &[u8]) -> Result<()> {
        self.chain.unreadable(bytes)
    }
}
