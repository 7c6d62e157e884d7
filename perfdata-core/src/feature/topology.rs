//! How CPUs, caches and memory hang together.

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::describe::{Describe, Style, Visitor};
use crate::wire::{Counted, LayoutList, LayoutToEnd, List, Str, elements, remaining, wire};

/// A part that only newer forms of the section have: there if the section goes on for at least the bytes that it needs,
/// which are more than a padding.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Newer<T>(pub Option<T>);

impl<T: BinRead> BinRead for Newer<T> {
    /// The fewest bytes that the part takes, none being a part of unknown size; and the part's own arguments.
    type Args<'a> = (Option<u64>, T::Args<'a>);
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (needed, args): Self::Args<'_>) -> BinResult<Self> {
        match needed {
            Some(needed) if needed <= remaining(reader)? => {
                T::read_options(reader, endian, args).map(|part| Newer(Some(part)))
            }
            _ => Ok(Newer(None)),
        }
    }
}

impl<T: for<'a> BinWrite<Args<'a> = ()>> BinWrite for Newer<T> {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        self.0.write_options(writer, endian, ())
    }
}

impl<T: Describe> Describe for Newer<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.0.describe(name, style, v);
    }
}

wire! {
    /// Where one CPU sits.
    pub struct CpuPlace {
        /// Core within the package; -1 for a CPU that does not run.
        pub core_id: u32 as Pid,
        /// Package; -1 for a CPU that does not run. May exceed the number of CPUs (s390, arm64).
        pub socket_id: u32 as Pid,
    }
}

wire! {
    /// Dies of a processor that has several in one package.
    pub struct Dies(layout) {
        /// For each die the list of its CPUs.
        pub siblings: Counted<u32, Str>,
        /// For each CPU its die; -1 for a CPU that does not run.
        #[br(args(u64::from(layout.nr_cpus_available)))]
        pub ids: List<u32> as Pid,
    }
}

wire! {
    /// Which CPUs share a package, a die or a core. How much of it there is, only the section's length tells, with the
    /// number of CPUs from NRCPUS; without that all behind the lists stays in the section's tail.
    pub struct CpuTopology(layout) {
        /// For each package the list of its CPUs: `0-3`.
        pub package_siblings: Counted<u32, Str>,
        /// For each core the list of its threads.
        pub core_siblings: Counted<u32, Str>,
        /// For each CPU its place (4.4).
        #[br(args(layout.per_cpu(0, 8), (u64::from(layout.nr_cpus_available),)))]
        pub cpus: Newer<List<CpuPlace>>,
        /// Dies (5.3), where the processor has some.
        #[br(args(layout.per_cpu(4, 4), layout))]
        pub dies: Newer<Dies>,
    }
}

impl crate::layout::Layout {
    /// Bytes of a part with so many bytes for each CPU, where the number of CPUs is known.
    fn per_cpu(&self, fixed: u64, each: u64) -> Option<u64> {
        (self.nr_cpus_available > 0).then(|| each.saturating_mul(self.nr_cpus_available.into()).saturating_add(fixed))
    }
}

wire! {
    /// A NUMA node.
    pub struct NumaNode {
        /// Its number.
        pub node: u32,
        /// Its memory in kB.
        pub mem_total: u64,
        /// What was free of it, in kB.
        pub mem_free: u64,
        /// Its CPUs as a list: `0-3`.
        pub cpus: Str,
    }
}

wire! {
    /// One level of cache of one or more CPUs (util/env.h, `struct cpu_cache_level`).
    pub struct CacheLevel {
        /// Level: 1 is next to the core.
        pub level: u32,
        /// Bytes of a line.
        pub line_size: u32,
        /// Number of sets.
        pub sets: u32,
        /// Lines of a set.
        pub ways: u32,
        /// `Data`, `Instruction` or `Unified`.
        pub kind: Str,
        /// Its size for people: `32K`.
        pub size: Str,
        /// The CPUs that share it, as a list: `0-3`.
        pub cpus: Str,
    }
}

wire! {
    /// Caches of the processors.
    pub struct CacheTopology {
        /// Form of the section: 1.
        pub version: u32,
        /// Each cache.
        pub caches: Counted<u32, CacheLevel>,
    }
}

wire! {
    /// Memory blocks of a NUMA node (util/env.h, `struct memory_node`).
    pub struct MemNode {
        /// The node's number.
        pub node: u64,
        /// Number of bits in the map.
        pub size: u64,
        /// The same number, in front of the map itself (`do_write_bitmap`).
        pub nr_bits: u64,
        /// A bit for each block that is present: block n is bit n % 64 of word n / 64.
        #[br(args(nr_bits.div_ceil(64)))]
        pub blocks: List<u64> as Hex,
    }
}

wire! {
    /// Which memory blocks belong to which node.
    pub struct MemTopology {
        /// Form of the section: 1.
        pub version: u64,
        /// Bytes of a block.
        pub block_size: u64 as Hex,
        /// Each node that has memory.
        pub nodes: Counted<u64, MemNode>,
    }
}

wire! {
    /// A scheduler domain of a CPU (util/env.h, `struct domain_info`).
    pub struct SchedDomain(schedstat_version: u32) {
        /// Its number.
        pub domain: u32,
        /// Its name, in recordings of kernels whose schedstat version is 17 or more: `SMT`, `MC`, `PKG`.
        #[br(if(schedstat_version >= 17))]
        pub name: Option<Str>,
        /// Its CPUs as a mask: `ff`.
        pub cpu_mask: Str,
        /// Its CPUs as a list: `0-7`.
        pub cpu_list: Str,
    }
}

wire! {
    /// Scheduler domains of one CPU.
    pub struct CpuDomains(schedstat_version: u32) {
        /// The CPU.
        pub cpu: u32,
        /// Number of domains.
        pub nr_domains: u32,
        /// The domains, from the smallest to the largest.
        #[br(args(u64::from(nr_domains), schedstat_version))]
        pub domains: LayoutList<SchedDomain>,
    }
}

wire! {
    /// Scheduler domains of each CPU, as in /proc/schedstat. The number of CPUs is not stored.
    pub struct CpuDomainInfo {
        /// Version of the kernel's schedstat file.
        pub schedstat_version: u32,
        /// Highest number of a domain plus 1.
        pub max_domains: u32,
        /// Each CPU of that file.
        #[br(args(8, schedstat_version))]
        pub cpus: LayoutToEnd<CpuDomains>,
    }
}

elements!(CpuPlace, NumaNode, CacheLevel, MemNode);
