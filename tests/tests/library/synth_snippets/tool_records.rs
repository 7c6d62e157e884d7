//! Records of the perf tool.

use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::build_id::{Entry, HOST, Room};
use perfdata_tests::synth::file::Magic;
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::record::misc;
use perfdata_tests::synth::stat::{self, CpuMap, Update};
use perfdata_tests::synth::{Attr, Buf, Stamp, kind, user};

use super::{BIG, LITTLE, found, kernel_record, thread, user_record};

#[test]
fn attributes() {
    let attr = Attr {
        kind: 1,
        sample_period: 499,
        read_format: 0x14,
        ..Attr::new(
            IP | TID | TIME | ID | PERIOD,
            "disabled inherit mmap comm freq enable_on_exec task sample_id_all mmap2 comm_exec ksymbol bpf_event build_id",
        )
    };
    user_record(
        ("7.2-x86_64-pipe-default", 0x10),
        LITTLE,
        kind::HEADER_ATTR,
        0,
        |b| user::header_attr(b, &attr, &[1637, 1638]),
    );
    user_record(
        ("7.2-s390x-pipe-default", 0x10),
        BIG,
        kind::HEADER_ATTR,
        0,
        |b| user::header_attr(b, &attr, &[1267, 1268]),
    );
    let hostname = |b: Buf, name| {
        let section = Buf::new(b.big).str(name).bytes;
        user::header_feature(b, 3, &section)
    };
    user_record(
        ("7.2-x86_64-pipe-default", 0xb8),
        LITTLE,
        kind::HEADER_FEATURE,
        0,
        |b| hostname(b, "recorder"),
    );
    user_record(
        ("7.2-s390x-pipe-default", 0xb8),
        BIG,
        kind::HEADER_FEATURE,
        0,
        |b| hostname(b, "s390guest"),
    );
    found(
        "7.2-s390x-pipe-default",
        0,
        &Pipe::new(BIG, Magic::V2).bytes,
    );
    found(
        "7.2-x86_64-pipe-default",
        0,
        &Pipe::new(LITTLE, Magic::V2).bytes,
    );
}

#[test]
fn tool_records() {
    let entry = Entry {
        misc: misc::KERNEL,
        pid: HOST,
        build_id:
            b"\xf8\xda\x1e\x46\x0d\x13\x43\xb6\x2f\x4a\x88\x80\xae\x5c\xe6\x36\x34\x75\x6e\x7a",
        size_byte: true,
        name: "[kernel.kallsyms]",
        room: Room::Record8,
    };
    let trailer = thread(0x896, 0x896, 0x89_c8a4_a391);
    kernel_record(
        ("7.2-x86_64-file-injected", 0x700),
        LITTLE,
        kind::HEADER_BUILD_ID,
        entry.misc(),
        trailer,
        |b| entry.put(b),
    );
    let entry = Entry {
        misc: misc::USER,
        build_id:
            b"\x2c\x81\xab\x97\x6e\x99\x05\x2d\xff\xdc\xc8\x24\x9c\xa3\x72\x06\xdd\x6b\x99\xac",
        size_byte: false,
        name: "/usr/lib/s390x-linux-gnu/ld64.so.1",
        room: Room::Name64,
        ..entry
    };
    user_record(
        ("6.1-s390x-pipe-injected", 0x1128),
        BIG,
        kind::HEADER_BUILD_ID,
        entry.misc(),
        |b| entry.put(b),
    );

    user_record(
        ("7.2-x86_64-file-perthread", 0x148),
        LITTLE,
        kind::ID_INDEX,
        0,
        |b| user::id_index(b, &[[0x317, 0, u64::MAX, 0x361]], &[]),
    );
    user_record(
        ("6.12-s390x-file-perthread", 0x108),
        BIG,
        kind::ID_INDEX,
        0,
        |b| user::id_index(b, &[[0x27c, 0, u64::MAX, 0x3e4]], &[]),
    );
    user_record(
        ("6.12-aarch64-bid-none-file", 0x538),
        LITTLE,
        kind::THREAD_MAP,
        0,
        |b| user::thread_map(b, &[(0x10a, "")]),
    );
    user_record(
        ("6.12-aarch64-bid-none-file", 0x110),
        LITTLE,
        kind::TIME_CONV,
        0,
        |b| {
            let cycles = [0xb1_f4ca, 0x1ff_ffff_ffff_ffff];
            user::time_conv(
                b,
                [21, 0x200_0000, 0xffff_ffff_f4e7_6720],
                Some((cycles, [1, 1])),
            )
        },
    );
    user_record(
        ("6.12-aarch64-bid-none-file", 0x5a0),
        LITTLE,
        kind::FINISHED_INIT,
        0,
        |b| b,
    );
    let nobody = (TID | TIME | ID | CPU, Stamp::ZERO);
    kernel_record(
        ("7.2-x86_64-file-bpfmeta", 0x8b8),
        LITTLE,
        kind::BPF_METADATA,
        0,
        nobody,
        |b| {
            let variables = [
                ("author", "\"the recorder\""),
                ("purpose", "\"demonstration\""),
                ("version", "7"),
                ("big", "81985529216486895"),
            ];
            user::bpf_metadata(b, "bpf_prog_0d6609391569ecf4_demo_meta", &variables)
        },
    );
}

