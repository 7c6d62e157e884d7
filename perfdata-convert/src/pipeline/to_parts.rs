//! Conversion to several outputs: each part of a recording passes through its own stages to its own
//! file.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::SampleTime;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Limits, RecordBatch};
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_core::{Events, Recording};
use perfdata_write::{FileWriter, PipeWriter, RecordSink};

use super::chain::{Chain, ChainEnd, Sink, Step, compression};
use super::link::{CompressedRecords, Link};
use super::stage::{Requirements, Stage};
use super::{
    Form, Opened, Summary, add_container, add_file_features, begin, checks, file_plan, look_ahead,
    pipe_plan, pump, shared_bytes,
};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::io::{Input, InputSource, RecordFilter};
use crate::stages::from_directory::FromDirectory;
use crate::stages::sample_times::UpdateTimes;
use crate::stages::standard_layout::StandardLayout;
use crate::stages::to_pipe;
use crate::support::os::private;

/// The number of a part.
pub type PartNumber = u16;

/// How a recording is divided.
pub trait Division: Send + Sync {
    /// Returns a filter of the records of a part.
    fn filter(self: Arc<Self>, part: PartNumber) -> RecordFilter;

    /// Returns the times of all samples of the recording; `None` if there are none.
    fn times(&self) -> Option<SampleTime>;

    /// Removes what only other parts need from the metadata of a part.
    ///
    /// # Errors
    /// A changed section is too large.
    fn reduce(&self, part: PartNumber, recording: &mut Recording) -> Result<()>;

    /// Returns what passes the records to the parts. May read `source`.
    ///
    /// # Errors
    /// The input cannot be read.
    fn router(
        self: Arc<Self>,
        source: &InputSource,
        recording: &Recording,
    ) -> Result<Box<dyn Router>>;
}

/// Passes the records of a recording to its parts. Receives all records, without compression.
pub trait Router {
    /// Passes a record to the parts that contain it.
    ///
    /// # Errors
    /// The record cannot be divided, or an output cannot be written.
    fn record(&mut self, record: &RawRecord<'_>, outlets: &mut dyn Outlets) -> Result<()>;

    /// Passes several records.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn records(&mut self, batch: &RecordBatch<'_>, outlets: &mut dyn Outlets) -> Result<()>;

    /// Passes a part of the payload of the last record.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    fn payload(&mut self, bytes: &[u8], outlets: &mut dyn Outlets) -> Result<()>;

    /// Returns a note for the user.
    fn note(&self) -> Option<String>;
}

/// The destinations of the parts of a recording.
pub trait Outlets {
    /// Returns the parts that are written.
    fn parts(&self) -> Range<PartNumber>;

    /// Returns the recording before it is divided, as far as it is known.
    fn recording(&self) -> &Recording;

    /// Returns the limits of the reader.
    fn limits(&self) -> Limits;

    /// Sets the offset of the current record, for messages about records derived from it.
    fn at(&mut self, offset: u64);

    /// Forwards several records to a part.
    ///
    /// # Errors
    /// The errors of the stages of the part, or its output cannot be written.
    fn records(&mut self, part: PartNumber, batch: &RecordBatch<'_>) -> Result<()>;

    /// Forwards a record to a part.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn record(&mut self, part: PartNumber, record: &RawRecord<'_>) -> Result<()>;

    /// Encodes a changed record, and forwards it to a part.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn write(&mut self, part: PartNumber, record: &Record) -> Result<()>;

    /// Forwards a piece of the payload of the last record to a part.
    ///
    /// # Errors
    /// As [`records`](Self::records).
    fn payload(&mut self, part: PartNumber, bytes: &[u8]) -> Result<()>;
}

/// What every part becomes.
pub struct PartConversion<'a> {
    /// How the recording is divided.
    pub division: Arc<dyn Division>,
    /// Returns the stages of a part.
    pub stages: &'a dyn Fn() -> Result<Vec<Box<dyn Stage>>>,
    /// The container of a part.
    pub to: ContainerKind,
}

/// A part that was written.
#[derive(Debug)]
pub struct WrittenPart {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Notes of its stages.
    pub notes: Vec<String>,
}

impl PartConversion<'_> {
    /// Converts the parts with these numbers in one pass over `input`, each to the file that
    /// `path_of` names. The files must not exist.
    ///
    /// # Errors
    /// The input cannot be read or converted, or an output cannot be written.
    pub fn run(
        &self,
        input: Input,
        numbers: Range<PartNumber>,
        path_of: impl Fn(PartNumber) -> PathBuf,
    ) -> Result<(Summary, Vec<WrittenPart>)> {
        let Opened {
            mut reader,
            source,
            mut recording,
            has_late_events,
            ..
        } = Opened::new(input, true)?;
        let limits = source.limits();
        shared_bytes::check_parts(reader.container_layout())?;
        let mut container_layout = reader.container_layout().clone();
        let compressed = first_compressed(&source, &recording).map_err(Error::of_records)?;
        let router = self
            .division
            .clone()
            .router(&source, &recording)
            .map_err(Error::of_records)?;
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        if let Some(directory) = source.directory() {
            stages.push(Box::new(FromDirectory::new(directory)));
        }
        let standard = StandardLayout::of(&source, reader.container_layout(), &recording)?;
        stages.push(Box::new(standard));
        stages.push(Box::new(Open));
        let mut steps = begin(stages, &mut recording, &mut container_layout, limits, &[])?;
        let mut list: Vec<Output<'_>> = Vec::new();
        for number in numbers.clone() {
            let others = list.first().map_or(&[][..], |first| &first.begun.steps);
            let part = PartOf {
                division: self.division.clone(),
                number,
                compressed,
            };
            let mut begun = self.begin(part, &source, &recording, &container_layout, others)?;
            if has_late_events {
                begun.recording.events = Events::default();
            }
            list.push(Output::create(begun, &source, path_of(number), self.to)?);
        }
        if has_late_events {
            recording.events = Events::default();
        }
        let mut divider = Divider {
            router,
            outputs: Outputs {
                numbers,
                list,
                limits,
                head: recording.clone(),
                offset: 0,
            },
        };
        let mut summary = pump(
            &mut reader,
            &mut steps,
            &mut recording,
            &mut divider,
            self.to,
        )?;
        summary.notes.extend(divider.router.note());
        let mut written = Vec::new();
        for output in divider.outputs.list {
            let (part, recording) = output.finish(reader.recording(), &source)?;
            summary.to.endian = recording.endian;
            summary.features = summary.features.max(recording.features.len());
            summary.bytes_out = summary.bytes_out.saturating_add(part.bytes);
            written.push(part);
        }
        Ok((summary, written))
    }

