//! Reading recordings: [`RecordingReader`] opens a container, returns the model at once and the
//! records one by one.

mod by_time;
mod decompress;
mod dir;
mod file;
mod file_rest;
mod input_file;
mod limits;
mod merged;
mod merged_recording;
mod ordered_events;
mod path;
mod pipe;
mod record_batch;
mod record_ref;
mod record_source;
mod records;
mod salvage;
mod source;
mod tail;
mod united;
mod zstd;

pub use by_time::ByTime;
pub use decompress::Decompressor;
pub use dir::{DataFile, DataStream};
pub use input_file::InputFile;
pub use limits::Limits;
pub use merged::{Lane, Merged, Order};
pub use merged_recording::MergedRecording;
pub use ordered_events::{OrderedEvents, Waiting};
pub use path::{Directory, PathReader};
pub use pipe::Collector;
pub use record_batch::{BatchPart, Chunk, RecordBatch, Records};
pub use record_ref::RecordRef;
pub use record_source::RecordSource;
pub use records::{RecordStream, StreamItem};
pub use salvage::{
    CompressedData, Foreknown, Ids, Left, Losses, Salvaged, Salvaging, Skipped, Survey,
};
pub use source::{Source, SourceReader, is_zero};
pub use tail::Tail;

use std::io::Read;

use binrw::Endian;

use crate::container_layout::{ContainerLayout, FileLayout, Part, PipeLayout};
use crate::error::{Error, Result};
use crate::header::{ContainerKind, FileSection, Magic, PipeHeader};
use crate::recording::Recording;
use crate::setters::setters;

/// Handling of the metadata records at the start of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Head {
    /// They are read when the recording is opened and become part of the model and the layout.
    #[default]
    Read,
    /// They are returned as records like all others, and enter the model one by one.
    Pass,
}

/// Options for opening a recording.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Options {
    /// Handling of the metadata at the start of a pipe.
    pub head: Head,
    /// Limits on what the recording may request from the reader.
    pub limits: Limits,
}

setters! {
    Options {
        head: Head => with_head,
        limits: Limits => with_limits,
    }
}

/// An open recording: returns the model at once and the records one by one.
///
/// [`perfdata_core::open`](crate::open) opens a path of any kind. [`open`](RecordingReader::open)
/// reads bytes that are accessible at any offset, [`pipe`](RecordingReader::pipe) a stream in pipe
/// mode.
///
/// Records are returned in file order. Records of `perf record -z` are inside COMPRESSED records:
/// [`by_time`](RecordingReader::by_time) decompresses them and sorts all records by time; a
/// [`Decompressor`] decompresses one COMPRESSED record after the other.
#[derive(Debug)]
pub struct RecordingReader<R = PathReader> {
    recording: Recording,
    container_layout: ContainerLayout,
    records: RecordStream<R>,
    collector: Collector,
    limits: Limits,
}

impl<S: Source + Clone> RecordingReader<SourceReader<S>> {
    /// Opens a recording in either container from bytes that are accessible at any offset.
    ///
    /// # Errors
    /// Fails if the bytes are not a recording, or its header or attributes are corrupt.
    pub fn open(source: S) -> Result<Self> {
        Self::open_with(source, Options::default())
    }

    /// Opens a recording with options.
    ///
    /// # Errors
    /// Fails like [`open`](Self::open).
    pub fn open_with(source: S, options: Options) -> Result<Self> {
        let mut first = [0; ContainerKind::SNIFF];
        let got = read_start(
            &mut SourceReader::new(
                source.clone(),
                FileSection {
                    offset: 0,
                    size: u64::MAX,
                },
            ),
            &mut first,
        )?;
        let (kind, endian) = recognise(first.get(..got).unwrap_or_default())?;
        if kind == ContainerKind::Pipe {
            return Self::pipe_with(
                SourceReader::new(
                    source,
                    FileSection {
                        offset: 0,
                        size: u64::MAX,
                    },
                ),
                options,
            );
        }
        let (recording, file) = file::read_metadata(&source, endian, options.limits)?;
        let data = file.place(Part::Data).unwrap_or(FileSection {
            offset: file.len,
            size: 0,
        });
        Ok(RecordingReader {
            recording,
            container_layout: ContainerLayout::File(file),
            records: RecordStream::new(SourceReader::new(source, data), endian, data.offset),
            collector: Collector::new(options.limits),
            limits: options.limits,
        })
    }
}

