//! What perf has delivered when it reads a record.

use perfdata_core::Events;
use perfdata_core::record::{RawRecord, is_known_time};

/// The time up to which perf has delivered the records that it has read.
///
/// perf queues records by time. At a FINISHED_ROUND, it delivers the records up to the latest time
/// before the previous FINISHED_ROUND (tools/perf/util/ordered-events.c, Linux 7.2,
/// `__ordered_events__flush`). It never queues records without a known time: it delivers them when
/// it reads them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Delivered {
    /// The latest time so far, and the latest time before the last FINISHED_ROUND.
    youngest: u64,
    complete: u64,
    until: u64,
}

impl Delivered {
    /// Processes a record with this time.
    pub(super) fn see(&mut self, time: u64) {
        self.youngest = self.youngest.max(time);
    }

    /// Processes a FINISHED_ROUND record.
    pub(super) fn end_round(&mut self) {
        self.until = self.complete;
        self.complete = self.youngest;
    }

    /// Returns the time up to which all records are delivered, in nanoseconds; 0 if none are.
    pub(super) fn until(&self) -> u64 {
        self.until
    }
}

/// Returns the time by which perf queues the record, in nanoseconds; `None` if it does not queue
/// it.
#[inline]
pub(super) fn queued_time(record: &RawRecord<'_>, events: &Events) -> Option<u64> {
    events.time(record).filter(|&time| is_known_time(time))
}
