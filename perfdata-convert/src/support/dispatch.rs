//! Collects the records of a recording in batches with the state of the recording at their
//! position, and processes them on several threads.
//!
//! The model of a pipe grows with the metadata in it, and a thread needs a constant model, which is
//! a copy. If metadata and other records alternate in a stream, a copy at each change would have a
//! cost that grows with the square of the length. So a new copy is only made if the bytes since the
//! last copy are at least as many as the metadata. Until then, records are processed on the reading
//! thread, with the current model.

use std::ops::ControlFlow;
use std::sync::Arc;

use perfdata_core::names::name_in;
use perfdata_core::read::{BatchPart, RecordBatch};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Error, Recording};

use crate::support::batch::{Batch, JobQueue};
use perfdata_session::EventNames;

/// The state of a recording at some position.
#[derive(Debug, Clone, Copy)]
pub struct StateAt<'a> {
    /// The model.
    pub recording: &'a Recording,
    /// The names of its events.
    pub names: &'a EventNames,
    /// A number that no other state of the recording has; `None` if the state has none.
    pub version: Option<u64>,
}

/// A copy of the state of a recording.
pub struct StateCopy {
    recording: Recording,
    names: EventNames,
    version: u64,
}

/// Decides when the state of a recording is copied again.
#[derive(Debug, Default)]
pub struct CopyPolicy {
    /// Whether the last copy is up to date.
    pub is_fresh: bool,
    /// Size of the metadata, and of everything since the last copy, in bytes.
    metadata: u64,
    passed: u64,
}

impl CopyPolicy {
    /// Adds a record. Returns whether it changes the model of `recording`.
    pub fn see(&mut self, record: &RawRecord<'_>, recording: &Recording) -> bool {
        let len = record.bytes.len();
        // A name of an unknown event has no effect yet.
        let is_name = record.kind == RecordType::EVENT_UPDATE;
        let is_news = |id| recording.events.of_id(id).is_some();
        let is_change = record.kind.is_metadata()
            || (is_name && name_in(record).is_some_and(|(id, _)| is_news(id)));
        match is_change {
            true => self.change(len),
            false => self.pass(len),
        }
        is_change
    }

    /// Adds `len` bytes of metadata.
    pub fn change(&mut self, len: usize) {
        self.metadata = self.metadata.saturating_add(len as u64);
        self.is_fresh = false;
        self.pass(len);
    }

    /// Adds `len` bytes of other data.
    pub fn pass(&mut self, len: usize) {
        self.passed = self.passed.saturating_add(len as u64);
    }

    /// Returns whether a record can be decoded with `copy`, the last copy of the model, in place of
    /// `recording`: also if that is not up to date, metadata depend only on the number of CPUs.
    pub fn suffices(&self, copy: &Recording, recording: &Recording, is_metadata: bool) -> bool {
        let cpus = Recording::nr_cpus_available;
        self.is_fresh || (is_metadata && cpus(copy) == cpus(recording))
    }

    /// Returns whether a copy costs no more than reading what came since the last one.
    pub fn is_affordable(&self) -> bool {
        self.passed >= self.metadata
    }

    /// Notes that the state was copied.
    pub fn copied(&mut self) {
        (self.is_fresh, self.passed) = (true, 0);
    }
}

/// A submitted item: records to process, or the result of processing them.
pub enum Job<T> {
    /// Records, and the state of the recording.
    Open(Batch, Arc<StateCopy>),
    /// The result.
    Done(T),
}

