//! Functions of the system.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

/// Returns standard output. A console needs the standard library's own handle, which translates
/// the text for it.
///
/// # Errors
/// None.
pub fn stdout() -> io::Result<Box<dyn Write>> {
    Ok(Box::new(io::stdout()))
}

/// Returns the part of `word` from the byte `at` on, which begins with an ASCII character; `None`
/// if the word is not Unicode.
pub fn tail(word: &OsStr, at: usize) -> Option<OsString> {
    word.to_str()?.get(at..).map(OsString::from)
}
