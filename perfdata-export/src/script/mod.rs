//! The text of `perf script`: a line for each sample, or a paragraph if it has a callchain
//! (tools/perf/builtin-script.c, `process_event`; tools/perf/util/evsel_fprintf.c, 7.2).

mod bpf_output;
mod branches;
mod counters;
mod events;
mod fields;
mod frames;
mod line;
mod lines;
mod memory;
pub(crate) mod numbers;
mod short_text;
mod source_lines;
mod trace_errors;

use std::io::{self, Write};

use perfdata_core::header::ContainerKind;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{Body, RecordType};

use crate::error::{Error, Result};
use crate::parts::{Made, SinkPart};
use crate::resolve::{Needs, ResolvedSample, Sink};
use crate::resolver::is_guest;
use crate::tables::Tables;
use counters::ShownCounters;
use events::Events;
pub use fields::{Fields, FieldsError};
use fields::{Set, Shown};
use lines::Lines;
use perfdata_session::Sample;
use perfdata_symbols::{Spelling, demangled_as};
use perfdata_tracepoint::Like;
use trace_errors::push_trace_error;

/// Bytes of text that are written at once.
const WRITTEN: usize = 1 << 16;

/// Number of frames of a callchain that are shown by default (`PERF_MAX_STACK_DEPTH`).
const MAX_STACK: usize = 127;

/// Writes the text of `perf script`, by default of `perf script --no-inline`.
///
/// The text is that of perf as far as it depends on the recording. These parts depend on the machine
/// that perf runs on, and can differ: functions and the paths of modules.
/// [`Needs::before_exec`] is set, as perf finds frames in the mappings of earlier programs.
///
/// perf decodes AUX data; here `perfdata_inject::itrace` does it first. perf unwinds user stacks (`--call-graph dwarf`); here
/// [`Samples::with_user_callchains`](perfdata_session::Samples::with_user_callchains) does it.
#[derive(Debug)]
pub struct PerfScript<W> {
    out: W,
    text: Vec<u8>,
    style: Style,
    shown: Shown,
    events: Events,
    counters: ShownCounters,
    /// The names of functions, by their numbers, in the spelling of the version.
    names: Vec<Box<[u8]>>,
    lines: Lines,
    /// Width of the longest source of data so far.
    source_width: usize,
    /// Size of the text at which it is written.
    written_at: usize,
}

/// How samples are shown.
#[derive(Debug, Clone, Copy)]
struct Style {
    like: Like,
    nanoseconds: bool,
    max_stack: usize,
    scheduler_plugin: bool,
    /// Whether inlined functions are shown.
    inlines: bool,
    /// Whether source files are shown with their folders.
    full_source_path: bool,
    /// Whether the recording is a stream: perf knows its events one after the other, and shows other
    /// fields for some of them.
    is_stream: bool,
}

impl Style {
    /// Returns whether perf forgets the names and mappings of threads that have ended.
    fn forgets(&self) -> bool {
        self.like > Like::Perf6_1
    }
}

impl<W: Write> PerfScript<W> {
    /// Returns a sink that writes the text of this version of perf to `out`.
    pub fn new(out: W, like: Like) -> Self {
        PerfScript {
            out,
            text: Vec::new(),
            style: Style {
                like,
                nanoseconds: false,
                max_stack: MAX_STACK,
                scheduler_plugin: false,
                inlines: false,
                full_source_path: false,
                is_stream: false,
            },
            shown: Shown::new(like, &Fields::default()),
            events: Events::default(),
            counters: ShownCounters::default(),
            names: Vec::new(),
            lines: Lines::default(),
            source_width: 0,
            written_at: WRITTEN,
        }
    }

    /// Returns the sink with the fields to show. The default depends on the type of the event.
    #[must_use]
    pub fn with_fields(self, fields: &Fields) -> Self {
        PerfScript {
            shown: Shown::new(self.style.like, fields),
            ..self
        }
    }

    /// Returns the sink with the unit of times: whether they have nanoseconds. The default is
    /// microseconds.
    #[must_use]
    pub fn with_nanoseconds(mut self, nanoseconds: bool) -> Self {
        self.style.nanoseconds = nanoseconds;
        self
    }

    /// Returns the sink with the maximum number of frames of a sample. The default is 127.
    #[must_use]
    pub fn with_max_stack(mut self, max_stack: usize) -> Self {
        self.style.max_stack = max_stack;
        self
    }

    /// Returns the sink with whether `sched_switch`, `sched_wakeup` and `sched_wakeup_new` are shown as
    /// by perf with libtraceevent's plugins. The default is without.
    #[must_use]
    pub fn with_scheduler_plugin(mut self, scheduler_plugin: bool) -> Self {
        self.style.scheduler_plugin = scheduler_plugin;
        self
    }

    /// Returns the sink with whether inlined functions are frames of callchains. By default, they are
    /// not. perf 6.12 and older show them only in user stacks that are unwound.
    #[must_use]
    pub fn with_inlines(mut self, inlines: bool) -> Self {
        self.style.inlines = inlines;
        self
    }