impl<T> Job<T> {
    /// Returns the result of `look` for the records.
    pub fn finish(self, look: impl FnOnce(&Batch, StateAt<'_>) -> T) -> T {
        match self {
            Job::Open(batch, known) => look(
                &batch,
                StateAt {
                    recording: &known.recording,
                    names: &known.names,
                    version: Some(known.version),
                },
            ),
            Job::Done(seen) => seen,
        }
    }
}

/// Collects and submits records.
pub struct Dispatcher<'a, 'b, T, L> {
    look: L,
    intake: &'a mut JobQueue<'b, Job<T>>,
    names: EventNames,
    batch: Batch,
    /// The last copy of the state.
    copy: Option<Arc<StateCopy>>,
    policy: CopyPolicy,
    /// Number of copies so far.
    copies: u64,
    /// Whether the batch will be processed on this thread.
    is_here: bool,
}

impl<'a, 'b, T, L: Fn(&Batch, StateAt<'_>) -> T> Dispatcher<'a, 'b, T, L> {
    /// Returns a feed that submits records in byte order `endian` to `intake`, or processes them
    /// with `look`.
    pub fn new(endian: Endian, intake: &'a mut JobQueue<'b, Job<T>>, look: L) -> Self {
        Dispatcher {
            look,
            intake,
            names: EventNames::default(),
            batch: Batch::new(endian),
            copy: None,
            policy: CopyPolicy::default(),
            copies: 0,
            is_here: false,
        }
    }

    /// Processes the effects of a record on others. Metadata apply from their own position on, and
    /// decoding them depends on no other metadata than the number of CPUs. So consecutive metadata,
    /// such as the head of a pipe, require one more copy at most. Breaks like [`push`](Self::push).
    pub fn see(&mut self, record: &RawRecord<'_>, recording: &Recording) -> ControlFlow<()> {
        if self.policy.see(record, recording) {
            self.pause(recording)?;
        }
        self.names.see(record);
        ControlFlow::Continue(())
    }

    /// Adds `len` bytes of payload, which may be tracing data.
    pub fn see_payload(&mut self, len: usize) {
        self.policy.change(len);
    }

    /// Processes the effects of records on others, and adds them. Breaks like
    /// [`push`](Self::push).
    pub fn take(
        &mut self,
        mut batch: RecordBatch<'_>,
        inner: Option<usize>,
        recording: &Recording,
    ) -> ControlFlow<()> {
        while let Some(part) = batch.take_part(EventNames::reads) {
            let records = match part {
                BatchPart::Wanted(record) => {
                    self.see(&record, recording)?;
                    RecordBatch::of(&record)
                }
                BatchPart::Others(others) => {
                    self.policy.pass(others.bytes().len());
                    others
                }
            };
            self.push(&records, inner, recording)?;
        }
        ControlFlow::Continue(())
    }

    /// Adds records of `recording` after [`see`](Self::see); metadata are alone in their batch. A
    /// record in a compressed record also has an index there. Breaks if no more results are taken.
    pub fn push(
        &mut self,
        records: &RecordBatch<'_>,
        inner: Option<usize>,
        recording: &Recording,
    ) -> ControlFlow<()> {
        let is_metadata = || {
            let mut records = records.iter();
            records
                .next()
                .is_some_and(|record| record.kind.is_metadata())
        };
        let suffices = |copy: &Arc<StateCopy>| {
            self.policy
                .suffices(&copy.recording, recording, is_metadata())
        };
        if !self.copy.as_ref().is_some_and(suffices) {
            self.renew(recording)?;
        }
        self.batch.push(records, inner);
        if self.batch.is_full() {
            self.hand_in(recording)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Updates the state for a record that depends on it.
    fn renew(&mut self, recording: &Recording) -> ControlFlow<()> {
        if self.is_here {
            return ControlFlow::Continue(());
        }
        self.hand_in(recording)?;
        if self.copy.is_some() && !self.policy.is_affordable() {
            self.is_here = true;
        } else {
            self.names.update(recording);
            self.copies = self.copies.saturating_add(1);
            self.copy = Some(Arc::new(StateCopy {
                recording: recording.clone(),
                names: self.names.clone(),
                version: self.copies,
            }));
            self.policy.copied();
        }
        ControlFlow::Continue(())
    }

    /// Adds an error that prevents reading further compressed records.
    pub fn push_error(&mut self, error: Error, recording: &Recording) -> ControlFlow<()> {
        if self.copy.is_none() {
            self.renew(recording)?;
        }
        self.batch.broken = Some(error);
        self.hand_in(recording)
    }

    /// Prepares for a change of the model of `recording`: processes records that require the
    /// current model.
    pub fn pause(&mut self, recording: &Recording) -> ControlFlow<()> {
        if self.is_here {
            self.hand_in(recording)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Submits the collected records.
    pub fn hand_in(&mut self, recording: &Recording) -> ControlFlow<()> {
        let is_here = std::mem::take(&mut self.is_here);
        if self.batch.is_empty() {
            return ControlFlow::Continue(());
        }
        let job = match &self.copy {
            Some(copy) if !is_here => {
                let next = Batch::new(recording.endian);
                Job::Open(std::mem::replace(&mut self.batch, next), copy.clone())
            }
            _ => {
                self.names.update(recording);
                let seen = (self.look)(
                    &self.batch,
                    StateAt {
                        recording,
                        names: &self.names,
                        version: None,
                    },
                );
                self.batch.clear();
                Job::Done(seen)
            }
        };
        if self.intake.hand_in(job) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}
