//! The interface of a stage, which is one step of a conversion, and its requirements.

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{BatchPart, Chunk, RecordBatch};
use perfdata_core::record::{RawRecord, RecordType};

use super::link::{CompressedRecords, Link};
use super::watched::SharedWatch;
use crate::error::Result;
use crate::io::{Gaps, Input, InputSource, RecordFilter};

/// The requirements and guarantees of a stage. The default is safe for every stage. A stage with
/// fewer requirements is faster, or supports more inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirements {
    /// All events are known before the first record. If the attributes of a stream come later, it
    /// must be read twice, which standard input does not support. Default: true.
    pub events_first: bool,
    /// A single instance of the stage must process all records: it cannot run separately for each
    /// file of a directory. Default: true.
    pub all_records: bool,
    /// The stage may refuse a record in the middle of the stream. In this case, a pipe is completed
    /// in a temporary file before its first byte is written to the output. Default: true.
    pub may_refuse: bool,
    /// The stage forwards every sample with its time. If not, the pipeline updates SAMPLE_TIME.
    /// Default: false.
    pub keeps_samples: bool,
    /// The stage changes nothing: the output is the same without it. May depend on
    /// [`look_ahead`](Stage::look_ahead). Default: false.
    pub is_neutral: bool,
    /// The stage changes metadata of the output's container, so it comes after the change of
    /// container. Default: false.
    pub after_container: bool,
    /// The condition under which the stage reads the whole input before the first record. Default:
    /// never.
    pub reads_ahead: ReadsAhead,
    /// The type of the compressed records, if the stage receives their content as
    /// [`Plain`](CompressedRecords::Plain) records and forwards it later. The pipeline then
    /// compresses the records of the output. May depend on [`look_ahead`](Stage::look_ahead).
    /// Default: `None`.
    pub compresses_again: Option<RecordType>,
    /// The number at the end of a pipe's features that the reader of the output expects. Default:
    /// the newest one.
    pub end_of_features: Option<FeatureId>,
}

/// The condition under which [`Stage::look_ahead`] is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ReadsAhead {
    /// Never.
    #[default]
    Never,
    /// If the input can be read twice. Other inputs are not stored for this purpose.
    IfSeekable,
    /// If the output is a pipe, whose metadata precede the records.
    IntoPipe,
    /// Always.
    Always,
    /// Always, and what the stage finds applies to the records of the input by their numbers: it
    /// must be the first stage.
    ByNumber,
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
            compresses_again: None,
            end_of_features: None,
        }
    }
}

impl Requirements {
    /// Returns the requirements of a stage that needs nothing and forwards every sample.
    pub fn none() -> Self {
        Requirements {
            events_first: false,
            all_records: false,
            may_refuse: false,
            keeps_samples: true,
            ..Requirements::default()
        }
    }

    /// Returns whether the input must be read twice for an output `to`.
    pub(super) fn needs_seekable_for(&self, to: ContainerKind) -> bool {
        self.reads_ahead != ReadsAhead::IfSeekable && self.reads_ahead_for(to)
    }

    /// Returns whether it must be the first stage.
    pub(super) fn comes_first(&self) -> bool {
        self.reads_ahead == ReadsAhead::ByNumber
    }

    /// Returns whether the stage reads the input ahead for an output `to`.
    pub(super) fn reads_ahead_for(&self, to: ContainerKind) -> bool {
        match self.reads_ahead {
            ReadsAhead::Never => false,
            ReadsAhead::IfSeekable => true,
            ReadsAhead::IntoPipe => to == ContainerKind::Pipe,
            ReadsAhead::Always | ReadsAhead::ByNumber => true,
        }
    }
}

