//! One input of the merged records.

use std::collections::{BTreeSet, HashMap};

use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Result};

use super::blocks::{Block, Blocks};
use super::changes::Changes;
use super::survey::is_state;
use perfdata_convert::io::BoxedSource;

/// One input.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) plan: LanePlan,
    /// A second reader of the input for its AUX data, which are not sorted.
    pub(super) aux: Option<BoxedSource>,
    /// The time of the current record, or of the last record with a time, in the result.
    pub(super) time: u64,
    /// Whether the current record has a time.
    pub(super) has_time: bool,
    pub(super) begun: bool,
    /// The time of the last gap.
    pub(super) gap: Option<u64>,
    input: Blocks,
    block: Block,
}

/// What is decided about an input before its records are read.
#[derive(Debug, Clone, Default)]
pub(super) struct LanePlan {
    /// The changes to its records.
    pub(super) changes: Changes,
    /// The time for its records about what existed before it; `None` for the input that starts
    /// first, whose records have no time.
    pub(super) opening: Option<u64>,
    /// Whether nothing happened in it, so that it does not matter what existed before.
    pub(super) is_empty: bool,
    /// Whether the threads of earlier inputs end before it starts.
    pub(super) comes_after: bool,
    /// Whether it is another part of the recording that starts first.
    pub(super) continues_first: bool,
    /// If it was merged, the times at which its inputs begin.
    pub(super) openings: BTreeSet<u64>,
    /// If it was merged, the times of the gaps in it, and whether they are gaps in the result.
    pub(super) gaps: HashMap<u64, bool>,
    /// Whether its THREAD_MAP and CPU_MAP are kept; readers accept only one of each.
    pub(super) keeps_maps: bool,
    /// Whether its TIME_CONV is kept.
    pub(super) keeps_time_conv: bool,
    /// Whether its records have times.
    pub(super) is_timed: bool,
}

impl Lane {
    pub(super) fn new(
        name: String,
        input: Blocks,
        plan: LanePlan,
        aux: Option<BoxedSource>,
    ) -> Self {
        Lane {
            name,
            aux,
            time: plan.start(),
            plan,
            has_time: false,
            begun: false,
            gap: None,
            input,
            block: Block::default(),
        }
    }

    /// Returns the type of the current record; `None` at the end.
    #[inline]
    pub(super) fn kind(&self) -> Option<RecordType> {
        Some(self.block.place()?.kind)
    }

    /// Returns the current record as it is in the result, in the byte order `endian`.
    pub(super) fn current(&self, endian: Endian) -> Option<RawRecord<'_>> {
        self.block.current(endian)
    }

    /// Moves over the current record.
    pub(super) fn skip(&mut self) {
        self.block.skip();
    }

    /// Moves over the current record and samples after it: see [`Block::take_samples`].
    pub(super) fn take_samples(&mut self, size: usize, is_next: impl Fn(u64) -> bool) -> &[u8] {
        self.block.take_samples(size, is_next)
    }

    /// Reads the next record if there is no current one.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt, or a record cannot be changed.
    #[inline]
    pub(super) fn load(&mut self) -> Result<()> {
        if self.block.place().is_none() {
            self.input.next(&mut self.block)?;
        }
        if let Some(place) = self.block.place() {
            (self.time, self.has_time) = (place.time, place.has_time);
        }
        Ok(())
    }

    /// Returns the time by which the next record is merged; an input begins before its first one.
    pub(super) fn time_of_next(&self) -> u64 {
        if self.begun {
            self.time
        } else {
            self.plan.start()
        }
    }
}

impl LanePlan {
    /// Returns the time at which the input begins in the result.
    pub(super) fn start(&self) -> u64 {
        self.opening.unwrap_or(0)
    }

    /// Returns whether records of this type belong in the result.
    pub(super) fn keeps(&self, kind: RecordType, has_time: bool) -> bool {
        match kind {
            // They are at the start of the input.
            kind if is_state(kind) && !has_time && self.opening.is_some() => false,
            // Each is about the records of one input.
            RecordType::FINISHED_ROUND => false,
            RecordType::FINISHED_INIT => self.opening.is_none() && self.is_timed,
            RecordType::THREAD_MAP | RecordType::CPU_MAP => self.keeps_maps,
            RecordType::TIME_CONV => self.keeps_time_conv,
            // The model contains the former, and AUX data have their own reader.
            kind => !kind.is_metadata() && !kind.has_payload(),
        }
    }
}
