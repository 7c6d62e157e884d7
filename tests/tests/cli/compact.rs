//! `perfconv compact` on the command line.
#![cfg(target_endian = "little")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
use perfdata_tests::convert::in_shell;
use perfdata_tests::perf;

use crate::columns::{files, folder_of, status};

/// Recordings with callchains, tracepoints, a clock and a group.
const RECORDINGS: [&str; 4] = [
    "6.1-x86_64-file-g",
    "6.1-x86_64-file-tp",
    "6.1-s390x-file-clockmono",
    "7.2-x86_64-file-g",
];

/// A folder with recordings of several hosts, and `fleet`, to which none was added.
fn hosts() -> tempfile::TempDir {
    let folder = folder_of(&RECORDINGS);
    let commands = "for name in a b c d; do
            for host in 1 2 3; do
                perfconv -q convert $name.data --set HOSTNAME=web$host -o $name$host.data || exit
            done
        done
        touch -d 2026-11-01T12:00:00Z [abd]*.data
        touch -d 2026-11-02T12:00:00Z d?.data";
    run(folder.path(), commands);
    folder
}

/// Runs commands that must succeed.
fn run(at: &Path, commands: &str) -> perf::Output {
    let output = in_shell(at, commands);
    assert!(output.success(), "{commands}: {}", output.stderr);
    output
}

const APPEND: &str = "perfconv -q export --no-symbols --append-to fleet";

/// Returns the paths of the Parquet files with rows of each table and day.
fn parts(fleet: &Path) -> BTreeMap<PathBuf, Vec<PathBuf>> {
    let mut found: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in files(fleet) {
        // Engines do not see what begins with a dot.
        let is_hidden = path.to_string_lossy().starts_with('.');
        if !is_hidden && path.extension().is_some_and(|end| end == "parquet") {
            let folder = path.parent().expect("a folder").to_owned();
            found.entry(folder).or_default().push(fleet.join(path));
        }
    }
    found
}

fn rows_of(path: &Path) -> Vec<Row> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}

/// Returns the value of a column.
fn value(row: &Row, column: &str) -> Option<String> {
    let mut columns = row.get_column_iter();
    let found = columns.find(|(name, _)| *name == column);
    found.map(|(_, value)| value.to_string())
}

/// Returns the rows of all tables and days. A column that is not there is null.
fn all_rows(fleet: &Path) -> BTreeMap<PathBuf, Vec<String>> {
    let shown = |row: Row| {
        let columns = row.get_column_iter();
        let columns = columns.map(|(name, value)| format!("{name}: {value}"));
        let mut columns: Vec<String> = columns.filter(|text| !text.ends_with(": null")).collect();
        columns.sort();
        columns.join(", ")
    };
    let parts = parts(fleet).into_iter().map(|(folder, files)| {
        let rows = files.iter().flat_map(|path| rows_of(path));
        let mut rows: Vec<String> = rows.map(shown).collect();
        rows.sort();
        (folder, rows)
    });
    parts.collect()
}

