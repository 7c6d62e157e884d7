//! The first pass over a recording: decides for every record, in the order of time, whether it
//! belongs to the slice.

use std::collections::{HashMap, HashSet, VecDeque};

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, SampleTime, Section};
use perfdata_core::names::EventNames;
use perfdata_core::read::{ByTime, Limits, RecordRef};
use perfdata_core::record::{
    Body, CpuMode, RawRecord, Record, RecordType, Task, Tid, deferred_cookie, is_known_time,
    is_moment,
};
use perfdata_session::Machine;

use super::aux_data::AuxData;
use super::deferred::Deferred;
use super::numbers::Bits;
use super::processes::{Needed, Of, Processes};
use super::select::{Conditions, Select, Sideband, of_counters};
use super::tasks::Tasks;
use super::time_ranges::TimeRange;
use crate::error::{Error, Result};
use crate::io::{BoxedSource, InputSource};

/// What the slice contains.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// The numbers of the records that it does not contain.
    pub(super) dropped: Bits,
    /// Number of its samples, and of the others.
    pub(super) samples: u64,
    pub(super) other_samples: u64,
    /// Number of records about tasks that it does not need.
    pub(super) left_out: u64,
    /// Names of objects that only such records map.
    pub(super) objects_left_out: HashSet<Box<[u8]>>,
    /// Whether there are LOST_SAMPLES records, AUX data, and counter values in samples.
    pub(super) has_lost_samples: bool,
    pub(super) has_aux_data: bool,
    /// The time from the first range to the last one, if AUX data of other times is not needed.
    pub(super) span: Option<TimeRange>,
}

/// A sample that meets the conditions, while it is not known whether it is one of the last.
#[derive(Debug)]
struct Undecided {
    number: u64,
    time: Option<u64>,
    task: Option<(Machine, u32)>,
    /// Thread and cookie of its deferred callchain.
    cookie: Option<(u32, u64)>,
}

/// The first pass.
struct Survey<'a> {
    select: &'a Select,
    conditions: Conditions,
    limits: Limits,
    decisions: Decisions,
    tasks: Tasks,
    processes: Processes,
    deferred: Deferred,
    aux: AuxData,
    /// EXIT records change the number of running threads that perf derives from SWITCH records.
    has_switches: bool,
    /// Number of samples that meet the conditions, and of those that are left of each n-th.
    matched: u64,
    counted: u64,
    last: VecDeque<Undecided>,
    /// Time of the first and the last sample of the slice so far.
    first_time: Option<u64>,
    last_time: Option<u64>,
}

