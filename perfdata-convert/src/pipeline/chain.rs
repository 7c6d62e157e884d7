//! The chain of stages: the next stage for a record, decompression between stages, and payloads.
//!
//! The chain handles two tasks for all stages, so that no stage can do them wrong:
//!
//! - A payload (AUX data, tracing data) is only forwarded if the stage forwarded its record.
//! - Compressed records are decompressed before a stage that requires this ([`Stage::compressed`]).
//!   The records of one compressed record pass all stages up to the next one that accepts
//!   compressed records. There, the remaining records are compressed again.

mod recompress;

use std::sync::Arc;

use perfdata_core::feature::{Compression, Feature, FeatureId};
use perfdata_core::read::{Chunk, Collector, Decompressor, Limits, RecordBatch, StreamItem};
use perfdata_core::record::{RawRecord, RecordType, TABLE};
use perfdata_core::{Endian, Recording};
use perfdata_write::{Compressor, RecordSink};

use super::link::{CompressedRecords, Link};
use super::stage::Stage;
use crate::count::number_of;
use crate::error::Result;
use crate::stages::decompress::check_end;
pub(crate) use recompress::compression;
use recompress::{Opened, Parameters, Recompress};

/// A stage at its position in the chain.
pub(super) struct Step {
    pub(super) stage: Box<dyn Stage>,
    /// Whether the last record that arrived here has a payload.
    has_payload: bool,
    /// The limits of the input.
    limits: Limits,
    /// The compression of the records that arrive here.
    compression: Parameters,
    /// The recording at this position.
    model: Arc<Recording>,
    /// Adds metadata records to the model. They are normal in a pipe, but perf inject also writes
    /// files that contain them.
    collector: Collector,
    /// Whether the last metadata record was HEADER_TRACING_DATA, whose payload also consists of
    /// metadata.
    expects_tracing_data: bool,
    /// The byte order of the forwarded records.
    endian: Endian,
    /// The compressed stream that is decompressed before this stage.
    opened: Option<Box<Opened>>,
    /// Bytes at the end of this stream that were dropped, because they do not form a complete
    /// record.
    left_out: usize,
}

impl Step {
    /// Receives the model before the stage; see [`began`](Self::began). Shares the model with the
    /// step `before` if they are equal. `limits` are those of the input.
    pub(super) fn new(
        stage: Box<dyn Stage>,
        recording: &Recording,
        limits: Limits,
        before: Option<&Step>,
    ) -> Self {
        let same = before.filter(|before| is_same(&before.model, recording));
        Step {
            stage,
            model: same.map_or_else(
                || Arc::new(recording.clone()),
                |before| before.model.clone(),
            ),
            collector: Collector::behind_head(limits),
            expects_tracing_data: false,
            has_payload: false,
            limits,
            compression: Parameters::of(recording, limits),
            endian: recording.endian,
            opened: None,
            left_out: 0,
        }
    }

    /// Receives the model after the stage, when it has begun.
    pub(super) fn began(&mut self, recording: &Recording) {
        self.endian = recording.endian;
    }

    /// Adds the content of a metadata record to the model.
    fn collect(&mut self, item: &StreamItem<'_>) -> Result<()> {
        match item {
            StreamItem::Record(record) => {
                self.expects_tracing_data = record.kind == RecordType::HEADER_TRACING_DATA
            }
            _ if !self.expects_tracing_data => return Ok(()),
            _ => {}
        }
        self.collector.item(Arc::make_mut(&mut self.model), item)?;
        Ok(())
    }

    /// Returns the recording before the stage, as far as it is known.
    pub(super) fn model(&self) -> &Recording {
        &self.model
    }

    /// Returns a note about the data that were decompressed here.
    pub(super) fn note(&self) -> Option<String> {
        let left_out = self.left_out;
        (left_out > 0).then(|| {
            format!(
                "the compressed data ends inside a record: dropped its first {}",
                number_of(left_out as u64, "byte")
            )
        })
    }

