//! Samples of where threads wait, and for how long.
//!
//! A thread is off the CPU from the context switch at which it stops to that at which it runs
//! again. This stage adds an event `offcpu-time`, in the form of `perf record --off-cpu` before
//! 6.16. Its samples contain the stack with which the thread stopped, with a frame above it that
//! names the [reason](Reason); the period is the duration in nanoseconds, and the time is its end.
//! If the recording contains when the thread was woken up, there are two samples: one for the time
//! until then, and one for the time in which it could have run.
//!
//! The reasons are symbols of the kernel at addresses that no kernel uses, which KSYMBOL records
//! add: every reader of recordings shows them.

mod chain;
mod losses;
mod place;
mod reason;
mod source;
mod threads;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::names::EventNames;
use perfdata_core::record::{
    Body, CpuMode, MISC_SWITCH_OUT, MISC_SWITCH_OUT_PREEMPT, RawRecord, Record, RecordType, Sample,
    SampleView, Task, Tid, is_moment,
};
use perfdata_core::{Event, Events, Recording};
use perfdata_tracepoint::Field;

use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{Link, ReadsAhead, Requirements, Stage};
use perfdata_convert::support::attributes::{
    change_head, changed_events, changed_record, has_late_events,
};

use crate::{expand_off_cpu, new_events};
use losses::Losses;
use place::{LastChains, Place};
pub use reason::Reason;
use reason::{LAST_SAMPLE, Names};
use source::{Role, Roles, Source, Stat};
use threads::{Interval, Threads, Witness};

/// How a recording with everything that this stage uses is made.
pub const RECORD: &str =
    "perf record --switch-events -e sched:sched_switch -e sched:sched_waking -g -a";

/// Returns the name of what off-CPU samples of `recording` are made of. `names` has the names of its
/// events.
///
/// # Errors
/// The recording has nothing that says when threads stop and run. The message contains how to
/// record it.
pub fn source_of(recording: &Recording, names: &EventNames) -> Result<&'static str> {
    let source = Roles::of(recording, names)?.source(recording)?;
    Ok(source.name())
}

/// Which records remain, and what the samples contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuOptions {
    /// Drops the samples and the SWITCH records that were the source.
    pub drop_sources: bool,
    /// Puts the stack of the thread that ended the waiting above the reason: its frames in the
    /// kernel; in the same process, all of them.
    pub wakers: bool,
}

/// Adds the event `offcpu-time` with samples of threads that were off the CPU.
///
/// The records must be in the order of time: see `perfdata_edit::sort::Sort`.
#[derive(Debug)]
pub struct OffCpu {
    options: OffCpuOptions,
    roles: Roles,
    losses: Losses,
    /// What the samples are made of; `None` before the first record.
    source: Option<Source>,
    /// The events before and after the stage.
    from: Events,
    to: Events,
    /// The ID of the only event, if its records contain none: they get IDs.
    only_id: Option<u64>,
    /// The new event, without `IDENTIFIER` if the others have none.
    attr: Attr,
    id: u64,
    /// EVENT_UPDATE records to insert before the first record.
    name_records: Vec<Vec<u8>>,
    threads: Threads<Arc<Place>>,
    last: LastChains,
    /// The thread on each CPU, as far as `sched:sched_switch` shows it.
    running: HashMap<u32, u32, RandomState>,
    names: Names,
    counts: Counts,
}

/// What became of the times.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    samples: u64,
    /// Intervals in which records were lost.
    lost: u64,
    /// Samples of `perf record --off-cpu` that were dropped, because there is a better source.
    replaced: u64,
    /// Nanoseconds of all samples, and of those in which the thread could run.
    total: u64,
    runnable: u64,
}

impl OffCpu {
    /// Returns a stage that has not seen a recording.
    pub fn new(options: OffCpuOptions) -> Self {
        OffCpu {
            options,
            roles: Roles::default(),
            losses: Losses::default(),
            source: None,
            from: Events::default(),
            to: Events::default(),
            only_id: None,
            attr: Attr::default(),
            id: 0,
            name_records: Vec::new(),
            threads: Threads::default(),
            last: LastChains::default(),
            running: HashMap::default(),
            names: Names::default(),
            counts: Counts::default(),
        }
    }

