//! The part DATA_SRC of samples (tools/perf/util/arm-spe.c, Linux 7.1,
//! `arm_spe__synth_data_source`).

use perfdata_core::arm_spe::{Operation, SpeEvents, SpeRecord};
use perfdata_core::record::DataSource;

/// Codes and flags of `union perf_mem_data_src` (include/uapi/linux/perf_event.h, Linux 7.1).
mod code {
    pub const OP_NA: u64 = 1;
    pub const OP_LOAD: u64 = 2;
    pub const OP_STORE: u64 = 4;
    pub const LEVEL_NA: u64 = 1;
    pub const HIT: u64 = 2;
    pub const MISS: u64 = 4;
    pub const L1: u64 = 8;
    pub const LFB: u64 = 0x10;
    pub const L2: u64 = 0x20;
    pub const L3: u64 = 0x40;
    pub const LOCAL_RAM: u64 = 0x80;
    pub const REMOTE_RAM: u64 = 0x100;
    pub const REMOTE_CACHE_1: u64 = 0x400;
    pub const REMOTE_CACHE_2: u64 = 0x800;
    pub const IO: u64 = 0x1000;
    pub const NUMBER_L1: u64 = 1;
    pub const NUMBER_L2: u64 = 2;
    pub const NUMBER_L3: u64 = 3;
    pub const NUMBER_IO: u64 = 0xa;
    pub const NUMBER_ANY_CACHE: u64 = 0xb;
    pub const NUMBER_LFB: u64 = 0xc;
    pub const NUMBER_RAM: u64 = 0xd;
    pub const NUMBER_NA: u64 = 0xf;
    pub const SNOOP_NA: u64 = 1;
    pub const SNOOP_NONE: u64 = 2;
    pub const SNOOP_HIT: u64 = 4;
    pub const SNOOP_MODIFIED: u64 = 0x10;
    pub const SNOOP_PEER: u64 = 2;
    pub const TLB_HIT: u64 = 2;
    pub const TLB_MISS: u64 = 4;
    pub const TLB_WALKER: u64 = 0x20;
}
use code::*;

/// What the CPU of a record says of its data sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CpuSources {
    /// The meaning of [`SpeRecord::data_source`].
    pub(super) encoding: Encoding,
    /// Whether the CPU reports that data was snooped.
    pub(super) reports_snoops: bool,
}

/// The meaning of [`SpeRecord::data_source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Encoding {
    /// Not known.
    #[default]
    Unknown,
    /// That of Arm's Neoverse and Cortex cores.
    Common,
    AmpereOne,
    HisiliconHip12,
}

/// Implementer and part number of the CPUs with the common encoding (arch/arm64/include/asm/
/// cputype.h): Cortex-A715, A720, A720AE, A725, A78C, X1, X1C, X3, X4, X925, Neoverse N1, N2, V1,
/// V2, V3, Nvidia Olympus.
const COMMON: [(u64, u64); 16] = [
    (0x41, 0xd4d),
    (0x41, 0xd81),
    (0x41, 0xd89),
    (0x41, 0xd87),
    (0x41, 0xd4b),
    (0x41, 0xd44),
    (0x41, 0xd4c),
    (0x41, 0xd4e),
    (0x41, 0xd82),
    (0x41, 0xd85),
    (0x41, 0xd0c),
    (0x41, 0xd49),
    (0x41, 0xd40),
    (0x41, 0xd4f),
    (0x41, 0xd84),
    (0x4e, 0x010),
];

impl Encoding {
    /// Returns the encoding of the CPU with this main ID register.
    pub(super) fn of_midr(midr: u64) -> Self {
        let (implementer, part) = (midr >> 24 & 0xff, midr >> 4 & 0xfff);
        // The architecture is given by feature registers.
        if midr >> 16 & 0xf != 0xf {
            return Encoding::Unknown;
        }
        match (implementer, part) {
            (0xc0, 0xac4) => Encoding::AmpereOne,
            (0x48, 0xd06) => Encoding::HisiliconHip12,
            known if COMMON.contains(&known) => Encoding::Common,
            _ => Encoding::Unknown,
        }
    }
}

