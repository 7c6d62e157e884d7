//! The independent writer against the kernel and perf: records, attributes, feature sections and whole
//! files of real recordings, written again from their values.

use std::fs;

use perfdata_tests::recordings;
use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::build_id::{Entry, HOST, Room};
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::feature_topology::{self, CpuTopology};
use perfdata_tests::synth::file::{File, Magic};
use perfdata_tests::synth::kernel::{self, Object};
use perfdata_tests::synth::pipe::Pipe;
use perfdata_tests::synth::record::{Scribe, misc};
use perfdata_tests::synth::sample::{Read, ReadValue, Regs, Sample, Stack, context};
use perfdata_tests::synth::stat::{self, CpuMap, Update};
use perfdata_tests::synth::{Attr, Buf, Stamp, feature_pmu, kind, user};

const LITTLE: bool = false;
const BIG: bool = true;

fn fixture(name: &str) -> Vec<u8> {
    let path = recordings::fixture(name).main_file();
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.chunks(8).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + " ").collect()
}

/// Both are the same bytes; else the words around the first difference are shown.
#[track_caller]
fn same(what: &str, real: &[u8], written: &[u8]) {
    let Some(at) = (0..real.len().max(written.len())).find(|at| real.get(*at) != written.get(*at)) else { return };
    let around = |bytes: &[u8]| hex(bytes.get(at / 8 * 8..).map_or(&[], |rest| &rest[..rest.len().min(32)]));
    let lengths = (real.len(), written.len());
    panic!("{what}, byte {at} of {lengths:?}:\n   real {}\nwritten {}", around(real), around(written));
}

/// The bytes at `offset` of a fixture are the ones written.
#[track_caller]
fn found(name: &str, offset: usize, written: &[u8]) {
    same(&format!("{name} at {offset:#x}"), &fixture(name)[offset..][..written.len()], written);
}

/// A kernel record at `offset` of a fixture is what the layout makes of the values.
#[track_caller]
fn kernel_record(
    at: (&str, usize),
    big: bool,
    kind: u32,
    misc: u16,
    trailer: (u64, Stamp),
    body: impl FnOnce(Buf) -> Buf,
) {
    let mut scribe = Scribe::new(big, Attr::new(trailer.0, "sample_id_all"), trailer.1);
    let written = scribe.kernel("", kind, misc, body).record.clone();
    found(at.0, at.1, &written);
}

/// A record without a trailer, likewise.
#[track_caller]
fn user_record(at: (&str, usize), big: bool, kind: u32, misc: u16, body: impl FnOnce(Buf) -> Buf) {
    kernel_record(at, big, kind, misc, (0, Stamp::ZERO), body);
}

/// A trailer of one thread at a time.
fn thread(pid: u32, tid: u32, time: u64) -> (u64, Stamp) {
    (TID | TIME, Stamp { pid, tid, time, ..Stamp::ZERO })
}

/// The trailer of records that perf made up: zeros.
const NOBODY: (u64, Stamp) = (TID | TIME, Stamp::ZERO);

