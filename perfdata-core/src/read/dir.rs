//! Reading directories: `data`, a recording in file mode, and with `perf record --threads` one file
//! `data.N` per ring buffer that contains only records (tools/perf/util/session.c,
//! __perf_session__process_dir_events).

use std::io::Read;

use crate::container_layout::{ContainerLayout, Part};
use crate::error::{Error, Problem, Result};
use crate::header::FileSection;
use crate::read::decompress::Decompressor;
use crate::read::limits::Limits;
use crate::read::merged::{Lane, Merged};
use crate::read::options::Options;
use crate::read::reader::RecordingReader;
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

/// Number of bytes read from one file at once. There may be a thousand files.
const FILE_BLOCK: usize = 16 << 10;

impl<S: Source + Clone> RecordingReader<Merged<DataStream<SourceReader<S>>>> {
    /// Opens a directory of `perf record --threads`: its `data` and the other files of records.
    /// Model and layout are those of `data`.
    ///
    /// # Errors
    /// Fails if `data` is not a recording in file mode, or a file cannot be read.
    pub fn directory(data: S, files: Vec<DataFile<S>>, limits: Limits) -> Result<Self> {
        let RecordingReader {
            recording,
            container_layout,
            collector,
            ..
        } = RecordingReader::open_with(
            data.clone(),
            Options {
                limits,
                ..Options::default()
            },
        )
        .map_err(|error| error.inside("data"))?;
        let ContainerLayout::File(file) = &container_layout else {
            return Err(no_header_of_a_file());
        };
        let place = file.place(Part::Data).unwrap_or(FileSection {
            offset: file.len,
            size: 0,
        });
        let merged = Merged::of_directory(&recording, limits, data, place, files)?;
        let records = RecordStream::new(merged, recording.endian, place.offset);
        Ok(RecordingReader {
            recording,
            container_layout,
            records,
            collector,
            limits,
        })
    }
}

impl<S: Source + Clone> RecordingReader<SourceReader<S>> {
    /// Opens a file of records in a directory of `perf record --threads`, `beside` its `data`.
    /// Model and layout are those of `data`.
    ///
    /// # Errors
    /// Fails if `data` is not a recording.
    pub fn beside(data: S, beside: S, limits: Limits) -> Result<Self> {
        let options = Options {
            limits,
            ..Options::default()
        };
        let RecordingReader {
            recording,
            container_layout,
            collector,
            ..
        } = RecordingReader::open_with(data, options)?;
        let records = SourceReader::new(
            beside,
            FileSection {
                offset: 0,
                size: u64::MAX,
            },
        );
        let records = RecordStream::new(records, recording.endian, 0);
        Ok(RecordingReader {
            recording,
            container_layout,
            records,
            collector,
            limits,
        })
    }
}

impl<S: Source> Merged<DataStream<SourceReader<S>>> {
    /// Merges the records of `data` and `files`. `recording` is the metadata of `data`, whose
    /// records are at `place`.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn of_directory(
        recording: &Recording,
        limits: Limits,
        data: S,
        place: FileSection,
        files: Vec<DataFile<S>>,
    ) -> Result<Self> {
        let whole = FileSection {
            offset: 0,
            size: u64::MAX,
        };
        let mut parts = vec![("data".into(), SourceReader::new(data, place), place.offset)];
        parts.extend(
            files
                .into_iter()
                .map(|file| (file.name, SourceReader::new(file.source, whole), 0)),
        );
        let limits = limits.of_each(parts.len());
        of_files(recording, limits, parts, false)
    }
}

impl<S: Source> Merged<DataStream<Salvaged<S>>> {
    /// Merges the plausible records of corrupt files: `parts` are the file names, the records, and
    /// the offset of the first record.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(super) fn of_salvaged(
        recording: &Recording,
        limits: Limits,
        parts: Vec<(String, Salvaged<S>, u64)>,
    ) -> Result<Self> {
        of_files(recording, limits, parts, true)
    }
}

pub(super) fn no_header_of_a_file() -> Error {
    Error::invalid(
        "data: header",
        "size",
        "the header of a pipe",
        "the header of a file",
    )
    .at(8)
}

/// Merges the files of a directory; each is a name, its records, and the offset of the first of
/// them.
fn of_files<R: Read>(
    recording: &Recording,
    limits: Limits,
    parts: Vec<(String, R, u64)>,
    may_be_cut: bool,
) -> Result<Merged<DataStream<R>>> {
    let stream = |(name, input, offset)| DataStream {
        name,
        stream: RecordStream::with_block(input, recording.endian, offset, FILE_BLOCK),
        limits,
        may_be_cut,
        zstd: None,
        record: Vec::new(),
        time: 0,
    };
    let streams: Vec<_> = parts.into_iter().map(stream).collect();
    Merged::new(recording.clone(), streams)
}

/// The records of one file of a directory. Compressed files, each with its own zstd stream, are
/// decompressed. FINISHED_ROUND records are skipped, because each refers to only one file.
#[derive(Debug)]
pub struct DataStream<R> {
    name: String,
    stream: RecordStream<R>,
    limits: Limits,
    /// Whether its compressed data may end inside a record.
    may_be_cut: bool,
    zstd: Option<Decompressor>,
    /// The next record, and the time by which it is merged.
    record: Vec<u8>,
    time: u64,
}

impl<R: Read> DataStream<R> {
    fn read(&mut self, recording: &Recording) -> Result<bool> {
        loop {
            if let Some(zstd) = &mut self.zstd
                && let Some(record) = zstd.next()?
            {
                take(&record, &recording.events, &mut self.record, &mut self.time);
                return Ok(true);
            }
            match self.stream.next()? {
                Some(StreamItem::Record(record)) if record.kind.is_compressed() => {
                    match &mut self.zstd {
                        Some(zstd) => zstd.push(&record)?,
                        none => none
                            .insert(Decompressor::of(recording, self.limits)?)
                            .push(&record)?,
                    }
                }
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
        match self
            .zstd
            .as_ref()
            .filter(|_| !self.may_be_cut)
            .map_or(0, Decompressor::pending)
        {
            0 => Ok(false),
            rest => Err(Error::truncated(
                "compressed record stream",
                (rest as u64).saturating_add(1),
                rest as u64,
            )),
        }
    }
}

impl<R: Read> Lane for DataStream<R> {
    fn advance(&mut self, recording: &Recording) -> Result<bool> {
        // A file name is untrusted input, too: terminals display errors.
        self.read(recording)
            .map_err(|error| error.inside(&self.name.escape_debug().to_string()))
    }

    fn record(&self) -> &[u8] {
        &self.record
    }

    fn time(&self) -> u64 {
        self.time
    }
}

/// Copies `record`. Times of 0 or all ones are ignored: perf processes such a record immediately.
fn take(record: &RawRecord<'_>, events: &Events, bytes: &mut Vec<u8>, time: &mut u64) {
    bytes.clear();
    bytes.extend_from_slice(record.bytes);
    *time = events
        .time(record)
        .filter(|&time| time != 0 && time != u64::MAX)
        .unwrap_or(*time);
}
