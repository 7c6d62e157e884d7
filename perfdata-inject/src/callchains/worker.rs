//! Threads that unwind the samples of batches.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use perfdata_core::Events;
use perfdata_core::record::{RawRecord, Registers};
use perfdata_unwind::{ObjectId, Objects, Outcome, Unwinder};

use super::batch::{Batch, Job};
use super::sample::{Buffers, Limit, Rewriter};
use perfdata_convert::error::Error;

/// Number of batches that wait or are processed, for each thread.
const WAITING: usize = 2;

/// Average number of user frames above which other threads are used. Copying a sample to another
/// thread takes as long as unwinding some ten frames.
const DEEP: usize = 32;

/// Number of samples of which the average is computed.
const MANY: usize = 64;

/// What all threads use.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) from: Events,
    pub(super) to: Events,
    pub(super) registers: &'static Registers,
    pub(super) objects: Objects,
    /// The object of each DSO; `None` if it is not a file.
    pub(super) ids: Vec<Option<ObjectId>>,
    pub(super) limit: Limit,
    pub(super) follows_frame_pointers: bool,
}

/// The place of a converted sample, and what was done for it.
pub(super) type Done = Result<(Range<usize>, Outcome), Error>;

/// A batch, and the results for its samples.
#[derive(Debug, Default)]
pub(super) struct Unwound {
    pub(super) batch: Batch,
    /// The converted samples, one after the other.
    out: Vec<u8>,
    /// For each sample its place in `out`, and what was done.
    done: VecDeque<Done>,
}

impl Unwound {
    /// Returns the batch, the converted samples, and what was done for each.
    pub(super) fn parts(&mut self) -> (&Batch, &[u8], &mut VecDeque<Done>) {
        (&self.batch, &self.out, &mut self.done)
    }

    /// Removes all records, whose memory can be used again.
    fn clear(&mut self) {
        self.batch.clear();
        self.out.clear();
        self.done.clear();
    }

    /// Unwinds the samples of the batch.
    fn work(&mut self, shared: &Shared, worker: &mut Worker) {
        let mut rewriter = worker.rewriter(shared);
        for (raw, job) in self.batch.jobs() {
            let start = self.out.len();
            let outcome = rewriter.unwind(&raw, job, &mut self.out);
            let end = self.out.len();
            self.done
                .push_back(outcome.map(|outcome| (start..end, outcome)));
        }
    }
}

/// What a thread keeps from one batch to the next.
#[derive(Debug, Default)]
struct Worker {
    unwinder: Option<Unwinder>,
    buffers: Buffers,
}

impl Worker {
    fn rewriter<'a>(&'a mut self, shared: &'a Shared) -> Rewriter<'a> {
        let unwinder = self.unwinder.get_or_insert_with(|| {
            Unwinder::new().with_frame_pointers(shared.follows_frame_pointers)
        });
        Rewriter {
            shared,
            unwinder,
            buffers: &mut self.buffers,
        }
    }
}

/// A batch to process, and where to return it.
type Task = (Unwound, Arc<Shared>, Sender<Unwound>);

/// Threads that process batches. The results come back in the order of the batches.
#[derive(Debug)]
pub(super) struct Workers {
    count: usize,
    /// `None` if no thread was started, or if all end.
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
    results: VecDeque<Receiver<Unwound>>,
    /// For work on this thread.
    own: Worker,
    /// What this thread has unwound: samples, and their frames.
    samples: usize,
    frames: usize,
    /// Whether callchains are so long that other threads help.
    are_deep: bool,
    spare: Vec<Unwound>,
}

impl Workers {
    /// Returns `count` threads, which start when they are needed. With one, the work is done on the
    /// calling thread.
    pub(super) fn new(count: usize) -> Self {
        Workers {
            count,
            tasks: None,
            threads: Vec::new(),
            results: VecDeque::new(),
            own: Worker::default(),
            samples: 0,
            frames: 0,
            are_deep: false,
            spare: Vec::new(),
        }
    }

    /// Returns whether a sample is better unwound on the calling thread. Once it is not, it is not
    /// for all following samples.
    pub(super) fn is_alone(&self) -> bool {
        self.count <= 1 || !self.are_deep
    }

    /// Unwinds a sample on the calling thread, which need not copy it. Replaces the contents of
    /// `out` by the converted sample.
    ///
    /// # Errors
    /// The sample is corrupt.
    pub(super) fn unwind(
        &mut self,
        raw: &RawRecord<'_>,
        job: &Job,
        shared: &Shared,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Error> {
        out.clear();
        let outcome = self.own.rewriter(shared).unwind(raw, job, out)?;
        self.samples = self.samples.saturating_add(1);
        self.frames = self.frames.saturating_add(self.own.buffers.frames());
        if self.samples == MANY {
            self.are_deep = self.frames > MANY.saturating_mul(DEEP);
            (self.samples, self.frames) = (0, 0);
        }
        Ok(outcome)
    }

    /// Starts the threads. Without any, the work is done on this thread.
    fn start(&mut self) {
        let (tasks, queue) = channel::<Task>();
        let queue = Arc::new(Mutex::new(queue));
        let count = if self.count > 1 { self.count } else { 0 };
        for _ in 0..count {
            let queue = queue.clone();
            let work = move || {
                let mut worker = Worker::default();
                loop {
                    let task = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((mut unwound, shared, to)) = task else {
                        return;
                    };
                    unwound.work(&shared, &mut worker);
                    // Without a receiver, the conversion has failed.
                    let _ = to.send(unwound);
                }
            };
            match thread::Builder::new().spawn(work) {
                Ok(thread) => self.threads.push(thread),
                Err(_) => break,
            }
        }
        self.tasks = Some(tasks);
    }

    /// Takes a batch, and leaves an empty one.
    pub(super) fn take(&mut self, batch: &mut Batch, shared: &Arc<Shared>) {
        if self.tasks.is_none() {
            self.start();
        }
        let mut unwound = self.spare.pop().unwrap_or_default();
        std::mem::swap(&mut unwound.batch, batch);
        let (to, result) = channel();
        match &self.tasks {
            Some(tasks) if !self.threads.is_empty() => {
                let _ = tasks.send((unwound, shared.clone(), to));
            }
            _ => {
                unwound.work(shared, &mut self.own);
                let _ = to.send(unwound);
            }
        }
        self.results.push_back(result);
    }

    /// Returns the next result, if there is one and it should not wait any longer: all of them at
    /// the end, otherwise those before the batches that the threads need.
    pub(super) fn next(&mut self, is_end: bool) -> Option<Result<Unwound, Error>> {
        let most = self.threads.len().saturating_mul(WAITING);
        if !is_end && self.results.len() <= most {
            return None;
        }
        let result = self.results.pop_front()?.recv();
        let ended = |_| Error::io("threads")(io::Error::other("a thread ended unexpectedly"));
        Some(result.map_err(ended))
    }

    /// Takes a result back, whose memory is used again.
    pub(super) fn reuse(&mut self, mut unwound: Unwound) {
        unwound.clear();
        self.spare.push(unwound);
    }

    /// Returns whether batches wait or are processed.
    pub(super) fn are_busy(&self) -> bool {
        !self.results.is_empty()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.tasks = None;
        self.results.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
