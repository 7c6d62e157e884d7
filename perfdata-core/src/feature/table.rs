//! The table of all features.

use binrw::Endian;

use super::*;
use crate::codes::codes;
use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Leaf, Style, Visitor};
use crate::error::{Error, Result};
use crate::values::Values;
use crate::wire::{Counted, HeaderString, Wire};

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureInfo {
    /// Number: the bit in a file's header, the `feat_id` in a pipe.
    pub id: FeatureId,
    /// Name as in tools/perf/util/header.h, without `HEADER_`.
    pub name: &'static str,
    /// The first release of perf that writes it.
    pub since: &'static str,
    /// Whether perf writes it to a pipe as a HEADER_FEATURE record.
    pub in_pipe: bool,
    /// Whether perf reads it from a HEADER_FEATURE record.
    pub from_pipe: bool,
    /// What the section contains in regard to who may see it: [`Content::Fields`] if its fields
    /// have contents of their own.
    pub content: Content,
}

/// Generates the number, the value enum and all dispatch from one line per feature. `pipe` is `yes`
/// if perf writes the feature as a HEADER_FEATURE record, `taken` if perf only reads it from such a
/// record, otherwise `no`. The content after `=>` is that of the whole section, or `Fields`.
macro_rules! features {
    (@sent yes) => { true };
    (@sent $other:ident) => { false };
    (@place yes) => { "in pipes, too" };
    (@place taken) => { "read from pipes, written only to files" };
    (@place no) => { "only in files" };
    (@taken no) => { false };
    (@taken $other:ident) => { true };
    ($($(#[$meta:meta])* $number:literal $constant:ident $variant:ident($value:ty) since $since:literal pipe $pipe:ident => $content:ident),* $(,)?) => {
        codes! {
            /// Number of a feature.
            pub struct FeatureId: u32 {
                $($(#[$meta])* $number $constant (stringify!($constant))),*
            }
        }

        /// All known features, ascending.
        pub const TABLE: &[FeatureInfo] = &[$(FeatureInfo {
            id: FeatureId($number),
            name: stringify!($constant),
            since: $since,
            in_pipe: features!(@sent $pipe),
            from_pipe: features!(@taken $pipe),
            content: Content::$content,
        }),*];

        $(const _: () = assert!(
            !matches!(Content::$content, Content::Fields) || !<$value as Rewrite>::NEEDS_CONTENT,
            concat!("the content of ", stringify!($constant), " is not declared")
        );)*

        /// The fields of a feature section, by feature number.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Feature {
            $($(#[$meta])* #[doc = concat!("Feature ", stringify!($number), ", since perf ", $since, ", ", features!(@place $pipe), ".")] $variant($value),)*
            /// A section without any bytes for a feature that should have some: perf had nothing to
            /// write.
            Empty,
            /// A feature that this version of the library does not know.
            Unknown(Vec<u8>),
        }

        impl Feature {
            /// Decodes the section of feature `id`; also returns the number of bytes used.
            pub(super) fn decode(id: FeatureId, bytes: &[u8], endian: Endian, layout: DecodeContext) -> Result<(Self, usize)> {
                match id.0 {
                    $($number => <$value>::decode(bytes, endian, layout).map(|(value, used)| (Feature::$variant(value), used)),)*
                    _ => Ok((Feature::Unknown(bytes.to_vec()), bytes.len())),
                }
                .or_else(|e| if bytes.is_empty() { Ok((Feature::Empty, 0)) } else { Err(id.blame(e)) })
            }

            /// Makes the section of feature `id` from the values of its fields; nothing for a
            /// feature that is not known.
            pub(super) fn from_values(id: FeatureId, values: &mut dyn Values, layout: DecodeContext) -> Option<Self> {
                match id.0 {
                    $($number => Some(Feature::$variant(<$value>::wire_from_values(values, layout, ""))),)*
                    _ => None,
                }
            }

            /// Appends the section's bytes.
            pub(super) fn encode_into(&self, out: &mut Vec<u8>, endian: Endian) -> Result<()> {
                match self {
                    $(Feature::$variant(value) => value.encode_into(out, endian),)*
                    Feature::Empty => Ok(()),
                    Feature::Unknown(bytes) => { out.extend_from_slice(bytes); Ok(()) }
                }
            }
        }

        impl Rewrite for Feature {
            const NEEDS_CONTENT: bool = false;
            fn rewrite(&mut self, name: &'static str, _: Content, rewriter: &mut dyn Rewriter) {
                match self {
                    $(Feature::$variant(value) => value.rewrite(name, Content::$content, rewriter),)*
                    Feature::Empty => {}
                    Feature::Unknown(bytes) => rewriter.bytes(name, bytes, Content::Unknown),
                }
            }
        }

        impl Describe for Feature {
            fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
                match self {
                    $(Feature::$variant(value) => value.describe(name, style, v),)*
                    Feature::Empty => Flag {}.describe(name, style, v),
                    Feature::Unknown(bytes) => v.leaf(name, bytes.len(), Leaf::Opaque(bytes)),
                }
            }
        }
    };
}

features! {
    /// Tracepoint formats and the other data that trace-cmd stores (`write_tracing_data`).
    1 TRACING_DATA TracingData(TracingData) since "2.6.33" pipe no => Fields,
    /// Build IDs of the files hit by samples (`write_build_id`).
    2 BUILD_ID BuildIds(BuildIds) since "2.6.33" pipe no => Fields,
    /// Host name (`write_hostname`).
    3 HOSTNAME Hostname(HeaderString) since "3.2" pipe yes => Host,
    /// Kernel release, as shown by `uname -r` (`write_osrelease`).
    4 OSRELEASE OsRelease(HeaderString) since "3.2" pipe yes => Release,
    /// Version of perf (`write_version`).
    5 VERSION Version(HeaderString) since "3.2" pipe yes => Release,
    /// Architecture, as shown by `uname -m` (`write_arch`).
    6 ARCH Arch(HeaderString) since "3.2" pipe yes => Processor,
    /// Number of CPUs (`write_nrcpus`).
    7 NRCPUS NrCpus(NrCpus) since "3.2" pipe yes => Fields,
    /// Name of the processor for display (`write_cpudesc`).
    8 CPUDESC CpuDesc(HeaderString) since "3.2" pipe yes => Processor,
    /// Identifier of the processor that selects perf's event tables (`write_cpuid`).
    9 CPUID CpuId(HeaderString) since "3.2" pipe yes => Processor,
    /// Memory of the machine in kB (`write_total_mem`).
    10 TOTAL_MEM TotalMem(u64) since "3.2" pipe yes => Topology,
    /// Path of perf and its arguments, starting with the subcommand (`write_cmdline`).
    11 CMDLINE CmdLine(Counted<u32, HeaderString>) since "3.2" pipe yes => Argument,
    /// Events with names and IDs (`write_event_desc`).
    12 EVENT_DESC EventDescs(EventDescs) since "3.2" pipe yes => Fields,
    /// Which CPUs share a package, a die or a core (`write_cpu_topology`).
    13 CPU_TOPOLOGY CpuTopology(CpuTopology) since "3.2" pipe yes => Topology,
    /// Memory and CPUs of each NUMA node (`write_numa_topology`).
    14 NUMA_TOPOLOGY NumaTopology(Counted<u32, NumaNode>) since "3.2" pipe yes => Topology,
    /// Flag: samples contain branch stacks (`write_branch_stack`).
    15 BRANCH_STACK BranchStack(Flag) since "3.4" pipe no => Fields,
    /// Names of the event types from 6 on (`write_pmu_mappings`).
    16 PMU_MAPPINGS PmuMappings(Counted<u32, PmuMapping>) since "3.7" pipe yes => Fields,
    /// Groups of events (`write_group_desc`).
    17 GROUP_DESC GroupDescs(Counted<u32, GroupDesc>) since "3.9" pipe yes => Fields,
    /// Offsets of the AUXTRACE records in the file (`write_auxtrace`; util/auxtrace.c,
    /// `auxtrace_index__write`).
    18 AUXTRACE AuxtraceIndex(Counted<u64, AuxtraceIndexEntry>) since "4.2" pipe no => Trace,
    /// Flag: the data section contains STAT records (`write_stat`).
    19 STAT Stat(Flag) since "4.5" pipe no => Fields,
    /// Caches of the processors (`write_cache`).
    20 CACHE Cache(CacheTopology) since "4.6" pipe taken => Topology,
    /// Times of the first and the last sample (`write_sample_time`).
    21 SAMPLE_TIME SampleTime(SampleTime) since "4.16" pipe yes => Fields,
    /// Which memory blocks belong to which node (`write_mem_topology`).
    22 MEM_TOPOLOGY MemTopology(MemTopology) since "4.17" pipe yes => Topology,
    /// Resolution in nanoseconds of the clock selected by `record -k` (`write_clockid`).
    23 CLOCKID ClockResolution(u64) since "4.20" pipe yes => Number,
    /// Format of the directory that contains the recording: 1 with `data.N` files
    /// (`write_dir_format`).
    24 DIR_FORMAT DirFormat(u64) since "5.1" pipe no => Number,
    /// BPF programs loaded during the recording (`write_bpf_prog_info`).
    25 BPF_PROG_INFO BpfProgInfo(Counted<u32, BpfProgram>) since "5.1" pipe yes => Bpf,
    /// BTF: type information of the BPF programs (`write_bpf_btf`).
    26 BPF_BTF BpfBtf(Counted<u32, Btf>) since "5.1" pipe yes => Bpf,
    /// Compression of COMPRESSED records (`write_compressed`).
    27 COMPRESSED Compressed(Compression) since "5.2" pipe yes => Fields,
    /// Capabilities of the PMU called `cpu` (`write_cpu_pmu_caps`).
    28 CPU_PMU_CAPS CpuPmuCaps(Counted<u32, PmuCap>) since "5.8" pipe yes => Fields,
    /// The recording's clock and the wall clock at one moment (`write_clock_data`).
    29 CLOCK_DATA ClockData(ClockData) since "5.9" pipe yes => Clock,
    /// Which CPUs belong to which core PMU of a hybrid processor (`write_hybrid_topology`).
    30 HYBRID_TOPOLOGY HybridTopology(Counted<u32, HybridPmu>) since "5.14" pipe taken => Topology,
    /// Capabilities of PMUs: the core PMUs of a hybrid processor, since 5.19 all PMUs
    /// (`write_pmu_caps`).
    31 PMU_CAPS PmuCaps(Counted<u32, PmuCaps>) since "5.14" pipe yes => Fields,
    /// Scheduler domains of each CPU (`write_cpu_domain_info`).
    32 CPU_DOMAIN_INFO CpuDomainInfo(CpuDomainInfo) since "7.0" pipe yes => Topology,
    /// ELF machine of the profiled code (`write_e_machine`).
    33 E_MACHINE EMachine(EMachine) since "7.0" pipe yes => Fields,
    /// Size of a cache line in bytes (`write_cln_size`).
    34 CLN_SIZE CacheLineSize(u32) since "7.0" pipe yes => Number,
}

const _: () = assert!(
    ascends(TABLE),
    "features are looked up by halving the table"
);

/// Whether each line has a higher number than the one before it.
const fn ascends(mut table: &[FeatureInfo]) -> bool {
    while let [first, rest @ ..] = table {
        if let [second, ..] = rest
            && first.id.0 >= second.id.0
        {
            return false;
        }
        table = rest;
    }
    true
}

impl FeatureId {
    /// Sets this feature as the structure that `error` is about.
    pub(super) fn blame(self, error: Error) -> Error {
        match self.name() {
            Some(name) => error.structure(name),
            None => error.structure(format!("feature {}", self.0)),
        }
    }
}
