//! Recordings of Intel PT of a program whose run is known.

use std::path::Path;

use super::encoder::{Encoder, Features, MTC_SHIFT, TSC_CTC};
use super::program::Program;
use crate::generate::random::Random;
use crate::synth::attr::{Attr, Stamp, sample_type};
use crate::synth::auxtrace::{self, Origin};
use crate::synth::branch_trace::{BASE, BUILD_ID};
use crate::synth::buf::count;
use crate::synth::feature_events::Event;
use crate::synth::file::File;
use crate::synth::hardware_trace::{PMU, TASK};
use crate::synth::kernel::{self, Object};
use crate::synth::kind;
use crate::synth::record::{Scribe, misc};

/// The second thread of the process.
const OTHER: (u32, u32) = (TASK.0, TASK.1 + 1);

/// A record of a switch is about the thread that stops (`PERF_RECORD_MISC_SWITCH_OUT`).
const SWITCH_OUT: u16 = 1 << 13;

/// Bits of the event's `config` (`IA32_RTIT_CTL`).
const CYC: u64 = 1 << 1;
const POWER: u64 = 1 << 4;
const MTC: u64 = 1 << 9;
const TSC: u64 = 1 << 10;
const NO_COMPRESSION: u64 = 1 << 11;
const BRANCHES: u64 = 1 << 13;
const EVENTS: u64 = 1 << 31;

/// How a recording is made.
#[derive(Debug, Clone, Copy)]
pub struct FlowRecipe {
    /// Seed of the random numbers.
    pub seed: u64,
    /// What the trace contains.
    pub features: Features,
    /// Number of instructions of each thread.
    pub instructions: usize,
    /// Whether there is a buffer for each of two CPUs, on which two threads run in turn.
    pub per_cpu: bool,
    /// Number of bytes of the traces that are damaged.
    pub damage: u64,
    /// Whether the program is mapped where it is not executed.
    pub is_elsewhere: bool,
}

impl FlowRecipe {
    /// A thread, without times.
    pub const USUAL: FlowRecipe = FlowRecipe {
        seed: 1,
        features: Features {
            return_compression: false,
            tsc: false,
            mtc: false,
            cyc: false,
            interrupts: false,
            others: false,
            overflows: false,
        },
        instructions: 3000,
        per_cpu: false,
        damage: 0,
        is_elsewhere: false,
    };
}

/// A recording.
#[derive(Debug)]
pub struct FlowRecording {
    /// The recording.
    pub file: File,
    /// The program.
    pub program: Program,
    /// The instructions of the first thread, and its branches.
    pub run: Vec<u64>,
    /// From and to, 0 for what is not traced.
    pub branches: Vec<(u64, u64)>,
}

/// A part of a CPU's trace in which a thread runs.
struct Turn {
    task: (u32, u32),
    cpu: u32,
    start: u64,
    end: u64,
}

impl FlowRecipe {
    /// Returns the recording of a program that will be at `path`.
    pub fn make(self, path: &Path) -> FlowRecording {
        let path = path.to_str().expect("a path of text");
        let mut random = Random(self.seed);
        let program = Program::random(&mut random);
        let run = program.run(&mut random, self.instructions);
        let other = program.run(&mut random, self.instructions);
        let start = 10_000_000;
        let mut turns = Vec::new();
        let mut branches = Vec::new();
        let mut traces: Vec<Vec<u8>> = Vec::new();
        if self.per_cpu {
            for cpu in 0..2 {
                let mut encoder = Encoder::new(self.features, self.seed + cpu, start);
                let mut parts: Vec<_> = [(TASK, &run), (OTHER, &other)]
                    .into_iter()
                    .flat_map(|(task, run)| run.chunks(run.len() / 6).map(move |part| (task, part)))
                    .collect();
                parts.rotate_left(cpu as usize * 3);
                for (number, (task, part)) in parts.into_iter().enumerate() {
                    if number % 2 == cpu as usize {
                        encoder.now += 1000;
                        continue;
                    }
                    encoder.now += 300;
                    let from = encoder.now - 150;
                    encoder.psb(None);
                    branches.extend(encoder.run(&program, part));
                    encoder.stop(part[part.len() - 1]);
                    turns.push(Turn {
                        task,
                        cpu: cpu as u32,
                        start: from,
                        end: encoder.now + 100,
                    });
                    encoder.now += 300;
                }
                traces.push(encoder.finish());
            }
        } else {
            let mut encoder = Encoder::new(self.features, self.seed, start);
            branches = encoder.run(&program, &run);
            encoder.stop(run[run.len() - 1]);
            traces.push(encoder.finish());
        }
        for _ in 0..self.damage {
            let trace = &mut traces[0];
            let at = random.below(trace.len() as u64) as usize;
            trace[at] = random.word() as u8;
        }
        let file = self.file(path, &traces, &turns, start);
        FlowRecording {
            file,
            program,
            run,
            branches,
        }
    }

