//! Functions of the system, and the state of the process at its start.

use std::ffi::{OsStr, OsString, c_int};
use std::io::{self, Write};
use std::process;

/// Ends the process: no destructor runs.
pub fn exit_now(status: c_int) -> ! {
    process::exit(status)
}

/// Does nothing: standard streams that were closed remain so.
pub fn close_what_was_closed() {}

/// Returns standard output. A console needs the standard library's own handle, which translates
/// the text for it.
///
/// # Errors
/// None.
pub fn stdout() -> io::Result<Box<dyn Write>> {
    Ok(Box::new(io::stdout()))
}

/// Writes to standard error, without memory of its own.
pub fn write_error(text: &[u8]) {
    let _ = io::stderr().write_all(text);
}

/// Returns the part of `word` from the byte `at` on, which begins with an ASCII character; `None`
/// if the word is not Unicode.
pub fn tail(word: &OsStr, at: usize) -> Option<OsString> {
    word.to_str()?.get(at..).map(OsString::from)
}