#[test]
fn mappings() {
    user_record(("6.12-aarch64-hw-stat", 0x430), LITTLE, kind::MMAP, misc::KERNEL, |b| {
        let place = [0xffff_9292_6280_0000, 0x23e_a200, 0xffff_9292_6280_0000];
        kernel::mmap(b, (u32::MAX, 0), place, "[kernel.kallsyms]_text")
    });
    user_record(("6.1-s390x-pipe-stat", 0x2d8), BIG, kind::MMAP, misc::KERNEL, |b| {
        kernel::mmap(b, (u32::MAX, 0), [0x10_0000, 0x9e_1000, 0x10_0000], "[kernel.kallsyms]_text")
    });

    let inode = Object::Inode(0, 0, 0, 0);
    let trailer = (TID, Stamp { pid: 0x361, tid: 0x361, ..Stamp::ZERO });
    kernel_record(("7.2-x86_64-file-perthread", 0x790), LITTLE, kind::MMAP2, misc::USER, trailer, |b| {
        kernel::mmap2(b, (0x361, 0x361), [0x7fd9_7fbf_2000, 0x2000, 0], inode.clone(), [5, 2], "[vdso]")
    });
    let trailer = (TID, Stamp { pid: 0x3e4, tid: 0x3e4, ..Stamp::ZERO });
    kernel_record(("6.12-s390x-file-perthread", 0x668), BIG, kind::MMAP2, misc::USER, trailer, |b| {
        kernel::mmap2(b, (0x3e4, 0x3e4), [0x3ff_fd2f_7000, 0x2000, 0], inode, [5, 2], "[vdso]")
    });

    let build_id = 0x4000 | misc::KERNEL;
    let id = *b"\x68\xef\x3b\x31\xfa\xa6\x8e\x47\x53\x32\xaf\x4b\x9f\x94\x48\xe2\x40\xb7\xa6\x08";
    let trailer = (TID, Stamp::ZERO);
    kernel_record(("7.2-x86_64-file-perthread", 0x1e0), LITTLE, kind::MMAP2, build_id, trailer, |b| {
        let place = [0xffff_ffff_c040_0000, 0x1000, 0];
        kernel::mmap2(b, (u32::MAX, 0), place, Object::BuildId(&id), [0, 0], "[virtio_mmio]")
    });
    let id = *b"\xa5\x66\x24\x61\xc4\xb5\x9b\x8e\xf4\x0f\x9c\xc8\x18\x2b\xcf\x3c\x96\x4a\x16\xe2";
    kernel_record(("7.2-s390x-file-buildid-mmap", 0x1d8), BIG, kind::MMAP2, build_id, NOBODY, |b| {
        let place = [0x3ff_7eaa_8008, 0x2ff8, 0];
        kernel::mmap2(b, (u32::MAX, 0), place, Object::BuildId(&id), [0, 0], "[crc16]")
    });
}

#[test]
fn tasks() {
    let trailer = thread(0x10a, 0x10d, 0x3_f97f_dd60);
    kernel_record(("6.12-aarch64-bid-none-file", 0x8c8), LITTLE, kind::COMM, 0, trailer, |b| {
        kernel::comm(b, (0x10a, 0x10d), "wk-1")
    });
    let trailer = thread(0x213, 0x213, 0x13_155d_6988);
    kernel_record(("6.1-s390x-file-clockmono", 0x950), BIG, kind::COMM, 0, trailer, |b| {
        kernel::comm(b, (0x213, 0x213), "child 1")
    });
    let trailer = (TID, Stamp { pid: 0x361, tid: 0x361, ..Stamp::ZERO });
    kernel_record(("7.2-x86_64-file-perthread", 0xe90), LITTLE, kind::EXIT, 0, trailer, |b| {
        kernel::fork(b, (0x361, 0x361), (0x360, 0x360), 0x2a_d42f_b619)
    });
    let trailer = (TID, Stamp { pid: 0x3e4, tid: 0x3e4, ..Stamp::ZERO });
    kernel_record(("6.12-s390x-file-perthread", 0x798), BIG, kind::FORK, 0, trailer, |b| {
        kernel::fork(b, (0x3e5, 0x3e5), (0x3e4, 0x3e4), 0x25_d27a_4ca9)
    });

    kernel_record(
        ("6.12-armhf-file-switch-ns-cg", 0x688),
        LITTLE,
        kind::SWITCH,
        0,
        thread(0x135, 0x135, 0xb_e043_6c70),
        |b| b,
    );
    let preempted = 0x6000;
    let trailer = thread(0x226, 0x226, 0x14_47ab_b585);
    kernel_record(("6.12-s390x-file-switch-ns", 0x810), BIG, kind::SWITCH, preempted, trailer, |b| b);
    let trailer = (TID | TIME | ID | CPU, Stamp { time: 0x15_489c_4599, id: 0x1b5, ..Stamp::ZERO });
    kernel_record(("6.12-s390x-file-cgroup-a", 0x7918), BIG, kind::SWITCH_CPU_WIDE, preempted, trailer, |b| {
        kernel::task(b, (0x11, 0x11))
    });

    let namespaces =
        [0xf000_0000, 0xefff_fffe, 0xefff_ffff, 0xefff_fffc, 0xefff_fffd, 0xf000_0001, 0xefff_fffb].map(|n| (4, n));
    kernel_record(("6.12-armhf-file-switch-ns-cg", 0x5e8), LITTLE, kind::NAMESPACES, 0, NOBODY, |b| {
        kernel::namespaces(b, (0x133, 0x133), &namespaces)
    });
    kernel_record(("6.12-s390x-file-switch-ns", 0x5d0), BIG, kind::NAMESPACES, 0, NOBODY, |b| {
        kernel::namespaces(b, (0x226, 0x226), &namespaces)
    });
    kernel_record(("6.12-armhf-file-switch-ns-cg", 0x538), LITTLE, kind::CGROUP, 0, NOBODY, |b| {
        kernel::cgroup(b, 0x1_0000_0001, "/")
    });
    kernel_record(("7.2-s390x-file-switch-ns-cg", 0x558), BIG, kind::CGROUP, 0, NOBODY, |b| kernel::cgroup(b, 1, "/"));
}

