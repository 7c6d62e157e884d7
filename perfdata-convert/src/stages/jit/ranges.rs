//! The addresses of generated code.

use std::collections::BTreeMap;

/// A set of addresses, as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds the addresses from `start` up to `end`.
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut first, mut last) = (start, end);
        // Ranges that begin before the end of the new one, from the last.
        while let Some((&at, &until)) = self.0.range(..=end).next_back()
            && until >= start
        {
            self.0.remove(&at);
            first = first.min(at);
            last = last.max(until);
        }
        self.0.insert(first, last);
    }

    /// Returns whether the set contains an address from `start` up to `end`.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end
            && self
                .0
                .range(..end)
                .next_back()
                .is_some_and(|(_, &until)| until > start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (20, 25), (38, 52), (70, 70)] {
            ranges.add(start, end);
        }
        assert_eq!(ranges.0, BTreeMap::from([(10, 25), (30, 60)]));
        let overlaps = |start, end| ranges.overlaps(start, end);
        assert!(overlaps(0, 11) && overlaps(24, 25) && overlaps(0, 100) && overlaps(40, 41));
        assert!(!overlaps(0, 10) && !overlaps(25, 30) && !overlaps(60, 100) && !overlaps(40, 40));
        ranges.add(0, 100);
        assert_eq!(ranges.0, BTreeMap::from([(0, 100)]));
    }
}
