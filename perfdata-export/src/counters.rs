//! What the counters in samples counted (`perf record -e '{…}:S'`).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;

/// The last value of each counter.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// By the IDs of the counters, and for counters of threads the thread ID.
    last: HashMap<(u64, Option<u32>), u64, RandomState>,
    /// Number of samples with a counter that is lower than in the sample before.
    restarted: u64,
}

impl Counters {
    /// Appends the events of `counters`, which are IDs and values, to `increases`, each with its
    /// increase since the last sample, without those that did not increase
    /// (tools/perf/util/session.c, `deliver_sample_value`). `tid` is the thread of the counters, if
    /// each thread has its own.
    ///
    /// A counter that is lower than before started again at 0, as in recordings that were appended
    /// to each other. perf takes the difference modulo 2^64 then.
    pub fn see(
        &mut self,
        recording: &Recording,
        counters: impl Iterator<Item = (Option<u64>, u64)>,
        tid: Option<u32>,
        increases: &mut Vec<(usize, u64)>,
    ) {
        let mut is_restarted = false;
        for (id, value) in counters {
            let Some(event) = id.and_then(|id| recording.events.of_id_strict(id)) else {
                continue;
            };
            let last = self.last.entry((id.unwrap_or_default(), tid)).or_default();
            let increase = value.checked_sub(*last);
            is_restarted |= increase.is_none();
            let increase = increase.unwrap_or(value);
            *last = value;
            if increase > 0 {
                increases.push((event, increase));
            }
        }
        self.restarted = self.restarted.saturating_add(u64::from(is_restarted));
    }

    /// Returns the number of samples with a counter that is lower than in the sample before.
    pub fn restarted(&self) -> u64 {
        self.restarted
    }
}
