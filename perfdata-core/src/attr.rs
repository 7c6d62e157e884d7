//! `struct perf_event_attr`: what an event is and what its samples hold (include/uapi/linux/perf_event.h).

use std::cmp::Ordering;

use binrw::Endian;

use crate::codes::{bitfield, codes, flags};
use crate::describe::{Describe, Leaf, Style, Visitor, WireSize};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::version::Version;
use crate::wire::{Extent, Rest, Wire, wire};

codes! {
    /// Kind of an event, `enum perf_type_id`; 6 and above are PMUs, named in the PMU_MAPPINGS feature.
    pub struct EventType: u32 {
        0 HARDWARE "hardware",
        1 SOFTWARE "software",
        2 TRACEPOINT "tracepoint",
        3 HW_CACHE "hw-cache",
        4 RAW "raw",
        5 BREAKPOINT "breakpoint",
        // Not the kernel's, but perf's, for samples that it makes of AUX data (tools/perf/util/event.h,
        // `PERF_TYPE_SYNTH`).
        0x8000_0000 SYNTH "synth",
    }
}

codes! {
    /// `config` of a hardware event, `enum perf_hw_id`, with the name that perf gives it.
    pub struct HardwareEvent: u64 {
        0 CPU_CYCLES "cycles",
        1 INSTRUCTIONS "instructions",
        2 CACHE_REFERENCES "cache-references",
        3 CACHE_MISSES "cache-misses",
        4 BRANCH_INSTRUCTIONS "branches",
        5 BRANCH_MISSES "branch-misses",
        6 BUS_CYCLES "bus-cycles",
        7 STALLED_CYCLES_FRONTEND "stalled-cycles-frontend",
        8 STALLED_CYCLES_BACKEND "stalled-cycles-backend",
        9 REF_CPU_CYCLES "ref-cycles",
    }
}

codes! {
    /// `config` of a software event, `enum perf_sw_ids`, with the name that perf gives it.
    pub struct SoftwareEvent: u64 {
        0 CPU_CLOCK "cpu-clock",
        1 TASK_CLOCK "task-clock",
        2 PAGE_FAULTS "page-faults",
        3 CONTEXT_SWITCHES "context-switches",
        4 CPU_MIGRATIONS "cpu-migrations",
        5 PAGE_FAULTS_MIN "minor-faults",
        6 PAGE_FAULTS_MAJ "major-faults",
        7 ALIGNMENT_FAULTS "alignment-faults",
        8 EMULATION_FAULTS "emulation-faults",
        9 DUMMY "dummy",
        10 BPF_OUTPUT "bpf-output",
        11 CGROUP_SWITCHES "cgroup-switches",
    }
}

flags! {
    /// What a SAMPLE holds, `enum perf_event_sample_format`.
    pub struct SampleType: u64 {
        since "2.6.31" {
            0 IP "IP", 1 TID "TID", 2 TIME "TIME", 3 ADDR "ADDR", 4 READ "READ", 5 CALLCHAIN "CALLCHAIN", 6 ID "ID",
            7 CPU "CPU", 8 PERIOD "PERIOD", 9 STREAM_ID "STREAM_ID", 10 RAW "RAW",
        }
        since "3.4" {
            11 BRANCH_STACK "BRANCH_STACK",
        }
        since "3.7" {
            12 REGS_USER "REGS_USER", 13 STACK_USER "STACK_USER",
        }
        since "3.10" {
            14 WEIGHT "WEIGHT", 15 DATA_SRC "DATA_SRC",
        }
        since "3.12" {
            16 IDENTIFIER "IDENTIFIER",
        }
        since "3.13" {
            17 TRANSACTION "TRANSACTION",
        }
        since "3.19" {
            18 REGS_INTR "REGS_INTR",
        }
        since "4.14" {
            19 PHYS_ADDR "PHYS_ADDR",
        }
        since "5.5" {
            20 AUX "AUX",
        }
        since "5.7" {
            21 CGROUP "CGROUP",
        }
        since "5.11" {
            22 DATA_PAGE_SIZE "DATA_PAGE_SIZE", 23 CODE_PAGE_SIZE "CODE_PAGE_SIZE",
        }
        since "5.12" {
            24 WEIGHT_STRUCT "WEIGHT_STRUCT",
        }
    }
}

