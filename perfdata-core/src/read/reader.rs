//! The reader of files, pipes and everything else that a recording can be read from.

use std::io::Read;

use binrw::Endian;

use crate::container_layout::{ContainerLayout, Part, PipeLayout};
use crate::error::{Error, Result};
use crate::header::{ContainerKind, FileSection, Magic, PipeHeader};
use crate::read::{
    ByTime, Chunk, Collector, Head, Limits, Options, PathReader, RecordRef, RecordStream, Source,
    SourceReader, StreamItem, Tail, file, pipe,
};
use crate::record::RecordType;
use crate::recording::Recording;

/// An open recording: returns the model at once and the records one by one.
///
/// [`perfdata_core::open`](crate::open) opens a path of any kind. [`open`](RecordingReader::open)
/// reads bytes that are accessible at any offset, [`pipe`](RecordingReader::pipe) a stream in pipe
/// mode.
///
/// Records are returned in file order. Records of `perf record -z` are inside COMPRESSED records:
/// [`by_time`](RecordingReader::by_time) decompresses them and sorts all records by time; a
/// [`Decompressor`](super::Decompressor) decompresses one COMPRESSED record after the other.
#[derive(Debug)]
pub struct RecordingReader<R = PathReader> {
    pub(super) recording: Recording,
    pub(super) container_layout: ContainerLayout,
    pub(super) records: RecordStream<R>,
    pub(super) collector: Collector,
    pub(super) limits: Limits,
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
            collector: Collector::behind_head(options.limits),
            limits: options.limits,
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

    pub(super) fn behind_pipe_header(
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
        let is_pipe = matches!(self.container_layout, ContainerLayout::Pipe(_));
        let is_tracing_data = match &item {
            StreamItem::Record(record) => record.kind == RecordType::HEADER_TRACING_DATA,
            StreamItem::Payload(_) => true,
            StreamItem::Unreadable(_) => false,
        };
        if is_pipe || is_tracing_data {
            self.collector.item(&mut self.recording, &item)?;
        }
        Ok(Some(item.map(|raw| RecordRef::new(raw, &self.recording))))
    }

    /// Returns the same records in time order, including records inside compressed records.
    pub fn by_time(self) -> ByTime<Self> {
        ByTime::new(self)
    }

    /// Removes and returns [`damage`](Self::damage).
    pub(super) fn take_damage(&mut self) -> Option<Error> {
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
        let is_pipe = matches!(self.container_layout, ContainerLayout::Pipe(_));
        let is_tracing_data = match &chunk {
            // It is alone in its batch.
            Chunk::Records(batch) => batch
                .only()
                .is_some_and(|record| record.kind == RecordType::HEADER_TRACING_DATA),
            Chunk::Payload(_) => true,
            Chunk::Unreadable(_) => false,
        };
        if is_pipe || is_tracing_data {
            self.collector.chunk(&mut self.recording, &chunk)?;
        }
        Ok(Some((chunk, &self.recording)))
    }
}

pub(super) fn recognise(first: &[u8]) -> Result<(ContainerKind, Endian)> {
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
pub(super) fn read_start<R: Read>(input: &mut R, buf: &mut [u8]) -> Result<usize> {
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
