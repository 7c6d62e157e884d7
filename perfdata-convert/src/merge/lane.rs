//! One input of the merged records.

use std::collections::{BTreeSet, HashMap};

use perfdata_core::record::RecordType;
use perfdata_core::{Events, Result};

use super::changes::Changes;
use super::sorted::Sorted;
use super::survey::is_state;
use crate::io::BoxedSource;

/// One input.
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) records: Sorted,
    pub(super) events: Events,
    pub(super) plan: LanePlan,
    /// A second reader of the input for its AUX data, which are not sorted.
    pub(super) aux: Option<BoxedSource>,
    /// The time of the current record, or of the last record with a time, in the result.
    pub(super) time: u64,
    /// The type of the current record, if there is one, and whether the record has a time.
    pub(super) kind: Option<RecordType>,
    pub(super) has_time: bool,
    pub(super) begun: bool,
    /// Whether records remain the same.
    pub(super) is_neutral: bool,
    /// The time of the last gap.
    pub(super) gap: Option<u64>,
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
        records: Sorted,
        events: Events,
        plan: LanePlan,
        aux: Option<BoxedSource>,
    ) -> Self {
        Lane {
            name,
            records,
            events,
            aux,
            time: plan.opening.unwrap_or(0),
            is_neutral: plan.changes.is_neutral(),
            plan,
            kind: None,
            has_time: false,
            begun: false,
            gap: None,
        }
    }

    /// Reads the next record that belongs in the result.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<()> {
        self.kind = None;
        while self
            .records
            .advance()
            .map_err(|error| error.inside(&self.name))?
        {
            let Some(kind) = self.records.current().map(|record| record.kind) else {
                continue;
            };
            if kind.is_kernel() {
                let time = self.records.time();
                self.has_time = time.is_some();
                if let Some(time) = time {
                    self.time = self.plan.changes.time_of(time).max(self.time);
                }
            }
            if kind == RecordType::SAMPLE || self.plan.keeps(kind, self.has_time) {
                self.kind = Some(kind);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the time by which the next record is merged; an input begins before its first one.
    pub(super) fn time_of_next(&self) -> u64 {
        if self.begun {
            self.time
        } else {
            self.plan.opening.unwrap_or(0)
        }
    }
}

impl LanePlan {
    /// Returns whether records of this type belong in the result.
    fn keeps(&self, kind: RecordType, has_time: bool) -> bool {
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