    /// Returns whether the stage makes samples.
    fn is_active(&self) -> bool {
        self.source.is_some_and(|source| source != Source::OffCpu)
    }

    /// Returns the attribute that the records of the output have.
    fn with_identifier(&self, attr: &Attr) -> Attr {
        let mut attr = attr.clone();
        if self.only_id.is_some() {
            attr.sample_type.0 |= SampleType::IDENTIFIER.0;
        }
        attr
    }

    fn send_names(&mut self, next: &mut Link<'_>) -> Result<()> {
        let endian = next.recording().endian;
        let names = std::mem::take(&mut self.name_records);
        names
            .iter()
            .try_for_each(|bytes| next.record(&RawRecord::first(bytes, endian, 0)?))
    }

    /// Forwards a record, with an ID if it has none.
    fn forward(&self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let Some(id) = self.only_id.filter(|_| raw.kind.is_kernel()) else {
            return next.record(raw);
        };
        let mut record = Record::decode(raw, &self.from.layout_of(raw))?;
        if let Body::Sample(sample) = &mut record.body {
            sample.identifier = Some(id);
        }
        if let Some(trailer) = &mut record.sample_id {
            trailer.identifier = Some(id);
        }
        let bytes = record.encode_for(&self.to, raw.endian)?;
        let payload = RawRecord::first(&bytes, raw.endian, raw.offset)?;
        next.record(&payload)
    }

    /// Processes a sample. Returns whether it remains.
    fn sample(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let events = self.from.clone();
        let Some((event, view)) = events.look(raw) else {
            return self.forward(raw, next);
        };
        let Some(role) = self.roles.get(event) else {
            return self.forward(raw, next);
        };
        let is_source = match *role {
            Role::Other => false,
            Role::OffCpu => {
                self.counts.replaced += 1;
                return Ok(());
            }
            Role::Switch(_) | Role::Wake { .. } | Role::Stat { .. } => true,
        };
        if !(is_source && self.options.drop_sources) {
            self.forward(raw, next)?;
        }
        let time = view.time().unwrap_or(0);
        match &*role {
            Role::Switch(switch) => {
                let sample = place::decode(raw, &events)?;
                let switched = sample
                    .raw
                    .as_ref()
                    .and_then(|raw| self.roles.switched(switch, raw));
                let Some(switched) = switched else {
                    return Ok(());
                };
                let cpu = view.cpu();
                self.continue_on(cpu, (switched.prev, switched.next), time);
                if switched.prev != 0 {
                    let place = Place::of_sample(&self.attr, raw, sample, switched.prev);
                    self.stop(
                        switched.prev,
                        time,
                        switched.reason,
                        (place, Witness::Tracepoint),
                    );
                }
                if switched.next != 0 {
                    self.start(switched.next, time, next)?;
                }
            }
            Role::Wake { pid } if self.source != Some(Source::Stats) => {
                let sample = place::decode(raw, &events)?;
                let tid = sample.raw.as_ref().and_then(|raw| pid.number(raw));
                if let Some(tid) = tid.map(|tid| tid as u32)
                    && let Some(waited) = self.threads.wake(tid, time)
                {
                    let waker = self.options.wakers.then_some(&sample);
                    self.write(&waited, waker, next)?;
                }
                self.keep_chain(&view, raw.misc, next)?;
            }
            Role::Stat { pid, delay, stat } if self.source == Some(Source::Stats) => {
                let sample = place::decode(raw, &events)?;
                let number = |field: &Field| sample.raw.as_ref().and_then(|raw| field.number(raw));
                if let Some((tid, delay)) = number(pid).zip(number(delay)) {
                    self.stat(*stat, (tid as u32, time, delay), &sample, next)?;
                }
                self.keep_chain(&view, raw.misc, next)?;
            }
            _ => self.keep_chain(&view, raw.misc, next)?,
        }
        Ok(())
    }