/// One step of a conversion. Forwards unchanged records.
///
/// In [`record`](Self::record) and the other methods with a [`Link`], [`Link::recording`] is the
/// recording at this position of the pipeline: its events, and the features and metadata records so
/// far.
pub trait Stage: Send {
    /// Returns the requirements of the stage. This method is called more than once. The result may
    /// only depend on the arguments of [`begin`](Self::begin) if the description of a field permits
    /// this.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// Returns how the stage handles compressed records of type `kind`. By default, it receives the
    /// decompressed records, and its forwarded records are compressed again in the same way.
    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        CompressedRecords::Opened(kind)
    }

    /// Reads the whole input ahead, if the stage requires data from it. [`InputSource::reopen`]
    /// returns no reader if the input cannot be read twice. `recording` contains everything known
    /// before the records.
    ///
    /// # Errors
    /// The input cannot be read.
    fn look_ahead(&mut self, _source: &InputSource, _recording: &Recording) -> Result<()> {
        Ok(())
    }

    /// Returns what the stage selects of the input, known since [`look_ahead`](Self::look_ahead).
    /// By default, everything.
    fn selection(&self) -> Selection<'_> {
        Selection::default()
    }

    /// Receives the model before the first record, and the layout of the input. The stage may
    /// change both. If it [needs events first](Requirements::events_first), all of them are in the
    /// model.
    ///
    /// # Errors
    /// The recording cannot be converted.
    fn begin(
        &mut self,
        _recording: &mut Recording,
        _container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns whether the stage processes records of this type. Other records bypass it in
    /// batches.
    fn wants(&self, _kind: RecordType) -> bool {
        true
    }

    /// Processes several records, a part of the payload of the last record, or bytes at the end of
    /// the stream that are not records, and forwards the results to `next`. Passes records of wanted
    /// types to [`record`](Self::record). A payload only reaches the next stages if the record did.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => each_part(self, batch, next),
            Chunk::Payload(_) | Chunk::Unreadable(_) => next.chunk(chunk),
        }
    }

    /// Processes a record, and forwards the result to `next`. The payload after a record is only
    /// forwarded if the record was: the stage need not remember whether it dropped the record.
    ///
    /// # Errors
    /// The record cannot be converted, or the output cannot be written.
    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        next.record(record)
    }

    /// Ends the stage. It may add records, and change the model for the metadata that a file has
    /// after them.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn finish(&mut self, _recording: &mut Recording, _next: &mut Link<'_>) -> Result<()> {
        Ok(())
    }

    /// Returns the check of the complete output, if the stage checks it before it appears. Then the
    /// output contains nothing of the input except what the stage forwards: its container is
    /// arranged as `perf record` does, without the gaps and the padding of the input, and nothing
    /// beside a recording is copied. In a conversion to a directory, one instance of the stage
    /// processes all files. By default, there is no check.
    fn output_check(&mut self) -> Option<&mut dyn OutputCheck> {
        None
    }

    /// Returns notes for the user about the output.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a stage selects of the input.
#[derive(Default)]
pub struct Selection<'a> {
    /// A filter of the records that the stage forwards, if it drops records: later stages that read
    /// ahead do not see the others.
    pub filter: Option<RecordFilter>,
    /// The records of the input that the stage drops without receiving them, if there are any. Only
    /// the first stage has gaps.
    pub gaps: Option<&'a Gaps>,
}

/// The check of an output by the stage that makes its content.
pub trait OutputCheck {
    /// Receives the model when all records have passed, before the first stage ends: what is
    /// different in [`Stage::finish`] was added by the stages before this one.
    fn before_finish(&mut self, recording: &Recording);

    /// Returns what sees the bytes of an output file as they are written. `recording` is that of the
    /// output, before its first record.
    fn watch(&mut self, recording: &Recording) -> Option<SharedWatch>;

    /// Checks the complete output before it appears; for a directory after `data` and after all
    /// files, which the same stage has then processed, one after the other.
    ///
    /// # Errors
    /// The output must not appear.
    fn check(&mut self, output: Input) -> Result<()>;
}

/// Passes the wanted records of a batch to `stage` one at a time, and forwards the others: what
/// [`Stage::chunk`] does by default.
///
/// # Errors
/// As [`Stage::record`].
pub fn each_part(
    stage: &mut (impl Stage + ?Sized),
    batch: &RecordBatch<'_>,
    next: &mut Link<'_>,
) -> Result<()> {
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