/// The rows of all tables are those before, in one file for each table and day, by host.
#[test]
fn rows_are_put_together() {
    let folder = hosts();
    let at = folder.path();
    run(at, &format!("{APPEND} --recording-label zone=a a*.data"));
    run(at, &format!("{APPEND} --recording-label rack=7 *.data"));
    let fleet = at.join("fleet");
    let before = all_rows(&fleet);
    let listed = files(&fleet);
    let dry = run(at, "perfconv compact --dry-run fleet");
    assert!(dry.stderr.contains(" would become "), "{}", dry.stderr);
    assert_eq!(files(&fleet), listed);
    let compacted = run(at, "perfconv compact fleet");
    assert_eq!(
        dry.stdout.lines().count(),
        compacted.stdout.lines().count(),
        "{}{}",
        dry.stdout,
        compacted.stdout
    );
    assert_eq!(all_rows(&fleet), before);
    let one_each = parts(&fleet);
    assert!(
        one_each
            .keys()
            .any(|folder| folder.starts_with("tracepoints"))
    );
    for (folder, files) in &one_each {
        assert_eq!(files.len(), 1, "{}: {files:?}", folder.display());
        let rows = rows_of(&files[0]);
        let mut keys: Vec<_> = rows
            .iter()
            .map(|row| (value(row, "host"), value(row, "recording")))
            .collect();
        keys.dedup();
        let hosts: Vec<_> = keys.iter().map(|(host, _)| host).collect();
        assert!(hosts.is_sorted(), "{}: {hosts:?}", folder.display());
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "a recording is in several places");
    }
    // Nothing is left to do, and no recording is added again or replaced.
    let listed = parts(&fleet);
    let again = run(at, "perfconv compact fleet");
    assert_eq!(again.stdout, "");
    let append = run(at, "perfconv export --no-symbols --append-to fleet *.data");
    assert!(
        append.stderr.contains("0 recordings added, 16 already"),
        "{}",
        append.stderr
    );
    let forced = in_shell(at, "perfconv export --append-to fleet -f a1.data");
    assert_eq!(status(&forced), Some(1), "{}", forced.stderr);
    assert!(forced.stderr.contains("not replaced"), "{}", forced.stderr);
    assert_eq!(parts(&fleet), listed);
    let is_left = |path: &PathBuf| path.to_string_lossy().starts_with(".perfconv-compact-");
    assert!(!files(&fleet).iter().any(is_left));
    assert_eq!(all_rows(&fleet), before);
}

/// Compacted in steps, a directory has the same rows, and a few files for each day.
#[test]
fn recordings_are_added_between_compactions() {
    let folder = hosts();
    let at = folder.path();
    run(
        at,
        &format!(
            "{APPEND} *.data && mv fleet expected
            for file in *.data; do
                {APPEND} $file && perfconv -q compact fleet > /dev/null || exit
            done"
        ),
    );
    let fleet = at.join("fleet");
    assert_eq!(all_rows(&fleet), all_rows(&at.join("expected")));
    for (folder, files) in parts(&fleet) {
        assert!(files.len() <= 4, "{}: {files:?}", folder.display());
    }
}

/// Killed at any moment, nothing is lost, and nothing is there twice.
#[test]
fn a_killed_compaction_loses_nothing() {
    let folder = hosts();
    let at = folder.path();
    run(at, &format!("{APPEND} *.data && cp -r fleet expected"));
    let fleet = at.join("fleet");
    let expected = all_rows(&fleet);
    for step in 0_u32..24 {
        let signal = if step % 3 == 0 { "TERM" } else { "KILL" };
        let after = f64::from(step) / 400.0;
        let killed = in_shell(
            at,
            &format!(
                "timeout -s {signal} {after:.4} perfconv -q compact fleet > /dev/null; \
                 find fleet/.perfconv-compact-* -name '*.parquet'"
            ),
        );
        if signal == "TERM" {
            // No new file is left, only those that were replaced.
            for path in killed.stdout.lines() {
                let file = File::open(at.join(path)).expect("a file");
                SerializedFileReader::new(file).expect("a complete file");
            }
        }
        assert_eq!(all_rows(&fleet), expected, "after {after} s");
        // Also the recordings that were not put together are still known.
        let again = run(at, "perfconv export --no-symbols --append-to fleet *.data");
        assert!(again.stderr.contains("16 already"), "{}", again.stderr);
        if step % 8 == 7 {
            run(at, "rm -r fleet && cp -r expected fleet");
        }
    }
    run(at, "perfconv -q compact fleet > /dev/null");
    assert_eq!(all_rows(&fleet), expected);
    // The second run removes the files that the first one has replaced.
    run(at, "perfconv -q compact fleet > /dev/null");
    assert_eq!(all_rows(&fleet), expected);
    let left = run(at, "ls -A fleet | grep perfconv || true");
    assert_eq!(left.stdout, ".perfconv-compact.lock\n");
}

