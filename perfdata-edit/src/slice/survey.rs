//! The first pass over a recording: decides for every record, in the order of time, whether it
//! belongs to the slice.

mod conclusion;
mod task;

use std::collections::VecDeque;

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, SampleTime, Section};
use perfdata_core::names::EventNames;
use perfdata_core::read::{ByTime, Limits, RecordRef};
use perfdata_core::record::{
    Body, RawRecord, Record, RecordType, SampleView, Tid, deferred_cookie, is_known_time, is_moment,
};
use perfdata_session::Machine;

use super::aux_data::AuxData;
use super::by::By;
use super::counters::CounterOrder;
use super::decisions::{Decisions, Part};
use super::deferred::{Chain, Deferred};
use super::lists::Patterns;
use super::parts::{Facts, Key, Parts};
use super::processes::Processes;
use super::related::Related;
use super::sample_runs::SampleRuns;
use super::select::{Conditions, Select, of_counters};
use super::tasks::Tasks;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{BoxedSource, InputSource};
use perfdata_convert::pipeline::to_parts::PartNumber;
use perfdata_convert::support::SampleTimes;

/// A sample that meets the conditions, while it is not known whether it is one of the last.
#[derive(Debug)]
struct Undecided {
    number: u64,
    facts: Facts,
    task: Option<(Machine, u32)>,
    /// Thread and cookie of its deferred callchain.
    cookie: Option<(u32, u64)>,
    /// The keys and processes of other threads that it names.
    named: Vec<(Key, u32)>,
}

/// The first pass.
struct Survey<'a> {
    select: &'a Select,
    conditions: Conditions,
    limits: Limits,
    decisions: Decisions,
    tasks: Tasks,
    related: Related,
    processes: Processes,
    deferred: Deferred,
    aux: AuxData,
    /// The parts into which the samples are divided.
    parts: Option<Parts>,
    event_names: Vec<Vec<u8>>,
    /// The times of all samples.
    times: SampleTimes,
    /// EXIT records change the number of running threads that perf derives from SWITCH records.
    has_switches: bool,
    /// Number of samples that meet the conditions, and of those that are left of each n-th.
    matched: u64,
    counted: u64,
    last: VecDeque<Undecided>,
    /// The runs of samples, if parts of the input can be skipped.
    runs: Option<SampleRuns>,
    /// The samples of all parts so far.
    all: Part,
}

impl Decisions {
    /// Reads `source` and decides. The samples that `select` describes are divided into parts `by`
    /// something; without it, they are one part.
    pub(crate) fn of(
        select: &Select,
        by: Option<By>,
        source: &InputSource,
        recording: &Recording,
    ) -> Result<Self> {
        let mut names = EventNames::of(recording);
        let mut bounds = match recording.feature(FeatureId::SAMPLE_TIME) {
            Some(Ok(Section {
                value: Feature::SampleTime(times),
                ..
            })) if times.last != 0 => Some(times),
            _ => None,
        };
        let has_names = select.events.is_some() || by == Some(By::Event);
        let is_pipe_of_names =
            has_names && !recording.features.contains_key(&FeatureId::EVENT_DESC);
        if is_pipe_of_names || select.needs_bounds() && bounds.is_none() {
            let found = read_bounds(source, recording, &mut names)?;
            bounds = bounds.or(found);
        }
        select.check(by, recording, &names)?;
        let preferring;
        let select = match &select.comms {
            Some(comms) if comms.have_wildcards() => {
                preferring = Select {
                    comms: Some(preferring_names(comms, source, recording)?),
                    ..select.clone()
                };
                &preferring
            }
            _ => select,
        };
        let ranges = match &select.times {
            None => None,
            Some(times) => {
                let none = || Error::Refused("no sample has a time".into());
                let unused = SampleTime { first: 0, last: 0 };
                let bounds = match select.needs_bounds() {
                    true => bounds.ok_or_else(none)?,
                    false => unused,
                };
                Some(times.resolve(&bounds, select.relative))
            }
        };
        let conditions = Conditions::new(select, ranges, recording, &names)?;
        let has_switches = recording
            .events
            .iter()
            .any(|event| event.attr.flags.context_switch() != 0);
        let mut survey = Survey {
            select,
            conditions,
            limits: source.limits(),
            decisions: Decisions::default(),
            tasks: Tasks::default(),
            related: Related::default(),
            processes: Processes::default(),
            deferred: Deferred::new(select.last.is_some()),
            aux: AuxData::default(),
            parts: by.map(Parts::new),
            times: SampleTimes::default(),
            event_names: (0..recording.events.len())
                .map(|at| names.get(recording, at).unwrap_or_default().into_owned())
                .collect(),
            has_switches,
            matched: 0,
            counted: 0,
            last: VecDeque::new(),
            runs: None,
            all: Part::default(),
        };
        let reader = open(source)?;
        let is_plain = source.place_of_records(reader.container_layout()).is_some();
        survey.runs = (is_plain && by.is_none()).then(SampleRuns::default);
        survey.read(reader)?;
        survey.finish()
    }
}

