//! The kernel's records (types 1..22) except SAMPLE, each in every variant.

use super::attr::{Attr, Stamp, sample_type};
use super::buf::island;
use super::kernel::{self, Object};
use super::kind;
use super::record::{Scribe, misc};
use super::sample::{Read, ReadValue, context};

/// Bits 12 to 15 of misc have a different meaning in each record type.
const BIT12: u16 = 1 << 12;
const BIT13: u16 = 1 << 13;
const BIT14: u16 = 1 << 14;
const BIT15: u16 = 1 << 15;

/// Address, length and offset of the kernel's text, as in the mapping that perf synthesizes.
pub const KERNEL_TEXT: [u64; 3] = [0xffff_ffff_8100_0000, 0x120_0000, 0xffff_ffff_8100_0000];

/// Process and thread ID of mappings that belong to the kernel.
pub const KERNEL_TASK: (u32, u32) = (u32::MAX, 0);

/// Writes every type with the scribe's own attribute, which is not changed.
pub fn plain(s: &mut Scribe) {
    mappings(s);
    tasks(s);
    counters(s);
    tracing(s);
    symbols(s);
}

/// Writes the variants that depend on the attribute: the layout of the trailer and every read
/// format.
pub fn variants(s: &mut Scribe) {
    trailers(s);
    read_formats(s);
}

fn mappings(s: &mut Scribe) {
    let task = s.stamp.task();
    s.kernel("MMAP kernel", kind::MMAP, misc::KERNEL, |b| {
        kernel::mmap(b, KERNEL_TASK, KERNEL_TEXT, "[kernel.kallsyms]_text")
    });
    s.kernel("MMAP data", kind::MMAP, misc::USER | BIT13, |b| {
        kernel::mmap(
            b,
            task,
            [0x7ffd_0000_0000, 0x2_1000, 0x7fff_fffd_e000],
            "[stack]",
        )
    });
    s.kernel(
        "MMAP timed out, stale padding",
        kind::MMAP,
        misc::USER | BIT12,
        |b| {
            kernel::task(b, task)
                .u64s(&[0x40_0000, 0x1000, 0])
                .text_stale("//toolong")
        },
    );
    for length in 15..24 {
        let name = &"/usr/lib/perf/synthetic"[..length];
        s.kernel(
            &format!("MMAP name of {length}"),
            kind::MMAP,
            misc::USER,
            |b| {
                kernel::mmap(
                    b,
                    task,
                    [0x50_0000 + length as u64 * 0x1000, 0x1000, 0],
                    name,
                )
            },
        );
    }
    s.kernel("MMAP2 device and inode", kind::MMAP2, misc::USER, |b| {
        let object = Object::Inode(8, 1, 0x1234_5678, 0x9abc);
        kernel::mmap2(
            b,
            task,
            [0x5555_5555_4000, 0x3000, 0x2000],
            object,
            [5, 2],
            "/usr/bin/true",
        )
    });
    s.kernel(
        "MMAP2 anonymous data",
        kind::MMAP2,
        misc::USER | BIT13,
        |b| {
            let object = Object::Inode(0, 0, 0, 0);
            kernel::mmap2(
                b,
                task,
                [0x7f00_0000_0000, 0x1000, 0],
                object,
                [3, 0x22],
                "//anon",
            )
        },
    );
    for (size, what) in [(20, "sha1"), (16, "md5"), (8, "short")] {
        let id = island(size);
        let place = [0x7f00_0010_0000 + size as u64 * 0x1_0000, 0x1_0000, 0x1000];
        s.kernel(
            &format!("MMAP2 build id, {what}"),
            kind::MMAP2,
            misc::USER | BIT14,
            |b| {
                kernel::mmap2(
                    b,
                    task,
                    place,
                    Object::BuildId(&id),
                    [5, 2],
                    "/usr/lib/libc.so.6",
                )
            },
        );
    }
}