impl Decisions {
    /// Reads `source` and decides.
    pub(super) fn of(select: &Select, source: &InputSource, recording: &Recording) -> Result<Self> {
        let mut names = EventNames::default();
        names.update(recording);
        let mut bounds = match recording.feature(FeatureId::SAMPLE_TIME) {
            Some(Ok(Section {
                value: Feature::SampleTime(times),
                ..
            })) if times.last != 0 => Some(times),
            _ => None,
        };
        let is_pipe_of_names =
            select.events.is_some() && !recording.features.contains_key(&FeatureId::EVENT_DESC);
        if is_pipe_of_names || select.needs_bounds() && bounds.is_none() {
            let found = read_bounds(source, recording, &mut names)?;
            bounds = bounds.or(found);
        }
        select.check(recording, &names)?;
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
            processes: Processes::default(),
            deferred: Deferred::new(select.last.is_some()),
            aux: AuxData::default(),
            has_switches,
            matched: 0,
            counted: 0,
            last: VecDeque::new(),
            first_time: None,
            last_time: None,
        };
        survey.read(open(source)?)?;
        survey.finish()
    }
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
    source.each_record(recording, |record, now| {
        if record.kind != RecordType::SAMPLE {
            names.see(record);
            if record.kind.is_metadata() || record.kind == RecordType::EVENT_UPDATE {
                names.update(now);
            }
        } else if let Some(time) = now
            .events
            .sample_time(record)
            .filter(|&time| is_moment(time))
        {
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
                ..
            } = self;
            // Samples that the conditions exclude need not wait for their order.
            let wanted = |number: u64, record: &RecordRef<'_>| {
                if record.kind != RecordType::SAMPLE {
                    return true;
                }
                if let Err(error) = order.see(record) {
                    failed.get_or_insert(error);
                }
                let is_wanted = select.invert || conditions.are_met(record, record.recording());
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
        let time = record.time().filter(|&time| is_known_time(time));
        match record.kind {
            RecordType::SAMPLE => return self.sample(number, record),
            RecordType::COMM
            | RecordType::FORK
            | RecordType::EXIT
            | RecordType::MMAP
            | RecordType::MMAP2
            | RecordType::NAMESPACES => return self.task(number, record, time),
            RecordType::CALLCHAIN_DEFERRED => {
                let decoded = record.decode()?;
                let tid = decoded.sample_id.and_then(|id| id.tid);
                if let (Body::CallchainDeferred(chain), Some(tid)) = (&decoded.body, tid) {
                    let is_after = self.is_after(time);
                    if self
                        .deferred
                        .chain((tid.tid, chain.cookie), number, is_after)
                    {
                        self.decisions.dropped.insert(number);
                    }
                }
                return Ok(());
            }
            RecordType::LOST | RecordType::THROTTLE | RecordType::UNTHROTTLE => {
                if !self.select.invert && !self.conditions.has_time(time) {
                    self.decisions.dropped.insert(number);
                }
                return Ok(());
            }
            RecordType::READ => {
                if !self.select.invert && !self.has_read(record, time)? {
                    self.decisions.dropped.insert(number);
                }
                return Ok(());
            }
            RecordType::LOST_SAMPLES => self.decisions.has_lost_samples = true,
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
            && match (time, self.last_time) {
                (Some(time), Some(last)) => time > last,
                (time, None) => time.is_some(),
                (None, _) => false,
            };
        is_after_last || self.conditions.is_after(time)
    }

    /// Returns whether a READ record, which contains the counters of a task that ended, is selected.
    fn has_read(&mut self, record: &RecordRef<'_>, time: Option<u64>) -> Result<bool> {
        let Body::Read(read) = record.decode()?.body else {
            return Ok(true);
        };
        let event = record.recording().events.of_record(record);
        let tid = Tid {
            pid: read.pid,
            tid: read.tid,
        };
        Ok(self.conditions.has_time(time)
            && event.is_none_or(|event| self.conditions.has_event(event))
            && (!self.select.has_threads() || self.tasks.matches(self.select, &tid)))
    }

    fn sample(&mut self, number: u64, record: &RecordRef<'_>) -> Result<()> {
        let Some(view) = record.sample_view() else {
            // The event is not known. perf does not read such a sample either.
            self.decisions.samples = self.decisions.samples.saturating_add(1);
            return Ok(());
        };
        let tid = view.tid();
        let is_matched = self.conditions.are_met(record, record.recording())
            && (!self.select.has_threads()
                || tid.is_none_or(|tid| self.tasks.matches(self.select, &tid)));
        let time = view.time().filter(|&time| is_known_time(time));
        let sample = Undecided {
            number,
            time,
            task: tid.map(|tid| (Machine::HOST, self.tasks.pid_of(&tid))),
            cookie: deferred_cookie(view.callchain())
                .zip(tid)
                .map(|(cookie, tid)| (tid.tid, cookie)),
        };
        if !is_matched || !self.is_nth() {
            self.decide(sample, false);
            return self.check(record.offset);
        }
        let at = self.counted;
        self.counted = self.counted.saturating_add(1);
        match (self.select.first, self.select.last) {
            (None, None) => self.decide(sample, true),
            (Some(first), _) if at < first => self.decide(sample, true),
            (_, None) => self.decide(sample, false),
            (_, Some(last)) => {
                self.last.push_back(sample);
                if self.last.len() as u64 > last
                    && let Some(sample) = self.last.pop_front()
                {
                    self.decide(sample, false);
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
    fn decide(&mut self, sample: Undecided, is_selected: bool) {
        let is_kept = is_selected != self.select.invert;
        let Decisions {
            dropped,
            samples,
            other_samples,
            ..
        } = &mut self.decisions;
        if let Some(key) = sample.cookie {
            self.deferred.sample(key, is_kept);
        }
        if !is_kept {
            *other_samples = other_samples.saturating_add(1);
            return dropped.insert(sample.number);
        }
        *samples = samples.saturating_add(1);
        if let Some(time) = sample.time {
            self.first_time = Some(self.first_time.map_or(time, |first| first.min(time)));
            self.last_time = self.last_time.max(Some(time));
        }
        if let Some((machine, pid)) = sample.task {
            self.processes.sample(machine, pid);
        }
    }

    /// Processes a record about a task.
    fn task(&mut self, number: u64, record: &RecordRef<'_>, time: Option<u64>) -> Result<()> {
        let decoded = record.decode()?;
        self.tasks.see(self.select, &decoded, time);
        if self.is_after(time) {
            self.decisions.dropped.insert(number);
            return Ok(());
        }
        let machine = Machine::of(CpuMode::of(decoded.misc));
        let of = |pid, tid| Of { machine, pid, tid };
        match &decoded.body {
            Body::Comm(comm) => self.record_of(of(comm.pid, comm.tid), number, None),
            Body::Namespaces(task) => self.record_of(of(task.pid, task.tid), number, None),
            Body::Mmap(map) => {
                self.record_of(of(map.pid, map.tid), number, Some(map.filename.text()));
            }
            Body::Mmap2(map) => {
                self.record_of(of(map.pid, map.tid), number, Some(map.filename.text()));
            }
            Body::Fork(Task { pid, tid, ppid, .. }) if !is_permanent(*pid) => {
                self.processes.fork(of(*pid, *tid), *ppid, number);
            }
            Body::Exit(Task { pid, tid, .. }) if !is_permanent(*pid) => {
                let number = (!self.has_switches).then_some(number);
                self.processes
                    .exit(of(*pid, *tid), time.unwrap_or(0), number);
            }
            _ => {}
        }
        self.check(record.offset)
    }

    fn record_of(&mut self, of: Of, number: u64, name: Option<&[u8]>) {
        if !is_permanent(of.pid) {
            self.processes.record(of, number, name);
        }
    }

    fn check(&self, offset: u64) -> Result<()> {
        let held = self
            .processes
            .held()
            .saturating_add(self.tasks.held())
            .saturating_add(self.deferred.held())
            .saturating_add(self.aux.held())
            .saturating_add(self.last.len().saturating_mul(size_of::<Undecided>()));
        let checked = self.limits.check_metadata("tasks and samples", held as u64);
        Ok(checked.map_err(|error| error.at(offset))?)
    }

    fn finish(mut self) -> Result<Decisions> {
        while let Some(sample) = self.last.pop_front() {
            self.decide(sample, true);
        }
        let Survey {
            select,
            conditions,
            mut decisions,
            mut tasks,
            processes,
            deferred,
            aux,
            first_time,
            ..
        } = self;
        deferred.finish(&mut decisions.dropped);
        let aux_kept = aux.finish(select, &mut tasks, &mut decisions.dropped);
        if decisions.samples == 0 && aux_kept == 0 && !select.allow_empty {
            let what = match decisions.other_samples {
                0 => "the recording contains no samples",
                _ => "no sample meets the conditions",
            };
            return Err(Error::Refused(what.into()));
        }
        // Samples that perf decodes from AUX data may be of any process.
        if select.sideband == Sideband::Used && !decisions.has_aux_data {
            let start = match (select.invert, select.first.or(select.last)) {
                (true, _) => 0,
                (false, Some(_)) => first_time.unwrap_or(0).max(conditions.start()),
                (false, None) => conditions.start(),
            };
            let needed = match select.has_threads() {
                true => Needed::Sampled,
                false => Needed::LivingFrom(start),
            };
            let left_out = processes.leave_out(needed, &mut decisions.dropped);
            decisions.left_out = left_out.records;
            decisions.objects_left_out = left_out.names;
        }
        if !select.invert
            && let Some(ranges) = &conditions.ranges
            && let (Some(first), Some(last)) = (ranges.first(), ranges.last())
        {
            decisions.span = Some(TimeRange {
                start: first.start,
                end: last.end,
            });
        }
        Ok(decisions)
    }
}

/// Notes that a sample with a deferred callchain is dropped.
fn note_deferred(deferred: &mut Deferred, record: &RecordRef<'_>) {
    if let Some(view) = record.sample_view()
        && let (Some(cookie), Some(tid)) = (deferred_cookie(view.callchain()), view.tid())
    {
        deferred.sample((tid.tid, cookie), false);
    }
}

/// Returns whether records with this process ID are always kept: those of the kernel and of idle
/// threads.
fn is_permanent(pid: u32) -> bool {
    pid == u32::MAX || pid == 0
}

/// Checks that the samples with counter values are in the order of time for each event ID. Their
/// differences are computed in the order of the file.
#[derive(Debug, Default)]
struct CounterOrder {
    times: HashMap<(u64, u32), u64, RandomState>,
}

impl CounterOrder {
    fn see(&mut self, record: &RecordRef<'_>) -> Result<()> {
        let events = &record.recording().events;
        let Some((event, view)) = events.look(record) else {
            return Ok(());
        };
        let has_counters = events.get(event).is_some_and(|event| {
            event
                .attr
                .sample_type
                .has(perfdata_core::attr::SampleType::READ)
        });
        let (true, Some(time), Some(id)) = (has_counters, view.time(), events.id_of(record)) else {
            return Ok(());
        };
        let tid = view.tid().map_or(0, |tid| tid.tid);
        let last = self.times.entry((id, tid)).or_default();
        if time < *last {
            return Err(Error::Refused(format!(
                "the samples of event ID {id} contain counter values and are not in the order of \
                 time: at {:#x}, {time} ns follows {last} ns: sort the recording first",
                record.offset
            )));
        }
        *last = time;
        Ok(())
    }
}

/// Returns the decoded record, for the second pass.
pub(super) fn decode(record: &RawRecord<'_>, recording: &Recording) -> Result<Record> {
    Ok(Record::decode(record, &recording.events.layout_of(record))?)
}
