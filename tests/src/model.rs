//! Random recordings with known truth: threads, names and mappings that change in the course of
//! time, and samples of which thread, name, CPU, event, addresses and mapped files are known.
//!
//! The independent writer makes the bytes, so that nothing of what is tested is involved.

use std::collections::BTreeMap;

use crate::generate::random::Random;
use crate::synth::attr::{Attr, Stamp, sample_type};
use crate::synth::buf::Buf;
use crate::synth::feature_events::{self, Event};
use crate::synth::file::{File, Magic};
use crate::synth::kernel::{self, Object};
use crate::synth::pipe::{Pipe, TERMINATOR};
use crate::synth::record::{self, Case, Scribe, misc};
use crate::synth::{kind, sample::context};

/// The bit of `misc` that marks the COMM record of exec.
const EXEC: u16 = 1 << 13;

/// Size of each mapping in bytes.
const MAPPED: u64 = 0x1_0000;

const NAMES: [&str; 8] = ["init", "sh", "make", "cc1", "ld", "sort", "awk", "worker"];
const FILES: [&str; 6] = [
    "/bin/sh",
    "/usr/bin/make",
    "/usr/lib/cc1",
    "/lib/libc.so.6",
    "/lib/libm.so.6",
    "/opt/lib/own.so",
];
const EVENTS: [&str; 3] = ["cpu-clock", "task-clock", "page-faults"];

/// An address in a callchain, with the file and the offset in it, if one is mapped there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// The address.
    pub address: u64,
    /// The mapped file, and the offset in it.
    pub file: Option<(String, u64)>,
}

/// What is true of a sample.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of the fields of samples")]
pub struct Truth {
    pub time: u64,
    pub pid: u32,
    pub tid: u32,
    pub cpu: u32,
    pub comm: String,
    pub event: String,
    pub period: u64,
    pub frames: Vec<Frame>,
}

/// A recording and its truth.
#[derive(Debug)]
pub struct Model {
    /// The recording.
    pub bytes: Vec<u8>,
    /// Its samples in the order of time.
    pub samples: Vec<Truth>,
    /// The number of all records after the metadata.
    pub records: usize,
}

#[derive(Debug, Clone)]
struct Mapping {
    start: u64,
    offset: u64,
    file: &'static str,
}

#[derive(Debug, Clone)]
struct Thread {
    pid: u32,
    tid: u32,
    comm: &'static str,
}

/// The state of the machine while it is recorded.
struct Machine {
    random: Random,
    scribe: Scribe,
    events: Vec<Event>,
    threads: Vec<Thread>,
    mappings: BTreeMap<u32, Vec<Mapping>>,
    next_id: u32,
    /// The records of the current round, with their CPUs.
    round: Vec<(u32, Case)>,
    written: Vec<Case>,
    samples: Vec<Truth>,
}

fn events() -> Vec<Event> {
    use sample_type::*;
    let event = |(number, name): (usize, &&str)| {
        let attr = Attr {
            kind: 1,
            size: 112,
            config: [0, 1, 2][number],
            ..Attr::new(
                IDENTIFIER | IP | TID | TIME | CPU | PERIOD | CALLCHAIN,
                "inherit mmap comm freq task sample_id_all mmap2 comm_exec",
            )
        };
        Event {
            name: (*name).to_owned(),
            attr,
            ids: vec![11 + number as u64],
        }
    };
    EVENTS.iter().enumerate().map(event).collect()
}

impl Machine {
    fn new(big: bool, random: Random) -> Self {
        let events = events();
        let mut scribe = Scribe::new(big, events[0].attr.clone(), Stamp::ZERO);
        scribe.tick = 0;
        scribe.stamp.time = 1_000_000;
        Machine {
            random,
            scribe,
            events,
            threads: Vec::new(),
            mappings: BTreeMap::new(),
            next_id: 100,
            round: Vec::new(),
            written: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Lets some time pass, on any CPU, in a thread.
    fn at(&mut self, thread: &Thread) {
        let stamp = &mut self.scribe.stamp;
        stamp.time += 1 + self.random.below(10_000);
        stamp.cpu = self.random.below(4) as u32;
        (stamp.pid, stamp.tid) = (thread.pid, thread.tid);
        stamp.id = self.events[0].ids[0];
    }

    fn keep(&mut self) {
        let cpu = self.scribe.stamp.cpu;
        let cases = std::mem::take(&mut self.scribe.cases);
        self.round.extend(cases.into_iter().map(|case| (cpu, case)));
    }

    /// The records of each CPU, one CPU after the other, as perf reads the ring buffers.
    fn end_round(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        round.sort_by_key(|(cpu, _)| *cpu);
        self.written.extend(round.into_iter().map(|(_, case)| case));
        self.scribe
            .user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
        self.written.append(&mut self.scribe.cases);
    }

    fn any_thread(&mut self) -> Thread {
        let at = self.random.below(self.threads.len() as u64) as usize;
        self.threads[at].clone()
    }

    fn exec(&mut self, pid: u32) {
        let comm = *self.random.pick(&NAMES);
        let thread = Thread {
            pid,
            tid: pid,
            comm,
        };
        self.at(&thread);
        self.scribe.kernel("COMM", kind::COMM, EXEC, |b| {
            kernel::comm(b, (pid, pid), comm)
        });
        self.keep();
        // exec ends the other threads.
        self.threads.retain(|thread| thread.pid != pid);
        self.threads.push(thread);
        self.mappings.insert(pid, Vec::new());
        for _ in 0..1 + self.random.below(3) {
            self.map(pid);
        }
    }

    /// Maps a file, in place of another one or where none is.
    fn map(&mut self, pid: u32) {
        let mapping = Mapping {
            start: 0x40_0000 + 0x10_0000 * self.random.below(5),
            offset: 0x1000 * self.random.below(8),
            file: self.random.pick::<&str>(&FILES),
        };
        let thread = self.threads.iter().find(|thread| thread.pid == pid);
        let Some(thread) = thread.cloned() else {
            return;
        };
        self.at(&thread);
        let place = [mapping.start, MAPPED, mapping.offset];
        self.scribe.kernel("MMAP2", kind::MMAP2, misc::USER, |b| {
            let object = Object::Inode(8, 1, 77, 0);
            kernel::mmap2(b, (pid, thread.tid), place, object, [5, 2], mapping.file)
        });
        self.keep();
        let all = self.mappings.entry(pid).or_default();
        all.retain(|other| other.start != mapping.start);
        all.push(mapping);
    }

    /// Forks a process or a thread.
    fn fork(&mut self, is_thread: bool) {
        let parent = self.any_thread();
        let tid = self.next_id;
        self.next_id += 1;
        let pid = if is_thread { parent.pid } else { tid };
        self.at(&parent);
        let time = self.scribe.stamp.time;
        self.scribe.kernel("FORK", kind::FORK, 0, |b| {
            kernel::fork(b, (pid, tid), (parent.pid, parent.tid), time)
        });
        self.keep();
        if !is_thread {
            let inherited = self.mappings.get(&parent.pid).cloned().unwrap_or_default();
            self.mappings.insert(pid, inherited);
        }
        self.threads.push(Thread { pid, tid, ..parent });
    }

    fn rename(&mut self) {
        let thread = self.any_thread();
        let comm = *self.random.pick(&NAMES);
        self.at(&thread);
        let task = (thread.pid, thread.tid);
        self.scribe
            .kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, comm));
        self.keep();
        let same = self
            .threads
            .iter_mut()
            .find(|other| other.tid == thread.tid);
        same.expect("it is one of them").comm = comm;
    }

