//! Reading directories: `data`, a recording in file mode, and with `perf record --threads` one file `data.N` per ring
//! buffer that contains only records (tools/perf/util/session.c, __perf_session__process_dir_events).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read};

use crate::error::{Error, Problem, Result};
use crate::header::FileSection;
use crate::read::decompress::{Decompressor, is_compressed};
use crate::read::records::{RecordStream, StreamItem};
use crate::read::salvage::Salvaged;
use crate::read::source::{Source, SourceReader};
use crate::record::{RawRecord, RecordType};
use crate::recording::{Events, Recording};

/// A file next to `data` in a directory.
#[derive(Debug, Clone)]
pub struct DataFile<S> {
    /// `data.0`, …
    pub name: String,
    /// Content of the file.
    pub source: S,
}

/// The records of all files of a directory as one stream in time order; records of one file keep their order. Records
/// without a time stay after the preceding record.
///
/// Compressed files, each with its own zstd stream, are decompressed. FINISHED_ROUND records are skipped, because each
/// refers to only one file. Of a corrupt file, the records before the damage are returned; after the records of all
/// files, reading fails once for each such file. Memory is bounded: a block of each file, and the memory of zstd.
#[derive(Debug)]
pub struct Merged<R> {
    files: Vec<DataStream<R>>,
    recording: Recording,
    /// The next record of each file that has one: time and file index.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    block: Vec<u8>,
    /// Number of bytes of the block that are already returned.
    taken: usize,
    /// Errors that ended files early and are not yet reported.
    damage: VecDeque<Error>,
}

/// Number of bytes of records merged at once.
const BLOCK: usize = 64 << 10;

/// Number of bytes read from one file at once. There may be a thousand files.
const FILE_BLOCK: usize = 16 << 10;

impl<S: Source> Merged<SourceReader<S>> {
    /// Merges the records of `data` and `files`. `recording` is the metadata of `data`, whose records are at `place`.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn new(recording: &Recording, data: S, place: FileSection, files: Vec<DataFile<S>>) -> Result<Self> {
        let whole = FileSection { offset: 0, size: u64::MAX };
        let mut parts = vec![("data".into(), SourceReader::new(data, place), place.offset)];
        parts.extend(files.into_iter().map(|file| (file.name, SourceReader::new(file.source, whole), 0)));
        Self::of(recording, parts, false)
    }
}

impl<S: Source> Merged<Salvaged<S>> {
    /// Merges the plausible records of corrupt files: `parts` are the file names, the records, and the offset of the
    /// first record.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn salvaged(recording: &Recording, parts: Vec<(String, Salvaged<S>, u64)>) -> Result<Self> {
        Self::of(recording, parts, true)
    }
}

impl<R: Read> Merged<R> {
    fn of(recording: &Recording, parts: Vec<(String, R, u64)>, may_be_cut: bool) -> Result<Self> {
        let stream = |(name, input, offset)| DataStream::new(name, input, offset, recording, may_be_cut);
        let streams: Vec<_> = parts.into_iter().map(stream).collect();
        let mut recording = recording.clone();
        if !may_be_cut {
            recording.limits = recording.limits.of_each(streams.len());
        }
        let mut merged = Merged {
            next: BinaryHeap::with_capacity(streams.len()),
            files: streams,
            recording,
            block: Vec::new(),
            taken: 0,
            damage: VecDeque::new(),
        };
        (0..merged.files.len()).try_for_each(|at| merged.advance(at))?;
        Ok(merged)
    }

    /// Reads the next record of the file with index `at`.
    fn advance(&mut self, at: usize) -> Result<()> {
        let Some(file) = self.files.get_mut(at) else { return Ok(()) };
        match file.advance(&self.recording) {
            Ok(true) => self.next.push(Reverse((file.time, at))),
            Ok(false) => {}
            Err(error) if error.is_io() => return Err(error),
            Err(damage) => self.damage.push_back(damage),
        }
        Ok(())
    }

