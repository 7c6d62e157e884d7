//! The pass over the samples, and the interface of all formats.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::attr::SampleType;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Limits, RecordRef, RecordSource, RecordingReader};
use perfdata_core::record::CpuMode;
use perfdata_session::{Dso, DsoKind, Frame, Mapping, MappingId, Sample, Samples};
use perfdata_symbols::{Symbolizer, Unresolved, perf_map};
use perfdata_tracepoint::Like;

use crate::counters::Counters;
use crate::error::Result;
use crate::kept_stacks::{KeptId, KeptStacks};
use crate::places::PlaceId;
use crate::tables::{Function, FunctionId, Module, ModuleId, Tables};
use crate::tracepoints::Tracepoints;

/// Maximum number of addresses whose functions are remembered.
const MOST_ADDRESSES: usize = 1 << 19;

/// `PROT_EXEC` on all architectures.
const PROT_EXEC: u32 = 4;

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
    /// Offset of the address in the function, in bytes; 0 without a function, and for inlined ones.
    pub function_offset: u64,
    /// Whether the function is inlined: its caller is the next frame, at the same address.
    pub is_inlined: bool,
    /// The line in the source file of the function, from 1; 0 if it is not known.
    pub line: u32,
    /// The number of the place, if it has one.
    pub(crate) place: Option<PlaceId>,
}

impl ResolvedFrame {
    /// Returns a frame about whose address nothing is known.
    pub(crate) fn unmapped(address: u64, mode: CpuMode) -> Self {
        ResolvedFrame {
            address,
            mode,
            is_return: false,
            mapping: None,
            module: None,
            function: None,
            function_offset: 0,
            is_inlined: false,
            line: 0,
            place: None,
        }
    }

    fn set(&mut self, place: PlaceId, known: &Known) {
        self.place = Some(place);
        self.module = Some(known.module);
        self.function = known.function.map(|(id, _)| id);
        self.function_offset = known.function.map_or(0, |(_, offset)| offset);
        self.line = known.line;
    }
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
    /// The number of the stack, if it repeats.
    pub(crate) stack: Option<KeptId>,
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
    /// Frames without a mapping have the mapping that perf finds
    /// ([`Frame::before_exec`]).
    pub before_exec: bool,
    /// The counts of `perf stat record`: then a recording without samples has content.
    pub counts: bool,
    /// The frames are not needed: samples have none.
    pub without_frames: bool,
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
    /// Objects with addresses that have no names.
    pub unresolved: Vec<Unresolved>,
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
    let limits = samples.session().limits();
    sink.begin(samples.source().container_layout().container());
    let mut pass = Pass::new(symbols);
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
    Ok(pass.finish())
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
            pass: Pass::new(symbols),
        }
    }

    /// Returns the samples with what is needed in addition to the frames. By default, nothing is.
    #[must_use]
    pub fn with_needs(self, needs: Needs) -> Self {
        ResolvedSamples { needs, ..self }
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
        self.pass.finish()
    }
}

/// Resolves samples one after the other.
#[derive(Debug)]
struct Pass {
    resolver: Resolver,
    tracepoints: Tracepoints,
    stacks: KeptStacks,
    frames: Vec<ResolvedFrame>,
    branches: Vec<(ResolvedFrame, ResolvedFrame)>,
    counters: Counters,
    increases: Vec<(usize, u64)>,
    /// What is known about the last sample in addition to these lists.
    last: Last,
    report: Report,
}

/// What was resolved of the last sample.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    /// The stack, if it repeats. Otherwise, its frames are those of the pass.
    stack: Option<KeptId>,
    data_address: Option<ResolvedFrame>,
    /// Whether the text of a tracepoint is known.
    has_text: bool,
    has_counters: bool,
}

impl Pass {
    fn new(symbols: Option<Symbolizer>) -> Self {
        Pass {
            resolver: Resolver {
                symbols,
                tables: Tables::default(),
                known: HashMap::default(),
                places: Vec::new(),
                recent: vec![Recent::default(); RECENT].into(),
                modules: Vec::new(),
                before_exec: false,
            },
            tracepoints: Tracepoints::default(),
            stacks: KeptStacks::default(),
            frames: Vec::new(),
            branches: Vec::new(),
            counters: Counters::default(),
            increases: Vec::new(),
            last: Last::default(),
            report: Report::default(),
        }
    }

