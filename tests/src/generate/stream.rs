//! Generates the records: rounds over the CPUs, with the records of each CPU in time order.

use std::collections::VecDeque;
use std::error::Error;

use perfdata_core::Endian;
use perfdata_core::attr::SampleType;
use perfdata_core::record::{
    Body, BranchEntry, BranchFlags, BranchStack, Comm, Cpu, Inode, MISC_COMM_EXEC, Mmap, Mmap2,
    NoBody, RawRecord, ReadValue, Record, RecordType, Regs, RegsAbi, Sample, SampleId, StackUser,
    SwitchCpuWide, Task, Tid,
};
use perfdata_core::wire::{ContextList, List, Rest, Text};
use perfdata_write::{Compressor, RecordSink};

use super::Generator;
use super::machine::{KERNEL, Process};
use super::mix::{self, CPUS, Mix, REGS, STACK};
use super::random::Random;
use crate::synth::record::misc;
use crate::synth::tracing;

/// Number of processes that run at the same time.
const PROCESSES: usize = 32;

/// Length of a round in nanoseconds.
const ROUND: u64 = 100_000_000;

/// Size of the records in a CPU's ring buffer at the end of a round, in bytes.
const BUFFER: usize = 96 << 10;

/// Process ID of perf, the parent of every process.
const PERF: u32 = 4000;

/// Number of branches in a sample.
const BRANCHES: u64 = 16;

type Outcome = Result<(), Box<dyn Error>>;

/// Writes the records of a recording.
pub struct Stream<'a> {
    mix: Mix,
    size: u64,
    endian: Endian,
    parts: SampleType,
    events: Vec<Vec<u64>>,
    random: Random,
    processes: VecDeque<Process>,
    next_pid: u32,
    sink: &'a mut dyn RecordSink,
    compressor: Option<Compressor>,
    /// Size of the records so far, in bytes.
    written: u64,
    /// The records of one CPU in this round.
    buffer: Vec<u8>,
    cpu: u32,
    time: u64,
    /// Time between two records of a CPU, in nanoseconds.
    tick: u64,
    chain: Vec<u64>,
    /// Contents of stacks.
    stack: Vec<u8>,
    counts: Vec<u64>,
}

impl<'a> Stream<'a> {
    /// Returns a stream that writes to `sink`.
    pub fn new(what: &Generator, sink: &'a mut dyn RecordSink) -> Result<Self, Box<dyn Error>> {
        let Generator {
            mix,
            size,
            endian,
            seed,
        } = *what;
        let model = mix::model(mix, endian)?;
        let compressed = mix == Mix::Compressed;
        let compressor = if compressed {
            Some(Compressor::new(RecordType::COMPRESSED, endian, 1)?)
        } else {
            None
        };
        Ok(Stream {
            mix,
            size,
            endian,
            parts: model
                .events
                .first()
                .map(|event| event.attr.sample_type)
                .unwrap_or_default(),
            events: (0..model.events.len()).map(mix::ids).collect(),
            random: Random(seed),
            processes: VecDeque::new(),
            next_pid: PERF + 1,
            sink,
            compressor,
            written: 0,
            buffer: Vec::new(),
            cpu: 0,
            time: 1_000_000_000,
            tick: 1000,
            chain: Vec::new(),
            stack: Vec::new(),
            counts: vec![0; model.events.len()],
        })
    }

    /// Writes all records.
    pub fn run(mut self) -> Outcome {
        self.begin()?;
        let mut round = self.time;
        while self.written < self.size {
            round += ROUND;
            for cpu in 0..CPUS {
                // The buffers are read one after another.
                self.cpu = cpu;
                self.time = round + u64::from(cpu) * 1000;
                self.fill()?;
                self.flush()?;
                if self.written >= self.size {
                    break;
                }
            }
            self.put(
                RecordType::FINISHED_ROUND,
                0,
                Body::FinishedRound(NoBody {}),
                false,
            )?;
            let round = std::mem::take(&mut self.buffer);
            self.pass(&round)?;
        }
        Ok(())
    }

    /// Writes the state before the recording, which perf reads from /proc.
    fn begin(&mut self) -> Outcome {
        let time = std::mem::take(&mut self.time);
        let addr = KERNEL.start;
        let filename = Text::padded(b"[kernel.kallsyms]_text", 8);
        let kernel = Mmap {
            pid: u32::MAX,
            tid: 0,
            addr,
            len: KERNEL.end - addr,
            pgoff: addr,
            filename,
        };
        self.put(RecordType::MMAP, misc::KERNEL, Body::Mmap(kernel), true)?;
        for _ in 0..PROCESSES {
            self.begin_process(0)?;
        }
        self.time = time;
        self.flush()
    }

