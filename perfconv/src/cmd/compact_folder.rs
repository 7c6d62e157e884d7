//! The files of a table, or of a day of a table, as one file.
//!
//! A new folder, with one file in place of many, is made under a name that begins with a dot, and
//! exchanged with the old one by one system call. Who lists the files of the folder sees those before
//! or those after. Nothing needs to be finished or undone after an interruption: the folder with the
//! dot, which now has the old files, is removed by the next run.
//!
//! Processes that add recordings take the lock of the directory while files receive their names, and
//! so does each exchange.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use perfdata_columns::{ENDING, Fold, RecordingOrders, Table, read_field_columns, recording_id};

use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt::{self, TemporaryFolder, undisturbed};
use perfdata_convert::io::exchange;
use perfdata_convert::support::os;

use super::shared_columns::SCHEMA_FILE;

/// The beginning of the names of temporary folders.
pub(super) const TEMPORARY: &str = ".perfconv-compact-";

/// The beginning of the names of files with the rows of many recordings.
const FOLDED: &str = "compacted-";

/// How much larger than the new files an older common file may be to be put together with them. So
/// the rows of a day with n files are written about log n times, and it keeps about log n files.
const GROWTH: u64 = 2;

/// The folder of a table, or of a day of it.
pub(super) struct TableFolder<'a> {
    pub root: &'a Path,
    pub table: Table,
    pub folder: PathBuf,
    /// The files of one recording each that are put together, by its ID.
    pub singles: BTreeMap<String, PathBuf>,
    /// The common files that are put together with them.
    pub folded: Vec<PathBuf>,
    /// The name of the new file.
    pub name: String,
    pub orders: &'a RecordingOrders,
    /// Whether another thread encodes the rows.
    pub has_thread: bool,
}

/// What was written.
pub(super) struct FoldResult {
    pub files: u64,
    pub bytes: u64,
    pub new_bytes: u64,
    pub rows: u64,
}

/// The identity, size and time of the last change of a file, by which a change is noticed.
pub(super) type FileVersion = (Option<(u64, u64)>, u64, Option<SystemTime>);

/// Returns the state of a file.
pub(super) fn version_of(path: &Path) -> io::Result<FileVersion> {
    let meta = fs::metadata(path)?;
    Ok((os::identity(&meta), meta.len(), meta.modified().ok()))
}

