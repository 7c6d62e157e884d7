//! `perfconv export --append-to`: the tables of many recordings in one directory.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime};

use perfdata_columns::{DateSource, ENDING, ParquetTables, Partition, RecordedAt, Table};
use perfdata_core::read::Limits;
use perfdata_inject::itrace::ItraceCommand;
use perfdata_recipe::Exported;

use super::broken::BrokenRow;
use super::columns::{Opened, STANDARD, id_of, threads_of};
use super::compacted_index::CompactedIndex;
use super::export::{jobs_of, of_args, tell};
use super::shared_columns::SchemaFiles;
use super::{Outcome, Several, objects, open, open_unseen};
use crate::cli::{ExportArgs, Format};
use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::{FileSet, Published};

/// The result for one of several recordings.
enum Appended {
    Added(Box<Exported>),
    /// The recording was there.
    Known,
    /// The recording was there, and could not be replaced.
    Kept,
    /// The recording could not be exported, and has not changed.
    Broken,
}

/// Adds the tables of all recordings to `folder`. Recordings that cannot be exported are reported
/// and skipped.
pub fn run(
    args: &ExportArgs,
    folder: &Path,
    limits: Limits,
    messages: Messages,
    several: &Several<'_>,
) -> Result<Outcome> {
    if args.to.is_some_and(|format| format != Format::Parquet) {
        let what = "--append-to writes Parquet files";
        return Err(Error::Usage(what.into()).with_step(Step::Other("--to parquet".into())));
    }
    if folder.as_os_str() == STANDARD {
        let what = "a directory cannot be written to standard output";
        return Err(Error::Usage(what.into()));
    }
    let mut labels = args.columns.labels.iter();
    while let Some(label) = labels.next() {
        if labels.clone().any(|other| other.key == label.key) {
            let what = format!("--recording-label gives {} twice", label.key);
            return Err(Error::Usage(what));
        }
    }
    if folder.exists() {
        refuse_old_layout(folder)?;
    }
    let start = Instant::now();
    let paths = several.paths;
    let jobs = jobs_of(args, limits, paths.len());
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let compacted = CompactedIndex::default();
    let (sender, results) = mpsc::channel();
    let mut total = Total::default();
    let mut outcome = Outcome::Done;
    let mut fatal = None;
    thread::scope(|scope| {
        let (next, is_over, compacted) = (&next, &is_over, &compacted);
        let work = move |sender: mpsc::Sender<_>| {
            while !is_over.load(Ordering::Relaxed)
                && let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let result = append_or_list(args, path, folder, || {
                    append_one(args, path, folder, limits, messages, jobs == 1, compacted)
                });
                if sender.send((path, result)).is_err() {
                    return;
                }
            }
        };
        let start = |_| {
            let sender = sender.clone();
            thread::Builder::new().spawn_scoped(scope, move || work(sender))
        };
        match (0..jobs).map_while(|at| start(at).ok()).count() {
            // No thread can be started: this one does the work before it reads the results.
            0 => work(sender),
            _ => drop(sender),
        }
        for (path, result) in results {
            match result {
                Ok(Appended::Known) => {
                    total.known = total.known.saturating_add(1);
                    messages.detail(format_args!("{}: already there", path.display()));
                }
                Ok(Appended::Kept) => {
                    total.kept = total.kept.saturating_add(1);
                    messages.warning(format_args!(
                        "{}: its rows are in a file of perfconv compact, and were not replaced",
                        path.display()
                    ));
                    if outcome.exit_code() == 0 {
                        outcome = Outcome::Failed(1);
                    }
                }
                Ok(Appended::Broken) => {
                    total.broken = total.broken.saturating_add(1);
                    messages.detail(format_args!(
                        "{}: broken, and unchanged since the last attempt",
                        path.display()
                    ));
                }
                Ok(Appended::Added(exported)) => {
                    if !several.are_many() {
                        tell(&exported, messages);
                    } else {
                        tell_of(path, &exported, messages);
                    }
                    total.add(&exported);
                }
                Err(error) if !several.are_many() || is_of_folder(&error, folder) => {
                    is_over.store(true, Ordering::Relaxed);
                    fatal.get_or_insert(error);
                }
                Err(error) => {
                    let failed = several.failed(path, &error);
                    if failed.exit_code() > outcome.exit_code() {
                        outcome = failed;
                    }
                    total.failed = total.failed.saturating_add(1);
                }
            }
        }
    });
    if let Some(error) = fatal {
        return Err(error);
    }
    if several.are_many() || total.known > 0 || total.kept > 0 || total.broken > 0 {
        total.tell(start, messages);
    }
    Ok(outcome)
}

