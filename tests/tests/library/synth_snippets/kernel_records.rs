//! Records of the kernel.

use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::kernel::{self, Object};
use perfdata_tests::synth::record::{Scribe, misc};
use perfdata_tests::synth::sample::{Read, ReadValue};
use perfdata_tests::synth::{Attr, Stamp, kind};

use super::{BIG, LITTLE, NOBODY, hex, kernel_record, thread, user_record};

#[test]
fn mappings() {
    user_record(
        ("6.12-aarch64-hw-stat", 0x430),
        LITTLE,
        kind::MMAP,
        misc::KERNEL,
        |b| {
            let place = [0xffff_9292_6280_0000, 0x23e_a200, 0xffff_9292_6280_0000];
            kernel::mmap(b, (u32::MAX, 0), place, "[kernel.kallsyms]_text")
        },
    );
    user_record(
        ("6.1-s390x-pipe-stat", 0x2d8),
        BIG,
        kind::MMAP,
        misc::KERNEL,
        |b| {
            kernel::mmap(
                b,
                (u32::MAX, 0),
                [0x10_0000, 0x9e_1000, 0x10_0000],
                "[kernel.kallsyms]_text",
            )
        },
    );

    let inode = Object::Inode(0, 0, 0, 0);
    let trailer = (
        TID,
        Stamp {
            pid: 0x361,
            tid: 0x361,
            ..Stamp::ZERO
        },
    );
    kernel_record(
        ("7.2-x86_64-file-perthread", 0x790),
        LITTLE,
        kind::MMAP2,
        misc::USER,
        trailer,
        |b| {
            kernel::mmap2(
                b,
                (0x361, 0x361),
                [0x7fd9_7fbf_2000, 0x2000, 0],
                inode.clone(),
                [5, 2],
                "[vdso]",
            )
        },
    );
    let trailer = (
        TID,
        Stamp {
            pid: 0x3e4,
            tid: 0x3e4,
            ..Stamp::ZERO
        },
    );
    kernel_record(
        ("6.12-s390x-file-perthread", 0x668),
        BIG,
        kind::MMAP2,
        misc::USER,
        trailer,
        |b| {
            kernel::mmap2(
                b,
                (0x3e4, 0x3e4),
                [0x3ff_fd2f_7000, 0x2000, 0],
                inode,
                [5, 2],
                "[vdso]",
            )
        },
    );

    let build_id = 0x4000 | misc::KERNEL;
    let id = *b"\x68\xef\x3b\x31\xfa\xa6\x8e\x47\x53\x32\xaf\x4b\x9f\x94\x48\xe2\x40\xb7\xa6\x08";
    let trailer = (TID, Stamp::ZERO);
    kernel_record(
        ("7.2-x86_64-file-perthread", 0x1e0),
        LITTLE,
        kind::MMAP2,
        build_id,
        trailer,
        |b| {
            let place = [0xffff_ffff_c040_0000, 0x1000, 0];
            kernel::mmap2(
                b,
                (u32::MAX, 0),
                place,
                Object::BuildId(&id),
                [0, 0],
                "[virtio_mmio]",
            )
        },
    );
    let id = *b"\xa5\x66\x24\x61\xc4\xb5\x9b\x8e\xf4\x0f\x9c\xc8\x18\x2b\xcf\x3c\x96\x4a\x16\xe2";
    kernel_record(
        ("7.2-s390x-file-buildid-mmap", 0x1d8),
        BIG,
        kind::MMAP2,
        build_id,
        NOBODY,
        |b| {
            let place = [0x3ff_7eaa_8008, 0x2ff8, 0];
            kernel::mmap2(
                b,
                (u32::MAX, 0),
                place,
                Object::BuildId(&id),
                [0, 0],
                "[crc16]",
            )
        },
    );
}

