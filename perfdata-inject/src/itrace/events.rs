//! The events of synthesised samples (tools/perf/util/arm-spe.c, Linux 7.1,
//! `arm_spe_synth_events`).

use perfdata_core::attr::{Attr, BranchSampleType, EventType, HardwareEvent, SampleType};
use perfdata_core::{Event, Events};

use super::options::ItraceOptions;
use crate::new_events;
use perfdata_convert::error::{Error, Result};

/// What a synthesised sample is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleKind {
    L1dMiss,
    L1dAccess,
    LlcMiss,
    LlcAccess,
    TlbMiss,
    TlbAccess,
    Branch,
    RemoteAccess,
    Memory,
    Instructions,
}

impl SampleKind {
    /// All kinds, in the order of the events and of the samples of a record.
    pub(super) const ALL: [SampleKind; 10] = [
        SampleKind::L1dMiss,
        SampleKind::L1dAccess,
        SampleKind::LlcMiss,
        SampleKind::LlcAccess,
        SampleKind::TlbMiss,
        SampleKind::TlbAccess,
        SampleKind::Branch,
        SampleKind::RemoteAccess,
        SampleKind::Memory,
        SampleKind::Instructions,
    ];

    fn name(self) -> &'static str {
        match self {
            SampleKind::L1dMiss => "l1d-miss",
            SampleKind::L1dAccess => "l1d-access",
            SampleKind::LlcMiss => "llc-miss",
            SampleKind::LlcAccess => "llc-access",
            SampleKind::TlbMiss => "tlb-miss",
            SampleKind::TlbAccess => "tlb-access",
            SampleKind::Branch => "branch",
            SampleKind::RemoteAccess => "remote-access",
            SampleKind::Memory => "memory",
            SampleKind::Instructions => "instructions",
        }
    }

    fn is_selected(self, options: &ItraceOptions) -> bool {
        match self {
            SampleKind::L1dMiss | SampleKind::L1dAccess => options.first_level,
            SampleKind::LlcMiss | SampleKind::LlcAccess => options.last_level,
            SampleKind::TlbMiss | SampleKind::TlbAccess => options.tlb,
            SampleKind::Branch => options.branches,
            SampleKind::RemoteAccess => options.remote_access,
            SampleKind::Memory => options.memory,
            SampleKind::Instructions => options.instructions,
        }
    }

    /// Returns whether its samples have a branch stack with `l`.
    fn has_branches(self) -> bool {
        matches!(
            self,
            SampleKind::Branch
                | SampleKind::RemoteAccess
                | SampleKind::Memory
                | SampleKind::Instructions
        )
    }
}

/// A new event.
#[derive(Debug, Clone)]
pub(super) struct Synthesised {
    pub(super) kind: SampleKind,
    pub(super) id: u64,
    pub(super) sample_type: SampleType,
    pub(super) event: Event,
}

impl Synthesised {
    /// Returns the event with its name.
    pub(super) fn named(&self) -> (Event, Vec<u8>) {
        (self.event.clone(), self.kind.name().into())
    }
}

/// The distance of the IDs of new events from that of the trace
/// (`AUXTRACE_SYNTH_EVENT_ID_OFFSET`, tools/perf/util/auxtrace.h).
pub(super) const IDS: u64 = 1_000_000_000;

/// The parts that new samples take over from the trace's event (`PERF_SAMPLE_MASK`,
/// tools/perf/util/event.h, and PHYS_ADDR).
pub(super) const KEPT: u64 = SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::ADDR.0
    | SampleType::ID.0
    | SampleType::STREAM_ID.0
    | SampleType::CPU.0
    | SampleType::PERIOD.0
    | SampleType::IDENTIFIER.0
    | SampleType::PHYS_ADDR.0;

/// The parts that all new samples have.
const ADDED: u64 = SampleType::IP.0
    | SampleType::TID.0
    | SampleType::PERIOD.0
    | SampleType::DATA_SRC.0
    | SampleType::WEIGHT.0
    | SampleType::ADDR.0;

/// Returns the attribute of the event of a trace, which has the type `pmu`, and its first ID.
///
/// # Errors
/// There is no such event, or it has no ID.
pub(super) fn of_trace<'a>(events: &'a Events, pmu: u64, name: &str) -> Result<(&'a Attr, u64)> {
    let trace = events
        .iter()
        .find(|event| u64::from(event.attr.kind.0) == pmu);
    let trace = trace.ok_or_else(|| {
        Error::Refused(format!(
            "no event has the type {pmu}, which AUXTRACE_INFO gives for {name}"
        ))
    })?;
    let first = *trace.ids.first().ok_or_else(|| {
        let what = format!("the event of {name} has no ID, so new events cannot get other ones");
        Error::Refused(what)
    })?;
    Ok((&trace.attr, first))
}

/// Checks that the samples of a new event have their ID where those of all other events have it.
///
/// # Errors
/// They have it elsewhere.
pub(super) fn check_id_place(events: &Events, attr: &Attr) -> Result<()> {
    let is_same_place = |event: &Event| Events::id_place(&event.attr) == Events::id_place(attr);
    if Events::id_place(attr).is_none() || !events.iter().all(is_same_place) {
        return Err(Error::Refused(
            "the IDs of events would be at different places in their samples: the events have no IDENTIFIER"
                .into(),
        ));
    }
    Ok(())
}

/// Returns the new events for the traces of the PMU `pmu`. `has_times` says whether the records of
/// the recording have times.
pub(super) fn synthesised(
    events: &Events,
    pmu: u64,
    options: &ItraceOptions,
    has_times: bool,
) -> Result<Vec<Synthesised>> {
    let (trace, first) = of_trace(events, pmu, "Arm SPE")?;
    let mut id = first.wrapping_add(IDS);
    let mut all = Vec::new();
    for kind in SampleKind::ALL
        .into_iter()
        .filter(|kind| kind.is_selected(options))
    {
        id = new_events::free_id(events, id);
        let attr = attr(trace, kind, options, has_times);
        check_id_place(events, &attr)?;
        all.push(Synthesised {
            kind,
            id,
            sample_type: attr.sample_type,
            event: Event {
                attr,
                ids: vec![id],
            },
        });
        id = id.wrapping_add(1);
    }
    Ok(all)
}

/// Returns the attribute of a new event. It has the size of that of the trace.
fn attr(trace: &Attr, kind: SampleKind, options: &ItraceOptions, has_times: bool) -> Attr {
    let mut parts = trace.sample_type.0 & KEPT | ADDED;
    parts = match has_times {
        true => parts | SampleType::TIME.0,
        false => parts & !SampleType::TIME.0,
    };
    let has_branches = options.last_branches.is_some() && kind.has_branches();
    let mut branches = BranchSampleType::default();
    if has_branches {
        parts |= SampleType::BRANCH_STACK.0;
        branches = BranchSampleType::HW_INDEX;
    }
    let config = match kind {
        SampleKind::Instructions => HardwareEvent::INSTRUCTIONS,
        _ => HardwareEvent::CPU_CYCLES,
    };
    Attr {
        kind: EventType::HARDWARE,
        config: config.0,
        sample_period: options.period.unwrap_or(0),
        sample_type: SampleType(parts),
        branch_sample_type: trace.branch_sample_type.map(|_| branches),
        ..new_events::plain(trace)
    }
}
