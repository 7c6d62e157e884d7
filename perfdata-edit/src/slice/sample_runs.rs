//! Runs of samples in a file. The second pass skips those of which nothing is selected.

use perfdata_core::feature::SampleTime;
use perfdata_core::header::FileSection;
use perfdata_core::record::RawRecord;

use super::numbers::Bits;
use perfdata_convert::io::{Gap, Gaps};

/// The smallest run that is worth a read of its own behind it, and the size at which a run ends, in
/// bytes.
const LEAST: u64 = 128 << 10;
const MOST: u64 = 2 << 20;

/// Consecutive samples.
#[derive(Debug, Clone, Copy, Default)]
struct SampleRun {
    /// Number of the first record, and number of records.
    first: u64,
    count: u64,
    /// Offsets of the first record and behind the last one.
    offset: u64,
    end: u64,
}

impl SampleRun {
    fn len(&self) -> u64 {
        self.end.saturating_sub(self.offset)
    }
}

/// The runs of a file.
#[derive(Debug, Default)]
pub(super) struct SampleRuns {
    runs: Vec<SampleRun>,
    current: SampleRun,
}

impl SampleRuns {
    /// Receives each sample of the file, in its order, with the number of the record.
    #[inline]
    pub(super) fn see(&mut self, number: u64, record: &RawRecord<'_>) {
        let end = record.offset.saturating_add(record.bytes.len() as u64);
        if record.offset != self.current.end || self.current.len() >= MOST {
            self.keep();
            self.current = SampleRun {
                first: number,
                count: 0,
                offset: record.offset,
                end: record.offset,
            };
        }
        self.current.count = self.current.count.saturating_add(1);
        self.current.end = end;
    }

    fn keep(&mut self) {
        if self.current.len() >= LEAST {
            self.runs.push(self.current);
        }
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.runs.capacity().saturating_mul(size_of::<SampleRun>())
    }

    /// Returns the runs whose records are all in `dropped`. `times` are those of all samples.
    pub(super) fn gaps(mut self, dropped: &Bits, times: Option<SampleTime>) -> Gaps {
        self.keep();
        let mut gaps = Gaps::new(times);
        for run in &self.runs {
            if dropped.contains_all(run.first, run.count) {
                gaps.push(Gap {
                    place: FileSection {
                        offset: run.offset,
                        size: run.len(),
                    },
                    records: run.count,
                });
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::Endian;
    use perfdata_core::record::RecordType;

    use super::*;

    /// Returns the gaps among samples of `size` bytes at these offsets, all dropped except `kept`.
    fn gaps(offsets: impl Iterator<Item = u64>, size: usize, kept: u64) -> Vec<(u64, u64, u64)> {
        let mut bytes = vec![0; size];
        bytes[..8].copy_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
        bytes[6..8].copy_from_slice(&(size as u16).to_le_bytes());
        let (mut runs, mut dropped) = (SampleRuns::default(), Bits::default());
        for (number, offset) in (0..).zip(offsets) {
            let record = RawRecord::first(&bytes, Endian::Little, offset).expect("a record");
            assert_eq!(record.kind, RecordType::SAMPLE);
            runs.see(number, &record);
            if number != kept {
                dropped.insert(number);
            }
        }
        let gaps = runs.gaps(&dropped, None);
        let gap = |gap: &Gap| (gap.place.offset, gap.place.size, gap.records);
        gaps.as_slice().iter().map(gap).collect()
    }

    #[test]
    fn a_kept_sample_ends_a_gap_at_most_one_run_before() {
        let size = 1 << 15;
        let all = (0..1000).map(|number| 100 + number * (1 << 15));
        let found = gaps(all, size, 500);
        assert_eq!(found.len(), 2);
        let (start, len, count) = found[0];
        assert_eq!((start, len), (100, count << 15));
        let kept = 100 + (500 << 15);
        assert!(start + len <= kept && start + len + MOST >= kept);
        let (start, len, count) = found[1];
        assert_eq!((start + len, len), (100 + (1000 << 15), count << 15));
        assert!(start > kept && start <= kept + MOST);
    }

    #[test]
    fn other_records_are_in_no_gap() {
        // Another record is behind each 16 samples.
        let offsets = (0..160).map(|number| number * 0x4000 + number / 16 * 24);
        let found = gaps(offsets, 0x4000, u64::MAX);
        let expected = (0..10).map(|run| (run * (0x40000 + 24), 0x40000, 16));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn short_runs_are_no_gaps() {
        let offsets = (0..160).map(|number| number * 0x1000 + number / 16 * 24);
        assert!(gaps(offsets, 0x1000, u64::MAX).is_empty());
    }
}
