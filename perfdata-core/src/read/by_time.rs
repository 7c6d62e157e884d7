//! Records in the order of time.
//!
//! perf reads the ring buffers of the CPUs one after the other, so a stream is in order only within each CPU's part of
//! a round. Whatever comes after the FINISHED_ROUND behind a round is younger than all that came before that round
//! (tools/perf/util/ordered-events.c): two rounds are kept, and sorted when they can be.

use std::io::Read;

use crate::error::{Error, Result};
use crate::read::RecordingReader;
use crate::read::decompress::{Decompressor, is_compressed};
use crate::read::run::Stretch;
use crate::record::{RawRecord, RecordType};
use crate::recording::{Events, Recording};

/// The records of a recording in the order of time, those in compressed records among them.
///
/// Of one moment, what comes first in the input is first. Records without a time (perf's own, and what it tells of the
/// time before the recording) come before the records of the round that they stand in. Payloads are left out.
///
/// The memory is bounded: where rounds are missing, or longer than [`MOST`](Self::MOST) bytes, the older half of what is
/// kept goes first, and is in order as far as can be known by then, as with perf itself.
///
/// ```
/// use perfdata_core::read::{ByTime, RecordingReader};
/// use std::{fs::File, sync::Arc};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-s390x-file-default.data");
/// let mut records = ByTime::new(RecordingReader::open(Arc::new(File::open(path)?))?);
/// let mut last = 0;
/// while let Some((record, recording)) = records.next()? {
///     if let Some(time) = recording.events.sample_time(&record) {
///         assert!(time >= last);
///         last = time;
///     }
/// }
/// # assert!(last > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ByTime<R> {
    reader: RecordingReader<R>,
    zstd: Option<Decompressor>,
    store: Store,
    at_end: bool,
}

impl<R: Read> ByTime<R> {
    /// Bytes of records that are kept at most, but for one block of the input.
    pub const MOST: usize = 16 << 20;

    /// The records that `reader` has not yet given.
    pub fn new(reader: RecordingReader<R>) -> Self {
        ByTime { reader, zstd: None, store: Store::default(), at_end: false }
    }

    /// The next record, and the model as it is at the end of the record's round; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, or compressed records not be decompressed.
    // Not an iterator: a record borrows from this.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(RawRecord<'_>, &Recording)>> {
        while !self.store.has_next() {
            if self.at_end {
                return Ok(None);
            }
            self.fill()?;
        }
        let recording = self.reader.recording();
        Ok(self.store.next(recording).map(|record| (record, recording)))
    }

    /// The model as far as the input was read.
    pub fn recording(&self) -> &Recording {
        self.reader.recording()
    }

    /// Why the records could not be read up to the end: known at the end.
    pub fn damage(&self) -> Option<&Error> {
        self.reader.damage()
    }

    /// Reads on until there is a record, or the end.
    fn fill(&mut self) -> Result<()> {
        let ByTime { reader, zstd, store, at_end } = self;
        store.forget();
        while !store.has_next() {
            let Some((stretch, recording)) = reader.next_stretch()? else {
                *at_end = true;
                store.release(u64::MAX);
                return Ok(());
            };
            let Stretch::Records(run) = stretch else { continue };
            for record in run.iter() {
                if is_compressed(record.kind) {
                    let mut inner = match zstd.take() {
                        Some(inner) => inner,
                        None => Decompressor::of(recording)?,
                    };
                    inner.push(&record)?;
                    while let Some(record) = inner.next()? {
                        store.push(&record, &recording.events);
                    }
                    *zstd = Some(inner);
                } else {
                    store.push(&record, &recording.events);
                    if record.kind == RecordType::FINISHED_ROUND {
                        store.end_round();
                    }
                }
            }
            if store.bytes.len() > Self::MOST {
                store.relieve();
            }
        }
        Ok(())
    }
}

/// Records that wait for older ones.
#[derive(Debug, Default)]
struct Store {
    bytes: Vec<u8>,
    /// Room for them, used in turn.
    spare: Vec<u8>,
    /// Sorted up to `ready`.
    entries: Vec<Entry>,
    /// The next entry to hand out, and the first that must wait.
    next: usize,
    ready: usize,
    /// The youngest time so far, and that at the end of the last round.
    youngest: u64,
    complete: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    time: u64,
    /// Absolute offset in the input.
    offset: u64,
    /// Where in the store the record is.
    start: usize,
    len: usize,
}

impl Store {
    fn has_next(&self) -> bool {
        self.next < self.ready
    }

    fn next(&mut self, recording: &Recording) -> Option<RawRecord<'_>> {
        let Entry { start, offset, len, .. } = *self.entries.get(self.next)?;
        self.next = self.next.saturating_add(1);
        RawRecord::first(self.bytes.get(start..)?.get(..len)?, recording.endian, offset).ok()
    }

    /// A time of 0 or of all ones says nothing: perf takes such a record as it comes.
    fn push(&mut self, record: &RawRecord<'_>, events: &Events) {
        let time = events.time(record).filter(|&time| time != u64::MAX).unwrap_or(0);
        self.youngest = self.youngest.max(time);
        let (start, len) = (self.bytes.len(), record.bytes.len());
        self.entries.push(Entry { time, offset: record.offset, start, len });
        self.bytes.extend_from_slice(record.bytes);
    }

    fn end_round(&mut self) {
        self.release(self.complete);
        self.complete = self.youngest;
    }

    /// Lets the older half go.
    fn relieve(&mut self) {
        self.sort();
        let middle = self.entries.get(self.ready.midpoint(self.entries.len())).map_or(u64::MAX, |entry| entry.time);
        self.release(middle);
    }

    /// Stable, and fast: the store is made of a few sorted runs.
    fn sort(&mut self) {
        self.entries.get_mut(self.ready..).unwrap_or_default().sort_by_key(|entry| entry.time);
    }

    /// Makes everything up to and including the time `until` ready.
    fn release(&mut self, until: u64) {
        self.sort();
        let waiting = self.entries.get(self.ready..).unwrap_or_default();
        self.ready = self.ready.saturating_add(waiting.partition_point(|entry| entry.time <= until));
    }

    /// Forgets what was handed out.
    fn forget(&mut self) {
        self.entries.drain(..self.next);
        self.ready = self.ready.saturating_sub(self.next);
        self.next = 0;
        let mut kept = std::mem::take(&mut self.spare);
        kept.clear();
        for entry in &mut self.entries {
            let bytes = self.bytes.get(entry.start..).and_then(|bytes| bytes.get(..entry.len)).unwrap_or_default();
            entry.start = kept.len();
            kept.extend_from_slice(bytes);
        }
        self.spare = std::mem::replace(&mut self.bytes, kept);
    }
}
