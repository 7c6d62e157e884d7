//! Records of the kernel (types 1..22) except SAMPLE; include/uapi/linux/perf_event.h,
//! `enum perf_event_type`.

use super::attr::{Attr, Stamp, sample_type};
use super::buf::{Buf, count, island};
use super::record::{Scribe, misc};
use super::sample::{Read, ReadValue};

const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
const READ: u32 = 8;
const MMAP2: u32 = 10;
const AUX: u32 = 11;
const ITRACE_START: u32 = 12;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;
const NAMESPACES: u32 = 16;
const KSYMBOL: u32 = 17;
const BPF_EVENT: u32 = 18;
const CGROUP: u32 = 19;
const TEXT_POKE: u32 = 20;
const AUX_OUTPUT_HW_ID: u32 = 21;
const CALLCHAIN_DEFERRED: u32 = 22;

/// Bits 12 to 15 of misc mean something else in each record type.
const BIT12: u16 = 1 << 12;
const BIT13: u16 = 1 << 13;
const BIT14: u16 = 1 << 14;
const BIT15: u16 = 1 << 15;

/// The kernel's text, as perf synthesizes its map.
const KERNEL_TEXT: u64 = 0xffff_ffff_8100_0000;

/// Every type under the scribe's own attribute, which is left as it was.
pub fn plain(s: &mut Scribe) {
    mappings(s);
    tasks(s);
    counters(s);
    tracing(s);
    symbols(s);
}

/// What depends on the attribute: the trailer's shape and every read format.
pub fn variants(s: &mut Scribe) {
    trailers(s);
    read_formats(s);
}

fn mappings(s: &mut Scribe) {
    let Stamp { pid, tid, .. } = s.stamp;
    s.kernel("MMAP kernel", MMAP, misc::KERNEL, |b| {
        b.u32(u32::MAX).u32(0).u64s(&[KERNEL_TEXT, 0x120_0000, KERNEL_TEXT]).text("[kernel.kallsyms]_text")
    });
    s.kernel("MMAP data", MMAP, misc::USER | BIT13, |b| {
        b.u32(pid).u32(tid).u64s(&[0x7ffd_0000_0000, 0x2_1000, 0x7fff_fffd_e000]).text("[stack]")
    });
    s.kernel("MMAP timed out, stale padding", MMAP, misc::USER | BIT12, |b| {
        b.u32(pid).u32(tid).u64s(&[0x40_0000, 0x1000, 0]).text_stale("//toolong")
    });
    for length in 15..24 {
        let name = "/usr/lib/perf/synthetic"[..length].to_owned();
        s.kernel(&format!("MMAP name of {length}"), MMAP, misc::USER, |b| {
            b.u32(pid).u32(tid).u64s(&[0x50_0000 + length as u64 * 0x1000, 0x1000, 0]).text(&name)
        });
    }
    s.kernel("MMAP2 device and inode", MMAP2, misc::USER, |b| {
        b.u32(pid)
            .u32(tid)
            .u64s(&[0x5555_5555_4000, 0x3000, 0x2000])
            .u32(8)
            .u32(1)
            .u64s(&[0x1234_5678, 0x9abc])
            .u32(5)
            .u32(2)
            .text("/usr/bin/true")
    });
    s.kernel("MMAP2 anonymous data", MMAP2, misc::USER | BIT13, |b| {
        b.u32(pid)
            .u32(tid)
            .u64s(&[0x7f00_0000_0000, 0x1000, 0])
            .u32(0)
            .u32(0)
            .u64s(&[0, 0])
            .u32(3)
            .u32(0x22)
            .text("//anon")
    });
    for (size, what) in [(20, "sha1"), (16, "md5"), (8, "short")] {
        let name = format!("MMAP2 build id, {what}");
        s.kernel(&name, MMAP2, misc::USER | BIT14, |b| {
            b.u32(pid)
                .u32(tid)
                .u64s(&[0x7f00_0010_0000 + u64::from(size) * 0x1_0000, 0x1_0000, 0x1000])
                .u8(size)
                .u8(0)
                .u16(0)
                .room(&island(size.into()), 20)
                .u32(5)
                .u32(2)
                .text("/usr/lib/libc.so.6")
        });
    }
}

fn tasks(s: &mut Scribe) {
    let Stamp { pid, tid, time, .. } = s.stamp;
    s.kernel("COMM", COMM, 0, |b| b.u32(pid).u32(tid).text("thread/0"));
    s.kernel("COMM exec", COMM, BIT13, |b| b.u32(pid).u32(tid).text("true"));
    s.kernel("COMM stale padding", COMM, 0, |b| b.u32(pid).u32(tid).text_stale("sh"));
    s.kernel("COMM empty", COMM, 0, |b| b.u32(pid).u32(tid).text(""));
    s.kernel("FORK", FORK, 0, |b| b.u32s(&[pid + 1, pid, tid + 1, tid]).u64(time + 2));
    s.kernel("FORK exec", FORK, BIT13, |b| b.u32s(&[pid + 2, pid, tid + 2, tid]).u64(time + 3));
    s.kernel("EXIT", EXIT, 0, |b| b.u32s(&[pid + 1, pid, tid + 1, tid]).u64(time + 4));
    s.kernel("NAMESPACES", NAMESPACES, 0, |b| {
        let namespaces: Vec<[u64; 2]> = (0..7).map(|n| [4, 0xf000_0000 + n]).collect();
        b.u32(pid).u32(tid).u64(count(&namespaces)).each(&namespaces, |b, [device, inode]| b.u64(*device).u64(*inode))
    });
    s.kernel("NAMESPACES none", NAMESPACES, 0, |b| b.u32(pid).u32(tid).u64(0));
    s.kernel("CGROUP", CGROUP, 0, |b| b.u64(0x1_0000_002a).text("/system.slice/ssh.service"));
    s.kernel("CGROUP root", CGROUP, 0, |b| b.u64(1).text("/"));
    for (name, bits) in [("in", 0), ("out", BIT13), ("out, preempted", BIT13 | BIT14)] {
        s.kernel(&format!("SWITCH {name}"), SWITCH, bits, |b| b);
        s.kernel(&format!("SWITCH_CPU_WIDE {name}"), SWITCH_CPU_WIDE, bits, |b| b.u32(pid + 7).u32(tid + 8));
    }
}

