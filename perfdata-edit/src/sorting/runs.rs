//! Sorted records in temporary files.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "counts of files, and of records that were written"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use perfdata_core::Endian;
use perfdata_core::record::{RawRecord, RecordHeader};

use perfdata_convert::error::Result;
use perfdata_convert::support::files::{temporary_file, temporary_file_failed};

/// Sorted runs of records, each in a temporary file. The records of a run preceded those of the
/// next one in the input.
#[derive(Debug, Default)]
pub(crate) struct Runs(Vec<Run>);

/// Number of runs that are merged to one, so that the number of open files stays small.
const MERGED: usize = 64;

/// Number of bytes read or written at once for a run.
const BLOCK: usize = 64 << 10;

/// A run that is being read. Each record follows its time and its offset in the input.
#[derive(Debug)]
struct Run {
    file: BufReader<File>,
    endian: Endian,
    /// Number of records that are not yet read.
    left: u64,
    /// How often its records were merged.
    level: u32,
    time: u64,
    offset: u64,
    record: Vec<u8>,
}

impl Run {
    /// Reads the next record; returns false at the end.
    fn advance(&mut self) -> std::io::Result<bool> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(false);
        };
        self.left = left;
        self.read()?;
        Ok(true)
    }

    fn read(&mut self) -> std::io::Result<()> {
        let mut word = [0; 8];
        self.file.read_exact(&mut word)?;
        self.time = u64::from_le_bytes(word);
        self.file.read_exact(&mut word)?;
        self.offset = u64::from_le_bytes(word);
        self.record.resize(RecordHeader::SIZE, 0);
        self.file.read_exact(&mut self.record)?;
        let size = RecordHeader::parse(&self.record, self.endian)
            .map_or(RecordHeader::SIZE, |header| usize::from(header.size));
        self.record.resize(size.max(RecordHeader::SIZE), 0);
        let body = self
            .record
            .get_mut(RecordHeader::SIZE..)
            .unwrap_or_default();
        self.file.read_exact(body)
    }

    /// Returns the record that was read last.
    fn record(&self) -> Result<RawRecord<'_>> {
        Ok(RawRecord::first(&self.record, self.endian, self.offset)?)
    }
}

/// A run that is being written.
struct NewRun {
    file: BufWriter<File>,
    endian: Endian,
    count: u64,
}

impl NewRun {
    fn create() -> Result<Self> {
        Ok(NewRun {
            file: BufWriter::with_capacity(BLOCK, temporary_file()?),
            endian: Endian::NATIVE,
            count: 0,
        })
    }

    fn push(&mut self, time: u64, record: &RawRecord<'_>) -> Result<()> {
        self.count += 1;
        self.endian = record.endian;
        let file = &mut self.file;
        file.write_all(&time.to_le_bytes())
            .and_then(|()| file.write_all(&record.offset.to_le_bytes()))
            .and_then(|()| file.write_all(record.bytes))
            .map_err(temporary_file_failed())
    }

    /// Returns the run, with its first record.
    fn finish(self, level: u32) -> Result<Run> {
        let written = self.file.into_inner().map_err(|error| error.into_error());
        let mut file = written.map_err(temporary_file_failed())?;
        file.seek(SeekFrom::Start(0))
            .map_err(temporary_file_failed())?;
        let mut run = Run {
            file: BufReader::with_capacity(BLOCK, file),
            endian: self.endian,
            left: self.count,
            level,
            time: 0,
            offset: 0,
            record: Vec::new(),
        };
        run.advance().map_err(temporary_file_failed())?;
        Ok(run)
    }
}

/// Sorted records that continue the runs.
pub(crate) trait Last {
    /// Returns the oldest record and its time.
    fn first(&self) -> Option<(u64, RawRecord<'_>)>;
    /// Removes the oldest record.
    fn remove_first(&mut self);
}

impl Runs {
    /// Returns the oldest time.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.0.iter().map(|run| run.time).min()
    }

