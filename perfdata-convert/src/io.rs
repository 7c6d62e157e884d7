//! Inputs and outputs of a command: files, directories, standard input and output.
//!
//! An output file appears complete or not at all: it receives its name when it is complete. An
//! input either has the bytes that it had when it was opened, or reading it fails.

mod background_writer;
mod bundle;
mod directory;
mod file_set;
mod filtered;
mod gaps;
mod input;
mod input_source;
pub(crate) mod new_file;
pub(crate) mod output;
mod output_directory;
mod reader;
mod rewind;
mod same;
mod skim;
pub(crate) mod spool;

pub use bundle::{InputBundle, bundle_index, unpack_archive};
pub use directory::Directory;
pub use input::{BoxedSource, Input};
pub use output::{Complete, Output};
pub use output_directory::OutputDirectory;

// What only the other crates of this workspace use: it may change in any release.
#[doc(hidden)]
pub use {
    background_writer::BackgroundWriter,
    file_set::{FileSet, Published},
    filtered::{Accepts, RecordFilter},
    gaps::{Gap, Gaps},
    input::{Combined, Written},
    input_source::{InputSource, ReadToEnd, each_record},
    new_file::exchange,
    reader::{Size, Watch},
    skim::Extent,
};

pub(crate) use output::in_temporary;
pub(crate) use spool::temporary_file;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::error::{Error, Result};

/// The name for standard input or output.
const STANDARD: &str = "-";

/// Opens a file whose name comes from a recording. Refuses everything except regular files before
/// opening it: opening a FIFO would wait for a writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::other("not a regular file"))
    }
}

/// Reads the bytes of a file that an option names. The file may be a pipe or an endless device.
///
/// # Errors
/// The file cannot be read, or has more than `most` bytes.
pub fn read_at_most(most: u64, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = |file: File| file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    File::open(path).and_then(read).map_err(Error::io(path))?;
    if bytes.len() as u64 > most {
        return Err(Error::Usage(format!(
            "{}: there are more than {most} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}

/// Creates a temporary file or directory beside `path`, in the same folder.
fn temporary<T>(
    path: &Path,
    make: impl FnOnce(&mut tempfile::Builder, &Path) -> io::Result<T>,
) -> Result<T> {
    let folder = new_file::folder_of(path);
    fs::metadata(folder).map_err(Error::io(folder))?;
    let made = make(
        tempfile::Builder::new()
            .prefix(new_file::PREFIX)
            .suffix(new_file::SUFFIX),
        folder,
    );
    // The error does not contain the temporary name.
    made.map_err(|error| Error::io(folder)(error.kind().into()))
}