#[test]
fn counters() {
    let stamp = Stamp { pid: 0x50d, tid: 0x50d, time: 0x4f_ac28_0ff9, id: 0x48e, ..Stamp::ZERO };
    let trailer = (TID | TIME | CPU | IDENTIFIER, stamp);
    kernel_record(("7.2-x86_64-file-lost", 0x8af0), LITTLE, kind::LOST, 0, trailer, |b| kernel::lost(b, 0x48e, 72));
    kernel_record(("6.1-x86_64-file-switchout-2", 0x4428), LITTLE, kind::LOST_SAMPLES, 0, NOBODY, |b| b.u64(0x51e));
    let trailer = thread(0x724, 0x724, 0x4a_04f4_bce0);
    kernel_record(("6.12-aarch64-hw-throttle", 0x3e60), LITTLE, kind::THROTTLE, 0, trailer, |b| {
        kernel::throttle(b, 0x4a_04f4_bba0, 0x10a7, 0x10a7)
    });

    // Recorded by perf 7.2 on x86-64: perf record --stat
    let real = "0800000000005000 8403000087030000 1ac5aa0600000000 c49de90a00000000 1213b30600000000 \
                2803000000000000 0000000000000000 8403000087030000 9ba85fa22d000000 2803000000000000 ";
    let attr = Attr { read_format: 0x17, ..Attr::new(TID | TIME | ID, "sample_id_all") };
    let stamp = Stamp { pid: 0x384, tid: 0x387, time: 0x2d_a25f_a89b, id: 0x328, ..Stamp::ZERO };
    let values = vec![ReadValue { value: 0x6aa_c51a, id: 0x328, lost: 0 }];
    let read = Read { enabled: 0xae9_9dc4, running: 0x6b3_1312, values };
    let mut scribe = Scribe::new(LITTLE, attr, stamp);
    let record = &scribe.kernel("READ", kind::READ, 0, |b| read.put(kernel::task(b, stamp.task()), 0x17)).record;
    assert_eq!(hex(record), real);
}

