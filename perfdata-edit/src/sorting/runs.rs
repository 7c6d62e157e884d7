//! Sorted records in temporary files.

use perfdata_core::record::RawRecord;
use perfdata_core::spool::{self, StoredRecord, Writer};

use super::waiting::Waiting;
use perfdata_convert::error::Result;
use perfdata_convert::support::files::{temporary_file, temporary_file_failed};

/// Sorted runs of records, each in a temporary file. The records of a run preceded those of the
/// next one in the input.
#[derive(Debug, Default)]
pub(crate) struct Runs(spool::Runs<StoredRecord>);

impl Runs {
    /// Returns the oldest time.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.0.first().copied()
    }

    /// Moves all records of `waiting`, which are sorted, to a new run.
    pub(super) fn add(&mut self, waiting: &mut Waiting) -> Result<()> {
        let mut new = Writer::new(temporary_file()?);
        while let Some((time, record)) = waiting.first() {
            StoredRecord::store(time, &record, &mut new).map_err(temporary_file_failed())?;
            waiting.remove_first();
        }
        if new.count() == 0 {
            return Ok(());
        }
        self.0
            .add(new, || spool::temporary_file(tempfile::tempfile))
            .map_err(temporary_file_failed())
    }

    /// Removes the records of the runs and of `waiting`, which continues them, up to and including
    /// the time `until`, in order, and passes them to `give`.
    pub(crate) fn release(
        &mut self,
        until: u64,
        waiting: &mut Waiting,
        mut give: impl FnMut(&RawRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        loop {
            let in_memory = waiting.first().filter(|(time, _)| *time <= until);
            let most = in_memory.as_ref().map_or(until, |(time, _)| *time);
            if self.0.first().is_some_and(|time| *time <= most) {
                if let Some(stored) = self.0.pop().map_err(temporary_file_failed())? {
                    give(&stored.record()?)?;
                }
            } else if let Some((_, record)) = in_memory {
                give(&record)?;
                waiting.remove_first();
            } else {
                return Ok(());
            }
        }
    }

    /// Reads the next record; returns false at the end.
    pub(crate) fn advance(&mut self) -> std::io::Result<bool> {
        Ok(self.0.pop()?.is_some())
    }

    /// Returns the record that was read last.
    pub(crate) fn current(&self) -> Option<RawRecord<'_>> {
        self.0.current().record().ok()
    }
}
