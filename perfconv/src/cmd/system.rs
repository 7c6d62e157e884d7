//! Functions of the C library without a safe Rust interface, and the state of the process at its
//! start.

use std::ffi::{OsStr, OsString, c_int};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use std::{mem, process, ptr, thread};

use perfdata_convert::os;
use signal_hook::consts::SIGABRT;

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

/// Ends the process at once: no destructor runs, and nothing is written.
pub fn exit_now(status: c_int) -> ! {
    // SAFETY: the call has no conditions.
    unsafe { libc::_exit(status) }
}

/// Delays the abort of the process, so that the thread that waits for signals can end it first.
pub fn delay_aborts(delay: Duration) {
    // SAFETY: a handler of signals may sleep.
    let registered =
        unsafe { signal_hook::low_level::register(SIGABRT, move || thread::sleep(delay)) };
    // Without the delay, temporary files with names remain.
    drop(registered);
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

/// The standard descriptors that were closed at the start of the process, one bit each.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Replaces standard input by an unreadable descriptor, and standard output by an unwritable one,
/// if they were closed. Otherwise, the standard library opens `/dev/null` for them, and a recording
/// would be lost there.
pub fn close_what_was_closed() {
    let closed = CLOSED.load(Ordering::Relaxed);
    // If /dev/null cannot be opened, the standard library has already aborted.
    if closed & 1 != 0
        && let Ok(unreadable) = File::options().write(true).open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stdin(unreadable);
    }
    if closed & 2 != 0
        && let Ok(unwritable) = File::open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stdout(unwritable);
    }
}

/// Returns standard output.
///
/// # Errors
/// The descriptor is closed.
pub fn stdout() -> io::Result<Box<dyn Write>> {
    Ok(Box::new(os::stdout()?))
}

/// Writes to standard error, without memory of its own.
pub fn write_error(text: &[u8]) {
    let _ = rustix::io::write(rustix::stdio::stderr(), text);
}

/// Returns the part of `word` from the byte `at` on, which begins with an ASCII character; `None`
/// if the system cannot divide it.
pub fn tail(word: &OsStr, at: usize) -> Option<OsString> {
    let tail = word.as_bytes().get(at..)?;
    Some(OsStr::from_bytes(tail).to_owned())
}

/// Checks which descriptors are closed, before the standard library opens them.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the C library calls functions of this type before `main`.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        for fd in 0..3 {
            // SAFETY: this only reads a flag.
            if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
                CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
            }
        }
    }
    look
};
