//! What a stage forwards to, and the recording at its place.

use perfdata_core::Recording;
use perfdata_core::read::RecordBatch;
use perfdata_core::record::{RawRecord, Record, RecordType};

use super::chain::Chain;
use crate::error::Result;

/// How a stage takes compressed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressedRecords {
    /// Opened: it sees the records in them, and what it hands on is compressed again as records of this type.
    Opened(RecordType),
    /// Opened, and what it hands on stays plain.
    Plain,
    /// As they are.
    AsTheyAre,
}

/// The rest of a conversion, as a stage sees it: the stages after it and the writer.
pub struct Link<'a> {
    chain: Chain<'a>,
    recording: &'a Recording,
    /// Offset of the record that the stage has.
    offset: u64,
}

impl<'a> Link<'a> {
    pub(super) fn new(chain: Chain<'a>, recording: &'a Recording) -> Self {
        Link { chain, recording, offset: 0 }
    }

    /// The recording at the place of the stage, in front of it: all events that are known here, and the features and
    /// metadata records so far. In a file everything is known before the first record.
    #[inline]
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Notes which record the stage has, for messages about those that it makes of it.
    #[inline]
    pub(super) fn at(&mut self, offset: u64) {
        self.offset = offset;
    }

    #[inline]
    pub(super) fn expect_payload(&mut self, has_payload: bool) {
        self.chain.expect_payload(has_payload);
    }

    /// Forwards a record. What follows it outside its size goes with it, and only with it.
    ///
    /// # Errors
    /// Those of the stages after this one, or the output cannot be written.
    #[inline]
    pub fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        self.chain.record(record)
    }

    /// Encodes a record, a new or a changed one, for the [recording](Self::recording), and forwards it.
    ///
    /// # Errors
    /// It does not match the attribute of its event, or does not fit into a record; and as [`record`](Self::record).
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let bytes = record.encode_for(&self.recording.events, self.recording.endian)?;
        self.record(&RawRecord::first(&bytes, self.recording.endian, self.offset)?)
    }

    /// Forwards several records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        self.chain.records(batch)
    }

    /// Forwards a part of what follows the last record outside its size. It goes nowhere if the last record that was
    /// forwarded has no such payload.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        self.chain.payload(bytes)
    }

    /// Forwards bytes that are no records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn unreadable(&mut self, bytes: &[u8]) -> Result<()> {
        self.chain.unreadable(bytes)
    }
}