flags! {
    /// What a read value holds, `enum perf_event_read_format`.
    pub struct ReadFormat: u64 {
        since "2.6.31" {
            0 TOTAL_TIME_ENABLED "TOTAL_TIME_ENABLED", 1 TOTAL_TIME_RUNNING "TOTAL_TIME_RUNNING", 2 ID "ID",
            3 GROUP "GROUP",
        }
        since "6.0" {
            4 LOST "LOST",
        }
    }
}

flags! {
    /// Which branches a branch stack holds and in what form, `enum perf_branch_sample_type`.
    pub struct BranchSampleType: u64 {
        since "3.4" {
            0 USER "USER", 1 KERNEL "KERNEL", 2 HV "HV", 3 ANY "ANY", 4 ANY_CALL "ANY_CALL",
            5 ANY_RETURN "ANY_RETURN", 6 IND_CALL "IND_CALL",
        }
        since "3.11" {
            7 ABORT_TX "ABORT_TX", 8 IN_TX "IN_TX", 9 NO_TX "NO_TX",
        }
        since "3.16" {
            10 COND "COND",
        }
        since "4.1" {
            11 CALL_STACK "CALL_STACK",
        }
        since "4.2" {
            12 IND_JUMP "IND_JUMP",
        }
        since "4.4" {
            13 CALL "CALL",
        }
        since "4.5" {
            14 NO_FLAGS "NO_FLAGS", 15 NO_CYCLES "NO_CYCLES",
        }
        since "4.14" {
            16 TYPE_SAVE "TYPE_SAVE",
        }
        since "5.7" {
            17 HW_INDEX "HW_INDEX",
        }
        since "6.1" {
            18 PRIV_SAVE "PRIV_SAVE",
        }
        since "6.8" {
            19 COUNTERS "COUNTERS",
        }
    }
}

bitfield! {
    /// The flags word of an attribute (byte 40), in little-endian bit numbering whatever the recording's order.
    pub struct AttrFlags: mirrored u64 {
        /// The event starts switched off.
        disabled 0 1 since "2.6.31",
        /// Children inherit the event.
        inherit 1 1 since "2.6.31",
        /// Must always be on the PMU.
        pinned 2 1 since "2.6.31",
        /// Only group on the PMU.
        exclusive 3 1 since "2.6.31",
        /// Does not count user space.
        exclude_user 4 1 since "2.6.31",
        /// Does not count the kernel.
        exclude_kernel 5 1 since "2.6.31",
        /// Does not count the hypervisor.
        exclude_hv 6 1 since "2.6.31",
        /// Does not count while idle.
        exclude_idle 7 1 since "2.6.31",
        /// MMAP records for executable mappings.
        mmap 8 1 since "2.6.31",
        /// COMM records.
        comm 9 1 since "2.6.31",
        /// `sample_period` is a frequency in Hz.
        freq 10 1 since "2.6.31",
        /// Counts per task.
        inherit_stat 11 1 since "2.6.31",
        /// Switched on by exec.
        enable_on_exec 12 1 since "2.6.31",
        /// FORK and EXIT records.
        task 13 1 since "2.6.31",
        /// `wakeup` is a number of bytes, not of events.
        watermark 14 1 since "2.6.32",
        /// How near the sampled address must be: 0 anywhere to 3 exact.
        precise_ip 15 2 since "2.6.35",
        /// MMAP records for data mappings, too.
        mmap_data 17 1 since "2.6.36",
        /// Kernel records other than SAMPLE end with a trailer.
        sample_id_all 18 1 since "2.6.38",
        /// Does not count the host.
        exclude_host 19 1 since "3.2",
        /// Does not count guests.
        exclude_guest 20 1 since "3.2",
        /// Callchains without the kernel part.
        exclude_callchain_kernel 21 1 since "3.7",
        /// Callchains without the user part.
        exclude_callchain_user 22 1 since "3.7",
        /// MMAP2 instead of MMAP.
        mmap2 23 1 since "3.16",
        /// COMM records of an exec are marked.
        comm_exec 24 1 since "3.16",
        /// `clockid` says which clock times are of.
        use_clockid 25 1 since "4.1",
        /// SWITCH records.
        context_switch 26 1 since "4.3",
        /// The ring buffer is written from end to start.
        write_backward 27 1 since "4.7",
        /// NAMESPACES records.
        namespaces 28 1 since "4.12",
        /// KSYMBOL records.
        ksymbol 29 1 since "5.1",
        /// BPF_EVENT records.
        bpf_event 30 1 since "5.1",
        /// Sends its data to the AUX event.
        aux_output 31 1 since "5.4",
        /// CGROUP records.
        cgroup 32 1 since "5.7",
        /// TEXT_POKE records.
        text_poke 33 1 since "5.9",
        /// MMAP2 records carry build ids.
        build_id 34 1 since "5.12",
        /// Only threads inherit the event.
        inherit_thread 35 1 since "5.13",
        /// Removed by exec.
        remove_on_exec 36 1 since "5.13",
        /// SIGTRAP on overflow.
        sigtrap 37 1 since "5.13",
        /// User callchains arrive later, in CALLCHAIN_DEFERRED records.
        defer_callchain 38 1 since "6.19",
        /// This event carries the deferred callchains.
        defer_output 39 1 since "6.19",
    }
}

