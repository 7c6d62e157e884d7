//! Features about CPUs, nodes, caches and memory.

use super::buf::{Buf, count, count32};
use super::feature::Features;

const CPU_TOPOLOGY: u32 = 13;
const NUMA_TOPOLOGY: u32 = 14;
const CACHE: u32 = 20;
const MEM_TOPOLOGY: u32 = 22;
const HYBRID_TOPOLOGY: u32 = 30;
const CPU_DOMAIN_INFO: u32 = 32;

fn list(b: Buf, texts: &[&str]) -> Buf {
    b.u32(count32(texts)).each(texts, |b, text| b.str(text))
}

/// CPU_TOPOLOGY. Only the size of the section distinguishes the revisions.
#[derive(Clone, Debug)]
pub struct CpuTopology<'a> {
    /// CPUs of each package, and threads of each core.
    pub siblings: [&'a [&'a str]; 2],
    /// Core and package of each available CPU; none in revision 1.
    pub cores: &'a [[u32; 2]],
    /// CPUs of each die, and the die of each available CPU, in revision 3.
    pub dies: Option<(&'a [&'a str], &'a [u32])>,
}

impl CpuTopology<'_> {
    /// Appends the section.
    pub fn put(&self, b: Buf) -> Buf {
        let [packages, threads] = self.siblings;
        let b = list(list(b, packages), threads).each(self.cores, |b, core| b.u32s(core));
        match self.dies {
            Some((siblings, ids)) => list(b, siblings).u32s(ids),
            None => b,
        }
    }
}

/// Appends NUMA_TOPOLOGY: node number, total and free memory in kB, and CPUs of each node.
pub fn numa_topology(b: Buf, nodes: &[(u32, u64, u64, &str)]) -> Buf {
    b.u32(count32(nodes))
        .each(nodes, |b, (node, total, free, cpus)| {
            b.u32(*node).u64(*total).u64(*free).str(cpus)
        })
}

/// Appends CACHE: level, line size, sets and ways; type, size and CPUs of each.
pub fn cache(b: Buf, caches: &[([u32; 4], [&str; 3])]) -> Buf {
    b.u32(1)
        .u32(count32(caches))
        .each(caches, |b, (numbers, texts)| {
            b.u32s(numbers).each(texts, |b, text| b.str(text))
        })
}

/// Appends MEM_TOPOLOGY: node number, size of the bitmap in bits (twice), and bitmap of each node.
pub fn mem_topology(b: Buf, block_size: u64, nodes: &[(u64, u64, &[u64])]) -> Buf {
    b.u64(1)
        .u64(block_size)
        .u64(count(nodes))
        .each(nodes, |b, (node, bits, words)| {
            b.u64s(&[*node, *bits, *bits]).u64s(words)
        })
}

/// A scheduling domain of a CPU: ID, name, CPUs as a mask and as a list.
pub type Domain<'a> = (u32, &'a str, &'a str, &'a str);

/// Appends CPU_DOMAIN_INFO: the domains of each online CPU, without a count of CPUs. Names exist
/// since version 17 of /proc/schedstat.
pub fn cpu_domains(b: Buf, version: u32, max_domains: u32, cpus: &[(u32, &[Domain])]) -> Buf {
    b.u32(version)
        .u32(max_domains)
        .each(cpus, |b, (cpu, domains)| {
            b.u32(*cpu)
                .u32(count32(domains))
                .each(domains, |b, (domain, name, mask, list)| {
                    let b = b.u32(*domain);
                    let b = if version >= 17 { b.str(name) } else { b };
                    b.str(mask).str(list)
                })
        })
}

/// The machine of the features, with the CPUs in [`CPUS`](super::feature::CPUS). The last CPU is
/// offline and has no core.
const MACHINE: CpuTopology<'static> = CpuTopology {
    siblings: [&["0-1", "2-3"], &["0,2", "1", "3"]],
    cores: &[[0, 0], [1, 0], [0, 36], [u32::MAX, u32::MAX]],
    dies: Some((&["0-1", "2-3"], &[0, 0, 1, u32::MAX])),
};

const DOMAINS: [Domain; 2] = [(0, "SMT", "3", "0-1"), (1, "MC", "f", "0-3")];

/// Adds older revisions and empty sections.
pub fn cases(f: &mut Features) {
    plain(f);
    f.add(CPU_TOPOLOGY, "CPU_TOPOLOGY 1", |b| {
        CpuTopology {
            cores: &[],
            dies: None,
            ..MACHINE
        }
        .put(b)
    });
    f.add(CPU_TOPOLOGY, "CPU_TOPOLOGY 2", |b| {
        CpuTopology {
            dies: None,
            ..MACHINE
        }
        .put(b)
    });
    f.add(NUMA_TOPOLOGY, "NUMA_TOPOLOGY empty", |b| {
        numa_topology(b, &[])
    });
    f.add(CACHE, "CACHE empty", |b| cache(b, &[]));
    f.add(MEM_TOPOLOGY, "MEM_TOPOLOGY of whole words", |b| {
        mem_topology(
            b,
            0x800_0000,
            &[(0, 128, &[u64::MAX, 0x0102_0304_0506_0708])],
        )
    });
    f.add(CPU_DOMAIN_INFO, "CPU_DOMAIN_INFO 16", |b| {
        cpu_domains(b, 16, 2, &[(0, &DOMAINS), (1, &DOMAINS)])
    });
    f.add(CPU_DOMAIN_INFO, "CPU_DOMAIN_INFO, no domains", |b| {
        cpu_domains(b, 17, 0, &[(0, &[]), (1, &[])])
    });
}

/// Adds every feature of this family in its newest revision.
pub fn plain(f: &mut Features) {
    f.add(CPU_TOPOLOGY, "CPU_TOPOLOGY 3", |b| MACHINE.put(b));
    f.add(NUMA_TOPOLOGY, "NUMA_TOPOLOGY", |b| {
        numa_topology(
            b,
            &[(0, 0x1_0000_0001, 0x8000_0001, "0-1"), (8, 2, 1, "2-3")],
        )
    });
    f.add(CACHE, "CACHE", |b| {
        let caches = [
            ([1, 64, 64, 8], ["Data", "48K", "0"]),
            ([1, 64, 64, 8], ["Instruction", "32K", "0"]),
            ([3, 64, 16384, 16], ["Unified", "16384K", "0-3"]),
        ];
        cache(b, &caches)
    });
    f.add(MEM_TOPOLOGY, "MEM_TOPOLOGY", |b| {
        mem_topology(
            b,
            0x800_0000,
            &[(0, 21, &[0x1f_ffff]), (1, 65, &[0x8000_0000_0000_0001, 1])],
        )
    });
    f.add(HYBRID_TOPOLOGY, "HYBRID_TOPOLOGY", |b| {
        let pmus = [("cpu_core", "0-1"), ("cpu_atom", "2-3")];
        b.u32(count32(&pmus))
            .each(&pmus, |b, (pmu, cpus)| b.str(pmu).str(cpus))
    });
    f.add(CPU_DOMAIN_INFO, "CPU_DOMAIN_INFO 17", |b| {
        cpu_domains(b, 17, 2, &[(0, &DOMAINS), (1, &DOMAINS)])
    });
}
