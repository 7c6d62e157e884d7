//! The events of synthesised samples (`intel_pt_synth_events`), and their raw data
//! (tools/perf/util/event.h, `perf_synth_intel_*`, Linux 7.1).

use perfdata_core::attr::{Attr, BranchSampleType, EventType, HardwareEvent, SampleType};
use perfdata_core::intel_pt_samples::SynthesisedData;
use perfdata_core::names::EventNames;
use perfdata_core::record::SampleTemplate;
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
        let synth = |config| (EventType::SYNTH, config);
        let hardware = |event: HardwareEvent| (EventType::HARDWARE, event.0);
        match self {
            SampleKind::Branches => hardware(HardwareEvent::BRANCH_INSTRUCTIONS),
            SampleKind::Instructions | SampleKind::Transactions => {
                hardware(HardwareEvent::INSTRUCTIONS)
            }
            SampleKind::Cycles => hardware(HardwareEvent::CPU_CYCLES),
            SampleKind::Ptwrite => synth(SynthesisedData::PTWRITE),
            SampleKind::Mwait => synth(SynthesisedData::MWAIT),
            SampleKind::PowerEntry => synth(SynthesisedData::POWER_ENTRY),
            SampleKind::ExecutionStop => synth(SynthesisedData::EXECUTION_STOP),
            SampleKind::PowerExit => synth(SynthesisedData::POWER_EXIT),
            SampleKind::CoreBusRatio => synth(SynthesisedData::CORE_BUS_RATIO),
            SampleKind::Psb => synth(SynthesisedData::PSB),
            SampleKind::Event => synth(SynthesisedData::EVENT),
            SampleKind::InterruptFlag => synth(SynthesisedData::INTERRUPT_FLAG),
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
    /// Its last sample, if samples differ only in words.
    pub(super) template: Option<SampleTemplate>,
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
            template: None,
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
    let has_ip = event.has_fup_ip;
    let data = match kind {
        SampleKind::Ptwrite => SynthesisedData::Ptwrite {
            has_ip,
            payload: event.ptwrite,
        },
        SampleKind::Mwait => SynthesisedData::Mwait(event.mwait),
        SampleKind::PowerEntry => SynthesisedData::PowerEntry(event.power_entry),
        SampleKind::PowerExit => SynthesisedData::PowerExit(event.power_exit),
        SampleKind::ExecutionStop => SynthesisedData::ExecutionStop { has_ip },
        SampleKind::Psb => SynthesisedData::Psb(event.psb_offset),
        SampleKind::CoreBusRatio => {
            let ratio = event.cbr as u16;
            SynthesisedData::CoreBusRatio {
                ratio,
                max_non_turbo: setup.max_non_turbo_ratio as u16,
                frequency: u32::from(ratio & 0xff).wrapping_mul(setup.kilohertz),
            }
        }
        SampleKind::Event => {
            let (kind, vector) = event.cfe;
            let data = event.evds.iter().map(|evd| (evd.kind, evd.payload));
            SynthesisedData::Event {
                kind,
                has_ip,
                vector,
                data: data.collect(),
            }
        }
        SampleKind::InterruptFlag => {
            let is_branch = event.kinds.has(perfdata_intel_pt::EventKinds::BRANCH);
            SynthesisedData::InterruptFlag {
                flag: event.interrupts_to,
                branch: is_branch.then_some(event.to),
            }
        }
        SampleKind::Branches
        | SampleKind::Instructions
        | SampleKind::Cycles
        | SampleKind::Transactions => return Vec::new(),
    };
    data.raw()
}
