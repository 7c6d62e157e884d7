//! The samples of a recording in time order.

use std::fmt::Debug;
use std::path::Path;

use perfdata_core::read::{ByTime, Options, RecordRef, RecordSource, RecordingReader};
use perfdata_core::record::{Body, RecordType, deferred_cookie};
use perfdata_core::{Recording, Result};

use crate::sample::Sample;
use crate::session::{Session, Taken};
use crate::waiting::{Waiting, Waits};

/// Makes the user callchains of samples from the copies of their user stacks
/// (`perf record --call-graph dwarf`).
pub trait UserCallchains: Debug + Send {
    /// Appends the user callchain of a sample to `words`: addresses in user mode, that of the
    /// sampled function first. Appends nothing if the sample has no user stack, or its callchain
    /// contains user addresses.
    fn unwind(&mut self, sample: &Sample<'_>, words: &mut Vec<u64>);
}

/// The samples of a recording in time order, each resolved at its time.
///
/// A sample with a deferred user callchain (`--call-graph fp,defer`, 6.19) waits for the record
/// with this callchain. It is returned when the record arrives, when the record can no longer
/// arrive, or when too many bytes are waiting; then it follows samples with later times. perf does
/// the same.
#[derive(Debug)]
pub struct Samples<S = RecordingReader> {
    records: ByTime<S>,
    session: Session,
    waiting: Waiting,
    /// The waited sample that was returned last.
    current: Option<Waits>,
    unwinder: Option<Box<dyn UserCallchains>>,
    /// The user callchain of the last sample's user stack.
    unwound: Vec<u64>,
}

/// The source of the next sample.
enum Next {
    /// The last record.
    Record(Taken),
    /// The samples that waited.
    Waited,
}

impl Samples {
    /// Opens the recording at `path`: a file in file mode or pipe mode, a directory, or a stream.
    ///
    /// # Errors
    /// The file does not exist, is not a recording, or its header or attributes are corrupt.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::new(RecordingReader::open_path(path, Options::default())?)
    }
}

impl<S: RecordSource> Samples<S> {
    /// Returns the samples that `source` has not returned yet. The session stays within the limits
    /// of `source`.
    ///
    /// # Errors
    /// The BUILD_ID section is corrupt.
    pub fn new(source: S) -> Result<Self> {
        let session = Session::new(source.recording(), source.limits())?;
        Ok(Samples {
            records: ByTime::new(source),
            session,
            waiting: Waiting::default(),
            current: None,
            unwinder: None,
            unwound: Vec::new(),
        })
    }

    /// Returns the samples of a source that is in time order already: all stay where they are, also
    /// those without a time.
    #[must_use]
    pub fn in_order(self) -> Self {
        Samples {
            records: self.records.in_order(),
            ..self
        }
    }

    /// Returns the samples with the user callchains that `unwinder` makes of their user stacks
    /// (`perf record --call-graph dwarf`). By default, such samples have the frames that the kernel
    /// recorded.
    #[must_use]
    pub fn with_user_callchains(self, unwinder: Box<dyn UserCallchains>) -> Self {
        Samples {
            unwinder: Some(unwinder),
            ..self
        }
    }

    /// Returns the next sample; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, or a record is corrupt, as for [`ByTime::next`].
    // This is not an iterator, because a sample borrows from `self`.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Sample<'_>>> {
        self.next_with(|_| ())
    }

    /// Returns the next sample. `others` receives all records before it that are not samples, in
    /// time order.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub fn next_with(&mut self, others: impl FnMut(RecordRef<'_>)) -> Result<Option<Sample<'_>>> {
        let Some(next) = self.advance(others)? else {
            return Ok(None);
        };
        let sample = match (next, &self.current) {
            (Next::Record(taken), _) => self
                .records
                .current()
                .and_then(|record| Sample::new(&self.session, record, taken)),
            (Next::Waited, Some(waits)) => waits.sample(&self.session, self.records.recording()),
            (Next::Waited, None) => None,
        };
        let Some(sample) = sample else {
            return Ok(None);
        };
        sample.check()?;
        let Some(unwinder) = &mut self.unwinder else {
            return Ok(Some(sample));
        };
        self.unwound.clear();
        unwinder.unwind(&sample, &mut self.unwound);
        Ok(Some(sample.with_unwound(&self.unwound)))
    }

    /// Returns the session in its state at the time of the last sample.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the model, as far as the recording was read.
    pub fn recording(&self) -> &Recording {
        self.records.recording()
    }

    /// Returns the source of the records.
    pub fn source(&self) -> &S {
        self.records.source()
    }

    /// Reads up to the next sample.
    fn advance(&mut self, mut others: impl FnMut(RecordRef<'_>)) -> Result<Option<Next>> {
        let Samples {
            records,
            session,
            waiting,
            current,
            ..
        } = self;
        loop {
            if let Some(ready) = waiting.take_ready() {
                let count = match ready.user.is_some() {
                    true => &mut session.counts.deferred,
                    false => &mut session.counts.never_deferred,
                };
                *count = count.saturating_add(1);
                *current = Some(ready);
                return Ok(Some(Next::Waited));
            }
            let Some(record) = records.next()? else {
                if waiting.finish() {
                    continue;
                }
                return Ok(None);
            };
            match record.kind {
                RecordType::SAMPLE => {
                    let Some((taken, sample)) = session.take(&record)? else {
                        continue;
                    };
                    match deferred_cookie(sample.callchain()) {
                        Some(cookie) => waiting.add(&record, taken, cookie, session),
                        None => return Ok(Some(Next::Record(taken))),
                    }
                }
                RecordType::CALLCHAIN_DEFERRED => {
                    others(record);
                    let decoded = record.decode()?;
                    let tid = decoded.sample_id.and_then(|id| id.tid);
                    if let Body::CallchainDeferred(chain) = decoded.body
                        && !waiting.join(tid.map(|tid| tid.tid), chain.cookie, &chain.callchain)
                    {
                        session.counts.unclaimed = session.counts.unclaimed.saturating_add(1);
                    }
                }
                _ => {
                    session.see(&record)?;
                    others(record);
                }
            }
        }
    }
}
