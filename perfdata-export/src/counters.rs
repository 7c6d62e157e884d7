//! What the counters in samples counted (`perf record -e '{…}:S'`).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;

/// The last value of each counter.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// By the IDs of the counters, and for counters of threads the thread ID.
    last: HashMap<(u64, Option<u32>), u64, RandomState>,
}

impl Counters {
    /// Appends the events of `counters`, which are IDs and values, to `increases`, each with its
    /// increase since the last sample, without those that did not increase
    /// (tools/perf/util/session.c, `deliver_sample_value`). `tid` is the thread of the counters, if
    /// each thread has its own.
    pub fn see(
        &mut self,
        recording: &Recording,
        counters: impl Iterator<Item = (Option<u64>, u64)>,
        tid: Option<u32>,
        increases: &mut Vec<(usize, u64)>,
    ) {
        for (id, value) in counters {
            let Some(event) = id.and_then(|id| recording.events.of_id_strict(id)) else {
                continue;
            };
            let last = self.last.entry((id.unwrap_or_default(), tid)).or_default();
            let increase = value.wrapping_sub(*last);
            *last = value;
            if increase > 0 {
                increases.push((event, increase));
            }
        }
    }
}
