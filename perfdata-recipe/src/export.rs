//! The samples of a recording for another format, and whether they are complete.

use std::io;
use std::path::Path;

use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::Input;
use perfdata_convert::leftover::Leftover;
use perfdata_convert::pipeline::{self, Converted};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::RecordRef;
use perfdata_core::record::RecordType;
use perfdata_edit::slice::Patterns;
use perfdata_export::{
    ExportThreads, FetchAhead, Made, Needs, Reason, Report, ResolvedSample, Sink, SinkPart,
    Sources, Symbolizer, Tables, export_in_parts, fetch_objects,
};
use perfdata_inject::callchains::{unwinding_notes, unwound_in_total};
use perfdata_inject::itrace::{ItraceCommand, ItraceOptions};
use perfdata_session::Samples;
use perfdata_unwind::{UnwoundStacks, UserStacks};

use crate::recipe::Recipe;
use crate::steps::{Traces, with_objects_of};

/// What an export needs of a recording.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Export {
    /// The conversion before the export, such as a selection of samples.
    pub recipe: Recipe,
    /// Where objects are searched, for names and for unwinding.
    pub sources: Sources,
    /// What is made of traces if the recording has some; by default, what `perf report` makes of
    /// them, where it is possible. Those of [`Recipe::traces`] have precedence.
    pub traces: Option<Traces>,
    /// Whether functions get names.
    pub symbols: bool,
    /// Whether inlined functions become frames.
    pub inlines: bool,
    /// Whether frames get source lines.
    pub lines: bool,
    /// Whether user stacks are unwound.
    pub unwind: bool,
    /// Whether an output without samples is wanted.
    pub allow_empty: bool,
    /// Whether the counters of a group in a sample are selected one by one; otherwise, a sample is
    /// selected with all of them.
    pub groups: bool,
    /// Returns what could help if an object cannot be used, as a part of a note.
    pub help: Option<fn(&Reason) -> &'static str>,
}

/// What was exported.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// The numbers of samples and frames, and the objects without names.
    pub report: Report,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The bytes at the end of the recording that are not a complete record. The output does not
    /// contain them.
    pub leftover: Option<Leftover>,
}

impl Exported {
    /// Returns the results of an export whose input ended in this way.
    pub fn new(report: Report, notes: Vec<String>, leftover: Option<Leftover>) -> Self {
        Exported {
            report,
            notes,
            leftover,
        }
    }
}

/// The samples of a recording that is being exported.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenExport {
    /// The samples.
    pub samples: Samples<Converted>,
    /// What finds the names of functions.
    pub symbols: Option<Symbolizer>,
    /// How reading will have ended.
    pub ending: Ending,
}

impl Export {
    /// Returns the export of all samples with names and unwound stacks.
    pub fn new(sources: Sources) -> Self {
        Export {
            recipe: Recipe::default(),
            sources,
            traces: Some(Traces {
                where_possible: true,
                ..Traces::new(Some(ItraceOptions::of_command(ItraceCommand::Report)))
            }),
            symbols: true,
            inlines: false,
            lines: false,
            unwind: true,
            allow_empty: false,
            groups: true,
            help: None,
        }
    }

    /// Opens the samples of `input`.
    ///
    /// # Errors
    /// The input cannot be read or converted.
    pub fn open(&self, input: Input) -> Result<OpenExport> {
        let sources = match self.symbols || self.unwind {
            true => with_objects_of(self.sources.clone(), &input)?,
            false => self.sources.clone(),
        };
        let symbols = self.symbols.then(|| {
            Symbolizer::new(sources.clone())
                .with_inlines(self.inlines)
                .with_lines(self.lines)
        });
        let mut recipe = self.recipe.clone();
        if let Some(select) = &mut recipe.select {
            select.groups = self.groups;
            select.allow_empty |= self.allow_empty;
        }
        let input = match self.traces {
            Some(traces) if recipe.traces.is_none() => {
                let (input, is_traced) = input.and_whether_traced();
                recipe.traces = is_traced.then_some(traces);
                input
            }
            _ => input,
        };
        let makes_samples = recipe.traces.is_some_and(|traces| traces.samples.is_some());
        let (converted, records) = recipe.read(input)?;
        let mut samples = Samples::new(converted)?;
        if makes_samples {
            // They are where the decoder made them, also if they have no time or a wrong one.
            samples = samples.in_order();
        }
        // Which objects a part of the samples hits is not known before they are read.
        if self.symbols && self.recipe.select.is_none() {
            let ahead = match self.inlines || self.lines {
                true => FetchAhead::Lines,
                false => FetchAhead::Names,
            };
            fetch_objects(&sources, samples.recording(), ahead)?;
        }
        let (help, stacks) = (self.help, self.unwind.then(|| UserStacks::new(sources)));
        let ending = Ending {
            records,
            stacks: stacks.as_ref().map(UserStacks::result),
            help,
        };
        let samples = match stacks {
            Some(stacks) => samples.with_user_callchains(Box::new(stacks)),
            None => samples,
        };
        Ok(OpenExport {
            samples,
            symbols,
            ending,
        })
    }

    /// Passes all samples of `input` to `sink`. The sink ends its output only if the recording was
    /// read completely and has samples; an input that ends inside a record counts as complete.
    /// `path` is the name of the output in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open), or the records are corrupt, or there are no samples, or the output
    /// cannot be written.
    pub fn run(&self, input: Input, sink: &mut dyn Sink, path: &Path) -> Result<Exported> {
        let OpenExport {
            mut samples,
            symbols,
            ending,
        } = self.open(input)?;
        let select = self.recipe.select.as_ref();
        let events = select.filter(|select| self.groups && !select.invert);
        let mut checked = Checked {
            sink,
            ending: Some(ending),
            result: None,
            allow_empty: self.allow_empty,
            has_content: false,
            events: events.and_then(|select| select.events.clone()),
            increases: Vec::new(),
        };
        let threads = ExportThreads::new(self.recipe.limits.threads());
        let exported = export_in_parts(&mut samples, symbols, &mut checked, threads);
        let (notes, leftover) = checked.result.transpose()?.unwrap_or_default();
        let report = exported.map_err(|error| failed(error, path))?;
        Ok(Exported::new(report, notes, leftover))
    }
}

