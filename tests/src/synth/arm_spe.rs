//! Recordings with traces of Arm SPE: random legal records, packet by packet.

use super::attr::{Attr, Stamp, sample_type};
use super::auxtrace::{self, Origin};
use super::buf::{Buf, count};
use super::feature_events::Event;
use super::file::File;
use super::kernel;
use super::kind;
use super::record::{Scribe, misc};
use super::user;
use crate::generate::random::Random;

/// The type of the SPE PMU.
const PMU: u32 = 9;

/// Main ID registers of CPUs with different data sources: Neoverse N1, AmpereOne, HiSilicon HIP12,
/// and one that perf does not know.
pub const CPUS: [u64; 4] = [0x410f_d0c1, 0xc00f_ac40, 0x480f_d060, 0x410f_d030];

/// Shift, multiplier and zero of the generic counter: 25 MHz, roughly.
const CLOCK: [u64; 3] = [20, (40 << 20) + 7, 1_000_000];

/// Threads and their processes.
const THREADS: [(u32, u32); 4] = [(100, 100), (100, 101), (102, 102), (103, 103)];

/// How a recording is made.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    /// Byte order of the recording; the trace is little-endian.
    pub big: bool,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Whether AUXTRACE_INFO has the form of 6.13.
    pub is_v2: bool,
    /// Whether the trace contains thread IDs.
    pub has_contexts: bool,
    /// Whether the trace contains calls and returns. perf 7.2 regards them as accesses to memory.
    pub has_calls: bool,
    /// Whether records have times.
    pub has_times: bool,
    /// Number of records of each CPU.
    pub records: u64,
}

impl Recipe {
    /// The usual recording.
    pub const USUAL: Recipe = Recipe {
        big: false,
        seed: 1,
        is_v2: true,
        has_contexts: true,
        has_calls: false,
        has_times: true,
        records: 400,
    };

    fn events(self) -> Vec<Event> {
        use sample_type::*;
        let time = if self.has_times { TIME } else { 0 };
        let parts = IP | TID | time | CPU | IDENTIFIER;
        let event = |name: &str, kind, config, parts, flags: &str, ids: &[u64]| Event {
            name: name.into(),
            // That of perf 6.1, which reads no larger one.
            attr: Attr {
                kind,
                size: 128,
                config,
                sample_period: 1024,
                ..Attr::new(parts, flags)
            },
            ids: ids.to_vec(),
        };
        vec![
            event(
                "arm_spe_0/ts_enable=1,pa_enable=1/",
                PMU,
                0x1_0001_0001,
                parts | PHYS_ADDR,
                "disabled inherit exclude_hv sample_id_all",
                &[10, 11, 12, 13],
            ),
            event(
                "dummy:u",
                1,
                9,
                parts,
                "disabled inherit exclude_kernel mmap comm task sample_id_all mmap2 comm_exec \
                 context_switch",
                &[20, 21, 22, 23],
            ),
        ]
    }

    /// Returns the recording.
    pub fn file(self) -> File {
        self.file_with(&[])
    }

    /// Returns `count` random traces of `records` records.
    pub fn traces(self, count: u64, records: u64) -> Vec<Vec<u8>> {
        let mut random = Random(self.seed);
        let mut trace = |_| self.trace(&mut random, 0, records, &mut 50_000);
        (0..count).map(&mut trace).collect()
    }

