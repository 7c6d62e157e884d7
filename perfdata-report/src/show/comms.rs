//! Samples by the name of their thread at the time of the sample.
//!
//! Records are in time order only within one CPU's share of a round. So the thread's name for a
//! sample is known only when the round after its own is complete (as in `ByTime`). Until then,
//! samples wait as a time and a thread. Few threads change their names in a typical round; the
//! samples of all other threads are only counted.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use perfdata_core::Events;
use perfdata_core::record::{
    RawRecord, RecordHeader, RecordType, SampleView, Task, Tid, is_known_time,
};
use perfdata_session::{CommId, Machine, ThreadId, Threads};

/// Maximum number of waiting samples. If there are more, the older half is counted.
const WAITING: usize = 1 << 18;
/// Maximum number of known threads, not counting those that have ended.
const THREADS: usize = 1 << 18;
/// Approximate maximum size of all names in bytes.
const NAMES: usize = 4 << 20;
/// Number of threads in the cache for lookups, a power of 2.
const RECENT: usize = 256;

#[derive(Debug, Clone)]
enum CommChange {
    Comm { tid: Tid, name: CommId },
    Fork(Task),
    Exit(Tid),
}

impl CommChange {
    fn tid(&self) -> u32 {
        match *self {
            CommChange::Comm {
                tid: Tid { tid, .. },
                ..
            }
            | CommChange::Fork(Task { tid, .. })
            | CommChange::Exit(Tid { tid, .. }) => tid,
        }
    }
}

/// Tracks the names of threads, and counts samples by name.
#[derive(Debug)]
pub struct Comms {
    threads: Threads,
    /// The threads looked up last: their TIDs and their entries.
    recent: Vec<Option<(u32, ThreadId)>>,
    /// Samples by the index of the name.
    sums: Vec<u64>,
    /// Waiting samples (time and thread): those up to the time `complete`, which the end of the
    /// round settles, and younger ones. Waiting changes with their times.
    due: Vec<(u64, u32)>,
    younger: Vec<(u64, u32)>,
    changes: Vec<(u64, CommChange)>,
    /// The latest time so far, and the latest time at the end of the previous round.
    youngest: u64,
    complete: u64,
}

impl Default for Comms {
    fn default() -> Self {
        Comms {
            threads: Threads::with_names(NAMES),
            recent: vec![None; RECENT],
            sums: Vec::new(),
            due: Vec::new(),
            younger: Vec::new(),
            changes: Vec::new(),
            youngest: 0,
            complete: 0,
        }
    }
}

impl Comms {
    /// Adds a sample.
    #[inline]
    pub fn sample(&mut self, sample: &SampleView<'_>) {
        let Some(tid) = sample.tid() else { return };
        match known(sample.time()) {
            Some(time) => self.wait(time, tid.tid),
            None => self.count(tid.tid, 1),
        }
    }

    /// Adds a waiting sample of a thread.
    #[inline]
    fn wait(&mut self, time: u64, tid: u32) {
        self.youngest = self.youngest.max(time);
        let samples = match time <= self.complete {
            true => &mut self.due,
            false => &mut self.younger,
        };
        samples.push((time, tid));
        if self.due.len() + self.younger.len() >= WAITING {
            self.settle_half();
        }
    }

    /// Ends a round: counts the samples that are not younger than the previous round. The others
    /// are not younger than this one.
    fn end_round(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.settle(&due, self.complete);
        due.clear();
        self.due = std::mem::replace(&mut self.younger, due);
        self.complete = self.youngest;
    }

