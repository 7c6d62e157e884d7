//! Samples by the name that their thread had when they were taken.
//!
//! Records stand in the order of time only within each CPU's part of a round, so what a sample's thread was called is
//! known when the round behind its own is complete (as in `ByTime`). Samples wait until then as a time and a thread: in
//! most rounds no thread changes its name, and they are only counted.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use perfdata_core::record::{Glimpse, RawRecord, RecordHeader, RecordType};
use perfdata_core::{Endian, Events};

/// Samples that wait at most; of more the older half is counted.
const WAITING: usize = 1 << 18;
/// Threads that are known at most, those that have ended not counted.
const THREADS: usize = 1 << 18;
/// Bytes of names that are kept at most.
const NAMES: usize = 1 << 20;
/// Threads that are found without looking them up, a power of 2.
const RECENT: usize = 256;
/// perf's name for the idle threads, all of which have the number 0.
const IDLE: &[u8] = b"swapper";

/// The number of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name(u32);

/// A thread that no record has named.
const UNNAMED: Name = Name(u32::MAX);

#[derive(Debug)]
struct Thread {
    tid: u32,
    name: Name,
    /// Samples under this name that its sum does not have yet.
    samples: u64,
    has_ended: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Comm { tid: u32, name: Name },
    Fork { tid: u32, parent: u32 },
    Exit { tid: u32 },
}

impl Change {
    fn tid(&self) -> u32 {
        match *self {
            Change::Comm { tid, .. } | Change::Fork { tid, .. } | Change::Exit { tid } => tid,
        }
    }
}

/// Follows the names of threads, and counts samples by them.
#[derive(Debug)]
pub struct Comms {
    threads: Vec<Thread>,
    by_tid: HashMap<u32, usize, RandomState>,
    /// Where threads are that were asked for last: their numbers, and places.
    recent: Vec<(u32, usize)>,
    names: Vec<(Vec<u8>, u64)>,
    by_name: HashMap<Vec<u8>, u32, RandomState>,
    name_bytes: usize,
    /// Samples whose names there was no room for.
    others: u64,
    /// Time and thread of samples, and time of changes, that wait.
    waiting: Vec<(u64, u32)>,
    changes: Vec<(u64, Change)>,
    /// The youngest time so far, and that at the end of the last round.
    youngest: u64,
    complete: u64,
}

impl Default for Comms {
    fn default() -> Self {
        let mut comms = Comms {
            threads: Vec::new(),
            by_tid: HashMap::default(),
            recent: Vec::new(),
            names: Vec::new(),
            by_name: HashMap::default(),
            name_bytes: 0,
            others: 0,
            waiting: Vec::new(),
            changes: Vec::new(),
            youngest: 0,
            complete: 0,
        };
        let name = comms.name(IDLE);
        comms.apply(&Change::Comm { tid: 0, name });
        comms
    }
}

impl Comms {
    /// Takes a sample.
    #[inline]
    pub fn sample(&mut self, sample: &Glimpse<'_>) {
        let Some(tid) = sample.tid() else { return };
        match known(sample.time()) {
            Some(time) => {
                self.youngest = self.youngest.max(time);
                self.waiting.push((time, tid.tid));
                if self.waiting.len() >= WAITING {
                    self.settle_half();
                }
            }
            None => self.count(tid.tid),
        }
    }

    /// Takes another record than a sample.
    pub fn see(&mut self, record: &RawRecord<'_>, events: &Events) {
        let pair = |at| record.word(RecordHeader::SIZE + at).map(|word| halves(word, record.endian));
        let change = match record.kind {
            RecordType::FINISHED_ROUND => {
                self.settle(self.complete);
                self.complete = self.youngest;
                return;
            }
            RecordType::COMM => pair(0).map(|(_, tid)| {
                let text = record.bytes.get(RecordHeader::SIZE + 8..).unwrap_or_default();
                let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                Change::Comm { tid, name: self.name(text.get(..end).unwrap_or_default()) }
            }),
            RecordType::FORK => pair(8).map(|(tid, parent)| Change::Fork { tid, parent }),
            RecordType::EXIT => pair(8).map(|(tid, _)| Change::Exit { tid }),
            _ => return,
        };
        let Some(change) = change else { return };
        match known(events.time(record)) {
            Some(time) => {
                self.youngest = self.youngest.max(time);
                self.changes.push((time, change));
                if self.changes.len() >= WAITING {
                    self.settle_half();
                }
            }
            None => self.apply(&change),
        }
    }

