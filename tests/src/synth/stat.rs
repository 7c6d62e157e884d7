//! Records of `perf stat record` and `perf sched stats` (types 73..78, 85, 86) and the CPU map;
//! tools/lib/perf/include/perf/event.h.

use super::buf::{Buf, count};
use super::record::Scribe;

const CPU_MAP: u32 = 74;
const STAT_CONFIG: u32 = 75;
const STAT: u32 = 76;
const STAT_ROUND: u32 = 77;
const EVENT_UPDATE: u32 = 78;
const SCHEDSTAT_CPU: u32 = 85;
const SCHEDSTAT_DOMAIN: u32 = 86;

/// A set of CPUs in one of its encodings.
#[derive(Clone, Debug)]
pub enum CpuMap {
    /// A list; 0xffff is any CPU.
    Cpus(Vec<u16>),
    /// A bitmap of 32-bit words, behind a head of 6 bytes.
    Mask4(Vec<u32>),
    /// A bitmap of 64-bit words, behind a head of 6 bytes and 4 of padding.
    Mask8(Vec<u64>),
    /// First and last (since 6.0).
    Range {
        /// The map also stands for any CPU.
        any: bool,
        /// First CPU.
        start: u16,
        /// Last CPU.
        end: u16,
    },
}

impl CpuMap {
    /// Appends the map, not padded.
    pub fn put(&self, b: Buf) -> Buf {
        match self {
            CpuMap::Cpus(cpus) => b.u16(0).u16(cpus.len() as u16).each(cpus, |b, cpu| b.u16(*cpu)),
            CpuMap::Mask4(words) => b.u16(1).u16(words.len() as u16).u16(4).u32s(words),
            CpuMap::Mask8(words) => b.u16(1).u16(words.len() as u16).u16(8).zeros(4).u64s(words),
            CpuMap::Range { any, start, end } => b.u16(2).u8(u8::from(*any)).u8(0).u16(*start).u16(*end),
        }
    }

    /// Every encoding, with a name.
    pub fn all() -> Vec<(&'static str, CpuMap)> {
        vec![
            ("cpus", CpuMap::Cpus(vec![0, 2, 300])),
            ("any cpu", CpuMap::Cpus(vec![0xffff])),
            ("no cpus", CpuMap::Cpus(Vec::new())),
            ("mask of 4", CpuMap::Mask4(vec![0x8000_0005, 0x0102_0304])),
            ("mask of 8", CpuMap::Mask8(vec![0x8000_0000_0000_0005, 0x0102_0304_0506_0708])),
            ("range", CpuMap::Range { any: false, start: 2, end: 300 }),
            ("range and any cpu", CpuMap::Range { any: true, start: 0, end: 7 }),
        ]
    }
}

/// Every type, every variant.
pub fn cases(s: &mut Scribe) {
    plain(s);
    // perf 4.16 did not pad: 8 + 4 + 4 * 2 bytes.
    s.user("CPU_MAP not padded", CPU_MAP, 0, |b| CpuMap::Cpus(vec![0, 1, 2, 3]).put(b));
    s.user("STAT_CONFIG of before 6.5", STAT_CONFIG, 0, |b| b.u64(3).u64s(&[0, 1, 1, 1000, 2, 1]));
    s.user("EVENT_UPDATE scale of before 6.0", EVENT_UPDATE, 0, |b| b.u64(1).u64(1001).f64(6.103515625e-5));
    s.user("EVENT_UPDATE name of before 6.0", EVENT_UPDATE, 0, |b| b.u64(2).u64(1001).text("cycles:u"));
    schedstat(s);
}

/// Every type as perf writes it now, except SCHEDSTAT, all about the event of the scribe's stamp.
pub fn plain(s: &mut Scribe) {
    let id = s.stamp.id;
    for (name, map) in CpuMap::all() {
        s.user(&format!("CPU_MAP {name}"), CPU_MAP, 0, |b| map.put(b).pad(8));
        s.user(&format!("EVENT_UPDATE {name}"), EVENT_UPDATE, 0, |b| map.put(b.u64(3).u64(id)).pad(8));
    }
    // The union behind the id is 16 bytes long in C, which perf adds to the string's own length.
    for (kind, name, text) in [(0, "unit", "Joules"), (2, "name", "cycles:u")] {
        s.user(&format!("EVENT_UPDATE {name}"), EVENT_UPDATE, 0, |b| b.u64(kind).u64(id).text(text).zeros(16));
    }
    s.user("EVENT_UPDATE scale", EVENT_UPDATE, 0, |b| b.u64(1).u64(id).f64(2.3283064365386963e-10).zeros(16));
    s.user("STAT_CONFIG", STAT_CONFIG, 0, |b| {
        let terms = [[0, 3], [1, 1000], [2, 1], [3, 0]];
        b.u64(count(&terms)).each(&terms, |b, term| b.u64s(term))
    });
    s.user("STAT", STAT, 0, |b| b.u64(id).u32(3).u32(1).u64s(&[0x1_0000_0000, 5_000, 4_000]));
    s.user("STAT of no cpu and thread", STAT, 0, |b| b.u64(id).u32(u32::MAX).u32(u32::MAX).u64s(&[1, 2, 3]));
    for (kind, name) in [(0, "interval"), (1, "final")] {
        s.user(&format!("STAT_ROUND {name}"), STAT_ROUND, 0, |b| b.u64(kind).u64(1_000_000_007));
    }
}

/// `perf sched stats`, in the versions of /proc/schedstat that exist.
pub fn schedstat(s: &mut Scribe) {
    for version in [15, 16, 17] {
        schedstat_of(s, version);
    }
}

/// `perf sched stats` in one version of /proc/schedstat.
pub fn schedstat_of(s: &mut Scribe, version: u16) {
    s.user(&format!("SCHEDSTAT_CPU {version}"), SCHEDSTAT_CPU, 0, |b| {
        b.u64(1_000_000_007).u32(3).u16(version).zeros(2).u32s(&[1, 2, 3, 4, 5, 6]).u64s(&[
            0x7_0000_0007,
            0x8_0000_0008,
            0x9_0000_0009,
        ])
    });
    // Three groups of load balance counters (8 each, 11 since version 17) and twelve others, in a
    // record with room for the longest.
    let counters: Vec<u32> = (1..=if version < 17 { 36 } else { 45 }).map(|n| n * 0x101).collect();
    s.user(&format!("SCHEDSTAT_DOMAIN {version}"), SCHEDSTAT_DOMAIN, 0, |b| {
        let counters = Buf::new(b.big).u32s(&counters).bytes;
        b.u64(1_000_000_007).u32(3).u16(version).u16(1).room(&counters, 184)
    });
}
