//! Samples between the changes of their threads, without sorting the samples.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "counts of what is in memory, and places in it"
)]

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::CommChange;

/// The changes of a part of the stream by thread, and the number of samples before each change and
/// after the last one of each thread.
#[derive(Debug, Default)]
pub struct Pending {
    threads: HashMap<u32, ThreadPlaces, RandomState>,
    /// The times of changes. Each thread has adjacent places, in time order, and one more after its
    /// last change.
    times: Vec<u64>,
    samples: Vec<u64>,
    /// The places of the changes in time order.
    of_change: Vec<usize>,
}

/// The places of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadPlaces {
    /// The place of the first change.
    first: usize,
    /// Number of changes.
    count: usize,
}

/// Samples of one thread between the same changes.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The thread.
    pub tid: u32,
    /// The earliest and the latest time of samples of this run.
    from: u64,
    until: u64,
    /// Where the samples count in [`Pending`]; `None` if the thread has no changes.
    pub place: Option<usize>,
    /// Number of samples.
    pub samples: u64,
}

impl Default for Run {
    /// Returns a run that contains no sample.
    fn default() -> Self {
        Run {
            tid: 0,
            from: u64::MAX,
            until: 0,
            place: None,
            samples: 0,
        }
    }
}

impl Run {
    /// Returns whether a sample belongs to the run.
    #[inline]
    pub fn has(&self, time: u64, tid: u32) -> bool {
        self.tid == tid && self.from <= time && time <= self.until
    }
}

impl Pending {
    /// Returns the places of `changes`, which are in time order.
    pub fn of(changes: &[(u64, CommChange)]) -> Self {
        let mut pending = Pending::default();
        for (_, change) in changes {
            pending.threads.entry(change.tid()).or_default().count += 1;
        }
        let mut len = 0;
        for thread in pending.threads.values_mut() {
            thread.first = len;
            len += thread.count + 1;
            thread.count = 0;
        }
        (pending.times, pending.samples) = (vec![0; len], vec![0; len]);
        for (time, change) in changes {
            let Some(thread) = pending.threads.get_mut(&change.tid()) else {
                continue;
            };
            let place = thread.first + thread.count;
            thread.count += 1;
            if let Some(known) = pending.times.get_mut(place) {
                *known = *time;
            }
            pending.of_change.push(place);
        }
        pending
    }

    /// Returns an empty run for a sample.
    pub fn run(&self, time: u64, tid: u32) -> Run {
        let mut run = Run {
            tid,
            from: 0,
            until: u64::MAX,
            place: None,
            samples: 0,
        };
        if let Some(&ThreadPlaces { first, count }) = self.threads.get(&tid) {
            let times = self.times.get(first..first + count).unwrap_or_default();
            let before = times.partition_point(|&change| change <= time);
            if let Some(&change) = before.checked_sub(1).and_then(|last| times.get(last)) {
                run.from = change;
            }
            if let Some(&change) = times.get(before) {
                run.until = change.saturating_sub(1);
            }
            run.place = Some(first + before);
        }
        run
    }

    /// Adds samples at a place.
    #[inline]
    pub fn add(&mut self, place: usize, samples: u64) {
        if let Some(sum) = self.samples.get_mut(place) {
            *sum += samples;
        }
    }

    /// Returns the number of samples before change number `at`, since the previous change of its
    /// thread.
    pub fn before(&self, at: usize) -> u64 {
        let place = self.of_change.get(at);
        place
            .and_then(|&place| self.samples.get(place))
            .copied()
            .unwrap_or(0)
    }

    /// Returns the numbers of samples after the last changes of the threads.
    pub fn after(&self) -> impl Iterator<Item = (u32, u64)> {
        self.threads
            .iter()
            .map(|(&tid, &ThreadPlaces { first, count })| {
                (tid, self.samples.get(first + count).copied().unwrap_or(0))
            })
    }
}
