//! Samples that wait for their deferred user callchain (CALLCHAIN_DEFERRED, 6.19;
//! tools/perf/util/session.c, `evlist__deliver_deferred_callchain`).

use std::collections::{BTreeMap, HashMap, VecDeque};

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::read::RecordRef;
use perfdata_core::record::RawRecord;

use crate::mapping::Mapping;
use crate::sample::Sample;
use crate::session::{Session, Taken};
use crate::space::Space;

/// Maximum size of waiting samples in bytes.
const MOST: usize = 16 << 20;

/// A sample that is waiting, or has waited.
#[derive(Debug)]
pub(crate) struct Waits {
    number: u64,
    /// The record, and its offset in the input.
    bytes: Vec<u8>,
    offset: u64,
    taken: Taken,
    cookie: u64,
    /// The kernel's mappings at the time of the sample.
    kernel: Space<Mapping>,
    /// The user callchain, once it has arrived.
    pub(crate) user: Option<Vec<u64>>,
}

impl Waits {
    /// Returns the sample.
    pub(crate) fn sample<'a>(
        &'a self,
        session: &'a Session,
        recording: &'a Recording,
    ) -> Option<Sample<'a>> {
        let raw = RawRecord::first(&self.bytes, recording.endian, self.offset).ok()?;
        let sample = Sample::new(session, RecordRef::new(raw, recording), self.taken)?;
        Some(sample.with_later(self.user.as_deref().unwrap_or_default(), &self.kernel))
    }

    fn weight(&self) -> usize {
        self.bytes.len().saturating_add(size_of::<Self>())
    }
}

/// All waiting samples.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Waiting samples by thread ID.
    by_tid: HashMap<Option<u32>, VecDeque<Waits>, RandomState>,
    /// Thread IDs of waiting samples by their numbers, which are in the order of the samples.
    order: BTreeMap<u64, Option<u32>>,
    next: u64,
    /// Samples that no longer wait.
    ready: VecDeque<Waits>,
    /// Size of the waiting samples in bytes.
    held: usize,
}

impl Waiting {
    /// Adds a waiting sample.
    pub(crate) fn add(
        &mut self,
        record: &RecordRef<'_>,
        taken: Taken,
        cookie: u64,
        session: &Session,
    ) {
        let number = self.next;
        self.next = number.saturating_add(1);
        let kernel = session.kernel().clone();
        let (bytes, offset) = (record.bytes.to_vec(), record.offset);
        let waits = Waits {
            number,
            bytes,
            offset,
            taken,
            cookie,
            kernel,
            user: None,
        };
        let tid = record
            .sample_view()
            .and_then(|sample| sample.tid())
            .map(|tid| tid.tid);
        self.held = self.held.saturating_add(waits.weight());
        self.by_tid.entry(tid).or_default().push_back(waits);
        self.order.insert(number, tid);
        while self.held > MOST && self.release_oldest() {}
    }

    /// Assigns `user` to all samples of the thread that wait for `cookie`. Samples that wait for
    /// another cookie stop waiting, because the thread has returned to user mode since. Returns
    /// false if no sample waited for `cookie`.
    pub(crate) fn join(&mut self, tid: Option<u32>, cookie: u64, user: &[u64]) -> bool {
        let Some(all) = self.by_tid.remove(&tid) else {
            return false;
        };
        let mut is_wanted = false;
        for mut waits in all {
            if waits.cookie == cookie {
                waits.user = Some(user.to_vec());
                is_wanted = true;
            }
            self.release(waits);
        }
        is_wanted
    }

    /// Stops all waiting at the end of the recording. Returns false if no sample waited.
    pub(crate) fn finish(&mut self) -> bool {
        while self.release_oldest() {}
        !self.ready.is_empty()
    }

    /// Returns the next sample that no longer waits.
    pub(crate) fn take_ready(&mut self) -> Option<Waits> {
        self.ready.pop_front()
    }

    fn release_oldest(&mut self) -> bool {
        let Some((_, tid)) = self.order.pop_first() else {
            return false;
        };
        if let Some(waits) = self.by_tid.get_mut(&tid).and_then(VecDeque::pop_front) {
            self.release(waits);
        }
        if self.by_tid.get(&tid).is_some_and(VecDeque::is_empty) {
            self.by_tid.remove(&tid);
        }
        true
    }

    fn release(&mut self, waits: Waits) {
        self.order.remove(&waits.number);
        self.held = self.held.saturating_sub(waits.weight());
        self.ready.push_back(waits);
    }
}