impl<S: Source + Clone> RecordingReader<Salvaged<S>> {
    /// Opens a truncated, unfinished or corrupt recording and reads everything plausible in it. The
    /// layout is that of an intact recording. A [`Survey`] determines what must be known before the
    /// first record, such as the end of the records in a file whose header does not contain it.
    ///
    /// # Errors
    /// Fails like [`open`](RecordingReader::open), except that one complete attribute of a file
    /// suffices.
    pub fn salvaged(source: S, foreknown: Foreknown, limits: Limits) -> Result<Self> {
        let Opening {
            recording,
            file,
            magic,
            place,
            records,
        } = Opening::of(source, foreknown, limits)?;
        match file {
            None => Self::behind_pipe_header(
                records,
                magic,
                recording.endian,
                Options {
                    limits,
                    ..Options::default()
                },
            ),
            Some(file) => Ok(RecordingReader {
                records: RecordStream::new(records, recording.endian, place.offset),
                recording,
                container_layout: ContainerLayout::File(file),
                collector: Collector::new(limits),
                limits,
            }),
        }
    }
}

impl<S: Source + Clone> RecordingReader<Merged<DataStream<Salvaged<S>>>> {
    /// Opens a directory with truncated or corrupt files and reads everything plausible in its
    /// `data` and in the other files of records. Each file is given with the result of its
    /// [`Survey`], obtained with the same `limits`.
    ///
    /// # Errors
    /// Fails like [`salvaged`](RecordingReader::salvaged).
    pub fn salvaged_directory(
        data: (S, Foreknown),
        files: Vec<(DataFile<S>, Foreknown)>,
        limits: Limits,
    ) -> Result<Self> {
        let Opening {
            recording,
            file,
            place,
            records,
            ..
        } = Opening::of(data.0, data.1, limits).map_err(|error| error.inside("data"))?;
        let Some(file) = file else {
            return Err(no_header_of_a_file());
        };
        let mut parts = vec![("data".into(), records, place.offset)];
        for (DataFile { name, source }, foreknown) in files {
            parts.push((
                name,
                Salvaged::beside(source, &recording, limits, foreknown)?,
                0,
            ));
        }
        let merged = Merged::of_salvaged(&recording, limits, parts)?;
        let records = RecordStream::new(merged, recording.endian, place.offset);
        Ok(RecordingReader {
            recording,
            container_layout: ContainerLayout::File(file),
            records,
            collector: Collector::new(limits),
            limits,
        })
    }
}

fn no_header_of_a_file() -> Error {
    Error::invalid(
        "data: header",
        "size",
        "the header of a pipe",
        "the header of a file",
    )
    .at(8)
}

/// A truncated, unfinished or corrupt recording before its records are read.
struct Opening<S> {
    recording: Recording,
    /// DecodeContext of a file; `None` for a pipe.
    file: Option<FileLayout>,
    magic: Magic,
    place: FileSection,
    records: Salvaged<S>,
}

impl<S: Source + Clone> Opening<S> {
    fn of(source: S, foreknown: Foreknown, limits: Limits) -> Result<Self> {
        let whole = FileSection {
            offset: 0,
            size: u64::MAX,
        };
        let mut first = [0; ContainerKind::SNIFF];
        let got = read_start(&mut SourceReader::new(source.clone(), whole), &mut first)?;
        let (kind, endian) = recognise(first.get(..got).unwrap_or_default())?;
        let magic = Magic::recognise(&first)
            .map(|(magic, _)| magic)
            .unwrap_or_default();
        let (recording, file, place, table, losses) = if kind == ContainerKind::Pipe {
            let place = FileSection {
                offset: PipeHeader::SIZE,
                ..whole
            };
            (
                Recording {
                    magic,
                    ..Recording::new(endian)
                },
                None,
                place,
                None,
                Losses::default(),
            )
        } else {
            let file_rest::Rest {
                recording,
                file,
                losses,
                table,
            } = file_rest::read_rest(&source, endian, foreknown, limits)?;
            let place = file.header.data;
            (recording, Some(file), place, table, losses)
        };
        let collector = file.is_none().then(|| Collector::new(limits));
        let records = Salvaged::new(
            source,
            place,
            (recording.clone(), collector),
            limits,
            table,
            losses,
            foreknown,
        )?;
        Ok(Opening {
            recording,
            file,
            magic,
            place,
            records,
        })
    }
}

