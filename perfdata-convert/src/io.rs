//! Inputs and outputs of a command: files, directories, standard input and output.
//!
//! An output file appears whole or not at all: it is written beside its target and renamed when it is complete.

mod behind;
mod directory;

pub use behind::Behind;
pub use directory::OutputDirectory;

use std::fs::{self, File};
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::iter;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use perfdata_core::header::{ContainerKind, FileSection};
use perfdata_core::read::{
    DataFile, Foreknown, Head, Limits, Mended, Merged, Options, RecordingReader, Source, SourceReader, Survey,
};
use tempfile::NamedTempFile;

use crate::error::{Error, Result, Step};
use crate::interrupt::Temporary;

/// The name that stands for standard input or output.
const STANDARD: &str = "-";

/// Sees how far an input has been read.
pub trait Watch: Send + Sync {
    /// A pass over the input begins; it has `total` bytes if that is known.
    fn begin(&self, total: Option<u64>);

    /// As many bytes more were read. Comes once for a block, not for a record.
    fn advance(&self, bytes: u64);
}

/// An open input.
pub struct Input {
    kind: Kind,
    watch: Option<Arc<dyn Watch>>,
    /// Bytes of a stream that were read.
    streamed: Arc<AtomicU64>,
    limits: Limits,
}

enum Kind {
    /// A file, which can be read at any place.
    File(Arc<File>),
    /// A stream in pipe mode.
    Stream(Box<dyn Read + Send>),
    /// A directory of `perf record --threads` or `--kcore`.
    Directory(Directory),
    /// What can be believed of a damaged file, and what was found out about it.
    Damaged(Arc<File>, Foreknown),
    /// The same of the files of a directory, `data` first.
    DamagedDirectory(Directory, Vec<Foreknown>),
    /// A file of a directory, and the `data` that says what is in it.
    Beside(Arc<File>, Arc<File>),
}

/// The files of a directory.
#[derive(Clone)]
pub struct Directory {
    path: PathBuf,
    data: Arc<File>,
    files: Vec<DataFile<Arc<File>>>,
    /// Names of what has no place in a file: `kcore_dir`, `kcore_dir__<pid>`.
    extras: Vec<String>,
}

/// Opens a file whose name comes from a recording. Anything else than a regular file is refused before it is opened:
/// a FIFO would wait for a writer.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() { File::open(path) } else { Err(io::Error::other("not a regular file")) }
}

