//! Time order.
//!
//! perf reads the ring buffers of the CPUs one after the other, so a stream is in time order only
//! within each CPU's part of a round. All items after the FINISHED_ROUND that ends a round are
//! younger than all items before that round (tools/perf/util/ordered-events.c, Linux 2.6.35).
//! Therefore two rounds are buffered, and sorted when complete.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "counts of what is in memory, and places in it"
)]

use std::collections::VecDeque;

/// The buffered data of a part of a stream: a list of items.
pub trait Waiting: Default {
    /// Returns the number of items, including those that no longer wait.
    fn len(&self) -> usize;

    /// Returns whether there is no item.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory use in bytes.
    fn weight(&self) -> usize;

    /// Adds item number `at` of another part.
    fn push_from(&mut self, other: &Self, at: usize);

    /// Removes all items and keeps the memory.
    fn clear(&mut self);
}

/// Items of a stream that wait for older ones.
///
/// Items with the same time keep the order of the stream. Memory is bounded: if rounds are missing
/// or very long, the older half of the waiting items is released first. As in perf, its order is
/// then correct only as far as it can be known at that time.
#[derive(Debug)]
pub struct OrderedEvents<P> {
    /// Parts of the stream, each with the number of its waiting items. The first part has the
    /// number `first`.
    parts: VecDeque<(P, usize)>,
    first: usize,
    /// Time, part number and item number of the waiting items, sorted up to `ready`; items before
    /// `next` no longer wait.
    order: Vec<(u64, usize, usize)>,
    next: usize,
    ready: usize,
    /// Memory for the items that a release does not concern; empty between releases.
    younger: Vec<(u64, usize, usize)>,
    /// The latest time so far, and the latest time at the end of the last round.
    youngest: u64,
    complete: u64,
    most: usize,
    /// A finished part whose memory can be reused.
    spare: Option<P>,
}

impl<P: Waiting> OrderedEvents<P> {
    /// Returns a buffer for parts of `most` bytes in total, plus one part.
    pub fn new(most: usize) -> Self {
        OrderedEvents {
            parts: VecDeque::new(),
            first: 0,
            order: Vec::new(),
            next: 0,
            ready: 0,
            younger: Vec::new(),
            youngest: 0,
            complete: 0,
            most,
            spare: None,
        }
    }

    /// Adds a part of the stream, whose items do not wait yet.
    pub fn add(&mut self, part: P) {
        self.parts.push_back((part, 0));
    }

    /// Returns the part that was added last.
    pub fn last(&self) -> Option<&P> {
        self.parts.back().map(|(part, _)| part)
    }

    /// Returns the part that was added last, for modification.
    pub fn last_mut(&mut self) -> Option<&mut P> {
        self.parts.back_mut().map(|(part, _)| part)
    }

    /// Makes item number `at` of the last part wait until all items older than `time` have arrived.
    #[inline]
    pub fn wait(&mut self, time: u64, at: usize) {
        let Some(number) = self.parts.len().checked_sub(1) else {
            return;
        };
        if let Some((_, waiting)) = self.parts.back_mut() {
            *waiting += 1;
        }
        self.youngest = self.youngest.max(time);
        self.order.push((time, self.first + number, at));
    }

    /// Ends a round: releases the items that are not younger than the previous round.
    pub fn end_round(&mut self) {
        self.end_round_if(|_| true);
    }

    /// Ends a round. The items that it releases, up to the time that `is_sorted` receives, keep the
    /// order of the stream if that returns false: for items whose order among each other has no
    /// effect.
    pub fn end_round_if(&mut self, is_sorted: impl FnOnce(u64) -> bool) {
        self.release(self.complete, is_sorted(self.complete));
        self.complete = self.youngest;
    }

    /// Ends the stream: releases all items.
    pub fn finish(&mut self) {
        self.release(u64::MAX, true);
    }

