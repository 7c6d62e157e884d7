//! The order of time.
//!
//! perf reads the ring buffers of the CPUs one after the other, so a stream is in order only within each CPU's part of
//! a round. Whatever comes after the FINISHED_ROUND behind a round is younger than all that came before that round
//! (tools/perf/util/ordered-events.c, Linux 2.6.35): two rounds are kept, and sorted when they can be.

#![allow(clippy::arithmetic_side_effects, reason = "counts of what is in memory, and places in it")]

use std::collections::VecDeque;

/// What is kept of a part of a stream: a list of items.
pub trait Waiting: Default {
    /// Number of items, those that do not wait counted.
    fn len(&self) -> usize;

    /// Whether there is no item.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it takes.
    fn weight(&self) -> usize;

    /// Adds the item of number `at` of another part.
    fn push_from(&mut self, other: &Self, at: usize);

    /// Empties it; the memory is kept.
    fn clear(&mut self);
}

/// Items of a stream that wait for older ones.
///
/// Of one moment, what comes first in the stream is first. The memory is bounded: where rounds are missing or very
/// long, the older half of what waits goes first, and is in order as far as can be known by then, as in perf itself.
#[derive(Debug)]
pub struct OrderedEvents<P> {
    /// Parts of the stream, the first of them with the number `first`, and how many of their items wait.
    parts: VecDeque<(P, usize)>,
    first: usize,
    /// Time, part and number of the items that wait, sorted up to `ready`; those before `next` wait no more.
    order: Vec<(u64, usize, usize)>,
    next: usize,
    ready: usize,
    /// The youngest time so far, and that at the end of the last round.
    youngest: u64,
    complete: u64,
    most: usize,
    /// A part that is done with: its memory can be used again.
    spare: Option<P>,
}

impl<P: Waiting> OrderedEvents<P> {
    /// Keeps parts of `most` bytes, and one more.
    pub fn new(most: usize) -> Self {
        OrderedEvents {
            parts: VecDeque::new(),
            first: 0,
            order: Vec::new(),
            next: 0,
            ready: 0,
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

    /// The part that was added last.
    pub fn last(&self) -> Option<&P> {
        self.parts.back().map(|(part, _)| part)
    }

    /// The same, for changing it.
    pub fn last_mut(&mut self) -> Option<&mut P> {
        self.parts.back_mut().map(|(part, _)| part)
    }

    /// Lets the item of number `at` in the last part wait until all that is older than `time` has come.
    #[inline]
    pub fn wait(&mut self, time: u64, at: usize) {
        let Some(number) = self.parts.len().checked_sub(1) else { return };
        if let Some((_, waiting)) = self.parts.back_mut() {
            *waiting += 1;
        }
        self.youngest = self.youngest.max(time);
        self.order.push((time, self.first + number, at));
    }

    /// The end of a round: what is not younger than the round before it waits no more.
    pub fn end_round(&mut self) {
        self.release(self.complete);
        self.complete = self.youngest;
    }

    /// The end of the stream: nothing waits any more.
    pub fn finish(&mut self) {
        self.release(u64::MAX);
    }

    /// Whether there is an item that waits no more.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.next < self.ready
    }

    /// The next item that waits no more: its part, and its number in that.
    // Not an iterator: what it gives is borrowed.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<(&P, usize)> {
        let &(_, number, at) = self.order.get(self.next).filter(|_| self.next < self.ready)?;
        self.next += 1;
        let (part, waiting) = self.parts.get_mut(number - self.first)?;
        *waiting = waiting.saturating_sub(1);
        Some((part, at))
    }

    /// The item that [`next`](Self::next) gave last; `None` once parts were forgotten.
    pub fn current(&self) -> Option<(&P, usize)> {
        let &(_, number, at) = self.order.get(self.next.checked_sub(1)?)?;
        let (part, _) = self.parts.get(number.checked_sub(self.first)?)?;
        Some((part, at))
    }

    /// Forgets the parts that are done with; where too much waits, lets the older half go. To be called between parts.
    pub fn settle(&mut self) {
        self.forget();
        while !self.has_next() && self.weight() > self.most {
            // A few items that wait for long may keep many parts.
            let items: usize = self.parts.iter().map(|(part, _)| part.len()).sum();
            if self.order.len() - self.next < items / 2 {
                self.compact();
            } else {
                self.sort();
                let middle = self.order.get(self.ready.midpoint(self.order.len()));
                self.release(middle.map_or(u64::MAX, |item| item.0));
            }
        }
    }

    /// An empty part, with memory if there is some to be used again.
    pub fn spare(&mut self) -> P {
        self.spare.take().unwrap_or_default()
    }

    fn weight(&self) -> usize {
        self.parts.iter().map(|(part, _)| part.weight()).sum()
    }

    /// Stable, and fast: what waits is made of a few sorted runs.
    fn sort(&mut self) {
        self.order.drain(..self.next);
        self.ready -= self.next;
        self.next = 0;
        self.order.get_mut(self.ready..).unwrap_or_default().sort_by_key(|item| item.0);
    }

    /// Makes everything up to and including the time `until` ready.
    fn release(&mut self, until: u64) {
        self.sort();
        let waiting = self.order.get(self.ready..).unwrap_or_default();
        self.ready += waiting.partition_point(|item| item.0 <= until);
    }

    fn forget(&mut self) {
        while self.parts.front().is_some_and(|(_, waiting)| *waiting == 0) {
            let Some((mut part, _)) = self.parts.pop_front() else { return };
            self.first += 1;
            part.clear();
            self.spare = Some(part);
        }
    }

    /// Makes one part of all that wait.
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

    /// Nor do a few whose time lies far ahead keep all that came with them.
    #[test]
    fn a_stream_without_rounds_does_not_fill_the_memory() {
        let mut rounds = OrderedEvents::new(8000);
        let mut all = Vec::new();
        for part in 0..100 {
            add(&mut rounds, (part * 100..(part + 1) * 100).chain([u64::MAX - 100 + part]));
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