#[test]
fn stat_records() {
    let map = CpuMap::Range {
        any: false,
        start: 0,
        end: 1,
    };
    user_record(
        ("6.12-aarch64-bid-none-file", 0x560),
        LITTLE,
        kind::CPU_MAP,
        0,
        |b| map.put(b),
    );
    let update = Update::Cpus(map);
    user_record(
        ("6.12-aarch64-hw-pmuname", 0x600),
        LITTLE,
        kind::EVENT_UPDATE,
        0,
        |b| update.put(b, 0x1096),
    );
    user_record(
        ("7.2-s390x-file-bpf-a", 0x670),
        BIG,
        kind::EVENT_UPDATE,
        0,
        |b| update.put(b, 0x3dc),
    );
    let unit = Update::Unit("msec");
    user_record(
        ("6.12-aarch64-bid-none-file", 0x4d8),
        LITTLE,
        kind::EVENT_UPDATE,
        0,
        |b| unit.put(b, 0x9d),
    );
    user_record(
        ("6.1-s390x-file-clockmono", 0x4c0),
        BIG,
        kind::EVENT_UPDATE,
        0,
        |b| unit.put(b, 0x179),
    );
    let scale = Update::Scale(1e-6);
    user_record(
        ("6.12-aarch64-bid-none-file", 0x508),
        LITTLE,
        kind::EVENT_UPDATE,
        0,
        |b| scale.put(b, 0x9d),
    );
    user_record(
        ("6.1-s390x-file-clockmono", 0x4f0),
        BIG,
        kind::EVENT_UPDATE,
        0,
        |b| scale.put(b, 0x179),
    );
    let name = Update::Name("dummy:u");
    user_record(
        ("6.12-s390x-pipe-a", 0x1228),
        BIG,
        kind::EVENT_UPDATE,
        0,
        |b| name.put(b, 0x566),
    );

    let config = [[0, 1], [1, 0], [2, 1]];
    user_record(
        ("6.1-i386-pipe-stat", 0x228),
        LITTLE,
        kind::STAT_CONFIG,
        0,
        |b| stat::stat_config(b, &config),
    );
    user_record(
        ("6.1-s390x-pipe-stat", 0x238),
        BIG,
        kind::STAT_CONFIG,
        0,
        |b| stat::stat_config(b, &config),
    );
    user_record(
        ("6.12-aarch64-hw-stat", 0x370),
        LITTLE,
        kind::STAT,
        0,
        |b| {
            stat::stat(
                b,
                0x111e,
                u32::MAX,
                0,
                [0x273f_1a32, 0x2777_76c0, 0x2777_76c0],
            )
        },
    );
    user_record(("6.1-s390x-pipe-stat", 0x278), BIG, kind::STAT, 0, |b| {
        stat::stat(
            b,
            0x2d7,
            u32::MAX,
            0,
            [0x243b_b613, 0x245e_93dd, 0x245e_93dd],
        )
    });
    user_record(
        ("6.12-aarch64-hw-stat", 0x470),
        LITTLE,
        kind::STAT_ROUND,
        0,
        |b| stat::stat_round(b, 1, 0x1817_bee0),
    );
    user_record(
        ("6.1-s390x-pipe-stat", 0x318),
        BIG,
        kind::STAT_ROUND,
        0,
        |b| stat::stat_round(b, 1, 0x1a3a_60d2),
    );
}

#[test]
fn schedstat_records() {
    user_record(
        ("7.2-x86_64-tool-schedstats", 0x68),
        LITTLE,
        kind::SCHEDSTAT_CPU,
        0,
        |b| {
            let times = [0x4b_4df9_1f5c, 0x4_2f15_43a1, 0xc129];
            stat::schedstat_cpu(b, 0x1_0001_3348, 0, 17, [0, 0, 46, 21, 8, 6], times)
        },
    );
    user_record(
        ("7.2-s390x-tool-schedstats", 0x68),
        BIG,
        kind::SCHEDSTAT_CPU,
        0,
        |b| {
            stat::schedstat_cpu(
                b,
                0x1_0000_f4ad,
                0,
                16,
                [0; 6],
                [0x53_684c_1750, 0x3c_94fd_a31f, 0x8ca3],
            )
        },
    );
    user_record(
        ("7.2-x86_64-tool-schedstats", 0xb0),
        LITTLE,
        kind::SCHEDSTAT_DOMAIN,
        0,
        |b| {
            let mut counters = [0; 45];
            let set = [
                (0, 1),
                (1, 1),
                (10, 1),
                (11, 16),
                (12, 16),
                (21, 16),
                (22, 1),
                (23, 1),
                (32, 1),
                (42, 2),
                (43, 2),
            ];
            for (at, count) in set {
                counters[at] = count;
            }
            stat::schedstat_domain(b, 0x1_0001_3348, 0, 17, 0, &counters)
        },
    );
}
