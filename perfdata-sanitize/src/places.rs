//! Places of records in a file.

use std::ops::Range;

use perfdata_core::record::RawRecord;

/// The places of records that were checked, each by itself, as ranges of offsets. Between two
/// records is a header, which has zeros, so that no name goes from one record into the next.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Ranges of adjacent records, in file order.
    ranges: Vec<Range<u64>>,
}

impl Places {
    /// Ranges after this number are not noted, so that the search includes them.
    const MOST: usize = 1 << 16;

    /// Returns one place.
    pub(super) fn of(range: Range<u64>) -> Self {
        Places {
            ranges: vec![range],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, raw: &RawRecord<'_>) {
        let end = raw.offset.saturating_add(raw.bytes.len() as u64);
        let is_full = self.ranges.len() >= Self::MOST;
        match self.ranges.last_mut() {
            Some(last) if last.end == raw.offset => last.end = end,
            Some(last) if raw.offset < last.end => {}
            _ if is_full => {}
            _ => self.ranges.push(raw.offset..end),
        }
    }

    /// Returns all other places in `all`, which contains these places.
    pub(super) fn others(&self, all: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let starts = self.ranges.iter().map(|range| range.end);
        let ends = self.ranges.iter().map(|range| range.start);
        let between = [all.start]
            .into_iter()
            .chain(starts)
            .zip(ends.chain([all.end]));
        between
            .map(|(start, end)| start..end)
            .filter(|range| !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::Endian;
    use perfdata_core::record::RecordType;

    #[test]
    fn places_and_others_are_the_whole() {
        let mut places = Places::default();
        assert!(places.others(0..9).eq(std::iter::once(0..9)));
        for (offset, len) in [(16, 8), (24, 16), (64, 8)] {
            places.add(&RawRecord {
                offset,
                kind: RecordType::SAMPLE,
                misc: 0,
                bytes: &[0; 16][..len],
                endian: Endian::Little,
            });
        }
        let others: Vec<_> = places.others(0..u64::MAX).collect();
        assert_eq!(others, [0..16, 40..64, 72..u64::MAX]);
        assert!(places.others(16..72).eq(std::iter::once(40..64)));
    }
}
