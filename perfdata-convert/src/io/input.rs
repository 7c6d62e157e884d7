//! Inputs: a file, a directory, or a stream, and the readable part of a corrupt one.

mod open;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use perfdata_core::read::{
    DataFile, Foreknown, Head, InputFile, Limits, Options, RecordSource, RecordingReader, Source,
    Survey,
};
use perfdata_symbols::BundleFolder;

use self::open::spooled;
use super::bundle::InputBundle;
use super::directory::{self, Directory};
use super::input_source::InputSource;
use super::reader::{Meter, Size, Stream, Watch};
use crate::error::{Error, Result};
use crate::support::os;

/// Number of bytes that are passed at once.
const BLOCK: usize = 256 << 10;

/// An open input.
pub struct Input {
    pub(super) kind: OpenInput,
    pub(super) watch: Option<Arc<dyn Watch>>,
    /// Number of bytes read from a stream.
    pub(super) streamed: Arc<AtomicU64>,
    pub(super) limits: Limits,
    pub(super) written: Option<Written>,
    pub(super) bundle: Option<InputBundle>,
}

/// When a file was written.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Written {
    /// The time of its last change.
    pub modified: SystemTime,
    /// Whether its bytes were written to this file, and not copied from an older one with its time:
    /// a recording of this machine, or a download.
    pub is_new: bool,
}

impl Written {
    fn of(meta: &Metadata) -> Option<Written> {
        let modified = meta.modified().ok()?;
        Some(Written {
            modified,
            is_new: meta.created().is_ok_and(|created| modified >= created),
        })
    }
}

/// Bytes that can be read at any offset.
pub(super) type Bytes = Arc<dyn Source + Send + Sync>;

/// The open recording of an input.
pub type BoxedSource = Box<dyn RecordSource + Send>;

pub(super) enum OpenInput {
    /// A file, or bytes in memory.
    File(Bytes),
    /// A stream in pipe mode.
    Stream(Box<dyn Read + Send>),
    /// A directory of `perf record --threads` or `--kcore`.
    Directory(Directory),
    /// The readable part of a corrupt file, and the result of its survey.
    Damaged(Bytes, Foreknown),
    /// The readable parts of the files of a corrupt directory, `data` first, and the results of the
    /// surveys.
    DamagedDirectory(Directory, Vec<Foreknown>),
    /// A file of a directory, and `data`, which contains the events of its records.
    Beside(Bytes, Bytes),
    /// Several recordings that are read as one.
    Combined(Box<dyn Combined>),
    /// A reader that the caller supplies.
    Records(BoxedSource),
}

/// Several recordings that are read as one, such as merged ones.
pub trait Combined: Send {
    /// Returns the same recordings again; `None` if they can be read only once.
    fn again(&self) -> Option<Box<dyn Combined>>;

    /// Returns the size of the recordings in bytes, if it is known.
    fn size(&self) -> Option<u64>;

    /// Returns when the newest of the recordings was written; `None` if that of one is not known.
    fn written(&self) -> Option<Written>;

    /// Returns the inputs in the order in which [`reader`](Self::reader) takes their readers. All
    /// are read at the same time.
    ///
    /// # Errors
    /// An input cannot be opened again.
    fn inputs(&self) -> Result<Vec<Input>>;

    /// Returns the reader of the recording, which reads from `readers` of the
    /// [`inputs`](Self::inputs), within `limits`.
    ///
    /// # Errors
    /// An input cannot be read or is corrupt.
    fn reader(&self, readers: Vec<BoxedSource>, limits: Limits) -> Result<BoxedSource>;
}

impl OpenInput {
    /// Returns the same input again; `None` if it can be read only once.
    pub(super) fn again(&self) -> Option<OpenInput> {
        Some(match self {
            OpenInput::File(file) => OpenInput::File(file.clone()),
            OpenInput::Stream(_) | OpenInput::Records(_) => return None,
            OpenInput::Directory(directory) => OpenInput::Directory(directory.clone()),
            OpenInput::Damaged(file, foreknown) => OpenInput::Damaged(file.clone(), *foreknown),
            OpenInput::DamagedDirectory(directory, foreknown) => {
                OpenInput::DamagedDirectory(directory.clone(), foreknown.clone())
            }
            OpenInput::Beside(file, data) => OpenInput::Beside(file.clone(), data.clone()),
            OpenInput::Combined(inputs) => OpenInput::Combined(inputs.again()?),
        })
    }
}

