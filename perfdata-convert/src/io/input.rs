//! Inputs: a file, a directory, or a stream, and what can be believed of a damaged one.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use perfdata_core::header::{ContainerKind, FileSection, Magic};
use perfdata_core::read::{
    DataFile, Foreknown, Head, InputFile, Limits, Options, RecordingReader, Source, SourceReader, Survey, is_zero,
};

use super::STANDARD;
use super::directory::{self, Directory};
use super::reader::{InputReader, Meter, Size, Stream, Watch};
use super::spool::spool;
use crate::error::{Error, Result};
use crate::foreign;

/// An open input.
pub struct Input {
    kind: Kind,
    watch: Option<Arc<dyn Watch>>,
    /// Bytes of a stream that were read.
    streamed: Arc<AtomicU64>,
    limits: Limits,
    modified: Option<SystemTime>,
}

enum Kind {
    /// A file, which can be read at any place.
    File(Arc<InputFile>),
    /// A stream in pipe mode.
    Stream(Box<dyn Read + Send>),
    /// A directory of `perf record --threads` or `--kcore`.
    Directory(Directory),
    /// What can be believed of a damaged file, and what was found out about it.
    Damaged(Arc<InputFile>, Foreknown),
    /// The same of the files of a directory, `data` first.
    DamagedDirectory(Directory, Vec<Foreknown>),
    /// A file of a directory, and the `data` that says what is in it.
    Beside(Arc<InputFile>, Arc<InputFile>),
}

