//! Conversions: a reader, any number of stages, a writer.
//!
//! Every command that converts a recording to another one is a [`Conversion`]: a selection of
//! stages, and the container to write. `pump.rs` contains the only loop over the records.

mod chain;
mod chunk_queue;
mod converted;
mod link;
mod opened;
mod pump;
mod shared_bytes;
mod stage;
pub mod to_directory;
#[doc(hidden)]
pub mod to_parts;
mod watched;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::SampleTime;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;
use perfdata_core::record::RecordType;
use perfdata_core::{Endian, Events, Recording};
use perfdata_write::{FilePlan, FileWriter, PipePlan, PipeWriter, RecordSink};

use crate::count::Counts;
use crate::error::{Error, Result};
use crate::io::{BackgroundWriter, BoxedSource, Input, InputSource, Output, Size};
use crate::leftover::Leftover;
use crate::stages::compress::Compress;
use crate::stages::file_features::FileFeatures;
use crate::stages::sample_times::UpdateTimes;
use crate::stages::standard_layout::StandardLayout;
use crate::stages::{from_directory, to_file, to_pipe};
use crate::support::counted::CountedWriter;
use crate::support::files::{temporary_file, temporary_file_failed};
use crate::support::os;
use crate::support::stopwatch::Stopwatch;
use chain::Step;
pub(crate) use chain::compression;
pub use converted::{Converted, Ending};
pub use link::Link;
use opened::{Opened, Ready, check_ahead, look_ahead};
use pump::pump;

pub use stage::{OutputCheck, ReadsAhead, Requirements, Selection, Stage, each_part};
use watched::Watched;

// What only the other crates of this workspace use: it may change in any release.
#[doc(hidden)]
pub use {
    link::CompressedRecords,
    opened::opened,
    watched::{SharedWatch, WatchOutput},
};

/// The container and byte order of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Form {
    /// The container.
    pub container: ContainerKind,
    /// The byte order.
    pub endian: Endian,
}

impl Form {
    fn of(recording: &Recording, container_layout: &ContainerLayout) -> Self {
        Form {
            container: container_layout.container(),
            endian: recording.endian,
        }
    }
}

/// The results of a conversion.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// Container and byte order of the input.
    pub from: Form,
    /// Container and byte order of the output.
    pub to: Form,
    /// The records of the input; records inside of compressed records only if these had to be read.
    pub counts: Counts,
    /// Number of feature sections of the output.
    pub features: usize,
    /// Size of the input in bytes.
    pub bytes_in: u64,
    /// Size of the output in bytes.
    pub bytes_out: u64,
    /// The elapsed time.
    pub elapsed: Duration,
    /// Whether the output's header, like the input's, does not contain the size of the records.
    pub unfinished: bool,
    /// The bytes at the end of the input that are not a complete record.
    pub unreadable: Option<Leftover>,
    /// Notes of the stages.
    pub notes: Vec<String>,
}

impl Summary {
    /// Returns the summary of a conversion to a temporary file and of this one, which continued it.
    #[must_use]
    pub fn after(self, first: Summary) -> Summary {
        Summary {
            from: first.from,
            counts: first.counts,
            bytes_in: first.bytes_in,
            elapsed: first.elapsed.saturating_add(self.elapsed),
            notes: first.notes.into_iter().chain(self.notes).collect(),
            ..self
        }
    }
}

/// A selection of stages and container.
#[non_exhaustive]
pub struct Conversion {
    /// Steps between reader and writer, in order.
    pub stages: Vec<Box<dyn Stage>>,
    /// Container of the output; by default that of the input.
    pub to: Option<ContainerKind>,
    /// The limits of the input.
    limits: Limits,
}

impl Conversion {
    /// Returns a conversion that keeps the container of the input.
    pub fn new(stages: Vec<Box<dyn Stage>>) -> Self {
        Conversion {
            stages,
            to: None,
            limits: Limits::default(),
        }
    }

