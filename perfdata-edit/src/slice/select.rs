//! The conditions for the samples of a slice.

use std::num::NonZeroU64;

use perfdata_core::Recording;
use perfdata_core::attr::{Attr, EventType, ReadFormat, SampleType, SoftwareEvent};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::names::EventNames;
use perfdata_core::record::{SampleView, is_known_time};

use super::by::By;
use super::lists::{Cpus, Ids, Patterns};
use super::time_ranges::{TimeRange, TimeRanges};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::support::suggest;
use perfdata_convert::support::text::escaped;

/// Which samples a slice contains. A sample must meet all conditions; the default has none.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Select {
    /// Ranges of time. A sample without a time, or with time 0, is in every range, as in perf.
    pub times: Option<TimeRanges>,
    /// Absolute times count from the first sample.
    pub relative: bool,
    /// Process IDs. As in perf, the process of a sample is that of its thread in the COMM and FORK
    /// records.
    pub pids: Option<Ids>,
    /// Thread IDs.
    pub tids: Option<Ids>,
    /// Also the threads and processes that a thread which meets the conditions for threads forks,
    /// and those that they fork.
    pub descendants: bool,
    /// Also samples of tracepoints that name a thread which meets the conditions for threads, such
    /// as a switch to it or its wakeup: in the fields `pid`, `tid` and those that end like this
    /// (`next_pid`, `child_pid`).
    pub related: bool,
    /// Names of threads at the time of the sample.
    pub comms: Option<Patterns>,
    /// CPUs.
    pub cpus: Option<Cpus>,
    /// Names of events, with their modifiers.
    pub events: Option<Patterns>,
    /// Also the samples that contain the counters of a group (`perf record -e '{…}:S'`), of which one
    /// may be that of a selected event. Not with `invert`.
    pub groups: bool,
    /// Only each n-th of the samples that meet the other conditions, starting with the first, in
    /// the order of time.
    pub every: Option<NonZeroU64>,
    /// Only the first n of these samples.
    pub first: Option<u64>,
    /// Only the last n of these samples. With `first`, both.
    pub last: Option<u64>,
    /// All other samples instead.
    pub invert: bool,
    /// Which records about tasks remain.
    pub sideband: Sideband,
    /// Accept a slice without samples.
    pub allow_empty: bool,
}

/// Which records about tasks and mappings a slice contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sideband {
    /// Those that its samples need: of their processes, and of the ancestors up to the fork. If
    /// there are no conditions for threads, those of all processes that lived during the slice.
    #[default]
    Used,
    /// All up to the end of the slice.
    All,
}

impl Select {
    /// Returns whether there are conditions for threads.
    pub(super) fn has_threads(&self) -> bool {
        self.pids.is_some() || self.tids.is_some() || self.comms.is_some()
    }

    /// Returns whether the times of the first and the last sample are needed.
    pub(super) fn needs_bounds(&self) -> bool {
        self.times
            .as_ref()
            .is_some_and(|times| self.relative || times.need_bounds())
    }

    /// Returns whether the samples of all events contain what the conditions need.
    /// Samples are also divided `by` something.
    pub(super) fn check(
        &self,
        by: Option<By>,
        recording: &Recording,
        names: &EventNames,
    ) -> Result<()> {
        let is_counted = recording.features.contains_key(&FeatureId::STAT);
        if (self.times.is_some() || by.is_some()) && is_counted {
            return Err(of_counters());
        }
        let conditions = [
            (self.times.is_some(), SampleType::TIME, "time"),
            (self.has_threads(), SampleType::TID, "process and thread"),
            (self.cpus.is_some(), SampleType::CPU, "CPU"),
        ];
        let conditions = conditions.into_iter().filter(|(is_given, ..)| *is_given);
        let parts = conditions.map(|(_, part, what)| (part, what));
        for (part, what) in parts.chain(by.and_then(By::needs)) {
            let lacks = |attr: &Attr| !attr.sample_type.has(part) && !is_dummy(attr);
            if let Some(at) = recording.events.iter().position(|event| lacks(&event.attr)) {
                let name = names.get(recording, at).unwrap_or_default();
                return Err(Error::Refused(format!(
                    "the samples of event {} do not contain their {what}",
                    escaped(&name)
                )));
            }
        }
        if let Some(cpus) = &self.cpus
            && let Some(Ok(Section {
                value: Feature::NrCpus(nr),
                ..
            })) = recording.feature(FeatureId::NRCPUS)
            && cpus.highest() >= nr.available
        {
            return Err(Error::Refused(format!(
                "there is no CPU {}: the recorded machine has {} CPUs",
                cpus.highest(),
                nr.available
            )));
        }
        Ok(())
    }
}