impl Input {
    /// Opens `path`, a file or directory, or standard input for `-`. A file-mode recording that comes as a stream is first put into a
    /// temporary file, since its header points at what stands behind the records.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn open(path: &Path) -> Result<Input> {
        Self::open_with(path, || {})
    }

    /// The same; `streams` is called before anything is read of a stream. What is read of one is lost if the process
    /// ends before the stream does.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, streams: impl FnOnce()) -> Result<Input> {
        let is_standard = path.as_os_str() == STANDARD;
        let shown = if is_standard { Path::new("standard input") } else { path };
        let file = if is_standard {
            if io::stdin().is_terminal() {
                return Err(Error::Usage("standard input is a terminal: a file, or a pipe, has the recording".into()));
            }
            let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(Error::io(shown))?;
            File::from(stdin)
        } else {
            File::open(path).map_err(Error::io(path))?
        };
        let meta = file.metadata().map_err(Error::io(shown))?;
        if meta.is_dir() {
            let data = std::fs::metadata(path.join("data"));
            let modified = data.and_then(|data| data.modified()).ok();
            return Ok(Input { modified, ..Kind::Directory(Directory::open(path)?).into() });
        }
        match (&file).stream_position() {
            // Files that are made when they are read, as those in /proc, have no size.
            Ok(_) if meta.is_file() && meta.len() == 0 => Self::stream(Box::new(file), shown),
            Ok(0) if meta.is_file() => {
                let file = InputFile::new(file).map_err(Error::io(shown))?;
                Ok(Input { modified: meta.modified().ok(), ..Kind::File(Arc::new(file)).into() })
            }
            Ok(at) if meta.is_file() => {
                let file = InputFile::new(file).map_err(Error::io(shown))?;
                let rest = FileSection { offset: at, size: u64::MAX };
                Self::stream(Box::new(SourceReader::new(file, rest)), shown)
            }
            _ => {
                streams();
                Self::stream(Box::new(file), shown)
            }
        }
    }

    fn stream(mut stream: Box<dyn Read + Send>, path: &Path) -> Result<Input> {
        let mut first = Vec::new();
        (&mut stream).take(ContainerKind::SNIFF as u64).read_to_end(&mut first).map_err(Error::io(path))?;
        if !first.is_empty() && Magic::recognise(&first).is_none() {
            // What comes at once is enough to tell what it is.
            let mut more = vec![0; foreign::SNIFF];
            let read = stream.read(&mut more).map_err(Error::io(path))?;
            first.extend_from_slice(more.get(..read).unwrap_or_default());
            return Err(unrecognised(&first));
        }
        let kind = ContainerKind::recognise(&first);
        let mut whole = Cursor::new(first).chain(stream);
        if kind.is_some_and(|(kind, _)| kind == ContainerKind::File) {
            return spooled(&mut whole).map(Input::from);
        }
        Ok(Kind::Stream(Box::new(whole)).into())
    }

    /// The same input, of which `watch` sees how far it has been read.
    #[must_use]
    pub fn watched_by(self, watch: Arc<dyn Watch>) -> Input {
        Input { watch: Some(watch), ..self }
    }

    /// The same input, of which a reader grants no more than `limits`.
    #[must_use]
    pub fn limited_by(self, limits: Limits) -> Input {
        Input { limits, ..self }
    }

    /// Bytes of the input; of a stream those that were read when the result is asked.
    pub(crate) fn size(&self) -> Size {
        let known = match &self.kind {
            Kind::File(file) | Kind::Damaged(file, _) | Kind::Beside(file, _) => Source::len(file).ok(),
            Kind::Stream(_) => None,
            Kind::Directory(directory) | Kind::DamagedDirectory(directory, _) => directory.len().ok(),
        };
        Size { known, streamed: self.streamed.clone() }
    }

    /// When the recording was last written, as the file system says it; nothing for a stream.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// The same input once more; nothing for a stream.
    pub fn again(&self) -> Option<Input> {
        let kind = match &self.kind {
            Kind::File(file) => Kind::File(file.clone()),
            Kind::Stream(_) => return None,
            Kind::Directory(directory) => Kind::Directory(directory.clone()),
            Kind::Damaged(file, foreknown) => Kind::Damaged(file.clone(), *foreknown),
            Kind::DamagedDirectory(directory, foreknown) => {
                Kind::DamagedDirectory(directory.clone(), foreknown.clone())
            }
            Kind::Beside(file, data) => Kind::Beside(file.clone(), data.clone()),
        };
        Some(self.part(kind))
    }

    /// The directory that it is.
    pub fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            Kind::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// The `data` of a directory alone, as an input that is watched like this one.
    pub fn data(&self, directory: &Directory) -> Input {
        self.part(Kind::File(directory.data().clone()))
    }

    /// The files beside it by name, likewise.
    pub fn beside(&self, directory: &Directory) -> Vec<(String, Input)> {
        let part =
            |file: &DataFile<Arc<InputFile>>| self.part(Kind::Beside(file.source.clone(), directory.data().clone()));
        directory.files().iter().map(|file| (file.name.clone(), part(file))).collect()
    }

    fn part(&self, kind: Kind) -> Input {
        Input {
            kind,
            watch: self.watch.clone(),
            streamed: self.streamed.clone(),
            limits: self.limits,
            modified: self.modified,
        }
    }

    /// A file in which this input's recording stands now, as an input.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn in_file(&self, file: &File) -> Result<Input> {
        let file = file.try_clone().and_then(InputFile::new).map_err(Error::io("output"))?;
        Ok(self.part(Kind::File(Arc::new(file))))
    }

    /// A directory in which this input's recording stands now, as an input.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn in_folder(&self, folder: &Path) -> Result<Input> {
        Ok(self.part(Kind::Directory(Directory::open(folder)?)))
    }

    /// This input as one that can be read twice: a stream is put into a temporary file.
    ///
    /// # Errors
    /// The stream cannot be read, or the file not be written.
    pub fn into_seekable(self) -> Result<Input> {
        match self.kind {
            Kind::Stream(mut stream) => Ok(Input { kind: spooled(&mut stream)?, ..self }),
            _ => Ok(self),
        }
    }

    /// Reads the whole input, and says what can be believed of it: of a directory, of each file with its name, `data`
    /// first.
    ///
    /// # Errors
    /// As [`Survey::of`], or the input is a stream.
    pub fn survey(&self) -> Result<Vec<(Option<String>, Survey)>> {
        if let Some(watch) = &self.watch {
            watch.begin(self.size().known);
        }
        let mut seen = |bytes| self.watch.iter().for_each(|watch| watch.advance(bytes));
        match &self.kind {
            Kind::File(file) => Ok(vec![(None, Survey::of(file, self.limits, seen)?)]),
            Kind::Directory(directory) => {
                let limits = directory::limits(directory, self.limits);
                let main = Survey::of(directory.data(), limits, &mut seen).map_err(|error| error.inside("data"))?;
                let beside = directory.files().iter().map(|file| {
                    let name = file.name.escape_debug().to_string();
                    let survey = Survey::beside(&file.source, &main, &mut seen).map_err(|error| error.inside(&name))?;
                    Ok((Some(name), survey))
                });
                let beside = beside.collect::<Result<Vec<_>>>()?;
                Ok([(Some("data".into()), main)].into_iter().chain(beside).collect())
            }
            _ => Err(unsalvageable()),
        }
    }

    /// This input as one of which only what can be believed is read ([`RecordingReader::salvaged`]); `foreknown` is
    /// what surveys say of its files.
    ///
    /// # Errors
    /// It is a stream.
    pub fn salvaged(self, foreknown: Vec<Foreknown>) -> Result<Input> {
        let kind = match self.kind {
            Kind::File(file) => Kind::Damaged(file, foreknown.first().copied().unwrap_or_default()),
            Kind::Directory(directory) => Kind::DamagedDirectory(directory, foreknown),
            _ => return Err(unsalvageable()),
        };
        Ok(Input { kind, ..self })
    }

    /// The recording in the input.
    ///
    /// # Errors
    /// It is none, or its metadata is damaged.
    pub fn reader(self) -> Result<(RecordingReader<InputReader>, InputSource)> {
        self.reader_with(Head::Read)
    }

    /// The same, with a choice of what becomes of the head of a pipe.
    ///
    /// # Errors
    /// As [`reader`](Self::reader).
    pub fn reader_with(self, head: Head) -> Result<(RecordingReader<InputReader>, InputSource)> {
        let total = self.size().known;
        let limits = self.limits;
        let options = Options { head, limits };
        let meter = Meter { watch: self.watch, streamed: self.streamed };
        if let Some(watch) = &meter.watch {
            watch.begin(total);
        }
        match self.kind {
            Kind::File(file) => {
                let reader = RecordingReader::open_with(file.clone(), options)?;
                let reader = reader.map_input(|file| meter.clone().of(Stream::File(file)));
                Ok((reader, InputSource { place: Place::File(file), limits, meter }))
            }
            Kind::Stream(stream) => {
                let stream = meter.clone().of(Stream::Other(stream));
                Ok((RecordingReader::pipe_with(stream, options)?, InputSource { place: Place::Nowhere, limits, meter }))
            }
            Kind::Beside(file, data) => {
                let reader = RecordingReader::beside(data, file.clone(), limits)?;
                let reader = reader.map_input(|file| meter.clone().of(Stream::File(file)));
                Ok((reader, InputSource { place: Place::File(file), limits, meter }))
            }
            Kind::Directory(directory) => {
                let reader = directory::reader(&directory, limits, meter.clone())?;
                Ok((reader, InputSource { place: Place::Directory(directory), limits, meter }))
            }
            Kind::Damaged(file, foreknown) => {
                let reader = RecordingReader::salvaged(file.clone(), foreknown, limits)?;
                let reader = reader.map_input(|file| meter.clone().of(Stream::Salvaged(Box::new(file))));
                Ok((reader, InputSource { place: Place::File(file), limits, meter }))
            }
            Kind::DamagedDirectory(directory, foreknown) => {
                let reader = directory::salvaged_reader(&directory, &foreknown, limits, meter.clone())?;
                Ok((reader, InputSource { place: Place::Directory(directory), limits, meter }))
            }
        }
    }
}

