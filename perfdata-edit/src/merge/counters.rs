//! Counter values of samples (SAMPLE_READ) of inputs that count the same event IDs.
//!
//! A part of a recording counts from 0, as if nothing preceded it: see
//! [`slice`](crate::slice). In the result, its counters continue those of the inputs before
//! it, because readers show the difference between a value and the previous one of the same ID
//! (tools/perf/util/session.c, `deliver_sample_value`). The files of `perf record --switch-output`
//! continue each other already.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::attr::SampleType;
use perfdata_core::read::Limits;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Events, Result};

/// The event ID, and the thread if the event is inherited.
type CounterKey = (u64, Option<u32>);

/// The counters so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The last values in the inputs, by the index of the input.
    last: HashMap<(usize, CounterKey), u64, RandomState>,
    /// The last values in the result.
    merged: HashMap<CounterKey, u64, RandomState>,
    /// The counters of the current sample.
    sample: Vec<(CounterKey, u64)>,
}

/// Bytes of memory for a counter.
const COUNTER: u64 = 96;

impl Counters {
    /// Returns the counters of a recording with `events`; `None` if samples contain no counters.
    pub(super) fn of(events: &Events) -> Option<Counters> {
        let mut parts = events.iter().map(|event| event.attr.sample_type);
        let has_counters = parts.any(|parts| parts.has(SampleType::READ));
        has_counters.then(Counters::default)
    }

    /// Changes the counters in `samples`, the next records of the input with this index.
    ///
    /// # Errors
    /// The counters exceed the limit for metadata.
    pub(super) fn continue_in(
        &mut self,
        input: usize,
        samples: &mut [u8],
        events: &Events,
        endian: Endian,
        limits: &Limits,
    ) -> Result<()> {
        let mut rest = samples;
        while let Ok(record) = RawRecord::first(rest, endian, 0) {
            let len = record.bytes.len();
            let Some((sample, next)) = rest.split_at_mut_checked(len).filter(|_| len > 0) else {
                break;
            };
            self.continue_in_one(input, sample, events, endian);
            rest = next;
        }
        let counters = self.last.len().saturating_add(self.merged.len()) as u64;
        limits.check_metadata("counters", counters.saturating_mul(COUNTER))
    }

    fn continue_in_one(
        &mut self,
        input: usize,
        sample: &mut [u8],
        events: &Events,
        endian: Endian,
    ) {
        let record = RawRecord {
            offset: 0,
            kind: RecordType::SAMPLE,
            misc: 0,
            bytes: sample,
            endian,
        };
        let Some((number, view)) = events.look(&record) else {
            return;
        };
        let attr = events.get(number).map(|event| &event.attr);
        let Some(attr) = attr.filter(|attr| attr.sample_type.has(SampleType::READ)) else {
            return;
        };
        let is_inherited = attr.flags.inherit() == 1;
        let thread = view.tid().map(|tid| tid.tid).filter(|_| is_inherited);
        let own = view.identifier().or(view.id());
        let period = view.period().or(attr.period()).unwrap_or(0);
        let key = |id: Option<u64>| (id.or(own).unwrap_or(0), thread);
        self.sample.clear();
        let counters = view.counters().map(|(id, value)| (key(id), value));
        self.sample.extend(counters);
        let continues = self.continues(period);
        for &(key, _) in &self.sample {
            let merged = self.merged.get(&key).copied().unwrap_or(0);
            let start = if continues { merged } else { 0 };
            self.last.entry((input, key)).or_insert(start);
        }
        events.rewrite_counters(number, sample, endian, |id, value| {
            let key = key(id);
            let last = self.last.entry((input, key)).or_default();
            let merged = self.merged.entry(key).or_default();
            *merged = merged.wrapping_add(value.wrapping_sub(*last));
            *last = value;
            *merged
        });
    }

    /// Returns whether the current sample, if it is the first one of an input with these IDs,
    /// continues the counters of the result: then its own event, which comes first, increased by
    /// about the `period` since the last sample of the result, and not since 0.
    fn continues(&self, period: u64) -> bool {
        let merged = |key| self.merged.get(key).copied().unwrap_or(0);
        let is_higher = self.sample.iter().all(|(key, value)| *value >= merged(key));
        let own = self.sample.first();
        is_higher && own.is_some_and(|(key, value)| value.saturating_sub(period) > merged(key) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn continues(merged: &[u64], sample: &[u64], period: u64) -> bool {
        let keys = (1..).map(|id| (id, None));
        let counters = Counters {
            merged: keys.clone().zip(merged.iter().copied()).collect(),
            sample: keys.zip(sample.iter().copied()).collect(),
            ..Counters::default()
        };
        counters.continues(period)
    }

    #[test]
    fn a_part_starts_at_0_and_the_next_file_does_not() {
        // The part of a recording, also after few samples.
        assert!(!continues(&[100_000, 7], &[1_010, 0], 1_000));
        assert!(!continues(&[1_000, 7], &[1_010, 9], 1_000));
        // The next file of the same run of perf.
        assert!(continues(&[100_000, 7], &[101_010, 7], 1_000));
        assert!(!continues(&[100_000, 7], &[101_010, 3], 1_000));
    }
}