    /// Updates the ratio in the COMPRESSED feature, if it contains one.
    fn update_ratio(&self, recording: &mut Recording) -> Result<()> {
        let ratio = self
            .opened
            .as_ref()
            .and_then(|opened| opened.again.compressor.as_ref())
            .map_or(0, Compressor::ratio);
        match compression(recording) {
            // In `data` of a directory, nothing may have been compressed, while the other files
            // contain compressed data.
            Some(params) if params.ratio != 0 && ratio != 0 => {
                let params = Compression { ratio, ..params };
                Ok(recording.set_feature(FeatureId::COMPRESSED, Feature::Compressed(params))?)
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the stage accepts all compressed records.
    fn takes_compressed(&self) -> bool {
        let mut kinds = TABLE
            .iter()
            .map(|info| info.kind)
            .filter(|kind| kind.is_compressed());
        kinds.all(|kind| self.stage.compressed(kind) == CompressedRecords::AsTheyAre)
    }
}

/// Returns whether two models are equal.
fn is_same(one: &Recording, other: &Recording) -> bool {
    one.endian == other.endian
        && one.magic == other.magic
        && one.events[..] == other.events[..]
        && one.event_types == other.event_types
        && one.features == other.features
}

/// The end of a chain.
pub(super) trait Sink {
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()>;
    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()>;
}

/// The writer of the output.
pub(super) struct ChainEnd<S> {
    sink: S,
    has_payload: bool,
}

impl<S: Sink> ChainEnd<S> {
    pub(super) fn new(sink: S) -> Self {
        ChainEnd {
            sink,
            has_payload: false,
        }
    }

    /// Returns the end of the chain.
    pub(super) fn into_sink(self) -> S {
        self.sink
    }

    /// Returns the end of the chain.
    pub(super) fn sink(&self) -> &S {
        &self.sink
    }

    /// Returns the end of the chain.
    pub(super) fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Returns the chain of `steps` before the writer.
    pub(super) fn chain<'b>(&'b mut self, steps: &'b mut [Step]) -> Chain<'b> {
        Chain {
            steps,
            end: &mut self.sink,
            has_payload: &mut self.has_payload,
        }
    }

    /// Ends all `steps`, in order. Each may write more records, and change the model for the
    /// metadata that a file has after them.
    pub(super) fn finish(&mut self, steps: &mut [Step], recording: &mut Recording) -> Result<()> {
        for step in &mut *steps {
            if let Some(check) = step.stage.output_check() {
                check.before_finish(recording);
            }
        }
        for at in 0..steps.len() {
            self.chain(steps.get_mut(at..).unwrap_or_default())
                .close()?;
            if let Some((step, rest)) = steps.get_mut(at..).and_then(<[_]>::split_first_mut) {
                let mut next = Link::new(self.chain(rest), &step.model, step.limits);
                step.stage.finish(recording, &mut next)?;
                step.update_ratio(recording)?;
            }
        }
        Ok(())
    }
}

impl Sink for &mut dyn RecordSink {
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        Ok(RecordSink::record(*self, record)?)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        Ok(match chunk {
            Chunk::Records(batch) => self.records(batch),
            Chunk::Payload(bytes) => self.payload(bytes),
            Chunk::Unreadable(bytes) => self.unreadable(bytes),
        }?)
    }
}

/// The rest of a conversion: the stages, and the end.
pub(super) struct Chain<'a> {
    steps: &'a mut [Step],
    end: &'a mut dyn Sink,
    /// Whether the last record that arrived at the end has a payload.
    has_payload: &'a mut bool,
}

/// The first element of a chain.
enum First<'a> {
    /// A stage, and the rest of the chain.
    Stage(&'a mut dyn Stage, Link<'a>),
    End(&'a mut dyn Sink),
}

impl Chain<'_> {
    fn first(&mut self) -> First<'_> {
        match self.steps.split_first_mut() {
            Some((
                Step {
                    stage,
                    model,
                    limits,
                    ..
                },
                steps,
            )) => {
                let chain = Chain {
                    steps,
                    end: self.end,
                    has_payload: self.has_payload,
                };
                First::Stage(&mut **stage, Link::new(chain, model, *limits))
            }
            None => First::End(self.end),
        }
    }

    /// Adds the metadata in an item to the model before the first step.
    fn collect(&mut self, item: &StreamItem<'_>) -> Result<()> {
        self.steps
            .first_mut()
            .map_or(Ok(()), |step| step.collect(item))
    }

    /// Sets whether the record that arrives here has a payload.
    #[inline]
    pub(super) fn expect_payload(&mut self, has_payload: bool) {
        match self.steps.first_mut() {
            Some(step) => step.has_payload = has_payload,
            None => *self.has_payload = has_payload,
        }
    }

    /// Forwards a record. Its payload is only forwarded with it.
    #[inline]
    pub(super) fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        let has_payload = record.kind.has_payload();
        self.expect_payload(has_payload);
        if record.kind.is_metadata() {
            self.collect(&StreamItem::Record(*record))?;
        }
        match self.first() {
            First::End(end) => end.record(record),
            First::Stage(stage, mut next) => {
                if record.kind.is_compressed()
                    && stage.compressed(record.kind) != CompressedRecords::AsTheyAre
                {
                    return self.open(record);
                }
                if has_payload {
                    next.expect_payload(false);
                }
                next.at(record.offset);
                stage.record(record, &mut next)
            }
        }
    }

    /// Forwards several records.
    pub(super) fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        // Metadata records, records with a payload and compressed records are in a separate batch.
        let alone = batch.only();
        let has_payload = alone.is_some_and(|record| record.kind.has_payload());
        self.expect_payload(has_payload);
        if let Some(record) = alone.filter(|record| record.kind.is_metadata()) {
            self.collect(&StreamItem::Record(record))?;
        }
        let takes_compressed = self.steps.first().is_some_and(Step::takes_compressed);
        match (self.first(), alone) {
            (First::End(end), _) => end.chunk(&Chunk::Records(*batch)),
            (First::Stage(..), Some(record))
                if record.kind.is_compressed() && !takes_compressed =>
            {
                self.record(&record)
            }
            (First::Stage(stage, mut next), _) => {
                if has_payload {
                    next.expect_payload(false);
                }
                stage.chunk(&Chunk::Records(*batch), &mut next)
            }
        }
    }

    /// Forwards a part of a payload; drops it if the last forwarded record has none.
    pub(super) fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        if !self
            .steps
            .first()
            .map_or(*self.has_payload, |step| step.has_payload)
        {
            return Ok(());
        }
        self.collect(&StreamItem::Payload(bytes))?;
        self.give(&Chunk::Payload(bytes))
    }

    /// Forwards bytes that are not records.
    pub(super) fn unreadable(&mut self, bytes: &[u8]) -> Result<()> {
        self.close()?;
        self.give(&Chunk::Unreadable(bytes))
    }

    pub(super) fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => self.records(batch),
            Chunk::Payload(bytes) => self.payload(bytes),
            Chunk::Unreadable(bytes) => self.unreadable(bytes),
        }
    }

    /// Ends the compressed stream that is decompressed here. The bytes of an incomplete last record
    /// are not records.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some(mut opened) = self.steps.first_mut().and_then(|step| step.opened.take()) else {
            return Ok(());
        };
        if let Some(step) = self.steps.first() {
            check_end(&opened.decompressor, opened.last, &step.model)?;
        }
        let rest = opened.decompressor.take_pending();
        if !rest.is_empty() {
            let kind = opened.decompressor.kind();
            match self.recompressed_as(kind) {
                (Some(kind), len) => self.recompress(&mut opened, kind, len, |_, link| {
                    link.give(&Chunk::Unreadable(&rest))
                })?,
                (None, _) => {
                    if let Some(step) = self.steps.first_mut() {
                        step.left_out = rest.len();
                    }
                }
            }
        }
        if let Some(step) = self.steps.first_mut() {
            step.opened = Some(opened);
        }
        Ok(())
    }

    /// Passes bytes that are not records to the first stage.
    fn give(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        match self.first() {
            First::Stage(stage, mut next) => stage.chunk(chunk, &mut next),
            First::End(end) => end.chunk(chunk),
        }
    }

    /// Decompresses a record that the first stage does not accept in compressed form.
    fn open(&mut self, record: &RawRecord<'_>) -> Result<()> {
        let Some(step) = self.steps.first_mut() else {
            return Ok(());
        };
        let mut opened = match step.opened.take() {
            Some(opened) => opened,
            None => step.compression.open()?,
        };
        opened.last = record.offset;
        opened.decompressor.push(record)?;
        match self.recompressed_as(record.kind) {
            (Some(kind), len) => {
                self.recompress(&mut opened, kind, len, |decompressor, link| {
                    while let Some(record) = decompressor.next()? {
                        link.record(&record)?;
                    }
                    Ok(())
                })?
            }
            (None, _) => {
                while let Some(record) = opened.decompressor.next()? {
                    self.record(&record)?;
                }
            }
        }
        if let Some(step) = self.steps.first_mut() {
            step.opened = Some(opened);
        }
        Ok(())
    }

    /// Returns the type in which records of compressed records of type `kind` are compressed again
    /// after the next stages, and the number of these stages. Returns no type if they remain
    /// uncompressed.
    fn recompressed_as(&self, mut kind: RecordType) -> (Option<RecordType>, usize) {
        for (at, step) in self.steps.iter().enumerate() {
            match step.stage.compressed(kind) {
                CompressedRecords::Opened(other) => kind = other,
                CompressedRecords::Plain => return (None, self.steps.len()),
                CompressedRecords::AsTheyAre => return (Some(kind), at),
            }
        }
        (Some(kind), self.steps.len())
    }

    /// Calls `give` with the first `len` stages, and compresses the records that they forward.
    fn recompress(
        &mut self,
        opened: &mut Opened,
        kind: RecordType,
        len: usize,
        give: impl FnOnce(&mut Decompressor, &mut Chain<'_>) -> Result<()>,
    ) -> Result<()> {
        let (steps, rest) = self.steps.split_at_mut_checked(len).unwrap_or_default();
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return Ok(());
        };
        let compression = Parameters {
            endian: last.endian,
            ..first.compression
        };
        let next = Chain {
            steps: rest,
            end: self.end,
            has_payload: self.has_payload,
        };
        let Opened {
            decompressor,
            again,
            ..
        } = opened;
        let mut end = Recompress {
            again,
            compression,
            kind,
            next,
        };
        give(
            decompressor,
            &mut Chain {
                steps,
                end: &mut end,
                has_payload: &mut false,
            },
        )?;
        end.flush()
    }
}