impl<'a> TableFolder<'a> {
    /// Returns the files of a day that become one: those of the recordings in `orders`. `None` if
    /// there is nothing to put together.
    pub fn of_day(
        root: &'a Path,
        table: Table,
        folder: PathBuf,
        orders: &'a RecordingOrders,
        has_thread: bool,
    ) -> io::Result<Option<Self>> {
        let mut singles = recordings_in(&folder)?;
        singles.retain(|id, _| orders.contains_key(id));
        if singles.is_empty() {
            return Ok(None);
        }
        let mut bytes = 0_u64;
        for path in singles.values() {
            bytes = bytes.saturating_add(fs::metadata(path)?.len());
        }
        let mut common = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let name = name_of(&path);
            if name.starts_with(FOLDED) && name.ends_with(ENDING) {
                common.push((entry.metadata()?.len(), path));
            }
        }
        common.sort();
        let mut folded = Vec::new();
        for (size, path) in common {
            if size > bytes.saturating_mul(GROWTH) {
                break;
            }
            bytes = bytes.saturating_add(size);
            folded.push(path);
        }
        let mut found = TableFolder {
            root,
            table,
            folder,
            singles,
            folded,
            name: String::new(),
            orders,
            has_thread,
        };
        // It differs from that of each of these files.
        let names: Vec<_> = found.inputs().map(|path| name_of(path)).collect();
        let id = recording_id(names.concat().as_bytes());
        found.name = format!("{FOLDED}{id}{ENDING}");
        Ok((names.len() > 1).then_some(found))
    }

    fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        self.folded.iter().chain(self.singles.values())
    }

    /// Leaves a file out. Returns whether there are still files to put together.
    pub fn without(&mut self, path: &Path) -> bool {
        let count = self.inputs().count();
        self.singles.retain(|_, other| other != path);
        self.folded.retain(|other| other != path);
        let rest = self.inputs().count();
        rest > 1 && rest < count && !self.singles.is_empty()
    }

    /// Returns the number of files and their size in bytes.
    pub fn size(&self) -> io::Result<(u64, u64)> {
        Ok(size_of(&self.states()?))
    }

    /// Puts the files together, in a new folder that takes the name of the old one. The inner result
    /// is a file that cannot be read, and why; then nothing has changed.
    pub fn write(&self, syncs: bool) -> Result<std::result::Result<FoldResult, (PathBuf, String)>> {
        let failed = |error| Error::io(&*self.folder)(error);
        let before = self.states().map_err(failed)?;
        let new = new_folder(self.root)?;
        let path = new.path().join(&self.name);
        let rows = match self.write_rows(&path) {
            Ok(rows) => rows,
            Err(error) => {
                let text = error.to_string();
                return match error {
                    perfdata_columns::Error::InFile { path, .. } => Ok(Err((path, text))),
                    perfdata_columns::Error::Output(error) => Err(failed(error)),
                    _ => Err(Error::Refused(format!("{}: {text}", self.folder.display()))),
                };
            }
        };
        let new_bytes = fs::metadata(&path).map_err(failed)?.len();
        let exchanged = undisturbed(|| {
            self.exchange(new.path(), &before, syncs)?;
            // A reader that has opened the old folder would miss the files that are removed before
            // it has listed them. The next run removes them.
            new.keep();
            Ok(())
        });
        exchanged.map_err(failed)?;
        let (files, bytes) = size_of(&before);
        Ok(Ok(FoldResult {
            files,
            bytes,
            new_bytes,
            rows,
        }))
    }

    /// Writes the rows of all files to the file `path`, and returns their number.
    fn write_rows(&self, path: &Path) -> Result<u64, perfdata_columns::Error> {
        let mut options = File::options();
        os::private(options.write(true).create_new(true));
        let file = interrupt::open(&options, path).map_err(perfdata_columns::Error::Output)?;
        let schema = self.root.join(self.table.name()).join(SCHEMA_FILE);
        let fields = match schema.exists() {
            true => read_field_columns(&schema, &self.table)?,
            false => Vec::new(),
        };
        let fold = Fold {
            table: &self.table,
            singles: &self.singles,
            folded: &self.folded,
            orders: self.orders,
            fields: &fields,
            has_thread: self.has_thread,
        };
        fold.write(Box::new(BufWriter::new(file)))
    }

    /// Returns the states of all files.
    fn states(&self) -> io::Result<Vec<FileVersion>> {
        self.inputs().map(|path| version_of(path)).collect()
    }

    /// Adds the other files of the folder to the new one, and exchanges both.
    fn exchange(&self, new: &Path, before: &[FileVersion], syncs: bool) -> io::Result<()> {
        let path = new.join(&self.name);
        if let Some(first) = self.inputs().next() {
            fs::set_permissions(&path, fs::metadata(first)?.permissions())?;
        }
        if syncs {
            os::sync(&path)?;
        }
        let _lock = locked(self.root)?;
        if self.states()? != before {
            let what = "a recording was replaced in the meantime; run perfconv compact again";
            return Err(io::Error::other(what));
        }
        let inputs: HashSet<&Path> = self.inputs().map(PathBuf::as_path).collect();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            if inputs.contains(path.as_path()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                let what = format!("it contains the folder {}", name_of(&path));
                return Err(io::Error::other(what));
            }
            fs::hard_link(&path, new.join(entry.file_name()))?;
        }
        fs::set_permissions(new, fs::metadata(&self.folder)?.permissions())?;
        if syncs {
            os::sync(new)?;
        }
        exchange(new, &self.folder).map_err(|error| match error.kind() {
            ErrorKind::Unsupported | ErrorKind::InvalidInput => {
                let what = "the file system cannot exchange two folders at one moment";
                io::Error::new(ErrorKind::Unsupported, what)
            }
            _ => error,
        })?;
        if syncs {
            self.folder.parent().map_or(Ok(()), os::sync)?;
            os::sync(self.root)?;
        }
        Ok(())
    }
}

/// Removes the folder of a day: it disappears at once.
pub(super) fn remove(root: &Path, day: &Path) -> Result<()> {
    let old = new_folder(root)?;
    let removed = undisturbed(|| {
        let _lock = locked(root)?;
        fs::rename(day, old.path().join("day"))
    });
    removed.map_err(Error::io(day))
}

/// Creates a temporary folder, which is removed at the end.
fn new_folder(root: &Path) -> Result<TemporaryFolder> {
    let make = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY);
        os::only_for_owner(&mut builder);
        builder.tempdir_in(root)
    };
    // The error does not contain the temporary name.
    TemporaryFolder::make(make).map_err(|error| Error::io(root)(error.kind().into()))
}

/// Waits until no other process gives names to files of the directory.
fn locked(root: &Path) -> io::Result<File> {
    let lock = os::open(root)?;
    lock.lock()?;
    Ok(lock)
}

fn size_of(states: &[FileVersion]) -> (u64, u64) {
    let bytes = states.iter().map(|(_, size, _)| *size);
    let files = u64::try_from(states.len()).unwrap_or(u64::MAX);
    (files, bytes.fold(0, u64::saturating_add))
}

/// Returns the files of one recording each in a folder, by its ID.
pub(super) fn recordings_in(folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_file()
            && let Some(id) = id_of(&path)
        {
            found.insert(id, path);
        }
    }
    Ok(found)
}

/// Returns the ID of the recording whose file this is, by its name.
fn id_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let id = name.strip_suffix(ENDING)?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    (id.len() == 32 && id.bytes().all(is_digit)).then(|| id.to_owned())
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
