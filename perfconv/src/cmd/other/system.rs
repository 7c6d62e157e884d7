//! Functions of a system other than Unix.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

/// Returns standard output. The console of Windows needs the standard library's own handle,
/// which translates the text for it.
///
/// # Errors
/// None.
pub fn stdout() -> io::Result<Box<dyn Write>> {
    Ok(Box::new(io::stdout()))
}

/// Returns the width of standard output in columns; `None` unless it is a terminal.
pub fn width_of_stdout() -> Option<u16> {
    #[cfg(windows)]
    {
        terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
    }
    #[cfg(not(windows))]
    None
}

/// Returns the part of `word` from the byte `at` on, which begins with an ASCII character; `None`
/// if the word is not Unicode.
pub fn tail(word: &OsStr, at: usize) -> Option<OsString> {
    word.to_str()?.get(at..).map(OsString::from)
}
