//! Records written by the kernel, 1 to 22, except SAMPLE (include/uapi/linux/perf_event.h, enum
//! perf_event_type). perf synthesizes some of them in the same form for objects that existed before
//! the recording started.

use super::{MISC_MMAP_BUILD_ID, RawRecord, RecordHeader, RecordType};
use crate::codes::{codes, flags};
use crate::record::sample_parts::ReadValue;
use crate::wire::{Counted, Extent, Rest, Text, elements, until_nul, wire};

wire! {
    /// A mapping (2.6.31).
    pub struct Mmap {
        /// Process ID; -1 for the kernel.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// First address.
        pub addr: u64 as Address,
        /// Length in bytes.
        pub len: u64 as Hex => Number,
        /// Offset in the file in bytes; for the kernel the address of the symbol in the name.
        pub pgoff: u64 as Hex => MappingOffset,
        /// File, or a name in brackets.
        pub filename: Text => Path,
    }
}

wire! {
    /// Records lost because they did not fit into the ring buffer (2.6.31).
    pub struct Lost {
        /// Event ID.
        pub id: u64 as Id,
        /// Number of records.
        pub lost: u64 => Number,
    }
}

wire! {
    /// A new name of a thread (2.6.31).
    pub struct Comm {
        /// Process ID.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// Name.
        pub comm: Text => Comm,
    }
}

wire! {
    /// A task starts (FORK) or ends (EXIT) (2.6.31).
    pub struct Task {
        /// Process ID.
        pub pid: u32 as Pid,
        /// Parent's process ID.
        pub ppid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// Parent's thread ID.
        pub ptid: u32 as Pid,
        /// Nanoseconds on the recording's clock.
        pub time: u64 as Time,
    }
}

wire! {
    /// Sampling stops (THROTTLE) or resumes (UNTHROTTLE) (2.6.31).
    pub struct Throttle {
        /// Nanoseconds on the recording's clock.
        pub time: u64 as Time,
        /// Event ID.
        pub id: u64 as Id,
        /// ID of the event's instance.
        pub stream_id: u64 as StreamId,
    }
}

wire! {
    /// Counter values of a task that ended (2.6.31).
    pub struct Read(layout) {
        /// Process ID.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// The values.
        #[br(args_raw = layout)]
        pub values: ReadValue,
    }
}

wire! {
    /// The mapped file, identified by its inode.
    pub struct Inode {
        /// Major number of the device.
        pub maj: u32 => FileId,
        /// Minor number of the device.
        pub min: u32 => FileId,
        /// Inode number.
        pub ino: u64 => FileId,
        /// Inode generation.
        pub ino_generation: u64 => FileId,
    }
}

wire! {
    /// The mapped file, identified by its build ID.
    pub struct MappedBuildId {
        /// Size of the build ID in bytes, normally 20.
        pub build_id_size: u8 => BuildIdSize,
        /// Reserved.
        pub reserved_1: u8 as Pad,
        /// Reserved.
        pub reserved_2: u16 as Pad,
        /// Build ID, left-justified.
        pub build_id: [u8; 20] => BuildId,
    }
}

wire! {
    /// A mapping with the file's identity and protection (3.16).
    pub struct Mmap2(layout) {
        /// Process ID; -1 for the kernel.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// First address.
        pub addr: u64 as Address,
        /// Length in bytes.
        pub len: u64 as Hex => Number,
        /// Offset in the file in bytes.
        pub pgoff: u64 as Hex => MappingOffset,
        /// Inode of the file; missing in a record with a build ID.
        #[br(if(!layout.mmap2_with_build_id))]
        pub inode: Option<Inode>,
        /// Build ID of the file, with `misc` bit 14. Some records have this bit, but an inode:
        /// see [`Events::has_false_build_id`](crate::Events::has_false_build_id).
        #[br(if(layout.mmap2_with_build_id))]
        pub build_id: Option<MappedBuildId>,
        /// `PROT_*` of the recording machine; missing in some records of kernels before 3.16.
        #[br(if(!layout.mmap2_without_protection))]
        pub prot: Option<u32> => Protection,
        /// `MAP_*` of the recording machine; missing where `prot` is.
        #[br(if(!layout.mmap2_without_protection))]
        pub flags: Option<u32> as Hex => MapFlags,
        /// File, or a name in brackets.
        pub filename: Text => Path,
    }
}