/// Returns whether the record is one of an access to memory, or of an operation on vectors.
pub(super) fn is_memory(record: &SpeRecord) -> bool {
    let kinds = Operation::LOAD | Operation::STORE | Operation::SIMD;
    record.operation.is_any(kinds)
}

/// Returns the part for a record.
pub(super) fn data_source(record: &SpeRecord, cpu: CpuSources) -> DataSource {
    let source = DataSource::default();
    if !is_memory(record) {
        return source;
    }
    let is_load = record.operation.has(Operation::LOAD);
    let is_store = record.operation.has(Operation::STORE);
    let mut source = source.with_op(match (is_load, is_store) {
        (true, _) => OP_LOAD,
        (_, true) => OP_STORE,
        _ => OP_NA,
    });
    source = of_packet(record, cpu.encoding, source);
    if source.level() == 0 {
        let (level, number) = if is_load {
            level_of_load(record.events)
        } else if is_store {
            level_of_store(record.events)
        } else {
            (0, 0)
        };
        source = match level {
            0 => source.with_level(LEVEL_NA).with_level_number(NUMBER_NA),
            _ => source.with_level(level).with_level_number(number),
        };
    }
    let has = |events| record.events.has(events);
    if source.snoop() == 0 {
        source = source.with_snoop(if has(SpeEvents::SNOOPED) {
            if has(SpeEvents::MODIFIED) {
                SNOOP_MODIFIED
            } else {
                SNOOP_HIT
            }
        } else if cpu.reports_snoops {
            SNOOP_NONE
        } else {
            SNOOP_NA
        });
    }
    if has(SpeEvents::REMOTE_ACCESS) {
        source = source.with_remote(true);
    }
    if has(SpeEvents::TLB_WALK) {
        source = source.with_tlb(TLB_WALKER | TLB_MISS);
    } else if has(SpeEvents::TLB_ACCESS) {
        source = source.with_tlb(TLB_WALKER | TLB_HIT);
    }
    source
}

/// Adds what the data source packet says.
fn of_packet(record: &SpeRecord, encoding: Encoding, source: DataSource) -> DataSource {
    let code = record.data_source;
    let code = match encoding {
        Encoding::Unknown => return source,
        // A packet of a store does not say where the data went.
        Encoding::Common | Encoding::HisiliconHip12 if record.operation.has(Operation::STORE) => {
            Common::NotAvailable
        }
        Encoding::HisiliconHip12 => return of_hip12(code, source),
        Encoding::Common => match code {
            0x0 => Common::L1,
            0x8 => Common::L2,
            0x9 => Common::PeerCore,
            0xa | 0xc => Common::Cluster,
            0xb => Common::SystemCache,
            0xd => Common::Remote,
            0xe => Common::Ram,
            _ => return source,
        },
        Encoding::AmpereOne => {
            let code = match code {
                0x0 => Common::PeerCore,
                0x3 => Common::SystemCache,
                0x5 => Common::Remote,
                0x7 => Common::Ram,
                0x8 => Common::L1,
                0x9 => Common::L2,
                _ => return source,
            };
            if record.operation.has(Operation::STORE) {
                Common::NotAvailable
            } else {
                code
            }
        }
    };
    code.add_to(source)
}

/// The sources of the common encoding.
enum Common {
    L1,
    L2,
    PeerCore,
    Cluster,
    SystemCache,
    Remote,
    Ram,
    NotAvailable,
}

impl Common {
    fn add_to(self, source: DataSource) -> DataSource {
        let hit = |level, number| source.with_level(level | HIT).with_level_number(number);
        match self {
            Common::L1 => hit(L1, NUMBER_L1).with_snoop(SNOOP_NONE),
            Common::L2 => hit(L2, NUMBER_L2).with_snoop(SNOOP_NONE),
            Common::PeerCore => hit(L2, NUMBER_L2).with_snoop_more(SNOOP_PEER),
            Common::Cluster => hit(L3, NUMBER_L3).with_snoop_more(SNOOP_PEER),
            Common::SystemCache => hit(L3, NUMBER_L3).with_snoop(SNOOP_HIT),
            Common::Remote => source
                .with_level(LEVEL_NA)
                .with_level_number(NUMBER_NA)
                .with_remote(true)
                .with_snoop_more(SNOOP_PEER),
            Common::Ram => hit(LOCAL_RAM, NUMBER_RAM).with_snoop(SNOOP_NONE),
            Common::NotAvailable => source
                .with_level(LEVEL_NA)
                .with_level_number(NUMBER_NA)
                .with_snoop(SNOOP_NA),
        }
    }
}

