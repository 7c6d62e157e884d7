//! `perfconv compact`: the files of many recordings as few.
//!
//! The unit is the folder of a table and a day ([`compact_folder`](super::compact_folder)). The table
//! `recordings` comes first: a recording that is in its common file is not replaced by
//! `--append-to --force`, and only the files of such recordings are put together.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use perfdata_columns::{RecordingOrders, Table, read_recordings};
use perfdata_core::read::Limits;

use super::append::{folders, refuse_old_layout, table_folders};
use super::compact_folder::{TEMPORARY, TableFolder, name_of, recordings_in, remove};
use super::compacted_index::{COMPACTED_RECORDINGS, CompactedIndex};
use super::{Outcome, print};
use crate::cli::CompactArgs;
use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::support::os;

/// The file that is locked by the only process that compacts.
const LOCK: &str = ".perfconv-compact.lock";

/// A directory that is compacted.
struct Compaction<'a> {
    args: &'a CompactArgs,
    root: &'a Path,
    out: &'a mut dyn Write,
    messages: Messages<'a>,
    /// Whether there may be another thread.
    has_thread: bool,
    start: Instant,
    outcome: Outcome,
    total: Total,
}

/// What was done.
#[derive(Default)]
struct Total {
    files: u64,
    new_files: u64,
    bytes: u64,
    new_bytes: u64,
    dropped: u64,
}

/// Compacts the directory in `args`, and writes what was done to `out`.
pub fn run(
    args: &CompactArgs,
    out: &mut dyn Write,
    limits: Limits,
    messages: Messages<'_>,
) -> Result<Outcome> {
    let root = args.folder.as_path();
    fs::read_dir(root).map_err(Error::io(root))?;
    let recordings = root.join(Table::Recordings.name());
    if !recordings.is_dir() {
        let what = "not a directory of perfconv export --append-to: it has no folder recordings";
        return Err(Error::Usage(format!("{}: {what}", root.display())));
    }
    refuse_old_layout(root)?;
    let mut compaction = Compaction {
        args,
        root,
        out,
        messages,
        has_thread: limits.threads() > 1,
        start: Instant::now(),
        outcome: Outcome::Done,
        total: Total::default(),
    };
    let lock = match args.dry_run {
        true => None,
        false => Some(only_one(root)?),
    };
    if let Some(date) = &args.drop_before {
        compaction.drop_days(date)?;
    }
    let orders = compaction.recordings(recordings)?;
    compaction.days(&orders)?;
    drop(lock);
    compaction.tell();
    Ok(compaction.outcome)
}

/// Returns the lock of the only process that compacts, and removes what others have left.
fn only_one(root: &Path) -> Result<File> {
    let path = root.join(LOCK);
    let mut options = File::options();
    os::private(options.write(true).create(true).truncate(false));
    let lock = options.open(&path).map_err(Error::io(&*path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let what = "another perfconv compact is at work there";
            return Err(Error::Refused(format!("{}: {what}", root.display())));
        }
        Err(fs::TryLockError::Error(error)) => return Err(Error::io(path)(error)),
    }
    for entry in fs::read_dir(root).map_err(Error::io(root))? {
        let path = entry.map_err(Error::io(root))?.path();
        if name_of(&path).starts_with(TEMPORARY) {
            fs::remove_dir_all(&path).map_err(Error::io(path))?;
        }
    }
    Ok(lock)
}