    /// The names, those with most samples first, and the samples whose names there was no room for.
    pub fn finish(mut self) -> (Vec<(Vec<u8>, u64)>, u64) {
        self.settle(u64::MAX);
        for mut thread in std::mem::take(&mut self.threads) {
            self.book(&mut thread);
        }
        let mut all: Vec<_> = self.names.into_iter().filter(|(_, samples)| *samples > 0).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (all, self.others)
    }

    /// Lets the older half of what waits go: there are no rounds, or very long ones.
    fn settle_half(&mut self) {
        let mut times: Vec<u64> =
            self.waiting.iter().map(|item| item.0).chain(self.changes.iter().map(|item| item.0)).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.settle(median);
    }

    /// Counts what is not younger than `until`.
    fn settle(&mut self, until: u64) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut due: Vec<_> = self.changes.extract_if(.., |change| change.0 <= until).collect();
        if due.is_empty() {
            waiting.retain(|&(time, tid)| {
                time > until || {
                    self.count(tid);
                    false
                }
            });
            self.waiting = waiting;
            return;
        }
        due.sort_by_key(|change| change.0);
        let changed: HashSet<u32, RandomState> = due.iter().map(|(_, change)| change.tid()).collect();
        let mut touched = Vec::new();
        waiting.retain(|&(time, tid)| {
            let is_due = time <= until;
            if is_due && changed.contains(&tid) {
                touched.push((time, tid));
            } else if is_due {
                self.count(tid);
            }
            !is_due
        });
        self.waiting = waiting;
        touched.sort_by_key(|sample| sample.0);
        let mut samples = touched.into_iter().peekable();
        for (time, change) in due {
            while let Some((_, tid)) = samples.next_if(|sample| sample.0 < time) {
                self.count(tid);
            }
            self.apply(&change);
        }
        samples.for_each(|(_, tid)| self.count(tid));
    }

    #[inline]
    fn count(&mut self, tid: u32) {
        let place = self.place(tid);
        if let Some(thread) = self.threads.get_mut(place) {
            thread.samples = thread.samples.saturating_add(1);
        }
    }

    /// Where the thread is.
    #[inline]
    fn place(&mut self, tid: u32) -> usize {
        let slot = tid as usize & (RECENT - 1);
        if let Some(&(known, place)) = self.recent.get(slot)
            && known == tid
            && place < self.threads.len()
        {
            return place;
        }
        let place = self.look_up(tid);
        if self.recent.is_empty() {
            self.recent.resize(RECENT, (0, usize::MAX));
        }
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (tid, place);
        }
        place
    }

    fn look_up(&mut self, tid: u32) -> usize {
        if let Some(&place) = self.by_tid.get(&tid) {
            return place;
        }
        if self.threads.len() >= THREADS {
            self.sweep();
        }
        let place = self.threads.len();
        self.threads.push(Thread { tid, name: UNNAMED, samples: 0, has_ended: false });
        self.by_tid.insert(tid, place);
        place
    }

    /// Forgets the threads that have ended, or all where too few have.
    fn sweep(&mut self) {
        let mut threads = std::mem::take(&mut self.threads);
        let living = threads.iter().filter(|thread| !thread.has_ended).count();
        let keeps = living < THREADS / 2;
        for thread in &mut threads {
            self.book(thread);
        }
        threads.retain(|thread| keeps && !thread.has_ended);
        self.threads = threads;
        self.by_tid = self.threads.iter().enumerate().map(|(place, thread)| (thread.tid, place)).collect();
        self.recent.clear();
    }

    /// Enters a thread's samples into the sum of its name.
    fn book(&mut self, thread: &mut Thread) {
        let samples = std::mem::take(&mut thread.samples);
        if samples == 0 {
            return;
        }
        let name = match thread.name {
            // As perf calls it.
            UNNAMED => self.name(format!(":{}", thread.tid.cast_signed()).as_bytes()),
            name => name,
        };
        let sum = self.names.get_mut(name.0 as usize).map_or(&mut self.others, |(_, sum)| sum);
        *sum = sum.saturating_add(samples);
    }

    fn apply(&mut self, change: &Change) {
        let place = self.place(change.tid());
        let name = match *change {
            Change::Comm { name, .. } => name,
            Change::Fork { parent, .. } => {
                let parent = self.by_tid.get(&parent).and_then(|&place| self.threads.get(place));
                parent.map_or(UNNAMED, |parent| parent.name)
            }
            Change::Exit { .. } => {
                self.threads.get_mut(place).into_iter().for_each(|thread| thread.has_ended = true);
                return;
            }
        };
        let Some(thread) = self.threads.get_mut(place) else { return };
        let mut before = Thread { tid: thread.tid, name: thread.name, samples: thread.samples, has_ended: false };
        (thread.name, thread.samples, thread.has_ended) = (name, 0, false);
        self.book(&mut before);
    }

    /// The number of a name; where there is no room for it, one that no name has.
    fn name(&mut self, name: &[u8]) -> Name {
        if let Some(&known) = self.by_name.get(name) {
            return Name(known);
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        if self.name_bytes.saturating_add(name.len()) > NAMES {
            return Name(u32::MAX - 1);
        }
        self.name_bytes += name.len() + size_of::<(Vec<u8>, u64)>();
        self.names.push((name.to_vec(), 0));
        self.by_name.insert(name.to_vec(), number);
        Name(number)
    }
}

