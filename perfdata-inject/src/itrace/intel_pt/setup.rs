//! How a trace was made, from AUXTRACE_INFO and the attributes
//! (`intel_pt_process_auxtrace_info`, `intel_pt_alloc_queue`).

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::record::IntelPt;
use perfdata_core::{Events, Recording};
use perfdata_intel_pt::{Config, Detail, EventKinds, Period};

use super::filter::Filters;
use crate::itrace::options::{ItraceOptions, PeriodUnit};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::support::cycles::CycleClock;

/// Bits of `config`, which are those of IA32_RTIT_CTL (`INTEL_PT_CFG_*`).
const PASS_THROUGH: u64 = 1 << 0;
const BRANCHES: u64 = 1 << 13;
const POWER_EVENTS: u64 = 1 << 4;
const EVENTS: u64 = 1 << 31;
const NO_TNT: u64 = 1 << 55;

/// What the recording says about the trace.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) pmu: u64,
    pub(super) clock: CycleClock,
    /// Whether times are not decoded: samples have none.
    pub(super) is_timeless: bool,
    pub(super) is_per_cpu: bool,
    pub(super) switches: Switches,
    pub(super) has_event_trace: bool,
    pub(super) has_power_events: bool,
    pub(super) has_events: bool,
    pub(super) max_non_turbo_ratio: u32,
    /// Kilohertz per unit of the core bus ratio.
    pub(super) kilohertz: u32,
    pub(super) config: Config,
    pub(super) filters: Filters,
}

/// Which records say what runs on a CPU (`have_sched_switch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switches {
    None,
    /// SWITCH records: a thread is switched in.
    In,
    /// SWITCH_CPU_WIDE records: a thread is switched out for another one.
    OutAndIn,
}

impl Setup {
    /// Checks what the recording says.
    ///
    /// # Errors
    /// The trace is of a kind that is not decoded, or the options cannot be applied to it.
    pub(super) fn of(
        info: &IntelPt,
        options: &ItraceOptions,
        recording: &Recording,
        has_snapshots: bool,
    ) -> Result<Self> {
        let events = &recording.events;
        let refused = |what: &str| Err(Error::Refused(what.to_owned()));
        if options.changes_samples {
            return Err(Error::Usage(
                "--itrace: L and G add branches or callchains to existing samples, which is not supported for Intel PT"
                    .into(),
            ));
        }
        let is_sampling = |attr: &Attr| {
            attr.sample_type.has(SampleType::AUX) && attr.aux_sample_size.unwrap_or(0) != 0
        };
        if events.iter().any(|event| is_sampling(&event.attr)) {
            return refused(
                "the trace of Intel PT is in the samples (perf record --aux-sample): such traces are not decoded",
            );
        }
        if info.snapshot_mode != 0 && has_snapshots {
            return refused(
                "there are several snapshots of one buffer, which can overlap: such traces of Intel PT are not decoded",
            );
        }
        let has_pebs = |attr: &Attr| attr.flags.aux_output() != 0;
        if options.others && events.iter().any(|event| has_pebs(&event.attr)) {
            return refused(
                "the trace has records of PEBS (aux-output), which are not decoded: leave out the o of --itrace",
            );
        }
        let own: Vec<&Attr> = events
            .iter()
            .map(|event| &event.attr)
            .filter(|attr| u64::from(attr.kind.0) == info.pmu_type)
            .collect();
        let ctl = own.first().map_or(0, |attr| attr.config);
        let is_timeless = options.timeless
            || info.tsc_bit == 0
            || info.cap_user_time_zero == 0
            || !all_have_times(events)
            || own.is_empty()
            || own.iter().any(|attr| attr.config & info.tsc_bit == 0);
        let mut clock = CycleClock {
            shift: info.time_shift,
            mult: info.time_mult,
            zero: info.time_zero,
        };
        if is_timeless && clock.mult == 0 {
            clock.mult = 1;
        }
        if !clock.is_usable() {
            return refused("the AUXTRACE_INFO record of Intel PT has no usable clock");
        }
        // Without the zero point: a duration.
        let ticks = |nanoseconds: u64| CycleClock { zero: 0, ..clock }.counter(nanoseconds);
        let frequency = ticks(1_000_000_000);
        let mut ratio = info.max_nonturbo_ratio.unwrap_or(0) as u32;
        if ratio == 0 {
            ratio = (frequency.saturating_add(50_000_000) / 100_000_000) as u32;
        }
        let kilohertz = frequency.checked_div(ratio.into()).unwrap_or(0) / 1000;
        let switches = match info.have_sched_switch {
            0 => Switches::None,
            1 => {
                return refused(
                    "which thread ran on a CPU is only in samples of sched:sched_switch, not in SWITCH records: such traces of Intel PT are not decoded",
                );
            }
            2 => Switches::In,
            _ => Switches::OutAndIn,
        };
        let has_branches = !own
            .iter()
            .any(|attr| attr.config & PASS_THROUGH != 0 && attr.config & BRANCHES == 0);
        let has_no_tnt = own.iter().any(|attr| attr.config & NO_TNT != 0);
        let detail = match options.quick {
            0 if has_branches && has_no_tnt => Detail::Addresses,
            0 => Detail::Full,
            1 => Detail::Addresses,
            _ => Detail::Psb,
        };
        let filters = Filters::parse(&info.filter.0)?;
        let mtc_bits = info.mtc_freq_bits.unwrap_or(0);
        let mtc_shift = match mtc_bits {
            0 => 0,
            bits => (ctl & bits).checked_shr(bits.trailing_zeros()).unwrap_or(0),
        };
        let no_compression = info.noretcomp_bit;
        let config = Config {
            ctl,
            has_branches,
            return_compression: no_compression == 0
                || !own.iter().any(|attr| attr.config & no_compression != 0),
            mtc_shift: (mtc_shift as u32).min(15),
            tsc_ctc_ratio: match info.cyc_bit {
                Some(_) => (
                    info.tsc_ctc_n.unwrap_or(0) as u32,
                    info.tsc_ctc_d.unwrap_or(0) as u32,
                ),
                None => (0, 0),
            },
            max_non_turbo_ratio: ratio,
            fup_with_next_ip: is_goldmont(recording),
            period: period(options, ticks),
            detail,
            wanted: wanted(options),
            calls_suffice: !options.branches && options.last_branches.is_none(),
            ..Config::default()
        };
        Ok(Setup {
            pmu: info.pmu_type,
            clock,
            is_timeless,
            is_per_cpu: info.per_cpu_mmaps != 0,
            switches,
            has_event_trace: info.event_trace.unwrap_or(0) != 0,
            has_power_events: ctl & POWER_EVENTS != 0,
            has_events: ctl & EVENTS != 0,
            max_non_turbo_ratio: ratio,
            kilohertz: kilohertz as u32,
            config,
            filters,
        })
    }