bitfield! {
    /// What an event does to the AUX trace (byte 116, since 6.13).
    pub struct AuxAction: mirrored u32 {
        /// The trace starts paused.
        aux_start_paused 0 1 since "6.13",
        /// Pauses the trace.
        aux_pause 1 1 since "6.13",
        /// Resumes the trace.
        aux_resume 2 1 since "6.13",
    }
}

wire! {
    /// `struct perf_event_attr`. What a shorter, older form does not have is `None`; what a longer, newer one has
    /// more is kept in `tail`. The default is a cycle counter of the oldest form.
    #[derive(Default)]
    pub struct Attr(layout) {
        /// Kind of the event.
        pub kind: EventType,
        /// Size of the attribute in bytes as its writer knew it; 0 stands for 64. Who makes one gives it the fields that
        /// this size holds, and no others.
        pub size: u32,
        /// Event number within its kind; a tracepoint's id.
        pub config: u64 as Hex,
        /// Events between two samples or, with the flag `freq`, samples per second.
        pub sample_period: u64,
        /// What its samples hold.
        pub sample_type: SampleType,
        /// What its read values hold.
        pub read_format: ReadFormat,
        /// Switches.
        pub flags: AttrFlags,
        /// Wake the reader after this many events or, with the flag `watermark`, bytes.
        pub wakeup: u32,
        /// Breakpoint type, `HW_BREAKPOINT_*`.
        pub bp_type: u32,
        /// Breakpoint address, or second configuration word of a PMU, or a pointer to a probe's name.
        pub config1: u64 as Hex,
        /// Breakpoint length, third configuration word, or a probe's offset (2.6.33).
        #[br(if(layout.attr_has(size, 72)))]
        pub config2: Option<u64> as Hex,
        /// Which branches to record (3.4).
        #[br(if(layout.attr_has(size, 80)))]
        pub branch_sample_type: Option<BranchSampleType>,
        /// Mask of user registers in samples (3.7).
        #[br(if(layout.attr_has(size, 88)))]
        pub sample_regs_user: Option<u64> as Hex,
        /// Bytes of user stack in samples (3.7).
        #[br(if(layout.attr_has(size, 92)))]
        pub sample_stack_user: Option<u32>,
        /// Clock of the times, with the flag `use_clockid` (4.1).
        #[br(if(layout.attr_has(size, 96)))]
        pub clockid: Option<i32>,
        /// Mask of registers at the interrupt in samples (3.19).
        #[br(if(layout.attr_has(size, 104)))]
        pub sample_regs_intr: Option<u64> as Hex,
        /// Wake the reader after this many bytes of AUX data (4.1).
        #[br(if(layout.attr_has(size, 108)))]
        pub aux_watermark: Option<u32>,
        /// Most frames in a callchain (4.8).
        #[br(if(layout.attr_has(size, 110)))]
        pub sample_max_stack: Option<u16>,
        /// Reserved.
        #[br(if(layout.attr_has(size, 112)))]
        pub reserved_2: Option<u16>,
        /// Bytes of AUX data in a sample (5.5).
        #[br(if(layout.attr_has(size, 116)))]
        pub aux_sample_size: Option<u32>,
        /// What the event does to the AUX trace (6.13; reserved before).
        #[br(if(layout.attr_has(size, 120)))]
        pub aux_action: Option<AuxAction>,
        /// User's value for SIGTRAP (5.13).
        #[br(if(layout.attr_has(size, 128)))]
        pub sig_data: Option<u64> as Hex,
        /// Fourth configuration word of a PMU (6.3).
        #[br(if(layout.attr_has(size, 136)))]
        pub config3: Option<u64> as Hex,
        /// Fifth configuration word of a PMU (6.18).
        #[br(if(layout.attr_has(size, 144)))]
        pub config4: Option<u64> as Hex,
        /// What this version of the library has no name for.
        #[br(args_raw = Extent::UpTo(layout.attr_end(size)))]
        pub tail: Rest as Opaque,
    }
}

