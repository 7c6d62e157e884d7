//! A record together with the recording that it belongs to.

use std::ops::Deref;

use crate::error::Result;
use crate::record::{RawRecord, Record, RecordType, SampleView};
use crate::recording::{Event, Recording};

/// A record of a recording: its bytes, and the model that says how they are laid out. It can be used wherever a
/// [`RawRecord`] can.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    raw: RawRecord<'a>,
    recording: &'a Recording,
}

impl<'a> RecordRef<'a> {
    /// `raw`, which is a record of `recording`.
    #[inline]
    pub fn new(raw: RawRecord<'a>, recording: &'a Recording) -> Self {
        RecordRef { raw, recording }
    }

    /// The record alone.
    #[inline]
    pub fn raw(&self) -> RawRecord<'a> {
        self.raw
    }

    /// The model, as far as the recording has been read.
    #[inline]
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// The event that the record belongs to; `None` for records of perf itself, and where the event ID is unknown.
    pub fn event(&self) -> Option<&'a Event> {
        let events = &self.recording.events;
        if self.raw.kind.is_kernel() { events.get(events.of_record(&self.raw)?) } else { None }
    }

    /// Nanoseconds on the recording's clock; `None` where the record has no time.
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.recording.events.time(&self.raw)
    }

    /// The most used parts of a SAMPLE, read where they stand; `None` for other records, and where the event is unknown.
    #[inline]
    pub fn sample_view(&self) -> Option<SampleView<'a>> {
        if self.raw.kind == RecordType::SAMPLE { self.recording.events.sample_view(&self.raw) } else { None }
    }

    /// The record with all its fields.
    ///
    /// # Errors
    /// A body that is too short for its fields, or counts beyond it.
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
