//! The samples of a recording in time order.

use std::fmt::Debug;
use std::path::Path;

use perfdata_core::read::{ByTime, Options, RecordRef, RecordSource, RecordingReader};
use perfdata_core::record::RecordType;
use perfdata_core::{Recording, Result};

use crate::delivery::Delivery;
use crate::sample::Sample;
use crate::session::{Session, Taken};

/// Makes the user callchains of samples from the copies of their user stacks
/// (`perf record --call-graph dwarf`).
pub trait UserCallchains: Debug + Send {
    /// Appends the user callchain of a sample to `words`: addresses in user mode, that of the
    /// sampled function first. Appends nothing if the sample has no user stack, or its callchain
    /// contains user addresses.
    fn unwind(&mut self, sample: &Sample<'_>, words: &mut Vec<u64>);

    /// Returns another one with the same objects and results, for samples of the same recording in
    /// another thread. By default, there is none, and all samples are unwound in one thread.
    fn another(&self) -> Option<Box<dyn UserCallchains>> {
        None
    }
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
    delivery: Delivery,
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
        let delivery = Delivery::new(source.recording(), source.limits())?;
        Ok(Samples {
            records: ByTime::new(source),
            delivery,
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
            delivery: self.delivery.with_user_callchains(unwinder),
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
        let Samples { records, delivery } = self;
        match next {
            Next::Record(taken) => match records.current() {
                Some(record) => delivery.taken(record, taken),
                None => Ok(None),
            },
            Next::Waited => delivery.waited(records.recording()),
        }
    }

    /// Returns the session in its state at the time of the last sample.
    pub fn session(&self) -> &Session {
        &self.delivery.session
    }

    /// Returns the model, as far as the recording was read.
    pub fn recording(&self) -> &Recording {
        self.records.recording()
    }

    /// Returns the source of the records.
    pub fn source(&self) -> &S {
        self.records.source()
    }

    /// Returns what makes samples of the records that [`next_record`](Self::next_record) returns, in
    /// another thread; `None` if user stacks can only be unwound in one thread. To be called before
    /// the first record.
    ///
    /// # Errors
    /// The BUILD_ID section is corrupt.
    pub fn another_delivery(&self) -> Result<Option<Delivery>> {
        self.delivery.another(self.recording())
    }

    /// Returns the next record in time order, without processing it: it is not part of the session.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    pub fn next_record(&mut self) -> Result<Option<RecordRef<'_>>> {
        self.records.next()
    }

    /// Reads up to the next sample.
    fn advance(&mut self, mut others: impl FnMut(RecordRef<'_>)) -> Result<Option<Next>> {
        let Samples { records, delivery } = self;
        loop {
            if delivery.has_waited() {
                return Ok(Some(Next::Waited));
            }
            let Some(record) = records.next()? else {
                if delivery.end() {
                    continue;
                }
                return Ok(None);
            };
            if let Some(taken) = delivery.take(&record)? {
                return Ok(Some(Next::Record(taken)));
            }
            if record.kind != RecordType::SAMPLE {
                others(record);
            }
        }
    }
}