#[test]
fn symbols() {
    let trailer = |pid, time| (TID | TIME | ID | CPU, Stamp { pid, tid: pid, time, id: 0x555, ..Stamp::ZERO });
    kernel_record(("7.2-x86_64-file-kcore", 0xf6b0), LITTLE, kind::KSYMBOL, 0, trailer(0x625, 0x65_d197_4aa2), |b| {
        kernel::ksymbol(b, 0xffff_ffff_c04a_c000, 0xe1, 2, 0, "ftrace_trampoline")
    });
    kernel_record(("7.2-x86_64-file-kcore", 0x72a8), LITTLE, kind::TEXT_POKE, 1, trailer(0x625, 0x65_77f0_8b90), |b| {
        let new = [0xe9, 0xfc, 0, 0, 0];
        kernel::text_poke(b, 0xffff_ffff_9821_06eb, &[0x0f, 0x1f, 0x44, 0, 0], &new)
    });
    kernel_record(("7.2-x86_64-file-kcore", 0x7428), LITTLE, kind::TEXT_POKE, 1, trailer(0x625, 0x65_77f3_2d61), |b| {
        kernel::text_poke(b, 0xffff_ffff_983d_a7f9, &[0x66, 0x90], &[0xeb, 0x43])
    });
    let nobody = (TID | TIME | CPU | IDENTIFIER, Stamp::ZERO);
    kernel_record(("7.2-s390x-file-bpf-a", 0x6e8), BIG, kind::KSYMBOL, 0, nobody, |b| {
        kernel::ksymbol(b, 0x3ff_fead_2918, 0, 1, 0, "bpf_prog_a04f5eef06a7f555_labprog0")
    });
    kernel_record(("7.2-s390x-file-bpf-a", 0x748), BIG, kind::BPF_EVENT, 0, nobody, |b| {
        kernel::bpf_event(b, 1, 0, 1, &[0xa0, 0x4f, 0x5e, 0xef, 0x06, 0xa7, 0xf5, 0x55])
    });
    let stamp = Stamp { pid: 0x5c1, tid: 0x5c1, time: 0x4b_b6ba_0668, id: 0x502, ..Stamp::ZERO };
    let trailer = (TID | TIME | CPU | IDENTIFIER, stamp);
    kernel_record(("6.1-x86_64-file-bpfoutput-g", 0x11870), LITTLE, kind::BPF_EVENT, 0, trailer, |b| {
        kernel::bpf_event(b, 1, 0, 7, &[0x1e, 0x8d, 0xbb, 0x71, 0x84, 0xa4, 0x9c, 0xbd])
    });
    let trailer = thread(0x64d, 0x650, 0x68_42d6_6269);
    kernel_record(("7.2-x86_64-file-defer", 0x13b0), LITTLE, kind::CALLCHAIN_DEFERRED, misc::USER, trailer, |b| {
        kernel::callchain_deferred(b, 0x23_0000_0001, &[0x7fa5_19b4_b442])
    });
}

#[test]
fn samples() {
    #[track_caller]
    fn check(name: &str, at: usize, big: bool, misc: u16, attr: &Attr, sample: &Sample) {
        user_record((name, at), big, kind::SAMPLE, misc, |b| sample.put(b, attr));
    }
    let usual = IP | TID | TIME | PERIOD;
    let attr = Attr::new(usual | ID, "");
    let little = Sample {
        ip: 0x55e7_afa6_a3f8,
        pid: 0x742,
        tid: 0x742,
        time: 0x73_805a_f534,
        id: 0x665,
        period: 2_004_008,
        ..Sample::default()
    };
    check("7.2-x86_64-pipe-default", 0x1158, LITTLE, misc::USER, &attr, &little);
    let big = Sample {
        ip: 0x3ff_feb6_9348,
        pid: 0x7b0,
        tid: 0x7b0,
        time: 0x82_38e3_8af7,
        id: 0x4f3,
        period: 2_004_008,
        ..Sample::default()
    };
    check("7.2-s390x-pipe-default", 0xe18, BIG, misc::KERNEL, &attr, &big);

    let chain = Sample {
        ip: 0xffff_ffff_984c_61e7,
        pid: 0x753,
        tid: 0x756,
        time: 0x74_d856_4b8a,
        id: 0x672,
        period: 0x4c_ad65,
        callchain: vec![
            context::KERNEL,
            0xffff_ffff_984c_61e7,
            0xffff_ffff_992a_5b41,
            0xffff_ffff_9800_012f,
            context::USER,
            0x7f61_2f39_7efe,
            0x5581_cc69_55dd,
            0x7f61_2f38_fdb8,
        ],
        ..Sample::default()
    };
    check("7.2-x86_64-pipe-g", 0x13c8, LITTLE, misc::KERNEL, &Attr::new(usual | ID | CALLCHAIN, ""), &chain);

    let attr = Attr::new(usual | ID | CPU | RAW, "");
    let raw = |name, at: usize| fixture(name)[at + 60..at + 128].to_vec();
    let little = Sample {
        ip: 0xffff_ffff_984a_070d,
        pid: 0x78c,
        tid: 0x78c,
        time: 0x78_d2e3_9f8a,
        id: 0x6b9,
        period: 1,
        raw: raw("7.2-x86_64-pipe-tp", 0x36a8),
        ..Sample::default()
    };
    check("7.2-x86_64-pipe-tp", 0x36a8, LITTLE, misc::KERNEL, &attr, &little);
    let big = Sample {
        ip: 0x3ff_fe9f_0470,
        pid: 0x81c,
        tid: 0x81e,
        time: 0x89_0976_aa1b,
        id: 0x547,
        period: 1,
        raw: raw("7.2-s390x-pipe-tp", 0x2510),
        ..Sample::default()
    };
    check("7.2-s390x-pipe-tp", 0x2510, BIG, misc::KERNEL, &attr, &big);

    let group = Sample {
        ip: 0x3ff_bdb1_b214,
        pid: 0xda,
        tid: 0xda,
        time: 0x5_420c_97ba,
        id: 0xab,
        period: 0x4c_ad65,
        read: Read {
            values: vec![
                ReadValue { value: 0x4d_ebb0, id: 0xab, lost: 0 },
                ReadValue { value: 0x51_16de, id: 0xad, lost: 0 },
            ],
            ..Read::default()
        },
        ..Sample::default()
    };
    let attr = Attr { read_format: 0x1c, ..Attr::new(usual | ID | READ, "") };
    check("6.1-s390x-file-group-S", 0x8b0, BIG, misc::USER, &attr, &group);
}