    /// Returns the conversion with another container; with that of the input if `to` is `None`.
    #[must_use]
    pub fn to(self, to: impl Into<Option<ContainerKind>>) -> Self {
        Conversion {
            to: to.into(),
            ..self
        }
    }

    /// Converts `input` to `output`.
    ///
    /// # Errors
    /// The input cannot be read or converted, or the output cannot be written. In these cases,
    /// there is no output.
    pub fn run(self, input: &Path, output: Output) -> Result<Summary> {
        self.run_on(Input::open(input)?, output)
    }

    /// Converts an open input to `output`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_on(mut self, input: Input, output: Output) -> Result<Summary> {
        self.convert(input, output)
    }

    /// Converts an open input to a temporary file, for another conversion. Returns it as an input.
    ///
    /// # Errors
    /// As [`run`](Self::run); or the recording ends inside a record.
    pub fn run_apart(self, input: Input) -> Result<(Input, Summary)> {
        let written = input.written();
        let file = Arc::new(temporary_file()?);
        let output = os::duplicate(&file).map_err(temporary_file_failed())?;
        let summary = self.run_on(input, Output::to_writer(output))?;
        if let Some(leftover) = &summary.unreadable {
            return Err(leftover.error());
        }
        Ok((Input::converted(written, file), summary))
    }

    /// Converts an open input. Afterwards, the conversion has the stages of the pipeline.
    fn convert(&mut self, input: Input, output: Output) -> Result<Summary> {
        let start = Stopwatch::start();
        let output = output.dated(input.modified());
        let (ready, size) = self.prepare(input)?;
        let (to, skipped) = (ready.to, ready.skipped);
        // Bytes that were written to a stream cannot be removed again.
        if to == ContainerKind::Pipe
            && output.is_direct()
            && !self.is_copy(ready.reader.container_layout(), to)
        {
            check_ahead(&ready.source).map_err(Error::of_records)?;
        }
        let mut summary = match to {
            ContainerKind::File => output.write_seekable(|file| self.write_file(ready, file)),
            // A stage refuses a recording before anything is written, even if the output cannot be
            // removed again.
            ContainerKind::Pipe
                if self
                    .stages
                    .iter()
                    .any(|stage| stage.requirements().may_refuse) =>
            {
                output.write_seekable(|file| {
                    let summary = self.write_pipe(ready, file)?;
                    self.check_output(file)?;
                    Ok(summary)
                })
            }
            ContainerKind::Pipe => {
                output.write_stream(ready.writers(), |out| self.write_pipe(ready, out))
            }
        }?;
        summary.counts.add_records(skipped);
        (summary.bytes_in, summary.elapsed) = (size.bytes(), start.elapsed());
        Ok(summary)
    }

    /// Converts an open input to a file that is checked before it becomes an output. Does not count
    /// the bytes of the input and the time.
    ///
    /// # Errors
    /// As [`run`](Self::run). `file` may have a part of the output.
    pub fn run_into(mut self, input: Input, file: &mut File) -> Result<Summary> {
        let (ready, _) = self.prepare(input)?;
        let skipped = ready.skipped;
        let mut summary = match ready.to {
            ContainerKind::File => self.write_file(ready, file)?,
            ContainerKind::Pipe => {
                let written = BackgroundWriter::write_all(file, ready.writers(), |out| {
                    self.write_pipe(ready, out)
                });
                let summary = written?;
                self.check_output(file)?;
                summary
            }
        };
        summary.counts.add_records(skipped);
        Ok(summary)
    }

    /// Lets the stages check the complete output, before it appears.
    fn check_output(&mut self, output: &File) -> Result<()> {
        let mut stages = self.stages.iter_mut();
        let Some(check) = stages.find_map(|stage| stage.output_check()) else {
            return Ok(());
        };
        let file = Arc::new(os::duplicate(output).map_err(Error::io("output"))?);
        check.check(Input::from_source(file).limited_by(self.limits))
    }

    /// Takes the stages back from the pipeline, for [`check_output`](Self::check_output).
    fn done(&mut self, steps: Vec<Step>) {
        self.stages = steps.into_iter().map(|step| step.stage).collect();
    }

    /// Opens the input, and inserts all stages in the pipeline.
    fn prepare(&mut self, mut input: Input) -> Result<(Ready, Size)> {
        let mut later = self.stages.iter().skip(1);
        if later.any(|stage| stage.requirements().comes_first()) {
            let what = "a slice selects records of the input: it must be the first stage";
            return Err(Error::Usage(what.to_owned()));
        }
        let checking = self
            .stages
            .iter_mut()
            .filter_map(|stage| stage.output_check());
        if checking.count() > 1 {
            let what = "the output of a conversion can only be sanitized and checked by one stage: the first one \
                        does not know what the second one writes";
            return Err(Error::Usage(what.to_owned()));
        }
        // A stream is converted to a pipe by default.
        let expected = self.to.unwrap_or(ContainerKind::Pipe);
        if self
            .stages
            .iter()
            .any(|stage| stage.requirements().needs_seekable_for(expected))
        {
            input = input.into_seekable()?;
        }
        let mut stages = self.stages.iter();
        let events_first = stages.any(|stage| stage.requirements().events_first);
        let Opened {
            mut reader,
            source,
            size,
            recording,
            has_late_events,
        } = Opened::seekable_if(input, events_first, |opened| {
            !self.is_copy(opened.reader.container_layout(), expected)
                && StandardLayout::reads_ahead(&opened.recording)
        })?;
        self.limits = source.limits();
        if let Some(directory) = source.directory() {
            self.stages
                .insert(0, Box::new(from_directory::FromDirectory::new(directory)));
        }
        let found = Form::of(reader.recording(), reader.container_layout()).container;
        let to = self.to.unwrap_or(found);
        let is_copy = |conversion: &Self, reader: &BoxedSource| {
            conversion.is_copy(reader.container_layout(), to) && !source.is_merged()
        };
        let standard = match is_copy(self, &reader) {
            true => None,
            false => Some(StandardLayout::of(
                &source,
                reader.container_layout(),
                &recording,
            )?),
        };
        let mut standard_recording = recording.clone();
        if let Some(stage) = &standard {
            stage.add_tracing_data(&mut standard_recording);
        }
        look_ahead(&mut self.stages, &source, &standard_recording, to)
            .map_err(Error::of_records)?;
        let is_moved = self.are_neutral();
        let times = standard.as_ref().and_then(StandardLayout::times).cloned();
        let times = times.filter(|_| is_moved);
        let is_copy = is_copy(self, &reader);
        let mut skipped = 0;
        let gaps = self.stages.first().and_then(|stage| stage.selection().gaps);
        if let Some(gaps) = gaps {
            (skipped, reader) = (gaps.records(), source.without(reader, gaps));
            let times = gaps.times().cloned();
            UpdateTimes::behind(times, &mut self.stages, found, to);
        } else {
            UpdateTimes::around(&mut self.stages, found, to);
        }
        if let Some(standard) = standard.filter(|_| !is_copy) {
            // A slice selects records of the input, and the files of a directory come before it.
            let mut stages = self.stages.iter();
            let slice = stages.position(|stage| stage.requirements().comes_first());
            let at = slice.map_or(usize::from(source.directory().is_some()), |at| {
                at.saturating_add(1)
            });
            self.stages.insert(at, Box::new(standard));
        }
        add_container(&mut self.stages, found, to, times, self.limits);
        if to == ContainerKind::File && !is_copy {
            let is_other = source.is_damaged() || source.is_merged();
            let from = if is_other { ContainerKind::Pipe } else { found };
            add_file_features(&mut self.stages, &recording, from);
        }
        Ok((
            Ready {
                reader,
                source,
                to,
                recording,
                has_late_events,
                is_moved,
                skipped,
            },
            size,
        ))
    }

    fn write_file(&mut self, ready: Ready, file: &mut File) -> Result<Summary> {
        let is_copy = self.is_copy(ready.reader.container_layout(), ContainerKind::File);
        let writers = ready.writers();
        let Begun {
            mut reader,
            source,
            mut recording,
            container_layout,
            mut steps,
        } = self.begin(ready, ContainerKind::File)?;
        let source = &source;
        let is_new = checks_output(&mut steps);
        let plan = match &container_layout {
            ContainerLayout::File(found) if is_copy => FilePlan::exact(found),
            ContainerLayout::File(_) if is_new => FilePlan::standard(),
            layout => file_plan(layout, &recording),
        };
        if let ContainerLayout::File(found) = &container_layout
            && !is_copy
            && !is_new
        {
            shared_bytes::check_lost(found, &recording, source)?;
        }
        let mut watching = steps.iter_mut();
        let watch = watching.find_map(|step| step.stage.output_check()?.watch(&recording));
        let out = Watched::new(BackgroundWriter::new(file, writers), watch.clone());
        let out = out.map_err(Error::io("output"))?;
        let mut writer = FileWriter::begin(out, plan, &recording, source)?;
        watched::tell(watch.as_ref(), |watch| watch.records_from(writer.offset()));
        let mut summary = pump(
            &mut reader,
            &mut steps,
            &mut recording,
            &mut writer as &mut dyn RecordSink,
            ContainerKind::File,
        )?;
        watched::tell(watch.as_ref(), |watch| watch.records_until(writer.offset()));
        writer
            .finish(&recording)?
            .flush()
            .map_err(Error::io("output"))?;
        if let ContainerLayout::File(found) = &container_layout
            && !is_copy
            && !is_new
        {
            shared_bytes::check_kept(found, &recording, reader.recording(), source, file)?;
        }
        summary.bytes_out = file.metadata().map_err(Error::io("output"))?.len();
        self.done(steps);
        self.check_output(file)?;
        Ok(summary)
    }

    fn write_pipe(&mut self, ready: Ready, out: &mut dyn Write) -> Result<Summary> {
        let Begun {
            mut reader,
            source,
            mut recording,
            container_layout,
            mut steps,
        } = self.begin(ready, ContainerKind::Pipe)?;
        if let ContainerLayout::File(found) = &container_layout
            && !checks_output(&mut steps)
        {
            shared_bytes::check_lost(found, &recording, &source)?;
        }
        let plan = pipe_plan(&container_layout, &recording, &mut steps);
        let mut counted = CountedWriter { out, bytes: 0 };
        let mut writer =
            PipeWriter::begin(&mut counted, plan, &recording).map_err(to_pipe::with_way_out)?;
        let mut summary = pump(
            &mut reader,
            &mut steps,
            &mut recording,
            &mut writer as &mut dyn RecordSink,
            ContainerKind::Pipe,
        )?;
        writer.finish()?;
        summary.bytes_out = counted.bytes;
        self.done(steps);
        Ok(summary)
    }

    /// Returns whether an input with this layout is copied byte for byte.
    fn is_copy(&self, container_layout: &ContainerLayout, to: ContainerKind) -> bool {
        container_layout.container() == to && self.are_neutral()
    }

    /// Returns whether no stage changes a record.
    fn are_neutral(&self) -> bool {
        let mut stages = self.stages.iter();
        stages.all(|stage| stage.requirements().is_neutral)
    }

    /// Passes the model to all stages, which have their positions in the pipeline afterwards.
    fn begin(&mut self, ready: Ready, to: ContainerKind) -> Result<Begun> {
        let Ready {
            reader,
            source,
            mut recording,
            has_late_events,
            ..
        } = ready;
        if !self.is_copy(reader.container_layout(), to) {
            shared_bytes::check_parts(reader.container_layout())?;
        }
        let mut container_layout = reader.container_layout().clone();
        let stages = std::mem::take(&mut self.stages);
        let limits = source.limits();
        let steps = begin(stages, &mut recording, &mut container_layout, limits, &[])?;
        // Their attributes keep their position after the first record.
        if has_late_events {
            recording.events = Events::default();
        }
        Ok(Begun {
            reader,
            source,
            recording,
            container_layout,
            steps,
        })
    }
}

