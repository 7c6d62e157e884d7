//! Topology of CPUs, caches and memory.

use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::content::{Content, Rewrite, Rewriter};
use crate::describe::{Describe, Style, Visitor};
use crate::values::{FromValues, Values};
use crate::wire::{
    ContextList, ContextToEnd, Counted, HeaderString, List, elements, remaining, wire,
};

/// A part that only newer forms of the section contain. It is present if the section has at least
/// as many further bytes as the part needs, which is more than padding takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Newer<T>(pub Option<T>);

impl<T: BinRead> BinRead for Newer<T> {
    /// Minimum size of the part in bytes (`None`: unknown, so the part is not read), and the
    /// arguments of the part itself.
    type Args<'a> = (Option<u64>, T::Args<'a>);
    fn read_options<R: Read + Seek>(
        reader: &mut R,
        endian: Endian,
        (needed, args): Self::Args<'_>,
    ) -> BinResult<Self> {
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
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        self.0.write_options(writer, endian, ())
    }
}

impl<T: FromValues> FromValues for Newer<T> {
    fn from_values(
        values: &mut dyn Values,
        name: &'static str,
        style: Style,
        (needed, args): Self::Args<'_>,
    ) -> Self {
        let is_there = needed.is_some() && values.has(name);
        Newer(is_there.then(|| T::from_values(values, name, style, args)))
    }
}

impl<T: Describe> Describe for Newer<T> {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.0.describe(name, style, v);
    }
}

impl<T: Rewrite> Rewrite for Newer<T> {
    const NEEDS_CONTENT: bool = T::NEEDS_CONTENT;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        self.0.rewrite(name, content, rewriter);
    }
}

wire! {
    /// Position of one CPU in the topology.
    pub struct CpuPlace => Topology {
        /// Core within the package; -1 for an offline CPU.
        pub core_id: u32 as Optional,
        /// Package; -1 for an offline CPU. May exceed the number of CPUs (s390, arm64).
        pub socket_id: u32 as Optional,
    }
}

wire! {
    /// Dies of a processor with several dies per package.
    pub struct Dies(layout) => Topology {
        /// List of CPUs of each die.
        pub siblings: Counted<u32, HeaderString>,
        /// Die of each CPU; -1 for an offline CPU.
        #[br(args(u64::from(layout.nr_cpus_available)))]
        pub ids: List<u32> as Optional,
    }
}

wire! {
    /// Which CPUs share a package, a die or a core. Which parts are present depends only on the
    /// section's length and on the number of CPUs from NRCPUS. Without that number, everything
    /// after the lists stays in the section's tail.
    pub struct CpuTopology(layout) => Topology {
        /// List of CPUs of each package: `0-3`.
        pub package_siblings: Counted<u32, HeaderString>,
        /// List of threads of each core.
        pub core_siblings: Counted<u32, HeaderString>,
        /// Core and package of each CPU (4.4).
        #[br(args(layout.per_cpu(0, 8), (u64::from(layout.nr_cpus_available),)))]
        pub cpus: Newer<List<CpuPlace>>,
        /// Dies (5.3), if the processor has any.
        #[br(args(layout.per_cpu(4, 4), layout))]
        pub dies: Newer<Dies>,
    }
}

impl crate::decode_context::DecodeContext {
    /// Returns the size in bytes of a part with `fixed` bytes and `each` bytes per CPU, if the
    /// number of CPUs is known.
    fn per_cpu(&self, fixed: u64, each: u64) -> Option<u64> {
        (self.nr_cpus_available > 0).then(|| {
            each.saturating_mul(self.nr_cpus_available.into())
                .saturating_add(fixed)
        })
    }
}

wire! {
    /// A NUMA node.
    pub struct NumaNode => Topology {
        /// Node number.
        pub node: u32,
        /// Memory in kB.
        pub mem_total: u64,
        /// Free memory in kB.
        pub mem_free: u64,
        /// CPUs as a list: `0-3`.
        pub cpus: HeaderString,
    }
}

wire! {
    /// One level of cache of one or more CPUs (util/env.h, `struct cpu_cache_level`).
    pub struct CacheLevel => Topology {
        /// Level: 1 is closest to the core.
        pub level: u32,
        /// Size of a line in bytes.
        pub line_size: u32,
        /// Number of sets.
        pub sets: u32,
        /// Number of ways (lines per set).
        pub ways: u32,
        /// `Data`, `Instruction` or `Unified`.
        pub kind: HeaderString,
        /// Size for display: `32K`.
        pub size: HeaderString,
        /// CPUs that share it, as a list: `0-3`.
        pub cpus: HeaderString,
    }
}

wire! {
    /// Caches of the processors.
    pub struct CacheTopology => Topology {
        /// Version of the section: 1.
        pub version: u32,
        /// All caches.
        pub caches: Counted<u32, CacheLevel>,
    }
}

wire! {
    /// Memory blocks of a NUMA node (util/env.h, `struct memory_node`).
    pub struct MemNode => Topology {
        /// Node number.
        pub node: u64,
        /// Number of bits in the map.
        pub size: u64,
        /// The same number again, at the start of the bitmap itself (`do_write_bitmap`).
        pub nr_bits: u64,
        /// One bit for each block that is present: block n is bit n % 64 of word n / 64.
        #[br(args(nr_bits.div_ceil(64)))]
        pub blocks: List<u64> as Hex,
    }
}

wire! {
    /// Which memory blocks belong to which node.
    pub struct MemTopology => Topology {
        /// Version of the section: 1.
        pub version: u64,
        /// Size of a block in bytes.
        pub block_size: u64 as Hex,
        /// All nodes with memory.
        pub nodes: Counted<u64, MemNode>,
    }
}

wire! {
    /// A scheduler domain of a CPU (util/env.h, `struct domain_info`).
    pub struct SchedDomain(schedstat_version: u32) => Topology {
        /// Domain number.
        pub domain: u32,
        /// Name, if the schedstat version of the kernel is 17 or higher: `SMT`, `MC`, `PKG`.
        #[br(if(schedstat_version >= 17))]
        pub name: Option<HeaderString>,
        /// CPUs as a mask: `ff`.
        pub cpu_mask: HeaderString,
        /// CPUs as a list: `0-7`.
        pub cpu_list: HeaderString,
    }
}

wire! {
    /// Scheduler domains of one CPU.
    pub struct CpuDomains(schedstat_version: u32) => Topology {
        /// CPU number.
        pub cpu: u32,
        /// Number of domains.
        pub nr_domains: u32,
        /// The domains, from the smallest to the largest.
        #[br(args(u64::from(nr_domains), schedstat_version))]
        pub domains: ContextList<SchedDomain>,
    }
}

wire! {
    /// Scheduler domains of each CPU, as in /proc/schedstat. The section does not contain the
    /// number of CPUs.
    pub struct CpuDomainInfo => Topology {
        /// Version of the kernel's schedstat file.
        pub schedstat_version: u32,
        /// Highest domain number plus 1.
        pub max_domains: u32,
        /// All CPUs of that file.
        #[br(args(8, schedstat_version))]
        pub cpus: ContextToEnd<CpuDomains>,
    }
}

elements!(CpuPlace, NumaNode, CacheLevel, MemNode);