impl Input {
    /// Uses a recording in memory, or in anything else that can be read at any offset.
    pub fn from_source(source: impl Source + Send + Sync + 'static) -> Input {
        OpenInput::File(Arc::new(source)).into()
    }

    /// Uses `source`, a conversion of a recording that was written at `written`. It has no watch,
    /// which has seen the recording already.
    pub(crate) fn converted(written: Option<Written>, source: Arc<File>) -> Input {
        Input {
            written,
            ..Input::from_source(source)
        }
    }

    /// Uses an open recording whose first record was not read yet. It can be read once.
    pub fn from_records(records: impl RecordSource + Send + 'static) -> Input {
        OpenInput::Records(Box::new(records)).into()
    }

    /// Returns whether this is a reader that the caller opened.
    pub fn is_open(&self) -> bool {
        matches!(self.kind, OpenInput::Records(_))
    }

    /// Reads several recordings as one.
    pub fn combined(inputs: Box<dyn Combined>) -> Input {
        Input {
            written: inputs.written(),
            ..OpenInput::Combined(inputs).into()
        }
    }

    /// Returns the limits of the readers.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the same input with `watch`, which receives the progress of reading.
    #[must_use]
    pub fn watched_by(self, watch: Arc<dyn Watch>) -> Input {
        Input {
            watch: Some(watch),
            ..self
        }
    }

    /// Returns the watch of this input.
    pub(crate) fn watch(&self) -> Option<Arc<dyn Watch>> {
        self.watch.clone()
    }

    /// Returns the same input, whose readers use at most `limits`. An open reader
    /// ([`from_records`](Self::from_records)) keeps its own.
    #[must_use]
    pub fn limited_by(self, limits: Limits) -> Input {
        Input { limits, ..self }
    }

    /// Returns the size of the input in bytes; for a stream, the number of bytes read up to the
    /// time of the query.
    pub fn size(&self) -> Size {
        let known = match &self.kind {
            OpenInput::File(file) | OpenInput::Damaged(file, _) | OpenInput::Beside(file, _) => {
                Source::len(file).ok()
            }
            OpenInput::Stream(_) | OpenInput::Records(_) => None,
            OpenInput::Directory(directory) | OpenInput::DamagedDirectory(directory, _) => {
                directory.len().ok()
            }
            OpenInput::Combined(inputs) => inputs.size(),
        };
        Size {
            known,
            streamed: self.streamed.clone(),
        }
    }

    /// Returns the time of the last change of the recording according to the file system; `None`
    /// for a stream.
    pub fn modified(&self) -> Option<SystemTime> {
        Some(self.written?.modified)
    }

    /// Returns when the file was written; `None` for a stream.
    pub fn written(&self) -> Option<Written> {
        self.written
    }

    /// Returns the bundle from which the recording is read, if it is from one.
    pub fn bundle(&self) -> Option<&InputBundle> {
        self.bundle.as_ref()
    }

    /// Returns a folder with the objects of that bundle: [`InputBundle::folder`].
    ///
    /// # Errors
    /// As [`InputBundle::folder`].
    pub fn bundle_folder(&self) -> Result<Option<BundleFolder>> {
        self.bundle.as_ref().map(InputBundle::folder).transpose()
    }

    /// Returns the same input with the objects of the same bundle as `other`.
    #[must_use]
    pub fn with_bundle_of(self, other: &Input) -> Input {
        Input {
            bundle: other.bundle.clone(),
            ..self
        }
    }

    /// Returns the same input again; `None` for a stream.
    pub fn again(&self) -> Option<Input> {
        Some(self.part(self.kind.again()?))
    }