/// Passes the model to stages. They share it with `others`, the same steps of another output.
fn begin(
    stages: Vec<Box<dyn Stage>>,
    recording: &mut Recording,
    container_layout: &mut ContainerLayout,
    limits: Limits,
    others: &[Step],
) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::with_capacity(stages.len());
    for (at, stage) in stages.into_iter().enumerate() {
        let before = others.get(at).or(steps.last());
        let mut step = Step::new(stage, recording, limits, before);
        step.stage.begin(recording, container_layout)?;
        step.began(recording);
        steps.push(step);
    }
    Ok(steps)
}

/// Adds the stage that adds sections which readers of files rely on. `from` is the container of the
/// input, or a pipe if sections may be missing that the input had.
fn add_file_features(stages: &mut Vec<Box<dyn Stage>>, recording: &Recording, from: ContainerKind) {
    let features = match stages.iter_mut().any(|stage| checks(&mut **stage)) {
        true => FileFeatures::of_checked(recording, from),
        false => FileFeatures::of(recording, from),
    };
    stages.push(Box::new(features));
}

/// Inserts the stages that change the container, and that compress the records of the output.
/// `times` are those of all samples, if they are known.
fn add_container(
    stages: &mut Vec<Box<dyn Stage>>,
    from: ContainerKind,
    to: ContainerKind,
    times: Option<SampleTime>,
    limits: Limits,
) {
    let change: Option<Box<dyn Stage>> = match (from, to) {
        (ContainerKind::Pipe, ContainerKind::File) => Some(Box::new(to_file::ToFile::new(times))),
        (ContainerKind::File, ContainerKind::Pipe) => Some(Box::new(to_pipe::ToPipe::default())),
        _ => None,
    };
    let at = stages
        .iter()
        .position(|stage| stage.requirements().after_container)
        .unwrap_or(stages.len());
    let again = compresses_again(stages)
        .map(|kind| Compress::again(kind).with_threads(limits.threads()))
        .map(|stage| Box::new(stage) as Box<dyn Stage>);
    stages.splice(at..at, change.into_iter().chain(again));
}