impl Survey {
    /// Reads a truncated, unfinished or corrupt recording to its end and reports its content;
    /// `seen` is called repeatedly, each time with the number of bytes read since the previous
    /// call. If this reveals something that must be known from the first record on, the recording
    /// is read again.
    ///
    /// # Errors
    /// Fails like [`RecordingReader::salvaged`].
    pub fn of<S: Source + Clone>(
        source: &S,
        limits: Limits,
        mut seen: impl FnMut(u64),
    ) -> Result<Self> {
        let mut foreknown = Foreknown::default();
        loop {
            let survey = Opening::of(source.clone(), foreknown, limits)?
                .records
                .survey(&mut seen)?;
            if survey.foreknown == foreknown {
                return Ok(survey);
            }
            foreknown = survey.foreknown;
        }
    }

    /// Surveys a file of records in a directory, next to the `data` that `main` describes.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn beside<S: Source + Clone>(
        source: &S,
        main: &Survey,
        limits: Limits,
        mut seen: impl FnMut(u64),
    ) -> Result<Self> {
        let known = |ids: Ids| match main.foreknown.ids {
            // The IDs are in `data`.
            Ids::Unclear if ids == Ids::Lost => Ids::Trusted,
            Ids::Unclear => ids,
            told => told,
        };
        let mut foreknown = Foreknown {
            ids: known(Ids::Unclear),
            ..Foreknown::default()
        };
        loop {
            let survey = Salvaged::beside(source.clone(), &main.recording, limits, foreknown)?
                .survey(&mut seen)?;
            let next = Foreknown {
                ids: known(survey.foreknown.ids),
                ..survey.foreknown
            };
            if next == foreknown {
                return Ok(survey);
            }
            foreknown = next;
        }
    }
}

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

impl<R> RecordingReader<R> {
    /// Returns the same reader with its input wrapped, so that readers of different inputs have the
    /// same type.
    pub fn map_input<T>(self, wrap: impl FnOnce(R) -> T) -> RecordingReader<T> {
        let RecordingReader {
            recording,
            container_layout,
            records,
            collector,
            limits,
        } = self;
        RecordingReader {
            recording,
            container_layout,
            records: records.map_input(wrap),
            collector,
            limits,
        }
    }
}

impl<R: Read> RecordingReader<R> {
    /// Opens a recording in pipe mode from a stream and reads the metadata at its start.
    ///
    /// # Errors
    /// Fails if the stream is not a recording in pipe mode, or its attributes are corrupt.
    pub fn pipe(input: R) -> Result<Self> {
        Self::pipe_with(input, Options::default())
    }

    /// Opens a recording in pipe mode with options.
    ///
    /// # Errors
    /// Fails like [`pipe`](Self::pipe).
    pub fn pipe_with(mut input: R, options: Options) -> Result<Self> {
        let mut first = [0; PipeHeader::SIZE as usize];
        let got = read_start(&mut input, &mut first)?;
        let (kind, endian) = recognise(first.get(..got).unwrap_or_default())?;
        if kind != ContainerKind::Pipe {
            return Err(Error::invalid(
                "pipe header",
                "size",
                "the header of a file",
                "16, the header of a pipe",
            )
            .at(8));
        }
        let magic = Magic::recognise(&first)
            .map(|(magic, _)| magic)
            .unwrap_or_default();
        Self::behind_pipe_header(input, magic, endian, options)
    }