/// The error of a stream that begins with `first`, which is no recording.
fn unrecognised(first: &[u8]) -> Error {
    let error = match RecordingReader::pipe_with(first, Options::default()) {
        Err(error) => Error::from(error),
        Ok(_) => Error::Refused("no recording".into()),
    };
    match foreign::recognise(first) {
        Some(foreign) => Error::Unrecognised { foreign, source: Box::new(error) },
        None => error,
    }
}

fn unsalvageable() -> Error {
    Error::Refused("a stream cannot be read twice".into())
}

impl From<Kind> for Input {
    fn from(kind: Kind) -> Self {
        Input { kind, watch: None, streamed: Arc::default(), limits: Limits::default(), modified: None }
    }
}

/// A stream that was put into a temporary file.
fn spooled(stream: &mut dyn Read) -> Result<Kind> {
    let file = spool(stream)?;
    Ok(Kind::File(Arc::new(InputFile::new(file).map_err(Error::io("temporary file"))?)))
}

/// The input once more, for what the model does not hold.
pub struct InputSource {
    place: Place,
    limits: Limits,
    meter: Meter,
}

enum Place {
    /// A file.
    File(Arc<InputFile>),
    /// A stream has no such bytes.
    Nowhere,
    /// A directory, whose `data` has them.
    Directory(Directory),
}

impl InputSource {
    /// A second reader of the input; nothing for a stream.
    ///
    /// # Errors
    /// As [`Input::reader`].
    pub fn reopen(&self) -> Result<Option<RecordingReader<InputReader>>> {
        let kind = match &self.place {
            Place::File(file) => Kind::File(file.clone()),
            Place::Nowhere => return Ok(None),
            Place::Directory(directory) => Kind::Directory(directory.clone()),
        };
        let Meter { watch, streamed } = self.meter.clone();
        Ok(Some(Input { kind, watch, streamed, limits: self.limits, modified: None }.reader()?.0))
    }

    /// The directory that the input is.
    pub fn directory(&self) -> Option<&Directory> {
        match &self.place {
            Place::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    fn file(&self) -> Option<&InputFile> {
        match &self.place {
            Place::File(file) => Some(file),
            Place::Nowhere => None,
            Place::Directory(directory) => Some(directory.data()),
        }
    }

    /// The bytes at `place`, as far as they exist.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn bytes(&self, place: FileSection) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = SourceReader::new(self as &dyn Source, place);
        reader.read_to_end(&mut bytes).map_err(Error::io("input"))?;
        Ok(bytes)
    }
}

/// Bytes of a gap that are looked at together.
const BLOCK: usize = 1 << 20;

impl InputSource {
    /// Whether all bytes at `place` are zeros, however many there are.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn is_zero(&self, place: FileSection) -> Result<bool> {
        let mut reader = SourceReader::new(self as &dyn Source, place);
        let mut block = vec![0; usize::try_from(place.size).unwrap_or(BLOCK).min(BLOCK)];
        loop {
            match reader.read(&mut block).map_err(Error::io("input"))? {
                0 => return Ok(true),
                got if !block.get(..got).is_some_and(is_zero) => return Ok(false),
                _ => {}
            }
        }
    }
}

impl Source for InputSource {
    fn len(&self) -> io::Result<u64> {
        self.file().map_or(Ok(0), Source::len)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file().map_or(Ok(0), |file| Source::read_at(file, buf, offset))
    }
}
