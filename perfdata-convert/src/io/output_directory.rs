//! Directories as output: they appear whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::new_file::{exchange, folder_of, rename, sync_folder};
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
                let what = format!("{} exists; --force replaces it", path.display());
                return Err(Error::Usage(what).with_step(Step::Add("--force".into())));
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
        let OutputDirectory { new, target, replaces, is_ours, syncs, guard } = self;
        if syncs {
            sync_all(new.path()).map_err(Error::io(&target))?;
        }
        match rename(new.path(), &target, false) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && replaces => {
                undisturbed(|| replace(new.path(), &target, &is_ours))?;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(appeared(&target)),
            done => done.map_err(Error::io(&target))?,
        }
        drop(guard);
        // It has another name by now.
        let _ = new.keep();
        if syncs { sync_folder(folder_of(&target)) } else { Ok(()) }
    }
}

/// Puts the directory `new` in place of `target`, which may hold only what is `ours`, and removes that.
fn replace(new: &Path, target: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<()> {
    let failed = |error| Error::io(target)(error);
    if !fs::symlink_metadata(target).map_err(failed)?.is_dir() {
        return Err(Error::Usage(format!("{} is no directory", target.display())));
    }
    all_ours(target, is_ours)?;
    let aside = temporary(target, |builder, parent| builder.tempdir_in(parent))?;
    let old = aside.path();
    match exchange(new, target) {
        Ok(()) => rename(new, old, true).map_err(failed)?,
        // Where the system cannot do it at once there is no target for a moment.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            rename(target, old, true).map_err(failed)?;
            rename(new, target, false).inspect_err(|_| drop(rename(old, target, false))).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    // Something may have come into it since.
    if let Err(error) = all_ours(old, is_ours) {
        let back = match exchange(old, target) {
            Ok(()) => rename(old, new, false),
            Err(_) => rename(target, new, false).and_then(|()| rename(old, target, false)),
        };
        back.map_err(failed)?;
        return Err(match error {
            Error::Usage(what) => Error::Usage(what.replace(&*old.to_string_lossy(), &target.to_string_lossy())),
            other => other,
        });
    }
    remove(old, is_ours).map_err(|error| Error::io(aside.keep())(error))
}

/// Whether all that is in a directory may go with it.
fn all_ours(path: &Path, is_ours: &dyn Fn(&Path) -> bool) -> Result<()> {
    for entry in fs::read_dir(path).map_err(Error::io(path))? {
        let found = entry.map_err(Error::io(path))?.path();
        if !is_ours(&found) {
            let what = format!("{} is none of what perfconv writes: the directory stays", found.display());
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
