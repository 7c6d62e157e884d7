//! Counter values of samples (SAMPLE_READ) after samples before them were dropped.
//!
//! perf shows the difference between the value in a sample and the previous value of the same event
//! ID as the period (tools/perf/util/session.c, `deliver_sample_value`, Linux 7.2; for inherited
//! events also of the same thread). Without the samples in between, the next difference contains
//! theirs. So a slice contains, for each ID, the sum of the differences of its own samples.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Events;
use perfdata_core::attr::SampleType;
use perfdata_core::record::{RawRecord, ReadValue, Sample, SampleView};

use perfdata_convert::count::number_of;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::pipeline::to_parts::PartNumber;

/// The counters so far.
#[derive(Debug, Default)]
pub(super) struct SlicedCounters {
    /// The last values in the input.
    last: HashMap<SlicedCounter, u64, RandomState>,
    /// The sums of the differences of all samples of a part.
    sums: HashMap<(PartNumber, SlicedCounter), u64, RandomState>,
    /// Number of samples with changed values.
    changed: u64,
}

/// The event ID, and the thread if the event is inherited.
type SlicedCounter = (u64, Option<u32>);

impl SlicedCounters {
    /// Sets the values of a sample for one of its parts; [`pass`](Self::pass) then notes its own ones.
    /// Returns whether a value changed.
    pub(super) fn set_for(
        &mut self,
        sample: &mut Sample,
        is_inherited: bool,
        part: PartNumber,
    ) -> bool {
        let thread = sample.tid.map(|tid| tid.tid).filter(|_| is_inherited);
        let id = sample.identifier.or(sample.id);
        let Some(read) = &mut sample.read else {
            return false;
        };
        let mut is_changed = false;
        for (id, value) in values(read, id) {
            let key = (id, thread);
            let last = self.last.get(&key).copied().unwrap_or(0);
            let sum = self.sums.entry((part, key)).or_default();
            *sum = sum.wrapping_add(value.wrapping_sub(last));
            is_changed |= *value != *sum;
            *value = *sum;
        }
        self.changed = self.changed.saturating_add(u64::from(is_changed));
        is_changed
    }

    /// Processes a sample after it was set for all of its parts.
    pub(super) fn pass(&mut self, sample: &SampleView<'_>, is_inherited: bool) {
        let thread = sample.tid().map(|tid| tid.tid).filter(|_| is_inherited);
        let own = sample.identifier().or(sample.id());
        let counters = sample.counters();
        self.note_values(counters.map(|(id, value)| ((id.or(own).unwrap_or(0), thread), value)));
    }

    fn note_values(&mut self, values: impl Iterator<Item = (SlicedCounter, u64)>) {
        self.last.extend(values);
    }

    /// Returns a note for the user, if values changed.
    pub(super) fn note(&self) -> Option<String> {
        let samples = number_of(self.changed, "sample");
        (self.changed > 0).then(|| {
            format!("changed the counter values of {samples}: perf shows their differences")
        })
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        let counters = self.last.len().saturating_add(self.sums.len());
        counters.saturating_mul(48)
    }
}

/// Returns the values with their event IDs. `id` is the sample's own event ID.
fn values(read: &mut ReadValue, id: Option<u64>) -> impl Iterator<Item = (u64, &mut u64)> {
    let single = read.value.as_mut();
    let own = read.id.or(id);
    let group = read.values.iter_mut();
    single
        .map(|value| (own.unwrap_or(0), value))
        .into_iter()
        .chain(group.map(move |counter| (counter.id.or(id).unwrap_or(0), &mut counter.value)))
}

/// Returns whether an event is inherited by new threads, so that several threads count for one
/// event ID.
pub(super) fn is_inherited(event: usize, events: &Events) -> bool {
    events
        .get(event)
        .is_some_and(|event| event.attr.flags.inherit() == 1)
}

/// Checks that the samples with counter values are in the order of time for each event ID. Their
/// differences are computed in the order of the file.
#[derive(Debug, Default)]
pub(super) struct CounterOrder {
    times: HashMap<(u64, u32), u64, RandomState>,
}

impl CounterOrder {
    /// Processes a sample of an event.
    #[inline]
    pub(super) fn see(
        &mut self,
        record: &RawRecord<'_>,
        events: &Events,
        event: usize,
        view: &SampleView<'_>,
    ) -> Result<()> {
        let has_counters = events
            .get(event)
            .is_some_and(|event| event.attr.sample_type.has(SampleType::READ));
        let (true, Some(time), Some(id)) = (has_counters, view.time(), events.id_of(record)) else {
            return Ok(());
        };
        let tid = view.tid().map_or(0, |tid| tid.tid);
        let last = self.times.entry((id, tid)).or_default();
        if time < *last {
            return Err(Error::Refused(format!(
                "the samples of event ID {id} contain counter values and are not in the order of \
                 time: at {:#x}, {time} ns follows {last} ns: sort the recording first",
                record.offset
            )));
        }
        *last = time;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::record::Tid;
    use perfdata_core::wire::ContextList;

    use super::*;

    fn sample(tid: u32, value: u64) -> Sample {
        Sample {
            tid: Some(Tid { pid: 1, tid }),
            read: Some(ReadValue {
                value: Some(value),
                nr: None,
                time_enabled: None,
                time_running: None,
                id: Some(7),
                lost: None,
                values: ContextList(Vec::new()),
            }),
            ..Sample::default()
        }
    }

    fn kept(samples: &[(u32, u64, bool)], is_inherited: bool) -> Vec<u64> {
        let mut counters = SlicedCounters::default();
        let mut values = Vec::new();
        for &(tid, value, is_kept) in samples {
            let mut sample = sample(tid, value);
            if is_kept {
                counters.set_for(&mut sample, is_inherited, 0);
            }
            let thread = Some(tid).filter(|_| is_inherited);
            counters.note_values([((7, thread), value)].into_iter());
            if is_kept {
                values.extend(sample.read.and_then(|read| read.value));
            }
        }
        values
    }

    #[test]
    fn differences_of_dropped_samples_are_left_out() {
        let samples = [
            (1, 100, false),
            (1, 130, true),
            (1, 190, false),
            (1, 200, true),
        ];
        assert_eq!(kept(&samples, false), [30, 40]);
        let all = samples.map(|(tid, value, _)| (tid, value, true));
        assert_eq!(kept(&all, false), [100, 130, 190, 200]);
    }

    #[test]
    fn threads_of_inherited_events_count_separately() {
        let samples = [
            (1, 100, false),
            (2, 10, true),
            (1, 150, true),
            (2, 15, true),
        ];
        assert_eq!(kept(&samples, true), [10, 50, 15]);
    }
}