    /// Fills the block; leaves it empty at the end.
    fn fill(&mut self) -> Result<()> {
        self.block.clear();
        self.taken = 0;
        while self.block.len() < BLOCK {
            let Some(Reverse((_, at))) = self.next.pop() else { break };
            self.block.extend_from_slice(self.files.get(at).map(|file| file.record.as_slice()).unwrap_or_default());
            self.advance(at)?;
        }
        Ok(())
    }
}

impl<R: Read> Read for Merged<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.block.len() {
            self.fill().map_err(io::Error::other)?;
            if self.block.is_empty()
                && let Some(damage) = self.damage.pop_front()
            {
                return Err(io::Error::other(damage));
            }
        }
        let got = self.block.get(self.taken..).unwrap_or_default().read(buf)?;
        self.taken = self.taken.saturating_add(got);
        Ok(got)
    }
}

/// One file of a directory.
#[derive(Debug)]
struct DataStream<R> {
    name: String,
    stream: RecordStream<R>,
    /// Whether its compressed data may end inside a record.
    may_be_cut: bool,
    zstd: Option<Decompressor>,
    /// The next record, and the time by which it is merged.
    record: Vec<u8>,
    time: u64,
}

impl<R: Read> DataStream<R> {
    fn new(name: String, input: R, offset: u64, recording: &Recording, may_be_cut: bool) -> Self {
        let stream = RecordStream::with_block(input, recording.endian, offset, FILE_BLOCK);
        DataStream { name, stream, may_be_cut, zstd: None, record: Vec::new(), time: 0 }
    }

    /// Reads the next record; returns false at the end of the file.
    fn advance(&mut self, recording: &Recording) -> Result<bool> {
        // A file name is untrusted input, too: terminals display errors.
        self.read(recording).map_err(|error| error.inside(&self.name.escape_debug().to_string()))
    }

    fn read(&mut self, recording: &Recording) -> Result<bool> {
        loop {
            if let Some(zstd) = &mut self.zstd
                && let Some(record) = zstd.next()?
            {
                take(&record, &recording.events, &mut self.record, &mut self.time);
                return Ok(true);
            }
            match self.stream.next()? {
                Some(StreamItem::Record(record)) if is_compressed(record.kind) => match &mut self.zstd {
                    Some(zstd) => zstd.push(&record)?,
                    none => none.insert(Decompressor::of(recording)?).push(&record)?,
                },
                Some(StreamItem::Record(record)) if record.kind == RecordType::FINISHED_ROUND => {}
                Some(StreamItem::Record(record)) if record.payload_len()? > 0 => {
                    let what = "AUX data cannot be merged: perf record --threads does not write it";
                    let kind = format!("{} record", record.kind);
                    return Err(Error::new(kind, Problem::Unknown(what.into())).at(record.offset));
                }
                Some(StreamItem::Record(record)) => {
                    take(&record, &recording.events, &mut self.record, &mut self.time);
                    return Ok(true);
                }
                Some(StreamItem::Payload(_) | StreamItem::Unreadable(_)) => {}
                None => break,
            }
        }
        if let Some(damage) = self.stream.take_damage() {
            return Err(damage);
        }
        match self.zstd.as_ref().filter(|_| !self.may_be_cut).map_or(0, Decompressor::pending) {
            0 => Ok(false),
            rest => Err(Error::truncated("compressed record stream", (rest as u64).saturating_add(1), rest as u64)),
        }
    }
}

/// Copies `record`. Times of 0 or all ones are ignored: perf processes such a record immediately.
fn take(record: &RawRecord<'_>, events: &Events, bytes: &mut Vec<u8>, time: &mut u64) {
    bytes.clear();
    bytes.extend_from_slice(record.bytes);
    *time = events.time(record).filter(|&time| time != 0 && time != u64::MAX).unwrap_or(*time);
}
