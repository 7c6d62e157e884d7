//! The samples of a flame graph: sums for each stack, thread, CPU and part of the time.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::counts::Sums;

/// Maximum number of parts of the time.
const PARTS: u64 = 512;

/// The number of parts below which other details are given up instead of time.
const FEW_PARTS: u64 = 32;

/// Default maximum number of rows.
const MOST_ROWS: usize = 1 << 18;

/// The value of a property that is unknown, or not told apart.
pub(super) const NONE: u32 = u32::MAX;

/// What is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    /// The recording: 0, or 1 for the one to compare with.
    pub side: u8,
    pub event: u32,
    pub thread: u32,
    pub cpu: u32,
    /// The part of the time.
    pub part: u32,
    pub node: u32,
}

/// The sums of all rows.
#[derive(Debug)]
pub(super) struct Rows {
    known: HashMap<Key, Sums, RandomState>,
    most: usize,
    /// The length of a part of the time is 2 to this power, in nanoseconds.
    shift: u32,
    has_times: bool,
    has_cpus: bool,
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            known: HashMap::default(),
            most: MOST_ROWS,
            shift: 0,
            has_times: true,
            has_cpus: true,
        }
    }
}

impl Rows {
    /// Adds a sample: `time` in nanoseconds since the first sample of its recording. Its part is
    /// set here.
    pub fn add(&mut self, mut key: Key, time: Option<u64>, weight: u64) {
        key.part = NONE;
        if let Some(time) = time.filter(|_| self.has_times) {
            while time.checked_shr(self.shift).unwrap_or(0) >= PARTS {
                self.widen();
            }
            let part = time.checked_shr(self.shift).unwrap_or(0);
            key.part = u32::try_from(part).unwrap_or(NONE);
        }
        if !self.has_cpus {
            key.cpu = NONE;
        }
        let sums = Sums { samples: 1, weight };
        self.known.entry(key).or_default().add(sums);
    }

    /// Changes all keys. The sums of rows that become equal are added up.
    pub fn change(&mut self, change: impl Fn(&mut Key)) {
        let old = std::mem::take(&mut self.known);
        for (mut key, sums) in old {
            change(&mut key);
            self.known.entry(key).or_default().add(sums);
        }
    }

    /// Makes each two parts of the time one.
    fn widen(&mut self) {
        self.shift = self.shift.saturating_add(1);
        self.change(|key| {
            if key.part != NONE {
                key.part >>= 1;
            }
        });
    }

    /// Returns whether there are too many rows.
    pub fn are_many(&self) -> bool {
        self.known.len() > self.most
    }

    /// Gives up details while there are too many rows: first the exact time, then CPUs, then the
    /// time. Returns false if there is nothing left to give up.
    pub fn coarsen(&mut self) -> bool {
        // Far enough that the next samples do not do the same again.
        let few = self.most / 2;
        while self.known.len() > few {
            let parts = self.parts();
            if parts > FEW_PARTS {
                self.widen();
            } else if self.has_cpus {
                self.has_cpus = false;
                self.change(|key| key.cpu = NONE);
            } else if self.has_times {
                self.has_times = false;
                self.change(|key| key.part = NONE);
            } else {
                return false;
            }
        }
        true
    }

    /// Returns the number of parts of the time in use.
    pub fn parts(&self) -> u64 {
        let parts = self.known.keys().map(|key| key.part);
        let last = parts.filter(|&part| part != NONE).max();
        last.map_or(0, |last| u64::from(last).saturating_add(1))
    }

    /// Returns the length of a part of the time in nanoseconds.
    pub fn part_length(&self) -> u64 {
        1_u64.checked_shl(self.shift).unwrap_or(u64::MAX)
    }

    /// Returns whether the rows tell CPUs apart, and the time.
    pub fn details(&self) -> (bool, bool) {
        (self.has_cpus, self.has_times)
    }

    /// Returns all rows in any order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Sums)> {
        self.known.iter()
    }

    /// Returns all rows, sorted.
    pub fn sorted(&self) -> Vec<(Key, Sums)> {
        let mut rows: Vec<(Key, Sums)> = self.iter().map(|(key, sums)| (*key, *sums)).collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cpu: u32, node: u32) -> Key {
        Key {
            side: 0,
            event: 0,
            thread: 0,
            cpu,
            part: NONE,
            node,
        }
    }

    fn total(rows: &Rows) -> u64 {
        rows.iter().map(|(_, sums)| sums.weight).sum()
    }

    #[test]
    fn parts_become_longer_with_the_recording() {
        let mut rows = Rows::default();
        for time in [0, 1, 511, 512, 1 << 20, u64::MAX] {
            rows.add(key(0, 1), Some(time), 10);
            assert!(rows.parts() <= PARTS);
        }
        assert_eq!(total(&rows), 60);
        assert_eq!(rows.part_length(), 1 << 55);
        rows.add(key(0, 1), None, 10);
        assert_eq!(total(&rows), 70);
    }

    #[test]
    fn details_are_given_up_one_after_the_other() {
        let mut rows = Rows {
            most: 100,
            ..Rows::default()
        };
        let mut given_up = Vec::new();
        for number in 0..5000_u32 {
            let node = if number < 2500 { 0 } else { number % 8 };
            rows.add(key(number % 5, node), Some(number.into()), 1);
            if rows.are_many() && !rows.coarsen() {
                break;
            }
            given_up.push(rows.details());
        }
        given_up.dedup();
        assert_eq!(given_up, [(true, true), (false, true), (false, false)]);
        assert_eq!(total(&rows), 5000);
        assert!(rows.parts() == 0 && rows.sorted().len() == 8);
        // With too many stacks, nothing is left to give up.
        for node in 0..200 {
            rows.add(key(0, 1000 + node), Some(1), 1);
        }
        assert!(rows.are_many() && !rows.coarsen());
    }
}
