//! What the first pass over a recording decides: which records each part of it contains. A slice is
//! the only part.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::feature::SampleTime;
use perfdata_core::record::{RawRecord, RecordType};

use super::by::By;
use super::numbers::Bits;
use super::parts::Key;
use super::processes::FileNames;
use super::tasks::Tasks;
use super::time_ranges::TimeRange;
use perfdata_convert::count::number_of;
use perfdata_convert::io::{Gaps, RecordFilter};
use perfdata_convert::pipeline::to_parts::PartNumber;

/// What the parts contain.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// The numbers of the records that no part contains.
    pub(super) dropped: Bits,
    /// What each part contains; `None` if there is only one.
    pub(super) divided: Option<Divided>,
    pub(crate) parts: Vec<Part>,
    /// Samples that no part contains, in runs that need not be read again.
    pub(super) gaps: Gaps,
    /// Number of samples that no part contains.
    pub(super) other_samples: u64,
    /// Number of samples of tracepoints that name a selected thread, which are not selected, or that
    /// name threads of other parts, which do not contain them.
    pub(super) related_samples: u64,
    /// Names of all mappings.
    pub(super) names: FileNames,
    /// Whether there are LOST_SAMPLES records, and AUX data.
    pub(super) has_lost_samples: bool,
    pub(super) has_aux_data: bool,
    /// Times of the first and the last sample of the input, in no part or in one, if there are
    /// several parts.
    pub(crate) times: Option<SampleTime>,
    /// Time of the first sample, where the first interval starts.
    pub(crate) start: u64,
}

/// A part of a recording.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) key: PartKey,
    /// Number of its samples.
    pub(crate) samples: u64,
    /// Times of its first and its last sample.
    pub(crate) first: Option<u64>,
    pub(crate) last: Option<u64>,
    /// Number of records about tasks that it does not need.
    pub(super) left_out: u64,
    /// The names that the other records map; `None` if it needs all of them.
    pub(super) mapped: Option<Bits>,
    /// The time of which AUX data is needed; `None` if all of it is.
    pub(super) span: Option<TimeRange>,
}

/// What the samples of a part have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum PartKey {
    /// Their times: the interval from the first one to the second one, which does not belong to it,
    /// in nanoseconds from the first sample.
    Interval(u64, u64),
    /// Their position in the order of time.
    Next,
    Pid(u32),
    Tid(u32),
    Comm(Vec<u8>),
    Cpu(u32),
    /// Name of the event.
    Event(Vec<u8>),
    /// Nothing: their keys are not known, or there are too many of them.
    #[default]
    Other,
}

/// The parts of each record.
#[derive(Debug, Default)]
pub(super) struct Divided {
    /// For each record, the part that contains it if it is a sample, or [`SHARED`].
    pub(super) samples: Vec<PartNumber>,
    /// The further parts of samples, by the numbers of the records, in ascending order.
    pub(super) also: Vec<(u64, PartNumber)>,
    /// For each record that is not a sample, the first part that may contain it.
    pub(super) first: Vec<PartNumber>,
    /// The ordinals of those that only this part contains.
    pub(super) single: Bits,
    /// The parts of those that only some parts contain, by their ordinals.
    pub(super) only: HashMap<u64, Vec<PartNumber>, RandomState>,
    /// For each part, the ordinals of the records about tasks that it does not need.
    pub(super) left_out: Vec<Bits>,
}

/// The mark of a record that is not a sample. Such records have ordinals.
pub(super) const SHARED: PartNumber = PartNumber::MAX;

impl PartKey {
    /// Returns the key for users. `tasks` knows the names of threads, `events` those of events.
    pub(super) fn of(key: Key, by: By, tasks: &Tasks, events: &[Vec<u8>]) -> Self {
        match (key, by) {
            (Key::Interval(number), By::Time(length)) => {
                let from = number.saturating_mul(length);
                PartKey::Interval(from, from.saturating_add(length))
            }
            (Key::Interval(_) | Key::Next(_), _) => PartKey::Next,
            (Key::Pid(pid), _) => PartKey::Pid(pid),
            (Key::Tid(tid), _) => PartKey::Tid(tid),
            (Key::Comm(comm), _) => PartKey::Comm(tasks.name(comm).to_vec()),
            (Key::Cpu(cpu), _) => PartKey::Cpu(cpu),
            (Key::Event(event), _) => {
                PartKey::Event(events.get(event).cloned().unwrap_or_default())
            }
            (Key::Other, _) => PartKey::Other,
        }
    }
}

impl Part {
    /// Returns a part without samples.
    #[cfg(test)]
    pub(crate) fn of(key: PartKey) -> Self {
        Part {
            key,
            ..Part::default()
        }
    }

