//! Directories as output: they appear whole or not at all.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{STANDARD, input_stays, is_input, is_within, resolved, temporary};
use crate::error::{Error, Result, Step};
use crate::interrupt::Temporary;

/// A directory that is made beside its target, which it replaces when it is complete.
pub struct OutputDirectory {
    new: TempDir,
    target: PathBuf,
    /// Removes the new directory when a signal ends the process.
    guard: Temporary,
}

impl OutputDirectory {
    /// Prepares for making the directory `path`, for the owner alone. With `force` an existing one is replaced if it
    /// holds nothing but what `is_ours` knows: it goes with all that is in it.
    ///
    /// # Errors
    /// There is something that is not to be replaced, it is the input, or the directory around cannot be written.
    pub fn create(path: &Path, input: &Path, force: bool, is_ours: impl Fn(&Path) -> bool) -> Result<Self> {
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
            Ok(_) => {
                for entry in fs::read_dir(path).map_err(Error::io(path))? {
                    let found = entry.map_err(Error::io(path))?.path();
                    if !is_ours(&found) {
                        let what = format!("{} is none of what perfconv writes: the directory stays", found.display());
                        return Err(Error::Usage(what));
                    }
                }
            }
            Err(_) => {}
        }
        let own = Permissions::from_mode(0o700);
        // `.` cannot be renamed.
        let target = resolved(path);
        let make = || temporary(&target, |builder, parent| builder.permissions(own).tempdir_in(parent));
        let (new, guard) = Temporary::make(make, TempDir::path)?;
        Ok(OutputDirectory { new, target, guard })
    }

    /// Where its files are put.
    pub fn path(&self) -> &Path {
        self.new.path()
    }

    /// Whether `path` is where the directory will be, or in it.
    pub fn would_replace(&self, path: &Path) -> bool {
        resolved(path).starts_with(&self.target)
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    /// The operating system's. The target is as it was then.
    pub fn finish(self) -> Result<()> {
        let OutputDirectory { new, target, guard } = self;
        let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(Error::io(&target));
        // A directory with something in it cannot be renamed over. No signal ends the process between the two.
        let replace = || {
            let aside = temporary(&target, |builder, parent| builder.tempdir_in(parent))?;
            rename(&target, aside.path())?;
            if let Err(error) = rename(new.path(), &target) {
                rename(&aside.keep(), &target)?;
                return Err(error);
            }
            Ok(aside)
        };
        let old = match fs::symlink_metadata(&target) {
            Ok(_) => Some(Temporary::make(replace, TempDir::path)?),
            Err(_) => {
                rename(new.path(), &target)?;
                None
            }
        };
        drop(guard);
        // It has another name by now.
        let _ = new.keep();
        match old {
            Some((old, _guard)) => old.close().map_err(Error::io(&target)),
            None => Ok(()),
        }
    }
}
