//! The order in which the records of several buffers become samples.

use perfdata_core::Events;
use perfdata_core::arm_spe::SpeRecord;
use perfdata_core::record::{RawRecord, Tid, TimeConv, is_known_time};
use perfdata_core::spool::Heads;

use super::cpus::Cpus;
use super::events::Synthesised;
use super::options::ItraceOptions;
use super::sample::{self, Common};
use super::tasks::{NONE, Tasks};
use super::trace::Traces;
use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::pipeline::Link;
use perfdata_convert::support::cycles::{CycleClock, nanoseconds};

/// The state of decoding.
#[derive(Debug)]
pub(super) struct SpeDecoder {
    traces: Traces,
    options: ItraceOptions,
    /// The clock of timestamps; `None` if the records of the recording have no times.
    clock: Option<TimeConv>,
    cpus: Cpus,
    new: Vec<Synthesised>,
    /// The events after the stage.
    to: Events,
    queues: Vec<Queue>,
    /// The timestamp of the next record of each queue that has one.
    heads: Heads<u64>,
    /// Whether the first records of all queues were decoded.
    has_begun: bool,
    tasks: Tasks,
    /// Whether the trace says which threads ran.
    has_contexts: bool,
    records: u64,
    samples: u64,
}

/// The state of a buffer.
#[derive(Debug, Clone, Copy)]
struct Queue {
    /// The next record.
    record: Option<SpeRecord>,
    /// The latest timestamp so far.
    timestamp: u64,
    cpu: u32,
    pid: u32,
    tid: u32,
    /// Number of records since the last one with samples.
    skipped: u64,
}

impl SpeDecoder {
    /// Returns the state before the first record. `clock` is that of the timestamps, if the records
    /// of the recording have times; `new` are the events that get samples.
    pub(super) fn new(
        traces: Traces,
        options: ItraceOptions,
        clock: Option<TimeConv>,
        cpus: Cpus,
        new: Vec<Synthesised>,
    ) -> Self {
        SpeDecoder {
            traces,
            options,
            clock,
            cpus,
            new,
            to: Events::default(),
            queues: Vec::new(),
            heads: Heads::default(),
            has_begun: false,
            tasks: Tasks::default(),
            has_contexts: false,
            records: 0,
            samples: 0,
        }
    }

    /// Returns the events that get samples.
    pub(super) fn synthesised(&self) -> &[Synthesised] {
        &self.new
    }

    /// Sets the events after the stage.
    pub(super) fn set_events(&mut self, events: &Events) {
        self.to = events.clone();
    }

    /// Writes the samples of all records before a record of the kernel, and processes what that
    /// says about tasks.
    pub(super) fn see(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let recording = next.recording();
        let time = recording
            .events
            .time(raw)
            .filter(|&time| is_known_time(time));
        if let (Some(time), Some(clock)) = (time, &self.clock) {
            let until = CycleClock::of(clock).counter(time);
            self.advance(until, next)?;
        }
        if Tasks::wants(raw.kind) {
            // Without times, it is not known which thread ran when.
            let heeds_switches = !self.has_contexts && self.clock.is_some();
            self.tasks
                .see(raw, recording, heeds_switches, next.limits())?;
        }
        Ok(())
    }

    /// Decodes the first record of each queue.
    fn begin(&mut self) -> Result<()> {
        self.has_begun = true;
        for at in 0..self.traces.queues.len() {
            let record = self.traces.next(at)?;
            let Some(trace) = self.traces.queues.get(at) else {
                continue;
            };
            let timestamp = record.and_then(|record| record.timestamp).unwrap_or(0);
            self.queues.push(Queue {
                record,
                timestamp,
                cpu: trace.cpu,
                pid: NONE,
                tid: NONE,
                skipped: 0,
            });
            if record.is_some() {
                self.heads.push(timestamp, at);
            }
        }
        Ok(())
    }