    fn behind_pipe_header(
        input: R,
        magic: Magic,
        endian: Endian,
        options: Options,
    ) -> Result<Self> {
        let mut recording = Recording {
            magic,
            ..Recording::new(endian)
        };
        let mut records = RecordStream::new(input, endian, PipeHeader::SIZE);
        let mut collector = Collector::new(options.limits);
        let head = match options.head {
            Head::Read => pipe::read_head(&mut records, &mut recording, &mut collector)?,
            Head::Pass => PipeLayout::default(),
        };
        Ok(RecordingReader {
            recording,
            container_layout: ContainerLayout::Pipe(head),
            records,
            collector,
            limits: options.limits,
        })
    }

    /// Returns the model. In a pipe, metadata records that are read later extend it.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the model for modification before it is written.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Returns the limits on what the recording may request from its readers.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the input.
    pub fn input(&self) -> &R {
        self.records.input()
    }

    /// Returns the layout of the recording in its container.
    pub fn container_layout(&self) -> &ContainerLayout {
        &self.container_layout
    }

    /// Returns why the records could not be read to the end. Available after [`next`](Self::next)
    /// has returned [`StreamItem::Unreadable`] or `None`.
    pub fn damage(&self) -> Option<&Error> {
        self.records.damage()
    }

    /// Classifies the bytes at the end that are not a complete record, if there are any: the start
    /// of a record, or damage. Available after [`next`](Self::next) has returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.records.tail(&self.recording, self.limits)
    }

    /// Returns the next item of the record stream, after the metadata at the start of a pipe;
    /// `None` at the end. A record is returned with the model, which already includes the record's
    /// content if it is metadata.
    ///
    /// # Errors
    /// Fails if the input cannot be read, or a corrupt attribute follows later in a pipe.
    // Not an iterator: an item borrows from the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<StreamItem<'_, RecordRef<'_>>>> {
        let Some(item) = self.records.next()? else {
            return Ok(None);
        };
        if let ContainerLayout::Pipe(_) = &self.container_layout {
            self.collector.item(&mut self.recording, &item)?;
        }
        Ok(Some(item.map(|raw| RecordRef::new(raw, &self.recording))))
    }

    /// Returns the same records in time order, including records inside compressed records.
    pub fn by_time(self) -> ByTime<Self> {
        ByTime::new(self)
    }

    /// Removes and returns [`damage`](Self::damage).
    fn take_damage(&mut self) -> Option<Error> {
        self.records.take_damage()
    }

    /// Returns whether the next item is already in memory, so that it needs no further input.
    pub fn has_more_at_hand(&self) -> bool {
        self.records.has_more_at_hand()
    }

    /// Returns the next items together, as many records as are in memory; `None` at the end. Faster
    /// when most records are skipped.
    ///
    /// # Errors
    /// Fails like [`next`](Self::next).
    pub fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        let Some(chunk) = self.records.next_chunk()? else {
            return Ok(None);
        };
        if let ContainerLayout::Pipe(_) = &self.container_layout {
            self.collector.chunk(&mut self.recording, &chunk)?;
        }
        Ok(Some((chunk, &self.recording)))
    }
}

fn recognise(first: &[u8]) -> Result<(ContainerKind, Endian)> {
    if let Some(found) = ContainerKind::recognise(first) {
        return Ok(found);
    }
    if first.is_empty() {
        return Err(Error::truncated("header", PipeHeader::SIZE, 0).at(0));
    }
    let shown = first
        .get(..8.min(first.len()))
        .unwrap_or_default()
        .escape_ascii();
    if Magic::recognise(first).is_none() {
        return Err(Error::invalid(
            "header",
            "magic",
            format!("\"{shown}\""),
            "PERFILE2, 2ELIFREP or PERFFILE: this is not a perf.data recording",
        )
        .at(0));
    }
    if first.len() < PipeHeader::SIZE as usize {
        return Err(Error::truncated("header", PipeHeader::SIZE, first.len() as u64).at(0));
    }
    Err(Error::invalid(
        "header",
        "size",
        "another number",
        "16 for a pipe, 104 or 72 for a file",
    )
    .at(8))
}

/// Reads until `buf` is full or the input ends.
fn read_start<R: Read>(input: &mut R, buf: &mut [u8]) -> Result<usize> {
    let mut got = 0;
    while let Some(room) = buf.get_mut(got..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(n) => got = got.saturating_add(n),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("header", e)),
        }
    }
    Ok(got)
}