    /// Returns the recording, with further traces, each of a CPU.
    pub fn file_with(self, traces: &[(u32, Vec<u8>)]) -> File {
        let mut random = Random(self.seed);
        let mut file = File::new(self.big, self.events());
        let stamp = |time, cpu: u32, (pid, tid)| Stamp {
            pid,
            tid,
            time,
            id: 20 + u64::from(cpu),
            stream_id: 0,
            cpu,
        };
        let dummy = file.events[1].attr.clone();
        let mut s = Scribe::new(self.big, dummy, stamp(0, 0, (0, 0)));
        s.tick = 0;
        s.user("TIME_CONV", kind::TIME_CONV, 0, |b| {
            user::time_conv(b, CLOCK, Some(([0, u64::MAX], [1, 0])))
        });
        self.info(&mut s);
        for (pid, tid) in THREADS {
            s.kernel("COMM", kind::COMM, 0, |b| {
                kernel::comm(b, (pid, tid), &format!("task-{tid}"))
            });
        }
        for (pid, _) in THREADS {
            s.kernel("MMAP2", kind::MMAP2, misc::USER, |b| {
                let place = [0x40_0000, 0x10_0000, 0];
                let object = kernel::Object::Inode(8, 1, 0x1234, 0);
                kernel::mmap2(b, (pid, pid), place, object, [5, 2], "/nowhere/program")
            });
        }
        s.user("FINISHED_INIT", kind::FINISHED_INIT, 0, |b| b);
        let mut offsets = [0; 4];
        let mut counters = [50_000_u64; 4];
        let mut latest = 0;
        for round in 0..4_u64 {
            for cpu in 0..4_u32 {
                let at = cpu as usize;
                let start = counters[at];
                let trace = self.trace(&mut random, cpu, self.records / 4, &mut counters[at]);
                // perf reads the buffers after the records of the same time.
                for step in 1..4 {
                    let counter = start + (counters[at] - start) * step / 3;
                    let task = *random.pick(&THREADS);
                    s.stamp = stamp(nanoseconds(counter), cpu, task);
                    latest = latest.max(s.stamp.time);
                    if step == 2 {
                        s.kernel("SWITCH_CPU_WIDE", kind::SWITCH_CPU_WIDE, 1 << 13, |b| {
                            kernel::task(b, *random.pick(&THREADS))
                        });
                    } else {
                        s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, "renamed"));
                    }
                }
                let time = s.stamp.time;
                s.stamp = stamp(time, cpu, (0, 0));
                s.kernel("AUX", kind::AUX, 0, |b| {
                    kernel::aux(b, offsets[at], count(&trace), 0)
                });
                let origin = Origin {
                    offset: offsets[at],
                    reference: round,
                    idx: cpu,
                    tid: u32::MAX,
                    cpu,
                };
                auxtrace::piece(&mut s, "AUXTRACE", origin, &trace);
                offsets[at] += count(&trace);
            }
            s.user("FINISHED_ROUND", kind::FINISHED_ROUND, 0, |b| b);
        }
        s.stamp = stamp(latest + 1_000_000, 0, (103, 103));
        let time = s.stamp.time;
        s.kernel("EXIT", kind::EXIT, 0, |b| {
            kernel::fork(b, (103, 103), (1, 1), time)
        });
        for (cpu, trace) in traces {
            let at = *cpu as usize;
            let origin = Origin {
                offset: offsets[at],
                reference: 4,
                idx: *cpu,
                tid: u32::MAX,
                cpu: *cpu,
            };
            auxtrace::piece(&mut s, "AUXTRACE", origin, trace);
            offsets[at] += count(trace);
        }
        let cpu = Buf::new(self.big).str(&format!("0x{:016x}", CPUS[0]));
        auxtrace::finish(&mut file, self.big, &s.cases, "aarch64", &[(9, cpu)]);
        file
    }

    fn info(self, s: &mut Scribe) {
        let magic = 0x1010_1010_1010_1010;
        auxtrace::info(s, "ARM_SPE", 4, |b| match self.is_v2 {
            false => b.u64s(&[PMU.into(), 1]),
            true => {
                let b = b.u64s(&[2, 4, PMU.into(), 4]);
                let cpus: Vec<_> = (0_u64..).zip(CPUS).collect();
                b.each(&cpus, |b, (cpu, midr)| {
                    // Only the first CPU reports that data was snooped.
                    let filter = if *cpu == 0 { 1 << 23 | 0xfe } else { 0xfe };
                    b.u64s(&[magic, *cpu, 4, *midr, PMU.into(), 1024, filter])
                })
            }
        });
    }

    /// Returns a piece of the trace of a CPU, whose counter advances.
    fn trace(self, random: &mut Random, cpu: u32, records: u64, counter: &mut u64) -> Vec<u8> {
        let mut trace = Buf::new(false);
        for _ in 0..records {
            // Different for each CPU, so that the order of all records is certain.
            *counter += 4 * (random.below(500) + 1);
            let timestamp = *counter / 4 * 4 + u64::from(cpu);
            let context = self.has_contexts && random.below(4) != 0;
            trace = self.record(random, trace, timestamp, context);
            if random.below(8) == 0 {
                trace = trace.zeros(random.below(5) as usize);
            }
        }
        trace.pad(64).bytes
    }
}

