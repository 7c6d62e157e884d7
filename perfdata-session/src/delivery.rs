//! Samples of records that come in time order (tools/perf/util/session.c,
//! `perf_session__deliver_event`).

use perfdata_core::read::{Limits, RecordRef};
use perfdata_core::record::{Body, RecordType, deferred_cookie};
use perfdata_core::{Recording, Result};

use crate::sample::Sample;
use crate::samples::UserCallchains;
use crate::session::{Session, Taken};
use crate::waiting::{Waiting, Waits};

/// Makes samples of records: what [`Samples`](crate::Samples) does with the records that it reads,
/// for programs that read the records of a recording once, and process parts of the samples in
/// several threads. Each thread has its own one, which receives all records in time order.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-g.data");
/// let mut samples = perfdata_session::open(path)?;
/// let mut delivery = samples.another_delivery()?.expect("nothing is unwound");
/// let (mut number, mut even) = (0, 0);
/// while let Some(record) = samples.next_record()? {
///     number += 1;
///     let is_own = number % 2 == 0;
///     delivery.set_own(is_own);
///     if let Some(sample) = delivery.deliver(record)?.filter(|_| is_own) {
///         even += sample.frames().count();
///     }
/// }
/// # assert!(even > 10);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Delivery {
    pub(crate) session: Session,
    waiting: Waiting,
    /// The waited sample that was returned last.
    current: Option<Waits>,
    unwinder: Option<Box<dyn UserCallchains>>,
    /// The user callchain of the last sample's user stack.
    unwound: Vec<u64>,
    is_own: bool,
}

impl Delivery {
    /// Returns what makes samples of the records of `recording` from its first one on, with a session
    /// within `limits`.
    ///
    /// # Errors
    /// The BUILD_ID section is corrupt.
    pub fn new(recording: &Recording, limits: Limits) -> Result<Self> {
        Ok(Delivery {
            session: Session::new(recording, limits)?,
            waiting: Waiting::default(),
            current: None,
            unwinder: None,
            unwound: Vec::new(),
            is_own: true,
        })
    }

    /// Returns the same with the user callchains that `unwinder` makes of user stacks.
    #[must_use]
    pub fn with_user_callchains(self, unwinder: Box<dyn UserCallchains>) -> Self {
        Delivery {
            unwinder: Some(unwinder),
            ..self
        }
    }

    /// Returns another one for the same recording before its first record; `None` if its user stacks
    /// can only be unwound in one thread.
    ///
    /// # Errors
    /// The BUILD_ID section is corrupt.
    pub fn another(&self, recording: &Recording) -> Result<Option<Self>> {
        let another = Delivery::new(recording, self.session.limits())?;
        Ok(match &self.unwinder {
            None => Some(another),
            Some(unwinder) => unwinder
                .another()
                .map(|unwinder| another.with_user_callchains(unwinder)),
        })
    }

    /// Sets whether the samples that follow belong to the part of the caller, as by default. Others are
    /// not checked, and their user stacks are not unwound.
    pub fn set_own(&mut self, is_own: bool) {
        self.is_own = is_own;
    }

    /// Returns the session in its state after the last record.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Processes the next record. Returns the sample if it is one that does not wait for its user
    /// callchain.
    ///
    /// # Errors
    /// The record is corrupt, or exceeds the limits.
    pub fn deliver<'a>(&'a mut self, record: RecordRef<'a>) -> Result<Option<Sample<'a>>> {
        match self.take(&record)? {
            Some(taken) => self.taken(record, taken),
            None => Ok(None),
        }
    }

    /// Returns whether there is another sample that no longer waits, which
    /// [`waited`](Self::waited) then returns. To be called before each record, and after
    /// [`end`](Self::end), until it is false.
    #[inline]
    pub fn has_waited(&mut self) -> bool {
        let Some(ready) = self.waiting.take_ready() else {
            return false;
        };
        let count = match ready.user.is_some() {
            true => &mut self.session.counts.deferred,
            false => &mut self.session.counts.never_deferred,
        };
        *count = count.saturating_add(1);
        self.current = Some(ready);
        true
    }

    /// Returns the sample that no longer waits.
    ///
    /// # Errors
    /// The sample is corrupt.
    pub fn waited<'a>(&'a mut self, recording: &'a Recording) -> Result<Option<Sample<'a>>> {
        let Delivery {
            session,
            current,
            unwinder,
            unwound,
            is_own,
            ..
        } = self;
        let waits = current.as_ref();
        let sample = waits.and_then(|waits| waits.sample(session, recording));
        match *is_own {
            true => finish(sample, unwinder, unwound),
            false => Ok(sample),
        }
    }

    /// Ends all waiting after the last record. Returns whether a sample waited.
    pub fn end(&mut self) -> bool {
        self.waiting.finish()
    }

    /// Processes a record. Returns the thread of a sample that does not wait.
    #[inline]
    pub(crate) fn take(&mut self, record: &RecordRef<'_>) -> Result<Option<Taken>> {
        let Delivery {
            session, waiting, ..
        } = self;
        match record.kind {
            RecordType::SAMPLE => {
                let Some((taken, sample)) = session.take(record)? else {
                    return Ok(None);
                };
                match deferred_cookie(sample.callchain()) {
                    Some(cookie) => waiting.add(record, taken, cookie, session),
                    None => return Ok(Some(taken)),
                }
            }
            RecordType::CALLCHAIN_DEFERRED => {
                let decoded = record.decode()?;
                let tid = decoded.sample_id.and_then(|id| id.tid);
                if let Body::CallchainDeferred(chain) = decoded.body
                    && !waiting.join(tid.map(|tid| tid.tid), chain.cookie, &chain.callchain)
                {
                    session.counts.unclaimed = session.counts.unclaimed.saturating_add(1);
                }
            }
            _ => session.see(record)?,
        }
        Ok(None)
    }

    /// Returns a sample that [`take`](Self::take) has processed.
    #[inline]
    pub(crate) fn taken<'a>(
        &'a mut self,
        record: RecordRef<'a>,
        taken: Taken,
    ) -> Result<Option<Sample<'a>>> {
        let Delivery {
            session,
            unwinder,
            unwound,
            is_own,
            ..
        } = self;
        let sample = Sample::new(session, record, taken);
        match *is_own {
            true => finish(sample, unwinder, unwound),
            false => Ok(sample),
        }
    }
}

/// Checks a sample, and unwinds its user stack.
#[inline]
fn finish<'a>(
    sample: Option<Sample<'a>>,
    unwinder: &mut Option<Box<dyn UserCallchains>>,
    unwound: &'a mut Vec<u64>,
) -> Result<Option<Sample<'a>>> {
    let Some(sample) = sample else {
        return Ok(None);
    };
    sample.check()?;
    let Some(unwinder) = unwinder else {
        return Ok(Some(sample));
    };
    unwound.clear();
    unwinder.unwind(&sample, unwound);
    Ok(Some(sample.with_unwound(unwound)))
}
