//! What a stage is: one step of a conversion, and what it asks of the pipeline.

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{BatchPart, RecordBatch};
use perfdata_core::record::{RawRecord, RecordType};

use super::link::{CompressedRecords, Link};
use crate::error::Result;
use crate::io::InputSource;

/// What a stage needs, and what it promises. The default is safe for every stage; a stage that needs less is faster, or
/// works on more inputs, when it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Requirements {
    /// All events are known before the first record. A stream whose attributes come late is read twice then, which
    /// standard input cannot be. Default: true.
    pub events_first: bool,
    /// All records pass this one stage: it cannot run once for each file of a directory. Default: true.
    pub all_records: bool,
    /// The stage may refuse a record in the middle of the stream. A pipe is completed in a temporary file then, before
    /// its first byte is written to the output. Default: true.
    pub may_refuse: bool,
    /// The stage forwards every sample with its time. If not, the pipeline updates SAMPLE_TIME. Default: false.
    pub keeps_samples: bool,
    /// The stage changes nothing: the output is the same without it. Default: false.
    pub is_neutral: bool,
    /// The stage changes metadata of the output's container, so it comes after the change of container. Default: false.
    pub after_container: bool,
    /// When the stage reads the whole input before the first record. Default: never.
    pub reads_ahead: ReadsAhead,
    /// The number at the end of a pipe's features that the reader of the output expects. Default: the newest one.
    pub end_of_features: Option<FeatureId>,
}

/// When [`Stage::look_ahead`] is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ReadsAhead {
    /// Not at all.
    #[default]
    Never,
    /// If the input can be read twice; what cannot is not stored for it.
    IfSeekable,
    /// If the output is a pipe, which has its metadata before the records.
    IntoPipe,
    /// Always.
    Always,
}

impl Default for Requirements {
    fn default() -> Self {
        Requirements {
            events_first: true,
            all_records: true,
            may_refuse: true,
            keeps_samples: false,
            is_neutral: false,
            after_container: false,
            reads_ahead: ReadsAhead::Never,
            end_of_features: None,
        }
    }
}

impl Requirements {
    /// Those of a stage that needs nothing and forwards every sample.
    pub fn none() -> Self {
        Requirements {
            events_first: false,
            all_records: false,
            may_refuse: false,
            keeps_samples: true,
            ..Requirements::default()
        }
    }

    /// Whether the input must be read twice for an output `to`.
    pub(super) fn needs_seekable_for(&self, to: ContainerKind) -> bool {
        self.reads_ahead != ReadsAhead::IfSeekable && self.reads_ahead_for(to)
    }

    /// Whether the stage reads the input ahead for an output `to`.
    pub(super) fn reads_ahead_for(&self, to: ContainerKind) -> bool {
        match self.reads_ahead {
            ReadsAhead::Never => false,
            ReadsAhead::IfSeekable => true,
            ReadsAhead::IntoPipe => to == ContainerKind::Pipe,
            ReadsAhead::Always => true,
        }
    }
}

/// One step of a conversion. It forwards what it does not change.
///
/// In [`record`](Self::record) and the other methods that get a [`Link`], [`Link::recording`] is the recording at this
/// place of the pipeline: its events, and the features and metadata records so far.
pub trait Stage {
    /// What the stage needs. Asked more than once; the answer may depend on what [`begin`](Self::begin) saw only where
    /// a field says so.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// How the stage takes compressed records of type `kind`. By default it gets the records in them, and what it
    /// forwards is compressed again in the same way.
    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        CompressedRecords::Opened(kind)
    }

    /// Reads the whole input ahead, for what the stage must know. [`InputSource::reopen`] gives no reader where the input
    /// cannot be read twice. `recording` is what is known before the records.
    ///
    /// # Errors
    /// The input cannot be read.
    fn look_ahead(&mut self, _source: &InputSource, _recording: &Recording) -> Result<()> {
        Ok(())
    }

    /// Sees, and may change, the model before the first record, and where everything is in the input. A stage that
    /// [needs events first](Requirements::events_first) finds all of them here.
    ///
    /// # Errors
    /// The recording cannot be converted.
    fn begin(&mut self, _recording: &mut Recording, _container_layout: &mut ContainerLayout) -> Result<()> {
        Ok(())
    }

    /// Whether the stage looks at records of this type: others pass it by, many at once.
    fn wants(&self, _kind: RecordType) -> bool {
        true
    }

    /// Takes several records, and gives `next` what becomes of them: those that are wanted go to
    /// [`record`](Self::record).
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn records(&mut self, batch: &RecordBatch<'_>, next: &mut Link<'_>) -> Result<()> {
        each_part(self, batch, next)
    }

    /// Takes a record, and gives `next` what becomes of it. What follows the record outside its size goes the way of
    /// the record: nobody needs to remember that it was left out.
    ///
    /// # Errors
    /// The record cannot be converted, or the output not be written.
    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        next.record(record)
    }

    /// Takes a part of what follows the last record outside its size. What is handed on goes to the stages behind if the
    /// record did.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        next.payload(bytes)
    }

    /// Takes bytes at the end of the stream that are no records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn unreadable(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        next.unreadable(bytes)
    }

    /// Sees the end of the records; may add some, and change the model for what a file has behind them.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn finish(&mut self, _recording: &mut Recording, _next: &mut Link<'_>) -> Result<()> {
        Ok(())
    }

    /// What the user should know of the output that no error tells.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Gives `stage` the records of a batch that it wants one at a time, and hands on the others.
pub(super) fn each_part(stage: &mut (impl Stage + ?Sized), batch: &RecordBatch<'_>, next: &mut Link<'_>) -> Result<()> {
    let mut rest = *batch;
    while let Some(part) = rest.take_part(|kind| stage.wants(kind)) {
        match part {
            BatchPart::Wanted(record) => {
                next.at(record.offset);
                stage.record(&record, next)?;
            }
            BatchPart::Others(batch) => next.records(&batch)?,
        }
    }
    Ok(())
}
