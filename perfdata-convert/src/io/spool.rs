//! Temporary files without a name, for what has to be read twice.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use crate::error::{Error, Result};

/// Bytes copied at once.
const BLOCK: usize = 256 << 10;

/// A temporary file, which nobody else sees and which goes away with this process.
///
/// # Errors
/// The operating system's.
pub(crate) fn temporary_file() -> Result<File> {
    tempfile::tempfile().map_err(failed())
}

/// For `map_err`: the system's error with the folder where temporary files are.
pub(crate) fn failed() -> impl FnOnce(io::Error) -> Error {
    let folder = env::temp_dir();
    move |source| {
        let hint = match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; TMPDIR=FOLDER names another folder",
            _ => "",
        };
        let what = format!("temporary file in {}", folder.display());
        Error::Io { path: what.into(), source: annotated(source, hint) }
    }
}

/// The error, of the same kind, with more to say.
pub(super) fn annotated(error: io::Error, more: &str) -> io::Error {
    if more.is_empty() { error } else { io::Error::new(error.kind(), format!("{error}{more}")) }
}

/// Puts a stream into a temporary file, which stands at its start then.
///
/// # Errors
/// The stream cannot be read, or the file not be written.
pub(super) fn spool(stream: &mut dyn Read) -> Result<File> {
    let mut file = temporary_file()?;
    let mut block = vec![0; BLOCK];
    loop {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(got) => file.write_all(block.get(..got).unwrap_or_default()).map_err(failed())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("input")(error)),
        }
    }
    file.seek(SeekFrom::Start(0)).map_err(failed())?;
    Ok(file)
}