impl Directory {
    fn open(path: &Path) -> Result<Directory> {
        let open = |name: &str| {
            let path = path.join(name);
            open_regular(&path).map(Arc::new).map_err(Error::io(path))
        };
        if path.join("data").try_exists().is_ok_and(|exists| !exists) {
            return Err(Error::Refused("a directory, but no recording: it has no file data".into()));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(Error::io(path))? {
            names.extend(entry.map_err(Error::io(path))?.file_name().into_string().ok());
        }
        // data.2 before data.10.
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let (files, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.starts_with("data."));
        let file = |name: String| Ok(DataFile { source: open(&name)?, name });
        Ok(Directory {
            path: path.to_owned(),
            data: open("data")?,
            files: files.into_iter().map(file).collect::<Result<_>>()?,
            extras: others.into_iter().filter(|name| name.starts_with("kcore_dir")).collect(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the records stand in several files.
    pub fn is_split(&self) -> bool {
        !self.files.is_empty()
    }

    /// Names of what has no place in a file: `kcore_dir`, the recorded kernel's image and symbols.
    pub fn extras(&self) -> &[String] {
        &self.extras
    }

    fn reader(&self, limits: Limits, meter: Meter) -> Result<RecordingReader<InputReader>> {
        if self.files.is_empty() {
            let options = Options { limits, ..Options::default() };
            let reader =
                RecordingReader::open_with(self.data.clone(), options).map_err(|error| error.inside("data"))?;
            return Ok(reader.map_input(|file| meter.of(Stream::File(file))));
        }
        let reader = RecordingReader::directory(self.data.clone(), self.files.clone(), limits)?;
        Ok(reader.map_input(|merged| meter.of(Stream::Merged(Box::new(merged)))))
    }

    /// What is granted to each of its files where they are mended: each is decompressed to be looked at, and once more
    /// to be merged.
    fn limits(&self, all: Limits) -> Limits {
        if self.files.is_empty() { all } else { all.of_each(2 * (self.files.len() + 1)) }
    }

    fn mended_reader(
        &self,
        foreknown: &[Foreknown],
        limits: Limits,
        meter: Meter,
    ) -> Result<RecordingReader<InputReader>> {
        let limits = self.limits(limits);
        let mut told = foreknown.iter().copied().chain(iter::repeat(Foreknown::default()));
        let data = (self.data.clone(), told.next().unwrap_or_default());
        if self.files.is_empty() {
            let reader = RecordingReader::mended(data.0, data.1, limits).map_err(|error| error.inside("data"))?;
            return Ok(reader.map_input(|file| meter.of(Stream::Mended(Box::new(file)))));
        }
        let reader = RecordingReader::mended_directory(data, self.files.iter().cloned().zip(told).collect(), limits)?;
        Ok(reader.map_input(|merged| meter.of(Stream::MendedFiles(Box::new(merged)))))
    }

    /// Bytes of all files with records.
    fn len(&self) -> io::Result<u64> {
        let files = self.files.iter().map(|file| &file.source);
        files.chain([&self.data]).try_fold(0_u64, |sum, file| Ok(sum.saturating_add(Source::len(file)?)))
    }
}

impl Input {
    /// Opens `path`, a file or directory, or standard input for `-`. A file-mode recording that comes as a stream is first put into a
    /// temporary file, since its header points at what stands behind the records.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn open(path: &Path) -> Result<Input> {
        let file = if path.as_os_str() == STANDARD {
            if io::stdin().is_terminal() {
                return Err(Error::Usage("standard input is a terminal: a file, or a pipe, has the recording".into()));
            }
            let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(Error::io("standard input"))?;
            File::from(stdin)
        } else {
            File::open(path).map_err(Error::io(path))?
        };
        let meta = file.metadata().map_err(Error::io(path))?;
        if meta.is_dir() {
            return Ok(Kind::Directory(Directory::open(path)?).into());
        }
        if meta.is_file() && (&file).stream_position().is_ok_and(|at| at == 0) {
            return Ok(Kind::File(Arc::new(file)).into());
        }
        Self::stream(file, path)
    }

    fn stream(mut file: File, path: &Path) -> Result<Input> {
        let mut first = Vec::new();
        (&mut file).take(ContainerKind::SNIFF as u64).read_to_end(&mut first).map_err(Error::io(path))?;
        let kind = ContainerKind::recognise(&first);
        let mut whole = Cursor::new(first).chain(file);
        if kind.is_some_and(|(kind, _)| kind == ContainerKind::File) {
            return spool(&mut whole);
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
        self.part(Kind::File(directory.data.clone()))
    }

    /// The files beside it by name, likewise.
    pub fn beside(&self, directory: &Directory) -> Vec<(String, Input)> {
        let part = |file: &DataFile<Arc<File>>| self.part(Kind::Beside(file.source.clone(), directory.data.clone()));
        directory.files.iter().map(|file| (file.name.clone(), part(file))).collect()
    }

    fn part(&self, kind: Kind) -> Input {
        Input { kind, watch: self.watch.clone(), streamed: self.streamed.clone(), limits: self.limits }
    }

    /// A file in which this input's recording stands now, as an input.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn in_file(&self, file: &File) -> Result<Input> {
        Ok(self.part(Kind::File(Arc::new(file.try_clone().map_err(Error::io("output"))?))))
    }

    /// This input as one that can be read twice: a stream is put into a temporary file.
    ///
    /// # Errors
    /// The stream cannot be read, or the file not be written.
    pub fn into_seekable(self) -> Result<Input> {
        match self.kind {
            Kind::Stream(mut stream) => Ok(Input { kind: spool(&mut stream)?.kind, ..self }),
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
                let limits = directory.limits(self.limits);
                let main = Survey::of(&directory.data, limits, &mut seen).map_err(|error| error.inside("data"))?;
                let beside = directory.files.iter().map(|file| {
                    let name = file.name.escape_debug().to_string();
                    let survey = Survey::beside(&file.source, &main, &mut seen).map_err(|error| error.inside(&name))?;
                    Ok((Some(name), survey))
                });
                let beside = beside.collect::<Result<Vec<_>>>()?;
                Ok([(Some("data".into()), main)].into_iter().chain(beside).collect())
            }
            _ => Err(unmendable()),
        }
    }

    /// This input as one of which only what can be believed is read ([`RecordingReader::mended`]); `foreknown` is what
    /// surveys say of its files.
    ///
    /// # Errors
    /// It is a stream.
    pub fn mended(self, foreknown: Vec<Foreknown>) -> Result<Input> {
        let kind = match self.kind {
            Kind::File(file) => Kind::Damaged(file, foreknown.first().copied().unwrap_or_default()),
            Kind::Directory(directory) => Kind::DamagedDirectory(directory, foreknown),
            _ => return Err(unmendable()),
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
                let reader = directory.reader(limits, meter.clone())?;
                Ok((reader, InputSource { place: Place::Directory(directory), limits, meter }))
            }
            Kind::Damaged(file, foreknown) => {
                let reader = RecordingReader::mended(file.clone(), foreknown, limits)?;
                let reader = reader.map_input(|file| meter.clone().of(Stream::Mended(Box::new(file))));
                Ok((reader, InputSource { place: Place::File(file), limits, meter }))
            }
            Kind::DamagedDirectory(directory, foreknown) => {
                let reader = directory.mended_reader(&foreknown, limits, meter.clone())?;
                Ok((reader, InputSource { place: Place::Directory(directory), limits, meter }))
            }
        }
    }
}

fn unmendable() -> Error {
    Error::Refused("a stream cannot be read twice".into())
}

impl From<Kind> for Input {
    fn from(kind: Kind) -> Self {
        Input { kind, watch: None, streamed: Arc::default(), limits: Limits::default() }
    }
}

/// How many bytes an input has.
pub(crate) struct Size {
    known: Option<u64>,
    streamed: Arc<AtomicU64>,
}

impl Size {
    /// The number, for a stream that of the bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.known.unwrap_or_else(|| self.streamed.load(Ordering::Relaxed))
    }
}

/// What counts the bytes that are read.
#[derive(Clone)]
struct Meter {
    watch: Option<Arc<dyn Watch>>,
    streamed: Arc<AtomicU64>,
}

impl Meter {
    fn of(self, stream: Stream) -> InputReader {
        InputReader { stream, meter: self }
    }
}

/// Puts a stream into a temporary file.
fn spool(stream: &mut dyn Read) -> Result<Input> {
    let mut spool = tempfile::tempfile().map_err(Error::io("temporary file"))?;
    io::copy(stream, &mut spool).map_err(Error::io("input"))?;
    Ok(Kind::File(Arc::new(spool)).into())
}

/// The record stream of an input.
pub struct InputReader {
    stream: Stream,
    meter: Meter,
}

enum Stream {
    /// A part of a file.
    File(SourceReader<Arc<File>>),
    /// The files of a directory.
    Merged(Box<Merged<SourceReader<Arc<File>>>>),
    /// What can be read only once.
    Other(Box<dyn Read + Send>),
    /// What can be believed of a damaged file.
    Mended(Box<Mended<Arc<File>>>),
    /// What can be believed of the files of a damaged directory.
    MendedFiles(Box<Merged<Mended<Arc<File>>>>),
}

impl Read for InputReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.stream {
            Stream::File(file) => file.read(buf)?,
            Stream::Merged(files) => files.read(buf)?,
            Stream::Mended(file) => file.read(buf)?,
            Stream::MendedFiles(files) => files.read(buf)?,
            Stream::Other(stream) => {
                let read = stream.read(buf)?;
                self.meter.streamed.fetch_add(read as u64, Ordering::Relaxed);
                read
            }
        };
        if let Some(watch) = &self.meter.watch {
            watch.advance(read as u64);
        }
        Ok(read)
    }
}