/// Returns the patterns, which prefer the names of threads.
fn preferring_names(
    comms: &Patterns,
    source: &InputSource,
    recording: &Recording,
) -> Result<Patterns> {
    let mut comms = comms.clone();
    let is_comm = |kind| kind == RecordType::COMM;
    source.each_record_of(recording, is_comm, |record, now| {
        if let Body::Comm(comm) = decode(record, now)?.body {
            comms.see_name(comm.comm.text());
        }
        Ok(())
    })?;
    Ok(comms)
}

/// Opens the input again.
fn open(source: &InputSource) -> Result<BoxedSource> {
    source
        .reopen()?
        .ok_or_else(|| Error::Refused("an input that cannot be read twice cannot be sliced".into()))
}

/// Returns the times of the first and the last sample, and reads the names of events.
fn read_bounds(
    source: &InputSource,
    recording: &Recording,
    names: &mut EventNames,
) -> Result<Option<SampleTime>> {
    let mut bounds: Option<(u64, u64)> = None;
    let mut place = recording.events.time_place();
    source.each_record(recording, |record, now| {
        if record.kind != RecordType::SAMPLE {
            if names.see(record) {
                names.update(now);
            }
            place = now.events.time_place();
            return Ok(());
        }
        // Most times are between others. Then it does not matter whether the event is known.
        if let (Some((first, last)), Some(place)) = (bounds, place)
            && let Some(time) = record.word(place)
            && (first..=last).contains(&time)
        {
            return Ok(());
        }
        let time = now.events.sample_time(record);
        if let Some(time) = time.filter(|&time| is_moment(time)) {
            let (first, last) = bounds.unwrap_or((time, time));
            bounds = Some((first.min(time), last.max(time)));
        }
        Ok(())
    })?;
    Ok(bounds.map(|(first, last)| SampleTime { first, last }))
}

