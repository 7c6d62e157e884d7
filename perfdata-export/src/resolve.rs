//! The pass over the samples, and the interface of all formats.

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Limits, RecordRef, RecordSource, RecordingReader};
use perfdata_core::record::CpuMode;
use perfdata_session::{MappingId, Sample, Samples, Session};
use perfdata_symbols::{
    SearchedSources, Spelling, Symbolizer, Unresolved, Verified, WithoutDebugInfo,
};
use perfdata_tracepoint::Like;

use crate::counters::Counters;
use crate::error::Result;
use crate::named_weight::{InnermostWeights, NamedWeight, named_weights};
use crate::parts::{Made, SinkPart};
use crate::places::PlaceId;
use crate::resolver::{Resolver, is_guest, unnamed};
use crate::shared_symbols::SharedSymbols;
use crate::tables::{FunctionId, ModuleId, Tables};
use crate::tracepoints::Tracepoints;

/// A frame of a sample with its function and module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedFrame {
    /// The address. For a caller, this is the return address: the call is before it.
    pub address: u64,
    /// The CPU mode.
    pub mode: CpuMode,
    /// Whether the address is a return address.
    pub is_return: bool,
    /// The mapping at the address; `None` if the recording contains none.
    pub mapping: Option<MappingId>,
    /// The mapped object.
    pub module: Option<ModuleId>,
    /// The function, if its name is known.
    pub function: Option<FunctionId>,
    /// Offset of the address in the function, in bytes; 0 without a function. For an inlined one, it is
    /// the offset in the function that contains the copy.
    pub function_offset: u64,
    /// Whether the function is inlined: its caller is the next frame, at the same address.
    pub is_inlined: bool,
    /// The line in the source file of the function, from 1; 0 if it is not known.
    pub line: u32,
    /// The number of the place, if it has one.
    pub(crate) place: Option<PlaceId>,
}

/// A sample with its resolved frames.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ResolvedSample<'a> {
    /// The sample: its event, time, thread and weight.
    pub sample: Sample<'a>,
    /// The frames, from the sampled function to its outermost caller. If the symbolizer finds
    /// [inlined functions](Symbolizer::with_inlines), they are frames before the one of their
    /// address.
    pub frames: &'a [ResolvedFrame],
    /// The source and the target of each branch of the branch stack, newest first, if the sink
    /// [needs](Sink::needs) them.
    pub branches: &'a [(ResolvedFrame, ResolvedFrame)],
    /// The data address, if the sink [needs](Sink::needs) it and the sample contains it.
    pub data_address: Option<ResolvedFrame>,
    /// The text of the tracepoint, if the sink [needs](Sink::needs) it and the sample contains one.
    pub tracepoint: Option<&'a [u8]>,
    /// The events whose counters the sample contains (`perf record -e '{…}:S'`), by their index in
    /// the recording's list, each with its increase since the last sample, without those that did
    /// not increase. perf shows a sample of each. `None` if samples of the event contain no counters.
    pub counters: Option<&'a [(usize, u64)]>,
    /// The functions and modules of the frames.
    pub tables: &'a Tables,
}

impl<'a> ResolvedSample<'a> {
    /// Returns what the sample counts, as perf shows it: its event, by its index in the recording's
    /// list, and its weight; or each event whose counter increased, and by how much.
    pub fn counted(&self) -> impl Iterator<Item = (usize, u64)> + use<'a> {
        let sample = self.sample;
        let own = self.counters.is_none();
        let own = own.then(|| (sample.event(), sample.weight()));
        let counters = self.counters.unwrap_or_default();
        own.into_iter().chain(counters.iter().copied())
    }
}

/// What a sink needs in addition to the frames of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Needs {
    /// The branch stack.
    pub branches: bool,
    /// The data address.
    pub data_address: bool,
    /// The text of tracepoints, as this version of perf shows it.
    pub tracepoints: Option<Like>,
    /// The text of `sched_switch`, `sched_wakeup` and `sched_wakeup_new` is that of libtraceevent's
    /// plugin.
    pub scheduler_plugin: bool,
    /// Frames without a mapping have the mapping that perf finds
    /// ([`Frame::before_exec`](perfdata_session::Frame::before_exec)).
    pub before_exec: bool,
    /// The counts of `perf stat record`: then a recording without samples has content.
    pub counts: bool,
    /// The frames are not needed: samples have none.
    pub without_frames: bool,
    /// Of the frames, only the innermost one is needed: samples have no others.
    pub innermost_frame: bool,
    /// The functions are not needed, and not searched. Those in the text of tracepoints are.
    pub without_functions: bool,
    /// The version of perf whose choice is followed between functions at the same address.
    pub spelling: Spelling,
    /// The inlined functions, also if the symbolizer does not search them by itself.
    pub inlines: bool,
    /// The source files and lines, also if the symbolizer does not search them by itself.
    pub lines: bool,
    /// Inlined functions and lines of callers are those at their return addresses, as in perf, not
    /// those of the calls before.
    pub at_return_addresses: bool,
    /// The function of the address itself is also a frame as if it were inlined, with its name in the
    /// debug information.
    pub outermost_inlined: bool,
}