#[test]
fn tasks() {
    let trailer = thread(0x10a, 0x10d, 0x3_f97f_dd60);
    kernel_record(
        ("6.12-aarch64-bid-none-file", 0x8c8),
        LITTLE,
        kind::COMM,
        0,
        trailer,
        |b| kernel::comm(b, (0x10a, 0x10d), "wk-1"),
    );
    let trailer = thread(0x213, 0x213, 0x13_155d_6988);
    kernel_record(
        ("6.1-s390x-file-clockmono", 0x950),
        BIG,
        kind::COMM,
        0,
        trailer,
        |b| kernel::comm(b, (0x213, 0x213), "child 1"),
    );
    let trailer = (
        TID,
        Stamp {
            pid: 0x361,
            tid: 0x361,
            ..Stamp::ZERO
        },
    );
    kernel_record(
        ("7.2-x86_64-file-perthread", 0xe90),
        LITTLE,
        kind::EXIT,
        0,
        trailer,
        |b| kernel::fork(b, (0x361, 0x361), (0x360, 0x360), 0x2a_d42f_b619),
    );
    let trailer = (
        TID,
        Stamp {
            pid: 0x3e4,
            tid: 0x3e4,
            ..Stamp::ZERO
        },
    );
    kernel_record(
        ("6.12-s390x-file-perthread", 0x798),
        BIG,
        kind::FORK,
        0,
        trailer,
        |b| kernel::fork(b, (0x3e5, 0x3e5), (0x3e4, 0x3e4), 0x25_d27a_4ca9),
    );

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
    kernel_record(
        ("6.12-s390x-file-switch-ns", 0x810),
        BIG,
        kind::SWITCH,
        preempted,
        trailer,
        |b| b,
    );
    let trailer = (
        TID | TIME | ID | CPU,
        Stamp {
            time: 0x15_489c_4599,
            id: 0x1b5,
            ..Stamp::ZERO
        },
    );
    kernel_record(
        ("6.12-s390x-file-cgroup-a", 0x7918),
        BIG,
        kind::SWITCH_CPU_WIDE,
        preempted,
        trailer,
        |b| kernel::task(b, (0x11, 0x11)),
    );

    let namespaces = [
        0xf000_0000,
        0xefff_fffe,
        0xefff_ffff,
        0xefff_fffc,
        0xefff_fffd,
        0xf000_0001,
        0xefff_fffb,
    ]
    .map(|n| (4, n));
    kernel_record(
        ("6.12-armhf-file-switch-ns-cg", 0x5e8),
        LITTLE,
        kind::NAMESPACES,
        0,
        NOBODY,
        |b| kernel::namespaces(b, (0x133, 0x133), &namespaces),
    );
    kernel_record(
        ("6.12-s390x-file-switch-ns", 0x5d0),
        BIG,
        kind::NAMESPACES,
        0,
        NOBODY,
        |b| kernel::namespaces(b, (0x226, 0x226), &namespaces),
    );
    kernel_record(
        ("6.12-armhf-file-switch-ns-cg", 0x538),
        LITTLE,
        kind::CGROUP,
        0,
        NOBODY,
        |b| kernel::cgroup(b, 0x1_0000_0001, "/"),
    );
    kernel_record(
        ("7.2-s390x-file-switch-ns-cg", 0x558),
        BIG,
        kind::CGROUP,
        0,
        NOBODY,
        |b| kernel::cgroup(b, 1, "/"),
    );
}

#[test]
fn counters() {
    let stamp = Stamp {
        pid: 0x50d,
        tid: 0x50d,
        time: 0x4f_ac28_0ff9,
        id: 0x48e,
        ..Stamp::ZERO
    };
    let trailer = (TID | TIME | CPU | IDENTIFIER, stamp);
    kernel_record(
        ("7.2-x86_64-file-lost", 0x8af0),
        LITTLE,
        kind::LOST,
        0,
        trailer,
        |b| kernel::lost(b, 0x48e, 72),
    );
    kernel_record(
        ("6.1-x86_64-file-switchout-2", 0x4428),
        LITTLE,
        kind::LOST_SAMPLES,
        0,
        NOBODY,
        |b| b.u64(0x51e),
    );
    let trailer = thread(0x724, 0x724, 0x4a_04f4_bce0);
    kernel_record(
        ("6.12-aarch64-hw-throttle", 0x3e60),
        LITTLE,
        kind::THROTTLE,
        0,
        trailer,
        |b| kernel::throttle(b, 0x4a_04f4_bba0, 0x10a7, 0x10a7),
    );

    // Recorded by perf 7.2 on x86-64: perf record --stat
    let real = "0800000000005000 8403000087030000 1ac5aa0600000000 c49de90a00000000 1213b30600000000 \
                2803000000000000 0000000000000000 8403000087030000 9ba85fa22d000000 2803000000000000 ";
    let attr = Attr {
        read_format: 0x17,
        ..Attr::new(TID | TIME | ID, "sample_id_all")
    };
    let stamp = Stamp {
        pid: 0x384,
        tid: 0x387,
        time: 0x2d_a25f_a89b,
        id: 0x328,
        ..Stamp::ZERO
    };
    let values = vec![ReadValue {
        value: 0x6aa_c51a,
        id: 0x328,
        lost: 0,
    }];
    let read = Read {
        enabled: 0xae9_9dc4,
        running: 0x6b3_1312,
        values,
    };
    let mut scribe = Scribe::new(LITTLE, attr, stamp);
    let record = &scribe
        .kernel("READ", kind::READ, 0, |b| {
            read.put(kernel::task(b, stamp.task()), 0x17)
        })
        .record;
    assert_eq!(hex(record), real);
}

