//! The events of synthesised samples (`intel_pt_synth_events`), and their raw data
//! (tools/perf/util/event.h, `perf_synth_intel_*`, Linux 7.1).

use perfdata_core::attr::{Attr, BranchSampleType, EventType, HardwareEvent, SampleType};
use perfdata_core::names::EventNames;
use perfdata_core::{Event, Events, Recording};
use perfdata_intel_pt::TraceEvent;

use super::setup::Setup;
use crate::itrace::events::{IDS, KEPT, check_id_place, of_trace};
use crate::itrace::options::{ItraceOptions, PeriodUnit};
use crate::new_events;
use perfdata_convert::error::Result;

/// What a sample is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SampleKind {
    Branches,
    Instructions,
    Cycles,
    Transactions,
    Ptwrite,
    CoreBusRatio,
    Psb,
    Mwait,
    PowerEntry,
    ExecutionStop,
    PowerExit,
    Event,
    InterruptFlag,
}

impl SampleKind {
    /// In the order of the events and their IDs.
    const ALL: [SampleKind; 13] = [
        SampleKind::Branches,
        SampleKind::Instructions,
        SampleKind::Cycles,
        SampleKind::Transactions,
        SampleKind::Ptwrite,
        SampleKind::CoreBusRatio,
        SampleKind::Psb,
        SampleKind::Mwait,
        SampleKind::PowerEntry,
        SampleKind::ExecutionStop,
        SampleKind::PowerExit,
        SampleKind::Event,
        SampleKind::InterruptFlag,
    ];

    fn name(self) -> &'static str {
        match self {
            SampleKind::Branches => "branches",
            SampleKind::Instructions => "instructions",
            SampleKind::Cycles => "cycles",
            SampleKind::Transactions => "transactions",
            SampleKind::Ptwrite => "ptwrite",
            SampleKind::CoreBusRatio => "cbr",
            SampleKind::Psb => "psb",
            SampleKind::Mwait => "mwait",
            SampleKind::PowerEntry => "pwre",
            SampleKind::ExecutionStop => "exstop",
            SampleKind::PowerExit => "pwrx",
            SampleKind::Event => "evt",
            SampleKind::InterruptFlag => "iflag",
        }
    }

    /// Returns the type and `config` of its event.
    fn config(self) -> (EventType, u64) {
        // `enum perf_synth_id`.
        let synth = |config| (EventType::SYNTH, config);
        let hardware = |event: HardwareEvent| (EventType::HARDWARE, event.0);
        match self {
            SampleKind::Branches => hardware(HardwareEvent::BRANCH_INSTRUCTIONS),
            SampleKind::Instructions | SampleKind::Transactions => {
                hardware(HardwareEvent::INSTRUCTIONS)
            }
            SampleKind::Cycles => hardware(HardwareEvent::CPU_CYCLES),
            SampleKind::Ptwrite => synth(0),
            SampleKind::Mwait => synth(1),
            SampleKind::PowerEntry => synth(2),
            SampleKind::ExecutionStop => synth(3),
            SampleKind::PowerExit => synth(4),
            SampleKind::CoreBusRatio => synth(5),
            SampleKind::Psb => synth(6),
            SampleKind::Event => synth(7),
            SampleKind::InterruptFlag => synth(8),
        }
    }

    fn is_selected(self, options: &ItraceOptions, setup: &Setup) -> bool {
        match self {
            SampleKind::Branches => options.branches,
            SampleKind::Instructions => options.instructions,
            SampleKind::Cycles => options.cycles,
            SampleKind::Transactions => options.transactions,
            SampleKind::Ptwrite => options.ptwrites,
            SampleKind::CoreBusRatio | SampleKind::Psb => options.power,
            SampleKind::Mwait
            | SampleKind::PowerEntry
            | SampleKind::ExecutionStop
            | SampleKind::PowerExit => options.power && setup.has_power_events,
            SampleKind::Event => options.interrupts && setup.has_events,
            SampleKind::InterruptFlag => options.interrupts && setup.has_event_trace,
        }
    }
}

/// A new event.
#[derive(Debug)]
pub(super) struct NewEvent {
    pub(super) kind: SampleKind,
    pub(super) id: u64,
    pub(super) event: Event,
}

/// Returns new events with their names. Those of the hardware have the names that follow from their
/// attributes, such as `branches:u`.
pub(super) fn named(new: &[NewEvent], recording: &Recording) -> Vec<(Event, Vec<u8>)> {
    let mut with = recording.clone();
    let first = with.events.len();
    new.iter()
        .for_each(|new| with.events.push(new.event.clone()));
    let mut names = EventNames::default();
    names.update(&with);
    let name = |at: usize, kind: SampleKind| match kind {
        SampleKind::Branches | SampleKind::Instructions | SampleKind::Cycles => names
            .get(&with, first.saturating_add(at))
            .map(|name| name.into_owned()),
        _ => None,
    };
    new.iter()
        .enumerate()
        .map(|(at, new)| {
            let name = name(at, new.kind).unwrap_or_else(|| new.kind.name().into());
            (new.event.clone(), name)
        })
        .collect()
}