/// Registers and a copy of the user's stack, which is taken as it is.
#[test]
fn sample_with_stack() {
    let (name, at) = ("6.12-s390x-file-dwarf-u", 0x44b0);
    let attr = Attr {
        sample_regs_user: 0x3_ffff_ffff,
        ..Attr::new(IP | TID | TIME | ADDR | CALLCHAIN | PERIOD | REGS_USER | STACK_USER | DATA_SRC, "")
    };
    #[rustfmt::skip]
    let registers = [
        0x2aa_2328_0238, 1, 0x3ff_a23a_f560, 0x3ff_a23a_cb10, 0x2aa_2328_1380, 0x6474_e550, 0, 0,
        0, 0x3ff_a23a_e000, 0x3ff_a23a_f560, 0x3ff_a23f_9000, 0x2aa_0f54_1690, 0x3ff_a23a_29d8, 0x3ff_a238_48f0,
        0x3ff_cda7_9fc8,
        0x3ff_fbb7_4798, 0x3ff_8e20_224c, 0x2aa_0f47_521a, 1, 0x3ff_0000_0000, 0x3ff_8e3e_ae20, 0x2aa_0000_0050,
        0x3ff_8dfc_46b0, 0x3ff_fbb7_a9e0, 0x120_cef0, 4, 0, 0x2aa_0132_5560, 0, 0x2aa_3c0a_f910, 0,
        0x705_0001_8000_0000, 0x3ff_a238_4320,
    ];
    let stack = &fixture(name)[at + 872 - 16 - 512..][..512];
    let sample = Sample {
        ip: 0x3ff_a238_4320,
        pid: 0xf7,
        tid: 0xf7,
        time: 0x4_fad0_78b4,
        period: 0x137_6763,
        regs_user: Regs { abi: 2, values: registers.to_vec() },
        stack_user: Stack { data: stack.to_vec(), dyn_size: 512 },
        data_src: 0x1e_0508_0021,
        ..Sample::default()
    };
    user_record((name, at), BIG, kind::SAMPLE, misc::USER, |b| sample.put(b, &attr));
}

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
    user_record(("7.2-x86_64-pipe-default", 0x10), LITTLE, kind::HEADER_ATTR, 0, |b| {
        user::header_attr(b, &attr, &[1637, 1638])
    });
    user_record(("7.2-s390x-pipe-default", 0x10), BIG, kind::HEADER_ATTR, 0, |b| {
        user::header_attr(b, &attr, &[1267, 1268])
    });
    let hostname = |b: Buf, name| {
        let section = Buf::new(b.big).str(name).bytes;
        user::header_feature(b, 3, &section)
    };
    user_record(("7.2-x86_64-pipe-default", 0xb8), LITTLE, kind::HEADER_FEATURE, 0, |b| hostname(b, "recorder"));
    user_record(("7.2-s390x-pipe-default", 0xb8), BIG, kind::HEADER_FEATURE, 0, |b| hostname(b, "s390guest"));
    found("7.2-s390x-pipe-default", 0, &Pipe::new(BIG, Magic::V2).bytes);
    found("7.2-x86_64-pipe-default", 0, &Pipe::new(LITTLE, Magic::V2).bytes);
}

