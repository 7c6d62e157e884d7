//! Ending by a signal: temporary files go, and the target stays as it was.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;

/// The temporary files of this process.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

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
        list(|all| {
            let made = make()?;
            let path = path(&made).to_owned();
            all.push(path.clone());
            Ok((made, Temporary(path)))
        })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        list(|all| all.retain(|path| *path != self.0));
    }
}

fn list<T>(change: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    change(&mut TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The signals that end a process which does not know them.
const ENDING: [i32; 9] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGVTALRM, SIGUSR1, SIGUSR2, SIGXCPU];

/// Cleans up when a signal comes that ends the process, and then lets it do what it does by default. A thread of its
/// own: the others may wait for input that never comes.
pub fn watch() {
    // Who writes more than a file may have gets an error then.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    // Without the thread signals do what they always did.
    let Ok(mut signals) = Signals::new(ENDING) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            list(|all| {
                for path in all.iter() {
                    // Nothing is left to do about a file that cannot be removed.
                    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            });
        }
    });
}