/// Returns the new events.
///
/// # Errors
/// There is no event of the trace, or its samples have their IDs elsewhere.
pub(super) fn new_events(
    events: &Events,
    options: &ItraceOptions,
    setup: &Setup,
) -> Result<Vec<NewEvent>> {
    let (trace, first) = of_trace(events, setup.pmu, "Intel PT")?;
    let mut id = first.wrapping_add(IDS);
    let mut all = Vec::new();
    let selected = SampleKind::ALL.into_iter();
    for kind in selected.filter(|kind| kind.is_selected(options, setup)) {
        id = new_events::free_id(events, id);
        let attr = attr(trace, kind, options, setup);
        check_id_place(events, &attr)?;
        all.push(NewEvent {
            kind,
            id,
            event: Event {
                attr,
                ids: vec![id],
            },
        });
        id = id.wrapping_add(1);
    }
    Ok(all)
}

fn attr(trace: &Attr, kind: SampleKind, options: &ItraceOptions, setup: &Setup) -> Attr {
    let mut parts = trace.sample_type.0 & KEPT & !SampleType::PHYS_ADDR.0;
    parts |= SampleType::IP.0 | SampleType::TID.0 | SampleType::PERIOD.0;
    match setup.is_timeless {
        true => parts &= !SampleType::TIME.0,
        false => parts |= SampleType::TIME.0,
    }
    if !setup.is_per_cpu {
        parts &= !SampleType::CPU.0;
    }
    if options.branches {
        parts &= !SampleType::ADDR.0;
    }
    let mut branches = BranchSampleType::default();
    let mut period = 1;
    match kind {
        SampleKind::Branches => parts |= SampleType::ADDR.0,
        _ => {
            if options.callchains.is_some() {
                parts |= SampleType::CALLCHAIN.0;
            }
            if options.last_branches.is_some() {
                parts |= SampleType::BRANCH_STACK.0;
                branches = BranchSampleType::HW_INDEX;
            }
        }
    }
    match kind {
        SampleKind::Branches => {}
        SampleKind::Instructions | SampleKind::Cycles => {
            period = match options.unit {
                PeriodUnit::Nanoseconds => setup.ticks(options.number),
                _ => options.number,
            }
        }
        SampleKind::Transactions => parts &= !SampleType::PERIOD.0,
        _ => parts = parts & !SampleType::PERIOD.0 | SampleType::RAW.0,
    }
    let (kind, config) = kind.config();
    Attr {
        kind,
        config,
        sample_period: period,
        sample_type: SampleType(parts),
        branch_sample_type: trace.branch_sample_type.map(|_| branches),
        ..new_events::plain(trace)
    }
}

/// Returns the raw data of a sample; empty for those that have none.
pub(super) fn raw(kind: SampleKind, event: &TraceEvent, setup: &Setup) -> Vec<u8> {
    let words = |low: u32, high: u64| {
        let mut bytes = low.to_le_bytes().to_vec();
        bytes.extend(high.to_le_bytes());
        bytes
    };
    let has_ip = u32::from(event.has_fup_ip);
    match kind {
        SampleKind::Ptwrite => words(has_ip, event.ptwrite),
        SampleKind::Mwait => words(0, event.mwait),
        SampleKind::PowerEntry => words(0, event.power_entry),
        SampleKind::PowerExit => words(0, event.power_exit),
        SampleKind::ExecutionStop => has_ip.to_le_bytes().to_vec(),
        SampleKind::Psb => words(0, event.psb_offset),
        SampleKind::CoreBusRatio => {
            let ratio = (event.cbr & 0xffff) as u32 | setup.max_non_turbo_ratio << 16;
            let frequency = (ratio & 0xff).wrapping_mul(setup.kilohertz);
            words(ratio, frequency.into())
        }
        SampleKind::Event => {
            let (kind, vector) = event.cfe;
            let count = event.evds.len() as u32;
            let word = u32::from(kind & 0x1f) | has_ip << 7 | u32::from(vector) << 8 | count << 16;
            let mut bytes = word.to_le_bytes().to_vec();
            for evd in &event.evds {
                bytes.extend(u64::from(evd.kind).to_le_bytes());
                bytes.extend(evd.payload.to_le_bytes());
            }
            bytes
        }
        SampleKind::InterruptFlag => {
            let is_branch = event.kinds.has(perfdata_intel_pt::EventKinds::BRANCH);
            let flags = u32::from(event.interrupts_to) | u32::from(is_branch) << 1;
            words(flags, if is_branch { event.to } else { 0 })
        }
        _ => Vec::new(),
    }
}