    /// Resolves a sample, which [`resolved`](Self::resolved) then returns.
    fn resolve(&mut self, sample: &Sample<'_>, needs: Needs, limits: &Limits) -> Result<()> {
        let Pass {
            resolver,
            tracepoints,
            stacks,
            frames,
            branches,
            counters,
            increases,
            last,
            report,
        } = self;
        increases.clear();
        let attr = sample.attr();
        let attr = attr.filter(|attr| attr.sample_type.has(SampleType::READ));
        if let Some(attr) = attr {
            let is_per_thread = attr.flags.inherit() == 1;
            let tid = sample.tid().filter(|_| is_per_thread);
            let tid = tid.map(|tid| tid.tid);
            let values = sample.sample_view().counters();
            counters.see(sample.recording(), values, tid, increases);
        }
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
        let has_text = needs
            .tracepoints
            .is_some_and(|like| tracepoints.print(sample, like, resolver.symbols.as_mut()));
        frames.clear();
        let stack = match needs.without_frames {
            true => None,
            false => resolver.stack(sample, stacks, frames),
        };
        let kept = stack.and_then(|stack| stacks.get(stack));
        let (frames, unnamed) = kept.unwrap_or_else(|| (frames, unnamed(frames)));
        report.frames = report.frames.saturating_add(frames.len() as u64);
        report.unnamed = report.unnamed.saturating_add(unnamed);
        report.samples = report.samples.saturating_add(1);
        *last = Last {
            stack,
            data_address,
            has_text,
            has_counters: attr.is_some(),
        };
        resolver.tables.check(limits)
    }

    /// Returns the sample that was resolved last.
    #[inline]
    fn resolved<'a>(&'a self, sample: Sample<'a>) -> ResolvedSample<'a> {
        let last = self.last;
        let kept = last.stack.and_then(|stack| self.stacks.get(stack));
        ResolvedSample {
            sample,
            frames: kept.map_or(&*self.frames, |(frames, _)| frames),
            branches: &self.branches,
            data_address: last.data_address,
            tracepoint: last.has_text.then_some(&self.tracepoints.text),
            counters: last.has_counters.then_some(&self.increases),
            tables: &self.resolver.tables,
            stack: last.stack,
        }
    }

    fn finish(self) -> Report {
        Report {
            unresolved: self
                .resolver
                .symbols
                .map(|symbols| symbols.unresolved())
                .unwrap_or_default(),
            ..self.report
        }
    }
}

/// Returns the number of frames without a function.
fn unnamed(frames: &[ResolvedFrame]) -> u64 {
    let unnamed = frames.iter().filter(|frame| frame.function.is_none());
    unnamed.count() as u64
}

/// An address in a mapping, as a frame of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    mapping: MappingId,
    address: u64,
    mode: CpuMode,
    is_return: bool,
    /// The process, for generated code.
    pid: Option<u32>,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two numbers are hashed faster than each part.
        let mapping = self.mapping.index() as u64;
        let rest = u64::from(self.mode.0) << 1 | u64::from(self.is_return);
        state.write_u64(self.address);
        state.write_u64(mapping << 20 ^ rest);
        if let Some(pid) = self.pid {
            state.write_u32(pid);
        }
    }
}

/// A place that was looked up, and its number.
#[derive(Debug, Clone, Copy, Default)]
struct Recent(Option<(Place, PlaceId)>);

/// Number of recent places, a power of two.
const RECENT: usize = 1 << 13;

impl Place {
    /// Returns its index among the recent places.
    #[inline]
    fn recent(&self) -> usize {
        // Multiplication by the golden ratio distributes neighbouring addresses and mappings.
        let mapping = (self.mapping.index() as u64).rotate_left(32);
        let hash = (self.address ^ mapping).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from(hash).unwrap_or_default() & (RECENT - 1)
    }
}

/// What is known about a place.
#[derive(Debug, Clone)]
struct Known {
    module: ModuleId,
    /// The function, and the offset in it.
    function: Option<(FunctionId, u64)>,
    /// The line in the function.
    line: u32,
    /// The functions that are inlined here, the innermost one first, and their lines.
    inlined: Option<Inlined>,
}

/// Resolves frames, and remembers the results.
#[derive(Debug)]
struct Resolver {
    symbols: Option<Symbolizer>,
    tables: Tables,
    known: HashMap<Place, PlaceId, RandomState>,
    /// What is known about each place: the first one has the number 1.
    places: Vec<Known>,
    recent: Box<[Recent]>,
    /// The module of each mapping that does not belong to a process, if no functions are searched.
    modules: Vec<Option<ModuleId>>,
    /// Whether frames without a mapping have the mapping of an earlier program.
    before_exec: bool,
}

