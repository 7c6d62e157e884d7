//! The machine: names, clocks, PMUs, CPUs and memory.

use perfdata_core::feature::*;
use perfdata_core::wire::{ContextList, ContextToEnd, HeaderString, List};

use super::{Case, case, tight};

pub fn system() -> Vec<Case> {
    let text = |id, variant: fn(HeaderString) -> Feature, text: &str| {
        let room = format!("'{text}' 00*{}", 64 - text.len());
        case(
            id,
            variant(HeaderString::new(text.as_bytes())),
            &format!("40000000 {room}"),
            &format!("00000040 {room}"),
        )
    };
    vec![
        text(FeatureId::HOSTNAME, Feature::Hostname, "s390guest"),
        text(
            FeatureId::OSRELEASE,
            Feature::OsRelease,
            "6.12.107+deb13-s390x",
        ),
        text(FeatureId::VERSION, Feature::Version, "7.2.13"),
        text(FeatureId::ARCH, Feature::Arch, "s390x"),
        text(FeatureId::CPUDESC, Feature::CpuDesc, "IBM/S390"),
        text(FeatureId::CPUID, Feature::CpuId, "QEMU,8561,QEMU"),
        case(
            FeatureId::NRCPUS,
            Feature::NrCpus(NrCpus {
                available: 4,
                online: 2,
            }),
            "04000000 02000000",
            "00000004 00000002",
        ),
        case(
            FeatureId::TOTAL_MEM,
            Feature::TotalMem(0x2e_b368),
            "68b32e 00*5",
            "00*5 2eb368",
        ),
        case(
            FeatureId::CMDLINE,
            Feature::CmdLine(vec![HeaderString::new(b"/usr/bin/perf"), tight("record")].into()),
            "02000000 40000000 '/usr/bin/perf' 00*51 08000000 'record' 0000",
            "00000002 00000040 '/usr/bin/perf' 00*51 00000008 'record' 0000",
        ),
        case(
            FeatureId::BRANCH_STACK,
            Feature::BranchStack(Flag {}),
            "",
            "",
        ),
        case(FeatureId::STAT, Feature::Stat(Flag {}), "", ""),
        case(
            FeatureId::E_MACHINE,
            Feature::EMachine(EMachine {
                e_machine: ElfMachine::S390,
                e_flags: 1,
            }),
            "16000000 01000000",
            "00000016 00000001",
        ),
        case(
            FeatureId::CLN_SIZE,
            Feature::CacheLineSize(64),
            "40000000",
            "00000040",
        ),
        case(
            FeatureId::DIR_FORMAT,
            Feature::DirFormat(1),
            "01 00*7",
            "00*7 01",
        ),
    ]
}

pub fn clocks() -> Vec<Case> {
    vec![
        case(
            FeatureId::SAMPLE_TIME,
            Feature::SampleTime(SampleTime {
                first: 0x0102_0304_0506_0708,
                last: 0x1112_1314_1516_1718,
            }),
            "0807060504030201 1817161514131211",
            "0102030405060708 1112131415161718",
        ),
        case(
            FeatureId::CLOCKID,
            Feature::ClockResolution(1),
            "01 00*7",
            "00*7 01",
        ),
        case(
            FeatureId::CLOCK_DATA,
            Feature::ClockData(ClockData {
                version: 1,
                clock: ClockId::MONOTONIC,
                wall_clock: 0x18be_fb90_4f65_d348,
                clock_time: 0x23_8868_545b,
            }),
            "01000000 01000000 48d3654f90fbbe18 5b54688823000000",
            "00000001 00000001 18befb904f65d348 000000238868545b",
        ),
        case(
            FeatureId::COMPRESSED,
            Feature::Compressed(Compression {
                version: 0,
                kind: CompressionType::ZSTD,
                level: 1,
                ratio: 4,
                mmap_len: 0x8_1000,
            }),
            "00000000 01000000 01000000 04000000 00100800",
            "00000000 00000001 00000001 00000004 00081000",
        ),
    ]
}

