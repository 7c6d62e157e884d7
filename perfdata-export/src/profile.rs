//! The content of a profile of pprof or OpenTelemetry: sums of samples with equal stacks, and the
//! tables of what the stacks contain.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use perfdata_core::record::{Body, CpuMode};
use perfdata_session::{CommId, DsoKind, Mapping, MappingId, Sample, Session};

use crate::counts::{Counts, line};
use crate::error::Result;
use crate::events::{Counted, Events};
use crate::locations::{Location, Locations};
use crate::machine::Machine;
use crate::process_names::ProcessNames;
use crate::profile_parts::ProfileParts;
use crate::resolve::{ResolvedFrame, ResolvedSample};
use crate::shown::Interned;
use crate::tables::{Module, ModuleId};
use crate::text::push_text;

/// A label of samples. Samples with different labels are not added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Label {
    /// The process ID.
    Pid,
    /// The thread ID.
    Tid,
    /// The name of the thread.
    Comm,
    /// The CPU.
    Cpu,
    /// The path of the cgroup (`perf record --all-cgroups`), or its ID if no record contains the
    /// path.
    Cgroup,
    /// The CPU mode: `user`, `kernel`, `hypervisor`, `guest user` or `guest kernel`.
    Mode,
}

impl Label {
    /// All labels.
    pub const ALL: [Label; 6] = [
        Label::Pid,
        Label::Tid,
        Label::Comm,
        Label::Cpu,
        Label::Cgroup,
        Label::Mode,
    ];

    /// Returns the key of the label.
    pub fn key(self) -> &'static str {
        match self {
            Label::Pid => "pid",
            Label::Tid => "tid",
            Label::Comm => "comm",
            Label::Cpu => "cpu",
            Label::Cgroup => "cgroup",
            Label::Mode => "mode",
        }
    }

    /// Returns whether values are the numbers of strings.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Label::Comm | Label::Cgroup | Label::Mode)
    }

    /// Returns the number that represents a missing value: -1 is also the ID of a thread that has
    /// ended, and 0 is the number of the empty string.
    fn missing(self) -> u32 {
        match self {
            Label::Pid | Label::Tid | Label::Cpu => u32::MAX,
            Label::Comm | Label::Cgroup | Label::Mode => 0,
        }
    }

    /// Returns the value that a number of [`Profile::counts`] represents.
    pub(crate) fn value(self, number: u32) -> Option<LabelValue> {
        match self {
            Label::Pid | Label::Tid => Some(LabelValue::Number(number.cast_signed().into())),
            _ if number == self.missing() => None,
            Label::Cpu => Some(LabelValue::Number(number.into())),
            Label::Comm | Label::Cgroup | Label::Mode => Some(LabelValue::Text(number)),
        }
    }
}

/// The value of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LabelValue {
    /// The number of a string.
    Text(u32),
    Number(i64),
}

/// A module and its mapping.
type MappingKey = (Option<ModuleId>, Option<MappingId>);

/// A mapping that has locations.
#[derive(Debug)]
pub(crate) struct ProfileMapping {
    pub module: Option<ModuleId>,
    pub mapping: Option<Mapping>,
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub has_functions: bool,
    pub has_lines: bool,
    pub has_inlined: bool,
}

impl ProfileMapping {
    /// Returns a mapping that has no locations yet.
    pub fn new(module: Option<ModuleId>, mapping: Option<Mapping>) -> Self {
        let numbers = mapping.map(|mapping| (mapping.start, mapping.end, mapping.pgoff));
        let (start, end, offset) = numbers.unwrap_or_default();
        ProfileMapping {
            module,
            mapping,
            start,
            end,
            offset,
            has_functions: false,
            has_lines: false,
            has_inlined: false,
        }
    }
}

/// The table of strings. Number 0 is the empty one.
#[derive(Debug)]
pub(crate) struct Strings(pub Interned<Box<str>>);

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Strings(Interned::default());
        strings.intern(b"");
        strings
    }
}

impl Strings {
    /// Returns the number of a name.
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        let mut text = String::new();
        push_text(&mut text, name);
        self.0.number_of(text.as_str())
    }
}

/// The sums and tables of a profile.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub machine: Option<Machine>,
    pub labels: Vec<Label>,
    pub events: Events,
    /// The sums of each list of numbers: the event, the values of the labels, and the numbers of the
    /// locations from the sampled function to its outermost caller.
    pub counts: Counts,
    pub strings: Strings,
    pub locations: Locations,
    /// They are numbered from 1.
    pub mappings: Vec<ProfileMapping>,
    mapping_ids: HashMap<MappingKey, u32, RandomState>,
    /// The number of the first mapping that is the program of its thread.
    pub program: Option<u32>,
    /// Modules that are not the program of threads with a name.
    others: HashSet<(ModuleId, CommId), RandomState>,
    /// The last number of each mapping and its module.
    mapping_numbers: Vec<Option<(ModuleId, u32)>>,
    /// What was added of parts of the samples.
    pub(crate) parts: ProfileParts,
    /// The names of processes, if they are needed.
    pub processes: Option<ProcessNames>,
    /// The weight of the first sample of each event.
    pub periods: Vec<Option<u64>>,
    pub first_time: Option<u64>,
    pub last_time: u64,
    /// The numbers of the last sample.
    pub(crate) stack: Vec<u32>,
}

