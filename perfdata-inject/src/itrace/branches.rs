//! Samples of Intel BTS (tools/perf/util/intel-bts.c, Linux 7.1).
//!
//! The data after an AUXTRACE record become samples together, before the first record whose time is
//! not before the reference of the AUXTRACE record. Each branch is a sample of the event
//! `branches`, which has no time.

use perfdata_core::attr::{Attr, EventType, HardwareEvent, SampleType};
use perfdata_core::intel_bts::BtsRecord;
use perfdata_core::names::EventNames;
use perfdata_core::record::{
    Aux, AuxFlags, AuxtraceError, AuxtraceErrorDetail, AuxtraceErrorType, Body, CpuMode, IntelBts,
    RawRecord, Record, RecordType, Sample, Tid, TimedMessage, is_known_time,
};
use perfdata_core::spool::Heads;
use perfdata_core::wire::Text;
use perfdata_core::{Event, Events, Recording};
use perfdata_symbols::Sources;

use super::code::{BranchKind, TracedCode};
use super::events::{self, KEPT};
use super::options::ItraceOptions;
use super::tasks::{NONE, Tasks};
use super::trace::Traces;
use crate::new_events;
use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::pipeline::Link;
use perfdata_convert::support::cycles::CycleClock;

/// Numbers of errors (`INTEL_BTS_ERR_*`).
const NO_INSTRUCTION: u32 = 5;
const LOST: u32 = 9;

/// Flags of AUX records.
const TRUNCATED: u64 = 1;

/// The state of decoding.
#[derive(Debug)]
pub(super) struct Branches {
    traces: Traces,
    options: ItraceOptions,
    clock: CycleClock,
    are_snapshots: bool,
    /// The new event; `None` if no branches are wanted.
    new: Option<Event>,
    /// The events after the stage.
    to: Events,
    /// The task and the next piece of each queue.
    queues: Vec<QueueState>,
    /// The reference of the next piece of each queue that has one.
    heads: Heads<u64>,
    tasks: Tasks,
    code: TracedCode,
    /// Number of branches so far, to skip the first ones.
    branches: u64,
    samples: u64,
    errors: u64,
    /// Branches that `c` and `r` could not judge.
    unknown: u64,
}

#[derive(Debug, Clone, Copy)]
struct QueueState {
    pid: u32,
    /// Index of the next piece.
    piece: usize,
}

impl Branches {
    /// Returns the state before the first record.
    ///
    /// # Errors
    /// The clock is none, or the new event cannot be added.
    pub(super) fn new(
        traces: Traces,
        info: &IntelBts,
        options: ItraceOptions,
        sources: Sources,
        recording: &Recording,
    ) -> Result<Self> {
        let clock = CycleClock {
            shift: info.time_shift,
            mult: info.time_mult,
            zero: info.time_zero,
        };
        if !clock.is_usable() {
            return Err(Error::Refused(
                "the AUXTRACE_INFO record of Intel BTS has no usable clock".into(),
            ));
        }
        let mut heads = Heads::default();
        for (at, queue) in traces.queues.iter().enumerate() {
            if let Some(reference) = queue.reference(0) {
                heads.push(reference, at);
            }
        }
        let queues = vec![
            QueueState {
                pid: NONE,
                piece: 0
            };
            traces.queues.len()
        ];
        let new = match options.branches {
            true => Some(new_event(&recording.events, info.pmu_type)?),
            false => None,
        };
        Ok(Branches {
            traces,
            options,
            clock,
            are_snapshots: info.snapshot_mode != 0,
            new,
            to: Events::default(),
            queues,
            heads,
            tasks: Tasks::default(),
            code: TracedCode::new(sources, recording)?,
            branches: 0,
            samples: 0,
            errors: 0,
            unknown: 0,
        })
    }

    /// Returns the new event and its name.
    pub(super) fn named(&self, recording: &Recording) -> Vec<(Event, Vec<u8>)> {
        let Some(event) = &self.new else {
            return Vec::new();
        };
        let mut with = recording.clone();
        with.events.push(event.clone());
        let mut names = EventNames::default();
        names.update(&with);
        let at = with.events.len().saturating_sub(1);
        let name = names.get(&with, at).map(|name| name.into_owned());
        vec![(event.clone(), name.unwrap_or_else(|| b"branches".to_vec()))]
    }