impl Resolver {
    /// Resolves the frames of a sample: returns the number of its stack if it repeats; otherwise
    /// appends the frames.
    fn stack(
        &mut self,
        sample: &Sample<'_>,
        stacks: &mut KeptStacks,
        frames: &mut Vec<ResolvedFrame>,
    ) -> Option<KeptId> {
        stacks.set(&self.tables, self.before_exec);
        // A single frame is found as fast without.
        let key = match stacks.is_searched() {
            true => sample.frames_key().filter(|key| !key.words.is_empty()),
            false => None,
        };
        let Some(key) = key else {
            self.frames(sample, frames);
            return None;
        };
        let pid = sample.thread().map(|thread| thread.pid);
        let hash = stacks.hash(&key);
        let known = stacks.find(hash, &key, pid);
        if known.is_some() {
            return known;
        }
        self.frames(sample, frames);
        stacks.set(&self.tables, self.before_exec);
        let resolved = (frames.as_slice(), unnamed(frames));
        stacks.add(hash, &key, pid, resolved, &self.tables)
    }

    /// Appends the frames of a sample.
    fn frames(&mut self, sample: &Sample<'_>, frames: &mut Vec<ResolvedFrame>) {
        let epoch = self.tables.epoch;
        self.append(sample, frames);
        if self.tables.epoch != epoch {
            // The numbers of places have started again.
            frames.clear();
            self.append(sample, frames);
        }
    }

    fn append(&mut self, sample: &Sample<'_>, frames: &mut Vec<ResolvedFrame>) {
        for frame in sample.frames() {
            match self.known(&frame) {
                Some(resolved) => frames.push(resolved),
                None => self.resolve_into(sample, &frame, frames),
            }
        }
    }

    /// Returns a frame about which everything is known without a search, as about most frames.
    #[inline]
    fn known(&self, frame: &Frame<'_>) -> Option<ResolvedFrame> {
        let before_exec = frame.before_exec.filter(|_| self.before_exec);
        let mut resolved = ResolvedFrame {
            is_return: frame.is_return,
            mapping: frame.mapping.or(before_exec),
            ..ResolvedFrame::unmapped(frame.address, frame.mode)
        };
        let Some(mapping) = resolved.mapping else {
            // Code of the kernel may follow its mapping.
            let is_unmapped = frame.mode != CpuMode::KERNEL;
            return is_unmapped.then_some(resolved);
        };
        if let Some(&Some(module)) = self.modules.get(mapping.index()) {
            resolved.module = Some(module);
            return Some(resolved);
        }
        let place = Place {
            mapping,
            address: frame.address,
            mode: frame.mode,
            is_return: frame.is_return,
            pid: None,
        };
        let &Recent(Some((known, number))) = self.recent.get(place.recent())? else {
            return None;
        };
        let at = usize::try_from(number.get()).ok()?.checked_sub(1)?;
        let found = self.places.get(at).filter(|_| known == place)?;
        if found.inlined.is_some() {
            return None;
        }
        resolved.set(number, found);
        Some(resolved)
    }

    /// Resolves a frame, and appends it after those of the functions that are inlined there.
    fn resolve_into(
        &mut self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
        frames: &mut Vec<ResolvedFrame>,
    ) {
        let (resolved, inlined) = self.resolve_all(sample, frame);
        if let Some(inlined) = inlined {
            frames.extend(inlined.iter().map(|&(function, line)| ResolvedFrame {
                function: Some(function),
                function_offset: 0,
                is_inlined: true,
                line,
                place: None,
                ..resolved
            }));
        }
        frames.push(resolved);
    }

    /// Resolves a frame to the function of its address.
    fn resolve(&mut self, sample: &Sample<'_>, frame: &Frame<'_>) -> ResolvedFrame {
        self.resolve_all(sample, frame).0
    }

    fn resolve_all(
        &mut self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
    ) -> (ResolvedFrame, Option<Inlined>) {
        let mut frame = *frame;
        if self.before_exec {
            frame.mapping = frame.mapping.or(frame.before_exec);
        }
        if let Some(behind) = sample.behind_kernel(&frame) {
            let resolved = self.resolve_mapped(sample, &behind);
            if resolved.0.function.is_some() {
                return resolved;
            }
        }
        self.resolve_mapped(sample, &frame)
    }