impl Needs {
    /// Returns the same needs with whether the frames are not needed. The default is false.
    #[must_use]
    pub fn without_frames(self, without_frames: bool) -> Self {
        Needs {
            without_frames,
            ..self
        }
    }

    /// Returns the same needs with whether the functions are not needed. The default is false.
    #[must_use]
    pub fn without_functions(self, without_functions: bool) -> Self {
        Needs {
            without_functions,
            ..self
        }
    }

    /// Returns the same needs with whether only the innermost frame is needed. The default is false.
    #[must_use]
    pub fn innermost_frame(self, innermost_frame: bool) -> Self {
        Needs {
            innermost_frame,
            ..self
        }
    }
}

/// A format.
pub trait Sink {
    /// Returns what the sink needs in addition to the frames.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Receives the container of the recording, before all samples.
    fn begin(&mut self, _container: ContainerKind) {}

    /// Receives the next sample.
    ///
    /// # Errors
    /// The output cannot be written.
    fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()>;

    /// Receives the next record that is not a sample, in the order of time with the samples.
    ///
    /// # Errors
    /// The record is corrupt, or the output cannot be written.
    fn record(&mut self, _record: &RecordRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Receives the functions and modules of all samples, after the last one.
    ///
    /// # Errors
    /// The output cannot be written.
    fn finish(&mut self, _tables: &Tables) -> Result<()> {
        Ok(())
    }

    /// Returns a sink for one of several parts of the samples, each in a thread of its own; `None` if all
    /// samples must come to one sink in the order of time, as by default. Then this sink receives what
    /// the parts [make](Self::join), and [`finish`](Self::finish) without tables.
    fn part(&self, _parts: usize) -> Option<Box<dyn SinkPart>> {
        None
    }

    /// Receives what a part made of its samples.
    ///
    /// # Errors
    /// The output cannot be written.
    fn join(&mut self, _made: Made) -> Result<()> {
        Ok(())
    }
}

/// What was exported.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Number of samples.
    pub samples: u64,
    /// Number of frames, with those of inlined functions.
    pub frames: u64,
    /// Number of frames without a function.
    pub unnamed: u64,
    /// Whether the sink needs no functions, so that none was searched.
    pub without_functions: bool,
    /// Number of samples with a counter (`perf record -e '{…}:S'`) that is lower than in the sample
    /// before: it counts as started again at 0.
    pub restarted_counters: u64,
    /// Number of samples of guests, whose code has no names. The text of `perf script` does not
    /// contain them.
    pub guests: u64,
    /// Files whose code was probably copied to huge pages, so that its functions have no names.
    pub on_huge_pages: Vec<Vec<u8>>,
    /// Objects with addresses that have no names.
    pub unresolved: Vec<Unresolved>,
    /// For each event with samples, for how much of their weight the function is known; empty if
    /// functions were not searched.
    pub named: Vec<NamedWeight>,
    /// Where functions were searched.
    pub searched: SearchedSources,
    /// Objects whose symbols are known, and why they are those of the recorded objects.
    pub verified: Vec<Verified>,
    /// Objects whose debug information was not found, if it was searched.
    pub without_debug_info: Vec<WithoutDebugInfo>,
}

/// Passes all samples to `sink`. Without `symbols`, no functions are searched.
///
/// # Errors
/// The recording cannot be read, or exceeds its limits; and the errors of the sink.
pub fn export<S: RecordSource>(
    samples: &mut Samples<S>,
    symbols: Option<Symbolizer>,
    sink: &mut dyn Sink,
) -> Result<Report> {
    export_with(samples, symbols.map(SharedSymbols::new), sink)
}