    /// Sets the events after the stage.
    pub(super) fn set_events(&mut self, events: &Events) {
        self.to = events.clone();
    }

    /// Writes the samples before a record of the kernel, and processes what that says about tasks
    /// and their mappings.
    pub(super) fn see(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let events = &next.recording().events;
        let time = events.time(raw).filter(|&time| is_known_time(time));
        let until = time.map_or(0, |time| self.clock.counter(time));
        let layout = events.layout_of(raw);
        self.advance(until, next)?;
        match raw.kind {
            RecordType::EXIT => {
                if let Body::Exit(task) = Record::decode(raw, &layout)?.body {
                    self.end_thread(task.tid, next)?;
                }
            }
            RecordType::AUX if self.options.errors => {
                let record = Record::decode(raw, &layout)?;
                if let Body::Aux(Aux { flags, .. }) = &record.body
                    && flags.has(AuxFlags(TRUNCATED))
                {
                    let id = record.sample_id.as_ref();
                    let tid = id.and_then(|id| id.tid).unwrap_or(Tid {
                        pid: NONE,
                        tid: NONE,
                    });
                    let cpu = id.and_then(|id| id.cpu).map_or(NONE, |cpu| cpu.cpu);
                    let time = time.unwrap_or(0);
                    self.error(LOST, "Lost trace data", tid, cpu, 0, time, next)?;
                }
            }
            _ => {}
        }
        let recording = next.recording();
        if Tasks::wants(raw.kind) {
            self.tasks.see(raw, recording, false, next.limits())?;
        }
        self.code.see(raw, recording, next.limits())
    }

    /// Writes the samples of all other pieces.
    pub(super) fn finish(&mut self, next: &mut Link<'_>) -> Result<()> {
        self.advance(u64::MAX, next)
    }

    /// Writes the samples of all pieces whose reference is at most `until`.
    fn advance(&mut self, until: u64, next: &mut Link<'_>) -> Result<()> {
        while let Some((&reference, at)) = self.heads.first() {
            if reference > until {
                break;
            }
            self.heads.pop();
            self.piece(at, next)?;
            let state = self.queues.get(at).copied();
            let queue = self.traces.queues.get(at);
            if let Some((state, queue)) = state.zip(queue)
                && let Some(reference) = queue.reference(state.piece)
            {
                self.heads.push(reference, at);
            }
        }
        Ok(())
    }

    /// Writes the samples of all pieces of a thread.
    fn end_thread(&mut self, tid: u32, next: &mut Link<'_>) -> Result<()> {
        let Some(at) = self.traces.queues.iter().position(|queue| queue.tid == tid) else {
            return Ok(());
        };
        while let Some(state) = self.queues.get(at).copied()
            && let Some(queue) = self.traces.queues.get(at)
            && queue.reference(state.piece).is_some()
        {
            self.piece(at, next)?;
        }
        Ok(())
    }

    /// Writes the samples of the next piece of a queue, if there is one.
    fn piece(&mut self, at: usize, next: &mut Link<'_>) -> Result<()> {
        let (Some(state), Some(queue)) = (self.queues.get_mut(at), self.traces.queues.get(at))
        else {
            return Ok(());
        };
        let number = state.piece;
        let (tid, cpu) = (queue.tid, queue.cpu);
        if queue.reference(number).is_none() {
            return Ok(());
        }
        state.piece = number.saturating_add(1);
        if state.pid == NONE && tid != NONE {
            state.pid = self.tasks.pid(tid);
        }
        let task = Tid {
            pid: state.pid,
            tid,
        };
        if self.new.is_none() {
            return Ok(());
        }
        let start = match self.are_snapshots {
            true => self.traces.overlap(at, number)?,
            false => 0,
        };
        let mut reader = self.traces.reader(at, number, start);
        while let Some(record) = reader.next(&self.traces)? {
            if record.from != 0 || record.to != 0 {
                self.branch(&record, task, cpu, next)?;
            }
        }
        Ok(())
    }

