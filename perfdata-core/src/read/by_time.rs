//! Records in the order of time.

use std::io::Read;

use binrw::Endian;

use crate::error::{Error, Result};
use crate::read::decompress::{Decompressor, is_compressed};
use crate::read::ordered_events::{OrderedEvents, Waiting};
use crate::read::record_batch::{Chunk, RecordBatch};
use crate::read::{PathReader, RecordRef, RecordingReader};
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
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/6.1-s390x-file-default.data");
/// let mut records = perfdata_core::open(path)?.by_time();
/// let mut last = 0;
/// while let Some(record) = records.next()? {
///     if let Some(time) = record.sample_view().and_then(|sample| sample.time()) {
///         assert!(time >= last);
///         last = time;
///     }
/// }
/// # assert!(last > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ByTime<R = PathReader> {
    reader: RecordingReader<R>,
    zstd: Option<Decompressor>,
    rounds: OrderedEvents<Kept>,
    at_end: bool,
}

impl<R: Read> ByTime<R> {
    /// Bytes of records that are kept at most, but for one block of the input.
    pub const MOST: usize = 16 << 20;

    /// The records that `reader` has not yet given.
    pub(super) fn new(reader: RecordingReader<R>) -> Self {
        ByTime { reader, zstd: None, rounds: OrderedEvents::new(Self::MOST), at_end: false }
    }

    /// The next record, and the model as it is at the end of the record's round; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, or compressed records cannot be decompressed. Where the recording is damaged or cut,
    /// this is an error once, behind the last record that can be read, and then the end.
    // Not an iterator: a record borrows from this.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>> {
        while !self.rounds.has_next() {
            if self.at_end {
                return self.damage().map_or(Ok(None), Err);
            }
            self.fill()?;
        }
        let recording = self.reader.recording();
        let next = self.rounds.next().and_then(|(kept, at)| kept.get(at, recording.endian));
        Ok(next.map(|record| RecordRef::new(record, recording)))
    }

    /// The record that [`next`](Self::next) gave last, once more.
    pub fn current(&self) -> Option<RecordRef<'_>> {
        let recording = self.reader.recording();
        let record = self.rounds.current().and_then(|(kept, at)| kept.get(at, recording.endian))?;
        Some(RecordRef::new(record, recording))
    }

    /// The model as far as the input was read.
    pub fn recording(&self) -> &Recording {
        self.reader.recording()
    }

    /// Why there are no more records though there should be, told once.
    fn damage(&mut self) -> Option<Error> {
        let rest = self.zstd.take().map_or(0, |zstd| zstd.pending() as u64);
        let cut = (rest > 0).then(|| Error::truncated("compressed record stream", rest.saturating_add(1), rest));
        self.reader.take_damage().or(cut)
    }

    /// Reads on until there is a record, or the end.
    fn fill(&mut self) -> Result<()> {
        let ByTime { reader, zstd, rounds, at_end } = self;
        rounds.settle();
        while !rounds.has_next() {
            let Some((chunk, recording)) = reader.next_chunk()? else {
                *at_end = true;
                rounds.finish();
                return Ok(());
            };
            let Chunk::Records(batch) = chunk else { continue };
            let mut kept = rounds.spare();
            kept.bytes.extend_from_slice(batch.bytes());
            rounds.add(kept);
            for record in batch.iter() {
                if is_compressed(record.kind) {
                    let mut inner = match zstd.take() {
                        Some(inner) => inner,
                        None => Decompressor::of(recording)?,
                    };
                    inner.push(&record)?;
                    while let Some(record) = inner.next()? {
                        let Some(kept) = rounds.last_mut() else { continue };
                        let at = kept.push(&record);
                        rounds.wait(time(&record, &recording.events), at);
                    }
                    *zstd = Some(inner);
                    continue;
                }
                let Some(kept) = rounds.last_mut() else { continue };
                let at = kept.note(&record, &batch);
                rounds.wait(time(&record, &recording.events), at);
                if record.kind == RecordType::FINISHED_ROUND {
                    rounds.end_round();
                }
            }
            rounds.settle();
        }
        Ok(())
    }
}

/// A time of 0 or of all ones says nothing: perf takes such a record as it comes.
fn time(record: &RawRecord<'_>, events: &Events) -> u64 {
    events.time(record).filter(|&time| time != u64::MAX).unwrap_or(0)
}

/// Records that wait for older ones.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// Absolute offset in the input.
    offset: u64,
    /// Where among the bytes the record is.
    start: usize,
    len: usize,
}

impl Kept {
    /// Adds a record; its number.
    fn push(&mut self, record: &RawRecord<'_>) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.bytes);
        self.places.push(Place { offset: record.offset, start, len: record.bytes.len() });
        self.places.len().saturating_sub(1)
    }

    /// Adds a record of `batch`, whose bytes are the first that are kept.
    #[inline]
    fn note(&mut self, record: &RawRecord<'_>, batch: &RecordBatch<'_>) -> usize {
        let start = usize::try_from(record.offset.saturating_sub(batch.offset())).unwrap_or(usize::MAX);
        self.places.push(Place { offset: record.offset, start, len: record.bytes.len() });
        self.places.len().saturating_sub(1)
    }

    fn get(&self, at: usize, endian: Endian) -> Option<RawRecord<'_>> {
        let &Place { offset, start, len } = self.places.get(at)?;
        RawRecord::first(self.bytes.get(start..)?.get(..len)?, endian, offset).ok()
    }
}

impl Waiting for Kept {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn weight(&self) -> usize {
        self.places.len().saturating_mul(size_of::<Place>()).saturating_add(self.bytes.len())
    }

    fn push_from(&mut self, other: &Self, at: usize) {
        let Some(place) = other.places.get(at) else { return };
        let Some(bytes) = other.bytes.get(place.start..).and_then(|bytes| bytes.get(..place.len)) else { return };
        self.places.push(Place { start: self.bytes.len(), ..*place });
        self.bytes.extend_from_slice(bytes);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}
