//! What only the C library does, by the few calls that no safe function has.

use std::ffi::c_int;
use std::{mem, process, ptr};

/// Whether the process ignores a signal.
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zeros are a `sigaction`; the call only fills it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Ends the process as a signal does that nobody catches.
pub fn end_by(signal: c_int) -> ! {
    // SAFETY: the default action takes no code of this process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    process::exit(128_i32.saturating_add(signal))
}

/// Signals that end a process which does not know them, beyond those that every Unix has.
pub fn other_ending_signals() -> Vec<c_int> {
    #[cfg(target_os = "linux")]
    {
        [libc::SIGPWR, libc::SIGSTKFLT].into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()).collect()
    }
    #[cfg(not(target_os = "linux"))]
    Vec::new()
}
