//! Records in time order.

use binrw::Endian;

use crate::error::{Error, Result};
use crate::read::decompress::Decompressor;
use crate::read::ordered_events::{OrderedEvents, Waiting};
use crate::read::record_batch::{Chunk, RecordBatch};
use crate::read::{RecordRef, RecordSource, RecordingReader};
use crate::record::{RawRecord, RecordType, is_known_time};
use crate::recording::{Events, Recording};

/// The records of a recording in time order, including records inside compressed records.
///
/// Records with the same time keep the order of the input. Records without a time (perf's own, and
/// its records about the time before the recording) precede the records of their round. Payloads
/// are skipped.
///
/// Memory is bounded: if rounds are missing, or longer than [`MOST`](Self::MOST) bytes, the older
/// half of the buffered records is returned first. As in perf, its order is then correct only as
/// far as it can be known at that time.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-s390x-file-default.data");
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
pub struct ByTime<S = RecordingReader> {
    source: S,
    zstd: Option<Decompressor>,
    rounds: OrderedEvents<Kept>,
    /// Number of records read.
    count: u64,
    at_end: bool,
    /// The latest time so far, if all records stay where they are.
    latest: Option<u64>,
}

impl<S: RecordSource> ByTime<S> {
    /// Maximum size in bytes of the buffered records, in addition to one block of the input.
    pub const MOST: usize = 16 << 20;

    /// Returns the records that `reader` has not yet returned.
    pub fn new(source: S) -> Self {
        ByTime {
            source,
            zstd: None,
            rounds: OrderedEvents::new(Self::MOST),
            count: 0,
            at_end: false,
            latest: None,
        }
    }

    /// Returns the records of a source that is in time order already: all records stay where they
    /// are, also those without a time.
    #[must_use]
    pub fn in_order(self) -> Self {
        ByTime {
            latest: Some(0),
            ..self
        }
    }

    /// Returns the next record, with the model as of the end of the record's round; `None` at the
    /// end.
    ///
    /// # Errors
    /// Fails if the input cannot be read or compressed records cannot be decompressed. If the
    /// recording is corrupt or truncated, returns one error after the last readable record, and
    /// then `None`.
    // Not an iterator: a record borrows from this.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>> {
        self.next_of(None)
    }

    /// Returns the next record among those for which `wanted` is true. `wanted` receives every
    /// record and its [number](Self::number) once, in the order of the input, when it is read. The
    /// other records do not wait, so a program that needs few records reads faster.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_where(
        &mut self,
        mut wanted: impl FnMut(u64, &RecordRef<'_>) -> bool,
    ) -> Result<Option<RecordRef<'_>>> {
        self.next_of(Some(&mut wanted))
    }

    fn next_of(&mut self, wanted: Option<Wanted<'_>>) -> Result<Option<RecordRef<'_>>> {
        Ok(if self.advance_to(wanted)? {
            self.current()
        } else {
            None
        })
    }

    /// Reads the next record, which [`current`](Self::current) then returns; returns false at the
    /// end.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        self.advance_to(None)
    }

    #[inline]
    fn advance_to(&mut self, mut wanted: Option<Wanted<'_>>) -> Result<bool> {
        while !self.rounds.has_next() {
            if self.at_end {
                return self.damage().map_or(Ok(false), Err);
            }
            self.fill(&mut wanted)?;
        }
        Ok(self.rounds.next().is_some())
    }

    /// Returns the time of the record that [`next`](Self::next) returned last in nanoseconds on the
    /// recording's clock; `None` if it has none, or perf's "unknown" (0 or all ones).
    #[inline]
    pub fn time(&self) -> Option<u64> {
        self.rounds.current_time().filter(|&time| time != 0)
    }

    /// Returns again the record that [`next`](Self::next) returned last.
    #[inline]
    pub fn current(&self) -> Option<RecordRef<'_>> {
        let recording = self.source.recording();
        let record = self
            .rounds
            .current()
            .and_then(|(kept, at)| kept.get(at, recording.endian))?;
        Some(RecordRef::new(record, recording))
    }

    /// Returns the number of the record that [`next`](Self::next) returned last, in the order of
    /// the input, from 0. Records inside compressed records are counted, compressed records are
    /// not.
    pub fn number(&self) -> Option<u64> {
        self.rounds
            .current()
            .and_then(|(kept, at)| Some(kept.places.get(at)?.number))
    }

    /// Returns the number of records read so far, counted as in [`number`](Self::number). At the
    /// end, this is the number of all records.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the source of the records.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the model as far as the input was read.
    pub fn recording(&self) -> &Recording {
        self.source.recording()
    }

    /// Returns why there are no more records although there should be, only once.
    fn damage(&mut self) -> Option<Error> {
        let rest = self.zstd.take().map_or(0, |zstd| zstd.pending() as u64);
        let cut = (rest > 0)
            .then(|| Error::truncated("compressed record stream", rest.saturating_add(1), rest));
        self.source.take_damage().or(cut)
    }

    /// Reads until there is a record, or to the end.
    fn fill(&mut self, wanted: &mut Option<Wanted<'_>>) -> Result<()> {
        let ByTime {
            source,
            zstd,
            rounds,
            count,
            at_end,
            latest,
        } = self;
        let limits = source.limits();
        rounds.settle();
        while !rounds.has_next() {
            let Some((chunk, recording)) = source.next_chunk()? else {
                *at_end = true;
                rounds.finish();
                return Ok(());
            };
            let Chunk::Records(batch) = chunk else {
                continue;
            };
            let mut kept = rounds.spare();
            if wanted.is_none() {
                kept.bytes.extend_from_slice(batch.bytes());
            }
            rounds.add(kept);
            let mut keep = |record: &RawRecord<'_>, inside: bool, rounds: &mut OrderedEvents<_>| {
                let number = *count;
                *count = count.saturating_add(1);
                if let Some(wanted) = wanted
                    && !wanted(number, &RecordRef::new(*record, recording))
                {
                    return;
                }
                let Some(kept): Option<&mut Kept> = rounds.last_mut() else {
                    return;
                };
                let at = if inside || wanted.is_some() {
                    kept.push(record, number)
                } else {
                    kept.note(record, &batch, number)
                };
                let mut time = time(record, &recording.events);
                if let Some(latest) = latest {
                    *latest = time.max(*latest);
                    time = *latest;
                }
                rounds.wait(time, at);
            };
            for record in batch.iter() {
                if record.kind.is_compressed() {
                    let mut inner = match zstd.take() {
                        Some(inner) => inner,
                        None => Decompressor::of(recording, limits)?,
                    };
                    inner.push(&record)?;
                    while let Some(record) = inner.next()? {
                        keep(&record, true, rounds);
                    }
                    *zstd = Some(inner);
                    continue;
                }
                keep(&record, false, rounds);
                if record.kind == RecordType::FINISHED_ROUND {
                    rounds.end_round();
                }
            }
            rounds.settle();
        }
        Ok(())
    }
}

