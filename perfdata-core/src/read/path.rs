//! Opens a path: a file of either container, a directory, or a stream.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Problem, Result};
use crate::read::dir::{DataFile, DataStream};
use crate::read::input_file::InputFile;
use crate::read::limits::Limits;
use crate::read::merged::Merged;
use crate::read::source::{Source, SourceReader};
use crate::read::{Options, RecordingReader};

/// The record stream of a recording opened by path.
#[derive(Debug)]
pub struct PathReader(Stream);

#[derive(Debug)]
enum Stream {
    File(SourceReader<Arc<InputFile>>),
    Directory(Box<Merged<DataStream<SourceReader<Arc<InputFile>>>>>),
    /// An input that can be read only once.
    Pipe(File),
}

impl Read for PathReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::File(file) => file.read(buf),
            Stream::Directory(files) => files.read(buf),
            Stream::Pipe(file) => file.read(buf),
        }
    }
}

impl RecordingReader {
    /// Opens the recording at `path`: a file in file mode or pipe mode, a directory
    /// (`perf record --threads` or `--kcore`), or an input in pipe mode that can be read only once,
    /// such as a FIFO or `/dev/stdin`.
    ///
    /// # Errors
    /// Fails if the path does not exist, is not a recording, or its header or attributes are
    /// corrupt.
    pub fn open_path(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| of_path(path, e))?;
        let meta = file.metadata().map_err(|e| of_path(path, e))?;
        if meta.is_dir() {
            return Directory::open(path)?.reader(options.limits);
        }
        if !meta.is_file() {
            return RecordingReader::pipe_with(PathReader(Stream::Pipe(file)), options);
        }
        let file = Arc::new(InputFile::new(file).map_err(|e| of_path(path, e))?);
        Ok(RecordingReader::open_with(file, options)?
            .map_input(|file| PathReader(Stream::File(file))))
    }
}

fn of_path(path: &Path, error: io::Error) -> Error {
    Error::io(path.display().to_string(), error)
}

/// The files of a directory that contains a recording.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    data: Arc<InputFile>,
    files: Vec<DataFile<Arc<InputFile>>>,
    extras: Vec<String>,
}

impl Directory {
    /// Opens the files in the directory `path`.
    ///
    /// # Errors
    /// Fails if there is no file `data`, or a file cannot be opened.
    pub fn open(path: &Path) -> Result<Directory> {
        let open = |name: &str| {
            let path = path.join(name);
            open_regular(&path)
                .and_then(InputFile::new)
                .map(Arc::new)
                .map_err(|e| of_path(&path, e))
        };
        if path.join("data").try_exists().is_ok_and(|exists| !exists) {
            return Err(Error::new(
                "directory",
                Problem::Unknown("not a recording: it has no file data".into()),
            ));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(|e| of_path(path, e))? {
            names.extend(
                entry
                    .map_err(|e| of_path(path, e))?
                    .file_name()
                    .into_string()
                    .ok(),
            );
        }
        // data.2 before data.10.
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        let (files, others): (Vec<_>, Vec<_>) = names
            .into_iter()
            .partition(|name| name.starts_with("data."));
        let file = |name: String| {
            Ok(DataFile {
                source: open(&name)?,
                name,
            })
        };
        Ok(Directory {
            path: path.to_owned(),
            data: open("data")?,
            files: files.into_iter().map(file).collect::<Result<_>>()?,
            extras: others
                .into_iter()
                .filter(|name| name.starts_with("kcore_dir"))
                .collect(),
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `data`: the header, the model, and the records of the main thread.
    pub fn data(&self) -> &Arc<InputFile> {
        &self.data
    }

    /// Returns `data.0`, `data.1`, …: the records of the other threads.
    pub fn files(&self) -> &[DataFile<Arc<InputFile>>] {
        &self.files
    }

    /// Returns whether the records are in several files.
    pub fn is_split(&self) -> bool {
        !self.files.is_empty()
    }

    /// Returns the names of the remaining entries: `kcore_dir` or `kcore_dir__<pid>`, the image and
    /// symbols of a recorded kernel.
    pub fn extras(&self) -> &[String] {
        &self.extras
    }

    /// Returns the size in bytes of all files with records.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    pub fn len(&self) -> io::Result<u64> {
        let files = self.files.iter().map(|file| &file.source);
        files.chain([&self.data]).try_fold(0_u64, |sum, file| {
            Ok(sum.saturating_add(Source::len(file)?))
        })
    }

    /// Returns whether there are no bytes.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    pub fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Returns a reader of the recording in the directory, with the records of all files in time
    /// order.
    ///
    /// # Errors
    /// Fails like [`RecordingReader::directory`].
    pub fn reader(&self, limits: Limits) -> Result<RecordingReader> {
        if self.files.is_empty() {
            let options = Options {
                limits,
                ..Options::default()
            };
            let reader = RecordingReader::open_with(self.data.clone(), options)
                .map_err(|error| error.inside("data"))?;
            return Ok(reader.map_input(|file| PathReader(Stream::File(file))));
        }
        let reader = RecordingReader::directory(self.data.clone(), self.files.clone(), limits)?;
        Ok(reader.map_input(|merged| PathReader(Stream::Directory(Box::new(merged)))))
    }
}

/// Opens a file of a directory. Everything except a regular file is rejected before it is opened:
/// opening a FIFO would wait for a writer.
fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}
