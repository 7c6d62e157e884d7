//! Mappings that exist when the kernel walks a deferred callchain, but not yet at the time of its
//! sample: the first sample after `exec` is taken before the program and `ld.so` are mapped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::read::{ByTime, Limits, RecordRef};
use perfdata_core::record::{Body, CpuMode, Record, RecordType, deferred_cookie, is_known_time};

use perfdata_convert::error::Result;
use perfdata_convert::io::BoxedSource;

/// A thread and the cookie of one of its callchains.
pub(super) type ThreadCookie = (Option<u32>, u64);

/// The maximum number of samples that wait, and of mappings that are remembered for them.
const MOST: usize = 1 << 16;

/// The mapping records that a reader needs before a sample, by the callchain of the sample.
#[derive(Debug, Default)]
pub(super) struct EarlyMappings {
    needed: HashMap<ThreadCookie, Vec<Arc<[u8]>>, RandomState>,
    /// Size of the needed records in bytes.
    held: u64,
}

/// A sample whose callchain has not come yet.
#[derive(Debug)]
struct WaitingSample {
    pid: u32,
    time: u64,
}

/// A mapping since the first waiting sample of its process.
#[derive(Debug)]
struct Mapped {
    time: u64,
    range: Range<u64>,
    record: Arc<[u8]>,
}

/// The samples that wait at one moment.
#[derive(Debug, Default)]
struct Moment {
    samples: HashMap<ThreadCookie, WaitingSample, RandomState>,
    /// For each process with waiting samples their number, and its new mappings.
    processes: HashMap<u32, (usize, Vec<Mapped>), RandomState>,
    mappings: usize,
}

impl EarlyMappings {
    /// Reads a recording in the order of time, up to its end or to damage in it.
    ///
    /// # Errors
    /// The mappings exceed the limits.
    pub(super) fn read(source: BoxedSource, limits: Limits) -> Result<Self> {
        let mut early = EarlyMappings::default();
        let mut moment = Moment::default();
        let mut records = ByTime::new(source);
        let wanted = |_: u64, record: &RecordRef<'_>| match record.kind {
            RecordType::SAMPLE => cookie(record).is_some(),
            RecordType::MMAP | RecordType::MMAP2 | RecordType::CALLCHAIN_DEFERRED => true,
            _ => false,
        };
        while let Ok(Some(record)) = records.next_where(wanted) {
            match record.kind {
                RecordType::SAMPLE => moment.sample(&record),
                RecordType::CALLCHAIN_DEFERRED => early.callchain(&record, &mut moment, limits)?,
                _ => moment.mapping(&record),
            }
        }
        Ok(early)
    }

    /// Finds the mappings of a callchain that came after its first sample.
    fn callchain(
        &mut self,
        record: &RecordRef<'_>,
        moment: &mut Moment,
        limits: Limits,
    ) -> Result<()> {
        let events = &record.recording().events;
        let tid = events.trailer_tid(record).map(|(_, tid)| tid);
        let decoded = Record::decode(record, &events.layout_of(record))?;
        let Body::CallchainDeferred(chain) = decoded.body else {
            return Ok(());
        };
        let key = (tid, chain.cookie);
        let Some((time, mappings)) = moment.end(key) else {
            return Ok(());
        };
        let mappings = mappings.as_slice();
        let is_needed = |mapped: &&Mapped| {
            let mut frames = chain.callchain.iter();
            mapped.time > time && frames.any(|frame| mapped.range.contains(frame))
        };
        let needed: Vec<_> = mappings
            .iter()
            .filter(is_needed)
            .map(|mapped| Arc::clone(&mapped.record))
            .collect();
        if !needed.is_empty() {
            let size: usize = needed
                .iter()
                .map(|record| record.len().saturating_add(64))
                .sum();
            self.held = self.held.saturating_add(size as u64);
            limits.check_metadata("mappings of deferred callchains", self.held)?;
            self.needed.insert(key, needed);
        }
        Ok(())
    }

    /// Removes and returns the records that a reader needs before the first sample with this
    /// callchain.
    pub(super) fn take(&mut self, key: ThreadCookie) -> Vec<Arc<[u8]>> {
        match self.needed.is_empty() {
            true => Vec::new(),
            false => self.needed.remove(&key).unwrap_or_default(),
        }
    }
}

/// Returns the cookie of the callchain of a sample, if it is deferred.
fn cookie(record: &RecordRef<'_>) -> Option<u64> {
    let view = record.recording().events.sample_view(record)?;
    deferred_cookie(view.callchain())
}

impl Moment {
    fn sample(&mut self, record: &RecordRef<'_>) {
        let view = record.recording().events.sample_view(record);
        let (Some(view), Some(cookie)) = (view, cookie(record)) else {
            return;
        };
        let (Some(task), Some(time)) =
            (view.tid(), view.time().filter(|&time| is_known_time(time)))
        else {
            return;
        };
        let key = (Some(task.tid), cookie);
        // Of callchains that never come.
        if self.samples.len() >= MOST {
            *self = Moment::default();
        }
        // The first of several samples with this callchain.
        if let Entry::Vacant(entry) = self.samples.entry(key) {
            let pid = task.pid;
            entry.insert(WaitingSample { pid, time });
            let (count, _) = self.processes.entry(pid).or_default();
            *count = count.saturating_add(1);
        }
    }

    fn mapping(&mut self, record: &RecordRef<'_>) {
        let is_user = CpuMode::of(record.misc) == CpuMode::USER;
        let events = &record.recording().events;
        let fixed = events.fixed_record(record).filter(|_| is_user);
        let (Some(map), Some(time)) = (fixed.and_then(|fixed| fixed.mapping()), record.time())
        else {
            return;
        };
        if self.mappings >= MOST {
            *self = Moment::default();
        }
        if let Some((_, mappings)) = self.processes.get_mut(&map.pid) {
            mappings.push(Mapped {
                time,
                range: map.addr..map.addr.saturating_add(map.len),
                record: Arc::from(record.bytes),
            });
            self.mappings = self.mappings.saturating_add(1);
        }
    }

    /// Ends the wait of a sample. Returns its time, and the new mappings of its process.
    fn end(&mut self, key: ThreadCookie) -> Option<(u64, Vec<Mapped>)> {
        let WaitingSample { pid, time } = self.samples.remove(&key)?;
        let (count, mappings) = self.processes.get_mut(&pid)?;
        *count = count.saturating_sub(1);
        if *count == 0 {
            let (_, mappings) = self.processes.remove(&pid)?;
            self.mappings = self.mappings.saturating_sub(mappings.len());
            return Some((time, mappings));
        }
        // Others of the process still wait.
        let mappings = mappings.iter().map(|mapped| Mapped {
            time: mapped.time,
            range: mapped.range.clone(),
            record: Arc::clone(&mapped.record),
        });
        Some((time, mappings.collect()))
    }
}
