//! Reading recordings: [`RecordingReader`] opens a container, gives the model at once and the records one by one.

mod by_time;
mod decompress;
mod dir;
mod file;
mod input_file;
mod limits;
mod ordered_events;
mod path;
mod pipe;
mod record_batch;
mod record_ref;
mod records;
mod salvage;
mod source;
mod tail;

pub use by_time::ByTime;
pub use decompress::{Decompressor, is_compressed};
pub use dir::{DataFile, Merged};
pub use input_file::InputFile;
pub use limits::Limits;
pub use ordered_events::{OrderedEvents, Waiting};
pub use path::{Directory, PathReader};
pub use pipe::{Collector, is_metadata};
pub use record_batch::{BatchPart, Chunk, RecordBatch, Records};
pub use record_ref::RecordRef;
pub use records::{RecordStream, StreamItem};
pub use salvage::{CompressedData, Foreknown, Ids, Left, Losses, Salvaged, Salvaging, Skipped, Survey};
pub use source::{Source, SourceReader, is_zero};
pub use tail::Tail;

use std::io::Read;

use binrw::Endian;

use crate::container_layout::{ContainerLayout, FileLayout, Part, PipeLayout};
use crate::error::{Error, Result};
use crate::header::{ContainerKind, FileSection, Magic, PipeHeader};
use crate::recording::Recording;

/// What becomes of the metadata records at the head of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Head {
    /// They are read when the recording is opened: the model and the layout say what they say.
    #[default]
    Read,
    /// They pass as records like all others, and enter the model one by one.
    Pass,
}

/// How a recording is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What becomes of the head of a pipe.
    pub head: Head,
    /// How far the reader goes with what the recording asks for.
    pub limits: Limits,
}

/// An open recording: the model at once, and the records one by one.
///
/// [`perfdata_core::open`](crate::open) opens a path, whatever stands there. [`open`](RecordingReader::open) takes bytes
/// that can be read at any place, [`pipe`](RecordingReader::pipe) a stream in pipe mode.
///
/// The records come as they stand in the recording. Those of `perf record -z` are inside COMPRESSED records:
/// [`by_time`](RecordingReader::by_time) decompresses them and sorts all records by time; a [`Decompressor`] opens one
/// COMPRESSED record after the other.
#[derive(Debug)]
pub struct RecordingReader<R = PathReader> {
    recording: Recording,
    container_layout: ContainerLayout,
    records: RecordStream<R>,
    collector: Collector,
}

