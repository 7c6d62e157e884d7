//! Functions of the C library without a safe Rust interface.

use std::ffi::{OsStr, OsString, c_int};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::{mem, process, ptr};

use perfdata_convert::support::os;

/// Returns whether the process ignores a signal.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: a `sigaction` may be all zeros; the call only writes to it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Ends the process with the default action of a signal.
pub fn end_by(signal: c_int) -> ! {
    // SAFETY: the default action does not run code of this process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    process::exit(128_i32.saturating_add(signal))
}

/// Returns further signals that end a process by default, beyond those of every Unix.
pub fn other_ending_signals() -> Vec<c_int> {
    #[cfg(target_os = "linux")]
    {
        [libc::SIGPWR, libc::SIGSTKFLT]
            .into_iter()
            .chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
            .collect()
    }
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}

/// Returns standard output.
///
/// # Errors
/// The descriptor is closed.
pub fn stdout() -> io::Result<Box<dyn Write>> {
    Ok(Box::new(os::stdout()?))
}

/// Returns the width of standard output in columns; `None` unless it is a terminal.
pub fn width_of_stdout() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
}

/// Returns the part of `word` from the byte `at` on, which begins with an ASCII character; `None`
/// if the system cannot divide it.
pub fn tail(word: &OsStr, at: usize) -> Option<OsString> {
    let tail = word.as_bytes().get(at..)?;
    Some(OsStr::from_bytes(tail).to_owned())
}
