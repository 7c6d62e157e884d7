//! Samples and changes of mappings in the order of time.
//!
//! perf reads the ring buffers of the CPUs one after the other, so a stream is in order only within each CPU's part of
//! a round. Whatever comes after the FINISHED_ROUND behind a round is younger than all that came before that round
//! (tools/perf/util/ordered-events.c): two rounds are kept, sorted when they can be, and forgotten. Of a sample only
//! the addresses are kept. Where rounds are missing or very long, what is oldest leaves the full store first, as in
//! perf itself, so the memory is bounded for any stream.

use perfdata_core::record::CpuMode;

use super::maps::Change;

/// Addresses in the store, 8 bytes each, and entries in it at most.
const MOST_ADDRESSES: usize = 2 << 20;
const MOST_ENTRIES: usize = 256 << 10;

/// The addresses of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'a> {
    /// Where the CPU was.
    pub mode: CpuMode,
    /// The process.
    pub pid: u32,
    /// The instruction pointer, then the callchain with its markers.
    pub words: &'a [u64],
}

/// What happens at a moment.
#[derive(Debug)]
pub enum Moment<'a> {
    /// A mapping changes.
    Change(Change),
    /// A sample is taken.
    Sample(Addresses<'a>),
}

#[derive(Debug, Clone, Copy)]
enum What {
    Change(Change),
    Sample { mode: CpuMode, pid: u32, first: usize, len: usize },
}

/// Puts moments into order.
#[derive(Debug, Default)]
pub struct Timeline {
    entries: Vec<(u64, What)>,
    words: Vec<u64>,
    /// The youngest time so far, and that at the end of the last round.
    youngest: u64,
    complete: u64,
}

impl Timeline {
    /// A change at `time`; `None` for what was there before the recording began, which comes at once.
    pub fn change(&mut self, time: Option<u64>, change: Change, mut sink: impl FnMut(Moment<'_>)) {
        match time {
            Some(time) => {
                self.push(time, What::Change(change));
                self.relieve(sink);
            }
            None => sink(Moment::Change(change)),
        }
    }

    /// A sample at `time`, of `words`. Without a time it comes at once.
    pub fn sample(
        &mut self,
        time: Option<u64>,
        (mode, pid): (CpuMode, u32),
        words: impl Iterator<Item = u64>,
        mut sink: impl FnMut(Moment<'_>),
    ) {
        let first = self.words.len();
        self.words.extend(words);
        match time {
            Some(time) => {
                let len = self.words.len() - first;
                self.push(time, What::Sample { mode, pid, first, len });
                self.relieve(sink);
            }
            None => {
                let words = self.words.get(first..).unwrap_or_default();
                sink(Moment::Sample(Addresses { mode, pid, words }));
                self.words.truncate(first);
            }
        }
    }

    /// The end of a round: what is older than the round before it is complete.
    pub fn end_round(&mut self, sink: impl FnMut(Moment<'_>)) {
        self.flush(self.complete, sink);
        self.complete = self.youngest;
    }

    /// The end of the stream.
    pub fn finish(&mut self, sink: impl FnMut(Moment<'_>)) {
        self.flush(u64::MAX, sink);
    }

    fn push(&mut self, time: u64, what: What) {
        self.youngest = self.youngest.max(time);
        self.entries.push((time, what));
    }

    /// Lets the older half go when the store is full.
    fn relieve(&mut self, sink: impl FnMut(Moment<'_>)) {
        if self.words.len() < MOST_ADDRESSES && self.entries.len() < MOST_ENTRIES {
            return;
        }
        self.sort();
        let middle = self.entries.get(self.entries.len() / 2).map_or(u64::MAX, |entry| entry.0);
        self.flush(middle, sink);
    }

    /// Stable: of one moment, what comes first in the stream happens first. The store is made of a few sorted runs.
    fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.0);
    }

    /// Hands out everything up to and including the time `until`.
    fn flush(&mut self, until: u64, mut sink: impl FnMut(Moment<'_>)) {
        self.sort();
        let done = self.entries.partition_point(|entry| entry.0 <= until);
        for (_, what) in self.entries.drain(..done) {
            match what {
                What::Change(change) => sink(Moment::Change(change)),
                What::Sample { mode, pid, first, len } => {
                    let words = self.words.get(first..first + len).unwrap_or_default();
                    sink(Moment::Sample(Addresses { mode, pid, words }));
                }
            }
        }
        let mut kept = Vec::with_capacity(self.words.len() / 2);
        for (_, what) in &mut self.entries {
            if let What::Sample { first, len, .. } = what {
                let words = self.words.get(*first..*first + *len).unwrap_or_default();
                *first = kept.len();
                kept.extend_from_slice(words);
            }
        }
        self.words = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::super::maps::Owner;
    use super::*;

    #[derive(Default)]
    struct Log(Vec<u64>);

    impl Log {
        fn sink(&mut self) -> impl FnMut(Moment<'_>) + '_ {
            |moment| match moment {
                Moment::Change(Change::Exit(Owner::Process(pid))) => self.0.push(u64::from(pid)),
                Moment::Change(_) => {}
                Moment::Sample(sample) => self.0.extend(sample.words),
            }
        }
    }

    fn exit(pid: u32) -> Change {
        Change::Exit(Owner::Process(pid))
    }

    const HERE: (CpuMode, u32) = (CpuMode::USER, 1);

    #[test]
    fn rounds_are_sorted_across_cpus() {
        let (mut line, mut log) = (Timeline::default(), Log::default());
        line.sample(Some(30), HERE, [30, 31].into_iter(), log.sink());
        line.sample(Some(10), HERE, [10].into_iter(), log.sink());
        line.change(Some(20), exit(20), log.sink());
        line.end_round(log.sink());
        line.change(Some(25), exit(25), log.sink());
        line.change(None, exit(1), log.sink());
        assert_eq!(log.0, [1], "a round is complete only with the one behind it");
        line.sample(Some(40), HERE, [40].into_iter(), log.sink());
        line.end_round(log.sink());
        assert_eq!(log.0, [1, 10, 20, 25, 30, 31]);
        line.finish(log.sink());
        assert_eq!(log.0, [1, 10, 20, 25, 30, 31, 40]);
    }

    #[test]
    fn a_stream_without_rounds_does_not_fill_the_memory() {
        let (mut line, mut log) = (Timeline::default(), Log::default());
        let most = MOST_ENTRIES as u64 * 3;
        for time in 1..=most {
            line.sample(Some(time), HERE, [time].into_iter(), log.sink());
            assert!(line.entries.len() <= MOST_ENTRIES && line.words.len() <= MOST_ADDRESSES);
        }
        line.finish(log.sink());
        assert_eq!(log.0.len() as u64, most);
        assert!(log.0.is_sorted());
    }
}