impl<S: Source + Clone> RecordingReader<SourceReader<S>> {
    /// Opens a recording of either container in bytes that can be read at any place.
    ///
    /// # Errors
    /// Bytes that are not a recording, or whose header or attributes are damaged.
    pub fn open(source: S) -> Result<Self> {
        Self::open_with(source, Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(source: S, options: Options) -> Result<Self> {
        let mut first = [0; ContainerKind::SNIFF];
        let got =
            read_start(&mut SourceReader::new(source.clone(), FileSection { offset: 0, size: u64::MAX }), &mut first)?;
        let (kind, endian) = recognise(first.get(..got).unwrap_or_default())?;
        if kind == ContainerKind::Pipe {
            return Self::pipe_with(SourceReader::new(source, FileSection { offset: 0, size: u64::MAX }), options);
        }
        let (recording, file) = file::read_metadata(&source, endian, options.limits)?;
        let data = file.place(Part::Data).unwrap_or(FileSection { offset: file.len, size: 0 });
        Ok(RecordingReader {
            recording,
            container_layout: ContainerLayout::File(file),
            records: RecordStream::new(SourceReader::new(source, data), endian, data.offset),
            collector: Collector::default(),
        })
    }
}

impl<S: Source + Clone> RecordingReader<Salvaged<S>> {
    /// Opens a recording that is cut, was never finished, or is damaged: what can be believed of it. The layout is
    /// that of a whole recording. What must be known before the first record, as where the records of a file end whose
    /// header does not say it, a [`Survey`] finds out.
    ///
    /// # Errors
    /// As [`open`](RecordingReader::open), but of the attributes of a file it is enough that one is there.
    pub fn salvaged(source: S, foreknown: Foreknown, limits: Limits) -> Result<Self> {
        let Opening { recording, file, magic, place, records } = Opening::of(source, foreknown, limits)?;
        match file {
            None => {
                Self::behind_pipe_header(records, magic, recording.endian, Options { limits, ..Options::default() })
            }
            Some(file) => Ok(RecordingReader {
                records: RecordStream::new(records, recording.endian, place.offset),
                recording,
                container_layout: ContainerLayout::File(file),
                collector: Collector::default(),
            }),
        }
    }
}

impl<S: Source + Clone> RecordingReader<Merged<Salvaged<S>>> {
    /// Opens a directory whose files are cut or damaged: what can be believed of its `data` and of the files of records
    /// beside it, each with what a [`Survey`] has found out about it, by the same `limits`.
    ///
    /// # Errors
    /// As [`salvaged`](RecordingReader::salvaged).
    pub fn salvaged_directory(
        data: (S, Foreknown),
        files: Vec<(DataFile<S>, Foreknown)>,
        limits: Limits,
    ) -> Result<Self> {
        let Opening { recording, file, place, records, .. } =
            Opening::of(data.0, data.1, limits).map_err(|error| error.inside("data"))?;
        let Some(file) = file else { return Err(no_header_of_a_file()) };
        let mut parts = vec![("data".into(), records, place.offset)];
        for (DataFile { name, source }, foreknown) in files {
            parts.push((name, Salvaged::beside(source, &recording, foreknown)?, 0));
        }
        let merged = Merged::salvaged(&recording, parts)?;
        let records = RecordStream::new(merged, recording.endian, place.offset);
        Ok(RecordingReader {
            recording,
            container_layout: ContainerLayout::File(file),
            records,
            collector: Collector::default(),
        })
    }
}

fn no_header_of_a_file() -> Error {
    Error::invalid("data: header", "size", "the header of a pipe", "the header of a file").at(8)
}

/// A recording that is cut, was never finished, or is damaged, before its records are read.
struct Opening<S> {
    recording: Recording,
    /// Where everything is in a file; nothing of a pipe.
    file: Option<FileLayout>,
    magic: Magic,
    place: FileSection,
    records: Salvaged<S>,
}

impl<S: Source + Clone> Opening<S> {
    fn of(source: S, foreknown: Foreknown, limits: Limits) -> Result<Self> {
        let whole = FileSection { offset: 0, size: u64::MAX };
        let mut first = [0; ContainerKind::SNIFF];
        let got = read_start(&mut SourceReader::new(source.clone(), whole), &mut first)?;
        let (kind, endian) = recognise(first.get(..got).unwrap_or_default())?;
        let magic = Magic::recognise(&first).map(|(magic, _)| magic).unwrap_or_default();
        let (recording, file, place, table, losses) = if kind == ContainerKind::Pipe {
            let place = FileSection { offset: PipeHeader::SIZE, ..whole };
            (Recording { magic, limits, ..Recording::new(endian) }, None, place, None, Losses::default())
        } else {
            let file::Rest { recording, file, losses, table } = file::read_rest(&source, endian, foreknown, limits)?;
            let place = file.header.data;
            (recording, Some(file), place, table, losses)
        };
        let collector = file.is_none().then(Collector::default);
        let records = Salvaged::new(source, place, (recording.clone(), collector), table, losses, foreknown)?;
        Ok(Opening { recording, file, magic, place, records })
    }
}

impl Survey {
    /// Reads a recording that is cut, was never finished, or is damaged, to its end, and says what there is of it; `seen`
    /// hears how many bytes were read. Where this shows what must be known from the first record on, it is read again.
    ///
    /// # Errors
    /// As [`RecordingReader::salvaged`].
    pub fn of<S: Source + Clone>(source: &S, limits: Limits, mut seen: impl FnMut(u64)) -> Result<Self> {
        let mut foreknown = Foreknown::default();
        loop {
            let survey = Opening::of(source.clone(), foreknown, limits)?.records.survey(&mut seen)?;
            if survey.foreknown == foreknown {
                return Ok(survey);
            }
            foreknown = survey.foreknown;
        }
    }

    /// The same of a file of records in a directory, beside the `data` that `main` is about.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn beside<S: Source + Clone>(source: &S, main: &Survey, mut seen: impl FnMut(u64)) -> Result<Self> {
        let known = |ids: Ids| match main.foreknown.ids {
            // The ids are in `data`.
            Ids::Unclear if ids == Ids::Lost => Ids::Trusted,
            Ids::Unclear => ids,
            told => told,
        };
        let mut foreknown = Foreknown { ids: known(Ids::Unclear), ..Foreknown::default() };
        loop {
            let survey = Salvaged::beside(source.clone(), &main.recording, foreknown)?.survey(&mut seen)?;
            let next = Foreknown { ids: known(survey.foreknown.ids), ..survey.foreknown };
            if next == foreknown {
                return Ok(survey);
            }
            foreknown = next;
        }
    }
}

impl<S: Source + Clone> RecordingReader<Merged<SourceReader<S>>> {
    /// Opens a directory of `perf record --threads`: its `data` and the files of records beside it. The model and the
    /// layout are those of `data`.
    ///
    /// # Errors
    /// `data` is not a recording in file mode, or a file cannot be read.
    pub fn directory(data: S, files: Vec<DataFile<S>>, limits: Limits) -> Result<Self> {
        let RecordingReader { recording, container_layout, collector, .. } =
            RecordingReader::open_with(data.clone(), Options { limits, ..Options::default() })
                .map_err(|error| error.inside("data"))?;
        let ContainerLayout::File(file) = &container_layout else {
            return Err(no_header_of_a_file());
        };
        let place = file.place(Part::Data).unwrap_or(FileSection { offset: file.len, size: 0 });
        let merged = Merged::new(&recording, data, place, files)?;
        let records = RecordStream::new(merged, recording.endian, place.offset);
        Ok(RecordingReader { recording, container_layout, records, collector })
    }
}

impl<S: Source + Clone> RecordingReader<SourceReader<S>> {
    /// Opens a file of records in a directory of `perf record --threads`, `beside` its `data`: the model and the
    /// layout are those of `data`.
    ///
    /// # Errors
    /// `data` is not a recording.
    pub fn beside(data: S, beside: S, limits: Limits) -> Result<Self> {
        let options = Options { limits, ..Options::default() };
        let RecordingReader { recording, container_layout, collector, .. } = RecordingReader::open_with(data, options)?;
        let records = SourceReader::new(beside, FileSection { offset: 0, size: u64::MAX });
        let records = RecordStream::new(records, recording.endian, 0);
        Ok(RecordingReader { recording, container_layout, records, collector })
    }
}

impl<R> RecordingReader<R> {
    /// The same reader with its input wrapped, so that readers of different inputs have one type.
    pub fn map_input<T>(self, wrap: impl FnOnce(R) -> T) -> RecordingReader<T> {
        let RecordingReader { recording, container_layout, records, collector } = self;
        RecordingReader { recording, container_layout, records: records.map_input(wrap), collector }
    }
}

impl<R: Read> RecordingReader<R> {
    /// Opens a pipe-mode recording in a stream, and reads the metadata at its head.
    ///
    /// # Errors
    /// A stream that is not a recording in pipe mode, or with damaged attributes.
    pub fn pipe(input: R) -> Result<Self> {
        Self::pipe_with(input, Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`pipe`](Self::pipe).
    pub fn pipe_with(mut input: R, options: Options) -> Result<Self> {
        let mut first = [0; PipeHeader::SIZE as usize];
        let got = read_start(&mut input, &mut first)?;
        let (kind, endian) = recognise(first.get(..got).unwrap_or_default())?;
        if kind != ContainerKind::Pipe {
            return Err(Error::invalid("pipe header", "size", "the header of a file", "16, the header of a pipe").at(8));
        }
        let magic = Magic::recognise(&first).map(|(magic, _)| magic).unwrap_or_default();
        Self::behind_pipe_header(input, magic, endian, options)
    }

    fn behind_pipe_header(input: R, magic: Magic, endian: Endian, options: Options) -> Result<Self> {
        let mut recording = Recording { magic, limits: options.limits, ..Recording::new(endian) };
        let mut records = RecordStream::new(input, endian, PipeHeader::SIZE);
        let mut collector = Collector::default();
        let head = match options.head {
            Head::Read => pipe::read_head(&mut records, &mut recording, &mut collector)?,
            Head::Pass => PipeLayout::default(),
        };
        Ok(RecordingReader { recording, container_layout: ContainerLayout::Pipe(head), records, collector })
    }

    /// The model. In a pipe it grows with metadata records that pass.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The model, for changing it before it is written.
    pub fn recording_mut(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// The input.
    pub fn input(&self) -> &R {
        self.records.input()
    }

    /// How the recording stands in its container.
    pub fn container_layout(&self) -> &ContainerLayout {
        &self.container_layout
    }

    /// Why the records could not be read up to the end: known once [`next`](Self::next) has given
    /// [`StreamItem::Unreadable`] or the end.
    pub fn damage(&self) -> Option<&Error> {
        self.records.damage()
    }

    /// What the bytes are that are no whole record, where there are some: the start of a record, or damage. Known once
    /// [`next`](Self::next) has given the end.
    pub fn tail(&self) -> Option<Tail> {
        self.records.tail(&self.recording)
    }

    /// The next item of the record stream, behind the metadata at the head of a pipe; `None` at the end. A record
    /// comes with the model, which already knows what the record says.
    ///
    /// # Errors
    /// The input cannot be read, or a pipe has a damaged attribute late in the stream.
    // Not an iterator: an item borrows from the reader.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<StreamItem<'_, RecordRef<'_>>>> {
        let Some(item) = self.records.next()? else { return Ok(None) };
        if let ContainerLayout::Pipe(_) = &self.container_layout {
            self.collector.item(&mut self.recording, &item)?;
        }
        Ok(Some(item.map(|raw| RecordRef::new(raw, &self.recording))))
    }

    /// The same records in the order of time, those in compressed records among them.
    pub fn by_time(self) -> ByTime<R> {
        ByTime::new(self)
    }

    /// Takes out [`damage`](Self::damage).
    fn take_damage(&mut self) -> Option<Error> {
        self.records.take_damage()
    }

    /// Whether the next item has been read already: a stream does not have to bring more for it.
    pub fn has_more_at_hand(&self) -> bool {
        self.records.has_more_at_hand()
    }

    /// The next pieces together, as many records as are at hand; `None` at the end. Who does not look into every
    /// record is faster with this.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        let Some(chunk) = self.records.next_chunk()? else { return Ok(None) };
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
    let shown = first.get(..8.min(first.len())).unwrap_or_default().escape_ascii();
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
    Err(Error::invalid("header", "size", "another number", "16 for a pipe, 104 or 72 for a file").at(8))
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
