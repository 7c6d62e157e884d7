//! Parts of a recording that were merged again: perf shows them as the recording, and they contain no
//! record about tasks more than once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_core::record::RecordType;
use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, Recording};
use perfdata_tests::skipped;

/// By what recordings are divided. Parts of processes and threads need not contain records about tasks
/// that have no samples.
const BY: [&str; 5] = [
    "pid --sideband all",
    "tid --sideband all",
    "cpu",
    "time=20ms",
    "samples=40",
];

/// Returns the output of a report of perf.
fn report(perf: &Perf, words: &str, path: &Path) -> String {
    let mut command = perf.command();
    command.args(words.split(' ')).arg("-i").arg(path);
    perf::run(command).expect("perf can be started").stdout
}

/// Divides `in` in a folder, and merges the parts to `out`.
fn split_and_merge(folder: &Path, by: &str) -> Result<(), String> {
    let done = in_shell(
        folder,
        &format!(
            "rm -rf parts && perfconv split -q in --by {by} -o parts && \
             perfconv merge -q -f parts/*.data -o out"
        ),
    );
    match done.success() {
        true => Ok(()),
        false => Err(done.stderr),
    }
}

/// Compares the reports about `in` in a folder with those about its parts, merged again.
fn check_reports(folder: &Path) {
    let judges = perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little);
    for by in BY {
        split_and_merge(folder, by).unwrap_or_else(|error| panic!("{by}: {error}"));
        let mut compared = 0;
        for perf in judges.clone() {
            for words in ["sched map", "sched timehist", "script --no-inline"] {
                let original = report(perf, words, &folder.join("in"));
                let merged = report(perf, words, &folder.join("out"));
                let mut lines = original.lines().zip(merged.lines());
                let wrong = lines.find(|(original, merged)| original != merged);
                assert!(original == merged, "{perf} {words}, {by}: {wrong:?}");
                compared += usize::from(original.lines().count() > 10);
            }
        }
        assert!(compared > 0, "{by}: perf shows nothing");
    }
}

/// Checks that the part of each thread contains its samples, and those that name it in a field.
fn check_related(folder: &Path) {
    let done = in_shell(
        folder,
        "rm -rf parts && perfconv split -q in --by tid --related -o parts",
    );
    assert!(done.success(), "{}", done.stderr);
    let judges = perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little);
    let perf = judges.max_by_key(|perf| perf.version).expect("a perf");
    let lines_of = |path: &Path| report(perf, "script --ns -F tid,time,event,trace", path);
    let whole = lines_of(&folder.join("in"));
    let mut others = 0;
    for entry in folder.join("parts").read_dir().expect("the parts") {
        let path = entry.expect("a part").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let Some((_, tid)) = name.split_once("-tid-") else {
            continue;
        };
        // An ended thread.
        let tid = if tid == "none" { "-1" } else { tid };
        let is_own = |line: &&str| line.split_whitespace().next() == Some(tid);
        let names_it = |line: &&str| {
            line.split_whitespace().any(|word| {
                let field = word.split_once('=');
                field.is_some_and(|(field, value)| field.ends_with("pid") && value == tid)
            })
        };
        let expected: Vec<&str> = whole
            .lines()
            .filter(|line| is_own(line) || names_it(line))
            .map(str::trim)
            .collect();
        let part = lines_of(&path);
        let found: Vec<&str> = part.lines().map(str::trim).collect();
        let wrong = expected.iter().zip(&found).find(|(a, b)| a != b);
        assert!(expected == found, "{perf}: thread {tid}: {wrong:?}");
        others += part.lines().filter(|line| !is_own(line)).count();
    }
    assert!(others > 20, "{others} samples of other threads");
}

#[test]
fn the_scheduler_is_shown_as_in_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in");
    let fixture = recordings::root().join("fixtures/6.12-x86_64-tool-sched.data");
    std::fs::copy(fixture, &input).expect("the fixture");
    let newest = perf::all().iter().max_by_key(|perf| perf.version);
    if newest.is_none_or(|perf| report(perf, "sched map", &input).is_empty()) {
        skipped::note("a perf that reads recordings of perf sched 6.12");
    } else {
        check_reports(folder.path());
        check_related(folder.path());
    }
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let work = "for i in 1 2 3; do ls / | sort; (sleep 0.02; true) & done; wait";
    let mut is_clear = false;
    for _ in 0..10 {
        std::fs::remove_file(&input).expect("the last one is there");
        let mut command = recorder.command();
        command.args(["sched", "record", "-q", "-o"]).arg(&input);
        command.args(["--", "sh", "-c", work]);
        let is_recorded = perf::run(command).is_ok_and(|output| output.success());
        if !is_recorded || !input.exists() {
            return skipped::note("the permission to record the scheduler");
        }
        is_clear = !has_equal_times(&input);
        if is_clear {
            break;
        }
    }
    if !is_clear {
        return skipped::note("a recording of the scheduler without samples at the same time");
    }
    check_reports(folder.path());
    check_related(folder.path());
}

/// Returns whether two samples have the same time: their order is not known after they were divided.
fn has_equal_times(path: &Path) -> bool {
    let mut records = perfdata_core::open(path).expect("a recording").by_time();
    let mut last = None;
    while let Some(record) = records.next().expect("it is intact") {
        if record.kind == RecordType::SAMPLE {
            let time = record.time();
            if time == last {
                return true;
            }
            last = time;
        }
    }
    false
}

/// Returns the numbers of records about tasks in a recording.
fn tasks(path: &Path) -> BTreeMap<RecordType, u64> {
    let mut counts = BTreeMap::new();
    let mut records = perfdata_core::open(path).expect("a recording").by_time();
    while let Some(record) = records.next().expect("it is intact") {
        if matches!(
            record.kind,
            RecordType::COMM | RecordType::FORK | RecordType::EXIT
        ) {
            *counts.entry(record.kind).or_default() += 1;
        }
    }
    counts
}

/// Compares the numbers of records about tasks. Returns whether there are several parts.
fn check_tasks(recording: &Recording) -> Result<bool, String> {
    let reader = match perfdata_core::open(&recording.path) {
        Ok(reader) if !recording.is_damaged() => reader,
        _ => return Ok(false),
    };
    // Parts of recordings without event IDs are not recognised.
    let has_ids = reader
        .recording()
        .events
        .iter()
        .all(|event| !event.ids.is_empty());
    if !has_ids {
        return Ok(false);
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let input = folder.path().join("in");
    std::os::unix::fs::symlink(&recording.path, &input).map_err(|error| error.to_string())?;
    // Some have no samples, or samples without a time.
    if split_and_merge(folder.path(), "samples=20").is_err() {
        return Ok(false);
    }
    let (before, after) = (tasks(&input), tasks(&folder.path().join("out")));
    for (kind, count) in after {
        let known = before.get(&kind).copied().unwrap_or(0);
        if count > known {
            return Err(format!("{count} {kind} records of {known}"));
        }
    }
    Ok(folder
        .path()
        .join("parts")
        .read_dir()
        .is_ok_and(|parts| parts.count() > 2))
}

#[test]
fn parts_describe_no_task_again() {
    let compared = AtomicUsize::new(0);
    let mut all = recordings::fixtures();
    all.extend(recordings::corpus());
    recordings::check_all(&all, |recording| {
        let is_compared = check_tasks(recording)?;
        compared.fetch_add(usize::from(is_compared), Ordering::Relaxed);
        Ok(())
    });
    let compared = compared.into_inner();
    assert!(compared >= 20, "only {compared} recordings were compared");
}
