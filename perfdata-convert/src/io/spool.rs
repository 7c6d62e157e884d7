//! Temporary files without a name, for data that must be read twice.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};

use perfdata_core::spool::HAS_OS;

use crate::error::{Error, Result};

/// Number of bytes copied at once.
const BLOCK: usize = 256 << 10;

/// Creates a temporary file that no other process can open, and that disappears with this process.
///
/// # Errors
/// The operating system reports an error.
pub fn temporary_file() -> Result<File> {
    perfdata_core::spool::temporary_file(tempfile::tempfile).map_err(failed())
}

/// For `map_err`: adds the folder of temporary files to the system's error.
pub fn failed() -> impl FnOnce(io::Error) -> Error {
    let folder = HAS_OS.then(tempfile::env::temp_dir);
    move |source| {
        let hint = match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "; TMPDIR=FOLDER names another folder"
            }
            _ => "",
        };
        let folder = folder.map(|folder| format!(" in {}", folder.display()));
        let what = format!("temporary file{}", folder.unwrap_or_default());
        Error::Io {
            path: what.into(),
            source: annotated(source, hint),
        }
    }
}

/// Returns the error with additional text, and of the same kind.
pub(super) fn annotated(error: io::Error, more: &str) -> io::Error {
    if more.is_empty() {
        error
    } else {
        io::Error::new(error.kind(), format!("{error}{more}"))
    }
}

/// Copies a stream to a temporary file, and returns the file at its start.
///
/// # Errors
/// The stream cannot be read, or the file cannot be written.
pub(super) fn spool(stream: &mut dyn Read) -> Result<File> {
    let mut file = temporary_file()?;
    let mut block = vec![0; BLOCK];
    loop {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(got) => file
                .write_all(block.get(..got).unwrap_or_default())
                .map_err(failed())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("input")(error)),
        }
    }
    file.seek(SeekFrom::Start(0)).map_err(failed())?;
    Ok(file)
}