/// How reading a recording for an export will have ended.
#[derive(Debug)]
pub struct Ending {
    records: pipeline::Ending,
    /// What became of user stacks, if they are unwound.
    stacks: Option<UnwoundStacks>,
    help: Option<fn(&Reason) -> &'static str>,
}

impl Ending {
    /// The error about a recording without samples.
    pub const NO_SAMPLES: &str = "the recording contains no samples";

    /// Checks that all records were read: [`pipeline::Ending::check`]. The notes are also about
    /// user stacks.
    ///
    /// # Errors
    /// As [`pipeline::Ending::check`].
    pub fn check(self) -> Result<(Vec<String>, Option<Leftover>)> {
        let (mut notes, leftover) = self.records.check()?;
        let stacks = self.stacks.iter();
        notes.extend(stacks.flat_map(|stacks| not_unwound(stacks, self.help)));
        Ok((notes, leftover))
    }
}

/// Returns notes about the user stacks that were not unwound completely; none if all were. `help`
/// returns what could help if an object cannot be used.
pub fn not_unwound(
    stacks: &UnwoundStacks,
    help: Option<fn(&Reason) -> &'static str>,
) -> Vec<String> {
    let Some(objects) = stacks.objects() else {
        return Vec::new();
    };
    let outcomes = stacks.outcomes();
    let mut notes = unwinding_notes(&outcomes, &objects, help);
    if !notes.is_empty() {
        notes.insert(0, unwound_in_total(&outcomes));
    }
    notes
}

/// A sink that ends its output only if the recording was read completely and has content.
struct Checked<'a> {
    sink: &'a mut dyn Sink,
    ending: Option<Ending>,
    result: Option<Result<(Vec<String>, Option<Leftover>)>>,
    allow_empty: bool,
    has_content: bool,
    /// The selected events, if not all: of the samples with the counters of a group, the others are
    /// left out.
    events: Option<Patterns>,
    /// Of the current sample, the counters of these events.
    increases: Vec<(usize, u64)>,
}

impl Checked<'_> {
    /// Sets the counters of the selected events. Returns whether there are any.
    fn select_counters(&mut self, events: &Patterns, sample: &ResolvedSample<'_>) -> bool {
        let (session, recording) = (sample.sample.session(), sample.sample.recording());
        let all = sample.counters.into_iter().flatten().copied();
        self.increases.clear();
        self.increases.extend(
            all.filter(|&(event, _)| events.contains(&session.name_of_event(recording, event))),
        );
        !self.increases.is_empty()
    }
}

impl Sink for Checked<'_> {
    fn needs(&self) -> Needs {
        self.sink.needs()
    }

    fn begin(&mut self, container: ContainerKind) {
        self.sink.begin(container);
    }

    fn sample(&mut self, sample: &ResolvedSample<'_>) -> perfdata_export::Result<()> {
        if let Some(events) = self.events.take() {
            let is_selected = sample.counters.is_none() || self.select_counters(&events, sample);
            self.events = Some(events);
            if !is_selected {
                return Ok(());
            }
        }
        self.has_content = true;
        let mut sample = *sample;
        if self.events.is_some() && sample.counters.is_some() {
            sample.counters = Some(&self.increases);
        }
        self.sink.sample(&sample)
    }

    fn record(&mut self, record: &RecordRef<'_>) -> perfdata_export::Result<()> {
        if record.kind == RecordType::STAT_ROUND {
            self.has_content |= self.sink.needs().counts;
        }
        self.sink.record(record)
    }

    fn part(&self, parts: usize) -> Option<Box<dyn SinkPart>> {
        // The counters of samples are selected here.
        self.sink.part(parts).filter(|_| self.events.is_none())
    }

    fn join(&mut self, made: Made) -> perfdata_export::Result<()> {
        let has_counts = made.rounds() > 0 && self.sink.needs().counts;
        self.has_content |= made.samples() > 0 || has_counts;
        self.sink.join(made)
    }

    fn finish(&mut self, tables: &Tables) -> perfdata_export::Result<()> {
        let mut result = self.ending.take().map(Ending::check);
        if let Some(Ok((notes, _))) = &result
            && !self.has_content
            && !self.allow_empty
        {
            // They say what became of traces.
            let why = notes.iter().flat_map(|note| ["; ", note]);
            let what: String = [Ending::NO_SAMPLES].into_iter().chain(why).collect();
            result = Some(Err(Error::Refused(what)));
        }
        let is_complete = matches!(result, Some(Ok(_)));
        self.result = result;
        if !is_complete {
            return Err(perfdata_export::Error::Output(io::Error::other(
                "incomplete",
            )));
        }
        self.sink.finish(tables)
    }
}

/// Returns the error of an export to `path`.
pub fn failed(error: perfdata_export::Error, path: &Path) -> Error {
    match error {
        perfdata_export::Error::Recording(error) => Error::Read(error),
        perfdata_export::Error::Output(error) => Error::io(path)(error),
        perfdata_export::Error::Temporary(error) => Error::io("a temporary file")(error),
        error @ perfdata_export::Error::ChangesTooOften => {
            Error::Refused(error.to_string()).with_step(Step::Other("--threads 1".into()))
        }
        other => Error::Refused(other.to_string()),
    }
}