pub fn pmus() -> Vec<Case> {
    let cap = |name, value| PmuCap {
        name: tight(name),
        value: tight(value),
    };
    vec![
        case(
            FeatureId::PMU_MAPPINGS,
            Feature::PmuMappings(
                vec![
                    PmuMapping {
                        kind: 1,
                        name: HeaderString::new(b"software"),
                    },
                    PmuMapping {
                        kind: 7,
                        name: HeaderString::new(b"uprobe"),
                    },
                ]
                .into(),
            ),
            "02000000 01000000 40000000 'software' 00*56 07000000 40000000 'uprobe' 00*58",
            "00000002 00000001 00000040 'software' 00*56 00000007 00000040 'uprobe' 00*58",
        ),
        case(
            FeatureId::CPU_PMU_CAPS,
            Feature::CpuPmuCaps(vec![cap("branches", "32"), cap("pmu_name", "skylake")].into()),
            "02000000 0c000000 'branches' 00*4 04000000 '32' 0000 0c000000 'pmu_name' 00*4 08000000 'skylake' 00",
            "00000002 0000000c 'branches' 00*4 00000004 '32' 0000 0000000c 'pmu_name' 00*4 00000008 'skylake' 00",
        ),
        case(
            FeatureId::PMU_CAPS,
            Feature::PmuCaps(
                vec![
                    PmuCaps {
                        caps: vec![cap("slots", "0x0")].into(),
                        pmu: tight("armv8_pmuv3"),
                    },
                    PmuCaps {
                        caps: vec![].into(),
                        pmu: tight("cpu_atom"),
                    },
                ]
                .into(),
            ),
            "02000000 01000000 08000000 'slots' 00*3 04000000 '0x0' 00 0c000000 'armv8_pmuv3' 00
             00000000 0c000000 'cpu_atom' 00*4",
            "00000002 00000001 00000008 'slots' 00*3 00000004 '0x0' 00 0000000c 'armv8_pmuv3' 00
             00000000 0000000c 'cpu_atom' 00*4",
        ),
        case(
            FeatureId::HYBRID_TOPOLOGY,
            Feature::HybridTopology(
                vec![HybridPmu {
                    pmu: HeaderString::new(b"cpu_core"),
                    cpus: HeaderString::new(b"0-3"),
                }]
                .into(),
            ),
            "01000000 40000000 'cpu_core' 00*56 40000000 '0-3' 00*61",
            "00000001 00000040 'cpu_core' 00*56 00000040 '0-3' 00*61",
        ),
    ]
}

