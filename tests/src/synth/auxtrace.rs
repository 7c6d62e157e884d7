//! Records for hardware tracing (types 70..72).

use super::buf::{Buf, count, island};
use super::feature_events;
use super::file::File;
use super::kind;
use super::record::{Case, Scribe, stream};

/// Every type, every variant.
pub fn cases(s: &mut Scribe) {
    intel(s);
    coresight(s);
    arm_spe(s);
    for (kind, name, words) in [
        (5, "S390_CPUMSF", &[][..]),
        (6, "HISI_PTT", &[9]),
        (7, "VPA_DTL", &[0]),
    ] {
        info(s, name, kind, |b| b.u64s(words));
    }
    auxtrace(s, "AUXTRACE", &island(40));
    auxtrace(s, "AUXTRACE empty", &[]);
    errors(s);
}

/// Writes an AUXTRACE_INFO record of the given type with the given words.
pub fn info(s: &mut Scribe, name: &str, kind: u32, words: impl FnOnce(Buf) -> Buf) {
    s.user(
        &format!("AUXTRACE_INFO {name}"),
        kind::AUXTRACE_INFO,
        0,
        |b| words(b.u32(kind).u32(0)),
    );
}

/// The origin of a block of AUX data. A thread or CPU with all bits set means none.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Offset in the AUX buffer.
    pub offset: u64,
    /// Number that orders the blocks of all buffers.
    pub reference: u64,
    /// Number of the buffer.
    pub idx: u32,
    /// Thread ID.
    pub tid: u32,
    /// CPU.
    pub cpu: u32,
}

/// Writes an AUXTRACE record and the trace after it.
pub fn auxtrace(s: &mut Scribe, name: &str, trace: &[u8]) {
    let origin = Origin {
        offset: 0x1000,
        reference: 0x1122_3344_5566_7788,
        idx: 2,
        tid: 4202,
        cpu: 3,
    };
    piece(s, name, origin, trace);
}

/// Does the same as [`auxtrace`] for any buffer.
pub fn piece(s: &mut Scribe, name: &str, origin: Origin, trace: &[u8]) {
    assert_eq!(trace.len() % 8, 0, "the zero padding is part of the trace");
    let Origin {
        offset,
        reference,
        idx,
        tid,
        cpu,
    } = origin;
    let case = s.user(name, kind::AUXTRACE, 0, |b| {
        b.u64(count(trace))
            .u64(offset)
            .u64(reference)
            .u32s(&[idx, tid, cpu, 0])
    });
    case.payload = trace.to_vec();
}

/// Writes `cases` to `file`, with the features of a machine of this architecture, those in `more`,
/// and the index of AUXTRACE records.
pub fn finish(file: &mut File, big: bool, cases: &[Case], arch: &str, more: &[(u32, Buf)]) {
    let mut places = Vec::new();
    let mut place = file.data_offset();
    for case in cases {
        if case.kind == kind::AUXTRACE {
            places.push(place);
        }
        place += count(&case.record) + count(&case.payload);
    }
    file.data = stream(cases);
    let buf = || Buf::new(big);
    let described = feature_events::event_desc(buf(), &file.events);
    let index = feature_events::auxtrace_index(buf(), &places);
    for (bit, section) in [
        (3, buf().str("recorder")),
        (4, buf().str("6.12.0")),
        (6, buf().str(arch)),
        (7, buf().u32(4).u32(4)),
    ] {
        file.set_feature(bit, section.bytes);
    }
    for (bit, section) in more {
        file.set_feature(*bit, section.bytes.clone());
    }
    file.set_feature(feature_events::EVENT_DESC, described.bytes);
    file.set_feature(feature_events::AUXTRACE, index.bytes);
}

/// The words of Intel PT, intel-pt.h: the first 15, of 4.3.
pub const INTEL_PT: [u64; 15] = [
    8,           // pmu_type
    31,          // time_shift
    0x3e8_0001,  // time_mult
    0x1234_5678, // time_zero
    1,           // cap_user_time_zero
    1 << 10,     // tsc_bit
    1 << 11,     // noretcomp_bit
    3,           // have_sched_switch
    0,           // snapshot_mode
    1,           // per_cpu_mmaps
    1 << 9,      // mtc_bit
    0x3c000,     // mtc_freq_bits
    2,           // tsc_ctc_n
    168,         // tsc_ctc_d
    1 << 1,      // cyc_bit
];

/// Appends the words of Intel PT with a filter, as perf writes them since 5.17.
pub fn intel_pt_with_filter(b: Buf) -> Buf {
    let filter = "filter main @ /usr/bin/true";
    b.u64s(&INTEL_PT)
        .u64(40)
        .u64(filter.len() as u64)
        .text(filter)
        .u64(0)
}

