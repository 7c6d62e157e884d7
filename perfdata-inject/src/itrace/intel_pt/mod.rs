//! Samples of Intel PT (tools/perf/util/intel-pt.c, Linux 7.1).
//!
//! Each buffer of the recording has a decoder. Without times, a buffer of a thread is decoded when
//! the thread ends. With times, all buffers are decoded side by side, up to the time of the next
//! record, so that the mappings are those of that time.

mod events;
mod filter;
mod flow;
mod queue;
mod setup;

use perfdata_core::record::{
    Aux, AuxFlags, AuxtraceError, AuxtraceErrorDetail, AuxtraceErrorType, Body, Cpu, CpuMode,
    IntelPt, ItraceStart, MISC_SWITCH_OUT, RawRecord, Record, RecordType, Sample, SampleTemplate,
    Tid, TimedMessage, is_known_time,
};
use perfdata_core::spool::Heads;
use perfdata_core::wire::{Counted, Text};
use perfdata_core::{DecodeContext, Event, Events, Recording};
use perfdata_intel_pt::{BasicBlocks, DecodeError, EventKinds};
use perfdata_symbols::Sources;

use super::code::{Help, TracedCode};
use super::options::ItraceOptions;
use super::tasks::{NONE, Tasks};
use super::trace::Traces;
use events::{NewEvent, SampleKind};
pub(super) use filter::Filters;
use flow::{Flow, Stacks};
use perfdata_convert::count::number_of;
use perfdata_convert::error::Result;
use perfdata_convert::pipeline::Link;
use queue::TraceQueue;
use setup::{Setup, Switches};

/// Flags of AUX records.
const TRUNCATED: u64 = 1;

/// Memory for decoded code in bytes.
const CODE: usize = 16 << 20;

/// The state of decoding.
#[derive(Debug)]
pub(super) struct Decoding {
    traces: Traces,
    options: ItraceOptions,
    setup: Setup,
    new: Vec<NewEvent>,
    /// The events after the stage.
    to: Events,
    queues: Vec<TraceQueue>,
    /// The time of each queue that has one.
    heads: Heads<u64>,
    has_begun: bool,
    tasks: Tasks,
    code: TracedCode,
    blocks: BasicBlocks,
    stacks: Stacks,
    /// Samples so far, to skip the first ones.
    number: u64,
    samples: u64,
    errors: u64,
}

impl Decoding {
    /// Returns the state before the first record.
    ///
    /// # Errors
    /// The trace or the options are not those of a trace that is decoded.
    pub(super) fn new(
        traces: Traces,
        info: &IntelPt,
        options: ItraceOptions,
        sources: Sources,
        recording: &Recording,
    ) -> Result<Self> {
        let setup = Setup::of(info, &options, recording, traces.has_several_pieces())?;
        let new = events::new_events(&recording.events, &options, &setup)?;
        let queues = traces.queues.iter().enumerate();
        let queues = queues.map(|(at, queue)| TraceQueue::new(at, queue.cpu, queue.tid, &setup));
        Ok(Decoding {
            queues: queues.collect(),
            stacks: Stacks::new(options.callchains, options.last_branches),
            code: TracedCode::new(sources, recording)?.with_filters(setup.filters.clone()),
            traces,
            options,
            setup,
            new,
            to: Events::default(),
            heads: Heads::default(),
            has_begun: false,
            tasks: Tasks::default(),
            blocks: BasicBlocks::new(CODE),
            number: 0,
            samples: 0,
            errors: 0,
        })
    }

    /// Returns the new events and their names.
    pub(super) fn named(&self, recording: &Recording) -> Vec<(Event, Vec<u8>)> {
        events::named(&self.new, recording)
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
        let layout = events.layout_of(raw);
        if !self.setup.is_timeless {
            if let Some(until) = time.map(|time| self.setup.clock.counter(time))
                && until != 0
            {
                self.advance(until, next)?;
            }
        } else if raw.kind == RecordType::EXIT
            && let Body::Exit(task) = Record::decode(raw, &layout)?.body
        {
            self.end_thread(Some(task.tid), next)?;
        }
        if raw.kind == RecordType::AUX && self.options.errors && !self.options.no_losses {
            let record = Record::decode(raw, &layout)?;
            if let Body::Aux(Aux { flags, .. }) = &record.body
                && flags.has(AuxFlags(TRUNCATED))
            {
                let id = record.sample_id.as_ref();
                let unknown = Tid {
                    pid: NONE,
                    tid: NONE,
                };
                let at = ErrorAt {
                    task: id.and_then(|id| id.tid).unwrap_or(unknown),
                    cpu: id.and_then(|id| id.cpu).map_or(NONE, |cpu| cpu.cpu),
                    ip: 0,
                    time: time.unwrap_or(0),
                };
                self.error(DecodeError::Lost, at, next)?;
            }
        }
        let recording = next.recording();
        self.switch(raw, recording)?;
        if Tasks::wants(raw.kind) {
            self.tasks.see(raw, recording, false, next.limits())?;
        }
        self.code.see(raw, recording, next.limits())
    }