impl Profile {
    /// Returns an empty profile whose samples have labels.
    pub fn with_labels(mut labels: Vec<Label>) -> Self {
        labels.sort_unstable();
        labels.dedup();
        Profile {
            labels,
            ..Profile::default()
        }
    }

    /// Returns an empty profile whose samples have labels, and may be counted in several parts.
    pub fn in_parts(labels: Vec<Label>) -> Self {
        Profile {
            counts: Counts::in_parts(),
            ..Profile::with_labels(labels)
        }
    }

    /// Returns the profile with the names of processes.
    #[must_use]
    pub fn with_processes(self) -> Self {
        Profile {
            processes: Some(ProcessNames::default()),
            ..self
        }
    }

    /// Returns the time of day of the first sample in nanoseconds since 1970, if it is known.
    pub fn start(&self) -> Option<u64> {
        self.machine.as_ref()?.time_of_day(self.first_time?)
    }

    /// Returns the time from the first sample to the last one in nanoseconds.
    pub fn duration(&self) -> u64 {
        let first = self.first_time.unwrap_or(self.last_time);
        self.last_time.saturating_sub(first)
    }

    /// Adds a sample. Samples of dummy events are skipped.
    pub fn add(&mut self, resolved: &ResolvedSample<'_>) -> Result<()> {
        let Some(counted) = self.stack(resolved)? else {
            return Ok(());
        };
        let mut stack = std::mem::take(&mut self.stack);
        for (event, weight) in counted {
            self.count(&mut stack, event, weight)?;
        }
        self.stack = stack;
        Ok(())
    }

    /// Adds a weight to the sum of a stack, whose first number is that of its event.
    pub(crate) fn count(&mut self, stack: &mut [u32], event: u32, weight: u64) -> Result<()> {
        self.begin(stack, event, weight);
        self.counts.add(stack, weight, line)
    }