/// Returns whether an error is about the output, and so would happen again.
fn is_of_folder(error: &Error, folder: &Path) -> bool {
    match error {
        Error::Io { path, .. } => path.starts_with(folder),
        Error::Usage(_) => true,
        _ => false,
    }
}

/// Adds the tables of a recording. If that fails, the recording is listed in the table `broken`, and
/// only tried again when it has changed.
fn append_or_list(
    args: &ExportArgs,
    path: &Path,
    folder: &Path,
    append: impl FnOnce() -> Result<Appended>,
) -> Result<Appended> {
    let Some(row) = BrokenRow::of(path, folder) else {
        return append();
    };
    if !args.output.force && row.is_known() {
        return Ok(Appended::Broken);
    }
    let result = append();
    match &result {
        Ok(_) => row.remove()?,
        Err(error) if !is_of_folder(error, folder) => row.add(error, !args.output.no_sync)?,
        Err(_) => {}
    }
    result
}

/// Adds the tables of a recording.
fn append_one(
    args: &ExportArgs,
    path: &Path,
    folder: &Path,
    limits: Limits,
    messages: Messages,
    is_alone: bool,
    compacted: &CompactedIndex,
) -> Result<Appended> {
    // Encoding needs threads of its own only if there is one recording.
    let (input, threads) = match is_alone {
        true => (open(path, limits, messages)?, threads_of(limits)),
        false => (open_unseen(path, limits, messages)?, 0),
    };
    let input = input.into_seekable()?;
    let modified = input.modified();
    let id = id_of(&input)?.unwrap_or_default();
    let recordings = Table::Recordings.name();
    let marker = Partition::new(None).path_of(&Table::Recordings, &id);
    if folder.join(marker).exists() && !args.output.force {
        return Ok(Appended::Known);
    }
    let is_compacted = || Ok(compacted.recordings(folder)?.contains_key(id.as_str()));
    if is_compacted().map_err(Error::io(folder))? {
        return Ok(match args.output.force {
            true => Appended::Kept,
            false => Appended::Known,
        });
    }
    let mut export = of_args(args, ItraceCommand::Report, limits)?;
    // A host that did nothing is a row of the table `recordings`.
    export.allow_empty = true;
    let mut opened = Opened::new(args, path, input, Some(id.clone()), &export)?;
    opened.threads = threads;
    opened.set_shared_columns(Arc::new(SchemaFiles {
        folder: folder.to_owned(),
        syncs: !args.output.no_sync,
    }));
    opened.set_recorded_at(recorded_at(args, path, modified));
    let set = FileSet::create(folder)?.synced(!args.output.no_sync);
    let tables = ParquetTables::new(threads, |table| {
        Ok(Box::new(BufWriter::new(set.file(&table.name())?)))
    });
    let (exported, summary) = opened.write_tables(tables, folder)?;
    if args.columns.recorded_at_name.is_some()
        && summary
            .recorded
            .is_none_or(|recorded| recorded.source == DateSource::Modified)
    {
        messages.note(format_args!(
            "{}: the name does not contain the time; the date is that of the file's last change",
            path.display()
        ));
    }
    let time = summary.recorded.map(|recorded| recorded.micros);
    let partition = Partition::new(time);
    let path_of = |table: &str| PathBuf::from(partition.path_of_name(table, &id));
    let stale = |root: &Path| stale(root, &id);
    let set = set.unless(&is_compacted);
    let published = set.publish(&recordings, args.output.force, path_of, stale)?;
    Ok(match published {
        Published::Now => Appended::Added(Box::new(exported)),
        Published::Before => Appended::Known,
    })
}