    /// Moves all records of `last` to a new run.
    pub(super) fn add(&mut self, last: &mut impl Last) -> Result<()> {
        let mut new = NewRun::create()?;
        while let Some((time, record)) = last.first() {
            new.push(time, &record)?;
            last.remove_first();
        }
        if new.count == 0 {
            return Ok(());
        }
        self.0.push(new.finish(0)?);
        self.limit()
    }

    /// Merges runs if there are too many.
    fn limit(&mut self) -> Result<()> {
        while let Some(level) = self.0.last().map(|run| run.level) {
            let equal = self.0.iter().rev().take_while(|run| run.level == level);
            if equal.count() < MERGED {
                break;
            }
            let mut merged = Runs(self.0.split_off(self.0.len().saturating_sub(MERGED)));
            let mut new = NewRun::create()?;
            merged.release(u64::MAX, &mut Nothing, |time, record| {
                new.push(time, record)
            })?;
            self.0.push(new.finish(level.saturating_add(1))?);
        }
        Ok(())
    }

    /// Removes the records of the runs and of `last` up to and including the time `until`, in
    /// order, and passes them to `give`.
    pub(crate) fn release(
        &mut self,
        until: u64,
        last: &mut impl Last,
        mut give: impl FnMut(u64, &RawRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.0.is_empty() {
            while let Some((time, record)) = last.first().filter(|(time, _)| *time <= until) {
                give(time, &record)?;
                last.remove_first();
            }
            return Ok(());
        }
        let runs = self.0.iter().map(|run| run.time).enumerate();
        let heads = runs.chain(last.first().map(|(time, _)| (self.0.len(), time)));
        let mut heads: BinaryHeap<_> = heads.map(|(at, time)| Reverse((time, at))).collect();
        while let Some(mut head) = heads.peek_mut() {
            let Reverse((time, at)) = *head;
            if time > until {
                break;
            }
            let next = if let Some(run) = self.0.get_mut(at) {
                give(time, &run.record()?)?;
                let has_more = run.advance().map_err(temporary_file_failed())?;
                has_more.then_some(run.time)
            } else {
                if let Some((_, record)) = last.first() {
                    give(time, &record)?;
                }
                last.remove_first();
                last.first().map(|(time, _)| time)
            };
            match next {
                Some(time) => *head = Reverse((time, at)),
                None => {
                    PeekMut::pop(head);
                }
            }
        }
        let mut is_left = vec![false; self.0.len()];
        for Reverse((_, at)) in heads {
            if let Some(is_left) = is_left.get_mut(at) {
                *is_left = true;
            }
        }
        let mut is_left = is_left.into_iter();
        self.0.retain(|_| is_left.next().unwrap_or(true));
        Ok(())
    }
}

/// All records of sorted runs, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct InOrder {
    runs: Runs,
    /// The next record of each run: time, number of the run.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// The run of the current record.
    current: Option<usize>,
}

impl InOrder {
    /// Returns the records of `runs`.
    pub(crate) fn new(runs: Runs) -> Self {
        let heads = runs.0.iter().enumerate();
        InOrder {
            heads: heads.map(|(at, run)| Reverse((run.time, at))).collect(),
            runs,
            current: None,
        }
    }

    /// Reads the next record; returns false at the end.
    pub(crate) fn advance(&mut self) -> std::io::Result<bool> {
        if let Some(at) = self.current.take()
            && let Some(run) = self.runs.0.get_mut(at)
            && run.advance()?
        {
            self.heads.push(Reverse((run.time, at)));
        }
        self.current = self.heads.pop().map(|Reverse((_, at))| at);
        Ok(self.current.is_some())
    }

    /// Returns the record that was read last.
    pub(crate) fn current(&self) -> Option<RawRecord<'_>> {
        self.runs.0.get(self.current?)?.record().ok()
    }
}

/// No records.
struct Nothing;

impl Last for Nothing {
    fn first(&self) -> Option<(u64, RawRecord<'_>)> {
        None
    }

    fn remove_first(&mut self) {}
}
