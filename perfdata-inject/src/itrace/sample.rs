//! The samples of a record (tools/perf/util/arm-spe.c, Linux 7.1, `arm_spe_sample`).

use perfdata_core::arm_spe::{Operation, SpeEvents, SpeRecord};
use perfdata_core::attr::SampleType;
use perfdata_core::record::{
    Body, BranchEntry, BranchFlags, BranchStack, Cpu, CpuMode, Record, Sample, Tid,
};
use perfdata_core::wire::List;

use super::data_source::{CpuSources, data_source, is_memory};
use super::events::{SampleKind, Synthesised};

/// What all samples of a record have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    pub(super) tid: Tid,
    pub(super) cpu: u32,
    /// Nanoseconds on the recording's clock.
    pub(super) time: u64,
    pub(super) period: u64,
    pub(super) sources: CpuSources,
    /// Number of branches in branch stacks.
    pub(super) last_branches: u32,
}

/// Returns whether there is a sample of this kind of the record.
pub(super) fn has(kind: SampleKind, record: &SpeRecord) -> bool {
    let event = |event| record.events.has(event);
    match kind {
        SampleKind::L1dMiss => event(SpeEvents::L1D_REFILL),
        SampleKind::L1dAccess => event(SpeEvents::L1D_ACCESS),
        SampleKind::LlcMiss => event(SpeEvents::LLC_MISS),
        SampleKind::LlcAccess => event(SpeEvents::LLC_ACCESS),
        SampleKind::TlbMiss => event(SpeEvents::TLB_WALK),
        SampleKind::TlbAccess => event(SpeEvents::TLB_ACCESS),
        SampleKind::Branch => record.operation.has(Operation::BRANCH),
        SampleKind::RemoteAccess => event(SpeEvents::REMOTE_ACCESS),
        SampleKind::Memory => is_memory(record),
        SampleKind::Instructions => true,
    }
}

/// Returns the sample of a record for an event.
pub(super) fn sample(to: &Synthesised, record: &SpeRecord, common: &Common) -> Record {
    let has = |part| to.sample_type.has(part);
    let is_code = matches!(to.kind, SampleKind::Branch | SampleKind::Instructions);
    let is_branch = to.kind == SampleKind::Branch;
    let (addr, phys_addr) = match to.kind {
        SampleKind::Branch => (record.target, 0),
        SampleKind::Instructions => (record.target, record.physical_address),
        _ => (record.virtual_address, record.physical_address),
    };
    let source = || {
        if is_branch {
            Default::default()
        } else {
            data_source(record, common.sources)
        }
    };
    let stack = || {
        if is_code {
            branch_stack(record, common.last_branches)
        } else {
            BranchStack {
                hw_idx: Some(0),
                ..no_branches()
            }
        }
    };
    let sample = Sample {
        identifier: has(SampleType::IDENTIFIER).then_some(to.id),
        ip: has(SampleType::IP).then_some(record.pc),
        tid: has(SampleType::TID).then_some(common.tid),
        time: has(SampleType::TIME).then_some(common.time),
        addr: has(SampleType::ADDR).then_some(addr),
        id: has(SampleType::ID).then_some(to.id),
        stream_id: has(SampleType::STREAM_ID).then_some(to.id),
        cpu: has(SampleType::CPU).then_some(Cpu {
            cpu: common.cpu,
            reserved: 0,
        }),
        period: has(SampleType::PERIOD).then_some(common.period),
        branch_stack: has(SampleType::BRANCH_STACK).then(stack),
        weight: has(SampleType::WEIGHT).then_some(record.latency.into()),
        data_src: has(SampleType::DATA_SRC).then(source),
        phys_addr: has(SampleType::PHYS_ADDR).then_some(phys_addr),
        ..Sample::default()
    };
    // Addresses of the kernel are in the upper half.
    let mode = if record.pc >> 63 == 1 {
        CpuMode::KERNEL
    } else {
        CpuMode::USER
    };
    Record::new(Body::Sample(sample)).with_misc(mode.0)
}

fn no_branches() -> BranchStack {
    BranchStack {
        nr: 0,
        hw_idx: Some(u64::MAX),
        entries: List(Vec::new()),
        counters: List(Vec::new()),
    }
}

/// Codes of branches (include/uapi/linux/perf_event.h, `PERF_BR_*`).
mod branch {
    pub const CONDITIONAL: u64 = 1;
    pub const UNCONDITIONAL: u64 = 2;
    pub const CALL: u64 = 4;
    pub const RETURN: u64 = 6;
    pub const CONDITIONAL_CALL: u64 = 9;
    pub const CONDITIONAL_RETURN: u64 = 10;
}

/// Returns the branch of a record, and the target of the previous one, as far as `most` permits.
fn branch_stack(record: &SpeRecord, most: u32) -> BranchStack {
    let mut entries = Vec::new();
    if record.operation.has(Operation::BRANCH) {
        entries.push(BranchEntry {
            from: record.pc,
            to: record.target,
            flags: branch_flags(record),
        });
    }
    if record.previous_target != 0 {
        entries.push(BranchEntry {
            from: 0,
            to: record.previous_target,
            flags: BranchFlags::default(),
        });
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // perf replaces the branch of the record only by nothing.
    entries.truncate(most);
    let is_empty = entries.is_empty();
    BranchStack {
        nr: entries.len() as u64,
        hw_idx: Some(if is_empty { 0 } else { u64::MAX }),
        entries: List(entries),
        ..no_branches()
    }
}

fn branch_flags(record: &SpeRecord) -> BranchFlags {
    let is = |operation| record.operation.has(operation);
    let either = |conditional, other| {
        if is(Operation::CONDITIONAL) {
            conditional
        } else {
            other
        }
    };
    // perf regards an indirect branch without link as a return.
    let kind = if is(Operation::CALL) {
        either(branch::CONDITIONAL_CALL, branch::CALL)
    } else if is(Operation::RETURN) || is(Operation::INDIRECT) {
        either(branch::CONDITIONAL_RETURN, branch::RETURN)
    } else if is(Operation::PLAIN) {
        either(branch::CONDITIONAL, branch::UNCONDITIONAL)
    } else {
        either(branch::CONDITIONAL, 0)
    };
    let is_miss = record.events.has(SpeEvents::MISPREDICTED);
    BranchFlags::default()
        .with_mispred(is_miss)
        .with_predicted(!is_miss)
        .with_not_taken(record.events.has(SpeEvents::NOT_TAKEN))
        .with_in_tx(record.events.has(SpeEvents::TRANSACTION))
        .with_cycles(record.latency.min(0xffff).into())
        .with_kind(kind)
}