    /// Generates the records of one CPU in a round.
    fn fill(&mut self) -> Outcome {
        let size = match self.mix {
            Mix::Stacks => 8600,
            Mix::Branches => 440,
            _ => 120,
        };
        let records = (BUFFER / size) as u64;
        self.tick = ROUND / (records * 2);
        let left = usize::try_from(self.size - self.written).unwrap_or(usize::MAX);
        while self.buffer.len() < BUFFER.min(left) {
            if self.mix == Mix::System {
                match self.random.below(64) {
                    0 => {
                        self.end_process()?;
                        self.begin_process(MISC_COMM_EXEC)?;
                    }
                    1..8 => self.switch()?,
                    _ => {}
                }
            }
            self.sample()?;
        }
        Ok(())
    }

    fn begin_process(&mut self, exec: u16) -> Outcome {
        let depth = if self.parts.has(SampleType::CALLCHAIN) && self.mix != Mix::Stacks {
            6..36
        } else {
            1..2
        };
        let process = Process::new(self.next_pid, depth, &mut self.random);
        self.next_pid = if self.next_pid > 4_000_000 {
            PERF + 1
        } else {
            self.next_pid + 1
        };
        let pid = process.pid;
        let fork = Task {
            pid,
            ppid: PERF,
            tid: pid,
            ptid: PERF,
            time: self.time,
        };
        self.put(RecordType::FORK, 0, Body::Fork(fork), true)?;
        let comm = Text::padded(process.comm.as_bytes(), 8);
        self.put(
            RecordType::COMM,
            exec,
            Body::Comm(Comm {
                pid,
                tid: pid,
                comm,
            }),
            true,
        )?;
        for map in &process.mappings {
            let map = Mmap2 {
                pid,
                tid: pid,
                addr: map.range.start,
                len: map.range.end - map.range.start,
                pgoff: map.pgoff,
                inode: Some(Inode {
                    maj: 8,
                    min: 1,
                    ino: map.ino,
                    ino_generation: 1,
                }),
                build_id: None,
                prot: Some(5),
                flags: Some(2),
                filename: Text::padded(map.name.as_bytes(), 8),
            };
            self.put(RecordType::MMAP2, misc::USER, Body::Mmap2(map), true)?;
        }
        self.processes.push_front(process);
        Ok(())
    }

    fn end_process(&mut self) -> Outcome {
        let Some(Process { pid, .. }) = self.processes.pop_back() else {
            return Ok(());
        };
        let exit = Task {
            pid,
            ppid: PERF,
            tid: pid,
            ptid: PERF,
            time: self.time,
        };
        self.put(RecordType::EXIT, 0, Body::Exit(exit), true)
    }

    fn switch(&mut self) -> Outcome {
        let pid = self.random.pick(self.processes.make_contiguous()).pid;
        let body = SwitchCpuWide {
            next_prev_pid: pid,
            next_prev_tid: pid,
        };
        self.put(
            RecordType::SWITCH_CPU_WIDE,
            1 << 13,
            Body::SwitchCpuWide(body),
            true,
        )
    }

    fn sample(&mut self) -> Outcome {
        let mut chain = std::mem::take(&mut self.chain);
        let process = self.random.pick(self.processes.make_contiguous());
        let (ip, in_kernel) = process.sample(&mut self.random, &mut chain);
        let pid = process.pid;
        let branches = (self.mix == Mix::Branches).then(|| branches(process, &mut self.random));
        let event = self.random.below(self.events.len() as u64) as usize;
        let id = self.events[event][self.cpu as usize];
        let period = 90_000 + self.random.below(20_000);
        self.counts[event] += period;
        let parts = self.parts;
        let has = |part| parts.has(part);
        let sample = Sample {
            identifier: has(SampleType::IDENTIFIER).then_some(id),
            ip: Some(ip),
            tid: Some(Tid { pid, tid: pid }),
            time: Some(self.time),
            cpu: Some(Cpu {
                cpu: self.cpu,
                reserved: 0,
            }),
            period: Some(period),
            read: has(SampleType::READ).then(|| ReadValue {
                value: Some(self.counts[event]),
                nr: None,
                time_enabled: None,
                time_running: None,
                id: Some(id),
                lost: None,
                values: ContextList(Vec::new()),
            }),
            callchain: has(SampleType::CALLCHAIN).then(|| chain.clone().into()),
            branch_stack: branches,
            raw: has(SampleType::RAW).then(|| self.raw(pid).into()),
            regs_user: has(SampleType::REGS_USER).then(|| self.regs(ip)),
            stack_user: has(SampleType::STACK_USER).then(|| self.stack()),
            ..Sample::default()
        };
        self.chain = chain;
        let mode = if in_kernel { misc::KERNEL } else { misc::USER };
        self.put(RecordType::SAMPLE, mode, Body::Sample(sample), false)
    }