    /// Passes the model to the stages of a part.
    fn begin(
        &self,
        part: PartOf,
        source: &InputSource,
        recording: &Recording,
        container_layout: &ContainerLayout,
        others: &[Step],
    ) -> Result<Begun> {
        let from = Form::of(recording, container_layout).container;
        let filtered = source.filtered(part.division.clone().filter(part.number));
        let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(part)];
        stages.extend((self.stages)()?);
        if stages.iter_mut().any(|stage| checks(&mut **stage)) {
            let what = "the parts of a recording would have nothing in common: sanitize it first, and then split it";
            return Err(Error::Refused(what.into()));
        }
        look_ahead(&mut stages, &filtered, recording, self.to).map_err(Error::of_records)?;
        UpdateTimes::behind(self.division.times(), &mut stages, from, self.to);
        add_container(&mut stages, from, self.to, None, source.limits());
        if self.to == ContainerKind::File {
            add_file_features(&mut stages, recording, from);
        }
        let mut recording = recording.clone();
        let mut layout = container_layout.clone();
        let limits = source.limits();
        let steps = begin(stages, &mut recording, &mut layout, limits, others)?;
        Ok(Begun {
            steps,
            recording,
            layout,
        })
    }
}

/// The stages of a part, which received the model.
struct Begun {
    steps: Vec<Step>,
    recording: Recording,
    layout: ContainerLayout,
}

/// Returns the type of the first compressed record; `None` if there is none.
fn first_compressed(source: &InputSource, recording: &Recording) -> Result<Option<RecordType>> {
    if compression(recording).is_none() {
        return Ok(None);
    }
    let Some(mut reader) = source.reopen()? else {
        return Ok(None);
    };
    while let Some((chunk, _)) = reader.next_chunk()? {
        if let Chunk::Records(batch) = chunk
            && let Some(record) = batch.iter().find(|record| record.kind.is_compressed())
        {
            return Ok(Some(record.kind));
        }
    }
    Ok(None)
}

/// Decompresses the records of the input, once for all parts.
struct Open;

impl Stage for Open {
    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::Plain
    }

    fn wants(&self, _: RecordType) -> bool {
        false
    }
}

/// The first stage of a part: removes what only the other parts need from the model.
struct PartOf {
    division: Arc<dyn Division>,
    number: PartNumber,
    /// The type of the records that are compressed in the input.
    compressed: Option<RecordType>,
}

impl Stage for PartOf {
    fn requirements(&self) -> Requirements {
        Requirements {
            keeps_samples: false,
            compresses_again: self.compressed,
            ..Requirements::none()
        }
    }

    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        self.division.reduce(self.number, recording)
    }

    fn wants(&self, _: RecordType) -> bool {
        false
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        self.division.reduce(self.number, recording)
    }
}

/// The file of a part.
enum PartWriter<'a> {
    File(Box<FileWriter<'a, File>>),
    Pipe(PipeWriter<File>),
}

impl PartWriter<'_> {
    fn sink(&mut self) -> &mut dyn RecordSink {
        match self {
            PartWriter::File(writer) => &mut **writer,
            PartWriter::Pipe(writer) => writer,
        }
    }
}

impl Sink for PartWriter<'_> {
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        Ok(self.sink().record(record)?)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.sink().chunk(chunk)
    }
}