/// Adds the source of a load on HiSilicon HIP12.
fn of_hip12(code: u16, source: DataSource) -> DataSource {
    let hit = |level, number| source.with_level(level | HIT).with_level_number(number);
    let peer = |source: DataSource| source.with_snoop_more(SNOOP_PEER);
    let modified = |source: DataSource| source.with_snoop(SNOOP_MODIFIED);
    let socket = || {
        peer(source)
            .with_level(REMOTE_CACHE_2)
            .with_level_number(NUMBER_ANY_CACHE)
            .with_remote(true)
    };
    match code {
        0 => peer(hit(L2, NUMBER_L2)),
        1 => peer(modified(hit(L2, NUMBER_L2))),
        2 => hit(L3, NUMBER_L3).with_snoop(SNOOP_HIT),
        3 => modified(hit(L3, NUMBER_L3)),
        4 => peer(hit(REMOTE_CACHE_1, NUMBER_L3)),
        5 => peer(modified(hit(REMOTE_CACHE_1, NUMBER_L3))),
        6 => socket(),
        7 => modified(socket()),
        8 => hit(LOCAL_RAM, NUMBER_RAM).with_snoop(SNOOP_NONE),
        9 => hit(REMOTE_RAM, NUMBER_RAM).with_remote(true),
        13 => hit(IO, NUMBER_IO).with_snoop(SNOOP_NONE),
        16 => hit(L2, NUMBER_L2).with_snoop(SNOOP_NONE),
        17 => modified(hit(L2, NUMBER_L2)),
        18 => hit(L1, NUMBER_L1).with_snoop(SNOOP_NONE),
        _ => source,
    }
}

/// The events of an access to and a miss in each level, with its flag and number.
const LEVELS: [(SpeEvents, SpeEvents, u64, u64); 3] = [
    (SpeEvents::L1D_ACCESS, SpeEvents::L1D_REFILL, L1, NUMBER_L1),
    (SpeEvents::L2D_ACCESS, SpeEvents::L2D_MISS, L2, NUMBER_L2),
    (SpeEvents::LLC_ACCESS, SpeEvents::LLC_MISS, L3, NUMBER_L3),
];

/// Returns the lowest level with a hit; without one, the highest level with a miss.
fn level_of_load(events: SpeEvents) -> (u64, u64) {
    let is_hit = |at: &usize| {
        LEVELS
            .get(*at)
            .is_some_and(|(access, miss, ..)| events.has(*access) && !events.has(*miss))
    };
    let hit = (0..LEVELS.len()).find(is_hit);
    if hit != Some(0) && events.has(SpeEvents::RECENTLY_FETCHED) {
        return (LFB | HIT, NUMBER_LFB);
    }
    if let Some((.., level, number)) = hit.and_then(|at| LEVELS.get(at)) {
        return (level | HIT, *number);
    }
    let miss = LEVELS.iter().rev().find(|(_, miss, ..)| events.has(*miss));
    miss.map_or((0, 0), |(.., level, number)| (level | MISS, *number))
}

/// Returns the highest level that the store reached.
fn level_of_store(events: SpeEvents) -> (u64, u64) {
    let is_reached = |(access, miss, ..): &&(SpeEvents, SpeEvents, u64, u64)| {
        events.has(*access) || events.has(*miss)
    };
    let reached = LEVELS.iter().rev().find(is_reached);
    reached.map_or((0, 0), |(_, miss, level, number)| {
        let result = if events.has(*miss) { MISS } else { HIT };
        (level | result, *number)
    })
}