impl Survey<'_> {
    fn read(&mut self, source: BoxedSource) -> Result<()> {
        let mut records = ByTime::new(source);
        let mut order = CounterOrder::default();
        let mut failed = None;
        loop {
            let Survey {
                conditions,
                decisions,
                deferred,
                select,
                limits,
                parts,
                times,
                runs,
                ..
            } = self;
            // Samples that the conditions exclude need not wait for their order.
            let wanted = |number: u64, record: &RecordRef<'_>| {
                if record.kind != RecordType::SAMPLE {
                    if let Some(parts) = parts {
                        parts.count(number);
                    }
                    return true;
                }
                if let Some(runs) = runs {
                    runs.see(number, record);
                }
                let events = &record.recording().events;
                let sample = events.look(record);
                if let Some((event, view)) = &sample
                    && let Err(error) = order.see(record, events, *event, view)
                {
                    failed.get_or_insert(error);
                }
                if (parts.is_some() || runs.is_some())
                    && let Err(error) = times.see(record, record.recording(), *limits)
                {
                    failed.get_or_insert(error.into());
                }
                let is_wanted = select.invert
                    || sample.is_none_or(|(event, view)| conditions.are_met(event, &view));
                if !is_wanted {
                    decisions.dropped.insert(number);
                    decisions.other_samples = decisions.other_samples.saturating_add(1);
                    note_deferred(deferred, record);
                }
                is_wanted
            };
            let next = records.next_where(wanted)?.is_some();
            if let Some(error) = failed.take() {
                return Err(error);
            }
            let (true, Some(number), Some(record)) = (next, records.number(), records.current())
            else {
                return Ok(());
            };
            self.see(number, &record)?;
        }
    }

    fn see(&mut self, number: u64, record: &RecordRef<'_>) -> Result<()> {
        if record.kind == RecordType::SAMPLE {
            return self.sample(number, record);
        }
        let time = record.time().filter(|&time| is_known_time(time));
        if let Some(parts) = &mut self.parts {
            // The tool's own records have no time.
            let time = time.filter(|_| record.kind.is_kernel());
            let size = record.bytes.len() as u64;
            parts.record(number, time, size, record.kind.is_of_thread());
            self.check(record.offset)?;
        }
        match record.kind {
            kind if kind.is_of_thread() => return self.task(number, record, time),
            RecordType::CALLCHAIN_DEFERRED => return self.deferred(number, record, time),
            RecordType::LOST | RecordType::THROTTLE | RecordType::UNTHROTTLE => {
                if !self.select.invert && !self.conditions.has_time(time) {
                    self.decisions.dropped.insert(number);
                } else if let Some(parts) = &mut self.parts {
                    parts.belongs_to(number, None);
                }
                return Ok(());
            }
            RecordType::READ => return self.read_record(number, record, time),
            // It is about the whole recording, and has no time.
            RecordType::LOST_SAMPLES => {
                self.decisions.has_lost_samples = true;
                if let Some(parts) = &mut self.parts {
                    parts.belongs_to_last(number);
                }
            }
            RecordType::STAT | RecordType::STAT_ROUND if self.select.times.is_some() => {
                return Err(of_counters());
            }
            RecordType::AUXTRACE_INFO => self.decisions.has_aux_data = true,
            RecordType::AUXTRACE => {
                self.decisions.has_aux_data = true;
                self.aux.see(number, record)?;
                self.check(record.offset)?;
            }
            kind if kind.is_kernel() && self.is_after(time) => {
                self.decisions.dropped.insert(number);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a record at `time` is after the end of the slice.
    fn is_after(&self, time: Option<u64>) -> bool {
        if self.select.invert {
            return false;
        }
        let is_full = self.select.last.is_none()
            && self.select.first.is_some_and(|first| self.counted >= first);
        let is_after_last = is_full
            && match (time, self.all.last) {
                (Some(time), Some(last)) => time > last,
                (time, None) => time.is_some(),
                (None, _) => false,
            };
        is_after_last || self.conditions.is_after(time)
    }

    /// Processes a READ record, which contains the counters of a task that ended.
    fn read_record(
        &mut self,
        number: u64,
        record: &RecordRef<'_>,
        time: Option<u64>,
    ) -> Result<()> {
        let Body::Read(read) = record.decode()?.body else {
            return Ok(());
        };
        let event = record.recording().events.of_record(record);
        let tid = Tid {
            pid: read.pid,
            tid: read.tid,
        };
        let is_selected = self.conditions.has_time(time)
            && event.is_none_or(|event| self.conditions.has_event(event))
            && (!self.select.has_threads() || self.tasks.matches(self.select, &tid));
        if !self.select.invert && !is_selected {
            self.decisions.dropped.insert(number);
            return Ok(());
        }
        // It does not contain a CPU.
        let key = self.key(event, Some(tid), None);
        if let Some(parts) = &mut self.parts {
            parts.belongs_to(number, Some(key).filter(|&key| key != Key::Other));
        }
        Ok(())
    }

    /// Processes a deferred callchain.
    fn deferred(&mut self, number: u64, record: &RecordRef<'_>, time: Option<u64>) -> Result<()> {
        let decoded = record.decode()?;
        let tid = decoded.sample_id.and_then(|id| id.tid);
        let (Body::CallchainDeferred(chain), Some(tid)) = (&decoded.body, tid) else {
            return Ok(());
        };
        match self.deferred.chain((tid.tid, chain.cookie), number) {
            Chain::In(parts) => belongs_to(&mut self.decisions, &mut self.parts, number, &parts),
            Chain::Unknown if self.is_after(time) => self.decisions.dropped.insert(number),
            Chain::Unknown | Chain::Later => {}
        }
        Ok(())
    }

    /// Returns the key of a sample of an event, a thread and a CPU.
    fn key(&mut self, event: Option<usize>, tid: Option<Tid>, cpu: Option<u32>) -> Key {
        let by = self.parts.as_ref().map(Parts::by);
        let key = match by {
            Some(By::Pid) => tid.map(|tid| Key::Pid(self.tasks.pid_of(&tid))),
            Some(By::Tid) => tid.map(|tid| Key::Tid(tid.tid)),
            Some(By::Comm) => tid.and_then(|tid| Some(Key::Comm(self.tasks.comm_of(&tid)?))),
            Some(By::Cpu) => cpu.map(Key::Cpu),
            Some(By::Event) => event.map(Key::Event),
            _ => None,
        };
        key.unwrap_or(Key::Other)
    }

    fn sample(&mut self, number: u64, record: &RecordRef<'_>) -> Result<()> {
        let size = record.bytes.len() as u64;
        let Some((event, view)) = record.recording().events.look(record) else {
            // The event is not known. perf does not read such a sample either.
            let facts = Facts {
                time: None,
                size,
                key: Key::Other,
            };
            self.place(number, &facts)?;
            return Ok(());
        };
        let tid = view.tid();
        let mut is_matched = self.conditions.are_met(event, &view);
        if is_matched
            && self.select.has_threads()
            && tid.is_some_and(|tid| !self.tasks.matches(self.select, &tid))
        {
            let mut named = self.related.tasks_of(record.recording(), event, &view);
            let is_named = named.any(|tid| self.tasks.names(self.select, tid));
            is_matched = is_named && self.select.related;
            if is_named && !is_matched {
                let others = &mut self.decisions.related_samples;
                *others = others.saturating_add(1);
            }
        }
        let facts = Facts {
            time: view.time().filter(|&time| is_known_time(time)),
            size,
            key: self.key(Some(event), tid, view.cpu()),
        };
        let sample = Undecided {
            number,
            facts,
            task: tid.map(|tid| (Machine::HOST, self.tasks.pid_of(&tid))),
            cookie: deferred_cookie(view.callchain())
                .zip(tid)
                .map(|(cookie, tid)| (tid.tid, cookie)),
            named: self.named(record.recording(), event, &view, facts.key),
        };
        if !is_matched || !self.is_nth() {
            self.decide(sample, false)?;
            return self.check(record.offset);
        }
        let at = self.counted;
        self.counted = self.counted.saturating_add(1);
        match (self.select.first, self.select.last) {
            (None, None) => self.decide(sample, true)?,
            (Some(first), _) if at < first => self.decide(sample, true)?,
            (_, None) => self.decide(sample, false)?,
            (_, Some(last)) => {
                self.last.push_back(sample);
                if self.last.len() as u64 > last
                    && let Some(sample) = self.last.pop_front()
                {
                    self.decide(sample, false)?;
                }
            }
        }
        self.check(record.offset)
    }

    /// Counts a sample that meets the conditions; returns whether it is each n-th.
    fn is_nth(&mut self) -> bool {
        let at = self.matched;
        self.matched = self.matched.saturating_add(1);
        self.select
            .every
            .is_none_or(|every| at.checked_rem(every.get()) == Some(0))
    }

    /// Decides about a sample that is selected, or not, without inversion.
    fn decide(&mut self, sample: Undecided, is_selected: bool) -> Result<()> {
        let is_kept = is_selected != self.select.invert;
        if !is_kept {
            if let Some(key) = sample.cookie {
                self.deferred.sample(key, None);
            }
            let others = &mut self.decisions.other_samples;
            *others = others.saturating_add(1);
            self.decisions.dropped.insert(sample.number);
            return Ok(());
        }
        let part = self.place(sample.number, &sample.facts)?;
        self.is_in(&sample, part);
        if sample.named.is_empty() {
            return Ok(());
        }
        if !self.select.related {
            let others = &mut self.decisions.related_samples;
            *others = others.saturating_add(1);
            return Ok(());
        }
        for &(key, _) in &sample.named {
            let Some(parts) = &mut self.parts else {
                break;
            };
            let part = parts.sample_also(sample.number, key, sample.facts.time)?;
            self.is_in(&sample, part);
        }
        Ok(())
    }

    /// Notes that a part contains a sample.
    fn is_in(&mut self, sample: &Undecided, part: PartNumber) {
        if let Some(key) = sample.cookie {
            self.deferred.sample(key, Some(part));
        }
        if let Some((machine, pid)) = sample.task {
            self.processes.sample(machine, pid, part);
        }
        if self.select.related {
            for &(_, pid) in &sample.named {
                self.processes.sample(Machine::HOST, pid, part);
            }
        }
    }

    /// Returns the keys and processes of the threads that a sample names, except `own`, if samples are
    /// divided by threads.
    fn named(
        &mut self,
        recording: &Recording,
        event: usize,
        view: &SampleView<'_>,
        own: Key,
    ) -> Vec<(Key, u32)> {
        let mut named: Vec<(Key, u32)> = Vec::new();
        let Some(by) = self.parts.as_ref().map(Parts::by) else {
            return named;
        };
        if !by.is_of_threads() {
            return named;
        }
        for tid in self.related.tasks_of(recording, event, view) {
            let thread = self.tasks.named(tid);
            let pid = thread.map_or(tid, |(pid, _)| pid);
            let key = match by {
                By::Pid => Key::Pid(pid),
                By::Tid => Key::Tid(tid),
                _ => thread.map_or(Key::Other, |(_, comm)| Key::Comm(comm)),
            };
            let is_known = named.iter().any(|&(known, _)| known == key);
            if key != own && key != Key::Other && !is_known {
                named.push((key, pid));
            }
        }
        named
    }

    /// Adds a sample to its part.
    fn place(&mut self, number: u64, facts: &Facts) -> Result<PartNumber> {
        let all = &mut self.all;
        all.samples = all.samples.saturating_add(1);
        if let Some(time) = facts.time {
            all.first = Some(all.first.map_or(time, |first| first.min(time)));
            all.last = all.last.max(Some(time));
        }
        match &mut self.parts {
            Some(parts) => parts.sample(number, facts, self.processes.living()),
            None => Ok(0),
        }
    }

    fn check(&self, offset: u64) -> Result<()> {
        let held = self
            .processes
            .held()
            .saturating_add(self.tasks.held())
            .saturating_add(self.deferred.held())
            .saturating_add(self.aux.held())
            .saturating_add(self.parts.as_ref().map_or(0, Parts::held))
            .saturating_add(self.runs.as_ref().map_or(0, SampleRuns::held))
            .saturating_add(self.last.len().saturating_mul(size_of::<Undecided>()));
        let checked = self.limits.check_metadata("tasks and samples", held as u64);
        Ok(checked.map_err(|error| error.at(offset))?)
    }
}

/// Makes a record part of only these parts. If there is none, it is dropped.
fn belongs_to(
    decisions: &mut Decisions,
    parts: &mut Option<Parts>,
    number: u64,
    its: &[PartNumber],
) {
    if its.is_empty() {
        decisions.dropped.insert(number);
    } else if let Some(parts) = parts {
        parts.belongs_to_parts(number, its);
    }
}

/// Notes that a sample with a deferred callchain is dropped.
fn note_deferred(deferred: &mut Deferred, record: &RecordRef<'_>) {
    if let Some(view) = record.sample_view()
        && let (Some(cookie), Some(tid)) = (deferred_cookie(view.callchain()), view.tid())
    {
        deferred.sample((tid.tid, cookie), None);
    }
}

/// Returns the decoded record, for the second pass.
pub(super) fn decode(record: &RawRecord<'_>, recording: &Recording) -> Result<Record> {
    Ok(Record::decode(record, &recording.events.layout_of(record))?)
}