    /// Resolves a frame in its mapping.
    fn resolve_mapped(
        &mut self,
        sample: &Sample<'_>,
        frame: &Frame<'_>,
    ) -> (ResolvedFrame, Option<Inlined>) {
        let mut resolved = ResolvedFrame {
            is_return: frame.is_return,
            mapping: frame.mapping,
            ..ResolvedFrame::unmapped(frame.address, frame.mode)
        };
        let Some(id) = frame.mapping else {
            return (resolved, None);
        };
        if let Some(&Some(module)) = self.modules.get(id.index()) {
            resolved.module = Some(module);
            return (resolved, None);
        }
        let mut place = Place {
            mapping: id,
            address: frame.address,
            mode: frame.mode,
            is_return: frame.is_return,
            pid: None,
        };
        let recent = place.recent();
        if let Some(&Recent(Some((known, number)))) = self.recent.get(recent)
            && known == place
        {
            return self.known_at(number, resolved);
        }
        let (Some(mapping), Some(dso)) = (frame.mapping(), frame.dso()) else {
            return (resolved, None);
        };
        let pid = sample.thread().map(|thread| thread.pid);
        place.pid = pid.filter(|_| dso.kind == DsoKind::Anonymous);
        if let Some(&number) = self.known.get(&place) {
            self.set_recent(place, number);
            return self.known_at(number, resolved);
        }
        let pid = place.pid;
        let module = self.tables.module_of((mapping.dso, pid), || Module {
            name: shown_name(dso, &mapping, pid),
            kind: dso.kind,
            build_id: frame.build_id(),
        });
        let symbols = self.symbols.as_mut();
        let Some(symbols) = symbols else {
            resolved.module = Some(module);
            if dso.kind != DsoKind::Anonymous {
                if self.modules.len() <= id.index() {
                    self.modules.resize(id.index().saturating_add(1), None);
                }
                if let Some(known) = self.modules.get_mut(id.index()) {
                    *known = Some(module);
                }
            }
            return (resolved, None);
        };
        let mut inlined = symbols.source_frames(sample, frame);
        let own = inlined.pop().unwrap_or_default();
        let found = symbols.locate(sample, frame);
        let function = found.and_then(|found| {
            let key = ((found.object, found.index), own.file.clone());
            let make = || {
                let symbol = symbols.symbol(found)?;
                Some(Function {
                    name: symbol.demangled().as_ref().into(),
                    system_name: symbol.name.into(),
                    file: own.file.clone(),
                    start_line: own.start_line,
                })
            };
            Some((self.tables.function_of(key, make)?, found.offset))
        });
        // perf shows neither of them at an address without a symbol.
        let is_known = function.is_some();
        let inlined = inlined.iter().filter(|_| is_known).filter_map(|frame| {
            let id = self.tables.inlined_function(module, frame)?;
            Some((id, frame.line))
        });
        let inlined: Vec<(FunctionId, u32)> = inlined.collect();
        let known = Known {
            module,
            function,
            line: if is_known { own.line } else { 0 },
            inlined: (!inlined.is_empty()).then(|| inlined.into()),
        };
        if self.places.len() >= MOST_ADDRESSES {
            self.known.clear();
            self.places.clear();
            self.recent.fill(Recent::default());
            self.tables.epoch = self.tables.epoch.wrapping_add(1);
        }
        self.places.push(known);
        let number = u32::try_from(self.places.len()).ok();
        let Some(number) = number.and_then(PlaceId::new) else {
            return (resolved, None);
        };
        self.known.insert(place, number);
        self.set_recent(place, number);
        self.known_at(number, resolved)
    }

    /// Remembers a place. That of generated code depends on the process.
    fn set_recent(&mut self, place: Place, number: PlaceId) {
        if place.pid.is_none()
            && let Some(recent) = self.recent.get_mut(place.recent())
        {
            *recent = Recent(Some((place, number)));
        }
    }

    /// Returns a frame with what is known about its place, and the functions that are inlined there.
    #[inline]
    fn known_at(
        &self,
        number: PlaceId,
        mut resolved: ResolvedFrame,
    ) -> (ResolvedFrame, Option<Inlined>) {
        let at = usize::try_from(number.get().saturating_sub(1)).ok();
        let Some(known) = at.and_then(|at| self.places.get(at)) else {
            return (resolved, None);
        };
        resolved.set(number, known);
        (resolved, known.inlined.clone())
    }
}

/// The functions that are inlined at an address, and their lines.
type Inlined = Arc<[(FunctionId, u32)]>;

/// Returns perf's name for a DSO. Executable memory that is not a file has the name of the list of
/// its symbols (tools/perf/util/map.c, `map__new`).
fn shown_name(dso: &Dso, mapping: &Mapping, pid: Option<u32>) -> Box<[u8]> {
    let is_executable = match mapping.prot {
        Some(prot) => prot & PROT_EXEC != 0,
        None => mapping.is_executable,
    };
    let has_list = match dso.name.starts_with(b"[") {
        true => dso.name.starts_with(b"[stack") || dso.name.starts_with(b"[heap]"),
        // perf regards a file in memory as a file.
        false => !dso.name.starts_with(b"/memfd:"),
    };
    match pid.filter(|_| is_executable && has_list) {
        Some(pid) => perf_map::path(pid)
            .into_os_string()
            .into_encoded_bytes()
            .into(),
        None => dso.name.clone(),
    }
}