#[test]
fn tool_records() {
    let entry = Entry {
        misc: misc::KERNEL,
        pid: HOST,
        build_id: b"\xf8\xda\x1e\x46\x0d\x13\x43\xb6\x2f\x4a\x88\x80\xae\x5c\xe6\x36\x34\x75\x6e\x7a",
        size_byte: true,
        name: "[kernel.kallsyms]",
        room: Room::Record8,
    };
    let trailer = thread(0x896, 0x896, 0x89_c8a4_a391);
    kernel_record(("7.2-x86_64-file-injected", 0x700), LITTLE, kind::HEADER_BUILD_ID, entry.misc(), trailer, |b| {
        entry.put(b)
    });
    let entry = Entry {
        misc: misc::USER,
        build_id: b"\x2c\x81\xab\x97\x6e\x99\x05\x2d\xff\xdc\xc8\x24\x9c\xa3\x72\x06\xdd\x6b\x99\xac",
        size_byte: false,
        name: "/usr/lib/s390x-linux-gnu/ld64.so.1",
        room: Room::Name64,
        ..entry
    };
    user_record(("6.1-s390x-pipe-injected", 0x1128), BIG, kind::HEADER_BUILD_ID, entry.misc(), |b| entry.put(b));

    user_record(("7.2-x86_64-file-perthread", 0x148), LITTLE, kind::ID_INDEX, 0, |b| {
        user::id_index(b, &[[0x317, 0, u64::MAX, 0x361]], &[])
    });
    user_record(("6.12-s390x-file-perthread", 0x108), BIG, kind::ID_INDEX, 0, |b| {
        user::id_index(b, &[[0x27c, 0, u64::MAX, 0x3e4]], &[])
    });
    user_record(("6.12-aarch64-bid-none-file", 0x538), LITTLE, kind::THREAD_MAP, 0, |b| {
        user::thread_map(b, &[(0x10a, "")])
    });
    user_record(("6.12-aarch64-bid-none-file", 0x110), LITTLE, kind::TIME_CONV, 0, |b| {
        let cycles = [0xb1_f4ca, 0x1ff_ffff_ffff_ffff];
        user::time_conv(b, [21, 0x200_0000, 0xffff_ffff_f4e7_6720], Some((cycles, [1, 1])))
    });
    user_record(("6.12-aarch64-bid-none-file", 0x5a0), LITTLE, kind::FINISHED_INIT, 0, |b| b);
    let nobody = (TID | TIME | ID | CPU, Stamp::ZERO);
    kernel_record(("7.2-x86_64-file-bpfmeta", 0x8b8), LITTLE, kind::BPF_METADATA, 0, nobody, |b| {
        let variables = [
            ("author", "\"the recorder\""),
            ("purpose", "\"demonstration\""),
            ("version", "7"),
            ("big", "81985529216486895"),
        ];
        user::bpf_metadata(b, "bpf_prog_0d6609391569ecf4_demo_meta", &variables)
    });
}