    fn branch(
        &mut self,
        record: &BtsRecord,
        task: Tid,
        cpu: u32,
        next: &mut Link<'_>,
    ) -> Result<()> {
        let is_kernel = |address: u64| address >> 63 == 1;
        let kind = match (record.from, record.to) {
            (0, _) => BranchKind::Begin,
            (_, 0) => BranchKind::End,
            // Without a filter, only errors depend on the code.
            (from, to) if self.needs_code() => {
                let found = self.code.branch(task.pid, from);
                if found.is_none() && self.options.errors {
                    let what = "Failed to get instruction";
                    self.error(NO_INSTRUCTION, what, task, cpu, from, 0, next)?;
                }
                match found {
                    Some(BranchKind::SystemCall) => BranchKind::SystemCall,
                    Some(_) if !is_kernel(from) && is_kernel(to) => BranchKind::Asynchronous,
                    Some(kind) => kind,
                    None => BranchKind::Unknown,
                }
            }
            _ => BranchKind::Other,
        };
        let (calls, returns) = (self.options.calls, self.options.returns);
        let is_wanted =
            !calls && !returns || calls && kind.is_call() || returns && kind.is_return();
        if !is_wanted && kind == BranchKind::Unknown {
            self.unknown = self.unknown.saturating_add(1);
        }
        let Some(event) = self.new.as_ref().filter(|_| is_wanted) else {
            return Ok(());
        };
        // perf skips one more.
        self.branches = self.branches.saturating_add(1);
        if let Some(skip) = self.options.skip.filter(|&skip| skip > 0)
            && self.branches <= skip.saturating_add(1)
        {
            return Ok(());
        }
        let mode = match is_kernel(record.from) {
            true => CpuMode::KERNEL,
            false => CpuMode::USER,
        };
        let has = |part| event.attr.sample_type.has(part);
        let id = event.ids.first().copied();
        let sample = Sample {
            identifier: id.filter(|_| has(SampleType::IDENTIFIER)),
            ip: Some(record.from),
            tid: Some(task),
            addr: Some(record.to),
            id: id.filter(|_| has(SampleType::ID)),
            stream_id: id.filter(|_| has(SampleType::STREAM_ID)),
            period: Some(1),
            ..Sample::default()
        };
        let sample = Record::new(Body::Sample(sample)).with_misc(mode.0);
        next.write_for(&sample, &self.to)?;
        self.samples = self.samples.saturating_add(1);
        Ok(())
    }

    fn needs_code(&self) -> bool {
        self.options.calls || self.options.returns || self.options.errors
    }

    /// Writes an AUXTRACE_ERROR record.
    #[expect(clippy::too_many_arguments, reason = "the fields of the record")]
    fn error(
        &mut self,
        code: u32,
        what: &str,
        task: Tid,
        cpu: u32,
        ip: u64,
        time: u64,
        next: &mut Link<'_>,
    ) -> Result<()> {
        self.errors = self.errors.saturating_add(1);
        let error = AuxtraceError {
            kind: AuxtraceErrorType::ITRACE,
            code,
            cpu,
            pid: task.pid,
            tid: task.tid,
            fmt: 1,
            ip,
            detail: AuxtraceErrorDetail::Timed(TimedMessage {
                time,
                msg: Text::padded(what.as_bytes(), 8),
            }),
        };
        next.write_for(&Record::new(Body::AuxtraceError(error)), &self.to)?;
        Ok(())
    }

    /// Returns the notes.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "{} of Intel BTS",
            number_of(self.samples, "synthesised sample")
        )];
        if self.errors > 0 {
            notes.push(format!(
                "{} in the trace of Intel BTS",
                number_of(self.errors, "error")
            ));
        }
        if self.unknown > 0 {
            notes.push(format!(
                "{} without a sample, because the code was not found",
                number_of(self.unknown, "branch instruction")
            ));
        }
        notes
    }
}

/// Returns the event of the samples (`intel_bts_synth_events`).
fn new_event(events: &Events, pmu: u64) -> Result<Event> {
    let (trace, first) = events::of_trace(events, pmu, "Intel BTS")?;
    let id = new_events::free_id(events, first.wrapping_add(events::IDS));
    let added = SampleType::IP.0 | SampleType::TID.0 | SampleType::PERIOD.0 | SampleType::ADDR.0;
    let dropped = SampleType::TIME.0 | SampleType::CPU.0 | SampleType::PHYS_ADDR.0;
    let attr = Attr {
        kind: EventType::HARDWARE,
        config: HardwareEvent::BRANCH_INSTRUCTIONS.0,
        sample_period: 1,
        sample_type: SampleType((trace.sample_type.0 & KEPT | added) & !dropped),
        ..new_events::plain(trace)
    };
    events::check_id_place(events, &attr)?;
    Ok(Event {
        attr,
        ids: vec![id],
    })
}