    /// Returns the sink with whether source files (`srcline`) are shown with their folders. By default,
    /// they are not.
    #[must_use]
    pub fn with_full_source_path(mut self, full_source_path: bool) -> Self {
        self.style.full_source_path = full_source_path;
        self
    }

    /// Takes over new events of the recording.
    fn update_events(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.events
            .update(sample.recording(), self.style, &mut self.shown)
            .map_err(Error::Fields)
    }

    /// Writes the text.
    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.text).map_err(Error::Output)?;
        self.text.clear();
        Ok(())
    }
}

/// Returns how a version of perf spells the names of functions.
fn spelling(like: Like) -> Spelling {
    match like {
        Like::Perf6_1 => Spelling::WithoutParameters,
        Like::Perf6_12 => Spelling::RustAsCpp,
        _ => Spelling::Full,
    }
}

/// Returns whether branches are shown as addresses only, if fields of a set are `shown`.
fn shown_as_addresses(shown: impl Fn(Set) -> bool) -> bool {
    shown(Set::BRSTACK) && !shown(Set::BRSTACKSYM.with(Set::BRSTACKOFF).with(Set::DSO))
}

impl SinkPart for PerfScript<io::Sink> {
    fn pass(&mut self, sample: &Sample<'_>) -> Result<()> {
        self.update_events(sample)?;
        match is_guest(sample.mode()) {
            true => Ok(()),
            false => self.pass_lines(sample),
        }
    }

    fn pass_record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        let len = self.text.len();
        self.record(record)?;
        self.text.truncate(len);
        Ok(())
    }

    fn take(&mut self, _: &Tables) -> Option<Made> {
        Some(Made::text(std::mem::take(&mut self.text)))
    }
}

impl<W: Write> Sink for PerfScript<W> {
    fn needs(&self) -> Needs {
        let shown = |fields| self.shown.has_any(fields);
        let branches = Set::BRSTACK.with(Set::BRSTACKSYM).with(Set::BRSTACKOFF);
        let functions = Set::SYM.with(Set::SYMOFF).with(Set::SRCLINE);
        Needs {
            // The addresses of branches are in the sample itself.
            branches: shown(branches) && !shown_as_addresses(shown),
            without_functions: !self.style.inlines
                && !shown(functions.with(Set::BRSTACKSYM).with(Set::DSO)),
            data_address: shown(Set::ADDR) || self.events.has_branch_samples(),
            before_exec: true,
            counts: true,
            tracepoints: shown(Set::TRACE).then_some(self.style.like),
            scheduler_plugin: self.style.scheduler_plugin,
            spelling: spelling(self.style.like),
            // The line of an address is that of the innermost function.
            inlines: self.style.inlines || shown(Set::SRCLINE),
            lines: shown(Set::SRCLINE),
            at_return_addresses: true,
            outermost_inlined: self.style.inlines,
            without_frames: false,
            innermost_frame: false,
        }
    }

    fn begin(&mut self, container: ContainerKind) {
        self.style.is_stream = container == ContainerKind::Pipe;
    }

    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
        self.update_events(&sample.sample)?;
        let new = sample.tables.functions().get(self.names.len()..);
        let spelling = spelling(self.style.like);
        for function in new.unwrap_or_default() {
            // The name is spelled as by the newest version.
            let is_spelled = spelling == Spelling::Full || function.name == function.system_name;
            self.names.push(match is_spelled {
                true => function.name.clone(),
                false => demangled_as(&function.system_name, spelling).into(),
            });
        }
        // perf leaves out the samples of guests, unless their files are given.
        if is_guest(sample.sample.mode()) {
            return Ok(());
        }
        self.sample_lines(sample)?;
        if self.text.len() >= self.written_at {
            self.flush()?;
        }
        Ok(())
    }

    fn part(&self, _: usize) -> Option<Box<dyn SinkPart>> {
        let part = PerfScript {
            style: self.style,
            shown: self.shown.clone(),
            written_at: usize::MAX,
            ..PerfScript::new(io::sink(), self.style.like)
        };
        Some(Box::new(part))
    }

    fn join(&mut self, made: Made) -> Result<()> {
        self.out.write_all(&made.into_text()).map_err(Error::Output)
    }

    fn record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        self.events.see(record);
        if record.kind == RecordType::AUXTRACE_ERROR
            && let Body::AuxtraceError(error) = record.decode()?.body
        {
            push_trace_error(&mut self.text, &error);
        }
        if matches!(
            record.kind,
            RecordType::STAT_CONFIG
                | RecordType::CPU_MAP
                | RecordType::THREAD_MAP
                | RecordType::STAT
                | RecordType::STAT_ROUND
        ) {
            let recording = record.recording();
            self.events.update_names(recording, self.style.like);
            let body = record.decode()?.body;
            self.counters.see(
                &body,
                recording,
                &self.events,
                self.style.like,
                &mut self.text,
            );
        }
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> Result<()> {
        self.flush()?;
        self.out.flush().map_err(Error::Output)
    }
}