    /// Ends a thread that is not the first of its process.
    fn exit(&mut self) {
        let thread = self.any_thread();
        if thread.pid == thread.tid {
            return;
        }
        self.at(&thread);
        let time = self.scribe.stamp.time;
        let task = (thread.pid, thread.tid);
        self.scribe
            .kernel("EXIT", kind::EXIT, 0, |b| kernel::fork(b, task, task, time));
        self.keep();
        self.threads.retain(|other| other.tid != thread.tid);
    }

    /// Returns an address of a process, mapped or not.
    fn address(&mut self, pid: u32) -> Frame {
        let mapped = self.mappings.get(&pid).cloned().unwrap_or_default();
        let at = self.random.below(mapped.len() as u64 + 1) as usize;
        match mapped.get(at) {
            Some(Mapping {
                start,
                offset,
                file,
            }) => {
                let inside = 16 + self.random.below(MAPPED - 32);
                Frame {
                    address: start + inside,
                    file: Some(((*file).to_owned(), offset + inside)),
                }
            }
            None => Frame {
                address: 0x7000_0000 + self.random.below(1 << 20),
                file: None,
            },
        }
    }

    fn sample(&mut self) {
        let thread = self.any_thread();
        self.at(&thread);
        let number = self.random.below(EVENTS.len() as u64) as usize;
        let event = self.events[number].clone();
        self.scribe.stamp.id = event.ids[0];
        let frames: Vec<Frame> = (0..1 + self.random.below(4))
            .map(|_| self.address(thread.pid))
            .collect();
        let period = 1 + self.random.below(1000);
        let chain = frames.iter().map(|frame| frame.address);
        let chain: Vec<u64> = [context::USER].into_iter().chain(chain).collect();
        let ip = frames[0].address;
        self.scribe.sample("", |sample| {
            (sample.ip, sample.period, sample.callchain) = (ip, period, chain);
        });
        let Stamp { time, cpu, .. } = self.scribe.stamp;
        self.keep();
        self.samples.push(Truth {
            time,
            pid: thread.pid,
            tid: thread.tid,
            cpu,
            comm: thread.comm.to_owned(),
            event: event.name,
            period,
            frames,
        });
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0 => self.fork(false),
            1 | 2 => self.fork(true),
            3 => {
                let pid = self.any_thread().pid;
                self.exec(pid);
            }
            4 => self.rename(),
            5 => self.exit(),
            6 => {
                let pid = self.any_thread().pid;
                self.map(pid);
            }
            7 if !self.round.is_empty() => self.end_round(),
            _ => self.sample(),
        }
    }
}

/// Returns the recording with number `seed`: a file or a pipe, in either byte order.
pub fn model(seed: u64) -> Model {
    let mut random = Random(seed);
    let (big, is_pipe) = (random.below(2) == 0, random.below(3) == 0);
    let steps = 40 + random.below(300);
    let mut machine = Machine::new(big, random);
    machine.exec(1);
    for _ in 0..steps {
        machine.step();
    }
    machine.sample();
    machine.end_round();
    let Machine {
        events,
        written,
        samples,
        ..
    } = machine;
    let section = feature_events::event_desc(Buf::new(big), &events).bytes;
    let cpus = Buf::new(big).u32(4).u32(4).bytes;
    let bytes = if is_pipe {
        let pipe = events
            .iter()
            .fold(Pipe::new(big, Magic::V2), |pipe, event| pipe.event(event));
        pipe.feature(7, &cpus)
            .feature(feature_events::EVENT_DESC, &section)
            .terminator(TERMINATOR)
            .records(&written)
            .bytes
    } else {
        let mut file = File::new(big, events);
        file.data = record::stream(&written);
        file.features = vec![(7, cpus), (feature_events::EVENT_DESC, section)];
        file.bytes()
    };
    Model {
        bytes,
        samples,
        records: written.len(),
    }
}
