//! The functions for Windows. New files have the access rights that their folder gives them.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsHandle;
use std::path::Path;

use super::Kind;
pub use super::other::{
    copy_access, create_folders, create_shared, duplicate, identity, only_for_owner, open_files,
    prepare_pipe, private, share,
};

/// The flag without which Windows opens files only, but not directories.
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;

/// Opens a file or directory to read it.
pub fn open(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)
}

/// Returns standard input.
///
/// # Errors
/// The operating system reports an error.
pub fn stdin() -> io::Result<File> {
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// Returns standard output.
///
/// # Errors
/// The operating system reports an error.
pub fn stdout() -> io::Result<File> {
    io::stdout()
        .as_handle()
        .try_clone_to_owned()
        .map(File::from)
}

/// Returns what is behind a handle. A socket is a pipe here.
///
/// # Errors
/// The operating system reports an error.
pub fn kind(file: &File) -> io::Result<Kind> {
    let kind = winapi_util::file::typ(file)?;
    Ok(match metadata(file)? {
        Some(meta) if meta.is_dir() => Kind::Other,
        _ if kind.is_disk() => Kind::File,
        _ if kind.is_pipe() => Kind::Pipe,
        _ => Kind::Other,
    })
}

/// Returns the metadata of a file or directory; `None` for everything else, such as pipes, and if
/// the system has none.
///
/// # Errors
/// The operating system reports an error.
pub fn metadata(file: &File) -> io::Result<Option<Metadata>> {
    // The metadata of a pipe cannot be read, or do not show that it is one. Those of a file may
    // be missing, too, if another system (Wine) redirected it.
    let is_file = winapi_util::file::typ(file)?.is_disk();
    Ok(if is_file { file.metadata().ok() } else { None })
}

/// Waits until a file is on the disk. For a folder, the error is
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied).
pub fn sync(path: &Path) -> io::Result<()> {
    // Only who may write to a file can wait for it.
    File::options()
        .write(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)?
        .sync_all()
}

/// Renames a file or directory. An existing file, or an empty directory, is replaced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if to.is_dir() {
        fs::remove_dir(to)?;
    }
    fs::rename(from, to)
}

/// Renames to a name that does not exist yet, if the system can do so.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // A directory that appears in the meantime is not replaced.
    fs::rename(from, to)
}