/// The input once more, for what the model does not hold.
pub struct InputSource {
    place: Place,
    limits: Limits,
    meter: Meter,
}

enum Place {
    /// A file.
    File(Arc<File>),
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
        Ok(Some(Input { kind, watch, streamed, limits: self.limits }.reader()?.0))
    }

    /// The directory that the input is.
    pub fn directory(&self) -> Option<&Directory> {
        match &self.place {
            Place::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    fn file(&self) -> Option<&File> {
        match &self.place {
            Place::File(file) => Some(file),
            Place::Nowhere => None,
            Place::Directory(directory) => Some(&directory.data),
        }
    }
}

impl InputSource {
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

impl Source for InputSource {
    fn len(&self) -> io::Result<u64> {
        self.file().map_or(Ok(0), Source::len)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file().map_or(Ok(0), |file| Source::read_at(file, buf, offset))
    }
}

/// The bytes of a file that an option names. It may be a pipe or a device that has no end.
///
/// # Errors
/// It cannot be read, or has more than `most` bytes.
pub fn read_at_most(most: u64, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = |file: File| file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    File::open(path).and_then(read).map_err(Error::io(path))?;
    if bytes.len() as u64 > most {
        return Err(Error::Usage(format!("{}: there are more than {most} bytes", path.display())));
    }
    Ok(bytes)
}

/// Where a command's output goes. It becomes visible when it is complete.
pub enum Output {
    /// A file beside the target, which takes its name in the end.
    Replace {
        /// The new file.
        file: NamedTempFile,
        /// Its name to be.
        target: PathBuf,
        /// Removes the new file when a signal ends the process.
        guard: Temporary,
    },
    /// Something that cannot be replaced: written from start to end.
    Direct(Direct),
}

/// An output that takes bytes as they come.
pub enum Direct {
    /// A device or FIFO.
    Special(File),
    /// Standard output.
    Stdout,
}

impl Direct {
    fn write<T>(self, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        match self {
            Direct::Special(mut file) => write(&mut file),
            Direct::Stdout => {
                let mut out = io::stdout().lock();
                let result = write(&mut out)?;
                out.flush().map_err(Error::io("standard output"))?;
                Ok(result)
            }
        }
    }
}

impl Output {
    /// Prepares for writing `path`, or standard output for `-`. The mode of a new file is that of `perf record`: for
    /// the owner alone.
    ///
    /// # Errors
    /// The file exists and `force` is not given, it is the input, or its directory cannot be written.
    pub fn create(path: &Path, input: &Path, force: bool) -> Result<Output> {
        if path.as_os_str() == STANDARD {
            if io::stdout().is_terminal() {
                let what =
                    "standard output is a terminal, which shows no recordings: -o FILE, or a pipe to who reads it";
                return Err(Error::Usage(what.into()));
            }
            if stdout_is_input(input) {
                return Err(input_stays(Path::new("standard output")));
            }
            return Ok(Output::Direct(Direct::Stdout));
        }
        // What a link leads to is written, not the link.
        let target = if path.is_symlink() { resolved(path) } else { path.to_owned() };
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(Error::Usage(format!("{} is a directory", path.display())));
            }
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(Error::io(path))?;
                return Ok(Output::Direct(Direct::Special(file)));
            }
            _ if is_input(path, input) => return Err(input_stays(path)),
            Ok(_) if !force => {
                let what = format!("{} exists; --force overwrites it", path.display());
                return Err(Error::Usage(what).with_step(Step::Add("--force".into())));
            }
            _ => {}
        }
        let make = || temporary(&target, |builder, parent| builder.tempfile_in(parent));
        let (file, guard) = Temporary::make(make, NamedTempFile::path)?;
        Ok(Output::Replace { file, target, guard })
    }

    /// Writes by `write` to something that can seek, and makes the result visible.
    ///
    /// # Errors
    /// Those of `write`, and the operating system's.
    pub fn write_seekable<T>(self, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        match self {
            Output::Replace { mut file, target, guard } => {
                let result = write(file.as_file_mut())?;
                file.persist(&target).map_err(|e| Error::io(&target)(e.error))?;
                drop(guard);
                Ok(result)
            }
            Output::Direct(direct) => {
                let mut spool = tempfile::tempfile().map_err(Error::io("temporary file"))?;
                let result = write(&mut spool)?;
                spool.seek(SeekFrom::Start(0)).map_err(Error::io("temporary file"))?;
                direct.write(|out| io::copy(&mut spool, out).map_err(Error::io("output")))?;
                Ok(result)
            }
        }
    }

    /// Writes by `write` from start to end, and makes the result visible.
    ///
    /// # Errors
    /// Those of `write`, and the operating system's.
    pub fn write_stream<T>(self, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        match self {
            Output::Replace { .. } => self.write_seekable(|file| Behind::write_all(file, write)),
            Output::Direct(direct) => direct.write(write),
        }
    }
}

