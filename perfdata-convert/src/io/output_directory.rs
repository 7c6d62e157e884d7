//! Directories as output: they appear complete or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::new_file::{exchange, folder_of, rename, sync_folder};
use super::output::{Complete, Named};
use super::output::{Output, appeared};
use super::same::{input_stays, is_input, is_within, resolved};
use super::spool::annotated;
use super::{STANDARD, temporary};
use crate::error::{Error, Result, Step};
use crate::interrupt::{Temporary, undisturbed};
use crate::support::os::{self, only_for_owner};

/// A directory that is created beside its target, and replaces it when complete.
pub struct OutputDirectory {
    new: TempDir,
    target: PathBuf,
    /// Whether an existing directory of this name may be replaced at the end.
    replaces: bool,
    is_ours: Box<dyn Fn(&Path) -> bool>,
    /// Whether the output must survive a crash of the machine.
    syncs: bool,
    /// Removes the new directory when a signal ends the process.
    guard: Temporary,
}

impl OutputDirectory {
    /// Prepares the new directory `path`, accessible only by its owner. With `force`, an existing
    /// directory is replaced if `is_ours` returns true for everything in it: it is removed with its
    /// contents.
    ///
    /// # Errors
    /// An existing file or directory must not be replaced, the directory is the input, or its
    /// parent directory cannot be written.
    pub fn create(
        path: &Path,
        input: &Path,
        force: bool,
        is_ours: impl Fn(&Path) -> bool + 'static,
    ) -> Result<Self> {
        if path.as_os_str() == STANDARD {
            return Err(Error::Usage(
                "a directory cannot be written to standard output".into(),
            ));
        }
        match fs::symlink_metadata(path) {
            Ok(meta) if !meta.is_dir() => {
                return Err(Error::Usage(format!(
                    "{} is not a directory",
                    path.display()
                )));
            }
            // Replacing the directory removes everything in it.
            _ if is_input(path, input) || is_within(input, path) => return Err(input_stays(path)),
            Ok(_) if !force => {
                let what = format!("{} exists", path.display());
                return Err(Error::Usage(what).with_step(Step::Overwrite));
            }
            Ok(_) => all_ours(path, &is_ours)?,
            Err(_) => {}
        }
        // `.` cannot be renamed.
        let target = resolved(path);
        let make = || {
            temporary(&target, |builder, parent| {
                only_for_owner(builder);
                builder.tempdir_in(parent)
            })
        };
        let (new, guard) = Temporary::make(make, TempDir::path)?;
        Ok(OutputDirectory {
            new,
            target,
            replaces: force,
            is_ours: Box::new(is_ours),
            syncs: true,
            guard,
        })
    }

    /// Returns the same output with `syncs`, which determines whether written files survive a crash
    /// of the machine. The default is true.
    #[must_use]
    pub fn synced(self, syncs: bool) -> Self {
        OutputDirectory { syncs, ..self }
    }

    /// Creates a file in the directory.
    ///
    /// # Errors
    /// The operating system reports an error.
    pub fn file(&self, name: &str) -> Result<Output> {
        Output::part(self.new.path().join(name))
    }

    /// Calls `write` with the temporary path of the directory, in which it creates files.
    ///
    /// # Errors
    /// The errors of `write`, with the final names of the files.
    pub fn write<T>(&self, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        write(self.new.path()).map_err(|error| match error {
            Error::Io { path, source } => match path.strip_prefix(self.new.path()) {
                Ok(name) => {
                    let folder = folder_of(&self.target).display();
                    let place = format!("; its temporary directory was in {folder}");
                    Error::Io {
                        path: self.target.join(name),
                        source: annotated(source, &place),
                    }
                }
                Err(_) => Error::Io { path, source },
            },
            other => other,
        })
    }