    /// Writes the samples of all records before the timestamp `until`.
    fn advance(&mut self, until: u64, next: &mut Link<'_>) -> Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        while let Some((&timestamp, at)) = self.heads.first() {
            if timestamp >= until {
                break;
            }
            self.heads.pop();
            let other = self.heads.first();
            let limit = other.map_or(until, |(other, _)| other.saturating_add(1).min(until));
            if !self.has_contexts {
                self.find_task(at);
            }
            self.run(at, Some(limit), next)?;
            if let Some(queue) = self.queues.get(at).filter(|queue| queue.record.is_some()) {
                self.heads.push(queue.timestamp, at);
            }
        }
        Ok(())
    }

    /// Writes the samples of all records.
    pub(super) fn finish(&mut self, next: &mut Link<'_>) -> Result<()> {
        if self.clock.is_some() {
            return self.advance(u64::MAX, next);
        }
        self.begin()?;
        for at in 0..self.queues.len() {
            self.find_task(at);
            self.run(at, None, next)?;
        }
        Ok(())
    }

    /// Writes the samples of a queue, up to the timestamp `limit`.
    fn run(&mut self, at: usize, limit: Option<u64>, next: &mut Link<'_>) -> Result<()> {
        while let Some(record) = self.queues.get(at).and_then(|queue| queue.record) {
            if let Some(tid) = record.context {
                self.has_contexts = true;
                self.set_task(at, tid);
            }
            self.sample(at, &record, next)?;
            let record = self.traces.next(at)?;
            let Some(queue) = self.queues.get_mut(at) else {
                break;
            };
            queue.record = record;
            let timestamp = record.and_then(|record| record.timestamp).unwrap_or(0);
            queue.timestamp = queue.timestamp.max(timestamp);
            if limit.is_some_and(|limit| queue.timestamp >= limit) {
                break;
            }
        }
        Ok(())
    }

    /// Determines the task of a queue from context switches, or else from its AUXTRACE record.
    fn find_task(&mut self, at: usize) {
        let Some((queue, trace)) = self.queues.get_mut(at).zip(self.traces.queues.get(at)) else {
            return;
        };
        let tid = self.tasks.running(queue.cpu).unwrap_or(trace.tid);
        queue.tid = tid;
        if tid == NONE {
            return;
        }
        queue.pid = self.tasks.pid(tid);
        if trace.cpu == NONE {
            queue.cpu = self.tasks.cpu(tid);
        }
    }

    /// Sets the task of a queue to that of a context packet.
    fn set_task(&mut self, at: usize, tid: u32) {
        let pid = self.tasks.pid(tid);
        if let Some(queue) = self.queues.get_mut(at) {
            self.tasks.run(queue.cpu, tid);
            (queue.pid, queue.tid) = (pid, tid);
        }
    }

    /// Writes the samples of a record.
    fn sample(&mut self, at: usize, record: &SpeRecord, next: &mut Link<'_>) -> Result<()> {
        self.records = self.records.saturating_add(1);
        let Some(queue) = self.queues.get_mut(at) else {
            return Ok(());
        };
        queue.skipped = queue.skipped.saturating_add(1);
        let period = self.options.period.unwrap_or(0);
        if queue.skipped < period {
            return Ok(());
        }
        queue.skipped = 0;
        let common = Common {
            tid: Tid {
                pid: queue.pid,
                tid: queue.tid,
            },
            cpu: queue.cpu,
            time: self
                .clock
                .as_ref()
                .map_or(0, |clock| nanoseconds(clock, record.timestamp.unwrap_or(0))),
            period,
            sources: self.cpus.sources(queue.cpu),
            last_branches: self.options.last_branches.unwrap_or(0),
        };
        for new in self.new.iter().filter(|new| sample::has(new.kind, record)) {
            next.write_for(&sample::sample(new, record, &common), &self.to)?;
            self.samples = self.samples.saturating_add(1);
        }
        Ok(())
    }

    /// Returns the notes.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "{} of {}",
            number_of(self.samples, "synthesised sample"),
            number_of(self.records, "record") + " of Arm SPE"
        )];
        let damaged = self.traces.queues.iter().map(|queue| queue.damaged);
        let damaged: u64 = damaged.fold(0, u64::saturating_add);
        if damaged > 0 {
            notes.push(format!(
                "{} of Arm SPE dropped: they contain bytes that are no packet",
                number_of(damaged, "record")
            ));
        }
        notes
    }
}
