//! Which process a thread belongs to, and which thread runs on a CPU.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::read::Limits;
use perfdata_core::record::{Body, MISC_SWITCH_OUT, RawRecord, Record, RecordType, Tid};
use perfdata_session::{Machine, Threads};

use perfdata_convert::error::Result;

/// No thread, process or CPU.
pub(super) const NONE: u32 = u32::MAX;

/// Approximate memory for the thread of a CPU in bytes.
const ENTRY: usize = 32;

/// The tasks, up to the current record.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: Threads,
    /// The thread that runs on each CPU, as far as context switches or the trace say so.
    running: HashMap<u32, u32>,
    /// The CPU on which each of these threads ran last.
    cpus: HashMap<u32, u32>,
}

impl Tasks {
    /// Returns whether [`see`](Self::see) needs records of this type.
    pub(super) fn wants(kind: RecordType) -> bool {
        matches!(
            kind,
            RecordType::COMM
                | RecordType::FORK
                | RecordType::MMAP
                | RecordType::MMAP2
                | RecordType::SWITCH_CPU_WIDE
                | RecordType::SAMPLE
        )
    }

    /// Receives the next record in the order of time. `heeds_switches` says whether a context
    /// switch changes the thread that runs on a CPU.
    pub(super) fn see(
        &mut self,
        raw: &RawRecord<'_>,
        recording: &Recording,
        heeds_switches: bool,
        limits: Limits,
    ) -> Result<()> {
        let events = &recording.events;
        if raw.kind == RecordType::SAMPLE {
            if let Some(tid) = events.look(raw).and_then(|(_, sample)| sample.tid()) {
                self.threads.find_or_add(Machine::HOST, &tid);
            }
            return self.check(limits);
        }
        let record = Record::decode(raw, &events.layout_of(raw))?;
        let (pid, tid) = match &record.body {
            Body::Comm(body) => (body.pid, body.tid),
            Body::Mmap(body) => (body.pid, body.tid),
            Body::Mmap2(body) => (body.pid, body.tid),
            Body::Fork(task) => {
                self.threads.fork(Machine::HOST, task, events.time(raw));
                return self.check(limits);
            }
            Body::SwitchCpuWide(body) if heeds_switches && raw.misc & MISC_SWITCH_OUT != 0 => {
                let cpu = record.sample_id.as_ref().and_then(|id| id.cpu);
                if let Some(cpu) = cpu {
                    self.run(cpu.cpu, body.next_prev_tid);
                }
                (body.next_prev_pid, body.next_prev_tid)
            }
            _ => return Ok(()),
        };
        self.threads.find_or_add(Machine::HOST, &Tid { pid, tid });
        self.check(limits)
    }

    fn check(&self, limits: Limits) -> Result<()> {
        let cpus = self.running.len().saturating_add(self.cpus.len());
        let held = self
            .threads
            .held()
            .saturating_add(cpus.saturating_mul(ENTRY));
        Ok(limits.check_metadata("threads", held as u64)?)
    }

    /// Notes that a thread of a process runs on a CPU.
    pub(super) fn run_task(&mut self, cpu: u32, task: Tid) {
        if task.tid != NONE {
            self.threads.find_or_add(Machine::HOST, &task);
        }
        self.run(cpu, task.tid);
    }

    /// Notes that a thread runs on a CPU.
    pub(super) fn run(&mut self, cpu: u32, tid: u32) {
        if cpu != NONE {
            self.running.insert(cpu, tid);
            self.cpus.insert(tid, cpu);
        }
    }

    /// Returns the thread that runs on a CPU, if it is known.
    pub(super) fn running(&self, cpu: u32) -> Option<u32> {
        self.running.get(&cpu).copied()
    }

    /// Returns the CPU on which a thread ran last; -1 if it is not known.
    pub(super) fn cpu(&self, tid: u32) -> u32 {
        self.cpus.get(&tid).copied().unwrap_or(NONE)
    }

    /// Returns the process of a thread; -1 if it is not known.
    pub(super) fn pid(&mut self, tid: u32) -> u32 {
        let task = Tid { pid: NONE, tid };
        let thread = self.threads.find(Machine::HOST, &task);
        thread
            .and_then(|id| self.threads.get(id))
            .map_or(NONE, |thread| thread.pid)
    }
}
