//! The times in which records were lost.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Events;
use perfdata_core::record::{RawRecord, RecordType, is_moment};

/// The times in which records were lost: of each CPU, from its last record before a LOST record to
/// this. The kernel writes a LOST record when there is space again (kernel/events/ring_buffer.c).
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Nanoseconds on the recording's clock; sorted and disjoint after [`close`](Self::close).
    list: Vec<(u64, u64)>,
    /// The time of the last record of each CPU.
    last: HashMap<u32, u64, RandomState>,
}

impl Losses {
    /// Maximum number of times that are kept apart. The closest ones are joined.
    const MOST: usize = 1 << 16;

    /// Adds a record. The records of a CPU must be in order.
    pub(super) fn see(&mut self, raw: &RawRecord<'_>, events: &Events) {
        let is_loss = matches!(raw.kind, RecordType::LOST | RecordType::LOST_SAMPLES);
        if !is_loss && raw.kind != RecordType::SAMPLE {
            return;
        }
        let Some(time) = events.time(raw).filter(|&time| is_moment(time)) else {
            return;
        };
        let cpu = match raw.kind {
            RecordType::SAMPLE => events.sample_view(raw).and_then(|view| view.cpu()),
            _ => events.trailer_cpu(raw),
        };
        // Without CPU, all records are those of one buffer.
        let cpu = cpu.unwrap_or(u32::MAX);
        let before = self.last.insert(cpu, time);
        if is_loss {
            if self.list.len() >= Self::MOST {
                self.close();
                self.halve();
            }
            self.list.push((before.unwrap_or(0).min(time), time));
        }
    }

    /// Joins every two times.
    fn halve(&mut self) {
        let joined = self.list.chunks(2).filter_map(|pair| {
            let (first, last) = (pair.first()?, pair.last()?);
            Some((first.0, last.1))
        });
        self.list = joined.collect();
    }

    /// Sorts the times, and joins those that overlap.
    pub(super) fn close(&mut self) {
        self.list.sort_unstable();
        self.list.dedup_by(|next, kept| {
            let overlaps = next.0 <= kept.1;
            if overlaps {
                kept.1 = kept.1.max(next.1);
            }
            overlaps
        });
    }

    /// Returns whether records may be missing between these times.
    pub(super) fn overlap(&self, begin: u64, end: u64) -> bool {
        let next = self.list.partition_point(|loss| loss.1 <= begin);
        self.list.get(next).is_some_and(|loss| loss.0 < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_found() {
        let mut losses = Losses {
            list: vec![(50, 60), (10, 20), (15, 30)],
            ..Losses::default()
        };
        losses.close();
        assert_eq!(losses.list, [(10, 30), (50, 60)]);
        let overlaps = [
            (0, 10),
            (0, 11),
            (29, 40),
            (30, 50),
            (12, 13),
            (60, 70),
            (0, 99),
        ];
        let expected = [false, true, true, false, true, false, true];
        assert_eq!(overlaps.map(|(a, b)| losses.overlap(a, b)), expected);
        losses.halve();
        assert_eq!(losses.list, [(10, 60)]);
    }
}