/// Whether a record with this number is wanted.
type Wanted<'a> = &'a mut dyn FnMut(u64, &RecordRef<'_>) -> bool;

/// Records without a time come as they stand.
fn time(record: &RawRecord<'_>, events: &Events) -> u64 {
    events
        .time(record)
        .filter(|&time| is_known_time(time))
        .unwrap_or(0)
}

/// Records that wait for older ones.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    places: Vec<KeptRecord>,
}

#[derive(Debug, Clone, Copy)]
struct KeptRecord {
    /// Absolute offset in the input.
    offset: u64,
    /// Number of the record in the input.
    number: u64,
    /// Offset of the record in `bytes`.
    start: usize,
    len: usize,
}

impl Kept {
    /// Adds a record; returns its index.
    fn push(&mut self, record: &RawRecord<'_>, number: u64) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.bytes);
        self.place(record, start, number)
    }

    /// Adds a record of `batch`, whose bytes are already at the start of `bytes`; returns the
    /// record's index.
    #[inline]
    fn note(&mut self, record: &RawRecord<'_>, batch: &RecordBatch<'_>, number: u64) -> usize {
        let start =
            usize::try_from(record.offset.saturating_sub(batch.offset())).unwrap_or(usize::MAX);
        self.place(record, start, number)
    }

    /// Adds a record that starts at `start` of `bytes`; returns its index.
    #[inline]
    fn place(&mut self, record: &RawRecord<'_>, start: usize, number: u64) -> usize {
        self.places.push(KeptRecord {
            offset: record.offset,
            number,
            start,
            len: record.bytes.len(),
        });
        self.places.len().saturating_sub(1)
    }

    fn get(&self, at: usize, endian: Endian) -> Option<RawRecord<'_>> {
        let &KeptRecord {
            offset, start, len, ..
        } = self.places.get(at)?;
        RawRecord::first(self.bytes.get(start..)?.get(..len)?, endian, offset).ok()
    }
}

impl Waiting for Kept {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn weight(&self) -> usize {
        self.places
            .len()
            .saturating_mul(size_of::<KeptRecord>())
            .saturating_add(self.bytes.len())
    }

    fn push_from(&mut self, other: &Self, at: usize) {
        let Some(place) = other.places.get(at) else {
            return;
        };
        let Some(bytes) = other
            .bytes
            .get(place.start..)
            .and_then(|bytes| bytes.get(..place.len))
        else {
            return;
        };
        self.places.push(KeptRecord {
            start: self.bytes.len(),
            ..*place
        });
        self.bytes.extend_from_slice(bytes);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}
