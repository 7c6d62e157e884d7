//! Directories as output: they appear whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
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

/// A directory that is made beside its target, which it replaces when it is complete.
pub struct OutputDirectory {
    new: TempDir,
    target: PathBuf,
    /// Whether a directory that bears the name in the end may be replaced.
    replaces: bool,
    is_ours: Box<dyn Fn(&Path) -> bool>,
    /// Whether the output must outlive the machine.
    syncs: bool,
    /// Removes the new directory when a signal ends the process.
    guard: Temporary,
}

impl OutputDirectory {
    /// Prepares for making the directory `path`, for the owner alone. With `force` an existing one is replaced if it
    /// holds nothing but what `is_ours` knows: it goes with all that is in it.
    ///
    /// # Errors
    /// There is something that is not to be replaced, it is the input, or the directory around cannot be written.
    pub fn create(path: &Path, input: &Path, force: bool, is_ours: impl Fn(&Path) -> bool + 'static) -> Result<Self> {
        if path.as_os_str() == STANDARD {
            return Err(Error::Usage("a directory cannot go to standard output".into()));
        }
        match fs::symlink_metadata(path) {
            Ok(meta) if !meta.is_dir() => {
                return Err(Error::Usage(format!("{} is no directory", path.display())));
            }
            // With the directory goes all that is in it.
            _ if is_input(path, input) || is_within(input, path) => return Err(input_stays(path)),
            Ok(_) if !force => {
                let what = format!("{} exists", path.display());
                return Err(Error::Usage(what).with_step(Step::Overwrite));
            }
            Ok(_) => all_ours(path, &is_ours)?,
            Err(_) => {}
        }
        let own = Permissions::from_mode(0o700);
        // `.` cannot be renamed.
        let target = resolved(path);
        let make = || temporary(&target, |builder, parent| builder.permissions(own).tempdir_in(parent));
        let (new, guard) = Temporary::make(make, TempDir::path)?;
        Ok(OutputDirectory { new, target, replaces: force, is_ours: Box::new(is_ours), syncs: true, guard })
    }

    /// The same output, which `syncs` or not: whether what was written outlives a crash of the machine. It does unless
    /// something else is said.
    #[must_use]
    pub fn synced(self, syncs: bool) -> Self {
        OutputDirectory { syncs, ..self }
    }

    /// A file in it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn file(&self, name: &str) -> Result<Output> {
        Output::part(self.new.path().join(name))
    }

    /// Where its files are put, by `write`.
    ///
    /// # Errors
    /// Those of `write`, with the names that the files would have got.
    pub fn write<T>(&self, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        write(self.new.path()).map_err(|error| match error {
            Error::Io { path, source } => match path.strip_prefix(self.new.path()) {
                Ok(name) => {
                    let folder = folder_of(&self.target).display();
                    let place = format!("; its temporary directory was in {folder}");
                    Error::Io { path: self.target.join(name), source: annotated(source, &place) }
                }
                Err(_) => Error::Io { path, source },
            },
            other => other,
        })
    }

    /// Whether `path` is where the directory will be, or in it.
    pub fn would_replace(&self, path: &Path) -> bool {
        resolved(path).starts_with(&self.target)
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    /// The operating system's; or there is something by now that is not to be replaced. The target is as it was then.
    pub fn finish(self) -> Result<()> {
        self.finish_with(|| Ok(()))
    }

    /// The same together with another output: both become visible, or none of them.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and those of [`Complete::publish`].
    pub(crate) fn finish_beside(self, other: Complete) -> Result<()> {
        let mut named = None;
        self.finish_with(|| {
            named = Some(other.appear()?);
            Ok(())
        })?;
        named.map_or(Ok(()), Named::sync)
    }

    fn finish_with(self, publish: impl FnOnce() -> Result<()>) -> Result<()> {
        let OutputDirectory { mut new, target, replaces, is_ours, syncs, guard } = self;
        if syncs {
            sync_all(new.path()).map_err(Error::io(&target))?;
        }
        undisturbed(|| {
            let is_replaced = match rename(new.path(), &target, false) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && replaces => {
                    replace(&mut new, &target, &is_ours)?;
                    true
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(appeared(&target)),
                done => done.map(|()| false).map_err(Error::io(&target))?,
            };
            publish().inspect_err(|_| {
                let back = match is_replaced {
                    true => swap(new.path(), &target),
                    false => rename(&target, new.path(), false),
                };
                // What was there stays, if only under the other name.
                new.disable_cleanup(back.is_err());
            })?;
            // Of what was replaced only that goes which is ours.
            let removed = if is_replaced { remove(new.path(), &is_ours) } else { Ok(()) };
            drop(guard);
            // Nothing, or what could not be removed, has that name by now.
            let old = new.keep();
            removed.map_err(Error::io(old))
        })?;
        if syncs { sync_folder(folder_of(&target)) } else { Ok(()) }
    }
}

/// Puts the directory `new` in place of `target`, which may hold only what is `ours` and gets the name `new`.
fn replace(new: &mut TempDir, target: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<()> {
    let failed = |error| Error::io(target)(error);
    if !fs::symlink_metadata(target).map_err(failed)?.is_dir() {
        return Err(Error::Usage(format!("{} is no directory", target.display())));
    }
    all_ours(target, is_ours)?;
    swap(new.path(), target).map_err(failed)?;
    // Something may have come into it since.
    all_ours(new.path(), is_ours).or_else(|error| {
        let place = new.path().to_owned();
        swap(&place, target).inspect_err(|_| new.disable_cleanup(true)).map_err(failed)?;
        Err(match error {
            Error::Usage(what) => Error::Usage(what.replace(&*place.to_string_lossy(), &target.to_string_lossy())),
            other => other,
        })
    })
}

/// Gives two directories each other's name.
fn swap(a: &Path, b: &Path) -> io::Result<()> {
    match exchange(a, b) {
        // Where the system cannot do it at once there is no `b` for a moment.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            let make = |builder: &mut tempfile::Builder<'_, '_>, parent: &Path| builder.tempdir_in(parent);
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

/// Whether all that is in a directory may go with it.
fn all_ours(path: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<()> {
    for entry in fs::read_dir(path).map_err(Error::io(path))? {
        let found = entry.map_err(Error::io(path))?.path();
        if !is_ours(&found) {
            let what = format!("{} was not written by a conversion: the directory stays", found.display());
            return Err(Error::Usage(what));
        }
    }
    Ok(())
}

/// Removes a directory with what is ours in it.
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

/// Waits until a directory and all that is in it is where it outlives the machine.
fn sync_all(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_all(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(path).map_err(io::Error::other)
}
