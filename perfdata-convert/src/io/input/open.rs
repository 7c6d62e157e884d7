//! Opening: a path, standard input, or a reader.

use std::fs::Metadata;
use std::io::{self, Cursor, IsTerminal, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use perfdata_core::header::{ContainerKind, FileSection, Magic};
use perfdata_core::read::{InputFile, Options, RecordingReader, Source, SourceReader};

use super::{Input, OpenInput, Written};
use crate::error::{Error, Result};
use crate::foreign;
use crate::io::directory::Directory;
use crate::io::spool::spool;
use crate::io::{STANDARD, bundle};
use crate::support::os;

impl Input {
    /// Uses a recording that is read from start to end. A recording in file mode is stored in a
    /// temporary file first.
    ///
    /// # Errors
    /// It is not a recording, or the reader fails.
    pub fn from_reader(reader: impl Read + Send + 'static) -> Result<Input> {
        Self::stream(Box::new(reader), Path::new("input"))
    }

    /// Opens `path`, a file or directory, or standard input for `-`. A file-mode recording from a
    /// stream is first stored in a temporary file, because its header refers to data after the
    /// records.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn open(path: &Path) -> Result<Input> {
        Self::open_with(path, || {})
    }

    /// Opens `path` like [`open`](Self::open). Calls `streams` before the first read from a stream.
    /// Data read from a stream are lost if the process ends before the stream does.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, streams: impl FnOnce()) -> Result<Input> {
        let is_standard = path.as_os_str() == STANDARD;
        let shown = if is_standard {
            Path::new("standard input")
        } else {
            path
        };
        let file = if is_standard {
            if io::stdin().is_terminal() {
                return Err(Error::Usage(
                    "standard input is a terminal: name a file, or pipe a recording".into(),
                ));
            }
            os::stdin().map_err(Error::io(shown))?
        } else {
            os::open(path).map_err(Error::io(path))?
        };
        let meta = os::metadata(&file).map_err(Error::io(shown))?;
        if meta.as_ref().is_some_and(Metadata::is_dir) {
            let data = std::fs::metadata(path.join("data"));
            return Ok(Input {
                written: data.ok().and_then(|data| Written::of(&data)),
                ..OpenInput::Directory(Directory::open(path)?).into()
            });
        }
        match ((&file).stream_position(), meta) {
            // Files whose content is generated on reading, such as those in /proc, have no size.
            (Ok(_), Some(meta)) if meta.len() == 0 => Self::stream(Box::new(file), shown),
            (Ok(0), Some(meta)) => {
                let file = InputFile::new(file).map_err(Error::io(shown))?;
                if is_bundle_in(&file) {
                    return bundle::open(Arc::new(file));
                }
                Ok(Input {
                    written: Written::of(&meta),
                    ..OpenInput::File(Arc::new(file)).into()
                })
            }
            (Ok(at), Some(_)) => {
                let file = InputFile::new(file).map_err(Error::io(shown))?;
                let rest = FileSection {
                    offset: at,
                    size: u64::MAX,
                };
                Self::stream(Box::new(SourceReader::new(file, rest)), shown)
            }
            _ => {
                streams();
                os::prepare_pipe(&file);
                Self::stream(Box::new(file), shown)
            }
        }
    }

    fn stream(mut stream: Box<dyn Read + Send>, path: &Path) -> Result<Input> {
        let mut first = Vec::new();
        (&mut stream)
            .take(ContainerKind::SNIFF as u64)
            .read_to_end(&mut first)
            .map_err(Error::io(path))?;
        if perfdata_bundle::is_bundle(&first) {
            return bundle::open_stream(first, stream);
        }
        if !first.is_empty() && Magic::recognise(&first).is_none() {
            // The bytes of one read suffice to recognise the format.
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
        Ok(OpenInput::Stream(Box::new(whole)).into())
    }
}

/// Returns whether a file is a bundle, by its first bytes.
fn is_bundle_in(file: &InputFile) -> bool {
    let mut first = [0; ContainerKind::SNIFF];
    let read = file.read_at(&mut first, 0).unwrap_or_default();
    perfdata_bundle::is_bundle(first.get(..read).unwrap_or_default())
}

/// Returns the error for a stream that begins with `first` and is not a recording.
fn unrecognised(first: &[u8]) -> Error {
    let error = match RecordingReader::pipe_with(first, Options::default()) {
        Err(error) => Error::from(error),
        Ok(_) => Error::Refused("not a recording".into()),
    };
    match foreign::recognise(first) {
        Some(foreign) => Error::Unrecognised {
            foreign,
            source: Box::new(error),
        },
        None => error,
    }
}

/// Stores a stream in a temporary file.
pub(super) fn spooled(stream: &mut dyn Read) -> Result<OpenInput> {
    let file = spool(stream)?;
    Ok(OpenInput::File(Arc::new(
        InputFile::new(file).map_err(Error::io("temporary file"))?,
    )))
}