/// As [`export`].
pub(crate) fn export_with<S: RecordSource>(
    samples: &mut Samples<S>,
    symbols: Option<SharedSymbols>,
    sink: &mut dyn Sink,
) -> Result<Report> {
    let limits = samples.session().limits();
    sink.begin(samples.source().container_layout().container());
    let mut pass = Pass::new(symbols).with_needs(sink.needs());
    let mut failed = None;
    while let Some(sample) = samples.next_with(|record| {
        if failed.is_none() {
            failed = sink.record(&record).err();
        }
    })? {
        if let Some(error) = failed {
            return Err(error);
        }
        pass.resolve(&sample, sink.needs(), &limits)?;
        sink.sample(&pass.resolved(sample))?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    sink.finish(&pass.resolver.tables)?;
    Ok(report(&[pass], samples.session(), samples.recording()))
}

/// The samples of a recording in time order with their resolved frames, for programs that request
/// one after the other. [`export`] passes them to a [`Sink`].
#[derive(Debug)]
pub struct ResolvedSamples<S = RecordingReader> {
    samples: Samples<S>,
    needs: Needs,
    pass: Pass,
}

impl<S: RecordSource> ResolvedSamples<S> {
    /// Returns the samples that `samples` has not returned yet. Without `symbols`, no functions are
    /// searched.
    pub fn new(samples: Samples<S>, symbols: Option<Symbolizer>) -> Self {
        ResolvedSamples {
            samples,
            needs: Needs::default(),
            pass: Pass::new(symbols.map(SharedSymbols::new)),
        }
    }

    /// Returns the samples with what is needed in addition to the frames. By default, nothing is.
    #[must_use]
    pub fn with_needs(self, needs: Needs) -> Self {
        let pass = self.pass.with_needs(needs);
        ResolvedSamples {
            needs,
            pass,
            ..self
        }
    }

    /// Returns the next sample; `None` at the end. `others` receives all records before it that are
    /// not samples, in time order.
    ///
    /// # Errors
    /// The recording cannot be read, or exceeds its limits.
    pub fn next_with(
        &mut self,
        others: impl FnMut(RecordRef<'_>),
    ) -> Result<Option<ResolvedSample<'_>>> {
        let limits = self.samples.session().limits();
        let Some(sample) = self.samples.next_with(others)? else {
            return Ok(None);
        };
        self.pass.resolve(&sample, self.needs, &limits)?;
        Ok(Some(self.pass.resolved(sample)))
    }

    /// Returns the samples without their frames, with the session and the recording.
    pub fn samples(&self) -> &Samples<S> {
        &self.samples
    }

    /// Returns the functions and modules of all samples so far.
    pub fn tables(&self) -> &Tables {
        &self.pass.resolver.tables
    }

    /// Returns what was resolved so far.
    pub fn finish(self) -> Report {
        let samples = &self.samples;
        report(&[self.pass], samples.session(), samples.recording())
    }
}

/// Resolves samples one after the other.
#[derive(Debug)]
pub(crate) struct Pass {
    pub resolver: Resolver,
    tracepoints: Tracepoints,
    frames: Vec<ResolvedFrame>,
    branches: Vec<(ResolvedFrame, ResolvedFrame)>,
    counters: Counters,
    increases: Vec<(usize, u64)>,
    innermost: InnermostWeights,
    /// What is known about the last sample in addition to these lists.
    last: Last,
    report: Report,
}

/// What was resolved of the last sample.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    data_address: Option<ResolvedFrame>,
    /// Whether the text of a tracepoint is known.
    has_text: bool,
    has_counters: bool,
}

impl Pass {
    /// Returns the pass with what the sink needs.
    pub fn with_needs(mut self, needs: Needs) -> Self {
        let symbols = self.resolver.symbols.take();
        self.resolver.symbols = symbols.map(|symbols| symbols.with_needs(needs));
        self.of_part(needs)
    }

    /// Returns the pass over a part of the samples with what the sink needs, except of the symbolizer.
    pub fn of_part(mut self, needs: Needs) -> Self {
        self.resolver.at_return_addresses = needs.at_return_addresses;
        self.resolver.outermost_inlined = needs.outermost_inlined;
        self.resolver.innermost_frame = needs.innermost_frame;
        self.resolver.without_functions = needs.without_functions;
        self
    }

    pub fn new(symbols: Option<SharedSymbols>) -> Self {
        Pass {
            resolver: Resolver::new(symbols),
            tracepoints: Tracepoints::default(),
            frames: Vec::new(),
            branches: Vec::new(),
            counters: Counters::default(),
            increases: Vec::new(),
            innermost: InnermostWeights::default(),
            last: Last::default(),
            report: Report::default(),
        }
    }

    /// Sees a sample that another pass resolves.
    #[inline]
    pub fn follow(&mut self, sample: &Sample<'_>) {
        self.increases.clear();
        count(sample, &mut self.counters, &mut self.increases);
    }

