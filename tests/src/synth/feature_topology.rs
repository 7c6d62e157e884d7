//! Features about CPUs, nodes, caches and memory.

use super::buf::{Buf, count, count32};
use super::feature::{CPUS, Features};

const CPU_TOPOLOGY: u32 = 13;
const NUMA_TOPOLOGY: u32 = 14;
const CACHE: u32 = 20;
const MEM_TOPOLOGY: u32 = 22;
const HYBRID_TOPOLOGY: u32 = 30;
const CPU_DOMAIN_INFO: u32 = 32;

fn list(b: Buf, texts: &[&str]) -> Buf {
    b.u32(count32(texts)).each(texts, |b, text| b.str(text))
}

/// Older revisions and empty sections.
pub fn cases(f: &mut Features) {
    plain(f);
    f.add(CPU_TOPOLOGY, "CPU_TOPOLOGY 1", |b| cpu_topology(b, 1));
    f.add(CPU_TOPOLOGY, "CPU_TOPOLOGY 2", |b| cpu_topology(b, 2));
    f.add(NUMA_TOPOLOGY, "NUMA_TOPOLOGY empty", |b| b.u32(0));
    f.add(MEM_TOPOLOGY, "MEM_TOPOLOGY of whole words", |b| {
        b.u64s(&[1, 0x800_0000, 1]).u64s(&[0, 128, 128, u64::MAX, 0x0102_0304_0506_0708])
    });
    f.add(CPU_DOMAIN_INFO, "CPU_DOMAIN_INFO 16", |b| cpu_domains(b, 16));
}

/// Every feature of this family in its newest revision.
pub fn plain(f: &mut Features) {
    f.add(CPU_TOPOLOGY, "CPU_TOPOLOGY 3", |b| cpu_topology(b, 3));
    f.add(NUMA_TOPOLOGY, "NUMA_TOPOLOGY", |b| {
        let nodes = [(0, 0x1_0000_0001, 0x8000_0001, "0-1"), (8, 2, 1, "2-3")];
        b.u32(count32(&nodes))
            .each(&nodes, |b, (node, total, free, cpus)| b.u32(*node).u64(*total).u64(*free).str(cpus))
    });
    f.add(CACHE, "CACHE", |b| {
        let caches = [
            ([1, 64, 64, 8], "Data", "48K", "0"),
            ([1, 64, 64, 8], "Instruction", "32K", "0"),
            ([3, 64, 16384, 16], "Unified", "16384K", "0-3"),
        ];
        b.u32(1)
            .u32(count32(&caches))
            .each(&caches, |b, (numbers, kind, size, map)| b.u32s(numbers).str(kind).str(size).str(map))
    });
    f.add(MEM_TOPOLOGY, "MEM_TOPOLOGY", |b| {
        let nodes = [(0, 21, vec![0x1f_ffff]), (1, 65, vec![0x8000_0000_0000_0001, 1])];
        b.u64s(&[1, 0x800_0000, count(&nodes)])
            .each(&nodes, |b, (node, bits, words)| b.u64s(&[*node, *bits, *bits]).u64s(words))
    });
    f.add(HYBRID_TOPOLOGY, "HYBRID_TOPOLOGY", |b| {
        let pmus = [("cpu_core", "0-1"), ("cpu_atom", "2-3")];
        b.u32(count32(&pmus)).each(&pmus, |b, (pmu, cpus)| b.str(pmu).str(cpus))
    });
    f.add(CPU_DOMAIN_INFO, "CPU_DOMAIN_INFO 17", |b| cpu_domains(b, 17));
}

/// The revision is told by nothing but the length of the section.
fn cpu_topology(b: Buf, revision: u32) -> Buf {
    // Core and socket of each available CPU; unknown for the last, which is offline.
    let cores: [[u32; 2]; CPUS.0 as usize] = [[0, 0], [1, 0], [0, 36], [u32::MAX, u32::MAX]];
    let dies: [u32; CPUS.0 as usize] = [0, 0, 1, u32::MAX];
    let b = list(list(b, &["0-1", "2-3"]), &["0,2", "1", "3"]);
    let b = if revision >= 2 { b.each(&cores, |b, core| b.u32s(core)) } else { b };
    if revision >= 3 { list(b, &["0-1", "2-3"]).u32s(&dies) } else { b }
}

/// One entry per online CPU, not counted; names since version 17 of /proc/schedstat.
fn cpu_domains(b: Buf, version: u32) -> Buf {
    let domains = [(0, "SMT", "3", "0-1"), (1, "MC", "f", "0-3")];
    let cpus: Vec<u32> = (0..CPUS.1).collect();
    b.u32(version).u32(count32(&domains)).each(&cpus, |b, cpu| {
        b.u32(*cpu).u32(count32(&domains)).each(&domains, |b, (domain, name, mask, list)| {
            let b = b.u32(*domain);
            let b = if version >= 17 { b.str(name) } else { b };
            b.str(mask).str(list)
        })
    })
}
