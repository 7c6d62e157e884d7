//! Gathers the records of a walk into batches, together with what is known of the recording where they stand, and has
//! them looked at by several threads.
//!
//! The model of a pipe grows with the metadata in it, and a thread needs one that stays as it is: a copy. A stream in which
//! metadata and other records take turns would have the model copied at each turn, so that its cost would grow with the
//! square of its length. So a copy is made only when as many bytes have passed since the last one as there are
//! metadata; until then the records are looked at where they are read, with the model as it is.

use std::ops::ControlFlow;
use std::sync::Arc;

use perfdata_core::names::name_in;
use perfdata_core::read::is_metadata;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Error, Recording};

use crate::batch::{Batch, Intake};
use perfdata_session::EventNames;

/// What is known of a recording at some place in it.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The model.
    pub recording: &'a Recording,
    /// The names of its events.
    pub names: &'a EventNames,
}

/// Something handed in: records to be looked at, or what somebody saw who did.
pub enum Job<T> {
    /// Records, and what is known of them.
    Open(Batch, Arc<(Recording, EventNames)>),
    /// Done already.
    Done(T),
}

impl<T> Job<T> {
    /// What `look` sees in the records.
    pub fn finish(self, look: impl FnOnce(&Batch, Known<'_>) -> T) -> T {
        match self {
            Job::Open(batch, known) => look(&batch, Known { recording: &known.0, names: &known.1 }),
            Job::Done(seen) => seen,
        }
    }
}

/// Gathers records, and hands them in.
pub struct Feed<'a, 'b, T, L> {
    look: L,
    intake: &'a mut Intake<'b, Job<T>>,
    names: EventNames,
    batch: Batch,
    /// The last copy of what is known, and whether nothing was learned since.
    copy: Option<Arc<(Recording, EventNames)>>,
    is_fresh: bool,
    /// Whether the batch waits to be looked at here.
    is_here: bool,
    /// Bytes of metadata, and bytes of anything since the last copy.
    metadata: u64,
    passed: u64,
}

impl<'a, 'b, T, L: Fn(&Batch, Known<'_>) -> T> Feed<'a, 'b, T, L> {
    /// Hands records in `endian` order in to `intake`, or has `look` look at them.
    pub fn new(endian: Endian, intake: &'a mut Intake<'b, Job<T>>, look: L) -> Self {
        Feed {
            look,
            intake,
            names: EventNames::default(),
            batch: Batch::new(endian),
            copy: None,
            is_fresh: false,
            is_here: false,
            metadata: 0,
            passed: 0,
        }
    }

    /// Learns what a record says of others. What metadata say is true from themselves on, and nothing of themselves
    /// depends on it: for a run of them, such as the head of a pipe, nothing is copied. Breaks as [`push`](Self::push).
    pub fn see(&mut self, record: &RawRecord<'_>, recording: &Recording) -> ControlFlow<()> {
        let len = record.bytes.len() as u64;
        self.passed = self.passed.saturating_add(len);
        // A name of an event that is not there is no news yet.
        let is_name = record.kind == RecordType::EVENT_UPDATE;
        let is_news = |id| recording.events.of_id(id).is_some();
        if is_metadata(record.kind) || (is_name && name_in(record).is_some_and(|(id, _)| is_news(id))) {
            self.metadata = self.metadata.saturating_add(len);
            self.is_fresh = false;
            self.pause(recording)?;
        }
        self.names.see(record);
        ControlFlow::Continue(())
    }

    /// Learns that `len` bytes of payload have passed, which may be tracing data.
    pub fn see_payload(&mut self, len: usize) {
        (self.metadata, self.passed) =
            (self.metadata.saturating_add(len as u64), self.passed.saturating_add(len as u64));
        self.is_fresh = false;
    }

    /// Takes a record of `recording`, which was seen; one out of a compressed record with its place in that. Breaks
    /// when nobody takes the results any more.
    pub fn push(&mut self, record: &RawRecord<'_>, inner: Option<usize>, recording: &Recording) -> ControlFlow<()> {
        if self.copy.is_none() || !(self.is_fresh || is_metadata(record.kind)) {
            self.renew(recording)?;
        }
        self.batch.push(record, inner);
        if self.batch.is_full() { self.hand_in(recording) } else { ControlFlow::Continue(()) }
    }

    /// Makes ready for a record that depends on what was learned.
    fn renew(&mut self, recording: &Recording) -> ControlFlow<()> {
        if self.is_here {
            return ControlFlow::Continue(());
        }
        self.hand_in(recording)?;
        if self.copy.is_some() && self.passed < self.metadata {
            self.is_here = true;
        } else {
            self.names.update(recording);
            self.copy = Some(Arc::new((recording.clone(), self.names.clone())));
            (self.is_fresh, self.passed) = (true, 0);
        }
        ControlFlow::Continue(())
    }

    /// Takes what made it impossible to read more compressed records.
    pub fn push_error(&mut self, error: Error, recording: &Recording) -> ControlFlow<()> {
        if self.copy.is_none() {
            self.renew(recording)?;
        }
        self.batch.broken = Some(error);
        self.hand_in(recording)
    }

    /// Lets the model of `recording` grow: what has to be looked at with that of now, is.
    pub fn pause(&mut self, recording: &Recording) -> ControlFlow<()> {
        if self.is_here { self.hand_in(recording) } else { ControlFlow::Continue(()) }
    }

    /// Hands in what there is.
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
                let seen = (self.look)(&self.batch, Known { recording, names: &self.names });
                self.batch.clear();
                Job::Done(seen)
            }
        };
        if self.intake.hand_in(job) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