/// Returns when a recording was made that does not contain its time.
fn recorded_at(args: &ExportArgs, path: &Path, modified: Option<SystemTime>) -> Option<RecordedAt> {
    let from = |source| move |micros| RecordedAt { micros, source };
    if let Some(time) = args.columns.recorded_at {
        return Some(from(DateSource::Option)(time.0));
    }
    if let Some(pattern) = &args.columns.recorded_at_name {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let time = pattern.time_in(name.as_encoded_bytes());
        if time.is_some() {
            return time.map(from(DateSource::Name));
        }
    }
    micros(modified).map(from(DateSource::Modified))
}

/// Returns a time of the file system in microseconds since 1970 (UTC).
pub(super) fn micros(time: Option<SystemTime>) -> Option<i64> {
    let since = time?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok()
}

/// Returns the files of a recording that are in any partition.
fn stale(root: &Path, id: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for table in table_folders(root)? {
        for date in folders(&table)? {
            let file = date.join(format!("{id}{ENDING}"));
            if file.exists() {
                found.push(file);
            }
        }
    }
    Ok(found)
}

/// Returns the folders of the tables.
pub(super) fn table_folders(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut tables = folders(root)?;
    let traced = tables
        .iter()
        .position(|table| table.ends_with("tracepoints"));
    if let Some(at) = traced {
        let traced = tables.swap_remove(at);
        tables.extend(folders(&traced)?);
    }
    Ok(tables)
}

/// Refuses a directory of an earlier build, in whose paths each host has a folder: engines would not
/// find the column `host` in some of the files.
pub(super) fn refuse_old_layout(root: &Path) -> Result<()> {
    for table in table_folders(root).map_err(Error::io(root))? {
        for date in folders(&table).map_err(Error::io(&*table))? {
            let first = fs::read_dir(&date).map_err(Error::io(&*date))?.next();
            let is_host = |name: &OsStr| name.as_encoded_bytes().starts_with(b"host=");
            if first.is_some_and(|entry| entry.is_ok_and(|entry| is_host(&entry.file_name()))) {
                let what = "an earlier version of perfconv made a folder for each host there; \
                    export the recordings to another directory";
                return Err(Error::Usage(format!("{}: {what}", root.display())));
            }
        }
    }
    Ok(())
}

/// Returns the folders in a folder, except temporary ones.
pub(super) fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if entry.file_type()?.is_dir() && !is_hidden {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Reports what one of several recordings contained.
fn tell_of(path: &Path, exported: &Exported, messages: Messages) {
    let name = path.display();
    if let Some(leftover) = &exported.leftover {
        messages.warning(format_args!(
            "{name}: {leftover}; the output does not contain them"
        ));
    }
    for note in &exported.notes {
        messages.note(format_args!("{name}: {note}"));
    }
    let report = &exported.report;
    messages.detail(format_args!(
        "{name}: {}, {}, {} without a name",
        suggestions::count(report.samples, "sample"),
        suggestions::count(report.frames, "frame"),
        report.unnamed
    ));
    if let Some(note) = objects::note(report) {
        messages.detail(format_args!("{name}: {note}"));
    }
}

/// What was added.
#[derive(Default)]
struct Total {
    recordings: u64,
    known: u64,
    kept: u64,
    failed: u64,
    broken: u64,
    samples: u64,
    frames: u64,
    unnamed: u64,
}

impl Total {
    fn add(&mut self, exported: &Exported) {
        let report = &exported.report;
        self.recordings = self.recordings.saturating_add(1);
        self.samples = self.samples.saturating_add(report.samples);
        self.frames = self.frames.saturating_add(report.frames);
        self.unnamed = self.unnamed.saturating_add(report.unnamed);
    }

    fn tell(&self, start: Instant, messages: Messages) {
        let more = [
            (self.known, "already there"),
            (self.kept, "not replaced"),
            (self.failed, "skipped"),
            (self.broken, "broken as before"),
        ];
        let more = more.iter().filter(|(count, _)| *count > 0);
        let more: String = more
            .map(|(count, what)| format!(", {count} {what}"))
            .collect();
        messages.summary(format_args!(
            "{} added{more}; {}, {}, {} without a name, {:.2} s",
            suggestions::count(self.recordings, "recording"),
            suggestions::count(self.samples, "sample"),
            suggestions::count(self.frames, "frame"),
            self.unnamed,
            start.elapsed().as_secs_f64()
        ));
    }
}
