//! Opening truncated, unfinished or corrupt recordings, and surveying them.

use crate::container_layout::{ContainerLayout, FileLayout};
use crate::error::Result;
use crate::header::{ContainerKind, FileSection, Magic, PipeHeader};
use crate::read::dir::no_header_of_a_file;
use crate::read::reader::{read_start, recognise};
use crate::read::{
    Collector, DataFile, DataStream, Foreknown, Ids, Limits, Losses, Merged, Options, RecordStream,
    RecordingReader, Salvaged, Source, SourceReader, Survey, file_rest,
};
use crate::recording::Recording;

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
