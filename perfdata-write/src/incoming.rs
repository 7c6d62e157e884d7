//! Checks of the input of a writer: records in the recording's byte order, each followed by its
//! whole payload.

use perfdata_core::record::{RawRecord, Record};
use perfdata_core::{Endian, Events, Recording};

use crate::error::{Error, Result};

/// Checks the input of a writer.
#[derive(Debug)]
pub(crate) struct Incoming {
    endian: Endian,
    events: Events,
    /// Type of the last record with a payload, and number of missing bytes of this payload.
    missing: Option<(String, u64)>,
}

impl Incoming {
    pub(crate) fn new(recording: &Recording) -> Self {
        Incoming {
            endian: recording.endian,
            events: recording.events.clone(),
            missing: None,
        }
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// Encodes a record for the recording's events.
    pub(crate) fn encode(&self, record: &Record) -> Result<Vec<u8>> {
        Ok(record.encode_for(&self.events, self.endian)?)
    }

    #[inline]
    pub(crate) fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        self.order(record.endian)?;
        self.end()?;
        if record.kind.has_payload() {
            let size = record.payload_len()?;
            self.missing = (size > 0).then(|| (record.kind.to_string(), size));
        }
        Ok(())
    }

    /// Checks records without payloads.
    #[inline]
    pub(crate) fn records(&mut self, endian: Endian) -> Result<()> {
        self.order(endian)?;
        self.end()
    }

    #[inline]
    fn order(&self, found: Endian) -> Result<()> {
        if found == self.endian {
            Ok(())
        } else {
            Err(Error::ByteOrder {
                found,
                expected: self.endian,
            })
        }
    }

    pub(crate) fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        let len = bytes.len() as u64;
        let Some((_, missing)) = &mut self.missing else {
            return Err(Error::NoRecord { len });
        };
        *missing = missing.checked_sub(len).ok_or(Error::NoRecord {
            len: len.saturating_sub(*missing),
        })?;
        if *missing == 0 {
            self.missing = None;
        }
        Ok(())
    }

    /// Handles input that is truncated within a payload: the rest is not expected.
    pub(crate) fn cut(&mut self) {
        self.missing = None;
    }

    /// Returns an error if payload is missing before the next record or the end.
    #[inline]
    pub(crate) fn end(&self) -> Result<()> {
        match &self.missing {
            None => Ok(()),
            Some((kind, missing)) => Err(Error::NoPayload {
                kind: kind.clone(),
                missing: *missing,
            }),
        }
    }
}