    /// Returns whether `path` is the target of the directory, or inside of it.
    pub fn would_replace(&self, path: &Path) -> bool {
        resolved(path).starts_with(&self.target)
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    /// The operating system reports an error; or there is now something that must not be replaced.
    /// The target remains unchanged.
    pub fn finish(self) -> Result<()> {
        self.finish_with(|| Ok(()))
    }

    /// Gives the directory its name together with another output: both become visible, or neither
    /// does.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and those of [`Complete::publish`].
    pub fn finish_beside(self, other: Complete) -> Result<()> {
        let mut named = None;
        self.finish_with(|| {
            named = Some(other.appear()?);
            Ok(())
        })?;
        named.map_or(Ok(()), Named::sync)
    }

    fn finish_with(self, publish: impl FnOnce() -> Result<()>) -> Result<()> {
        let OutputDirectory {
            mut new,
            target,
            replaces,
            is_ours,
            syncs,
            guard,
        } = self;
        if syncs {
            sync_all(new.path()).map_err(Error::io(&target))?;
        }
        undisturbed(|| {
            let is_replaced = match rename(new.path(), &target, false) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && replaces => {
                    replace(&mut new, &target, &is_ours)?;
                    true
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(appeared(&target));
                }
                done => done.map(|()| false).map_err(Error::io(&target))?,
            };
            publish().inspect_err(|_| {
                let back = match is_replaced {
                    true => swap(new.path(), &target),
                    false => rename(&target, new.path(), false),
                };
                // The replaced directory remains, even if only under the other name.
                new.disable_cleanup(back.is_err());
            })?;
            // Removes only the files of the replaced directory that `is_ours` accepts.
            let removed = if is_replaced {
                remove(new.path(), &is_ours)
            } else {
                Ok(())
            };
            drop(guard);
            // This name no longer exists, or refers to files that could not be removed.
            let old = new.keep();
            removed.map_err(Error::io(old))
        })?;
        if syncs {
            sync_folder(folder_of(&target))
        } else {
            Ok(())
        }
    }
}

/// Replaces `target` by the directory `new`. `target` may contain only files that `is_ours`
/// accepts, and receives the name of `new`.
fn replace(new: &mut TempDir, target: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<()> {
    let failed = |error| Error::io(target)(error);
    if !fs::symlink_metadata(target).map_err(failed)?.is_dir() {
        return Err(Error::Usage(format!(
            "{} is not a directory",
            target.display()
        )));
    }
    all_ours(target, is_ours)?;
    swap(new.path(), target).map_err(failed)?;
    // Other files may have been created in the directory since the check.
    all_ours(new.path(), is_ours).or_else(|error| {
        let place = new.path().to_owned();
        swap(&place, target)
            .inspect_err(|_| new.disable_cleanup(true))
            .map_err(failed)?;
        Err(match error {
            Error::Usage(what) => {
                Error::Usage(what.replace(&*place.to_string_lossy(), &target.to_string_lossy()))
            }
            other => other,
        })
    })
}

/// Exchanges the names of two directories.
fn swap(a: &Path, b: &Path) -> io::Result<()> {
    match exchange(a, b) {
        // If the system cannot exchange names atomically, `b` does not exist for a moment.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            let make =
                |builder: &mut tempfile::Builder<'_, '_>, parent: &Path| builder.tempdir_in(parent);
            let aside = temporary(b, make).map_err(io::Error::other)?;
            rename(b, aside.path(), true)?;
            rename(a, b, false).inspect_err(|_| drop(rename(aside.path(), b, false)))?;
            rename(aside.path(), a, false)?;
            drop(aside.keep());
            Ok(())
        }
        done => done,
    }
}

/// Checks that everything in a directory may be removed with it.
fn all_ours(path: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<()> {
    for entry in fs::read_dir(path).map_err(Error::io(path))? {
        let found = entry.map_err(Error::io(path))?.path();
        if !is_ours(&found) {
            let what = format!(
                "{} was not written by a conversion: the directory was not replaced",
                found.display()
            );
            return Err(Error::Usage(what));
        }
    }
    Ok(())
}

/// Removes a directory with the files in it that `is_ours` accepts.
fn remove(path: &Path, is_ours: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.path() {
            part if !is_ours(&part) => {}
            part if entry.file_type()?.is_dir() => fs::remove_dir_all(part)?,
            part => fs::remove_file(part)?,
        }
    }
    fs::remove_dir(path)
}

/// Waits until a directory and everything in it is on the disk.
fn sync_all(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        } else {
            os::sync(&entry.path())?;
        }
    }
    sync_folder(path).map_err(io::Error::other)
}
