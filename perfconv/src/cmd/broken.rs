//! The recordings that `perfconv export --append-to` cannot export: the table `broken`.

use std::fs::{self, Metadata};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use perfdata_columns::{
    BrokenRecording, FileStamp, Partition, Table, is_known_broken, recording_id,
};

use super::append::micros;
use super::diagnostics::exit_code;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt::undisturbed;
use perfdata_convert::io::FileSet;

/// The row of one recording in the table `broken`.
pub(super) struct BrokenRow<'a> {
    folder: &'a Path,
    path: PathBuf,
    /// The state before the recording was opened: if it changes later, it is tried again.
    stamp: FileStamp,
    /// The file of the row, in `folder`.
    file: PathBuf,
}

impl<'a> BrokenRow<'a> {
    /// Returns the row of the recording `path` in `folder`; `None` for streams, which cannot be
    /// tried again.
    pub fn of(path: &Path, folder: &'a Path) -> Option<Self> {
        let stamp = stamp_of(path).ok()??;
        let path = fs::canonicalize(path).ok()?;
        let id = recording_id(path.as_os_str().as_encoded_bytes());
        let file = Partition::new(None).path_of(&Table::Broken, &id);
        Some(BrokenRow {
            folder,
            path,
            stamp,
            file: PathBuf::from(file),
        })
    }

    /// Returns whether the recording could not be exported, and has not changed since.
    pub fn is_known(&self) -> bool {
        is_known_broken(&self.folder.join(&self.file), self.stamp)
    }

    /// Adds the row, in place of an older one.
    pub fn add(&self, error: &Error, syncs: bool) -> Result<()> {
        let set = FileSet::create(self.folder)?.synced(syncs);
        let table = Table::Broken.name();
        let file = self.folder.join(&self.file);
        let failed = Error::io(file.clone());
        let out = match set.file(&table) {
            Ok(out) => BufWriter::new(out),
            Err(error) => return Err(failed(error)),
        };
        let row = BrokenRecording {
            path: self.path.as_os_str().as_encoded_bytes(),
            stamp: self.stamp,
            error: &error.to_string(),
            status: exit_code(error),
            // Other options or another state of the system may help against the others.
            retry: !(error.is_refusal() && error.of_input().is_some()),
            tried: micros(Some(SystemTime::now())),
        };
        row.write(Box::new(out)).map_err(|error| match error {
            perfdata_columns::Error::Output(error) => failed(error),
            other => Error::Refused(other.to_string()),
        })?;
        set.publish(&table, true, |_| self.file.clone(), |_| Ok(Vec::new()))?;
        Ok(())
    }

    /// Removes the row, because the recording is in the other tables.
    pub fn remove(&self) -> Result<()> {
        let file = self.folder.join(&self.file);
        match undisturbed(|| fs::remove_file(&file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(file)(error)),
            _ => Ok(()),
        }
    }
}

/// Returns the state of a recording: a file, or a directory of files. `None` for a stream.
fn stamp_of(path: &Path) -> io::Result<Option<FileStamp>> {
    let meta = fs::metadata(path)?;
    if meta.is_file() {
        return Ok(Some(FileStamp {
            size: meta.len(),
            mtime: nanoseconds(&meta),
        }));
    }
    if !meta.is_dir() {
        return Ok(None);
    }
    let mut stamp = FileStamp {
        size: 0,
        mtime: nanoseconds(&meta),
    };
    for entry in fs::read_dir(path)? {
        let meta = entry?.metadata()?;
        stamp.size = stamp.size.saturating_add(meta.len());
        stamp.mtime = stamp.mtime.max(nanoseconds(&meta));
    }
    Ok(Some(stamp))
}

/// Returns the time of the last change in nanoseconds since 1970.
fn nanoseconds(meta: &Metadata) -> Option<i128> {
    let modified = meta.modified().ok()?;
    match modified.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).ok(),
        Err(before) => {
            let before = i128::try_from(before.duration().as_nanos()).ok()?;
            before.checked_neg()
        }
    }
}
