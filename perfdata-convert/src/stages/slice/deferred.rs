//! Deferred user callchains, which belong to the slice if one of their samples does.
//!
//! The kernel writes a CALLCHAIN_DEFERRED record when the thread returns to user space, up to
//! milliseconds after its samples, maybe after the end of the slice (6.19). All samples of the
//! thread since it entered the kernel have the same cookie.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::numbers::Bits;

/// Thread ID and cookie.
type Key = (u32, u64);

/// The samples that wait for their user callchain.
#[derive(Debug)]
pub(super) struct Deferred {
    waiting: HashMap<Key, Waiting, RandomState>,
    /// Whether samples are decided after their callchains.
    is_late: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Whether a sample of the slice waits.
    is_kept: bool,
    /// The records with the callchain, if samples are decided later.
    records: Vec<u64>,
}

impl Deferred {
    pub(super) fn new(is_late: bool) -> Self {
        Deferred {
            waiting: HashMap::default(),
            is_late,
        }
    }

    /// Adds a sample.
    pub(super) fn sample(&mut self, key: Key, is_kept: bool) {
        self.waiting.entry(key).or_default().is_kept |= is_kept;
    }

    /// Adds a record with a callchain. Returns whether it is known not to belong to the slice:
    /// because no sample of the slice waits for it, or, if no sample does, because it `is_after`
    /// the end.
    pub(super) fn chain(&mut self, key: Key, number: u64, is_after: bool) -> bool {
        if self.is_late {
            self.waiting.entry(key).or_default().records.push(number);
            return false;
        }
        match self.waiting.remove(&key) {
            Some(waiting) => !waiting.is_kept,
            None => is_after,
        }
    }

    /// Decides about the remaining records.
    pub(super) fn finish(self, dropped: &mut Bits) {
        let waiting = self
            .waiting
            .into_values()
            .filter(|waiting| !waiting.is_kept);
        waiting
            .flat_map(|waiting| waiting.records)
            .for_each(|number| dropped.insert(number));
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.waiting.len().saturating_mul(96)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callchain_stays_with_its_sample() {
        let mut deferred = Deferred::new(false);
        deferred.sample((1, 10), true);
        deferred.sample((1, 10), false);
        deferred.sample((2, 10), false);
        assert!(!deferred.chain((1, 10), 5, true));
        assert!(deferred.chain((2, 10), 6, false));
        assert!(!deferred.chain((3, 10), 7, false));
        assert!(deferred.chain((3, 10), 8, true));
    }

    #[test]
    fn samples_may_be_decided_after_their_callchains() {
        let mut deferred = Deferred::new(true);
        assert!(!deferred.chain((1, 10), 5, false));
        assert!(!deferred.chain((2, 10), 6, false));
        deferred.sample((1, 10), true);
        deferred.sample((2, 10), false);
        let mut dropped = Bits::default();
        deferred.finish(&mut dropped);
        assert!(!dropped.contains(5) && dropped.contains(6));
    }
}
