//! What a recording is read from: a path, bytes, or a binary file object.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use perfdata_convert::io::Input;
use perfdata_convert::support::os;
use perfdata_convert::{Error, Result};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{InputFile, MemoryBytes};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::file_object::FileObject;

/// A recording that can be read again, or only once.
pub enum Origin {
    /// A file, a directory, or bytes.
    Again(Input),
    /// A stream in pipe mode.
    Once(Option<Stream>),
}

/// A stream, and the bytes that were already read from it.
pub struct Stream {
    first: Vec<u8>,
    rest: Box<dyn Read + Send>,
}

/// What the caller named.
pub enum Named {
    /// A path; `-` is standard input.
    Path(PathBuf),
    /// Bytes.
    Bytes(PyBackedBytes),
    /// A regular file, which can be read at any offset.
    File(File),
    /// A file object.
    Object(Py<PyAny>),
}

impl Named {
    /// Returns what `source` is, and a name for it.
    pub fn of(source: &Bound<'_, PyAny>) -> PyResult<(Self, String)> {
        if source.is_instance_of::<PyBytes>() || source.is_instance_of::<PyByteArray>() {
            return Ok((Named::Bytes(source.extract()?), "bytes".into()));
        }
        if source.is_instance_of::<PyMemoryView>() {
            let bytes = source.call_method0("tobytes")?.extract()?;
            return Ok((Named::Bytes(bytes), "bytes".into()));
        }
        if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
            let path: PathBuf = source.extract()?;
            let name = path.display().to_string();
            return Ok((Named::Path(path), name));
        }
        if !source.hasattr("read")? {
            let what = source.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "expected a path, bytes or a binary file object, not {what}"
            )));
        }
        if source.hasattr("encoding")? {
            return Err(PyTypeError::new_err(
                "the file object must be binary: open it with mode \"rb\"",
            ));
        }
        let name = source.getattr("name").and_then(|name| name.str());
        let name = name.map_or_else(|_| "file object".into(), |name| name.to_string());
        Ok(match regular_file(source)? {
            Some(file) => (Named::File(file), name),
            None => (Named::Object(source.clone().unbind()), name),
        })
    }

    /// Opens the recording. The end of a stream is not read.
    pub fn open(self) -> Result<Origin> {
        match self {
            Named::Bytes(bytes) => Ok(Origin::Again(Input::from_source(MemoryBytes(bytes)))),
            Named::File(file) => {
                let file = InputFile::new(file).map_err(Error::io("file object"))?;
                Ok(Origin::Again(Input::from_source(file)))
            }
            Named::Object(object) => of_stream(Box::new(FileObject::new(object)), "file object"),
            Named::Path(path) if path.as_os_str() == "-" => {
                let stdin = os::stdin().map_err(Error::io("standard input"))?;
                of_stream(Box::new(stdin), "standard input")
            }
            Named::Path(path) => {
                let file = File::open(&path).map_err(Error::io(&path))?;
                let kind = file.metadata().map_err(Error::io(&path))?.file_type();
                match kind.is_file() || kind.is_dir() {
                    true => Input::open(&path).map(Origin::Again),
                    false => of_stream(Box::new(file), &path),
                }
            }
        }
    }
}

/// Returns the regular file of a file object at its start, unless the object changes its bytes as
/// those of `gzip` do.
fn regular_file(object: &Bound<'_, PyAny>) -> PyResult<Option<File>> {
    let io = object.py().import("io")?;
    let mut raw = object.clone();
    if object.is_instance(&io.getattr("BufferedReader")?)?
        || object.is_instance(&io.getattr("BufferedRandom")?)?
    {
        raw = object.getattr("raw")?;
    }
    if !raw.get_type().is(&io.getattr("FileIO")?) {
        return Ok(None);
    }
    let number: i32 = raw.call_method0("fileno")?.extract()?;
    let at: Option<u64> = match object.call_method0("tell") {
        Ok(at) => Some(at.extract()?),
        Err(_) => None,
    };
    if at != Some(0) {
        return Ok(None);
    }
    // A new descriptor: the recording stays open when the file object is closed.
    let Ok(file) = File::open(format!("/dev/fd/{number}")) else {
        return Ok(None);
    };
    let is_regular = file.metadata().is_ok_and(|meta| meta.is_file());
    let at_start = (&file).stream_position().is_ok_and(|at| at == 0);
    Ok((is_regular && at_start).then_some(file))
}

/// Opens a stream: one in file mode is stored in a temporary file.
fn of_stream(mut stream: Box<dyn Read + Send>, name: impl AsRef<Path>) -> Result<Origin> {
    let mut first = Vec::new();
    (&mut stream)
        .take(ContainerKind::SNIFF as u64)
        .read_to_end(&mut first)
        .map_err(Error::io(name.as_ref()))?;
    let kind = ContainerKind::recognise(&first);
    if kind.is_some_and(|(kind, _)| kind == ContainerKind::Pipe) {
        return Ok(Origin::Once(Some(Stream {
            first,
            rest: stream,
        })));
    }
    Input::from_reader(Cursor::new(first).chain(stream)).map(Origin::Again)
}

impl Origin {
    /// Returns an input for the metadata at the start. What is read of a stream is kept for
    /// [`input`](Self::input).
    pub fn look<T>(&mut self, look: impl FnOnce(Input) -> Result<T>) -> Result<T> {
        match self {
            Origin::Again(input) => look(input.again().ok_or_else(spent)?),
            Origin::Once(stream) => {
                let taken = stream.take().ok_or_else(spent)?;
                let tee = Tee(Arc::new(Mutex::new(Logged {
                    log: taken.first.clone(),
                    rest: Cursor::new(taken.first).chain(taken.rest),
                    is_first: true,
                })));
                let result = Input::from_reader(tee.clone()).and_then(look);
                // The reader of the metadata is dropped, and so this is the only one.
                if let Some(logged) = Arc::into_inner(tee.0) {
                    let logged = logged.into_inner().unwrap_or_else(PoisonError::into_inner);
                    *stream = Some(Stream {
                        first: logged.log,
                        rest: Box::new(logged.rest),
                    });
                }
                result
            }
        }
    }

    /// Returns an input for the whole recording.
    ///
    /// # Errors
    /// The recording is a stream that was already read.
    pub fn input(&mut self) -> Result<Input> {
        match self {
            Origin::Again(input) => input.again().ok_or_else(spent),
            Origin::Once(stream) => {
                let Stream { first, rest } = stream.take().ok_or_else(spent)?;
                Input::from_reader(Cursor::new(first).chain(rest))
            }
        }
    }
}

fn spent() -> Error {
    Error::Refused(
        "this recording is a stream, and was already read: write it to a file to read it again"
            .into(),
    )
}

/// A reader that keeps what it reads.
#[derive(Clone)]
struct Tee(Arc<Mutex<Logged>>);

struct Logged {
    log: Vec<u8>,
    rest: io::Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>,
    is_first: bool,
}

impl Read for Tee {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let logged = &mut *logged;
        if std::mem::take(&mut logged.is_first) {
            // The log begins with the bytes of the cursor, and so contains all that is read.
            logged.log.clear();
        }
        let read = logged.rest.read(buf)?;
        logged
            .log
            .extend_from_slice(buf.get(..read).unwrap_or_default());
        Ok(read)
    }
}
