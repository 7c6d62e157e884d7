//! The addresses of generated code.

use std::collections::BTreeMap;

/// A set of addresses, as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds the addresses from `start` up to `end`. Returns those of them that were not in the set,
    /// from the highest.
    pub fn add(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut added = Vec::new();
        if start >= end {
            return added;
        }
        let (mut first, mut last) = (start, end);
        // The end of the addresses that may be new.
        let mut open = end;
        // Ranges that begin before the end of the new one, from the last.
        while let Some((&at, &until)) = self.0.range(..=end).next_back()
            && until >= start
        {
            self.0.remove(&at);
            if until < open {
                added.push((until, open));
            }
            open = open.min(at);
            first = first.min(at);
            last = last.max(until);
        }
        if start < open {
            added.push((start, open));
        }
        self.0.insert(first, last);
        added
    }

    /// Returns the ranges, from the lowest.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(&start, &end)| (start, end))
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.0.len()
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

    /// What is new is that of a set of single addresses.
    #[test]
    fn new_addresses_are_returned_once() {
        let (mut ranges, mut single) = (Ranges::default(), std::collections::BTreeSet::new());
        let mut state = 1_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let (start, len) = (state >> 33 & 0xff, state >> 45 & 0x1f);
            if single.len() > 240 {
                (ranges, single) = Default::default();
            }
            let new: Vec<u64> = (start..start + len)
                .filter(|&at| single.insert(at))
                .collect();
            let mut told = ranges.add(start, start + len);
            told.reverse();
            let told: Vec<u64> = told
                .into_iter()
                .flat_map(|(start, end)| start..end)
                .collect();
            assert_eq!(told, new);
        }
    }
}