    /// Keeps the callchain of a thread, if stops have none of their own.
    fn keep_chain(&mut self, view: &SampleView<'_>, misc: u16, next: &Link<'_>) -> Result<()> {
        if self.source == Some(Source::Switches) {
            return Ok(());
        }
        self.last.keep(view, misc);
        self.check(next)
    }

    /// Compares a switch with the one before it on its CPU.
    fn continue_on(&mut self, cpu: Option<u32>, (prev, next): (u32, u32), time: u64) {
        let Some(cpu) = cpu else {
            return;
        };
        let before = self.running.insert(cpu, next);
        if before.is_some_and(|before| before != prev) {
            self.threads.forget(prev, time);
        }
    }

    fn stop(&mut self, tid: u32, time: u64, why: Option<Reason>, (place, by): (Place, Witness)) {
        self.threads.stop(tid, time, why, (Arc::new(place), by));
    }

    fn start(&mut self, tid: u32, time: u64, next: &mut Link<'_>) -> Result<()> {
        match self.threads.start(tid, time) {
            Some(waited) => self.write(&waited, None, next),
            None => Ok(()),
        }
    }

    /// Processes a sample of `sched:sched_stat_*`: the thread was off the CPU for `delay`.
    fn stat(
        &mut self,
        stat: Stat,
        (tid, time, delay): (u32, u64, u64),
        sample: &Sample,
        next: &mut Link<'_>,
    ) -> Result<()> {
        let is_blocked = |role: &Role| {
            matches!(
                role,
                Role::Stat {
                    stat: Stat::Blocked,
                    ..
                }
            )
        };
        let reason = match stat {
            // The same time is in the sample of sched_stat_blocked that follows.
            Stat::Iowait if self.roles.position(is_blocked).is_some() => return Ok(()),
            Stat::Iowait => Reason::Disk,
            Stat::Sleep => Reason::Sleep,
            Stat::Blocked => Reason::Disk,
            Stat::Wait => Reason::Runnable,
        };
        let pid = match sample.tid {
            Some(task) if task.tid == tid => task.pid,
            _ => u32::MAX,
        };
        let place = self.last.place(&self.attr, Tid { pid, tid });
        let waited = Interval {
            begin: time.saturating_sub(delay),
            end: time,
            reason,
            place: Arc::new(place),
        };
        let is_by_waker = stat != Stat::Wait && self.options.wakers;
        self.write(&waited, is_by_waker.then_some(sample), next)
    }

    /// Processes a SWITCH or SWITCH_CPU_WIDE record.
    fn switch(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let (tid, time) = (self.from.trailer_tid(raw), self.from.time(raw));
        let Some(((pid, tid), time)) = tid.zip(time) else {
            return Ok(());
        };
        if tid == 0 || tid == u32::MAX || is_guest(raw.misc) {
            return Ok(());
        }
        if raw.misc & MISC_SWITCH_OUT == 0 {
            return self.start(tid, time, next);
        }
        if self.threads.is_known_stop(tid, Witness::Record) {
            return Ok(());
        }
        let reason = match raw.misc & MISC_SWITCH_OUT_PREEMPT {
            0 => Reason::Blocked,
            _ => Reason::Preempted,
        };
        let mut place = self.last.place(&self.attr, Tid { pid, tid });
        place.set_cpu(self.from.trailer_cpu(raw));
        self.stop(tid, time, Some(reason), (place, Witness::Record));
        self.check(next)
    }

