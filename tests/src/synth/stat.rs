//! Records of `perf stat record` and `perf sched stats` (types 73..78, 85, 86) and the CPU map;
//! tools/lib/perf/include/perf/event.h.

use super::buf::{Buf, count};
use super::kind;
use super::record::Scribe;

/// A set of CPUs in one of its encodings.
#[derive(Clone, Debug)]
pub enum CpuMap {
    /// A list; 0xffff is any CPU.
    Cpus(Vec<u16>),
    /// A bitmap of 32-bit words, after a header of 6 bytes.
    Mask4(Vec<u32>),
    /// A bitmap of 64-bit words, after a header of 6 bytes and 4 bytes of padding.
    Mask8(Vec<u64>),
    /// First and last (since 6.0).
    Range {
        /// Whether the map also means any CPU.
        any: bool,
        /// First CPU.
        start: u16,
        /// Last CPU.
        end: u16,
    },
}

impl CpuMap {
    /// Appends the map without padding.
    pub fn put(&self, b: Buf) -> Buf {
        match self {
            CpuMap::Cpus(cpus) => b
                .u16(0)
                .u16(cpus.len() as u16)
                .each(cpus, |b, cpu| b.u16(*cpu)),
            CpuMap::Mask4(words) => b.u16(1).u16(words.len() as u16).u16(4).u32s(words),
            CpuMap::Mask8(words) => b.u16(1).u16(words.len() as u16).u16(8).zeros(4).u64s(words),
            CpuMap::Range { any, start, end } => {
                b.u16(2).u8(u8::from(*any)).u8(0).u16(*start).u16(*end)
            }
        }
    }

    /// Returns every encoding with a name.
    pub fn all() -> Vec<(&'static str, CpuMap)> {
        vec![
            ("cpus", CpuMap::Cpus(vec![0, 3, 300])),
            ("any cpu", CpuMap::Cpus(vec![0xffff])),
            ("mask of 4", CpuMap::Mask4(vec![0x8000_0009, 0x0102_0304])),
            (
                "mask of 8",
                CpuMap::Mask8(vec![0x8000_0000_0000_0009, 0x0102_0304_0506_0708]),
            ),
            (
                "range",
                CpuMap::Range {
                    any: false,
                    start: 2,
                    end: 300,
                },
            ),
            (
                "range and any cpu",
                CpuMap::Range {
                    any: true,
                    start: 0,
                    end: 7,
                },
            ),
        ]
    }
}

/// Appends the body of STAT_CONFIG: tags and values.
pub fn stat_config(b: Buf, terms: &[[u64; 2]]) -> Buf {
    b.u64(count(terms)).each(terms, |b, term| b.u64s(term))
}

/// Appends the body of STAT: the counts are value, time enabled and time running.
pub fn stat(b: Buf, id: u64, cpu: u32, thread: u32, counts: [u64; 3]) -> Buf {
    b.u64(id).u32(cpu).u32(thread).u64s(&counts)
}

/// Appends the body of STAT_ROUND: interval (0) or final (1). The type comes first, unlike in the C
/// struct's name.
pub fn stat_round(b: Buf, kind: u64, time: u64) -> Buf {
    b.u64(kind).u64(time)
}

/// An update of an event by EVENT_UPDATE.
#[derive(Clone, Debug)]
pub enum Update<'a> {
    /// The unit of its counts.
    Unit(&'a str),
    /// The factor of its counts.
    Scale(f64),
    /// Its name.
    Name(&'a str),
    /// The CPUs that it counts on.
    Cpus(CpuMap),
}

impl Update<'_> {
    /// Appends the body without extra bytes, as before 6.0.
    pub fn put_tight(&self, b: Buf, id: u64) -> Buf {
        match self {
            Update::Unit(unit) => b.u64(0).u64(id).text(unit),
            Update::Scale(scale) => b.u64(1).u64(id).f64(*scale),
            Update::Name(name) => b.u64(2).u64(id).text(name),
            Update::Cpus(map) => map.put(b.u64(3).u64(id)).pad(8),
        }
    }

    /// Appends the body as perf writes it now. In C, the payloads are members of a union of 16
    /// bytes. perf adds this size to the length of a string, and also uses it for the scale.
    pub fn put(&self, b: Buf, id: u64) -> Buf {
        let b = self.put_tight(b, id);
        if matches!(self, Update::Cpus(_)) {
            b
        } else {
            b.zeros(16)
        }
    }
}