impl Mmap2 {
    /// The offset of the inode or build ID in the body, in bytes.
    const IDENTITY: usize = 32;

    /// The offset of `prot` in the body, in bytes.
    const PROT: usize = 56;

    /// Returns whether `raw` is an MMAP2 record with a build ID; `is_requested` if the attribute of
    /// its event requests build IDs.
    ///
    /// While another recorder requests build IDs, the kernel sets the bit in the records of all
    /// events, and writes inodes for those that do not request them (kernel/events/core.c,
    /// `perf_event_mmap_output`, which does not reset `misc`). Without a request, only
    /// `perf inject --mmap2-buildid-all` writes build IDs. They differ from inodes by their size,
    /// with zeros in the reserved fields: no disk has the major number 16 or 20. A build ID of
    /// another size differs from an inode if its start is no minor number, for which the kernel has
    /// 20 bits (include/linux/kdev_t.h). The bytes decide, not the byte order: in the other one, the
    /// record is read in the same way.
    pub(crate) fn has_build_id(raw: &RawRecord<'_>, is_requested: bool) -> bool {
        const LARGEST: u8 = 20;
        if raw.kind != RecordType::MMAP2 || raw.misc & MISC_MMAP_BUILD_ID == 0 {
            return false;
        }
        let identity = RecordHeader::SIZE.saturating_add(Self::IDENTITY);
        let bytes = raw.bytes.get(identity..);
        let Some(&[size, a, b, c, start @ ..]) = bytes.and_then(|bytes| bytes.first_chunk::<8>())
        else {
            return is_requested;
        };
        if is_requested {
            return size <= LARGEST;
        }
        let is_no_device = u32::from_le_bytes(start) >= 1 << 20;
        let is_size = matches!(size, 16 | LARGEST) || (1..=LARGEST).contains(&size) && is_no_device;
        is_size && [a, b, c] == [0; 3]
    }

    /// Returns whether a body, without the trailer, has its name in place of `prot` and `flags`.
    ///
    /// Mainline kernels write MMAP2 records since 3.16, with both numbers. The kernels 3.10 of Red
    /// Hat Enterprise Linux 7 wrote them in the form of Linux 3.12, which was never enabled, while
    /// the perf of the same system adds records in the newer form: a recording contains both. No
    /// protection is a number whose bytes are a text.
    pub(crate) fn lacks_protection(body: &[u8]) -> bool {
        let text = body.get(Self::PROT..).unwrap_or_default();
        // "anon_inode:", "socket:[".
        let is_other = || {
            let start = text.first_chunk::<8>();
            start.is_some_and(|start| start.iter().all(u8::is_ascii_graphic))
        };
        if !matches!(text.first(), Some(b'/' | b'[')) && !is_other() {
            return false;
        }
        let name = until_nul(text);
        let padding = text.get(name.len()..).unwrap_or_default();
        let is_text = std::str::from_utf8(name).is_ok_and(|name| !name.contains(char::is_control));
        // Names are padded with zeros to a multiple of 8 bytes.
        text.len() >= 8 && is_text && padding.iter().all(|&byte| byte == 0)
    }
}

flags! {
    /// State of a piece of AUX data; bits 8–15 are the PMU-specific format number.
    pub struct AuxFlags: u64 {
        since "4.1" {
            0 TRUNCATED "TRUNCATED", 1 OVERWRITE "OVERWRITE",
        }
        since "4.12" {
            2 PARTIAL "PARTIAL",
        }
        since "4.15" {
            3 COLLISION "COLLISION",
        }
        since "5.13" {
            8 FORMAT_0 "FORMAT_0", 9 FORMAT_1 "FORMAT_1", 10 FORMAT_2 "FORMAT_2", 11 FORMAT_3 "FORMAT_3",
            12 FORMAT_4 "FORMAT_4", 13 FORMAT_5 "FORMAT_5", 14 FORMAT_6 "FORMAT_6", 15 FORMAT_7 "FORMAT_7",
        }
    }
}

wire! {
    /// New data in the AUX buffer (4.1).
    pub struct Aux {
        /// Offset of the data in the AUX buffer in bytes.
        pub aux_offset: u64 as Hex => Number,
        /// Length in bytes.
        pub aux_size: u64 as Hex => Number,
        /// State.
        pub flags: AuxFlags,
    }
}

