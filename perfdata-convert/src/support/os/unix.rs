//! The functions for Unix.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::Kind;

/// Opens a file or directory to read it.
pub fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Returns standard input. The standard library's own handle does not report a descriptor that
/// cannot be read.
///
/// # Errors
/// The operating system reports an error.
pub fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Returns another handle for an open file, with the same position.
///
/// # Errors
/// The operating system reports an error.
pub fn duplicate(file: &File) -> io::Result<File> {
    file.try_clone()
}

/// Returns standard output. The standard library's own handle does not report a descriptor that
/// cannot be written.
///
/// # Errors
/// The operating system reports an error.
pub fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Returns what is behind a descriptor.
///
/// # Errors
/// The operating system reports an error.
pub fn kind(file: &File) -> io::Result<Kind> {
    Ok(match file.metadata()?.file_type() {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_fifo() => Kind::Pipe,
        kind if kind.is_socket() => Kind::Socket,
        _ => Kind::Other,
    })
}

/// Returns the metadata of a file or directory; `None` for everything else, such as pipes.
///
/// # Errors
/// The operating system reports an error.
pub fn metadata(file: &File) -> io::Result<Option<Metadata>> {
    let meta = file.metadata()?;
    Ok((meta.is_file() || meta.is_dir()).then_some(meta))
}

/// Returns device and inode of a file; `None` on a system that does not show them.
pub fn identity(meta: &Metadata) -> Option<(u64, u64)> {
    Some((meta.dev(), meta.ino()))
}

/// Returns the options for a new file that only its owner can access, like recordings of perf.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Sets that only its owner can access a temporary directory.
pub fn only_for_owner(builder: &mut tempfile::Builder<'_, '_>) {
    builder.permissions(Permissions::from_mode(0o700));
}

/// Creates a folder, and those above it, which only their owner can access.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a folder that everyone can read.
pub fn create_shared(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(folder)
}

/// Lets everyone read a file.
pub fn share(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o644))
}

/// Gives the folder `to` the access rights in `from`, and its owner all of them.
pub fn copy_access(from: &Metadata, to: &Path) -> io::Result<()> {
    let permissions = Permissions::from_mode(from.permissions().mode() | 0o700);
    fs::set_permissions(to, permissions)
}

/// Returns the number of files that the process may have open (`ulimit -n`).
pub fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit
        .current
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

/// Lets a pipe hold as much as is read at once, so that the process that writes it and this one
/// take turns less often. Another input stays as it is, and so does a pipe that the system does not
/// enlarge.
#[cfg(target_os = "linux")]
pub fn prepare_pipe(pipe: &File) {
    /// The size of a block of the record stream in bytes.
    const SIZE: usize = 256 << 10;
    if rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|size| size < SIZE) {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, SIZE);
    }
}

#[cfg(not(target_os = "linux"))]
pub fn prepare_pipe(_: &File) {}

/// Waits until a file or folder is on the disk.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Renames a file or directory. An existing file, or an empty directory, is replaced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Renames to a name that does not exist yet, if the system can do so.
#[cfg(not(target_os = "linux"))]
pub fn rename_new(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
