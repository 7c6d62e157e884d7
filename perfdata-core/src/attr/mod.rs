//! `struct perf_event_attr`: the definition of an event and the content of its samples
//! (include/uapi/linux/perf_event.h).

mod flags;

pub use flags::*;

use std::cmp::Ordering;

use binrw::Endian;

use crate::codes::codes;
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor, WireSize};
use crate::error::{Error, Result};
use crate::version::Version;
use crate::wire::{Extent, Rest, Wire, wire};

codes! {
    /// Event type, `enum perf_type_id`; 6 and above are PMUs, named in the PMU_MAPPINGS feature.
    pub struct EventType: u32 {
        0 HARDWARE "hardware",
        1 SOFTWARE "software",
        2 TRACEPOINT "tracepoint",
        3 HW_CACHE "hw-cache",
        4 RAW "raw",
        5 BREAKPOINT "breakpoint",
        // Defined by perf, not by the kernel, for samples that perf synthesizes from AUX data
        // (tools/perf/util/event.h, `PERF_TYPE_SYNTH`).
        0x8000_0000 SYNTH "synth",
    }
}

codes! {
    /// `config` of a hardware event, `enum perf_hw_id`, with perf's name for it.
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
    /// `config` of a software event, `enum perf_sw_ids`, with perf's name for it.
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

wire! {
    /// `struct perf_event_attr`. Fields that a shorter, older form lacks are `None`; `tail`
    /// preserves the additional fields of a longer, newer form. The default is a cycle counter of
    /// the oldest form.
    pub struct Attr(layout) {
        /// Event type.
        pub kind: EventType,
        /// Size of the attribute in bytes as its writer knew it; 0 means 64. A new attribute must
        /// set exactly the fields within this size.
        pub size: u32 => Number,
        /// Event number within its type; a tracepoint's ID.
        pub config: u64 as Hex => Config,
        /// Number of events between two samples or, with the flag `freq`, samples per second.
        pub sample_period: u64 => Number,
        /// Content of its samples.
        pub sample_type: SampleType,
        /// Content of its read values.
        pub read_format: ReadFormat,
        /// Flags.
        pub flags: AttrFlags,
        /// Number of events or, with the flag `watermark`, bytes after which the kernel wakes up
        /// the reader.
        pub wakeup: u32 => Number,
        /// Breakpoint type, `HW_BREAKPOINT_*`.
        pub bp_type: u32 => Number,
        /// Breakpoint address, second configuration word of a PMU, or a pointer to a probe's name.
        pub config1: u64 as Hex => Config,
        /// Breakpoint length, third configuration word, or a probe's offset (2.6.33).
        #[br(if(layout.attr_has(size, 72)))]
        pub config2: Option<u64> as Hex => Config,
        /// Branches to record (3.4).
        #[br(if(layout.attr_has(size, 80)))]
        pub branch_sample_type: Option<BranchSampleType>,
        /// Mask of user registers in samples (3.7).
        #[br(if(layout.attr_has(size, 88)))]
        pub sample_regs_user: Option<u64> as Hex => Number,
        /// Size of the user stack in samples, in bytes (3.7).
        #[br(if(layout.attr_has(size, 92)))]
        pub sample_stack_user: Option<u32> => Number,
        /// Clock of the times, with the flag `use_clockid` (4.1).
        #[br(if(layout.attr_has(size, 96)))]
        pub clockid: Option<i32> => Number,
        /// Mask of interrupt registers in samples (3.19).
        #[br(if(layout.attr_has(size, 104)))]
        pub sample_regs_intr: Option<u64> as Hex => Number,
        /// Number of bytes of AUX data after which the kernel wakes up the reader (4.1).
        #[br(if(layout.attr_has(size, 108)))]
        pub aux_watermark: Option<u32> => Number,
        /// Maximum number of frames in a callchain (4.8).
        #[br(if(layout.attr_has(size, 110)))]
        pub sample_max_stack: Option<u16> => Number,
        /// Reserved.
        #[br(if(layout.attr_has(size, 112)))]
        pub reserved_2: Option<u16> => Unknown,
        /// Size of the AUX data in a sample, in bytes (5.5).
        #[br(if(layout.attr_has(size, 116)))]
        pub aux_sample_size: Option<u32> => Number,
        /// Effect of the event on the AUX trace (6.13; reserved before).
        #[br(if(layout.attr_has(size, 120)))]
        pub aux_action: Option<AuxAction>,
        /// User-defined value for SIGTRAP (5.13).
        #[br(if(layout.attr_has(size, 128)))]
        pub sig_data: Option<u64> as Hex => Unknown,
        /// Fourth configuration word of a PMU (6.3).
        #[br(if(layout.attr_has(size, 136)))]
        pub config3: Option<u64> as Hex => Config,
        /// Fifth configuration word of a PMU (6.18).
        #[br(if(layout.attr_has(size, 144)))]
        pub config4: Option<u64> as Hex => Config,
        /// Fields that this version of the library does not know.
        #[br(args_raw = Extent::UpTo(layout.attr_end(size)))]
        pub tail: Rest as Opaque,
    }
}

/// Every size that the attribute has had, and the release that introduced it
/// (include/uapi/linux/perf_event.h, PERF_ATTR_SIZE_VER0 and the others).
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

/// The release that introduced `sample_max_stack`, in bytes that the attribute already had. The
/// other fields introduced this way depend on a flag.
const MAX_STACK_SINCE: &str = "4.8";

impl Attr {
    /// Returns the size in bytes of the attribute that `version` knows.
    pub fn size_in(version: Version) -> u32 {
        SIZES
            .iter()
            .rev()
            .find(|(_, since)| version.has(since))
            .map_or(Self::MIN_SIZE, |(size, _)| *size)
    }

    /// Returns the attribute without the flags that `version` does not know, and without values
    /// that are then meaningless or concern only the work of the recorder. Its size does not
    /// change. If `version` does not know the newer part of a sample for the event ID or for
    /// weights, the older part is set instead.
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
            (
                SampleType::WEIGHT_STRUCT,
                SampleType::WEIGHT.known_in(version),
            ),
        ] {
            if lost.has(new) {
                attr.sample_type = attr.sample_type | old;
            }
        }
        attr.clear_fields_of(lost);
        if attr.flags.sigtrap() < self.flags.sigtrap() {
            attr.sig_data = attr.sig_data.map(|_| 0);
        }
        if attr.flags.use_clockid() < self.flags.use_clockid() {
            attr.clockid = attr.clockid.map(|_| 0);
        }
        if !version.has(MAX_STACK_SINCE) {
            attr.sample_max_stack = attr.sample_max_stack.map(|_| 0);
        }
        if Self::size_in(version) < 108 {
            attr.aux_watermark = attr.aux_watermark.map(|_| 0);
        }
        attr
    }

    /// Returns the attribute without `parts` in its samples, as `perf record` writes it if they are
    /// not requested: fields that only concern these parts are 0 (tools/perf/util/evsel.c,
    /// evsel__config, 7.2). The size of the attribute does not change.
    #[must_use]
    pub fn without(&self, parts: SampleType) -> Attr {
        let mut attr = self.clone();
        attr.sample_type.0 &= !parts.0;
        attr.clear_fields_of(parts);
        attr
    }

    /// Returns the parts of its samples whose position is certain: parts after an unknown one are
    /// bytes.
    pub fn placed_parts(&self) -> SampleType {
        DecodeContext::of_attr(self).placed_parts()
    }

    /// Clears the fields that only concern `parts` of a sample.
    fn clear_fields_of(&mut self, parts: SampleType) {
        let zero = |part: SampleType, field: &mut Option<u64>| {
            *field = field.map(|value| if parts.has(part) { 0 } else { value })
        };
        let zero32 = |part: SampleType, field: &mut Option<u32>| {
            *field = field.map(|value| if parts.has(part) { 0 } else { value })
        };
        zero(SampleType::REGS_USER, &mut self.sample_regs_user);
        zero32(SampleType::STACK_USER, &mut self.sample_stack_user);
        zero(SampleType::REGS_INTR, &mut self.sample_regs_intr);
        zero32(SampleType::AUX, &mut self.aux_sample_size);
        if parts.has(SampleType::READ) {
            self.read_format.0 &= !ReadFormat::GROUP.0;
        }
        if parts.has(SampleType::BRANCH_STACK) {
            self.branch_sample_type = self.branch_sample_type.map(|_| BranchSampleType(0));
        }
        if parts.has(SampleType::CALLCHAIN) {
            self.sample_max_stack = self.sample_max_stack.map(|_| 0);
            self.flags = self
                .flags
                .with_exclude_callchain_kernel(false)
                .with_exclude_callchain_user(false)
                .with_defer_callchain(false)
                .with_defer_output(false);
        }
    }

    /// Returns the attribute in the form of `size` bytes, or unchanged if it is not longer than
    /// that.
    ///
    /// # Errors
    /// Fails if a field beyond `size` is not 0.
    pub fn cut_to(&self, size: u32) -> Result<Attr> {
        let bytes = self.encode(Endian::Little)?;
        let kept = size as usize;
        let Some(start) = bytes.get(..kept).filter(|_| bytes.len() > kept) else {
            return Ok(self.clone());
        };
        let mut beyond = FieldBeyond {
            bytes: &bytes,
            from: kept,
            at: 0,
            found: None,
        };
        self.describe("", Style::Plain, &mut beyond);
        if let Some(field) = beyond.found {
            let expected = format!("0: the field is after byte {size}");
            return Err(Error::invalid(
                "attribute",
                field,
                "another value",
                expected,
            ));
        }
        let (mut attr, _) = Attr::decode(
            start,
            Endian::Little,
            DecodeContext {
                attr_room: size,
                ..DecodeContext::default()
            },
        )?;
        attr.size = size;
        Ok(attr)
    }

    /// Returns the attribute in the form for a pipe: with as many bytes as its own `size`, because
    /// nothing else marks its end. In a file, the space for an attribute may be larger. Excess
    /// zeros are dropped; for any other excess bytes `size` grows, as in perf inject
    /// (tools/perf/util/header.c, perf_session__do_write_header).
    ///
    /// # Errors
    /// Fails if `size` exceeds the available bytes.
    pub fn self_sized(&self) -> Result<Attr> {
        let mut len = WireSize::default();
        self.describe("", Style::Plain, &mut len);
        let len = u32::try_from(len.0).unwrap_or(u32::MAX);
        match self.own_size().cmp(&len) {
            Ordering::Equal => Ok(self.clone()),
            Ordering::Less => self.cut_to(self.own_size()).or_else(|_| {
                Ok(Attr {
                    size: len,
                    ..self.clone()
                })
            }),
            Ordering::Greater => {
                let expected = format!("at most {len}, its space in the file");
                Err(Error::invalid(
                    "attribute",
                    "size",
                    self.size.to_string(),
                    expected,
                ))
            }
        }
    }

    /// Size in bytes of the oldest form (Linux 2.6.31).
    pub const MIN_SIZE: u32 = 64;
    /// Size in bytes of the newest form whose fields are all known (Linux 6.18).
    pub const KNOWN_SIZE: u32 = 144;

    /// Returns the size in bytes according to the attribute's own `size`.
    pub fn own_size(&self) -> u32 {
        if self.size == 0 {
            Self::MIN_SIZE
        } else {
            self.size
        }
    }

    /// Returns the number of events between two samples, or `None` if the event samples by
    /// frequency.
    pub fn period(&self) -> Option<u64> {
        (self.flags.freq() == 0).then_some(self.sample_period)
    }

    /// Returns the samples per second, or `None` if the event samples by period.
    pub fn frequency(&self) -> Option<u64> {
        (self.flags.freq() == 1).then_some(self.sample_period)
    }
}

/// Finds the first nonzero field at or after an offset.
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
        let is_set = self
            .bytes
            .get(self.at..end)
            .is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0));
        if self.at >= self.from && is_set && self.found.is_none() {
            self.found = Some(name);
        }
        self.at = end;
    }
}

impl DecodeContext {
    /// Returns the end of an attribute with `size`: the space provided by its container, otherwise
    /// its own size.
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