fn tasks(s: &mut Scribe) {
    let Stamp { pid, tid, time, .. } = s.stamp;
    let task = (pid, tid);
    s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, task, "thread/0"));
    s.kernel("COMM exec", kind::COMM, BIT13, |b| {
        kernel::comm(b, task, "true")
    });
    s.kernel("COMM stale padding", kind::COMM, 0, |b| {
        kernel::task(b, task).text_stale("sh")
    });
    s.kernel("COMM empty", kind::COMM, 0, |b| kernel::comm(b, task, ""));
    let (first, second) = ((pid + 1, tid + 1), (pid + 2, tid + 2));
    s.kernel("FORK", kind::FORK, 0, |b| {
        kernel::fork(b, first, task, time + 2)
    });
    s.kernel("FORK exec", kind::FORK, BIT13, |b| {
        kernel::fork(b, second, task, time + 3)
    });
    s.kernel("EXIT", kind::EXIT, 0, |b| {
        kernel::fork(b, first, task, time + 4)
    });
    s.kernel("NAMESPACES", kind::NAMESPACES, 0, |b| {
        let namespaces: Vec<_> = (0..7).map(|n| (4, 0xf000_0000 + n)).collect();
        kernel::namespaces(b, task, &namespaces)
    });
    s.kernel("NAMESPACES none", kind::NAMESPACES, 0, |b| {
        kernel::namespaces(b, task, &[])
    });
    s.kernel("CGROUP", kind::CGROUP, 0, |b| {
        kernel::cgroup(b, 0x1_0000_002a, "/system.slice/ssh.service")
    });
    s.kernel("CGROUP root", kind::CGROUP, 0, |b| {
        kernel::cgroup(b, 1, "/")
    });
    for (name, bits) in [("in", 0), ("out", BIT13), ("out, preempted", BIT13 | BIT14)] {
        s.kernel(&format!("SWITCH {name}"), kind::SWITCH, bits, |b| b);
        s.kernel(
            &format!("SWITCH_CPU_WIDE {name}"),
            kind::SWITCH_CPU_WIDE,
            bits,
            |b| kernel::task(b, (pid + 7, tid + 8)),
        );
    }
}

fn counters(s: &mut Scribe) {
    let Stamp {
        id,
        stream_id,
        time,
        ..
    } = s.stamp;
    s.kernel("LOST", kind::LOST, 0, |b| kernel::lost(b, id, 17));
    s.kernel("LOST_SAMPLES", kind::LOST_SAMPLES, 0, |b| b.u64(3));
    s.kernel(
        "LOST_SAMPLES by a BPF filter",
        kind::LOST_SAMPLES,
        BIT15,
        |b| b.u64(0x1_0000_0001),
    );
    for (name, kind) in [
        ("THROTTLE", kind::THROTTLE),
        ("UNTHROTTLE", kind::UNTHROTTLE),
    ] {
        s.kernel(name, kind, 0, |b| {
            kernel::throttle(b, time + 5, id, stream_id)
        });
    }
    read_record(s, "READ");
}

fn read_record(s: &mut Scribe, name: &str) {
    let (task, id, read_format) = (s.stamp.task(), s.stamp.id, s.attr.read_format);
    s.kernel(name, kind::READ, misc::USER, |b| {
        read(id).put(kernel::task(b, task), read_format)
    });
}

fn tracing(s: &mut Scribe) {
    let task = s.stamp.task();
    for (flags, name) in [
        (0, "plain"),
        (0b1111, "all flags"),
        (0x0101, "CoreSight raw"),
    ] {
        s.kernel(&format!("AUX {name}"), kind::AUX, 0, |b| {
            kernel::aux(b, 0x1000 + flags, 0x40, flags)
        });
    }
    s.kernel("ITRACE_START", kind::ITRACE_START, 0, |b| {
        kernel::task(b, task)
    });
    s.kernel("AUX_OUTPUT_HW_ID", kind::AUX_OUTPUT_HW_ID, 0, |b| {
        b.u64(0x0102_0304_0506_0708)
    });
    let ips = [context::USER, 0x40_1000, 0x40_2000];
    for (name, ips) in [("", &ips[..]), (" empty", &[])] {
        let name = format!("CALLCHAIN_DEFERRED{name}");
        s.kernel(&name, kind::CALLCHAIN_DEFERRED, misc::USER, |b| {
            kernel::callchain_deferred(b, 0x1_0000_0006 + ips.len() as u64, ips)
        });
    }
}