    /// Resolves a sample, which [`resolved`](Self::resolved) then returns.
    pub fn resolve(&mut self, sample: &Sample<'_>, needs: Needs, limits: &Limits) -> Result<()> {
        let Pass {
            resolver,
            tracepoints,
            frames,
            branches,
            counters,
            increases,
            innermost,
            last,
            report,
        } = self;
        increases.clear();
        let has_counters = count(sample, counters, increases);
        resolver.before_exec = needs.before_exec;
        branches.clear();
        if needs.branches {
            let resolved = sample.branches().map(|branch| {
                let from = resolver.resolve(sample, &branch.from);
                (from, resolver.resolve(sample, &branch.to))
            });
            branches.extend(resolved);
        }
        let data_address = match needs.data_address {
            true => sample.data_address(),
            false => None,
        };
        let data_address = data_address.map(|frame| resolver.resolve(sample, &frame));
        tracepoints.has_plugin = needs.scheduler_plugin;
        let has_text = needs
            .tracepoints
            .is_some_and(|like| tracepoints.print(sample, like, resolver.symbols.as_ref()));
        frames.clear();
        if !needs.without_frames {
            resolver.frames(sample, frames);
        }
        if let Some(frame) = frames.first()
            && resolver.symbols.is_some()
            && !resolver.without_functions
        {
            innermost.add(sample, frame);
        }
        report.frames = report.frames.saturating_add(frames.len() as u64);
        report.unnamed = report.unnamed.saturating_add(unnamed(frames));
        // What the sink needs may change with the events of a stream, but not what is searched.
        report.without_functions = resolver.without_functions;
        report.samples = report.samples.saturating_add(1);
        let is_guest = is_guest(sample.mode());
        report.guests = report.guests.saturating_add(u64::from(is_guest));
        *last = Last {
            data_address,
            has_text,
            has_counters,
        };
        resolver.tables.check(limits)
    }

    /// Returns the sample that was resolved last.
    #[inline]
    pub fn resolved<'a>(&'a self, sample: Sample<'a>) -> ResolvedSample<'a> {
        let last = self.last;
        ResolvedSample {
            sample,
            frames: &self.frames,
            branches: &self.branches,
            data_address: last.data_address,
            tracepoint: last.has_text.then_some(&self.tracepoints.text),
            counters: last.has_counters.then_some(&self.increases),
            tables: &self.resolver.tables,
        }
    }
}

/// Passes the counters in a sample to `counters`, and appends their increases. Returns whether samples of
/// the event contain any.
#[inline]
fn count(sample: &Sample<'_>, counters: &mut Counters, increases: &mut Vec<(usize, u64)>) -> bool {
    let attr = sample.attr();
    let Some(attr) = attr.filter(|attr| attr.sample_type.has(SampleType::READ)) else {
        return false;
    };
    let is_per_thread = attr.flags.inherit() == 1;
    let tid = sample.tid().filter(|_| is_per_thread);
    let tid = tid.map(|tid| tid.tid);
    let values = sample.sample_view().counters();
    counters.see(sample.recording(), values, tid, increases);
    true
}

/// Returns what all passes over parts of the samples resolved. `session` is that of one of them after the
/// last record.
pub(crate) fn report(passes: &[Pass], session: &Session, recording: &Recording) -> Report {
    let Some(first) = passes.first() else {
        return Report::default();
    };
    let symbols = first.resolver.symbols.as_ref().map(SharedSymbols::read);
    let symbols = symbols.as_deref();
    let unresolved = symbols.map(Symbolizer::unresolved).unwrap_or_default();
    let sum = |of: fn(&Report) -> u64| {
        let numbers = passes.iter().map(|pass| of(&pass.report));
        numbers.fold(0, u64::saturating_add)
    };
    let innermost = passes
        .iter()
        .map(|pass| (&pass.innermost, &pass.resolver.tables));
    Report {
        samples: sum(|report| report.samples),
        frames: sum(|report| report.frames),
        unnamed: sum(|report| report.unnamed),
        guests: sum(|report| report.guests),
        without_functions: passes.iter().any(|pass| pass.report.without_functions),
        on_huge_pages: session
            .on_huge_pages()
            .map(|dso| dso.name.to_vec())
            .collect(),
        named: named_weights(innermost, session, recording, &unresolved),
        unresolved,
        searched: symbols.map(Symbolizer::searched).unwrap_or_default(),
        without_debug_info: symbols
            .map(Symbolizer::without_debug_info)
            .unwrap_or_default(),
        verified: symbols.map(Symbolizer::verified).unwrap_or_default(),
        // Each of them has seen all counters.
        restarted_counters: first.counters.restarted(),
    }
}