    /// Returns the number of ticks in so many nanoseconds.
    pub(super) fn ticks(&self, nanoseconds: u64) -> u64 {
        let clock = CycleClock {
            zero: 0,
            ..self.clock
        };
        clock.counter(nanoseconds)
    }
}

fn all_have_times(events: &Events) -> bool {
    events
        .iter()
        .all(|event| event.attr.sample_type.has(SampleType::TIME))
}

/// Returns whether the processor has FUP packets with the address of the next instruction.
fn is_goldmont(recording: &Recording) -> bool {
    let Some(Ok(section)) = recording.feature(FeatureId::CPUID) else {
        return false;
    };
    matches!(&section.value, Feature::CpuId(id) if id.0.starts_with(b"GenuineIntel,6,92,"))
}

fn period(options: &ItraceOptions, ticks: impl Fn(u64) -> u64) -> Period {
    if !options.instructions && !options.cycles {
        return Period::None;
    }
    let period = match options.unit {
        PeriodUnit::Instructions => Period::Instructions(options.number),
        PeriodUnit::Ticks => Period::Ticks(options.number),
        PeriodUnit::Nanoseconds => Period::Ticks(ticks(options.number)),
    };
    match period {
        Period::Instructions(0) | Period::Ticks(0) => Period::Instructions(1),
        period => period,
    }
}

/// Returns the kinds of events for which there are samples.
fn wanted(options: &ItraceOptions) -> EventKinds {
    let mut kinds = EventKinds::NONE;
    let mut add = |is_wanted: bool, more: &[EventKinds]| {
        if is_wanted {
            kinds = more.iter().fold(kinds, |kinds, &more| kinds.with(more));
        }
    };
    let has_stacks = options.callchains.is_some() || options.last_branches.is_some();
    add(options.branches || has_stacks, &[EventKinds::BRANCH]);
    add(
        options.instructions || options.cycles,
        &[EventKinds::INSTRUCTION],
    );
    add(options.transactions, &[EventKinds::TRANSACTION]);
    add(options.ptwrites, &[EventKinds::PTWRITE]);
    add(
        options.power,
        &[
            EventKinds::PSB,
            EventKinds::CORE_BUS_RATIO,
            EventKinds::MWAIT,
            EventKinds::POWER_ENTRY,
            EventKinds::EXECUTION_STOP,
            EventKinds::POWER_EXIT,
        ],
    );
    add(
        options.interrupts,
        &[EventKinds::EVENT, EventKinds::INTERRUPT_FLAG],
    );
    kinds
}
