//! Temporary files with names, which must be removed when a signal ends the process.
//!
//! The library does not catch signals. A program that does calls [`end`] when a signal should end
//! the process. It uses a separate thread for this: other threads may be blocked by input that
//! never arrives.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// Number of times that the removal of a temporary file is tried.
const TRIES: usize = 5;

/// The temporary files of this process.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Prevents the end of the process by a signal while it is locked.
static GATE: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread has locked the gate.
    static IS_UNDISTURBED: Cell<bool> = const { Cell::new(false) };
}

/// A file or directory that is removed if a signal ends the process while this value exists.
/// Otherwise, the code that created the file removes or renames it.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Creates a file or directory with `make`, at the path that `path` returns. No signal ends the
    /// process between creation and registration.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn make<T, E>(
        make: impl FnOnce() -> Result<T, E>,
        path: impl FnOnce(&T) -> &Path,
    ) -> Result<(T, Self), E> {
        undisturbed(|| {
            let made = make()?;
            let path = path(&made).to_owned();
            list(|all| all.push(path.clone()));
            Ok((made, Temporary(path)))
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        list(|all| all.retain(|path| *path != self.0));
    }
}

/// A directory that is removed with everything in it when this value is dropped, or when a signal
/// ends the process.
#[derive(Debug)]
pub struct TemporaryFolder {
    guard: Temporary,
    is_kept: bool,
}

impl TemporaryFolder {
    /// Creates a directory with `make`.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn make<E>(make: impl FnOnce() -> Result<TempDir, E>) -> Result<Self, E> {
        let (made, guard) = Temporary::make(make, TempDir::path)?;
        // The guard refers to the same path.
        drop(made.keep());
        Ok(TemporaryFolder {
            guard,
            is_kept: false,
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.guard.0
    }

    /// Leaves the directory where it is.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            remove_persistently(self.path());
        }
    }
}

/// Runs `work`, during which no signal ends the process.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    if IS_UNDISTURBED.get() {
        return work();
    }
    /// Resets the flag, also if `work` panics.
    struct Until;
    impl Drop for Until {
        fn drop(&mut self) {
            IS_UNDISTURBED.set(false);
        }
    }
    let _gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    IS_UNDISTURBED.set(true);
    let _until = Until;
    work()
}

/// Opens a file in a temporary directory with `options`, which may create it, unless the process is
/// ending: the directory would get a file while it is removed.
///
/// # Errors
/// The operating system reports an error.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    undisturbed(|| options.open(path))
}

/// Removes all temporary files, and then calls `die` to end the process. No new ones can be created
/// anymore.
pub fn end(die: impl FnOnce()) {
    undisturbed(|| {
        list(|all| {
            for path in all.iter() {
                remove_persistently(path);
            }
        });
        die();
    });
}

/// Removes a file or directory. If that is impossible, it remains.
fn remove_persistently(path: &Path) {
    // A lack of memory or descriptors may be over the next time.
    let _ = (0..TRIES).any(|_| remove(path).is_ok() || pause());
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Waits until the next try; returns false.
fn pause() -> bool {
    thread::sleep(Duration::from_millis(10));
    false
}

fn list<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    change(&mut TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_with_its_files() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder =
            TemporaryFolder::make(|| tempfile::tempdir_in(parent.path())).expect("a folder");
        let path = folder.path().to_owned();
        fs::create_dir(path.join("inner")).expect("a folder");
        fs::write(path.join("inner/file"), "content").expect("a file");
        assert!(list(|all| all.contains(&path)));
        drop(folder);
        assert!(!path.exists());
        assert!(!list(|all| all.contains(&path)));
    }
}
