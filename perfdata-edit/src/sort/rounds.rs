//! New FINISHED_ROUND records for sorted records.

use perfdata_core::record::{Body, NoBody, Record};

use perfdata_convert::error::Result;
use perfdata_convert::pipeline::Link;

/// Adds FINISHED_ROUND records. Between sorted records, every position is correct for them.
///
/// perf queues records up to the second FINISHED_ROUND after them. Regular ones limit the length of
/// this queue. Two in succession make perf deliver all previous records, as before a record that it
/// does not queue.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Number of bytes since the last one.
    since: usize,
    /// Number of them after which perf has delivered all previous records.
    missing: u8,
}

impl Rounds {
    /// Size of a round in bytes.
    const SIZE: usize = 2 << 20;

    /// Processes a record of `size` bytes that perf queues, before it is forwarded.
    #[inline]
    pub(super) fn before_queued(&mut self, size: usize, next: &mut Link<'_>) -> Result<()> {
        if self.since >= Self::SIZE {
            self.end(next)?;
        }
        self.since = self.since.saturating_add(size);
        self.missing = 2;
        Ok(())
    }

    /// Processes a record that perf does not queue, before it is forwarded.
    pub(super) fn before_unqueued(&mut self, next: &mut Link<'_>) -> Result<()> {
        while self.missing > 0 {
            self.end(next)?;
        }
        Ok(())
    }

    /// Ends the last round, as `perf record` does: programs other than perf may deliver records only
    /// then.
    pub(super) fn finish(&mut self, next: &mut Link<'_>) -> Result<()> {
        if self.since > 0 {
            self.end(next)?;
        }
        Ok(())
    }

    fn end(&mut self, next: &mut Link<'_>) -> Result<()> {
        self.since = 0;
        self.missing = self.missing.saturating_sub(1);
        next.write(&Record::new(Body::FinishedRound(NoBody {})))
    }
}