    /// Returns the RAW data of the tracepoint. Including its size field, its size is a multiple of
    /// 8.
    fn raw(&mut self, pid: u32) -> Vec<u8> {
        let value = self.random.word() as u32;
        let mut raw = tracing::raw(self.endian == Endian::Big, pid, value);
        raw.resize(68, (value & 3) as u8);
        raw
    }

    fn regs(&mut self, ip: u64) -> Regs {
        let count = REGS.count_ones() as usize;
        let mut regs: Vec<u64> = (0..count).map(|_| self.random.below(1 << 16)).collect();
        regs[7] = 0x7ffc_0000_0000;
        regs[8] = ip;
        Regs {
            abi: RegsAbi::BITS_64,
            regs: List(regs),
        }
    }

    /// Returns a stack: addresses, small numbers, and zeros. The bytes after its end are stale.
    fn stack(&mut self) -> StackUser {
        while self.stack.len() < STACK as usize * 4 {
            let word = match self.random.below(4) {
                0 => 0x7f00_0000_0000 + self.random.below(1 << 24),
                1 => self.random.below(1 << 12),
                _ => 0,
            };
            self.stack.extend_from_slice(&word.to_le_bytes());
        }
        let start = self.random.below(u64::from(STACK) / 8) as usize * 8;
        let data = Rest(self.stack[start..start + STACK as usize].to_vec());
        let size = u64::from(STACK);
        StackUser {
            size,
            data,
            dyn_size: Some(size - 8 * self.random.below(64)),
        }
    }

    /// Adds a record to the CPU's buffer. Kernel records except SAMPLE have a trailer.
    fn put(&mut self, kind: RecordType, misc: u16, body: Body, has_trailer: bool) -> Outcome {
        let has = |part| self.parts.has(part);
        let pid = self.processes.front().map_or(0, |process| process.pid);
        let sample_id = has_trailer.then(|| SampleId {
            tid: Some(Tid { pid, tid: pid }),
            time: Some(self.time),
            id: None,
            stream_id: None,
            cpu: Some(Cpu {
                cpu: self.cpu,
                reserved: 0,
            }),
            identifier: has(SampleType::IDENTIFIER).then(|| self.events[0][self.cpu as usize]),
        });
        if self.time != 0 && kind != RecordType::FINISHED_ROUND {
            self.time += self.tick / 2 + self.random.below(self.tick);
        }
        let record = Record {
            kind,
            misc,
            body,
            tail: Vec::new(),
            sample_id,
        };
        Ok(record.encode_into(&mut self.buffer, self.endian)?)
    }

    /// Flushes the CPU's buffer.
    fn flush(&mut self) -> Outcome {
        let buffer = std::mem::take(&mut self.buffer);
        match self.compressor.take() {
            Some(mut compressor) => {
                let sink = &mut *self.sink;
                compressor.push(&buffer, |record| sink.record(record))?;
                self.compressor = Some(compressor);
                self.written += buffer.len() as u64;
            }
            None => self.pass(&buffer)?,
        }
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    /// Writes records to the sink.
    fn pass(&mut self, mut bytes: &[u8]) -> Outcome {
        while !bytes.is_empty() {
            let record = RawRecord::first(bytes, self.endian, 0)?;
            self.sink.record(&record)?;
            self.written += record.bytes.len() as u64;
            bytes = &bytes[record.bytes.len()..];
        }
        Ok(())
    }
}

/// Returns branches between functions of a process; one of 32 was predicted wrongly.
fn branches(process: &Process, random: &mut Random) -> BranchStack {
    let mut chain = Vec::new();
    let entries = (0..BRANCHES).map(|_| {
        let (from, _) = process.sample(random, &mut chain);
        let (to, _) = process.sample(random, &mut chain);
        let missed = random.below(32) == 0;
        let flags = BranchFlags::default()
            .with_mispred(missed)
            .with_predicted(!missed)
            .with_cycles(random.below(100));
        BranchEntry { from, to, flags }
    });
    BranchStack {
        nr: BRANCHES,
        hw_idx: None,
        entries: List(entries.collect()),
        counters: List(Vec::new()),
    }
}