/// Makes something temporary beside `path`, in the same folder.
fn temporary<T>(path: &Path, make: impl FnOnce(&mut tempfile::Builder, &Path) -> io::Result<T>) -> Result<T> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(parent).map_err(Error::io(parent))?;
    let made = make(tempfile::Builder::new().prefix(".perfconv-").suffix(".tmp"), parent);
    // Without the name of what is temporary.
    made.map_err(|error| Error::io(parent)(error.kind().into()))
}

/// The error of an output that would change the input.
fn input_stays(output: &Path) -> Error {
    Error::Usage(format!("{} is the input: inputs are never changed", output.display()))
}

/// Which file it is.
fn identity(meta: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// What the system knows of an input, which may be standard input.
fn input_metadata(input: &Path) -> io::Result<fs::Metadata> {
    match input.as_os_str() == STANDARD {
        true => io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| File::from(stdin).metadata()),
        false => fs::metadata(input),
    }
}

/// Whether `output` is the file or directory that `input` names, or the file that standard input is, or would be in
/// that directory.
fn is_input(output: &Path, input: &Path) -> bool {
    let is_same = match (fs::metadata(output), input_metadata(input)) {
        (Ok(output), Ok(input)) => identity(&output) == identity(&input),
        _ => false,
    };
    is_same || is_within(output, input)
}

/// The path without links and dots, also of what is not there yet.
fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().map(|parent| if parent == Path::new("") { Path::new(".") } else { parent });
    match (fs::canonicalize(path), parent, path.file_name()) {
        (Ok(found), ..) => found,
        (_, Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Whether `path` is, or would be, in `directory`.
fn is_within(path: &Path, directory: &Path) -> bool {
    directory.is_dir() && resolved(path).starts_with(resolved(directory))
}

/// Whether standard output is a file that is the input, or in it.
fn stdout_is_input(input: &Path) -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned().and_then(|stdout| File::from(stdout).metadata());
    let Some(stdout) = stdout.ok().filter(fs::Metadata::is_file) else { return false };
    let is_it = |meta: io::Result<fs::Metadata>| meta.is_ok_and(|meta| identity(&meta) == identity(&stdout));
    let mut inside = fs::read_dir(input).into_iter().flatten().flatten();
    is_it(input_metadata(input)) || inside.any(|entry| is_it(entry.metadata()))
}
