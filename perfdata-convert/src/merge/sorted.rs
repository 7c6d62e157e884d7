//! The records of one input in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::Arc;

use perfdata_core::Recording;
use perfdata_core::header::FileSection;
use perfdata_core::read::{
    ByTime, InputFile, RecordSource, RecordStream, SourceReader, StreamItem,
};
use perfdata_core::record::{RawRecord, is_known_time};

use crate::error::{Error, Result};
use crate::io::{BoxedSource, each_record, temporary_file};

/// The records of an input in the order of time, without payloads.
pub(super) enum Sorted {
    /// By the rounds of perf.
    Rounds(Box<ByTime<BoxedSource>>),
    /// By sorted parts in a temporary file, because there are no rounds or they are not true.
    Runs(Box<Runs>),
}

impl Sorted {
    /// Orders the records of `source`; `is_orderly` says whether [`ByTime`] does it.
    ///
    /// # Errors
    /// The input cannot be read, or a temporary file cannot be written.
    pub(super) fn new(source: BoxedSource, is_orderly: bool) -> Result<Sorted> {
        Ok(if is_orderly {
            Sorted::Rounds(Box::new(ByTime::new(source)))
        } else {
            Sorted::Runs(Box::new(Runs::of(source)?))
        })
    }

    /// Reads the next record; returns false at the end.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt.
    #[inline]
    pub(super) fn advance(&mut self) -> perfdata_core::Result<bool> {
        match self {
            Sorted::Rounds(records) => records.advance(),
            Sorted::Runs(runs) => runs.advance(),
        }
    }

    /// Returns the record that was read last.
    #[inline]
    pub(super) fn current(&self) -> Option<RawRecord<'_>> {
        match self {
            Sorted::Rounds(records) => records.current().map(|record| *record),
            Sorted::Runs(runs) => runs.current(),
        }
    }

    /// Returns the time of this record, if it has a known one.
    #[inline]
    pub(super) fn time(&self) -> Option<u64> {
        match self {
            Sorted::Rounds(records) => records.time(),
            Sorted::Runs(runs) => runs.runs.get(runs.current?)?.own,
        }
    }
}

/// Size in bytes of the records that are sorted at once.
const RUN: usize = 32 << 20;

/// Parts of a stream that were sorted and stored, and are merged.
pub(super) struct Runs {
    recording: Recording,
    runs: Vec<Run>,
    /// The next record of each part: time, number of the part.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// The part of the current record.
    current: Option<usize>,
}

/// A sorted part.
struct Run {
    records: RecordStream<SourceReader<Arc<InputFile>>>,
    record: Vec<u8>,
    /// The time of the record, and of the last record that has one.
    own: Option<u64>,
    time: u64,
}

/// The records that are sorted at once.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Time, offset and length of each.
    order: Vec<(u64, usize, usize)>,
    /// The time of the last record that has one.
    time: u64,
}

impl Waiting {
    fn add(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        self.time = time_of(record, recording).unwrap_or(self.time);
        self.order
            .push((self.time, self.bytes.len(), record.bytes.len()));
        self.bytes.extend_from_slice(record.bytes);
    }

    /// Appends the records to `file` in order, and forgets them.
    fn store(&mut self, file: &mut File, ends: &mut Vec<u64>) -> Result<()> {
        if self.order.is_empty() {
            return Ok(());
        }
        self.order.sort_by_key(|&(time, ..)| time);
        let mut block = Vec::with_capacity(self.bytes.len());
        for &(_, at, len) in &self.order {
            let record = self.bytes.get(at..).and_then(|bytes| bytes.get(..len));
            block.extend_from_slice(record.unwrap_or_default());
        }
        file.write_all(&block)
            .map_err(Error::io("temporary file"))?;
        let end = ends.last().copied().unwrap_or(0);
        ends.push(end.saturating_add(block.len() as u64));
        self.bytes.clear();
        self.order.clear();
        Ok(())
    }
}

/// Returns the time by which a record is sorted.
fn time_of(record: &RawRecord<'_>, recording: &Recording) -> Option<u64> {
    recording
        .events
        .time(record)
        .filter(|&time| is_known_time(time))
}

impl Runs {
    fn of(mut source: BoxedSource) -> Result<Runs> {
        let mut file = temporary_file()?;
        let mut ends = Vec::new();
        let mut waiting = Waiting::default();
        each_record(&mut *source, |record, recording| {
            if !record.kind.has_payload() {
                waiting.add(record, recording);
            }
            if waiting.bytes.len() >= RUN {
                waiting.store(&mut file, &mut ends)?;
            }
            Ok(())
        })?;
        if let Some(damage) = source.take_damage() {
            return Err(damage.into());
        }
        waiting.store(&mut file, &mut ends)?;
        file.seek(SeekFrom::Start(0))
            .map_err(Error::io("temporary file"))?;
        let file = Arc::new(InputFile::new(file).map_err(Error::io("temporary file"))?);
        let recording = source.recording().clone();
        let mut start = 0;
        let runs = ends.into_iter().map(|end| {
            let place = FileSection {
                offset: start,
                size: end.saturating_sub(start),
            };
            start = end;
            Run {
                records: RecordStream::new(
                    SourceReader::new(file.clone(), place),
                    recording.endian,
                    place.offset,
                ),
                record: Vec::new(),
                own: None,
                time: 0,
            }
        });
        let mut merged = Runs {
            runs: runs.collect(),
            recording,
            next: BinaryHeap::new(),
            current: None,
        };
        for at in 0..merged.runs.len() {
            merged.read(at)?;
        }
        Ok(merged)
    }

    /// Reads the next record of the part with index `at`.
    fn read(&mut self, at: usize) -> perfdata_core::Result<()> {
        let Some(run) = self.runs.get_mut(at) else {
            return Ok(());
        };
        if let Some(StreamItem::Record(record)) = run.records.next()? {
            run.own = time_of(&record, &self.recording);
            run.time = run.own.unwrap_or(run.time);
            run.record.clear();
            run.record.extend_from_slice(record.bytes);
            self.next.push(Reverse((run.time, at)));
        }
        Ok(())
    }

    fn advance(&mut self) -> perfdata_core::Result<bool> {
        if let Some(last) = self.current.take() {
            self.read(last)?;
        }
        self.current = self.next.pop().map(|Reverse((_, at))| at);
        Ok(self.current.is_some())
    }

    fn current(&self) -> Option<RawRecord<'_>> {
        let run = self.runs.get(self.current?)?;
        RawRecord::first(&run.record, self.recording.endian, 0).ok()
    }
}
