//! Histograms along an axis of unknown length, in constant memory.

use std::collections::BTreeMap;

/// Maximum number of bins per row.
pub const BINS: usize = 240;

/// Maximum number of rows; no chart shows more. Amounts for further rows are only counted.
const ROWS: usize = 1024;

/// Rows of amounts, in bins of equal width. Bins become wider as the axis grows.
#[derive(Debug, Clone)]
pub struct Bins<K> {
    /// The width of a bin is 2 to this power.
    shift: u32,
    /// The number of the first bin, counted from the origin of the axis.
    first: u64,
    /// Bins in use.
    used: usize,
    rows: BTreeMap<K, Vec<u64>>,
    left_out: u64,
}

impl<K: Ord> Default for Bins<K> {
    fn default() -> Self {
        Bins {
            shift: 0,
            first: 0,
            used: 0,
            rows: BTreeMap::new(),
            left_out: 0,
        }
    }
}

impl<K: Ord> Bins<K> {
    /// Adds `amount` to the row `key` at position `at`.
    pub fn add(&mut self, key: K, at: u64, amount: u64) {
        if self.rows.len() >= ROWS && !self.rows.contains_key(&key) {
            self.left_out = self.left_out.saturating_add(amount);
            return;
        }
        if self.used == 0 {
            self.first = at;
        }
        let (low, high) = loop {
            let bin = at >> self.shift;
            let last = self
                .first
                .saturating_add(self.used.saturating_sub(1) as u64);
            let (low, high) = (self.first.min(bin), last.max(bin));
            if high - low < BINS as u64 {
                break (low, high);
            }
            self.widen();
        };
        let front = usize::try_from(self.first - low).unwrap_or(0);
        if front > 0 {
            for row in self.rows.values_mut() {
                row.splice(0..0, std::iter::repeat_n(0, front));
            }
        }
        self.first = low;
        self.used = usize::try_from(high - low).unwrap_or(0) + 1;
        let bin = usize::try_from((at >> self.shift) - low).unwrap_or(0);
        let row = self.rows.entry(key).or_default();
        if row.len() <= bin {
            row.resize(bin + 1, 0);
        }
        if let Some(sum) = row.get_mut(bin) {
            *sum = sum.saturating_add(amount);
        }
    }

    /// Merges each pair of bins into one.
    fn widen(&mut self) {
        let odd = usize::from(self.first % 2 == 1);
        for row in self.rows.values_mut() {
            row.splice(0..0, std::iter::repeat_n(0, odd));
            *row = row
                .chunks(2)
                .map(|pair| {
                    pair.iter()
                        .fold(0, |sum: u64, part| sum.saturating_add(*part))
                })
                .collect();
        }
        self.used = (self.used + odd).div_ceil(2);
        self.first /= 2;
        self.shift += 1;
    }

    /// Returns the position where the first bin starts.
    pub fn start(&self) -> u64 {
        self.first << self.shift
    }

    /// Returns the width of a bin.
    pub fn width(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the rows, each with a number for every bin.
    pub fn rows(&self) -> impl Iterator<Item = (&K, impl Iterator<Item = u64>)> {
        self.rows.iter().map(|(key, row)| (key, self.whole(row)))
    }

    /// Returns the row `key`, with a number for every bin.
    pub fn row(&self, key: &K) -> Option<impl Iterator<Item = u64>> {
        self.rows.get(key).map(|row| self.whole(row))
    }

    fn whole(&self, row: &[u64]) -> impl Iterator<Item = u64> {
        let rest = self.used.saturating_sub(row.len());
        row.iter().copied().chain(std::iter::repeat_n(0, rest))
    }

    /// Returns the sum of the amounts that have no row.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_the_axis_grows() {
        let mut bins = Bins::default();
        let places = [1000, 1001, 5, 77_777, u64::MAX, 0, 1 << 40, u64::MAX / 2];
        for (row, at) in places.into_iter().enumerate() {
            bins.add(row % 3, at, 10);
            let total: u64 = bins.rows().flat_map(|(_, row)| row).sum();
            assert_eq!(total, 10 * (row as u64 + 1), "{at}");
            assert!(bins.used <= BINS);
        }
    }

    #[test]
    fn rows_do_not_grow_without_end() {
        let mut bins = Bins::default();
        (0..2 * ROWS).for_each(|row| bins.add(row, 0, 3));
        bins.add(0, 1, 3);
        assert_eq!(
            (bins.rows().count(), bins.left_out()),
            (ROWS, 3 * ROWS as u64)
        );
        assert_eq!(bins.row(&0).map(Iterator::sum), Some(6_u64));
    }

    #[test]
    fn what_is_near_stays_apart() {
        let mut bins = Bins::default();
        (0..1000).for_each(|at| bins.add((), 1 << 50 | at, 1));
        assert_eq!((bins.start(), bins.width()), (1 << 50, 8));
        let (_, row) = bins.rows().next().expect("a row");
        assert_eq!(row.collect::<Vec<_>>(), [8; 125]);
        bins.add((), (1 << 50) - 8, 1);
        assert_eq!(bins.start(), (1 << 50) - 8);
    }
}
