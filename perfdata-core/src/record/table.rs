//! The table of all record types.

use binrw::Endian;

use super::{
    auxtrace::*, auxtrace_info::*, kernel::*, maps::*, sample::*, schedstat::*, stat::*, user::*,
};
use crate::codes::codes;
use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Field, Leaf, Style, Visitor, set_fields};
use crate::error::Result;
use crate::values::Values;
use crate::wire::Wire;

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordInfo {
    /// The type number in the record's header.
    pub kind: RecordType,
    /// Name as in the kernel's headers, without `PERF_RECORD_`.
    pub name: &'static str,
    /// The first release of kernel or perf that writes it.
    pub since: &'static str,
    /// The flags in `misc` above the CPU mode.
    pub misc: &'static [Field],
    /// What the record contains in regard to who may see it: [`Content::Fields`] if its fields have
    /// contents of their own.
    pub content: Content,
}

/// Declares the flags in `misc` above the CPU mode: bit, name as in the kernel's headers without
/// `PERF_RECORD_MISC_`, release and constant.
macro_rules! misc_flags {
    ($($(#[$meta:meta])* $bit:literal $name:ident since $since:literal as $constant:ident),* $(,)?) => {
        $($(#[$meta])* pub const $constant: u16 = 1 << $bit;)*

        /// The flags for the table.
        mod misc {
            use crate::describe::Field;
            $(pub(super) const $name: Field =
                Field { bit: $bit, width: 1, name: stringify!($name), since: $since };)*
        }
    };
}

misc_flags! {
    /// `misc` bit 12 of MMAP and MMAP2, set by perf: not all mappings were read in time (4.2).
    12 PROC_MAP_PARSE_TIMEOUT since "4.2" as MISC_PROC_MAP_PARSE_TIMEOUT,
    /// `misc` bit 13 of MMAP and MMAP2: the mapping is not executable.
    13 MMAP_DATA since "3.10" as MISC_MMAP_DATA,
    /// `misc` bit 13 of COMM: the new name is the result of exec (3.16).
    13 COMM_EXEC since "3.16" as MISC_COMM_EXEC,
    /// `misc` bit 13 of FORK, set by perf: the process has its own mappings, which follow (4.20).
    13 FORK_EXEC since "4.20" as MISC_FORK_EXEC,
    /// `misc` bit 13 of SWITCH and SWITCH_CPU_WIDE: the thread stops running (4.3).
    13 SWITCH_OUT since "4.3" as MISC_SWITCH_OUT,
    /// `misc` bit 14 of SAMPLE: the address is exactly that of the event's instruction (2.6.35).
    14 EXACT_IP since "2.6.35" as MISC_EXACT_IP,
    /// `misc` bit 14 of SWITCH and SWITCH_CPU_WIDE: the thread that stops was still runnable
    /// (4.17).
    14 SWITCH_OUT_PREEMPT since "4.17" as MISC_SWITCH_OUT_PREEMPT,
    /// `misc` bit 14 of MMAP2: the record contains a build ID instead of an inode (5.12).
    14 MMAP_BUILD_ID since "5.12" as MISC_MMAP_BUILD_ID,
    /// `misc` bit 15 of LOST_SAMPLES, set by perf: a BPF program filtered the samples (6.4).
    15 LOST_SAMPLES_BPF since "6.4" as MISC_LOST_SAMPLES_BPF,
    /// `misc` bit 15 of a build ID: its `size` is valid (5.11).
    15 BUILD_ID_SIZE since "5.11" as MISC_BUILD_ID_SIZE,
}

/// Declares the type code, the body enum and all dispatch, from one line per record type. Values of
/// `is`: `metadata` records describe the whole recording, `payload` records may have data after
/// them that their size does not include, `compressed` records contain other records, `fixed`
/// records of the kernel have all their numbers at fixed places and at most one text after them.
/// The content after `=>` is that of the whole record, or `Fields`.
macro_rules! records {
    (@metadata metadata $($rest:ident)*) => { true };
    (@payload payload $($rest:ident)*) => { true };
    (@compressed compressed $($rest:ident)*) => { true };
    (@fixed fixed $($rest:ident)*) => { true };
    (@$what:ident $other:ident $($rest:ident)*) => { records!(@$what $($rest)*) };
    (@$what:ident) => { false };
    ($($number:literal $constant:ident $variant:ident($body:ty) since $since:literal $(is [$($what:ident)*])? $(misc [$($flag:ident)*])? => $content:ident),* $(,)?) => {
        codes! {
            /// Type of a record: the kernel's below 64, the perf tool's from 64.
            pub struct RecordType: u32 {
                $($number $constant (stringify!($constant))),*
            }
        }

        /// All known record types, ascending.
        pub const TABLE: &[RecordInfo] = &[$(RecordInfo {
            kind: RecordType($number),
            name: stringify!($constant),
            since: $since,
            misc: &[$($(misc::$flag),*)?],
            content: Content::$content,
        }),*];

        impl RecordType {
            /// Returns whether records of this type describe the whole recording. A file contains
            /// these data elsewhere.
            #[inline]
            pub const fn is_metadata(self) -> bool {
                match self.0 {
                    $($number => records!(@metadata $($($what)*)?),)*
                    _ => false,
                }
            }

            /// Returns whether records of this type may have data after them that their size does
            /// not include: AUX data, tracing data. See
            /// [`RawRecord::payload_len`](super::RawRecord::payload_len).
            #[inline]
            pub const fn has_payload(self) -> bool {
                match self.0 {
                    $($number => records!(@payload $($($what)*)?),)*
                    _ => false,
                }
            }

            /// Returns whether records of this type contain compressed records.
            #[inline]
            pub const fn is_compressed(self) -> bool {
                match self.0 {
                    $($number => records!(@compressed $($($what)*)?),)*
                    _ => false,
                }
            }
        }

        impl RecordType {
            /// Returns whether all numbers of these records are at fixed places. See
            /// [`FixedRecord`](super::FixedRecord).
            #[inline]
            pub(super) const fn has_fixed_places(self) -> bool {
                match self.0 {
                    $($number => records!(@fixed $($($what)*)?),)*
                    _ => false,
                }
            }
        }

        /// The fields of a record, by type.
        // A body is on the caller's stack. Boxing the large variants would require an allocation
        // for every SAMPLE.
        #[allow(clippy::large_enum_variant)]
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Body {
            $(#[doc = concat!("`", stringify!($constant), "`, ", stringify!($number), ", since Linux ", $since, ".")] $variant($body),)*
            /// An unknown type.
            Unknown(Vec<u8>),
        }

        impl Body {
            /// Returns the record type of these fields; `None` for the bytes of an unknown type.
            pub fn kind(&self) -> Option<RecordType> {
                match self {
                    $(Body::$variant(_) => Some(RecordType::$constant),)*
                    Body::Unknown(_) => None,
                }
            }

            /// Decodes the body of a record of type `kind`; also returns the bytes used.
            #[inline]
            pub(super) fn decode(kind: RecordType, bytes: &[u8], endian: Endian, layout: DecodeContext) -> Result<(Self, usize)> {
                match kind.0 {
                    $($number => <$body>::decode(bytes, endian, layout).map(|(body, used)| (Body::$variant(body), used)),)*
                    _ => Ok((Body::Unknown(bytes.to_vec()), bytes.len())),
                }
            }

            /// Makes the body of a record of type `kind` from the values of its fields; returns
            /// `None` for an unknown type.
            pub fn from_values(kind: RecordType, values: &mut dyn Values, layout: DecodeContext) -> Option<Self> {
                match kind.0 {
                    $($number => Some(Body::$variant(<$body>::wire_from_values(values, layout, ""))),)*
                    _ => None,
                }
            }

            /// Appends the body's bytes.
            pub(super) fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
                match self {
                    $(Body::$variant(body) => body.encode_into(out, endian),)*
                    Body::Unknown(bytes) => { out.extend_from_slice(bytes); Ok(()) }
                }
            }
        }

        impl Rewrite for Body {
            const NEEDS_CONTENT: bool = false;
            fn rewrite(&mut self, name: &'static str, _: Content, rewriter: &mut dyn Rewriter) {
                match self {
                    $(Body::$variant(body) => body.rewrite(name, Content::$content, rewriter),)*
                    Body::Unknown(bytes) => rewriter.bytes("bytes", bytes, Content::Unknown),
                }
            }
        }

        impl Describe for Body {
            fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
                match self {
                    $(Body::$variant(body) => body.describe(name, style, v),)*
                    Body::Unknown(bytes) => v.leaf("bytes", bytes.len(), Leaf::Opaque(bytes)),
                }
            }
        }
    };
}

records! {
    1 MMAP Mmap(Mmap) since "2.6.31" is [fixed] misc [PROC_MAP_PARSE_TIMEOUT MMAP_DATA] => Fields,
    2 LOST Lost(Lost) since "2.6.31" is [fixed] => Fields,
    3 COMM Comm(Comm) since "2.6.31" is [fixed] misc [COMM_EXEC] => Fields,
    4 EXIT Exit(Task) since "2.6.31" is [fixed] => Fields,
    5 THROTTLE Throttle(Throttle) since "2.6.31" is [fixed] => Fields,
    6 UNTHROTTLE Unthrottle(Throttle) since "2.6.31" is [fixed] => Fields,
    7 FORK Fork(Task) since "2.6.31" is [fixed] misc [FORK_EXEC] => Fields,
    8 READ Read(Read) since "2.6.31" => Fields,
    9 SAMPLE Sample(Sample) since "2.6.31" misc [EXACT_IP] => Fields,
    10 MMAP2 Mmap2(Mmap2) since "3.16" is [fixed] misc [PROC_MAP_PARSE_TIMEOUT MMAP_DATA MMAP_BUILD_ID] => Fields,
    11 AUX Aux(Aux) since "4.1" is [fixed] => Trace,
    12 ITRACE_START ItraceStart(ItraceStart) since "4.1" is [fixed] => Fields,
    13 LOST_SAMPLES LostSamples(LostSamples) since "4.2" is [fixed] misc [LOST_SAMPLES_BPF] => Fields,
    14 SWITCH Switch(NoBody) since "4.3" is [fixed] misc [SWITCH_OUT SWITCH_OUT_PREEMPT] => Fields,
    15 SWITCH_CPU_WIDE SwitchCpuWide(SwitchCpuWide) since "4.3" is [fixed] misc [SWITCH_OUT SWITCH_OUT_PREEMPT] => Fields,
    16 NAMESPACES Namespaces(Namespaces) since "4.12" => Fields,
    17 KSYMBOL Ksymbol(Ksymbol) since "5.1" is [fixed] => Fields,
    18 BPF_EVENT BpfEvent(BpfEvent) since "5.1" is [fixed] => Fields,
    19 CGROUP Cgroup(Cgroup) since "5.7" is [fixed] => Fields,
    20 TEXT_POKE TextPoke(TextPoke) since "5.9" => Code,
    21 AUX_OUTPUT_HW_ID AuxOutputHwId(AuxOutputHwId) since "5.16" is [fixed] => Trace,
    22 CALLCHAIN_DEFERRED CallchainDeferred(CallchainDeferred) since "6.19" => Fields,

    64 HEADER_ATTR HeaderAttr(HeaderAttr) since "2.6.35" is [metadata] => Fields,
    65 HEADER_EVENT_TYPE HeaderEventType(EventTypeName) since "2.6.35" is [metadata] => Fields,
    66 HEADER_TRACING_DATA HeaderTracingData(HeaderTracingData) since "2.6.35" is [metadata payload] => Fields,
    67 HEADER_BUILD_ID HeaderBuildId(BuildId) since "2.6.35" misc [BUILD_ID_SIZE] => Fields,
    68 FINISHED_ROUND FinishedRound(NoBody) since "2.6.35" => Fields,
    69 ID_INDEX IdIndex(IdIndex) since "3.19" => Fields,
    70 AUXTRACE_INFO AuxtraceInfo(AuxtraceInfo) since "4.1" => Trace,
    71 AUXTRACE Auxtrace(Auxtrace) since "4.1" is [payload] => Trace,
    72 AUXTRACE_ERROR AuxtraceError(AuxtraceError) since "4.1" => Trace,
    73 THREAD_MAP ThreadMap(ThreadMap) since "4.5" => Fields,
    74 CPU_MAP CpuMap(CpuMap) since "4.5" => Fields,
    75 STAT_CONFIG StatConfig(StatConfig) since "4.5" => Fields,
    76 STAT Stat(Stat) since "4.5" => Fields,
    77 STAT_ROUND StatRound(StatRound) since "4.5" => Fields,
    78 EVENT_UPDATE EventUpdate(EventUpdate) since "4.5" => Fields,
    79 TIME_CONV TimeConv(TimeConv) since "4.6" => Clock,
    80 HEADER_FEATURE HeaderFeature(HeaderFeature) since "4.14" is [metadata] => Fields,
    81 COMPRESSED Compressed(Compressed) since "5.2" is [compressed] => Fields,
    82 FINISHED_INIT FinishedInit(NoBody) since "6.0" => Fields,
    83 COMPRESSED2 Compressed2(Compressed2) since "6.15" is [compressed] => Fields,
    84 BPF_METADATA BpfMetadata(BpfMetadata) since "6.17" => Bpf,
    85 SCHEDSTAT_CPU SchedstatCpu(SchedstatCpu) since "7.0" => Fields,
    86 SCHEDSTAT_DOMAIN SchedstatDomain(SchedstatDomain) since "7.0" => Fields,
}

const _: () = assert!(ascends(TABLE), "types are looked up by halving the table");

/// Returns whether each line has a higher number than the previous one.
const fn ascends(mut table: &[RecordInfo]) -> bool {
    while let [first, rest @ ..] = table {
        if let [second, ..] = rest
            && first.kind.0 >= second.kind.0
        {
            return false;
        }
        table = rest;
    }
    true
}

codes! {
    /// The code that ran when a record was written: bits 0 to 2 of its `misc`,
    /// `PERF_RECORD_MISC_CPUMODE_MASK`.
    pub struct CpuMode: u16 {
        0 UNKNOWN "UNKNOWN",
        1 KERNEL "KERNEL",
        2 USER "USER",
        3 HYPERVISOR "HYPERVISOR",
        4 GUEST_KERNEL "GUEST_KERNEL",
        5 GUEST_USER "GUEST_USER",
    }
}

impl CpuMode {
    /// The bits of `misc` that contain the mode.
    pub const MASK: u16 = 0b111;

    /// Returns the mode in the `misc` of a record.
    pub const fn of(misc: u16) -> Self {
        Self(misc & Self::MASK)
    }
}

impl RecordType {
    /// Returns the type with this `name`, in upper or lower case.
    pub fn by_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|info| info.name.eq_ignore_ascii_case(name))
            .map(|info| info.kind)
    }

    /// Returns the flags that are set in `misc`, without the CPU mode; bits without a name come
    /// last, in their position, as `unknown`.
    pub fn misc_flags(self, misc: u16) -> impl Iterator<Item = (&'static str, u64)> {
        let word = u64::from(misc & !CpuMode::MASK);
        let info = if word == 0 { None } else { self.info() };
        set_fields(word, info.map_or(&[][..], |info| info.misc))
    }

    /// Returns whether the number is in the range of the kernel's records, not of the perf tool's.
    pub const fn is_kernel(self) -> bool {
        self.0 < Self::HEADER_ATTR.0
    }

    /// Returns the line of the table.
    pub fn info(self) -> Option<&'static RecordInfo> {
        let place = *PLACES.get(usize::try_from(self.0).ok()?)?;
        TABLE.get(usize::from(place))
    }
}

/// The index in the table of each type; 255 for types that are not in the table.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated by the compiler"
)]
static PLACES: [u8; 128] = {
    let mut places = [u8::MAX; 128];
    let mut at = 0;
    while at < TABLE.len() {
        places[TABLE[at].kind.0 as usize] = at as u8;
        at += 1;
    }
    places
};
