//! Processes many records in parallel: collects them in batches, and delivers the results in the
//! order of the records. If the system cannot start threads, the calling thread does everything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::{io, panic, thread};

use perfdata_core::Endian;
use perfdata_core::read::{RecordBatch, Records};
use perfdata_core::record::RawRecord;

use crate::error::{Error, Result};
use crate::walk::Flow;

/// Maximum number of threads that process batches. Each requires memory.
const MOST: usize = 4;

/// Size of a batch in bytes: large enough that the overhead is negligible.
const BYTES: usize = 128 << 10;

/// Records of a recording.
pub struct Batch {
    bytes: Vec<u8>,
    runs: Vec<AdjacentRecords>,
    endian: Endian,
    /// The error that prevented reading the compressed records after these.
    pub broken: Option<perfdata_core::Error>,
}

/// Records that are adjacent in the input, or one record in a compressed record.
struct AdjacentRecords {
    offset: u64,
    len: usize,
    inner: Option<usize>,
}

impl Batch {
    /// Returns an empty batch.
    pub fn new(endian: Endian) -> Self {
        Batch {
            bytes: Vec::new(),
            runs: Vec::new(),
            endian,
            broken: None,
        }
    }

    /// Adds records. A record in a compressed record also has an index there.
    pub fn push(&mut self, records: &RecordBatch<'_>, inner: Option<usize>) {
        self.runs.push(AdjacentRecords {
            offset: records.offset(),
            len: records.bytes().len(),
            inner,
        });
        self.bytes.extend_from_slice(records.bytes());
    }

    /// Returns whether there is nothing to process.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.broken.is_none()
    }

    /// Returns whether it is large enough to be processed.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES
    }

    /// Removes all records, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
        self.broken = None;
    }

    /// Returns the records in groups.
    pub fn runs(&self) -> impl Iterator<Item = (Records<'_>, Option<usize>)> {
        let mut bytes = self.bytes.as_slice();
        self.runs.iter().map_while(move |run| {
            let (records, rest) = bytes.split_at_checked(run.len)?;
            bytes = rest;
            Some((Records::of(records, self.endian, run.offset), run.inner))
        })
    }

    /// Returns the records.
    pub fn records(&self) -> impl Iterator<Item = (RawRecord<'_>, Option<usize>)> {
        self.runs()
            .flat_map(|(records, inner)| records.map(move |record| (record, inner)))
    }
}

/// The input of the batches.
pub enum JobQueue<'a, J> {
    /// Threads process the batches.
    Threads {
        /// The channel to the threads, with the number of each batch.
        jobs: SyncSender<(u64, J)>,
        /// Contains an item for each batch whose result was not taken yet.
        permits: SyncSender<()>,
        /// The number of the next batch.
        next: u64,
    },
    /// Each batch is processed, and its result taken, before the next one. Returns false if no more
    /// results are taken.
    Here(&'a mut dyn FnMut(J) -> bool),
}

impl<J> JobQueue<'_, J> {
    /// Submits a batch. Returns false if no more results are taken.
    pub fn hand_in(&mut self, job: J) -> bool {
        match self {
            JobQueue::Threads {
                jobs,
                permits,
                next,
            } => {
                let number = *next;
                *next += 1;
                permits.send(()).is_ok() && jobs.send((number, job)).is_ok()
            }
            JobQueue::Here(work) => work(job),
        }
    }
}