/// Appends the body of SCHEDSTAT_CPU.
pub fn schedstat_cpu(
    b: Buf,
    time: u64,
    cpu: u32,
    version: u16,
    counts: [u32; 6],
    times: [u64; 3],
) -> Buf {
    b.u64(time)
        .u32(cpu)
        .u16(version)
        .zeros(2)
        .u32s(&counts)
        .u64s(&times)
}

/// Appends the body of SCHEDSTAT_DOMAIN, whose size is sufficient for the counters of any version.
pub fn schedstat_domain(
    b: Buf,
    time: u64,
    cpu: u32,
    version: u16,
    domain: u16,
    counters: &[u32],
) -> Buf {
    let counters = Buf::new(b.big).u32s(counters).bytes;
    b.u64(time)
        .u32(cpu)
        .u16(version)
        .u16(domain)
        .room(&counters, 184)
}

/// Writes every type in every variant.
pub fn cases(s: &mut Scribe) {
    plain(s);
    let id = s.stamp.id;
    s.user("CPU_MAP no cpus", kind::CPU_MAP, 0, |b| {
        CpuMap::Cpus(Vec::new()).put(b).pad(8)
    });
    // perf 4.16 did not pad: 8 + 4 + 4 * 2 bytes.
    s.user("CPU_MAP not padded", kind::CPU_MAP, 0, |b| {
        CpuMap::Cpus(vec![0, 1, 2, 3]).put(b)
    });
    s.user("STAT_CONFIG of before 6.5", kind::STAT_CONFIG, 0, |b| {
        stat_config(b, &[[0, 1], [1, 1000], [2, 1]])
    });
    s.user("STAT of no cpu and thread", kind::STAT, 0, |b| {
        stat(b, id, u32::MAX, u32::MAX, [1, 2, 3])
    });
    for (name, update) in updates() {
        s.user(
            &format!("EVENT_UPDATE {name} of before 6.0"),
            kind::EVENT_UPDATE,
            0,
            |b| update.put_tight(b, id),
        );
    }
    schedstat(s);
}

fn updates() -> [(&'static str, Update<'static>); 3] {
    [
        ("unit", Update::Unit("Joules")),
        ("scale", Update::Scale(2.3283064365386963e-10)),
        ("name", Update::Name("cycles:u")),
    ]
}

/// Writes every type as perf writes it now, except SCHEDSTAT, all for the event of the scribe's
/// stamp.
pub fn plain(s: &mut Scribe) {
    let id = s.stamp.id;
    for (name, map) in CpuMap::all() {
        s.user(&format!("CPU_MAP {name}"), kind::CPU_MAP, 0, |b| {
            map.put(b).pad(8)
        });
        let update = Update::Cpus(map);
        s.user(
            &format!("EVENT_UPDATE {name}"),
            kind::EVENT_UPDATE,
            0,
            |b| update.put(b, id),
        );
    }
    for (name, update) in updates() {
        s.user(
            &format!("EVENT_UPDATE {name}"),
            kind::EVENT_UPDATE,
            0,
            |b| update.put(b, id),
        );
    }
    s.user("STAT_CONFIG", kind::STAT_CONFIG, 0, |b| {
        stat_config(b, &[[0, 3], [1, 1000], [2, 1], [3, 0]])
    });
    s.user("STAT", kind::STAT, 0, |b| {
        stat(b, id, 0, 1, [0x1_0000_0000, 5_000, 4_000])
    });
    for (what, name) in [(0, "interval"), (1, "final")] {
        s.user(&format!("STAT_ROUND {name}"), kind::STAT_ROUND, 0, |b| {
            stat_round(b, what, 1_000_000_007)
        });
    }
}

/// Writes the records of `perf sched stats`, in the existing versions of /proc/schedstat.
pub fn schedstat(s: &mut Scribe) {
    const TIME: u64 = 1_000_000_007;
    for version in [15, 16, 17] {
        s.user(
            &format!("SCHEDSTAT_CPU {version}"),
            kind::SCHEDSTAT_CPU,
            0,
            |b| {
                schedstat_cpu(
                    b,
                    TIME,
                    3,
                    version,
                    [1, 2, 3, 4, 5, 6],
                    [0x7_0000_0007, 0x8_0000_0008, 0x9_0000_0009],
                )
            },
        );
        // Three groups of load balancing counters (8 each, 11 each since version 17), then twelve
        // others.
        let number = if version < 17 {
            3 * 8 + 12
        } else {
            3 * 11 + 12
        };
        let counters: Vec<u32> = (1..=number).map(|n| n * 0x101).collect();
        s.user(
            &format!("SCHEDSTAT_DOMAIN {version}"),
            kind::SCHEDSTAT_DOMAIN,
            0,
            |b| schedstat_domain(b, TIME, 3, version, 1, &counters),
        );
    }
}