wire! {
    /// An instruction trace of a task starts (4.1).
    pub struct ItraceStart {
        /// Process ID.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
    }
}

wire! {
    /// Samples dropped by the hardware or the kernel (4.2).
    pub struct LostSamples {
        /// Number of samples.
        pub lost: u64 => Number,
    }
}

wire! {
    /// A record that consists only of its header (and trailer).
    pub struct NoBody {}
}

wire! {
    /// A context switch, as seen from a CPU (4.3).
    pub struct SwitchCpuWide {
        /// Process ID of the next task if `misc` has the flag for switched out, otherwise of the
        /// previous task.
        pub next_prev_pid: u32 as Pid,
        /// Thread ID of that task.
        pub next_prev_tid: u32 as Pid,
    }
}

wire! {
    /// One namespace, identified by the inode of its link in /proc.
    pub struct Namespace {
        /// Device number.
        pub dev: u64 as Hex => FileId,
        /// Inode number.
        pub ino: u64 => Namespace,
    }
}
elements!(Namespace);

wire! {
    /// The namespaces of a task (4.12), in the order net, uts, ipc, pid, user, mnt, cgroup.
    pub struct Namespaces {
        /// Process ID.
        pub pid: u32 as Pid,
        /// Thread ID.
        pub tid: u32 as Pid,
        /// Namespaces.
        pub namespaces: Counted<u64, Namespace>,
    }
}

codes! {
    /// Type of a kernel symbol.
    pub struct KsymbolType: u16 {
        0 UNKNOWN "unknown",
        1 BPF "bpf",
        2 OUT_OF_LINE "out-of-line",
    }
}

flags! {
    /// Change of a kernel symbol.
    pub struct KsymbolFlags: u16 {
        since "5.1" {
            0 UNREGISTER "UNREGISTER",
        }
    }
}

wire! {
    /// A kernel symbol was added or removed (5.1).
    pub struct Ksymbol {
        /// Address.
        pub addr: u64 as Address,
        /// Length in bytes.
        pub len: u32 => Number,
        /// Type.
        pub ksym_type: KsymbolType,
        /// Change.
        pub flags: KsymbolFlags,
        /// Name.
        pub name: Text => Symbol,
    }
}

codes! {
    /// Change of a BPF program.
    pub struct BpfEventType: u16 {
        0 UNKNOWN "unknown",
        1 PROG_LOAD "load",
        2 PROG_UNLOAD "unload",
    }
}

wire! {
    /// A BPF program was loaded or unloaded (5.1).
    pub struct BpfEvent {
        /// Change.
        pub kind: BpfEventType,
        /// Reserved.
        pub flags: u16 => Unknown,
        /// Program ID.
        pub id: u32 as BpfId,
        /// Program tag.
        pub tag: [u8; 8] => BuildId,
    }
}

wire! {
    /// A cgroup (5.7).
    pub struct Cgroup {
        /// Cgroup ID.
        pub id: u64 as CgroupId,
        /// Path in the cgroup file system.
        pub path: Text => CgroupPath,
    }
}

wire! {
    /// The kernel changed its own code (5.9).
    pub struct TextPoke {
        /// Address.
        pub addr: u64 as Address,
        /// Size of the old code in bytes.
        pub old_len: u16 => Number,
        /// Size of the new code in bytes.
        pub new_len: u16 => Number,
        /// Old code.
        #[br(args_raw = Extent::Bytes(u64::from(old_len)))]
        pub old: Rest => Code,
        /// New code.
        #[br(args_raw = Extent::Bytes(u64::from(new_len)))]
        pub new: Rest => Code,
        /// Padding to a multiple of 8.
        pub padding: Rest as Pad,
    }
}

wire! {
    /// Assignment of AUX data to the event (5.16).
    pub struct AuxOutputHwId {
        /// ID in the hardware's trace.
        pub hw_id: u64 as Hex => Trace,
    }
}

wire! {
    /// User part of the callchain of an earlier SAMPLE that ends with the same cookie (6.19).
    pub struct CallchainDeferred {
        /// Cookie.
        pub cookie: u64 as Hex => Cookie,
        /// Return addresses with context markers.
        pub callchain: Counted<u64, u64> as Callchain,
    }
}
