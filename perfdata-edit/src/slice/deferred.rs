//! Deferred user callchains, which belong to the slice if one of their samples does.
//!
//! The kernel writes a CALLCHAIN_DEFERRED record when the thread returns to user space, up to
//! milliseconds after its samples, maybe after the end of the slice (6.19). All samples of the
//! thread since it entered the kernel have the same cookie.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use perfdata_convert::pipeline::to_parts::PartNumber;

/// Thread ID and cookie.
type Cookie = (u32, u64);

/// The samples that wait for their user callchain.
#[derive(Debug)]
pub(super) struct Deferred {
    waiting: HashMap<Cookie, WaitingSample, RandomState>,
    /// Whether samples are decided after their callchains.
    is_late: bool,
}

#[derive(Debug, Default)]
struct WaitingSample {
    /// The parts that contain samples which wait; none if these samples are dropped.
    parts: Vec<PartNumber>,
    /// The records with the callchain, if samples are decided later.
    records: Vec<u64>,
}

/// Which parts contain a record with a callchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Chain {
    /// Those with its samples; none if these samples are dropped.
    In(Vec<PartNumber>),
    /// No sample waits for it.
    Unknown,
    /// This is decided at the end.
    Later,
}

impl Deferred {
    pub(super) fn new(is_late: bool) -> Self {
        Deferred {
            waiting: HashMap::default(),
            is_late,
        }
    }

    /// Adds a sample, with its part if it is not dropped.
    pub(super) fn sample(&mut self, key: Cookie, part: Option<PartNumber>) {
        let parts = &mut self.waiting.entry(key).or_default().parts;
        if let Some(part) = part.filter(|part| !parts.contains(part)) {
            parts.push(part);
        }
    }

    /// Adds a record with a callchain.
    pub(super) fn chain(&mut self, key: Cookie, number: u64) -> Chain {
        if self.is_late {
            self.waiting.entry(key).or_default().records.push(number);
            return Chain::Later;
        }
        match self.waiting.remove(&key) {
            Some(waiting) => Chain::In(waiting.parts),
            None => Chain::Unknown,
        }
    }

    /// Passes the remaining records and their parts to `decide`.
    pub(super) fn finish(self, mut decide: impl FnMut(u64, &[PartNumber])) {
        for waiting in self.waiting.into_values() {
            for number in waiting.records {
                decide(number, &waiting.parts);
            }
        }
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.waiting.len().saturating_mul(112)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callchain_stays_with_its_samples() {
        let mut deferred = Deferred::new(false);
        deferred.sample((1, 10), Some(0));
        deferred.sample((1, 10), None);
        deferred.sample((1, 10), Some(2));
        deferred.sample((1, 10), Some(0));
        deferred.sample((2, 10), None);
        assert_eq!(deferred.chain((1, 10), 5), Chain::In(vec![0, 2]));
        assert_eq!(deferred.chain((2, 10), 6), Chain::In(vec![]));
        assert_eq!(deferred.chain((3, 10), 7), Chain::Unknown);
    }

    #[test]
    fn samples_may_be_decided_after_their_callchains() {
        let mut deferred = Deferred::new(true);
        assert_eq!(deferred.chain((1, 10), 5), Chain::Later);
        assert_eq!(deferred.chain((2, 10), 6), Chain::Later);
        deferred.sample((1, 10), Some(3));
        deferred.sample((2, 10), None);
        let mut decided = Vec::new();
        deferred.finish(|number, parts| decided.push((number, parts.to_vec())));
        decided.sort();
        assert_eq!(decided, [(5, vec![3]), (6, vec![])]);
    }
}