#[test]
fn stat_records() {
    let map = CpuMap::Range { any: false, start: 0, end: 1 };
    user_record(("6.12-aarch64-bid-none-file", 0x560), LITTLE, kind::CPU_MAP, 0, |b| map.put(b));
    let update = Update::Cpus(map);
    user_record(("6.12-aarch64-hw-pmuname", 0x600), LITTLE, kind::EVENT_UPDATE, 0, |b| update.put(b, 0x1096));
    user_record(("7.2-s390x-file-bpf-a", 0x670), BIG, kind::EVENT_UPDATE, 0, |b| update.put(b, 0x3dc));
    let unit = Update::Unit("msec");
    user_record(("6.12-aarch64-bid-none-file", 0x4d8), LITTLE, kind::EVENT_UPDATE, 0, |b| unit.put(b, 0x9d));
    user_record(("6.1-s390x-file-clockmono", 0x4c0), BIG, kind::EVENT_UPDATE, 0, |b| unit.put(b, 0x179));
    let scale = Update::Scale(1e-6);
    user_record(("6.12-aarch64-bid-none-file", 0x508), LITTLE, kind::EVENT_UPDATE, 0, |b| scale.put(b, 0x9d));
    user_record(("6.1-s390x-file-clockmono", 0x4f0), BIG, kind::EVENT_UPDATE, 0, |b| scale.put(b, 0x179));
    let name = Update::Name("dummy:u");
    user_record(("6.12-s390x-pipe-a", 0x1228), BIG, kind::EVENT_UPDATE, 0, |b| name.put(b, 0x566));

    let config = [[0, 1], [1, 0], [2, 1]];
    user_record(("6.1-i386-pipe-stat", 0x228), LITTLE, kind::STAT_CONFIG, 0, |b| stat::stat_config(b, &config));
    user_record(("6.1-s390x-pipe-stat", 0x238), BIG, kind::STAT_CONFIG, 0, |b| stat::stat_config(b, &config));
    user_record(("6.12-aarch64-hw-stat", 0x370), LITTLE, kind::STAT, 0, |b| {
        stat::stat(b, 0x111e, u32::MAX, 0, [0x273f_1a32, 0x2777_76c0, 0x2777_76c0])
    });
    user_record(("6.1-s390x-pipe-stat", 0x278), BIG, kind::STAT, 0, |b| {
        stat::stat(b, 0x2d7, u32::MAX, 0, [0x243b_b613, 0x245e_93dd, 0x245e_93dd])
    });
    user_record(("6.12-aarch64-hw-stat", 0x470), LITTLE, kind::STAT_ROUND, 0, |b| stat::stat_round(b, 1, 0x1817_bee0));
    user_record(("6.1-s390x-pipe-stat", 0x318), BIG, kind::STAT_ROUND, 0, |b| stat::stat_round(b, 1, 0x1a3a_60d2));
}

#[test]
fn schedstat_records() {
    user_record(("7.2-x86_64-tool-schedstats", 0x68), LITTLE, kind::SCHEDSTAT_CPU, 0, |b| {
        let times = [0x4b_4df9_1f5c, 0x4_2f15_43a1, 0xc129];
        stat::schedstat_cpu(b, 0x1_0001_3348, 0, 17, [0, 0, 46, 21, 8, 6], times)
    });
    user_record(("7.2-s390x-tool-schedstats", 0x68), BIG, kind::SCHEDSTAT_CPU, 0, |b| {
        stat::schedstat_cpu(b, 0x1_0000_f4ad, 0, 16, [0; 6], [0x53_684c_1750, 0x3c_94fd_a31f, 0x8ca3])
    });
    user_record(("7.2-x86_64-tool-schedstats", 0xb0), LITTLE, kind::SCHEDSTAT_DOMAIN, 0, |b| {
        let mut counters = [0; 45];
        let set = [(0, 1), (1, 1), (10, 1), (11, 16), (12, 16), (21, 16), (22, 1), (23, 1), (32, 1), (42, 2), (43, 2)];
        for (at, count) in set {
            counters[at] = count;
        }
        stat::schedstat_domain(b, 0x1_0001_3348, 0, 17, 0, &counters)
    });
}

/// A whole file with two events: all but the records and most sections from values.
#[test]
fn little_endian_file() {
    let usual = IP | TID | TIME | ID | CPU | PERIOD;
    let clock =
        Attr { kind: 1, sample_period: 99, read_format: 0x14, ..Attr::new(usual, "disabled freq sample_id_all") };
    let dummy = Attr {
        config: 9,
        flags: "exclude_kernel exclude_hv mmap comm freq task sample_id_all exclude_guest mmap2 comm_exec ksymbol \
                bpf_event build_id"
            .into(),
        ..clock.clone()
    };
    let events = vec![
        Event { name: "cpu-clock".into(), attr: clock, ids: vec![1330, 1331] },
        Event { name: "dummy:u".into(), attr: dummy, ids: vec![1332, 1333] },
    ];
    let topology =
        CpuTopology { siblings: [&["0-1"], &["0", "1"]], cores: &[[0, 0], [1, 0]], dies: Some((&["0-1"], &[0, 0])) };
    let caches = [
        ([1, 64, 512, 2], ["Data", "64K", "0"]),
        ([1, 64, 512, 2], ["Instruction", "64K", "0"]),
        ([1, 64, 512, 2], ["Data", "64K", "1"]),
        ([1, 64, 512, 2], ["Instruction", "64K", "1"]),
        ([2, 64, 512, 16], ["Unified", "512K", "0"]),
        ([2, 64, 512, 16], ["Unified", "512K", "1"]),
        ([3, 64, 16384, 16], ["Unified", "16384K", "0-1"]),
    ];
    let b = || Buf::new(LITTLE);
    let sections = [
        (3, b().str("recorder")),
        (7, b().u32(2).u32(2)),
        (10, b().u64(2_566_612)),
        (11, b().u32(1).str("/usr/bin/perf")),
        (12, feature_events::event_desc(b(), &events)),
        (13, topology.put(b())),
        (14, feature_topology::numa_topology(b(), &[(0, 2_566_612, 2_418_076, "0-1")])),
        (20, feature_topology::cache(b(), &caches)),
        (22, feature_topology::mem_topology(b(), 0x800_0000, &[(0, 21, &[0x1f_ffff])])),
        (
            32,
            feature_topology::cpu_domains(b(), 17, 1, &[(0, &[(0, "MC", "3", "0-1")]), (1, &[(0, "MC", "3", "0-1")])]),
        ),
        (33, b().u32(62).u32(0)),
        (34, b().u32(64)),
    ];
    rebuild("7.2-x86_64-file-bpfmeta", File::new(LITTLE, events), &sections, 456, 32464);
}