    fn config(self) -> u64 {
        let features = self.features;
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        BRANCHES
            | 1
            | bit(features.tsc, TSC)
            | bit(features.mtc, MTC | u64::from(MTC_SHIFT) << 14)
            | bit(features.cyc, CYC)
            | bit(!features.return_compression, NO_COMPRESSION)
            | bit(features.others, POWER | EVENTS)
    }

    fn file(self, path: &str, traces: &[Vec<u8>], turns: &[Turn], start: u64) -> File {
        use sample_type::{CPU, IDENTIFIER, IP, TID, TIME};
        let event = Event {
            name: "intel_pt//u".into(),
            attr: Attr {
                kind: PMU,
                size: 128,
                config: self.config(),
                sample_period: 1,
                ..Attr::new(
                    IP | TID | TIME | CPU | IDENTIFIER,
                    "inherit exclude_kernel mmap comm task sample_id_all mmap2 build_id context_switch",
                )
            },
            ids: vec![7, 8],
        };
        let stamp = |time, (pid, tid), cpu: u32| Stamp {
            pid,
            tid,
            time,
            id: 7,
            stream_id: 0,
            cpu,
        };
        let attr = event.attr.clone();
        let mut file = File::new(false, vec![event]);
        let no_cpu = u32::MAX;
        let mut s = Scribe::new(false, attr, stamp(start - 100_000, TASK, no_cpu));
        s.tick = 0;
        let (has_times, has_mtc) = (self.features.tsc, self.features.mtc);
        let switches = if self.per_cpu { 3 } else { 0 };
        auxtrace::info(&mut s, "INTEL_PT", 1, |b| {
            let clock = [
                PMU.into(),
                0,
                1,
                0,
                u64::from(has_times),
                TSC,
                NO_COMPRESSION,
            ];
            let others = [switches, 0, u64::from(self.per_cpu), MTC, 0xf << 14];
            let (n, d) = if has_mtc { TSC_CTC } else { (0, 0) };
            let b = b
                .u64s(&clock)
                .u64s(&others)
                .u64s(&[n.into(), d.into(), CYC, 24, 0]);
            b.u64(u64::from(self.features.others))
        });
        for task in [TASK, OTHER] {
            s.kernel("COMM", kind::COMM, 0, |b| {
                kernel::comm(b, task, &format!("task-{}", task.1))
            });
        }
        s.kernel("MMAP2", kind::MMAP2, misc::USER | 1 << 14, |b| {
            let base = if self.is_elsewhere { BASE << 1 } else { BASE };
            let place = [base, 0x1000, 0];
            kernel::mmap2(b, TASK, place, Object::BuildId(&BUILD_ID), [5, 2], path)
        });
        for (idx, trace) in (0..).zip(traces) {
            let (tid, cpu) = match self.per_cpu {
                true => (u32::MAX, idx),
                false => (TASK.1, no_cpu),
            };
            s.stamp = stamp(start - 50_000, TASK, cpu);
            if !self.per_cpu {
                s.kernel("ITRACE_START", kind::ITRACE_START, 0, |b| {
                    b.u32s(&[TASK.0, TASK.1])
                });
            }
            s.stamp = stamp(start - 40_000, TASK, cpu);
            s.kernel("AUX", kind::AUX, 0, |b| kernel::aux(b, 0, count(trace), 0));
            let origin = Origin {
                offset: 0,
                reference: if has_times { start - 1000 } else { 0 },
                idx,
                tid,
                cpu,
            };
            auxtrace::piece(&mut s, "AUXTRACE", origin, trace);
        }
        // The idle thread runs before and after a turn.
        let idle = (0, 0);
        let switches = turns.iter().flat_map(|turn| {
            [
                (turn.start, turn.cpu, idle, turn.task),
                (turn.end, turn.cpu, turn.task, idle),
            ]
        });
        let mut switches: Vec<_> = switches.collect();
        switches.sort_by_key(|switch| switch.0);
        for (time, cpu, from, to) in switches {
            for (bits, task, other) in [(SWITCH_OUT, from, to), (0, to, from)] {
                s.stamp = stamp(time, task, cpu);
                s.kernel("SWITCH_CPU_WIDE", kind::SWITCH_CPU_WIDE, bits, |b| {
                    b.u32s(&[other.0, other.1])
                });
            }
        }
        let end = start + 40_000_000;
        s.stamp = stamp(end, TASK, no_cpu);
        s.kernel("EXIT", kind::EXIT, 0, |b| {
            kernel::fork(b, TASK, (1, 1), end)
        });
        s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
        auxtrace::finish(&mut file, false, &s.cases, "x86_64", &[]);
        file
    }
}