#[test]
fn symbols() {
    let trailer = |pid, time| {
        (
            TID | TIME | ID | CPU,
            Stamp {
                pid,
                tid: pid,
                time,
                id: 0x555,
                ..Stamp::ZERO
            },
        )
    };
    kernel_record(
        ("7.2-x86_64-file-kcore", 0xf6b0),
        LITTLE,
        kind::KSYMBOL,
        0,
        trailer(0x625, 0x65_d197_4aa2),
        |b| kernel::ksymbol(b, 0xffff_ffff_c04a_c000, 0xe1, 2, 0, "ftrace_trampoline"),
    );
    kernel_record(
        ("7.2-x86_64-file-kcore", 0x72a8),
        LITTLE,
        kind::TEXT_POKE,
        1,
        trailer(0x625, 0x65_77f0_8b90),
        |b| {
            let new = [0xe9, 0xfc, 0, 0, 0];
            kernel::text_poke(b, 0xffff_ffff_9821_06eb, &[0x0f, 0x1f, 0x44, 0, 0], &new)
        },
    );
    kernel_record(
        ("7.2-x86_64-file-kcore", 0x7428),
        LITTLE,
        kind::TEXT_POKE,
        1,
        trailer(0x625, 0x65_77f3_2d61),
        |b| kernel::text_poke(b, 0xffff_ffff_983d_a7f9, &[0x66, 0x90], &[0xeb, 0x43]),
    );
    let nobody = (TID | TIME | CPU | IDENTIFIER, Stamp::ZERO);
    kernel_record(
        ("7.2-s390x-file-bpf-a", 0x6e8),
        BIG,
        kind::KSYMBOL,
        0,
        nobody,
        |b| {
            kernel::ksymbol(
                b,
                0x3ff_fead_2918,
                0,
                1,
                0,
                "bpf_prog_a04f5eef06a7f555_labprog0",
            )
        },
    );
    kernel_record(
        ("7.2-s390x-file-bpf-a", 0x748),
        BIG,
        kind::BPF_EVENT,
        0,
        nobody,
        |b| {
            kernel::bpf_event(
                b,
                1,
                0,
                1,
                &[0xa0, 0x4f, 0x5e, 0xef, 0x06, 0xa7, 0xf5, 0x55],
            )
        },
    );
    let stamp = Stamp {
        pid: 0x5c1,
        tid: 0x5c1,
        time: 0x4b_b6ba_0668,
        id: 0x502,
        ..Stamp::ZERO
    };
    let trailer = (TID | TIME | CPU | IDENTIFIER, stamp);
    kernel_record(
        ("6.1-x86_64-file-bpfoutput-g", 0x11870),
        LITTLE,
        kind::BPF_EVENT,
        0,
        trailer,
        |b| {
            kernel::bpf_event(
                b,
                1,
                0,
                7,
                &[0x1e, 0x8d, 0xbb, 0x71, 0x84, 0xa4, 0x9c, 0xbd],
            )
        },
    );
    let trailer = thread(0x64d, 0x650, 0x68_42d6_6269);
    kernel_record(
        ("7.2-x86_64-file-defer", 0x13b0),
        LITTLE,
        kind::CALLCHAIN_DEFERRED,
        misc::USER,
        trailer,
        |b| kernel::callchain_deferred(b, 0x23_0000_0001, &[0x7fa5_19b4_b442]),
    );
}