/// Every size that the attribute has had, and the release that brought it (include/uapi/linux/perf_event.h,
/// PERF_ATTR_SIZE_VER0 and the others).
pub const SIZES: &[(u32, &str)] = &[
    (64, "2.6.31"),
    (72, "2.6.33"),
    (80, "3.4"),
    (96, "3.7"),
    (104, "3.19"),
    (112, "4.1"),
    (120, "5.5"),
    (128, "5.13"),
    (136, "6.3"),
    (144, "6.18"),
];

/// The release that brought `sample_max_stack`, into room that the attribute had before. What else came so goes with a
/// flag.
const MAX_STACK_SINCE: &str = "4.8";

impl Attr {
    /// Bytes of the attribute that `version` knows.
    pub fn size_in(version: Version) -> u32 {
        SIZES.iter().rev().find(|(_, since)| version.has(since)).map_or(Self::MIN_SIZE, |(size, _)| *size)
    }

    /// The attribute without the flags that `version` does not know, and without the values that stand for nothing then or
    /// speak of the recorder's work only; its size is the same. Where records say by a part which event they belong to, or
    /// have weights, they do so by the older part.
    #[must_use]
    pub fn known_in(&self, version: Version) -> Attr {
        let mut attr = self.clone();
        attr.flags = self.flags.known_in(version);
        attr.sample_type = self.sample_type.known_in(version);
        attr.read_format = self.read_format.known_in(version);
        attr.branch_sample_type = self.branch_sample_type.map(|kinds| kinds.known_in(version));
        attr.aux_action = self.aux_action.map(|actions| actions.known_in(version));
        let lost = SampleType(self.sample_type.0 & !attr.sample_type.0);
        for (new, old) in [
            (SampleType::IDENTIFIER, SampleType::ID),
            (SampleType::WEIGHT_STRUCT, SampleType::WEIGHT.known_in(version)),
        ] {
            if lost.has(new) {
                attr.sample_type = attr.sample_type | old;
            }
        }
        let zero = |is_void: bool, field: &mut Option<u64>| *field = field.map(|value| if is_void { 0 } else { value });
        let zero32 =
            |is_void: bool, field: &mut Option<u32>| *field = field.map(|value| if is_void { 0 } else { value });
        zero(lost.has(SampleType::REGS_USER), &mut attr.sample_regs_user);
        zero32(lost.has(SampleType::STACK_USER), &mut attr.sample_stack_user);
        zero(lost.has(SampleType::REGS_INTR), &mut attr.sample_regs_intr);
        zero32(lost.has(SampleType::AUX), &mut attr.aux_sample_size);
        zero(attr.flags.sigtrap() < self.flags.sigtrap(), &mut attr.sig_data);
        if attr.flags.use_clockid() < self.flags.use_clockid() {
            attr.clockid = attr.clockid.map(|_| 0);
        }
        if !version.has(MAX_STACK_SINCE) {
            attr.sample_max_stack = attr.sample_max_stack.map(|_| 0);
        }
        let knows_aux = Self::size_in(version) >= 108;
        zero32(!knows_aux, &mut attr.aux_watermark);
        attr
    }

