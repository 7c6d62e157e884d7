//! What an earlier merge left in a recording: the moments at which its inputs begin, and the gaps
//! between them. A merge of merged recordings treats these as it treats its own inputs, so that it
//! does not matter in which order recordings are merged.

use std::collections::{BTreeMap, BTreeSet};

use perfdata_core::record::{Body, RawRecord, Record, RecordType, is_moment};
use perfdata_core::{Events, Result};

use super::sideband::{is_kernel, thread_of};

/// The first and the last moment of a part of a recording, if there is any.
type Range = Option<(u64, u64)>;

/// The parts of a recording that gaps separate: during a gap, nothing was recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    first: Range,
    /// The others, by the time of the EXIT records that mark the gap before each.
    others: BTreeMap<u64, Range>,
    /// The times of records about what existed before an input.
    pub(super) openings: BTreeSet<u64>,
}

impl Spans {
    /// Sees a record with the time `time` other than a sample. Returns the number of bytes of
    /// memory that this needs.
    ///
    /// # Errors
    /// The record is corrupt.
    pub(super) fn see(
        &mut self,
        record: &RawRecord<'_>,
        events: &Events,
        time: u64,
    ) -> Result<usize> {
        if !is_moment(time) {
            return Ok(0);
        }
        if is_gap(record, events)? {
            // An input begins after each gap.
            self.openings.insert(time);
            self.others.entry(time).or_default();
            return Ok(size_of::<(u64, u64, Range)>());
        }
        if is_synthesized(record, events) {
            if self.openings.contains(&time) {
                return Ok(0);
            }
            // Records about the kernel may have such a trailer, too, if another process namespace
            // caused them.
            let thread = thread_of(record, events)?;
            if thread.is_some_and(|thread| thread.tid != 0 || is_kernel(&thread)) {
                self.openings.insert(time);
                return Ok(size_of::<u64>());
            }
        }
        self.extend(time);
        Ok(0)
    }

    /// Sees a moment of a recording.
    #[inline]
    pub(super) fn extend(&mut self, time: u64) {
        let mut before = self.others.range_mut(..=time);
        let range = before.next_back().map(|(_, range)| range);
        extend(range.unwrap_or(&mut self.first), time);
    }

    /// Returns the first and the last moment of all parts.
    pub(super) fn range(&self) -> Range {
        let ranges = self.iter().filter_map(|(_, range)| range);
        ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns the parts in the order of time: the time of the gap before it, and its range.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<u64>, Range)> {
        let others = self.others.iter().map(|(&gap, &range)| (Some(gap), range));
        std::iter::once((None, self.first)).chain(others)
    }
}

/// Extends a range of moments.
pub(super) fn extend(range: &mut Range, time: u64) {
    let (first, last) = range.unwrap_or((time, time));
    *range = Some((first.min(time), last.max(time)));
}

/// Returns whether this EXIT record marks a gap: the kernel always names a parent.
pub(super) fn is_gap(record: &RawRecord<'_>, events: &Events) -> Result<bool> {
    if record.kind != RecordType::EXIT {
        return Ok(false);
    }
    let decoded = Record::decode(record, &events.layout_of(record))?;
    Ok(matches!(
        decoded.body,
        Body::Exit(task) if (task.ppid, task.ptid) == (u32::MAX, u32::MAX)
    ))
}

/// Returns whether perf may have synthesized this record with a trailer: it is of such a type, and
/// the trailer contains no process (tools/perf/util/synthetic-events.c).
#[inline]
pub(super) fn is_synthesized(record: &RawRecord<'_>, events: &Events) -> bool {
    matches!(
        record.kind,
        RecordType::MMAP
            | RecordType::MMAP2
            | RecordType::COMM
            | RecordType::FORK
            | RecordType::NAMESPACES
            | RecordType::CGROUP
            | RecordType::KSYMBOL
            | RecordType::BPF_EVENT
    ) && events.trailer_tid(record) == Some((0, 0))
}