    /// Processes what a record says about the thread that runs on a CPU.
    fn switch(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> Result<()> {
        let events = &recording.events;
        let is_switch = match raw.kind {
            RecordType::ITRACE_START => self.setup.is_per_cpu,
            RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => true,
            _ => false,
        };
        if !is_switch {
            return Ok(());
        }
        let record = Record::decode(raw, &events.layout_of(raw))?;
        let id = record.sample_id.as_ref();
        let Some(cpu) = id.and_then(|id| id.cpu) else {
            return Ok(());
        };
        let own = id.and_then(|id| id.tid);
        let is_out = raw.misc & MISC_SWITCH_OUT != 0;
        let task = match &record.body {
            Body::ItraceStart(ItraceStart { pid, tid }) => Some(Tid {
                pid: *pid,
                tid: *tid,
            }),
            Body::SwitchCpuWide(switch) if is_out && self.setup.switches == Switches::OutAndIn => {
                Some(Tid {
                    pid: switch.next_prev_pid,
                    tid: switch.next_prev_tid,
                })
            }
            _ if !is_out => own,
            _ => None,
        };
        if let Some(task) = task {
            self.tasks.run_task(cpu.cpu, task);
        }
        Ok(())
    }

    /// Writes all other samples.
    pub(super) fn finish(&mut self, next: &mut Link<'_>) -> Result<()> {
        match self.setup.is_timeless {
            true => self.end_thread(None, next),
            false => self.advance(u64::MAX, next),
        }
    }

    /// Decodes all buffers up to a time.
    fn advance(&mut self, until: u64, next: &mut Link<'_>) -> Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            for at in 0..self.queues.len() {
                self.set_task(at);
                if let Some(time) = self.begin(at)? {
                    self.heads.push(time, at);
                }
            }
        }
        while let Some((&time, at)) = self.heads.first() {
            if time >= until {
                break;
            }
            self.heads.pop();
            let other = self.heads.first().map(|(&time, _)| time.saturating_add(1));
            let to = other.map_or(until, |other| other.min(until));
            self.set_task(at);
            if let Some(time) = self.run(at, to, next)? {
                self.heads.push(time, at);
            }
        }
        Ok(())
    }

    /// Decodes the buffers of a thread, or all.
    fn end_thread(&mut self, tid: Option<u32>, next: &mut Link<'_>) -> Result<()> {
        for at in 0..self.queues.len() {
            let is_its = |queue: &TraceQueue| tid.is_none() || Some(queue.task.tid) == tid;
            if self.queues.get(at).is_some_and(is_its) {
                self.set_task(at);
                self.run(at, u64::MAX, next)?;
            }
        }
        Ok(())
    }

    /// Finds out which thread a buffer is about now.
    fn set_task(&mut self, at: usize) {
        let Some(queue) = self.queues.get_mut(at) else {
            return;
        };
        if queue.is_of_cpu || self.setup.switches != Switches::None {
            queue.task = Tid {
                pid: NONE,
                tid: self.tasks.running(queue.cpu).unwrap_or(NONE),
            };
        }
        let tid = queue.task.tid;
        if tid != NONE {
            let pid = self.tasks.pid(tid);
            if pid != NONE || queue.is_of_cpu {
                queue.task.pid = pid;
            }
            if !queue.has_cpu {
                queue.cpu = self.tasks.cpu(tid);
            }
        }
    }

    /// Decodes a buffer up to its first time, without samples. `None`: it has no time.
    fn begin(&mut self, at: usize) -> Result<Option<u64>> {
        let Some(queue) = self.queues.get_mut(at) else {
            return Ok(None);
        };
        queue.begin(&self.traces, &mut self.code, &mut self.blocks)
    }

    /// Decodes a buffer up to a time, which is returned; `None` at its end.
    fn run(&mut self, at: usize, until: u64, next: &mut Link<'_>) -> Result<Option<u64>> {
        if let Some(queue) = self.queues.get_mut(at) {
            queue.set_until(until);
        }
        loop {
            self.samples_of(at, next)?;
            let Some(queue) = self.queues.get_mut(at) else {
                return Ok(None);
            };
            let error = match queue.step(&self.traces, &mut self.code, &mut self.blocks)? {
                None => return Ok(None),
                Some(error) => error,
            };
            if let Some(error) = error {
                let at = ErrorAt {
                    task: queue.task,
                    cpu: queue.cpu,
                    ip: queue.error_ip,
                    time: match self.setup.is_timeless {
                        true => 0,
                        false => self.setup.clock.time(queue.time),
                    },
                };
                if self.options.errors
                    && !(error == DecodeError::Overflow && self.options.no_overflows)
                {
                    self.error(error, at, next)?;
                }
                continue;
            }
            if !self.setup.is_timeless && queue.time >= until {
                return Ok(Some(queue.time));
            }
        }
    }

    /// Writes the samples of a queue's last event.
    fn samples_of(&mut self, at: usize, next: &mut Link<'_>) -> Result<()> {
        let Some(queue) = self.queues.get_mut(at) else {
            return Ok(());
        };
        if !std::mem::take(&mut queue.has_event) {
            return Ok(());
        }
        let kinds = queue.event().kinds;
        if self.options.interrupts {
            self.sample_if(at, kinds.has(EventKinds::EVENT), SampleKind::Event, next)?;
            let is_changed = kinds.has(EventKinds::INTERRUPT_FLAG);
            self.sample_if(at, is_changed, SampleKind::InterruptFlag, next)?;
        }
        if self.options.power {
            self.sample_if(at, kinds.has(EventKinds::PSB), SampleKind::Psb, next)?;
            self.sample_if(at, true, SampleKind::CoreBusRatio, next)?;
            let has = |kind| kinds.has(kind);
            self.sample_if(at, has(EventKinds::MWAIT), SampleKind::Mwait, next)?;
            self.sample_if(
                at,
                has(EventKinds::POWER_ENTRY),
                SampleKind::PowerEntry,
                next,
            )?;
            let stops = has(EventKinds::EXECUTION_STOP);
            self.sample_if(at, stops, SampleKind::ExecutionStop, next)?;
            self.sample_if(at, has(EventKinds::POWER_EXIT), SampleKind::PowerExit, next)?;
        }
        let is_instruction = kinds.has(EventKinds::INSTRUCTION);
        self.sample_if(at, is_instruction, SampleKind::Instructions, next)?;
        self.sample_if(at, is_instruction, SampleKind::Cycles, next)?;
        let is_transaction = kinds.has(EventKinds::TRANSACTION);
        self.sample_if(at, is_transaction, SampleKind::Transactions, next)?;
        self.sample_if(
            at,
            kinds.has(EventKinds::PTWRITE),
            SampleKind::Ptwrite,
            next,
        )?;
        if !kinds.has(EventKinds::BRANCH) {
            return Ok(());
        }
        let Some(queue) = self.queues.get_mut(at) else {
            return Ok(());
        };
        let flow = Flow::of(queue.event());
        if self.stacks.are_wanted() && queue.task.tid != NONE {
            let held = self.stacks.held();
            let mut place = queue.stack;
            let thread = (queue.task.tid, queue.cpu);
            self.stacks.branch(thread, queue.event(), flow, &mut place);
            queue.stack = place;
            if self.stacks.held() != held {
                let held = self.stacks.held() as u64;
                next.limits().check_metadata("stacks of threads", held)?;
            }
        }
        let (calls, returns) = (self.options.calls, self.options.returns);
        let is_wanted = !calls && !returns
            || calls && (flow.is_call || flow.is_asynchronous || flow.ends)
            || returns && (flow.is_return || flow.begins);
        self.sample_if(at, is_wanted, SampleKind::Branches, next)
    }

    /// Writes a sample of this kind, if there is such an event.
    fn sample_if(
        &mut self,
        at: usize,
        is_wanted: bool,
        kind: SampleKind,
        next: &mut Link<'_>,
    ) -> Result<()> {
        if !is_wanted {
            return Ok(());
        }
        let Some(new) = self.new.iter_mut().find(|new| new.kind == kind) else {
            return Ok(());
        };
        let Some(queue) = self.queues.get_mut(at) else {
            return Ok(());
        };
        let skip = self.options.skip.unwrap_or(0);
        if kind == SampleKind::CoreBusRatio {
            // It is not skipped, but there up to four others after it can be.
            let is_skipped = skip != 0 && self.number.saturating_add(4) < skip;
            if queue.event().core_bus_ratio == queue.ratio_seen || is_skipped {
                return Ok(());
            }
            queue.ratio_seen = queue.event().core_bus_ratio;
        } else {
            let cycles = match kind {
                SampleKind::Cycles => queue.cycles(self.options.approximates),
                _ => 1,
            };
            if cycles == 0 {
                return Ok(());
            }
            if skip != 0 {
                let number = self.number;
                self.number = number.saturating_add(1);
                if number < skip {
                    return Ok(());
                }
            }
        }
        let event = queue.event();
        let period = match kind {
            SampleKind::Instructions if self.options.quick > 0 => 1,
            SampleKind::Instructions => event.instructions.wrapping_sub(queue.last_instructions),
            SampleKind::Cycles => queue.cycles(self.options.approximates),
            _ => 1,
        };
        match kind {
            SampleKind::Instructions => queue.last_instructions = event.instructions,
            SampleKind::Cycles => queue.last_cycles = queue.last_cycles.wrapping_add(period),
            _ => {}
        }
        let event = queue.event();
        let (ip, addr) = (event.from, event.to);
        use perfdata_core::attr::SampleType as Part;
        let (place, is_guest) = match ip {
            0 => (addr, event.is_to_guest),
            ip => (ip, event.is_from_guest),
        };
        let mode = match (place >> 63 == 1, is_guest) {
            (true, false) => CpuMode::KERNEL,
            (false, false) => CpuMode::USER,
            (true, true) => CpuMode::GUEST_KERNEL,
            (false, true) => CpuMode::GUEST_USER,
        };
        self.samples = self.samples.saturating_add(1);
        let time = self.setup.clock.time(queue.time);
        if let Some(template) = &mut new.template {
            template.set(Part::IP, ip);
            template.set_pair(Part::TID, queue.task.pid, queue.task.tid);
            template.set(Part::TIME, time);
            template.set(Part::ADDR, addr);
            template.set_pair(Part::CPU, queue.cpu, 0);
            template.set(Part::PERIOD, period);
            template.set_misc(mode.0);
            return next.record(&template.record()?);
        }
        let parts = new.event.attr.sample_type;
        let has = |part| parts.has(part);
        let (tid, cpu) = (queue.task.tid, queue.cpu);
        let raw = || {
            let bytes = events::raw(kind, event, &self.setup);
            Counted::from(bytes)
        };
        let callchain = || self.stacks.callchain(tid, cpu, ip).unwrap_or_default();
        let sample = Sample {
            identifier: has(Part::IDENTIFIER).then_some(new.id),
            ip: Some(ip),
            tid: Some(queue.task),
            time: has(Part::TIME).then_some(time),
            addr: has(Part::ADDR).then_some(addr),
            id: has(Part::ID).then_some(new.id),
            stream_id: has(Part::STREAM_ID).then_some(new.id),
            cpu: has(Part::CPU).then_some(Cpu {
                cpu: queue.cpu,
                reserved: 0,
            }),
            period: has(Part::PERIOD).then_some(period),
            callchain: has(Part::CALLCHAIN).then(|| Counted::from(callchain())),
            raw: has(Part::RAW).then(raw),
            branch_stack: match has(Part::BRANCH_STACK) {
                true => self.stacks.branch_stack(tid, cpu),
                false => None,
            },
            ..Sample::default()
        };
        let record = Record::new(Body::Sample(sample)).with_misc(mode.0);
        let layout = DecodeContext::of_attr(&new.event.attr);
        new.template = SampleTemplate::of(&record, &layout, next.recording().endian)?;
        next.write_for(&record, &self.to)?;
        Ok(())
    }

    /// Writes an AUXTRACE_ERROR record.
    fn error(&mut self, error: DecodeError, at: ErrorAt, next: &mut Link<'_>) -> Result<()> {
        self.errors = self.errors.saturating_add(1);
        let body = AuxtraceError {
            kind: AuxtraceErrorType::ITRACE,
            code: error.code(),
            cpu: at.cpu,
            pid: at.task.pid,
            tid: at.task.tid,
            fmt: 1,
            ip: at.ip,
            detail: AuxtraceErrorDetail::Timed(TimedMessage {
                time: at.time,
                msg: Text::padded(error.to_string().as_bytes(), 8),
            }),
        };
        next.write_for(&Record::new(Body::AuxtraceError(body)), &self.to)?;
        Ok(())
    }

    /// Returns the notes.
    pub(super) fn notes(&self, help: Help) -> Vec<String> {
        let mut notes = vec![format!(
            "{} of Intel PT",
            number_of(self.samples, "synthesised sample")
        )];
        if self.errors > 0 {
            notes.push(format!(
                "{} in the trace of Intel PT",
                number_of(self.errors, "error")
            ));
        }
        notes.extend(self.code.note(help));
        notes
    }
}

/// Where an error is.
#[derive(Debug, Clone, Copy)]
struct ErrorAt {
    task: Tid,
    cpu: u32,
    ip: u64,
    time: u64,
}