/// Returns the error for a recording of counters.
pub(super) fn of_counters() -> Error {
    Error::Refused(
        "a recording of perf stat contains no samples: its counters cannot be cut by time".into(),
    )
}

fn is_dummy(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE && attr.config == SoftwareEvent::DUMMY.0
}

/// The conditions for one recording that do not depend on other records.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) ranges: Option<Vec<TimeRange>>,
    cpus: Option<Cpus>,
    /// For each event, whether it is selected.
    events: Option<Vec<bool>>,
}

impl Conditions {
    /// Returns the conditions in `select` for `recording`.
    pub(super) fn new(
        select: &Select,
        ranges: Option<Vec<TimeRange>>,
        recording: &Recording,
        names: &EventNames,
    ) -> Result<Self> {
        let events = select.events.as_ref();
        Ok(Conditions {
            ranges,
            cpus: select.cpus.clone(),
            events: events
                .map(|patterns| events_called(patterns, recording, names))
                .transpose()?
                .map(|selected| match select.groups && !select.invert {
                    true => with_groups(selected, recording),
                    false => selected,
                }),
        })
    }

    /// Returns whether a sample of an event meets them.
    #[inline]
    pub(super) fn are_met(&self, event: usize, sample: &SampleView<'_>) -> bool {
        self.has_time(sample.time())
            && self.has_event(event)
            && self
                .cpus
                .as_ref()
                .is_none_or(|cpus| sample.cpu().is_none_or(|cpu| cpus.contains(cpu)))
    }

    /// Returns whether `time` is in the ranges, or no time.
    #[inline]
    pub(super) fn has_time(&self, time: Option<u64>) -> bool {
        let (Some(ranges), Some(time)) = (&self.ranges, time.filter(|&time| time != 0)) else {
            return true;
        };
        ranges.iter().any(|range| range.contains(time))
    }

    /// Returns whether samples of an event are selected.
    #[inline]
    pub(super) fn has_event(&self, event: usize) -> bool {
        self.events
            .as_ref()
            .is_none_or(|events| events.get(event).copied().unwrap_or(true))
    }

    /// Returns the start of the first range.
    pub(super) fn start(&self) -> u64 {
        self.ranges
            .as_ref()
            .and_then(|ranges| ranges.first())
            .map_or(0, |range| range.start)
    }

    /// Returns the time from the first range to the last one.
    pub(super) fn span(&self) -> Option<TimeRange> {
        let ranges = self.ranges.as_ref()?;
        Some(TimeRange {
            start: ranges.first()?.start,
            end: ranges.last()?.end,
        })
    }

    /// Returns whether `time` is after the last range.
    #[inline]
    pub(super) fn is_after(&self, time: Option<u64>) -> bool {
        let end = self.ranges.as_ref().and_then(|ranges| ranges.last()?.end);
        match (end, time.filter(|&time| is_known_time(time))) {
            (Some(end), Some(time)) => time > end,
            _ => false,
        }
    }
}

/// Adds the events whose samples contain the counters of a group.
fn with_groups(mut selected: Vec<bool>, recording: &Recording) -> Vec<bool> {
    for (is_selected, event) in selected.iter_mut().zip(recording.events.iter()) {
        let attr = &event.attr;
        *is_selected |=
            attr.sample_type.has(SampleType::READ) && attr.read_format.has(ReadFormat::GROUP);
    }
    selected
}

/// Returns for each event whether its name matches one of the patterns.
fn events_called(
    patterns: &Patterns,
    recording: &Recording,
    names: &EventNames,
) -> Result<Vec<bool>> {
    let all: Vec<_> = (0..recording.events.len())
        .map(|at| names.get(recording, at).unwrap_or_default())
        .collect();
    let mut patterns = patterns.clone();
    all.iter().for_each(|name| patterns.see_name(name));
    for pattern in patterns.list() {
        if !all.iter().any(|name| super::lists::matches(pattern, name)) {
            let shown: Vec<_> = all.iter().map(|name| escaped(name)).collect();
            let pattern = escaped(pattern);
            return Err(Error::Refused(format!(
                "no event is called {pattern}; the events are {}{}",
                shown.join(", "),
                suggest::hint(&pattern, shown.iter().map(|name| &**name))
            )));
        }
    }
    Ok(all.iter().map(|name| patterns.contains(name)).collect())
}