    /// Sets the numbers of a sample, of which the first one is that of an event, and returns what it
    /// counts; `None` for samples of dummy events.
    pub(crate) fn stack(&mut self, resolved: &ResolvedSample<'_>) -> Result<Option<Counted>> {
        let sample = &resolved.sample;
        self.machine
            .get_or_insert_with(|| Machine::of(sample.recording()));
        if let Some(processes) = &mut self.processes {
            processes.see(sample);
        }
        let counted = self.events.counted(resolved);
        if counted.is_empty() {
            return Ok(None);
        }
        if let Some(time) = sample.time() {
            let first = self.first_time.get_or_insert(time);
            *first = time.min(*first);
            self.last_time = self.last_time.max(time);
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        stack.push(0);
        for at in 0..self.labels.len() {
            if let Some(&label) = self.labels.get(at) {
                let value = self.value(label, sample)?;
                stack.push(value.unwrap_or_else(|| label.missing()));
            }
        }
        // Those of a process without any mapping may be code.
        let has_mappings = sample.has_mappings(CpuMode::USER);
        let mut rest = resolved.frames;
        while let Some(inlined) = rest.iter().position(|frame| !frame.is_inlined)
            && let Some((inlined, [frame, after @ ..])) = rest.split_at_checked(inlined)
        {
            rest = after;
            if has_mappings && frame.mapping.is_none() && frame.mode == CpuMode::USER {
                stack.push(self.locations.unmapped());
                continue;
            }
            let location = self.location(frame, inlined, sample.session());
            if self.program.is_none() {
                self.program = self.program_of(frame, location.mapping, resolved);
            }
            // The functions that are inlined at an address are always the same ones.
            let lines = inlined.iter().chain([frame]);
            let lines = lines.filter_map(|frame| Some((frame.function?, frame.line)));
            stack.push(self.locations.number(location, lines));
        }
        self.stack = stack;
        Ok(Some(counted))
    }

    /// Sets the event of a stack, whose number is the first one.
    fn begin(&mut self, stack: &mut [u32], event: u32, weight: u64) {
        if let Some(first) = stack.first_mut() {
            *first = event;
        }
        if let Ok(at) = usize::try_from(event) {
            if self.periods.len() <= at {
                self.periods.resize(at.saturating_add(1), None);
            }
            if let Some(period) = self.periods.get_mut(at) {
                period.get_or_insert(weight);
            }
        }
    }

    /// Numbers the events in the order of their attributes. Returns the new number of each old one,
    /// which the counts have.
    pub fn sort_events(&mut self) -> Vec<u32> {
        let numbers = self.events.sort();
        let old = std::mem::take(&mut self.periods);
        self.periods = vec![None; numbers.len()];
        for (&number, period) in numbers.iter().zip(old) {
            let at = usize::try_from(number).ok();
            if let Some(new) = at.and_then(|at| self.periods.get_mut(at)) {
                *new = period;
            }
        }
        numbers
    }

    /// Returns `mapping`, the number of a frame's mapping, if it is the program of its thread.
    fn program_of(
        &mut self,
        frame: &ResolvedFrame,
        mapping: u32,
        resolved: &ResolvedSample<'_>,
    ) -> Option<u32> {
        let id = frame.module?;
        let key = (id, resolved.sample.comm_id());
        if self.others.contains(&key) {
            return None;
        }
        let module = resolved.tables.module(id)?;
        if !is_program(module, resolved.sample.comm()) {
            self.others.insert(key);
            return None;
        }
        Some(mapping)
    }

    /// Returns the value of a sample's label: a number, or the number of a string.
    fn value(&mut self, label: Label, sample: &Sample<'_>) -> Result<Option<u32>> {
        Ok(match label {
            Label::Pid => sample.tid().map(|tid| tid.pid),
            Label::Tid => sample.tid().map(|tid| tid.tid),
            Label::Cpu => sample.cpu(),
            Label::Comm => Some(self.strings.intern(sample.comm())),
            Label::Cgroup => {
                let Body::Sample(decoded) = sample.record().decode()?.body else {
                    return Ok(None);
                };
                decoded.cgroup.map(|id| match sample.session().cgroup(id) {
                    Some(path) => self.strings.intern(path),
                    None => self.strings.intern(id.to_string().as_bytes()),
                })
            }
            Label::Mode => match sample.mode() {
                CpuMode::USER => Some("user"),
                CpuMode::KERNEL => Some("kernel"),
                CpuMode::HYPERVISOR => Some("hypervisor"),
                CpuMode::GUEST_USER => Some("guest user"),
                CpuMode::GUEST_KERNEL => Some("guest kernel"),
                _ => None,
            }
            .map(|name| self.strings.intern(name.as_bytes())),
        })
    }

    /// Returns the number of a frame's mapping, from 1; 0 without a module.
    fn mapping(&mut self, frame: &ResolvedFrame, session: &Session) -> u32 {
        let Some(module) = frame.module else { return 0 };
        let at = frame.mapping.map(MappingId::index);
        let known = at.and_then(|at| self.mapping_numbers.get(at).copied().flatten());
        if let Some((_, number)) = known.filter(|(of, _)| *of == module) {
            return number;
        }
        let key = (frame.module, frame.mapping);
        let number = match self.mapping_ids.get(&key) {
            Some(&known) => known,
            None => {
                let mapping = frame.mapping.and_then(|id| session.mapping(id));
                self.mappings
                    .push(ProfileMapping::new(frame.module, mapping));
                let number = u32::try_from(self.mappings.len()).unwrap_or(u32::MAX);
                self.mapping_ids.insert(key, number);
                number
            }
        };
        if let Some(at) = at {
            if self.mapping_numbers.len() <= at {
                self.mapping_numbers.resize(at.saturating_add(1), None);
            }
            if let Some(known) = self.mapping_numbers.get_mut(at) {
                *known = Some((module, number));
            }
        }
        number
    }

    /// Returns a frame's location. `inlined` are the frames of the functions that are inlined there.
    #[inline]
    fn location(
        &mut self,
        frame: &ResolvedFrame,
        inlined: &[ResolvedFrame],
        session: &Session,
    ) -> Location {
        let mapping = self.mapping(frame, session);
        if frame.function.is_some()
            && let Some(at) = mapping.checked_sub(1)
            && let Some(mapping) = usize::try_from(at)
                .ok()
                .and_then(|at| self.mappings.get_mut(at))
        {
            mapping.has_functions = true;
            mapping.has_inlined |= !inlined.is_empty();
            mapping.has_lines |= inlined.iter().chain([frame]).any(|frame| frame.line != 0);
        }
        Location {
            mapping,
            address: frame.address.saturating_sub(frame.is_return.into()),
            function: frame.function,
            is_kernel: matches!(frame.mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL),
        }
    }
}

/// Returns whether a module is the program of a thread with this name, which the kernel shortens to
/// 15 bytes (`TASK_COMM_LEN`).
fn is_program(module: &Module, comm: &[u8]) -> bool {
    let file = module.name.rsplit(|&byte| byte == b'/').next();
    let file = file.unwrap_or_default();
    module.kind == DsoKind::File && file.get(..15).unwrap_or(file) == comm
}
