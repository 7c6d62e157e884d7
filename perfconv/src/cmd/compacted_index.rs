//! The recordings whose rows `perfconv compact` has put into common files.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use perfdata_columns::{RecordingOrders, Table, read_recordings};

use super::compact_folder::{FileVersion, version_of};

/// The file in the folder of `recordings` that contains them.
pub(super) const COMPACTED_RECORDINGS: &str = "compacted.parquet";

/// Recordings by their IDs.
pub(super) type Compacted = Arc<RecordingOrders>;

/// Reads the list of these recordings again when it has changed. The file is never changed in place.
#[derive(Default)]
pub(super) struct CompactedIndex {
    last: Mutex<Option<(FileVersion, Compacted)>>,
}

impl CompactedIndex {
    /// Returns the recordings whose rows are in common files in the directory `root`.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn recordings(&self, root: &Path) -> io::Result<Compacted> {
        let path = root
            .join(Table::Recordings.name())
            .join(COMPACTED_RECORDINGS);
        let state = match version_of(&path) {
            Ok(state) => state,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Compacted::default()),
            Err(error) => return Err(error),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, recordings)) = last.as_ref()
            && *known == state
        {
            return Ok(Arc::clone(recordings));
        }
        let recordings = read_recordings(&path)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.to_string()))?;
        let recordings = Arc::new(recordings);
        *last = Some((state, Arc::clone(&recordings)));
        Ok(recordings)
    }
}