fn intel(s: &mut Scribe) {
    info(s, "INTEL_PT of 4.2", 1, |b| b.u64s(&INTEL_PT[..10]));
    info(s, "INTEL_PT of 4.3", 1, |b| b.u64s(&INTEL_PT));
    info(s, "INTEL_PT of 4.14", 1, |b| {
        b.u64s(&INTEL_PT).u64(40).u64(0)
    });
    info(s, "INTEL_PT of 5.17", 1, |b| {
        b.u64s(&INTEL_PT).u64(40).u64(0).u64(1)
    });
    info(s, "INTEL_PT with filter of 4.14", 1, |b| {
        b.u64s(&INTEL_PT).u64(40).u64(15).text("filter * @ /a/b")
    });
    info(s, "INTEL_PT with filter of 5.17", 1, intel_pt_with_filter);
    info(s, "INTEL_BTS", 2, |b| {
        b.u64s(&[9, 31, 0x3e8_0001, 0x1234_5678, 1, 0])
    });
}

/// The magic words of the CPU blocks of CoreSight (cs-etm.h) and SPE (arm-spe.h).
const ETM_V3: u64 = 0x3030_3030_3030_3030;
const ETM_V4: u64 = 0x4040_4040_4040_4040;
const ETE: u64 = 0x5050_5050_5050_5050;
const SPE: u64 = 0x1010_1010_1010_1010;

fn coresight(s: &mut Scribe) {
    // The PMU type and the number of CPUs share a word.
    let head = |version: u64, cpus: u64| [version, 11 << 32 | cpus, 0];
    // Control register and trace ID, which is different for each CPU, then other registers.
    let v3 = |trace_id| [0x1000, trace_id, 0x8d29_4004, 0x410c_f250];
    let v4 = |trace_id| [0xc1, trace_id, 0x2800_0ea1, 0x4100_f424, 0x488, 0, 0xcc];
    info(s, "CS_ETM v0, ETMv3", 3, |b| {
        b.u64s(&head(0, 2))
            .u64s(&[ETM_V3, 0])
            .u64s(&v3(0x10))
            .u64s(&[ETM_V3, 1])
            .u64s(&v3(0x12))
    });
    info(s, "CS_ETM v0, ETMv4", 3, |b| {
        b.u64s(&head(0, 1)).u64s(&[ETM_V4, 0]).u64s(&v4(0x10))
    });
    info(s, "CS_ETM v1, ETMv3", 3, |b| {
        b.u64s(&head(1, 1)).u64s(&[ETM_V3, 0, 4]).u64s(&v3(0x10))
    });
    for version in [1, 2] {
        info(s, &format!("CS_ETM v{version}, ETMv4 and ETE"), 3, |b| {
            b.u64s(&head(version, 2))
                .u64s(&[ETM_V4, 0, 8])
                .u64s(&v4(0x10))
                .u64(u64::MAX) // TS_SOURCE, unknown
                .u64s(&[ETE, 1, 9])
                .u64s(&v4(0x12))
                .u64s(&[0x4770_0a13, 1]) // TRCDEVARCH, TS_SOURCE
        });
    }
}

fn arm_spe(s: &mut Scribe) {
    info(s, "ARM_SPE v1", 4, |b| b.u64s(&[9, 1]));
    let cpus = [[0, 0x410f_d0c0, 9, 1024], [1, 0x410f_d0c1, u64::MAX, 256]];
    info(s, "ARM_SPE v2 of 6.13", 4, |b| {
        b.u64s(&[2, 4, 9, count(&cpus)])
            .each(&cpus, |b, [cpu, midr, pmu, interval]| {
                b.u64s(&[SPE, *cpu, 3, *midr, *pmu, *interval])
            })
    });
    info(s, "ARM_SPE v2 of 6.19", 4, |b| {
        b.u64s(&[2, 4, 9, count(&cpus)])
            .each(&cpus, |b, [cpu, midr, pmu, interval]| {
                b.u64s(&[SPE, *cpu, 4, *midr, *pmu, *interval, 0xffff_0000_0000_0001])
            })
    });
}

/// Writes AUXTRACE_ERROR records.
pub fn errors(s: &mut Scribe) {
    let message = "Overflow packet";
    let head = |b: Buf, format| b.u32s(&[1, 8, 3, 4201, 4202, format]).u64(0x40_1234);
    s.user("AUXTRACE_ERROR format 0", kind::AUXTRACE_ERROR, 0, |b| {
        head(b, 0).room(message.as_bytes(), 64)
    });
    s.user(
        "AUXTRACE_ERROR format 0, cut",
        kind::AUXTRACE_ERROR,
        0,
        |b| head(b, 0).text(message),
    );
    s.user("AUXTRACE_ERROR format 1", kind::AUXTRACE_ERROR, 0, |b| {
        head(b, 1).u64(1_000_000_007).text(message)
    });
    s.user("AUXTRACE_ERROR format 2", kind::AUXTRACE_ERROR, 0, |b| {
        head(b, 2)
            .u64(1_000_000_007)
            .room(message.as_bytes(), 64)
            .u32s(&[3001, 1])
    });
}