/// Recordings are added while a directory is compacted.
#[test]
fn writers_and_compactions_do_not_disturb_each_other() {
    let folder = hosts();
    let at = folder.path();
    run(
        at,
        &format!(
            "{APPEND} --jobs 2 *.data && mv fleet expected && {APPEND} a.data
            for name in a b c d; do
                for host in '' 1 2 3; do
                    {APPEND} $name$host.data || touch failed
                done & pids=\"$pids $!\"
            done
            for round in $(seq 12); do
                perfconv -q compact fleet > /dev/null || touch failed
            done
            wait $pids
            {APPEND} *.data && perfconv -q compact fleet > /dev/null && test ! -e failed"
        ),
    );
    let fleet = at.join("fleet");
    assert_eq!(all_rows(&fleet), all_rows(&at.join("expected")));
}

/// Who lists the files of a day sees all rows once, while they are put together. A file that was
/// listed may be missing, as the document says.
#[test]
fn readers_see_all_rows_once() {
    let folder = hosts();
    let at = folder.path();
    run(at, &format!("{APPEND} *.data && cp -r fleet expected"));
    let count = |fleet: &Path| -> Option<usize> {
        let mut rows = 0;
        for day in fs::read_dir(fleet.join("samples")).expect("a table") {
            for file in fs::read_dir(day.expect("a name").path()).expect("a day") {
                let file = File::open(file.expect("a name").path()).ok()?;
                let reader = SerializedFileReader::new(file).expect("a Parquet file");
                rows += usize::try_from(reader.metadata().file_metadata().num_rows()).ok()?;
            }
        }
        Some(rows)
    };
    let expected = count(&at.join("expected"));
    let fleet = at.join("fleet");
    for _ in 0..6 {
        let compaction = thread::scope(|scope| {
            let compaction = scope.spawn(|| in_shell(at, "perfconv -q compact fleet"));
            let mut complete = 0;
            while !compaction.is_finished() || complete == 0 {
                let found = count(&fleet);
                assert!(
                    found.is_none() || found == expected,
                    "{found:?}, {expected:?}"
                );
                complete += usize::from(found.is_some());
            }
            compaction.join().expect("no panic")
        });
        assert!(compaction.success(), "{}", compaction.stderr);
        run(at, "rm -r fleet && cp -r expected fleet");
    }
    // A folder that was opened before is listed afterwards.
    let day = fleet.join("samples/date=2026-11-01");
    let before = fs::read_dir(&day).expect("a day").count();
    let listed = fs::read_dir(&day).expect("a day");
    run(at, "perfconv -q compact fleet");
    assert_eq!(listed.count(), before);
    assert!(before > fs::read_dir(&day).expect("a day").count());
}

/// Days are removed, and their recordings are not added again.
#[test]
fn old_days_are_removed() {
    let folder = hosts();
    let at = folder.path();
    run(at, &format!("{APPEND} *.data && perfconv -q compact fleet"));
    let fleet = at.join("fleet");
    run(at, "mkdir -p fleet/samples/date=__HIVE_DEFAULT_PARTITION__");
    let drop = "perfconv compact fleet --drop-before 2026-11-02";
    let dry = run(at, &format!("{drop} --dry-run"));
    assert!(
        dry.stdout.contains("samples/date=2026-11-01: removed"),
        "{}",
        dry.stdout
    );
    assert!(fleet.join("samples/date=2026-11-01").exists());
    let before = all_rows(&fleet);
    assert_eq!(run(at, drop).stdout, dry.stdout);
    let after = all_rows(&fleet);
    assert!(after.len() < before.len());
    for (folder, rows) in before {
        let is_old = folder.to_string_lossy().contains("date=2026-11-01");
        let expected = if is_old { None } else { Some(&rows) };
        assert_eq!(after.get(&folder), expected, "{}", folder.display());
    }
    assert!(
        fleet
            .join("samples/date=__HIVE_DEFAULT_PARTITION__")
            .exists()
    );
    let again = run(at, "perfconv export --no-symbols --append-to fleet *.data");
    assert!(again.stderr.contains("16 already"), "{}", again.stderr);
    let wrong = in_shell(at, "perfconv compact fleet --drop-before 2026-13-01");
    assert_eq!(status(&wrong), Some(2), "{}", wrong.stderr);
}

