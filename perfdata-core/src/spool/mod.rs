//! Entries in temporary files, in order of arrival or sorted, and the merge of sorted sequences.
//!
//! Not part of the interface: may change in any release. The files come from the caller, so that
//! this crate creates none.

mod file;
mod heads;
mod record;
mod runs;

use std::fs::File;
use std::io;

pub use file::{Entry, Reader, Writer};
pub use heads::Heads;
pub use record::StoredRecord;
pub use runs::Runs;

/// Whether there is an operating system. Without one, as in a web browser, asking for the time or for the
/// folder of temporary files is a panic.
pub const HAS_OS: bool = !cfg!(all(target_family = "wasm", target_os = "unknown"));

/// Creates a temporary file with `create`.
///
/// # Errors
/// That of `create`, or there is no operating system.
pub fn temporary_file(create: impl FnOnce() -> io::Result<File>) -> io::Result<File> {
    match HAS_OS {
        true => create(),
        false => {
            let what = "there are none without an operating system";
            Err(io::Error::new(io::ErrorKind::Unsupported, what))
        }
    }
}