fn symbols(s: &mut Scribe) {
    let ksymbols = [
        ("BPF", 1, 0, "bpf_prog_6deef7357e7b4530"),
        ("BPF unregistered", 1, 1, "bpf_prog_6deef7357e7b4530"),
        ("out of line", 2, 0, "kprobe_insn_page"),
    ];
    for (name, what, flags, symbol) in ksymbols {
        s.kernel(
            &format!("KSYMBOL {name}"),
            kind::KSYMBOL,
            misc::KERNEL,
            |b| kernel::ksymbol(b, 0xffff_ffff_c000_1000, 0x4a, what, flags, symbol),
        );
    }
    for (name, what) in [("load", 1), ("unload", 2)] {
        s.kernel(
            &format!("BPF_EVENT {name}"),
            kind::BPF_EVENT,
            misc::KERNEL,
            |b| kernel::bpf_event(b, what, 0, 12, &[1, 2, 3, 4, 5, 6, 7, 8]),
        );
    }
    let bytes = island(30);
    for (old, new) in [(5, 5), (0, 15), (15, 0), (2, 2), (0, 0)] {
        s.kernel(
            &format!("TEXT_POKE {old} to {new}"),
            kind::TEXT_POKE,
            misc::KERNEL,
            |b| {
                kernel::text_poke(
                    b,
                    KERNEL_TEXT[0] + 0x100,
                    &bytes[..old],
                    &bytes[15..15 + new],
                )
            },
        );
    }
}

/// Returns two counters, for READ records and the READ field of samples.
pub fn read(id: u64) -> Read {
    Read {
        enabled: 5_000_001,
        running: 4_000_003,
        values: vec![
            ReadValue {
                value: 0x1_0000_0011,
                id,
                lost: 2,
            },
            ReadValue {
                value: 0x2_0000_0022,
                id: id + 1,
                lost: 3,
            },
        ],
    }
}

fn trailers(s: &mut Scribe) {
    use sample_type::*;
    let before = (s.attr.clone(), s.stamp);
    let shapes = [
        ("pid and tid", TID),
        ("time", TIME),
        ("id", ID),
        ("stream id", STREAM_ID),
        ("cpu", CPU),
        ("identifier", IDENTIFIER),
        ("usual", TID | TIME | CPU | IDENTIFIER),
        ("of before 3.12", TID | TIME | ID | CPU),
    ];
    let task = s.stamp.task();
    for (name, bits) in shapes {
        s.attr = Attr::new(bits | IP, "sample_id_all");
        s.kernel(&format!("COMM, trailer: {name}"), kind::COMM, 0, |b| {
            kernel::comm(b, task, "comm")
        });
        s.kernel(&format!("SWITCH, trailer: {name}"), kind::SWITCH, 0, |b| b);
    }
    s.attr = Attr::new(TRAILER | IP, "sample_id_all");
    s.stamp = Stamp::ZERO;
    s.kernel("COMM, trailer: zeros", kind::COMM, 0, |b| {
        kernel::comm(b, task, "synthesized")
    });
    s.attr = Attr::new(TRAILER | IP, "");
    s.kernel("COMM, no trailer", kind::COMM, 0, |b| {
        kernel::comm(b, task, "comm")
    });
    s.kernel("SWITCH, no trailer", kind::SWITCH, 0, |b| b);
    (s.attr, s.stamp) = before;
}

fn read_formats(s: &mut Scribe) {
    let before = s.attr.clone();
    for read_format in 0..32 {
        s.attr.read_format = read_format;
        read_record(s, &format!("READ, format {read_format:#x}"));
    }
    s.attr = before;
}