pub fn topologies() -> Vec<Case> {
    let topology = |cpus: Option<[(u32, u32); 2]>, dies| {
        Feature::CpuTopology(CpuTopology {
            package_siblings: vec![HeaderString::new(b"0-1")].into(),
            core_siblings: vec![tight("0"), tight("1")].into(),
            cpus: Newer(cpus.map(|cpus| {
                List(
                    cpus.map(|(core_id, socket_id)| CpuPlace { core_id, socket_id })
                        .to_vec(),
                )
            })),
            dies: Newer(dies),
        })
    };
    let places = Some([(0, 0x24), (u32::MAX, u32::MAX)]);
    let dies = Dies {
        siblings: vec![tight("0-1")].into(),
        ids: List(vec![1, u32::MAX]),
    };
    let little = "01000000 40000000 '0-1' 00*61 02000000 04000000 '0' 00*3 04000000 '1' 00*3";
    let big = "00000001 00000040 '0-1' 00*61 00000002 00000004 '0' 00*3 00000004 '1' 00*3";
    let cpus = ["00000000 24000000 ff*8", "00000000 00000024 ff*8"];
    let domain = |name: Option<&str>| SchedDomain {
        domain: 1,
        name: name.map(tight),
        cpu_mask: tight("3"),
        cpu_list: tight("0-1"),
    };
    let domains = |schedstat_version, domain| {
        Feature::CpuDomainInfo(CpuDomainInfo {
            schedstat_version,
            max_domains: 2,
            cpus: ContextToEnd(vec![
                CpuDomains {
                    cpu: 0,
                    nr_domains: 1,
                    domains: ContextList(vec![domain]),
                },
                CpuDomains {
                    cpu: 1,
                    nr_domains: 0,
                    domains: ContextList(vec![]),
                },
            ]),
        })
    };
    vec![
        case(FeatureId::CPU_TOPOLOGY, topology(None, None), little, big),
        case(
            FeatureId::CPU_TOPOLOGY,
            topology(places, None),
            &format!("{little} {}", cpus[0]),
            &format!("{big} {}", cpus[1]),
        ),
        case(
            FeatureId::CPU_TOPOLOGY,
            topology(places, Some(dies)),
            &format!("{little} {} 01000000 04000000 '0-1' 00 01000000 ff*4", cpus[0]),
            &format!("{big} {} 00000001 00000004 '0-1' 00 00000001 ff*4", cpus[1]),
        ),
        case(
            FeatureId::NUMA_TOPOLOGY,
            Feature::NumaTopology(
                vec![NumaNode { node: 1, mem_total: 0x27_29d4, mem_free: 0x24_e354, cpus: HeaderString::new(b"0-1") }]
                    .into(),
            ),
            "01000000 01000000 d42927 00*5 54e324 00*5 40000000 '0-1' 00*61",
            "00000001 00000001 00*5 2729d4 00*5 24e354 00000040 '0-1' 00*61",
        ),
        case(
            FeatureId::CACHE,
            Feature::Cache(CacheTopology {
                version: 1,
                caches: vec![CacheLevel {
                    level: 3,
                    line_size: 64,
                    sets: 0x4000,
                    ways: 16,
                    kind: HeaderString::new(b"Unified"),
                    size: HeaderString::new(b"16384K"),
                    cpus: HeaderString::new(b"0-1"),
                }]
                .into(),
            }),
            "01000000 01000000 03000000 40000000 00400000 10000000
             40000000 'Unified' 00*57 40000000 '16384K' 00*58 40000000 '0-1' 00*61",
            "00000001 00000001 00000003 00000040 00004000 00000010
             00000040 'Unified' 00*57 00000040 '16384K' 00*58 00000040 '0-1' 00*61",
        ),
        case(
            FeatureId::MEM_TOPOLOGY,
            Feature::MemTopology(MemTopology {
                version: 1,
                block_size: 0x800_0000,
                nodes: vec![
                    MemNode { node: 0, size: 21, nr_bits: 21, blocks: List(vec![0x1f_ffff]) },
                    MemNode { node: 1, size: 65, nr_bits: 65, blocks: List(vec![2, 1]) },
                ]
                .into(),
            }),
            "01 00*7 00000008 00*4 02 00*7 00*8 15 00*7 15 00*7 ffff1f 00*5
             01 00*7 41 00*7 41 00*7 02 00*7 01 00*7",
            "00*7 01 00*4 08000000 00*7 02 00*8 00*7 15 00*7 15 00*5 1fffff
             00*7 01 00*7 41 00*7 41 00*7 02 00*7 01",
        ),
        case(
            FeatureId::CPU_DOMAIN_INFO,
            domains(17, domain(Some("MC"))),
            "11000000 02000000 00000000 01000000 01000000 04000000 'MC' 0000 04000000 '3' 00*3 04000000 '0-1' 00
             01000000 00000000",
            "00000011 00000002 00000000 00000001 00000001 00000004 'MC' 0000 00000004 '3' 00*3 00000004 '0-1' 00
             00000001 00000000",
        ),
        case(
            FeatureId::CPU_DOMAIN_INFO,
            domains(16, domain(None)),
            "10000000 02000000 00000000 01000000 01000000 04000000 '3' 00*3 04000000 '0-1' 00 01000000 00000000",
            "00000010 00000002 00000000 00000001 00000001 00000004 '3' 00*3 00000004 '0-1' 00 00000001 00000000",
        ),
    ]
}