    /// Returns the time in `span` of which the part contains samples. The intervals of parts start
    /// at `start`.
    pub(super) fn span(&self, start: u64, span: Option<TimeRange>) -> Option<TimeRange> {
        let PartKey::Interval(from, to) = self.key else {
            return span;
        };
        let (from, to) = (start.saturating_add(from), start.saturating_add(to));
        let end = to.saturating_sub(1);
        let span_start = span.map_or(0, |span| span.start);
        let span_end = span.and_then(|span| span.end).unwrap_or(u64::MAX);
        Some(TimeRange {
            start: from.max(span_start),
            end: Some(end.min(span_end)),
        })
    }
}

impl Divided {
    /// Returns whether `part` contains a record that is not a sample.
    pub(super) fn has(&self, part: PartNumber, ordinal: u64) -> bool {
        if let Some(parts) = self.only.get(&ordinal) {
            return parts.contains(&part);
        }
        let at = usize::try_from(ordinal).unwrap_or(usize::MAX);
        let first = self.first.get(at).copied().unwrap_or(0);
        if part < first || (part > first && self.single.contains(ordinal)) {
            return false;
        }
        let left_out = self.left_out.get(usize::from(part));
        left_out.is_none_or(|left_out| !left_out.contains(ordinal))
    }
}

impl Decisions {
    /// Returns the number of samples of all parts.
    pub(crate) fn samples(&self) -> u64 {
        self.parts
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.samples))
    }

    /// Returns the part of a sample, or [`SHARED`] for other records that several parts may
    /// contain; `None` if no part contains the record.
    #[inline]
    pub(super) fn part_of(&self, number: u64) -> Option<PartNumber> {
        if self.dropped.contains(number) {
            return None;
        }
        let Some(divided) = &self.divided else {
            return Some(0);
        };
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        Some(divided.samples.get(number).copied().unwrap_or(SHARED))
    }

    /// Returns the parts of a sample beside that of [`part_of`](Self::part_of).
    pub(super) fn also_of(&self, number: u64) -> impl Iterator<Item = PartNumber> {
        let also = self
            .divided
            .as_ref()
            .map_or(&[][..], |divided| &divided.also);
        let first = also.partition_point(|&(other, _)| other < number);
        let rest = also.get(first..).unwrap_or_default().iter();
        rest.take_while(move |&&(other, _)| other == number)
            .map(|&(_, part)| part)
    }

    /// Returns whether `part` contains a record that is not a sample and that is not dropped.
    pub(super) fn has(&self, part: PartNumber, ordinal: u64) -> bool {
        self.divided
            .as_ref()
            .is_none_or(|divided| divided.has(part, ordinal))
    }

    /// Returns whether only records that `part` does not need map an object.
    pub(super) fn is_left_out(&self, part: PartNumber, name: &[u8]) -> bool {
        let part = self.parts.get(usize::from(part));
        let mapped = part.and_then(|part| part.mapped.as_ref());
        mapped.is_some_and(|mapped| {
            self.names
                .find(name)
                .is_some_and(|name| !mapped.contains(name))
        })
    }

    /// Returns whether the only part contains all records.
    pub(super) fn are_none_dropped(&self) -> bool {
        self.dropped.len() == 0
    }

    /// Returns notes for the user about the parts.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let left_out = self.parts.iter().map(|part| part.left_out);
        let left_out = left_out.fold(0u64, u64::saturating_add);
        if left_out > 0 && !self.is_divided() {
            let records = number_of(left_out, "record");
            notes.push(format!(
                "left out {records} about tasks that no selected sample needs"
            ));
        }
        if self.related_samples > 0 {
            let samples = number_of(self.related_samples, "sample");
            notes.push(match self.is_divided() {
                true => format!(
                    "{samples} are also about threads of other parts, such as switches to them: \
                     --related adds them to these parts"
                ),
                false => format!(
                    "{samples} of other threads are about the selected ones, such as switches to \
                     them: --related keeps them"
                ),
            });
        }
        if self.has_lost_samples && self.is_divided() {
            notes.push("the numbers of lost samples of all parts are in the last one".into());
        } else if self.has_lost_samples && self.other_samples > 0 {
            notes.push("the numbers of lost samples still apply to the whole recording".into());
        }
        notes
    }

    /// Returns a filter of the records in `part`. It receives all records in the order of the
    /// input.
    pub(crate) fn filter(this: Arc<Self>, part: PartNumber) -> RecordFilter {
        Arc::new(move || {
            let this = this.clone();
            let (mut number, mut ordinal) = (0u64, 0u64);
            Box::new(move |record: &RawRecord<'_>| {
                let is_in = match this.part_of(number) {
                    None => false,
                    Some(SHARED) => this.has(part, ordinal),
                    Some(its) => its == part || this.also_of(number).any(|also| also == part),
                };
                number = number.saturating_add(1);
                if record.kind != RecordType::SAMPLE {
                    ordinal = ordinal.saturating_add(1);
                }
                is_in
            })
        })
    }

    /// Returns whether there are several parts.
    pub(super) fn is_divided(&self) -> bool {
        self.divided.is_some()
    }
}