fn counters(s: &mut Scribe) {
    let Stamp { pid, tid, id, stream_id, time, .. } = s.stamp;
    s.kernel("LOST", LOST, 0, |b| b.u64(id).u64(17));
    s.kernel("LOST_SAMPLES", LOST_SAMPLES, 0, |b| b.u64(3));
    s.kernel("LOST_SAMPLES by a BPF filter", LOST_SAMPLES, BIT15, |b| b.u64(0x1_0000_0001));
    s.kernel("THROTTLE", THROTTLE, 0, |b| b.u64s(&[time + 5, id, stream_id]));
    s.kernel("UNTHROTTLE", UNTHROTTLE, 0, |b| b.u64s(&[time + 6, id, stream_id]));
    let read_format = s.attr.read_format;
    s.kernel("READ", READ, misc::USER, |b| read(id).put(b.u32(pid).u32(tid), read_format));
}

fn tracing(s: &mut Scribe) {
    let Stamp { pid, tid, .. } = s.stamp;
    for (flags, name) in [(0, "plain"), (0b1111, "all flags"), (0x0101, "CoreSight raw")] {
        s.kernel(&format!("AUX {name}"), AUX, 0, |b| b.u64s(&[0x1000 + flags, 0x40, flags]));
    }
    s.kernel("ITRACE_START", ITRACE_START, 0, |b| b.u32(pid).u32(tid));
    s.kernel("AUX_OUTPUT_HW_ID", AUX_OUTPUT_HW_ID, 0, |b| b.u64(0x0102_0304_0506_0708));
    s.kernel("CALLCHAIN_DEFERRED", CALLCHAIN_DEFERRED, misc::USER, |b| {
        let ips = [-512i64 as u64, 0x40_1000, 0x40_2000];
        b.u64(0x1_0000_0007).u64(count(&ips)).u64s(&ips)
    });
    s.kernel("CALLCHAIN_DEFERRED empty", CALLCHAIN_DEFERRED, misc::USER, |b| b.u64(0x1_0000_0008).u64(0));
}

fn symbols(s: &mut Scribe) {
    let ksymbols = [
        ("BPF", 1u16, 0u16, "bpf_prog_6deef7357e7b4530"),
        ("BPF unregistered", 1, 1, "bpf_prog_6deef7357e7b4530"),
        ("out of line", 2, 0, "kprobe_insn_page"),
    ];
    for (name, kind, flags, symbol) in ksymbols {
        s.kernel(&format!("KSYMBOL {name}"), KSYMBOL, misc::KERNEL, |b| {
            b.u64(0xffff_ffff_c000_1000).u32(0x4a).u16(kind).u16(flags).text(symbol)
        });
    }
    for (name, kind) in [("load", 1), ("unload", 2)] {
        s.kernel(&format!("BPF_EVENT {name}"), BPF_EVENT, misc::KERNEL, |b| {
            b.u16(kind).u16(0).u32(12).bytes(&island(8))
        });
    }
    // The two lengths and the bytes together fill whole words.
    for (old, new) in [(5, 5), (0, 15), (15, 0), (2, 2), (0, 0)] {
        s.kernel(&format!("TEXT_POKE {old} to {new}"), TEXT_POKE, misc::KERNEL, |b| {
            let bytes = Buf::new(b.big).u16(old).u16(new).bytes(&island((old + new).into())).pad(8);
            b.u64(KERNEL_TEXT + 0x100).bytes(&bytes.bytes)
        });
    }
}

/// Two counters, for READ records and the READ part of samples.
pub fn read(id: u64) -> Read {
    Read {
        enabled: 5_000_001,
        running: 4_000_003,
        values: vec![
            ReadValue { value: 0x1_0000_0011, id, lost: 2 },
            ReadValue { value: 0x2_0000_0022, id: id + 1, lost: 3 },
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
    let (pid, tid) = (s.stamp.pid, s.stamp.tid);
    for (name, bits) in shapes {
        s.attr = Attr::new(bits | IP, "sample_id_all");
        s.kernel(&format!("COMM, trailer: {name}"), COMM, 0, |b| b.u32(pid).u32(tid).text("comm"));
        s.kernel(&format!("SWITCH, trailer: {name}"), SWITCH, 0, |b| b);
    }
    s.attr = Attr::new(TRAILER | IP, "sample_id_all");
    s.stamp = Stamp::ZERO;
    s.kernel("COMM, trailer: zeros", COMM, 0, |b| b.u32(pid).u32(tid).text("synthesized"));
    s.attr = Attr::new(TRAILER | IP, "");
    s.kernel("COMM, no trailer", COMM, 0, |b| b.u32(pid).u32(tid).text("comm"));
    s.kernel("SWITCH, no trailer", SWITCH, 0, |b| b);
    (s.attr, s.stamp) = before;
}

fn read_formats(s: &mut Scribe) {
    let before = s.attr.clone();
    let Stamp { pid, tid, id, .. } = s.stamp;
    for read_format in 0..32 {
        s.attr.read_format = read_format;
        s.kernel(&format!("READ, format {read_format:#x}"), READ, misc::USER, |b| {
            read(id).put(b.u32(pid).u32(tid), read_format)
        });
    }
    s.attr = before;
}
