//! What must go when a signal ends the process: temporary files with a name.
//!
//! The library catches no signals. Who does calls [`end`] when one is to end the process, on a thread of its own: the
//! others may wait for input that never comes.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The temporary files of this process.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Who holds it is not disturbed by a signal.
static GATE: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread holds the gate.
    static IS_UNDISTURBED: Cell<bool> = const { Cell::new(false) };
}

/// A file or directory that is removed when a signal ends the process. As long as the value lives; who made the file
/// removes or renames it in all other cases.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Makes something by `make`, which stands at `path`. No signal ends the process between the two.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn make<T, E>(make: impl FnOnce() -> Result<T, E>, path: impl FnOnce(&T) -> &Path) -> Result<(T, Self), E> {
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

/// Does something during which no signal ends the process.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    if IS_UNDISTURBED.get() {
        return work();
    }
    /// Says so also where the work panics.
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

/// Removes all that is temporary, and has `die` end the process: nothing temporary is made any more.
pub fn end(die: impl FnOnce()) {
    undisturbed(|| {
        list(|all| {
            for path in all.iter() {
                // Nothing is left to do about a file that cannot be removed.
                let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        });
        die();
    });
}

fn list<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    change(&mut TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner))
}