    /// Returns whether an item is released and not yet returned.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.next < self.ready
    }

    /// Returns the next released item: its part, and its number in that part.
    // Not an iterator: the items are borrowed.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<(&P, usize)> {
        let &(_, number, at) = self
            .order
            .get(self.next)
            .filter(|_| self.next < self.ready)?;
        self.next += 1;
        let (part, waiting) = self.parts.get_mut(number - self.first)?;
        *waiting = waiting.saturating_sub(1);
        Some((part, at))
    }

    /// Returns the item that [`next`](Self::next) returned last; `None` after its part was removed.
    pub fn current(&self) -> Option<(&P, usize)> {
        let &(_, number, at) = self.order.get(self.next.checked_sub(1)?)?;
        let (part, _) = self.parts.get(number.checked_sub(self.first)?)?;
        Some((part, at))
    }

    /// Returns the time of the item that [`next`](Self::next) returned last.
    #[inline]
    pub fn current_time(&self) -> Option<u64> {
        Some(self.order.get(self.next.checked_sub(1)?)?.0)
    }

    /// Removes finished parts. If too many items wait, releases the older half. Must be called
    /// between parts.
    pub fn settle(&mut self) {
        self.forget();
        while !self.has_next() && self.weight() > self.most {
            // A few items that wait for a long time may keep many parts in memory.
            let items: usize = self.parts.iter().map(|(part, _)| part.len()).sum();
            if self.order.len() - self.next < items / 2 {
                self.compact();
            } else {
                self.sort();
                let middle = self.order.get(self.ready.midpoint(self.order.len()));
                self.release(middle.map_or(u64::MAX, |item| item.0), true);
            }
        }
    }

    /// Returns an empty part, with reused memory if available.
    pub fn spare(&mut self) -> P {
        self.spare.take().unwrap_or_default()
    }

    fn weight(&self) -> usize {
        self.parts.iter().map(|(part, _)| part.weight()).sum()
    }

    /// Removes the items that were returned.
    fn drain(&mut self) {
        self.order.drain(..self.next);
        self.ready -= self.next;
        self.next = 0;
    }

    /// Sorts stably and fast, because the waiting items are a few sorted runs.
    fn sort(&mut self) {
        self.drain();
        self.order
            .get_mut(self.ready..)
            .unwrap_or_default()
            .sort_by_key(|item| item.0);
    }

    /// Releases all items up to and including the time `until`, sorted by time or in the order of
    /// the stream.
    fn release(&mut self, until: u64, is_sorted: bool) {
        self.drain();
        // Only released items are sorted, so that each is sorted once.
        let younger = self.order.extract_if(self.ready.., |item| item.0 > until);
        self.younger.extend(younger);
        if is_sorted {
            self.sort();
        }
        self.ready = self.order.len();
        self.order.append(&mut self.younger);
    }

    fn forget(&mut self) {
        while self.parts.front().is_some_and(|(_, waiting)| *waiting == 0) {
            let Some((mut part, _)) = self.parts.pop_front() else {
                return;
            };
            self.first += 1;
            part.clear();
            self.spare = Some(part);
        }
    }

    /// Combines all waiting items in one part.
    fn compact(&mut self) {
        self.sort();
        let mut kept = P::default();
        for (to, (_, number, at)) in self.order.iter_mut().enumerate() {
            if let Some((part, _)) = self.parts.get(*number - self.first) {
                kept.push_from(part, *at);
            }
            (*number, *at) = (self.first, to);
        }
        self.parts = VecDeque::from([(kept, self.order.len())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Waiting for Vec<u64> {
        fn len(&self) -> usize {
            Vec::len(self)
        }
        fn weight(&self) -> usize {
            8 * Vec::len(self)
        }
        fn push_from(&mut self, other: &Self, at: usize) {
            self.extend(other.get(at));
        }
        fn clear(&mut self) {
            Vec::clear(self);
        }
    }

    fn add(rounds: &mut OrderedEvents<Vec<u64>>, times: impl IntoIterator<Item = u64>) {
        rounds.add(times.into_iter().collect());
        for at in 0..rounds.last().map_or(0, Vec::len) {
            let time = rounds.last().and_then(|times| times.get(at)).copied();
            rounds.wait(time.unwrap_or(0), at);
        }
    }

    fn ready(rounds: &mut OrderedEvents<Vec<u64>>) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some((part, at)) = rounds.next() {
            all.extend(part.get(at));
        }
        all
    }

    #[test]
    fn a_round_is_complete_with_the_one_behind_it() {
        let mut rounds = OrderedEvents::new(usize::MAX);
        add(&mut rounds, [30, 31, 10]);
        add(&mut rounds, [20]);
        rounds.end_round();
        assert!(!rounds.has_next());
        add(&mut rounds, [25, 40]);
        rounds.end_round();
        assert_eq!(ready(&mut rounds), [10, 20, 25, 30, 31]);
        rounds.settle();
        assert_eq!((rounds.parts.len(), rounds.spare().len()), (1, 0));
        rounds.finish();
        assert_eq!(ready(&mut rounds), [40]);
    }

    #[test]
    fn items_without_order_keep_that_of_the_stream() {
        let mut rounds = OrderedEvents::new(usize::MAX);
        add(&mut rounds, [30, 31, 10]);
        rounds.end_round();
        add(&mut rounds, [20, 40]);
        let mut limit = None;
        rounds.end_round_if(|until| {
            limit = Some(until);
            false
        });
        assert_eq!(limit, Some(31));
        assert_eq!(ready(&mut rounds), [30, 31, 10, 20]);
        rounds.finish();
        assert_eq!(ready(&mut rounds), [40]);
    }

    /// A few items with times far in the future do not keep their parts in memory, either.
    #[test]
    fn a_stream_without_rounds_does_not_fill_the_memory() {
        let mut rounds = OrderedEvents::new(8000);
        let mut all = Vec::new();
        for part in 0..100 {
            add(
                &mut rounds,
                (part * 100..(part + 1) * 100).chain([u64::MAX - 100 + part]),
            );
            rounds.settle();
            while rounds.has_next() {
                all.extend(ready(&mut rounds));
                rounds.settle();
            }
            assert!(rounds.weight() <= 8000);
        }
        rounds.finish();
        all.extend(ready(&mut rounds));
        assert_eq!(all.len(), 100 * 101);
        assert!(all.is_sorted());
    }
}
