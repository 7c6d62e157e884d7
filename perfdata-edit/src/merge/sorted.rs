//! The records of one input in the order of time.

use perfdata_core::Recording;
use perfdata_core::read::ByTime;
use perfdata_core::record::{RawRecord, is_known_time};

use crate::sorting::{Runs, Waiting};
use perfdata_convert::error::Result;
use perfdata_convert::io::{BoxedSource, each_record};

/// Maximum size in bytes of the records that are sorted at once.
const MEMORY: usize = 32 << 20;

/// Size in bytes of the parts in which these are reserved.
const PART: usize = 256 << 10;

/// The records of an input in the order of time, without payloads.
pub(super) enum Sorted {
    /// By the rounds of perf.
    Rounds(Box<ByTime<BoxedSource>>),
    /// By sorted runs in temporary files, because there are no rounds or they are not true.
    Runs(Box<SortedRuns>),
}

impl Sorted {
    /// Orders the records of `source`; `is_orderly` says whether [`ByTime`] does it.
    ///
    /// # Errors
    /// The input cannot be read, or a temporary file cannot be written.
    pub(super) fn new(source: BoxedSource, is_orderly: bool) -> Result<Sorted> {
        Ok(if is_orderly {
            Sorted::Rounds(Box::new(ByTime::new(source)))
        } else {
            Sorted::Runs(Box::new(SortedRuns::of(source)?))
        })
    }

    /// Reads the next record; returns false at the end.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt.
    #[inline]
    pub(super) fn advance(&mut self) -> perfdata_core::Result<bool> {
        match self {
            Sorted::Rounds(records) => records.advance(),
            Sorted::Runs(runs) => {
                let failed = |error| perfdata_core::Error::io("temporary file", error);
                runs.records.advance().map_err(failed)
            }
        }
    }

    /// Returns the record that was read last.
    #[inline]
    pub(super) fn current(&self) -> Option<RawRecord<'_>> {
        match self {
            Sorted::Rounds(records) => records.current().map(|record| *record),
            Sorted::Runs(runs) => runs.records.current(),
        }
    }

    /// Returns the time of this record, if it has a known one.
    #[inline]
    pub(super) fn time(&self) -> Option<u64> {
        match self {
            Sorted::Rounds(records) => records.time(),
            Sorted::Runs(runs) => time_of(&runs.records.current()?, &runs.recording),
        }
    }
}

/// An input that was sorted.
pub(super) struct SortedRuns {
    recording: Recording,
    records: Runs,
}

impl SortedRuns {
    fn of(mut source: BoxedSource) -> Result<Self> {
        let mut runs = Runs::default();
        let mut waiting = Waiting::new(PART);
        // Of the last record that has one.
        let mut time = 0;
        each_record(&mut *source, |record, recording| {
            if record.kind.has_payload() {
                return Ok(());
            }
            time = time_of(record, recording).unwrap_or(time);
            waiting.push(time, record);
            match waiting.weight() >= MEMORY {
                true => waiting.move_to(&mut runs),
                false => Ok(()),
            }
        })?;
        if let Some(damage) = source.take_damage() {
            return Err(damage.into());
        }
        waiting.move_to(&mut runs)?;
        Ok(SortedRuns {
            recording: source.recording().clone(),
            records: runs,
        })
    }
}

/// Returns the time by which a record is sorted.
fn time_of(record: &RawRecord<'_>, recording: &Recording) -> Option<u64> {
    recording
        .events
        .time(record)
        .filter(|&time| is_known_time(time))
}
