//! What systems do in different ways: access rights, the identity of files, and the standard
//! streams.
//!
//! The functions of all systems are the same. Where a system lacks something, they do without.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(not(any(unix, windows)))]
use other as system;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

#[cfg(not(target_os = "linux"))]
pub use system::rename_new;
/// What is behind a file descriptor or handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// Everything else: a directory, a device such as a terminal.
    Other,
}

pub use system::{
    copy_access, create_folders, create_shared, duplicate, identity, only_for_owner, open,
    open_files, prepare_pipe, rename, share, sync,
};
pub use system::{kind, metadata, private, stdin, stdout};