/// Calls `work` on several CPUs with all batches that `feed` submits, and calls `take` with the
/// results in the order of submission, as soon as they are available, until it breaks. With one of
/// `threads`, the calling thread does everything.
///
/// # Errors
/// The errors of `take` and `feed`.
pub fn in_order<J: Send, T: Send, R: Send>(
    threads: usize,
    feed: impl FnOnce(&mut JobQueue<'_, J>) -> Result<R> + Send,
    work: impl Fn(J) -> T + Sync,
    take: impl FnMut(T) -> Flow,
) -> Result<R> {
    let workers = if threads > 1 { threads.min(MOST) } else { 0 };
    in_order_on(workers, feed, work, take)
}

/// Does the same with at most `workers` threads.
fn in_order_on<J: Send, T: Send, R: Send>(
    workers: usize,
    feed: impl FnOnce(&mut JobQueue<'_, J>) -> Result<R> + Send,
    work: impl Fn(J) -> T + Sync,
    mut take: impl FnMut(T) -> Flow,
) -> Result<R> {
    let (jobs, waiting) = sync_channel::<(u64, J)>(workers);
    let (permits, taken) = sync_channel(2 * workers);
    let waiting = Mutex::new(waiting);
    // If the thread cannot be started, its closure is dropped.
    let feed = Mutex::new(Some(feed));
    let fed = thread::scope(|scope| {
        let (done, results) = channel();
        let start = || {
            let (done, waiting, work) = (done.clone(), &waiting, &work);
            thread::Builder::new().spawn_scoped(scope, move || work_on(waiting, &done, work))
        };
        if (0..workers).map_while(|_| start().ok()).count() == 0 {
            return None;
        }
        drop(done);
        let feeder = || {
            let feed = feed.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            Some(feed(&mut JobQueue::Threads {
                jobs,
                permits,
                next: 0,
            }))
        };
        let feeder = thread::Builder::new().spawn_scoped(scope, feeder).ok()?;
        let outcome = take_in_order(&results, &taken, &mut take);
        // Ends all waiting for a permit, or for a result to be taken.
        drop((results, taken));
        let fed = feeder
            .join()
            .unwrap_or_else(|panic| panic::resume_unwind(panic))?;
        Some(outcome.and(fed))
    });
    let feed = feed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (fed, feed) {
        (None, Some(feed)) => {
            let mut outcome = Ok(ControlFlow::Continue(()));
            let mut here = |job| {
                outcome = take(work(job));
                matches!(outcome, Ok(ControlFlow::Continue(())))
            };
            let fed = feed(&mut JobQueue::Here(&mut here));
            outcome.and(fed)
        }
        (Some(fed), _) => fed,
        (None, None) => Err(Error::io("threads")(io::Error::other(
            "internal error: a background thread ended",
        ))),
    }
}

fn work_on<J, T>(
    waiting: &Mutex<Receiver<(u64, J)>>,
    done: &Sender<(u64, T)>,
    work: impl Fn(J) -> T,
) {
    loop {
        let job = waiting.lock().map(|waiting| waiting.recv());
        let Ok(Ok((number, job))) = job else { return };
        if done.send((number, work(job))).is_err() {
            return;
        }
    }
}

fn take_in_order<T>(
    results: &Receiver<(u64, T)>,
    taken: &Receiver<()>,
    take: &mut impl FnMut(T) -> Flow,
) -> Result<()> {
    let mut early = BTreeMap::new();
    let mut next = 0;
    while let Ok((number, result)) = results.recv() {
        early.insert(number, result);
        while let Some(result) = early.remove(&next) {
            next += 1;
            if take(result)?.is_break() {
                return Ok(());
            }
            let _ = taken.recv();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        for workers in [0, 1, 4] {
            let mut taken = Vec::new();
            let feed = |intake: &mut JobQueue<'_, u64>| {
                Ok((0..1000).filter(|&number| intake.hand_in(number)).count())
            };
            let work = |number: u64| {
                if number.is_multiple_of(7) {
                    thread::yield_now();
                }
                number * 2
            };
            let fed = in_order_on(workers, feed, work, |result| {
                taken.push(result);
                Ok(ControlFlow::Continue(()))
            });
            assert_eq!(fed.ok(), Some(1000));
            assert!(taken.into_iter().eq((0..1000).map(|number| number * 2)));
        }
    }

    #[test]
    fn who_takes_no_more_ends_all() {
        for workers in [0, 1, 4] {
            let feed =
                |intake: &mut JobQueue<'_, u64>| Ok((0..).find(|&number| !intake.hand_in(number)));
            let take = |number| match number {
                10 => Err(Error::Refused("enough".into())),
                _ => Ok(ControlFlow::Continue(())),
            };
            assert!(matches!(
                in_order_on(workers, feed, |number| number, take),
                Err(Error::Refused(_))
            ));
            let mut count = 0;
            let take = |number| {
                count += 1;
                Ok(match number {
                    10 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                })
            };
            let fed = in_order_on(workers, feed, |number| number, take);
            assert!(fed.is_ok_and(|last| last >= Some(10)));
            assert_eq!(count, 11);
            let feed = |_: &mut JobQueue<'_, u64>| Err::<(), _>(Error::Refused("nothing".into()));
            let take = |_| Ok(ControlFlow::Continue(()));
            assert!(in_order_on(workers, feed, |number| number, take).is_err());
        }
    }
}