/// A whole file of a big-endian machine, likewise.
#[test]
fn big_endian_file() {
    let attr = Attr {
        kind: 1,
        sample_period: 499,
        read_format: 0x14,
        ..Attr::new(
            IP | TID | TIME | PERIOD,
            "disabled inherit mmap comm freq enable_on_exec task sample_id_all mmap2 comm_exec ksymbol bpf_event build_id",
        )
    };
    let events = vec![Event { name: "cpu-clock".into(), attr, ids: vec![144, 145] }];
    let topology = CpuTopology { siblings: [&["0", "1"], &["0", "1"]], cores: &[[0, 0], [1, 1]], dies: None };
    let pmus = [(4, "cpu"), (8, "kprobe"), (1, "software"), (u32::MAX - 1, "tool"), (2, "tracepoint"), (9, "uprobe")];
    let b = || Buf::new(BIG);
    let sections = [
        (3, b().str("s390guest")),
        (7, b().u32(2).u32(2)),
        (12, feature_events::event_desc(b(), &events)),
        (13, topology.put(b())),
        (16, feature_pmu::pmu_mappings(b(), &pmus)),
        (20, feature_topology::cache(b(), &[])),
        (32, feature_topology::cpu_domains(b(), 16, 1, &[(0, &[(0, "", "3", "0-1")]), (1, &[(0, "", "3", "0-1")])])),
        (33, b().u32(22).u32(0)),
        (34, b().u32(u32::MAX)),
    ];
    rebuild("7.2-s390x-file-default", File::new(BIG, events), &sections, 280, 12056);
}

/// Puts a file together from its events, the sections that were written again, and what is left of
/// the original: the records and the other sections. It has to be the original.
fn rebuild(name: &str, mut file: File, written: &[(u32, Buf)], data_offset: usize, data_size: usize) {
    let original = fixture(name);
    let table = data_offset + data_size;
    file.data = original[data_offset..table].to_vec();
    let number = |at: usize| {
        let bytes = original[at..at + 8].try_into().expect("8 bytes");
        (if file.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }) as usize
    };
    let bits = (0..64).filter(|bit| number(72) >> bit & 1 == 1);
    for (i, bit) in bits.enumerate() {
        let (offset, size) = (number(table + 16 * i), number(table + 16 * i + 8));
        let mut section = original[offset..offset + size].to_vec();
        if let Some((_, again)) = written.iter().find(|(written, _)| *written == bit) {
            same(&format!("feature {bit} of {name}"), &section, &again.bytes);
            section.clone_from(&again.bytes);
        }
        file.features.push((bit, section));
    }
    let features = &file.features;
    assert!(written.iter().all(|(bit, _)| features.iter().any(|feature| feature.0 == *bit)));
    // Features that perf gave up leave their places in the table empty.
    let end = table + 16 * file.features.len();
    file.gap = original[end..number(table)].to_vec();
    same(name, &original, &file.bytes());
}
