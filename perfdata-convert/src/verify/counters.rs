//! The order of counter values in samples (`perf record -e '{…}:S'`).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Events;
use perfdata_core::record::SampleView;

use super::{Report, Severity};

/// The event ID, and the thread if the event is inherited.
type CounterKey = (u64, Option<u32>);

/// Maximum number of counters that are followed.
const MOST_COUNTERS: usize = 1 << 18;

/// A counter in a sample.
#[derive(Debug, Clone, Copy)]
struct Value {
    offset: u64,
    time: Option<u64>,
    count: u64,
}

/// The first and the last values of the counters of successive records.
#[derive(Debug, Default)]
pub(super) struct CounterCheck {
    values: HashMap<CounterKey, (Value, Value), RandomState>,
}

impl CounterCheck {
    /// Checks the counters of a sample of the event with the index `event`.
    #[inline]
    pub(super) fn check(
        &mut self,
        report: &mut Report,
        offset: u64,
        (event, sample): (usize, &SampleView<'_>),
        events: &Events,
    ) {
        let mut counters = sample.counters().peekable();
        if counters.peek().is_none() {
            return;
        }
        let event = events.get(event);
        let is_inherited = event.is_some_and(|event| event.attr.flags.inherit() == 1);
        let thread = sample.tid().map(|tid| tid.tid).filter(|_| is_inherited);
        let own = sample.identifier().or(sample.id());
        let time = sample.time();
        for (id, count) in counters {
            let key = (id.or(own).unwrap_or(0), thread);
            let value = Value {
                offset,
                time,
                count,
            };
            self.see(report, key, value, value);
        }
    }

    /// Adds the counters of later records.
    pub(super) fn append(&mut self, report: &mut Report, later: CounterCheck) {
        let mut later: Vec<(CounterKey, (Value, Value))> = later.values.into_iter().collect();
        later.sort_by_key(|(_, (first, _))| first.offset);
        for (key, (first, last)) in later {
            self.see(report, key, first, last);
        }
    }

    fn see(&mut self, report: &mut Report, key: CounterKey, first: Value, last: Value) {
        if let Some((_, known)) = self.values.get_mut(&key) {
            // Records of several CPUs are not in the order of time.
            if first.time >= known.time && first.count < known.count {
                let meaning = format!(
                    "SAMPLE record: the counter of the event ID {} is lower than in the sample \
                     before: perf shows a period of almost 2^64",
                    key.0
                );
                report.add(Severity::Warning, first.offset, meaning);
            }
            *known = last;
        } else if self.values.len() < MOST_COUNTERS {
            self.values.insert(key, (first, last));
        }
    }
}