/// A time of 0 or of all ones says nothing: perf takes such a record as it comes.
fn known(time: Option<u64>) -> Option<u64> {
    time.filter(|&time| time != 0 && time != u64::MAX)
}

/// The two numbers of a word, the first first.
fn halves(word: u64, endian: Endian) -> (u32, u32) {
    let (low, high) = (word as u32, (word >> 32) as u32);
    if endian == Endian::Little { (low, high) } else { (high, low) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(comms: &mut Comms, time: u64, tid: u32) {
        comms.youngest = comms.youngest.max(time);
        comms.waiting.push((time, tid));
    }

    fn named(comms: &mut Comms, time: u64, tid: u32, name: &str) {
        let name = comms.name(name.as_bytes());
        comms.youngest = comms.youngest.max(time);
        comms.changes.push((time, Change::Comm { tid, name }));
    }

    fn end_round(comms: &mut Comms) {
        comms.settle(comms.complete);
        comms.complete = comms.youngest;
    }

    fn sums(comms: Comms) -> Vec<(String, u64)> {
        let (names, others) = comms.finish();
        assert_eq!(others, 0);
        names.into_iter().map(|(name, samples)| (String::from_utf8_lossy(&name).into_owned(), samples)).collect()
    }

    #[test]
    fn a_sample_has_the_name_of_its_moment() {
        let mut comms = Comms::default();
        // Of another CPU, whose part of the round comes first.
        let _ = [5, 12, 20, 31].map(|time| at(&mut comms, time, 7));
        named(&mut comms, 10, 7, "before");
        named(&mut comms, 30, 7, "behind");
        end_round(&mut comms);
        at(&mut comms, 33, 7);
        // As late as it can be.
        named(&mut comms, 32, 7, "late");
        end_round(&mut comms);
        let expected = [("before", 2), (":7", 1), ("behind", 1), ("late", 1)];
        assert_eq!(sums(comms), expected.map(|(name, samples)| (name.to_owned(), samples)));
    }

    #[test]
    fn a_child_is_called_as_its_parent_was() {
        let mut comms = Comms::default();
        named(&mut comms, 10, 7, "shell");
        comms.changes.push((20, Change::Fork { tid: 8, parent: 7 }));
        named(&mut comms, 30, 7, "other");
        named(&mut comms, 40, 8, "make");
        let _ = [25, 35, 45].map(|time| at(&mut comms, time, 8));
        comms.changes.push((50, Change::Exit { tid: 8 }));
        comms.changes.push((60, Change::Fork { tid: 8, parent: 9 }));
        let _ = [55, 65].map(|time| at(&mut comms, time, 8));
        at(&mut comms, 70, 0);
        let expected = [("make", 2), ("shell", 2), (":8", 1), ("swapper", 1)];
        assert_eq!(sums(comms), expected.map(|(name, samples)| (name.to_owned(), samples)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut comms = Comms::default();
        for tid in 0..3 * THREADS as u32 {
            comms.apply(&Change::Fork { tid, parent: 0 });
            comms.count(tid);
            comms.apply(&Change::Exit { tid });
            comms.name(format!("{tid}").repeat(8).as_bytes());
        }
        assert!(comms.threads.len() <= THREADS && comms.name_bytes <= 2 * NAMES);
        let (names, others) = comms.finish();
        assert_eq!(names.iter().map(|name| name.1).sum::<u64>() + others, 3 * THREADS as u64);
        let mut comms = Comms::default();
        for time in 0..4 * WAITING as u64 {
            at(&mut comms, time, 1);
            if comms.waiting.len() >= WAITING {
                comms.settle_half();
            }
        }
        assert_eq!(sums(comms), [(":1".to_owned(), 4 * WAITING as u64)]);
    }
}