/// A file that cannot be read does not prevent the others from being put together.
#[test]
fn unreadable_files_are_left() {
    let folder = hosts();
    let at = folder.path();
    run(at, &format!("{APPEND} a*.data"));
    let fleet = at.join("fleet");
    let samples = fleet.join("samples/date=2026-11-01");
    let names = files(&samples);
    let broken = samples.join(names.first().expect("a file"));
    let bytes = fs::read(&broken).expect("a file");
    // Without its end, and with wrong data.
    for wrong in [&bytes[..bytes.len() / 2], &wrong_data(&bytes)] {
        run(at, "rm -rf copy && cp -r fleet copy");
        fs::write(&broken, wrong).expect("a file");
        let output = in_shell(at, "perfconv compact fleet");
        assert_eq!(status(&output), Some(1), "{}", output.stderr);
        let name = broken.display().to_string();
        let name = name.strip_prefix(&at.display().to_string()).expect("below");
        let expected = format!("{}: ", &name[1..]);
        assert!(output.stderr.contains(&expected), "{}", output.stderr);
        assert!(output.stderr.contains("left as it is"), "{}", output.stderr);
        assert_eq!(fs::read(&broken).expect("a file"), wrong);
        assert_eq!(files(&samples).len(), 2);
        let of_table = |table: &str| files(&fleet.join(table)).len();
        assert_eq!([of_table("mappings"), of_table("recordings")], [1, 1]);
        run(at, "rm -r fleet && mv copy fleet");
    }
}

/// Returns a Parquet file with changed bytes in its first page.
fn wrong_data(bytes: &[u8]) -> Vec<u8> {
    let mut wrong = bytes.to_vec();
    for byte in &mut wrong[8..120] {
        *byte = !*byte;
    }
    wrong
}

/// What is not such a directory is refused, and so is a second process.
#[test]
fn other_directories_are_refused() {
    let folder = folder_of(&RECORDINGS[..1]);
    let at = folder.path();
    for (commands, expected) in [
        ("perfconv compact nothing", "nothing: "),
        ("perfconv compact .", "no folder recordings"),
        ("perfconv compact a.data", "a.data: "),
    ] {
        let output = in_shell(at, commands);
        assert_eq!(status(&output), Some(2), "{commands}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    assert_eq!(files(at).len(), 1);
    run(at, &format!("{APPEND} a.data"));
    let lock = File::create(at.join("fleet/.perfconv-compact.lock")).expect("a file");
    lock.lock().expect("a lock");
    let second = in_shell(at, "perfconv compact fleet");
    assert_eq!(status(&second), Some(1), "{}", second.stderr);
    assert!(second.stderr.contains("another"), "{}", second.stderr);
    drop(lock);
    // An earlier build divided the days by host.
    run(
        at,
        "mkdir old old/recordings && cp -r fleet/samples old && cd old/samples/date=* &&
        mkdir host=web1 && mv *.parquet host=web1",
    );
    let listed = files(&at.join("old"));
    for command in [
        "perfconv compact old",
        "perfconv export a.data --append-to old",
    ] {
        let output = in_shell(at, command);
        assert_eq!(status(&output), Some(2), "{command}: {}", output.stderr);
        assert!(output.stderr.contains("for each host"), "{}", output.stderr);
    }
    assert_eq!(files(&at.join("old")), listed);
}
