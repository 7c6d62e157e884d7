//! Files that have no name until they are complete.
//!
//! If the system supports such files (`O_TMPFILE`), the file disappears with the process, however
//! the process ends. Otherwise, the file has a temporary name beside its target, and is removed if
//! it is not needed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::output::date;
use super::temporary;
use crate::error::{Error, Result};
use crate::interrupt::{Temporary, undisturbed};
use crate::support::os;

/// A file that receives the name of its target when it is complete.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    target: PathBuf,
    /// Its temporary name; `None` if the system supports files without a name.
    name: Option<(TempPath, Temporary)>,
}

impl NewFile {
    /// Creates a file in the folder of `target`, accessible only by its owner.
    ///
    /// # Errors
    /// The folder does not exist, or cannot be written.
    pub fn beside(target: PathBuf) -> Result<Self> {
        if let Some(file) = system::unnamed(folder_of(&target)) {
            return Ok(NewFile {
                file,
                target,
                name: None,
            });
        }
        Self::named(target)
    }

    fn named(target: PathBuf) -> Result<Self> {
        let make = || temporary(&target, |builder, parent| builder.tempfile_in(parent));
        let (made, guard) = Temporary::make(make, |made| made.path())?;
        let (file, name) = made.into_parts();
        Ok(NewFile {
            file,
            target,
            name: Some((name, guard)),
        })
    }

    /// Returns the file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Returns the name that the file will receive.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Waits until the bytes are on the disk.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::io(&self.target))
    }

    /// Gives the file its name. Unless `replaces` is set, the name must not exist yet.
    ///
    /// # Errors
    /// The operating system reports an error: [`ErrorKind::AlreadyExists`] if the name exists. The
    /// existing file remains unchanged.
    pub fn publish(self, replaces: bool) -> io::Result<()> {
        let NewFile { file, target, name } = self;
        let Some((name, guard)) = name else {
            return publish_unnamed(file, &target, replaces);
        };
        undisturbed(|| rename(&name, &target, replaces))?;
        drop(guard);
        // The file was renamed.
        let _ = name.keep();
        Ok(())
    }
}

/// Returns the folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Waits until the names in a folder are on the disk. Does not wait if the user may not read the
/// folder, or if the file system does not support this.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let cannot = |error: &io::Error| {
        matches!(
            error.kind(),
            ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported
        )
    };
    match os::sync(folder) {
        Err(error) if !cannot(&error) => Err(Error::io(folder)(error)),
        _ => Ok(()),
    }
}

/// Waits until all files in the file system of `folder` are on the disk, where this is possible.
///
/// # Errors
/// The operating system reports an error.
pub fn sync_file_system(folder: &Path) -> Result<()> {
    system::sync_all(folder).map_err(Error::io(folder))
}

fn publish_unnamed(mut file: File, target: &Path, replaces: bool) -> io::Result<()> {
    match undisturbed(|| system::link(&file, target)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !replaces => return Err(error),
        Ok(()) => return Ok(()),
        // A link cannot replace a file, so the new file temporarily gets another name.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let link = |path: &Path| system::link(&file, path);
            let make = || {
                tempfile::Builder::new()
                    .prefix(PREFIX)
                    .suffix(SUFFIX)
                    .make_in(folder_of(target), link)
            };
            if let Ok((made, _guard)) = Temporary::make(make, |made| made.path()) {
                return made.persist(target).map(drop).map_err(|error| error.error);
            }
        }
        Err(_) => {}
    }
    // The system supports files without a name, but cannot give them one.
    let mut copy = NewFile::named(target.to_owned()).map_err(io::Error::other)?;
    io::Seek::rewind(&mut file)?;
    io::copy(&mut file, &mut copy.file)?;
    date(&copy.file, file.metadata()?.modified().ok());
    copy.file.sync_all()?;
    copy.publish(replaces)
}

/// Prefix and suffix of temporary names.
pub(super) const PREFIX: &str = ".perfconv-";
pub(super) const SUFFIX: &str = ".tmp";

/// Renames a file or directory. Unless `replaces` is set, the new name must not exist yet.
pub(super) fn rename(from: &Path, to: &Path, replaces: bool) -> io::Result<()> {
    if replaces {
        return os::rename(from, to);
    }
    match system::rename_new(from, to) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            // The process that creates the name first owns it, and may replace the file or
            // directory of this name.
            let is_dir = from.is_dir();
            if is_dir {
                fs::create_dir(to)
            } else {
                File::create_new(to).map(drop)
            }?;
            fs::rename(from, to).inspect_err(|_| {
                let _ = if is_dir {
                    fs::remove_dir(to)
                } else {
                    fs::remove_file(to)
                };
            })
        }
        done => done,
    }
}

/// The functions of Linux for this purpose.
#[cfg(target_os = "linux")]
mod system {
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    use rustix::fs::{
        AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, open, renameat_with, syncfs,
    };

    /// Returns the path under which this process finds an open file.
    fn own_name(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Creates a file without a name in `folder`; `None` if this is not possible, or if the file
    /// could not get a name.
    pub fn unnamed(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
        fs::metadata(own_name(&file)).is_ok().then_some(file)
    }

    /// Gives an open file a name that does not exist yet.
    pub fn link(file: &File, name: &Path) -> io::Result<()> {
        Ok(linkat(
            CWD,
            own_name(file),
            CWD,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }

    /// Waits until all files in a file system are on the disk.
    pub fn sync_all(folder: &Path) -> io::Result<()> {
        Ok(syncfs(File::open(folder)?)?)
    }

    /// Renames to a name that does not exist yet.
    pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
        Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
    }

    /// Exchanges the names of two files or directories, at one moment.
    ///
    /// # Errors
    /// The operating system reports an error. [`Unsupported`](io::ErrorKind::Unsupported) or
    /// `InvalidInput`: the system or the file system has no such function.
    pub fn exchange(a: &Path, b: &Path) -> io::Result<()> {
        Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
    }
}

/// Other systems use other methods.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub fn unnamed(_folder: &Path) -> Option<File> {
        None
    }

    pub fn sync_all(folder: &Path) -> io::Result<()> {
        super::sync_folder(folder).map_err(io::Error::other)
    }

    pub fn link(_file: &File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) use crate::support::os::rename_new;

    /// Returns an error: two names cannot be exchanged here.
    pub fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub use system::exchange;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    /// With a temporary name and without one.
    #[test]
    fn nothing_is_replaced_that_need_not_be() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("target");
        for make in [NewFile::beside, NewFile::named] {
            let new = |text: &[u8]| {
                let mut new = make(target.clone()).expect("a file");
                new.file().write_all(text).expect("a file");
                new
            };
            let (first, second, third) = (new(b"first"), new(b"second"), new(b"third"));
            first.publish(false).expect("nothing is there");
            assert_eq!(
                second.publish(false).map_err(|error| error.kind()),
                Err(ErrorKind::AlreadyExists)
            );
            assert_eq!(fs::read(&target).expect("a file"), b"first");
            third.publish(true).expect("it may be replaced");
            assert_eq!(fs::read(&target).expect("a file"), b"third");
            assert_eq!(names(folder.path()), ["target"]);
            fs::remove_file(&target).expect("a file");
        }
    }

    /// The system refuses the name.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_gets_no_name_is_copied() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("target");
        let mut file = tempfile::tempfile_in("/dev/shm").expect("a file on another file system");
        file.write_all(b"all of it").expect("a file");
        publish_unnamed(file, &target, false).expect("it is copied");
        assert_eq!(fs::read(&target).expect("a file"), b"all of it");
        assert_eq!(names(folder.path()), ["target"]);
    }
}