    /// Returns the directory, if the input is one.
    pub fn directory(&self) -> Option<&Directory> {
        match &self.kind {
            OpenInput::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Returns the list of the kernel's symbols in a directory of `perf record --kcore`.
    pub fn kernel_symbols(&self) -> Option<PathBuf> {
        let directory = self.directory()?;
        let list = directory.path().join("kcore_dir").join("kallsyms");
        let has_kernel = directory.extras().iter().any(|name| name == "kcore_dir");
        (has_kernel && list.is_file()).then_some(list)
    }

    /// Returns only the `data` file of a directory, as an input with the same watch.
    pub fn data(&self, directory: &Directory) -> Input {
        self.part(OpenInput::File(directory.data().clone()))
    }

    /// Returns the files beside `data` with their names, likewise.
    pub fn beside(&self, directory: &Directory) -> Vec<(String, Input)> {
        let part = |file: &DataFile<Arc<InputFile>>| {
            self.part(OpenInput::Beside(
                file.source.clone() as Bytes,
                directory.data().clone() as Bytes,
            ))
        };
        directory
            .files()
            .iter()
            .map(|file| (file.name.clone(), part(file)))
            .collect()
    }

    pub(super) fn metered(kind: OpenInput, meter: Meter, limits: Limits) -> Input {
        let Meter { watch, streamed } = meter;
        Input {
            kind,
            watch,
            streamed,
            limits,
            written: None,
            bundle: None,
        }
    }

    fn part(&self, kind: OpenInput) -> Input {
        Input {
            kind,
            watch: self.watch.clone(),
            streamed: self.streamed.clone(),
            limits: self.limits,
            written: self.written,
            bundle: self.bundle.clone(),
        }
    }

    /// Returns an input that reads this input's recording from `file`, which now contains it.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub(crate) fn in_file(&self, file: &File) -> Result<Input> {
        let file = os::duplicate(file)
            .and_then(InputFile::new)
            .map_err(Error::io("output"))?;
        Ok(self.part(OpenInput::File(Arc::new(file))))
    }

    /// Returns an input that reads this input's recording from the directory `folder`, which now
    /// contains it.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub(crate) fn in_folder(&self, folder: &Path) -> Result<Input> {
        Ok(self.part(OpenInput::Directory(Directory::open(folder)?)))
    }

    /// Returns this input as one that can be read twice: a stream is stored in a temporary file.
    ///
    /// # Errors
    /// The stream cannot be read, or the file cannot be written.
    pub fn into_seekable(self) -> Result<Input> {
        match self.kind {
            OpenInput::Stream(mut stream) => Ok(Input {
                kind: spooled(&mut stream)?,
                ..self
            }),
            OpenInput::Records(_) => {
                Err(Error::Refused("this reader can be read only once".into()))
            }
            _ => Ok(self),
        }
    }

