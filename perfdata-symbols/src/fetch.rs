//! Files of objects that are not on this machine.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use perfdata_core::{Recording, Result};
use perfdata_session::{BuildId, BuildIdTable};

use crate::object::{Host, Wanted, fetch_ahead};
use crate::sources::Sources;

/// Maximum number of objects that are fetched at the same time.
const MOST_AT_ONCE: usize = 4;

/// A file of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FetchedFile {
    /// Its debug file, with symbols and source lines.
    Debuginfo,
    /// The object itself.
    Executable,
}

/// Fetches files of objects from elsewhere, such as a server, when no file on this machine is found.
pub trait ObjectFetcher: fmt::Debug + Send + Sync {
    /// Returns where a file of the object with this build ID is now; `None` if it cannot be fetched.
    /// `name` is the name of the object in the recording. Several threads may call this at the same
    /// time. The build ID of the file is verified afterwards.
    fn fetch(&self, name: &[u8], id: &BuildId, file: FetchedFile) -> Option<PathBuf>;
}

/// What is needed of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchAhead {
    /// Its code and call frame information.
    Code,
    /// Its symbols.
    Names,
    /// Its symbols and source lines.
    Lines,
}

/// Fetches the files of all programs and libraries in the BUILD_ID section of a recording that are not
/// on this machine, several at the same time. Without it, each is fetched when it is first needed. Does
/// nothing if the sources have no [fetcher](Sources::fetcher).
///
/// # Errors
/// The BUILD_ID section is corrupt.
pub fn fetch_objects(sources: &Sources, recording: &Recording, ahead: FetchAhead) -> Result<()> {
    if sources.fetcher.is_none() {
        return Ok(());
    }
    let files = BuildIdTable::of(recording)?.files();
    let host = Host::of(recording);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((dso, id)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let wanted = Wanted {
                dso,
                build_id: Some(*id),
                pid: u32::MAX,
                start: None,
                time: None,
            };
            fetch_ahead(&wanted, sources, &host, ahead);
        }
    };
    thread::scope(|scope| {
        for _ in 1..MOST_AT_ONCE.min(files.len()) {
            // Without a further thread, this one does all of the work.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    Ok(())
}