impl Compaction<'_> {
    /// Removes the days before `date`.
    fn drop_days(&mut self, date: &str) -> Result<()> {
        for (_, table) in tables(self.root)? {
            for day in days(&table)? {
                let name = name_of(&day);
                let is_before = name
                    .strip_prefix("date=")
                    .is_some_and(|day| is_date(day) && day < date);
                if !is_before {
                    continue;
                }
                self.print(&day, "removed")?;
                self.total.dropped = self.total.dropped.saturating_add(1);
                if !self.args.dry_run {
                    remove(self.root, &day)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the files of `recordings` together, and returns the recordings in the common file.
    fn recordings(&mut self, folder: PathBuf) -> Result<RecordingOrders> {
        let index = CompactedIndex::default();
        let known = index.recordings(self.root).map_err(Error::io(&*folder))?;
        let mut orders = RecordingOrders::clone(&known);
        let mut singles = recordings_in(&folder).map_err(Error::io(&*folder))?;
        singles.retain(|_, path| match read_recordings(path) {
            Ok(found) => {
                orders.extend(found);
                true
            }
            Err(error) => {
                self.leave(&error.to_string());
                false
            }
        });
        let mut folded = Vec::new();
        if !known.is_empty() {
            folded.push(folder.join(COMPACTED_RECORDINGS));
        }
        let is_one = singles.len().saturating_add(folded.len()) < 2;
        if is_one || singles.is_empty() {
            return Ok(RecordingOrders::clone(&known));
        }
        self.fold(TableFolder {
            root: self.root,
            table: Table::Recordings,
            folder: folder.clone(),
            singles,
            folded,
            name: COMPACTED_RECORDINGS.into(),
            orders: &orders,
            has_thread: self.has_thread,
        })?;
        if self.args.dry_run {
            return Ok(orders);
        }
        // Only what is on the disk counts.
        let known = index.recordings(self.root).map_err(Error::io(folder))?;
        Ok(RecordingOrders::clone(&known))
    }

    /// Puts the files of each table and day together.
    fn days(&mut self, orders: &RecordingOrders) -> Result<()> {
        for (table, folder) in tables(self.root)? {
            for day in days(&folder)? {
                let table = table.clone();
                let found =
                    TableFolder::of_day(self.root, table, day.clone(), orders, self.has_thread);
                if let Some(found) = found.map_err(Error::io(day))? {
                    self.fold(found)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the files of a folder together, and leaves those that cannot be read.
    fn fold(&mut self, mut folder: TableFolder<'_>) -> Result<()> {
        let (files, bytes) = folder.size().map_err(Error::io(&*folder.folder))?;
        let shown = format!("{}, {bytes} bytes", suggestions::count(files, "file"));
        if self.args.dry_run {
            self.total.add(files, bytes, 1, 0);
            return self.print(&folder.folder, &shown);
        }
        let written = loop {
            match folder.write(!self.args.no_sync)? {
                Ok(written) => break written,
                Err((path, error)) => {
                    self.leave(&error);
                    if !folder.without(&path) {
                        return Ok(());
                    }
                }
            }
        };
        let (files, bytes) = (written.files, written.bytes);
        self.total.add(files, bytes, 1, written.new_bytes);
        let (new_bytes, rows) = (written.new_bytes, written.rows);
        let shown = format!(
            "{}, {bytes} bytes -> 1 file, {new_bytes} bytes, {}",
            suggestions::count(files, "file"),
            suggestions::count(rows, "row")
        );
        self.print(&folder.folder, &shown)
    }

    /// Reports a file that remains as it is.
    fn leave(&mut self, error: &str) {
        self.messages
            .warning(format_args!("{error}; the file is left as it is"));
        self.outcome = Outcome::Failed(1);
    }

    fn print(&mut self, folder: &Path, what: &str) -> Result<()> {
        let shown = folder.strip_prefix(self.root).unwrap_or(folder).display();
        print(self.out, &format!("{shown}: {what}\n"))
    }

    fn tell(&self) {
        let total = &self.total;
        let mut dropped = String::new();
        if total.dropped > 0 {
            dropped = format!("{} removed; ", suggestions::count(total.dropped, "folder"));
        }
        let files = suggestions::count(total.files, "file");
        if self.args.dry_run {
            let new_files = total.new_files;
            self.messages
                .summary(format_args!("{dropped}{files} would become {new_files}"));
            return;
        }
        self.messages.summary(format_args!(
            "{dropped}{files} of {} bytes became {} of {} bytes, {:.2} s",
            total.bytes,
            total.new_files,
            total.new_bytes,
            self.start.elapsed().as_secs_f64()
        ));
    }
}

impl Total {
    fn add(&mut self, files: u64, bytes: u64, new_files: u64, new_bytes: u64) {
        self.files = self.files.saturating_add(files);
        self.bytes = self.bytes.saturating_add(bytes);
        self.new_files = self.new_files.saturating_add(new_files);
        self.new_bytes = self.new_bytes.saturating_add(new_bytes);
    }
}

/// Returns the tables that are divided by day, with their folders.
fn tables(root: &Path) -> Result<BTreeMap<Table, PathBuf>> {
    let traced = root.join("tracepoints");
    let table_of = |folder: &Path| {
        let name = name_of(folder);
        if folder.parent() == Some(&traced) {
            return Some(Table::Tracepoint(name.into()));
        }
        let mut fixed = Table::FIXED.into_iter();
        fixed.find(|table| *table != Table::Recordings && table.name() == name)
    };
    let found = table_folders(root).map_err(Error::io(root))?.into_iter();
    let found = found.filter_map(|folder| Some((table_of(&folder)?, folder)));
    Ok(found.collect())
}

/// Returns the folders of the days of a table.
fn days(table: &Path) -> Result<Vec<PathBuf>> {
    let mut days = folders(table).map_err(Error::io(table))?;
    days.retain(|day| name_of(day).starts_with("date="));
    days.sort();
    Ok(days)
}

/// Returns whether a text has the form of a date: other values, such as that of an unknown date, are
/// not before any.
fn is_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    text.len() == 10 && digits == 8
}