/// Returns whether the output contains nothing of the input's container.
fn checks_output(steps: &mut [Step]) -> bool {
    steps.iter_mut().any(|step| checks(&mut *step.stage))
}

/// Returns whether the output contains only what this stage forwards.
fn checks(stage: &mut dyn Stage) -> bool {
    stage.output_check().is_some()
}

/// Returns the layout of a file that is no copy.
fn file_plan(container_layout: &ContainerLayout, recording: &Recording) -> FilePlan {
    match container_layout {
        ContainerLayout::File(found) => FilePlan::apart(found),
        ContainerLayout::Pipe(_) if recording.events.is_empty() => FilePlan::events_last(),
        ContainerLayout::Pipe(_) => FilePlan::standard(),
    }
}

/// Returns the layout of a pipe.
fn pipe_plan(
    container_layout: &ContainerLayout,
    recording: &Recording,
    steps: &mut [Step],
) -> PipePlan {
    match container_layout {
        ContainerLayout::Pipe(found) if !checks_output(steps) => PipePlan::exact(found),
        _ => {
            let wanted = steps
                .iter()
                .find_map(|step| step.stage.requirements().end_of_features);
            PipePlan::standard(recording, wanted.unwrap_or(PipePlan::END))
        }
    }
}

/// A conversion whose stages have received the model, ready for the writer.
struct Begun {
    reader: BoxedSource,
    source: InputSource,
    recording: Recording,
    container_layout: ContainerLayout,
    steps: Vec<Step>,
}

/// Returns the type of the compressed records of the output, if a stage receives their content and
/// forwards it later.
fn compresses_again(stages: &[Box<dyn Stage>]) -> Option<RecordType> {
    let mut again = None;
    for stage in stages {
        let compressed = again.map(|kind| stage.compressed(kind));
        if let Some(CompressedRecords::Opened(kind)) = compressed {
            again = Some(kind);
        }
        again = stage.requirements().compresses_again.or(again);
    }
    again
}
