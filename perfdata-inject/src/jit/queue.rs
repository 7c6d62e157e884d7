//! The mappings that are not written yet, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A mapping of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping {
    /// Index of the dump.
    pub dump: u32,
    /// Index of the function in the dump.
    pub function: u32,
    /// The thread that generated or moved it.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub len: u64,
}

/// Mappings in the order of time; those of the same time in the order in which they were added.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: BinaryHeap<Reverse<(u64, u64, Mapping)>>,
    added: u64,
}

impl Queue {
    /// Adds a mapping at `time`.
    pub fn push(&mut self, time: u64, mapping: Mapping) {
        self.waiting.push(Reverse((time, self.added, mapping)));
        self.added = self.added.saturating_add(1);
    }

    /// Removes the next mapping whose time is not after `time`, and returns it with its time.
    pub fn pop(&mut self, time: u64) -> Option<(u64, Mapping)> {
        let Reverse((first, ..)) = self.waiting.peek()?;
        if *first > time {
            return None;
        }
        let Reverse((time, _, mapping)) = self.waiting.pop()?;
        Some((time, mapping))
    }

    /// Returns whether no mapping waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