/// The stages and the file of a part.
struct Output<'a> {
    begun: Begun,
    writer: ChainEnd<PartWriter<'a>>,
    path: PathBuf,
}

impl<'a> Output<'a> {
    /// Creates the file of a part.
    fn create(
        mut begun: Begun,
        source: &'a InputSource,
        path: PathBuf,
        to: ContainerKind,
    ) -> Result<Self> {
        let Begun {
            steps,
            recording,
            layout,
        } = &mut begun;
        if let ContainerLayout::File(found) = layout {
            shared_bytes::check_lost(found, recording, source)?;
        }
        let mut options = File::options();
        private(options.read(true).write(true).create_new(true));
        let file = interrupt::open(&options, &path).map_err(Error::io(&path))?;
        let writer = match to {
            ContainerKind::File => {
                let plan = file_plan(layout, recording);
                let writer = FileWriter::begin(file, plan, recording, source)?;
                PartWriter::File(Box::new(writer))
            }
            ContainerKind::Pipe => {
                let plan = pipe_plan(layout, recording, steps);
                let writer = PipeWriter::begin(file, plan, recording);
                PartWriter::Pipe(writer.map_err(to_pipe::with_way_out)?)
            }
        };
        Ok(Output {
            begun,
            writer: ChainEnd::new(writer),
            path,
        })
    }

    fn chain(&mut self) -> Chain<'_> {
        self.writer.chain(&mut self.begun.steps)
    }

    /// Completes the file. `before` is the recording of the input.
    fn finish(self, before: &Recording, source: &InputSource) -> Result<(WrittenPart, Recording)> {
        let Output {
            begun,
            mut writer,
            path,
        } = self;
        let Begun {
            mut steps,
            mut recording,
            layout,
        } = begun;
        let finished = writer.finish(&mut steps, &mut recording);
        finished.map_err(Error::of_records)?;
        let file = match writer.into_sink() {
            PartWriter::File(writer) => {
                let file = writer.finish(&recording)?;
                if let ContainerLayout::File(found) = &layout {
                    shared_bytes::check_kept(found, &recording, before, source, &file)?;
                }
                file
            }
            PartWriter::Pipe(writer) => writer.finish()?,
        };
        let notes = steps
            .iter()
            .flat_map(|step| step.note().into_iter().chain(step.stage.notes()));
        let written = WrittenPart {
            bytes: file.metadata().map_err(Error::io(&path))?.len(),
            notes: notes.collect(),
        };
        Ok((written, recording))
    }
}

/// The parts that are written.
struct Outputs<'a> {
    numbers: Range<PartNumber>,
    list: Vec<Output<'a>>,
    limits: Limits,
    /// The model before the first record.
    head: Recording,
    /// Offset of the current record.
    offset: u64,
}

impl Outputs<'_> {
    /// Passes something to the stages of a part.
    fn give(
        &mut self,
        part: PartNumber,
        give: impl FnOnce(&mut Chain<'_>) -> Result<()>,
    ) -> Result<()> {
        let at = part.checked_sub(self.numbers.start).map(usize::from);
        match at.and_then(|at| self.list.get_mut(at)) {
            Some(output) => give(&mut output.chain()),
            None => Ok(()),
        }
    }
}

impl Outlets for Outputs<'_> {
    fn parts(&self) -> Range<PartNumber> {
        self.numbers.clone()
    }

    fn recording(&self) -> &Recording {
        // All parts receive all metadata.
        let first = self
            .list
            .first()
            .and_then(|output| output.begun.steps.first());
        first.map_or(&self.head, Step::model)
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn at(&mut self, offset: u64) {
        self.offset = offset;
    }

    fn records(&mut self, part: PartNumber, batch: &RecordBatch<'_>) -> Result<()> {
        self.give(part, |chain| chain.records(batch))
    }

    fn record(&mut self, part: PartNumber, record: &RawRecord<'_>) -> Result<()> {
        self.give(part, |chain| chain.record(record))
    }

    fn write(&mut self, part: PartNumber, record: &Record) -> Result<()> {
        let recording = self.recording();
        let bytes = record
            .encode_for(&recording.events, recording.endian)
            .map_err(|error| error.within(self.offset))?;
        let raw = RawRecord::first(&bytes, recording.endian, self.offset)?;
        self.give(part, |chain| chain.record(&raw))
    }

    fn payload(&mut self, part: PartNumber, bytes: &[u8]) -> Result<()> {
        self.give(part, |chain| chain.payload(bytes))
    }
}

/// The end of the stages before the parts.
struct Divider<'a> {
    router: Box<dyn Router>,
    outputs: Outputs<'a>,
}

impl Sink for &mut Divider<'_> {
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        self.router.record(record, &mut self.outputs)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => self.router.records(batch, &mut self.outputs),
            Chunk::Payload(bytes) => self.router.payload(bytes, &mut self.outputs),
            // The bytes at the end of a truncated recording, which are no complete record, belong
            // to no part. The caller reports them.
            Chunk::Unreadable(_) => Ok(()),
        }
    }
}