    /// Passes all bytes of the input to `each`: those of a file, or of the files of a directory,
    /// `data` first. Returns false for other inputs, whose bytes cannot be read twice.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn each_block(&self, mut each: impl FnMut(&[u8])) -> Result<bool> {
        let mut files: Vec<Bytes> = Vec::new();
        match &self.kind {
            OpenInput::File(file) => files.push(file.clone()),
            OpenInput::Directory(directory) => {
                files.push(directory.data().clone());
                let others = directory.files().iter();
                files.extend(others.map(|file| file.source.clone() as Bytes));
            }
            _ => return Ok(false),
        }
        let mut block = vec![0; BLOCK];
        for file in files {
            let mut offset = 0;
            loop {
                let read = match file.read_at(&mut block, offset) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(Error::io("input")(error)),
                };
                each(block.get(..read).unwrap_or_default());
                offset = offset.saturating_add(read as u64);
            }
        }
        Ok(true)
    }

    /// Reads the whole input, and reports which parts are readable. For a directory, returns a
    /// survey of each file with its name, `data` first.
    ///
    /// # Errors
    /// As [`Survey::of`], or the input is a stream.
    pub fn survey(&self) -> Result<Vec<(Option<String>, Survey)>> {
        if let Some(watch) = &self.watch {
            watch.begin(self.size().known);
        }
        let mut seen = |bytes| self.watch.iter().for_each(|watch| watch.advance(bytes));
        match &self.kind {
            OpenInput::File(file) => Ok(vec![(None, Survey::of(file, self.limits, seen)?)]),
            OpenInput::Directory(directory) => {
                let limits = directory::limits(directory, self.limits);
                let main = Survey::of(directory.data(), limits, &mut seen)
                    .map_err(|error| error.inside("data"))?;
                let beside = directory.files().iter().map(|file| {
                    let name = file.name.escape_debug().to_string();
                    let survey = Survey::beside(&file.source, &main, limits, &mut seen)
                        .map_err(|error| error.inside(&name))?;
                    Ok((Some(name), survey))
                });
                let beside = beside.collect::<Result<Vec<_>>>()?;
                Ok([(Some("data".into()), main)]
                    .into_iter()
                    .chain(beside)
                    .collect())
            }
            _ => Err(unsalvageable()),
        }
    }

    /// Returns this input such that only its readable part is read ([`RecordingReader::salvaged`]);
    /// `foreknown` contains the results of the surveys of its files.
    ///
    /// # Errors
    /// The input is a stream.
    pub fn salvaged(self, foreknown: Vec<Foreknown>) -> Result<Input> {
        let kind = match self.kind {
            OpenInput::File(file) => {
                OpenInput::Damaged(file, foreknown.first().copied().unwrap_or_default())
            }
            OpenInput::Directory(directory) => OpenInput::DamagedDirectory(directory, foreknown),
            _ => return Err(unsalvageable()),
        };
        Ok(Input { kind, ..self })
    }

    /// Opens the recording in the input.
    ///
    /// # Errors
    /// The input is not a recording, or its metadata is corrupt.
    pub fn reader(self) -> Result<(BoxedSource, InputSource)> {
        self.reader_with(Head::Read)
    }

    /// Opens the recording like [`reader`](Self::reader); `head` determines how the head of a pipe
    /// is handled.
    ///
    /// # Errors
    /// As [`reader`](Self::reader).
    pub fn reader_with(self, head: Head) -> Result<(BoxedSource, InputSource)> {
        let total = self.size().known;
        let limits = match &self.kind {
            OpenInput::Records(records) => records.limits(),
            _ => self.limits,
        };
        let options = Options::default().with_head(head).with_limits(limits);
        let meter = Meter {
            watch: self.watch,
            streamed: self.streamed,
        };
        if let Some(watch) = &meter.watch {
            watch.begin(total);
        }
        let source = InputSource::new(self.kind.again(), limits, meter.clone());
        let records: BoxedSource = match self.kind {
            OpenInput::File(file) => {
                let reader = RecordingReader::open_with(file, options)?;
                Box::new(reader.map_input(|file| meter.of(Stream::File(file))))
            }
            OpenInput::Stream(stream) => Box::new(RecordingReader::pipe_with(
                meter.of(Stream::Other(stream)),
                options,
            )?),
            OpenInput::Beside(file, data) => {
                let reader = RecordingReader::beside(data, file, limits)?;
                Box::new(reader.map_input(|file| meter.of(Stream::File(file))))
            }
            OpenInput::Directory(directory) => {
                Box::new(directory::reader(&directory, limits, meter)?)
            }
            OpenInput::Damaged(file, foreknown) => {
                let reader = RecordingReader::salvaged(file, foreknown, limits)?;
                Box::new(reader.map_input(|file| meter.of(Stream::Salvaged(Box::new(file)))))
            }
            OpenInput::DamagedDirectory(directory, foreknown) => Box::new(
                directory::salvaged_reader(&directory, &foreknown, limits, meter)?,
            ),
            OpenInput::Combined(combined) => {
                let readers = readers_of(combined.inputs()?, limits, &meter)?;
                combined.reader(readers, limits)?
            }
            OpenInput::Records(records) => records,
        };
        Ok((records, source))
    }
}

/// Opens several inputs that are read at the same time, and share limits and watch.
fn readers_of(inputs: Vec<Input>, limits: Limits, meter: &Meter) -> Result<Vec<BoxedSource>> {
    let limits = limits.of_each(inputs.len());
    inputs
        .into_iter()
        .map(|input| {
            let watch = meter
                .watch
                .clone()
                .map(|watch| Arc::new(SharedWatch(watch)) as Arc<dyn Watch>);
            let input = Input {
                watch,
                limits,
                ..input
            };
            Ok(input.reader()?.0)
        })
        .collect()
}

/// Watches one of several inputs, whose passes are not counted individually.
struct SharedWatch(Arc<dyn Watch>);

impl Watch for SharedWatch {
    fn begin(&self, _: Option<u64>) {}

    fn advance(&self, bytes: u64) {
        self.0.advance(bytes);
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

fn unsalvageable() -> Error {
    Error::Refused("a stream cannot be read twice: write it to a file first".into())
}

impl From<OpenInput> for Input {
    fn from(kind: OpenInput) -> Self {
        Input {
            kind,
            watch: None,
            streamed: Arc::default(),
            limits: Limits::default(),
            written: None,
            bundle: None,
        }
    }
}