    /// Processes a FORK or EXIT record.
    fn task(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        if is_guest(raw.misc) {
            return Ok(());
        }
        let record = Record::decode(raw, &self.from.layout_of(raw))?;
        match record.body {
            Body::Fork(Task { pid, tid, time, .. }) => {
                self.last.forget(tid);
                let place = Place::of_task(&self.attr, Tid { pid, tid });
                // The records of threads from before the recording have no time.
                let time = self.from.time(raw).unwrap_or(time);
                if is_moment(time) {
                    self.threads.fork(tid, time, Arc::new(place));
                }
            }
            Body::Exit(Task { tid, .. }) => {
                self.last.forget(tid);
                self.threads.exit(tid);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the memory use against the limits.
    fn check(&self, next: &Link<'_>) -> Result<()> {
        let held = self
            .threads
            .held()
            .saturating_add(self.last.held())
            .saturating_add(self.running.len().saturating_mul(16));
        Ok(next
            .limits()
            .check_metadata("stacks of threads", held as u64)?)
    }

    /// Writes the sample of an interval.
    fn write(
        &mut self,
        waited: &Interval<Arc<Place>>,
        waker: Option<&Sample>,
        next: &mut Link<'_>,
    ) -> Result<()> {
        self.check(next)?;
        let Some(period) = waited.end.checked_sub(waited.begin).filter(|&ns| ns > 0) else {
            return Ok(());
        };
        if self.losses.overlap(waited.begin, waited.end) {
            self.counts.lost += 1;
            return Ok(());
        }
        let reason = self.address(waited.reason.name().as_bytes(), waited.end, next)?;
        let mark = match waited.place.is_earlier {
            true => self.address(LAST_SAMPLE, waited.end, next)?,
            false => None,
        };
        let frames: Vec<u64> = reason.into_iter().chain(mark).collect();
        let place = &waited.place;
        let pid = |task: Option<Tid>| task.map(|task| task.pid).filter(|&pid| pid != u32::MAX);
        let is_same_process =
            |waker: &Sample| pid(waker.tid).is_some_and(|own| pid(place.task()) == Some(own));
        let waker = waker.map(|waker| (waker, is_same_process(waker)));
        let chain = chain::complete(&place.chain, &frames, waker);
        let record = place.sample(self.id, &self.attr, (waited.end, period), chain);
        next.write_for(&record, &self.to)?;
        self.counts.samples += 1;
        self.counts.total = self.counts.total.saturating_add(period);
        if waited.reason.is_runnable() {
            self.counts.runnable = self.counts.runnable.saturating_add(period);
        }
        Ok(())
    }

    /// Returns the address of a named frame. Writes its KSYMBOL record before its first use.
    fn address(&mut self, name: &[u8], time: u64, next: &mut Link<'_>) -> Result<Option<u64>> {
        let Some((start, is_new)) = self.names.symbol(name) else {
            return Ok(None);
        };
        if is_new {
            let record = reason::symbol(name, start, &self.attr, self.id, time);
            next.write_for(&record, &self.to)?;
        }
        // Readers look up the callers of other frames at the byte before their address.
        Ok(Some(start.saturating_add(1)))
    }
}

impl Stage for OffCpu {
    fn requirements(&self) -> Requirements {
        Requirements {
            reads_ahead: ReadsAhead::Always,
            ..Requirements::default()
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let mut names = EventNames::of(recording);
        let mut roles = Roles::of(recording, &names);
        let mut has_news = false;
        let losses = &mut self.losses;
        source.each_record(recording, |raw, now| {
            if names.see(raw) {
                has_news = true;
                return Ok(());
            }
            if std::mem::take(&mut has_news) {
                names.update(now);
                roles = Roles::of(now, &names);
            }
            losses.see(raw, &now.events);
            Ok(())
        })?;
        self.losses.close();
        self.roles = roles?;
        Ok(())
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        let source = self.roles.source(recording)?;
        self.source = Some(source);
        if source == Source::OffCpu {
            return Ok(());
        }
        if has_late_events(recording, container_layout) {
            let what = "the attributes are not at the start of the stream, but after its records: \
                        convert it to a file (perfconv pipe2file) first";
            return Err(Error::Refused(what.into()));
        }
        self.from = recording.events.clone();
        let is_source = |role: &Role| match source {
            Source::Switches => matches!(role, Role::Switch(_)),
            Source::Stats => matches!(role, Role::Stat { .. }),
            _ => false,
        };
        let of = self.roles.position(is_source).unwrap_or(0);
        let Some(event) = self.from.get(of) else {
            return Err(Error::Refused("the recording has no events".into()));
        };
        let attr = place::attr(&event.attr, source == Source::Switches);
        if !self.from.agree_on_ids() {
            return Err(Error::Refused(
                "the IDs of events are at different places in their samples".into(),
            ));
        }
        let only = match &*self.from {
            [only] if Events::id_place(&only.attr).is_none() || only.ids.is_empty() => Some(only),
            _ => None,
        };
        self.only_id = only.map(|only| only.ids.first().copied().unwrap_or(1));
        self.attr = self.with_identifier(&attr);
        if let Some(id) = self.only_id {
            let change = |attr: &Attr| {
                let mut attr = attr.clone();
                attr.sample_type.0 |= SampleType::IDENTIFIER.0;
                attr
            };
            change_head(recording, container_layout, &change)?;
            let changed = changed_events(&recording.events, &change);
            let with_ids = changed.into_vec().into_iter().map(|event| Event {
                ids: vec![id],
                ..event
            });
            recording.events = with_ids.collect();
        }
        let largest = recording.events.iter().flat_map(|event| &event.ids).max();
        let after = largest.map_or(1, |id| id.wrapping_add(1));
        self.id = new_events::free_id(&recording.events, after);
        let event = Event {
            attr: self.attr.clone(),
            ids: vec![self.id],
        };
        recording.events.push(event.clone());
        let named = [(event, expand_off_cpu::NAME.to_vec())];
        self.name_records = new_events::describe(recording, container_layout, &named)?;
        self.to = recording.events.clone();
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        let is_used = matches!(
            kind,
            RecordType::SAMPLE
                | RecordType::SWITCH
                | RecordType::SWITCH_CPU_WIDE
                | RecordType::FORK
                | RecordType::EXIT
        );
        let is_changed = kind.is_kernel() || kind.is_metadata();
        self.is_active()
            && (is_used || self.only_id.is_some() && is_changed || !self.name_records.is_empty())
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)?;
        match raw.kind {
            RecordType::SAMPLE => self.sample(raw, next),
            RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => {
                if !self.options.drop_sources {
                    self.forward(raw, next)?;
                }
                match self.source {
                    Some(Source::Switches | Source::Records) => self.switch(raw, next),
                    _ => Ok(()),
                }
            }
            RecordType::FORK | RecordType::EXIT => {
                self.forward(raw, next)?;
                self.task(raw)
            }
            kind if kind.is_metadata() => {
                let change = |attr: &Attr| self.with_identifier(attr);
                match changed_record(raw, &change)? {
                    Some(bytes) => next.record(&RawRecord {
                        bytes: &bytes,
                        ..*raw
                    }),
                    None => next.record(raw),
                }
            }
            _ => self.forward(raw, next),
        }
    }

    fn finish(&mut self, _: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        self.send_names(next)
    }

    fn notes(&self) -> Vec<String> {
        let Some(source) = self.source else {
            return Vec::new();
        };
        if source == Source::OffCpu {
            return vec!["the recording has off-CPU samples of its own".into()];
        }
        let Counts {
            samples,
            lost,
            replaced,
            total,
            runnable,
        } = self.counts;
        let unknown = self.threads.unknown();
        let mut notes = vec![format!(
            "{} of {} s, of which the threads could run for {} s, from {}; {} off the CPU \
             before the first switch, {} after the last one",
            number_of(samples, "off-CPU sample"),
            seconds(total),
            seconds(runnable),
            source.name(),
            number_of(unknown.before, "thread"),
            unknown.after,
        )];
        if lost > 0 {
            notes.push(format!(
                "{} dropped, because records were lost in them",
                number_of(lost, "off-CPU time")
            ));
        }
        if unknown.missed > 0 {
            let hint = match unknown.missed > samples {
                true => format!("; {RECORD} records the switches of all threads"),
                false => String::new(),
            };
            notes.push(format!(
                "{} dropped, because nothing shows when they ended: within {} s{hint}",
                number_of(unknown.missed, "off-CPU time"),
                seconds(unknown.missed_ns)
            ));
        }
        if replaced > 0 {
            notes.push(format!(
                "{} of perf record --off-cpu replaced",
                number_of(replaced, "sample")
            ));
        }
        notes
    }
}

/// Returns whether a record is about a guest.
fn is_guest(misc: u16) -> bool {
    matches!(
        CpuMode::of(misc),
        CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER
    )
}

/// Returns nanoseconds as seconds with 9 decimals.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}
