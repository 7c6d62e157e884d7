//! The functions for systems of which only the standard library is used, such as WebAssembly: the rest is
//! missing. Windows shares those about access rights.

#![cfg_attr(
    windows,
    allow(dead_code, reason = "Windows has some of them of its own")
)]

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::Kind;

/// Opens a file or directory to read it.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Returns standard input.
///
/// # Errors
/// Always: it is not a file here.
pub fn stdin() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns standard output. A host of WebAssembly may have it as a file.
///
/// # Errors
/// There is no such file.
pub fn stdout() -> io::Result<File> {
    OpenOptions::new().write(true).open("/dev/stdout")
}

/// Returns another handle for an open file, with the same position. WebAssembly's system has no call
/// for this; a host may have open files as files.
///
/// # Errors
/// The system reports an error.
pub fn duplicate(file: &File) -> io::Result<File> {
    #[cfg(target_os = "wasi")]
    {
        let number = std::os::fd::AsRawFd::as_raw_fd(file);
        let path = format!("/dev/fd/{number}");
        OpenOptions::new().read(true).write(true).open(path)
    }
    #[cfg(not(target_os = "wasi"))]
    file.try_clone()
}

/// Returns what is open.
///
/// # Errors
/// The operating system reports an error.
pub fn kind(file: &File) -> io::Result<Kind> {
    let is_file = file.metadata()?.is_file();
    Ok(if is_file { Kind::File } else { Kind::Other })
}

/// Returns the metadata of a file or directory.
///
/// # Errors
/// The operating system reports an error.
pub fn metadata(file: &File) -> io::Result<Option<Metadata>> {
    file.metadata().map(Some)
}

/// Returns device and inode of a file: `None`.
pub fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns the options for a new file.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Leaves the access rights of a temporary directory.
pub fn only_for_owner(_: &mut tempfile::Builder<'_, '_>) {}

/// Creates a folder, and those above it.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

/// Creates a folder.
pub fn create_shared(folder: &Path) -> io::Result<()> {
    DirBuilder::new().create(folder)
}

/// Leaves the access rights of a file.
pub fn share(_: &File) -> io::Result<()> {
    Ok(())
}

/// Leaves the access rights of a folder.
pub fn copy_access(_: &Metadata, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the number of files that the process may have open.
pub fn open_files() -> usize {
    usize::MAX
}

/// Leaves a pipe as it is.
pub fn prepare_pipe(_: &File) {}

/// Waits until a file is on the disk.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Renames a file or directory. An existing file is replaced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Renames to a name that does not exist yet.
///
/// # Errors
/// Always: there is no such call.
pub fn rename_new(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