    /// The attribute in the form of `size` bytes, or as it is where it is not longer.
    ///
    /// # Errors
    /// A field beyond `size` that is not 0.
    pub fn cut_to(&self, size: u32) -> Result<Attr> {
        let bytes = self.encode(Endian::Little)?;
        let kept = size as usize;
        let Some(start) = bytes.get(..kept).filter(|_| bytes.len() > kept) else { return Ok(self.clone()) };
        let mut beyond = FieldBeyond { bytes: &bytes, from: kept, at: 0, found: None };
        self.describe("", Style::Plain, &mut beyond);
        if let Some(field) = beyond.found {
            let expected = format!("0: the field stands beyond {size} bytes");
            return Err(Error::invalid("attribute", field, "another value", expected));
        }
        let (mut attr, _) = Attr::decode(start, Endian::Little, Layout { attr_room: size, ..Layout::default() })?;
        attr.size = size;
        Ok(attr)
    }

    /// The attribute as a pipe holds it: with as many bytes as its own `size` says, since nothing else says where it ends.
    /// A file gives it room, which may be more: zeros are left out, and for anything else `size` grows, as perf inject
    /// has it grow (tools/perf/util/header.c, perf_session__do_write_header).
    ///
    /// # Errors
    /// A `size` of more bytes than there are.
    pub fn self_sized(&self) -> Result<Attr> {
        let mut len = WireSize::default();
        self.describe("", Style::Plain, &mut len);
        let len = u32::try_from(len.0).unwrap_or(u32::MAX);
        match self.own_size().cmp(&len) {
            Ordering::Equal => Ok(self.clone()),
            Ordering::Less => self.cut_to(self.own_size()).or_else(|_| Ok(Attr { size: len, ..self.clone() })),
            Ordering::Greater => {
                let expected = format!("at most {len}, the room that the file gives it");
                Err(Error::invalid("attribute", "size", self.size.to_string(), expected))
            }
        }
    }

    /// Bytes of the oldest form (Linux 2.6.31).
    pub const MIN_SIZE: u32 = 64;
    /// Bytes of the newest form that is known by name (Linux 6.18).
    pub const KNOWN_SIZE: u32 = 144;

    /// Bytes that the attribute's own `size` claims.
    pub fn own_size(&self) -> u32 {
        if self.size == 0 { Self::MIN_SIZE } else { self.size }
    }

    /// Clock ticks between samples, or nothing where the event samples by frequency.
    pub fn period(&self) -> Option<u64> {
        (self.flags.freq() == 0).then_some(self.sample_period)
    }

    /// Samples per second, or nothing where the event samples by period.
    pub fn frequency(&self) -> Option<u64> {
        (self.flags.freq() == 1).then_some(self.sample_period)
    }
}

/// Finds the first field from an offset on that is not 0.
struct FieldBeyond<'a> {
    bytes: &'a [u8],
    from: usize,
    at: usize,
    found: Option<&'static str>,
}

impl Visitor for FieldBeyond<'_> {
    fn begin(&mut self, _: &'static str) {}
    fn begin_list(&mut self, _: &'static str, _: usize) {}
    fn end(&mut self) {}
    fn leaf(&mut self, name: &'static str, size: usize, _: Leaf<'_>) {
        let end = self.at.saturating_add(size);
        let is_set = self.bytes.get(self.at..end).is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0));
        if self.at >= self.from && is_set && self.found.is_none() {
            self.found = Some(name);
        }
        self.at = end;
    }
}

impl Layout {
    /// Where an attribute that says `size` ends: at the room that its container gives it, else at its own size.
    fn attr_end(&self, size: u32) -> u64 {
        u64::from(match (self.attr_room, size) {
            (0, 0) => Attr::MIN_SIZE,
            (0, size) => size,
            (room, _) => room,
        })
    }

    fn attr_has(&self, size: u32, end: u64) -> bool {
        self.attr_end(size) >= end
    }
}