/// Returns the time of a value of the counter.
fn nanoseconds(counter: u64) -> u64 {
    let [shift, mult, zero] = CLOCK;
    zero + (counter >> shift) * mult + (((counter & ((1 << shift) - 1)) * mult) >> shift)
}

/// Appends a packet whose payload has 1, 2, 4 or 8 bytes, by bits 4 and 5 of its header.
fn packet(b: Buf, header: u8, payload: u64) -> Buf {
    let size = 1 << (header >> 4 & 3);
    b.u8(header).bytes(&payload.to_le_bytes()[..size])
}

impl Recipe {
    /// Appends the packets of a random record.
    fn record(self, random: &mut Random, mut b: Buf, timestamp: u64, has_context: bool) -> Buf {
        let is_kernel = random.below(3) == 0;
        let code = |random: &mut Random| match is_kernel {
            true => 1 << 63 | 1 << 61 | 0x00ff_8000_0800_0000 | random.below(1 << 20),
            false => 1 << 63 | 0x40_0000 | random.below(1 << 20),
        };
        b = packet(b, 0xb0, code(random));
        if has_context {
            let known = THREADS.map(|(_, tid)| tid);
            let tid = *random.pick(&[&known[..], &[999]].concat());
            b = packet(b, 0x65, tid.into());
        }
        let mut events = random.word() & 0x03ff_0fff;
        // Short packets are more frequent in practice, and mean that the other bits are 0.
        let header = [0x42, 0x52, 0x62, 0x72][random.below(4) as usize];
        events &= u64::MAX >> (64 - (8 << (header >> 4 & 3)));
        match random.below(3) {
            0 => {
                let payloads = [0x00, 0x04, 0x08, 0x0e, 0x88, 0x8a];
                b = packet(b, 0x48, *random.pick(&payloads));
            }
            1 => {
                let store = random.below(2);
                let kinds = [
                    0x00, 0x04, 0x10, 0x14, 0x30, 0x06, 0x0a, 0x1e, 0x08, 0x58, 0x20, 0x44,
                ];
                let kind = kinds[random.below(kinds.len() as u64) as usize];
                b = packet(b, 0x49, kind | store);
                b = packet(
                    b,
                    0xb2,
                    (random.word() & !0xf0_0000_0000_0000)
                        | (random.below(2) * 0xf0_0000_0000_0000),
                );
                if random.below(2) == 0 {
                    b = packet(b, 0xb3, 0x1000_0000 + random.below(1 << 30));
                }
                if store == 0 && random.below(4) != 0 {
                    b = packet(b, 0x43 | (random.below(2) << 4) as u8, random.below(20));
                }
            }
            _ => {
                let call_or_return = if self.has_calls {
                    random.below(4)
                } else {
                    random.below(2) * 3
                };
                b = packet(b, 0x4a, random.below(8) | call_or_return << 3);
                b = packet(b, 0xb1, code(random));
                if random.below(2) == 0 {
                    b = packet(b, 0xb4, code(random));
                }
            }
        }
        b = packet(b, header, events);
        b = packet(b, 0x98, random.below(1 << 12));
        b = packet(b, 0x99, random.below(1 << 12));
        if random.below(2) == 0 {
            b = packet(b, 0x9a, random.below(1 << 8));
        }
        if random.below(6) == 0 {
            // Extended headers: a counter and an address that perf ignores.
            b = packet(b.u8(0x21), 0x9b, random.below(1 << 12));
        }
        packet(b, 0x71, timestamp)
    }
}
