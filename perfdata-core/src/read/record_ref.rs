//! A record together with its recording.

use std::ops::Deref;

use crate::error::Result;
use crate::record::{RawRecord, Record, RecordType, SampleView};
use crate::recording::{Event, Recording};

/// A record of a recording: its bytes, and the model that determines their layout. It can be used
/// wherever a [`RawRecord`] can.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    raw: RawRecord<'a>,
    recording: &'a Recording,
}

impl<'a> RecordRef<'a> {
    /// Combines `raw` with `recording`, to which it belongs.
    #[inline]
    pub fn new(raw: RawRecord<'a>, recording: &'a Recording) -> Self {
        RecordRef { raw, recording }
    }

    /// Returns the record alone.
    #[inline]
    pub fn raw(&self) -> RawRecord<'a> {
        self.raw
    }

    /// Returns the model, as far as the recording has been read.
    #[inline]
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Returns the event that the record belongs to; `None` for perf's own records and for unknown
    /// event IDs.
    pub fn event(&self) -> Option<&'a Event> {
        let events = &self.recording.events;
        if self.raw.kind.is_kernel() {
            events.get(events.of_record(&self.raw)?)
        } else {
            None
        }
    }

    /// Returns the time in nanoseconds on the recording's clock; `None` if the record has no time.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.recording.events.time(&self.raw)
    }

    /// Returns a view of the most used parts of a SAMPLE, read in place; `None` for other records
    /// and for unknown events.
    #[inline]
    pub fn sample_view(&self) -> Option<SampleView<'a>> {
        if self.raw.kind == RecordType::SAMPLE {
            self.recording.events.sample_view(&self.raw)
        } else {
            None
        }
    }

    /// Decodes all fields of the record.
    ///
    /// # Errors
    /// Fails if the body is too short for its fields, or a count exceeds it.
    pub fn decode(&self) -> Result<Record> {
        Record::decode(&self.raw, &self.recording.events.layout_of(&self.raw))
    }
}

impl<'a> Deref for RecordRef<'a> {
    type Target = RawRecord<'a>;
    fn deref(&self) -> &RawRecord<'a> {
        &self.raw
    }
}