    /// Adds a record that is not a sample.
    pub fn see(&mut self, record: &RawRecord<'_>, events: &Events) {
        let pair = |at| record.pair(RecordHeader::SIZE + at);
        let change = match record.kind {
            RecordType::FINISHED_ROUND => return self.end_round(),
            RecordType::COMM => pair(0).map(|(pid, tid)| {
                let text = record
                    .bytes
                    .get(RecordHeader::SIZE + 8..)
                    .unwrap_or_default();
                let end = text
                    .iter()
                    .position(|&byte| byte == 0)
                    .unwrap_or(text.len());
                CommChange::Comm {
                    tid: Tid { pid, tid },
                    name: self
                        .threads
                        .comms_mut()
                        .intern(text.get(..end).unwrap_or_default()),
                }
            }),
            RecordType::FORK => pair(0).zip(pair(8)).map(|((pid, ppid), (tid, ptid))| {
                CommChange::Fork(Task {
                    pid,
                    ppid,
                    tid,
                    ptid,
                    time: 0,
                })
            }),
            RecordType::EXIT => pair(0)
                .zip(pair(8))
                .map(|((pid, _), (tid, _))| CommChange::Exit(Tid { pid, tid })),
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

    /// Returns the names, sorted by decreasing number of samples, and the number of samples whose
    /// names did not fit.
    pub fn finish(mut self) -> (Vec<(Vec<u8>, u64)>, u64) {
        self.settle_until(u64::MAX);
        let comms = self.threads.comms();
        let others = comms
            .others()
            .and_then(|others| self.sums.get_mut(others.index()))
            .map_or(0, std::mem::take);
        let names = comms.iter().zip(&self.sums);
        let mut all: Vec<_> = names
            .filter(|(_, samples)| **samples > 0)
            .map(|(name, &samples)| (name.to_vec(), samples))
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (all, others)
    }

    /// Counts the older half of the waiting samples, because there are no rounds, or very long
    /// ones.
    fn settle_half(&mut self) {
        let mut times: Vec<u64> = self
            .due
            .iter()
            .chain(&self.younger)
            .map(|item| item.0)
            .chain(self.changes.iter().map(|item| item.0))
            .collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.settle_until(median);
    }

    /// Counts the waiting samples up to the time `until`.
    fn settle_until(&mut self, until: u64) {
        let mut waiting = std::mem::take(&mut self.due);
        waiting.append(&mut self.younger);
        let (samples, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|sample| sample.0 <= until);
        self.settle(&samples, until);
        let complete = self.complete;
        (self.due, self.younger) = waiting.into_iter().partition(|sample| sample.0 <= complete);
    }

    /// Counts these samples, all that wait up to the time `until`. Only those of threads with changes
    /// must be in the order of time.
    fn settle(&mut self, samples: &[(u64, u32)], until: u64) {
        let mut due: Vec<_> = self
            .changes
            .extract_if(.., |change| change.0 <= until)
            .collect();
        due.sort_by_key(|change| change.0);
        let changed: HashSet<u32, RandomState> = due.iter().map(|due| due.1.tid()).collect();
        let mut between: Vec<(u64, u32)> = Vec::new();
        for run in samples.chunk_by(|one, next| one.1 == next.1) {
            match run.first() {
                Some((_, tid)) if changed.contains(tid) => between.extend(run),
                Some((_, tid)) => self.count(*tid, run.len() as u64),
                None => {}
            }
        }
        between.sort_by_key(|sample| sample.0);
        let mut between = between.into_iter().peekable();
        for (time, change) in due {
            while let Some((_, tid)) = between.next_if(|sample| sample.0 < time) {
                self.count(tid, 1);
            }
            self.apply(&change);
        }
        between.for_each(|(_, tid)| self.count(tid, 1));
    }

    /// Counts `samples` for the current name of the thread.
    #[inline]
    fn count(&mut self, tid: u32, samples: u64) {
        let slot = tid as usize & (RECENT - 1);
        let id = match self.recent.get(slot) {
            Some(&Some((known, id))) if known == tid => id,
            _ => self.look_up(tid),
        };
        let comm = self.threads.get(id).map(|thread| thread.comm.index());
        match comm.and_then(|comm| self.sums.get_mut(comm)) {
            Some(sum) => *sum = sum.saturating_add(samples),
            None => self.count_new(comm, samples),
        }
    }

    /// Counts samples for a name that had none before.
    #[cold]
    fn count_new(&mut self, comm: Option<usize>, samples: u64) {
        let Some(comm) = comm else { return };
        self.sums.resize(comm + 1, 0);
        self.sums
            .get_mut(comm)
            .into_iter()
            .for_each(|sum| *sum = samples);
    }

    fn look_up(&mut self, tid: u32) -> ThreadId {
        self.make_room();
        let id = self
            .threads
            .find_or_add(Machine::HOST, &Tid { pid: u32::MAX, tid });
        self.remember(tid, Some(id));
        id
    }

    fn remember(&mut self, tid: u32, id: Option<ThreadId>) {
        let slot = tid as usize & (RECENT - 1);
        self.recent
            .get_mut(slot)
            .into_iter()
            .for_each(|recent| *recent = id.map(|id| (tid, id)));
    }

    /// Forgets the threads that have ended, or all threads if that does not suffice.
    fn make_room(&mut self) {
        if self.threads.list().len() < THREADS {
            return;
        }
        self.threads.forget_ended();
        if self.threads.list().len() >= THREADS / 2 {
            self.threads.forget_all();
        }
        self.recent.fill(None);
    }

    fn apply(&mut self, change: &CommChange) {
        match change {
            CommChange::Comm { tid, name } => {
                self.make_room();
                let id = self.threads.find_or_add(Machine::HOST, tid);
                self.threads.name(id, *name);
            }
            CommChange::Fork(task) => {
                self.make_room();
                let id = self.threads.fork(Machine::HOST, task, None);
                self.remember(task.tid, Some(id));
            }
            CommChange::Exit(tid) => {
                if let Some(id) = self.threads.find(Machine::HOST, tid) {
                    self.threads.end(id, None);
                }
            }
        }
    }
}

fn known(time: Option<u64>) -> Option<u64> {
    time.filter(|&time| is_known_time(time))
}

#[cfg(test)]
mod tests;
