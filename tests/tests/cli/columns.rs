//! `perfconv export` to Parquet and Arrow on the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use perfdata_columns::Table;
use perfdata_session::Samples;
use perfdata_tests::convert::in_shell;
use perfdata_tests::{is_thorough, perf, recordings, skipped};

/// Time that the programs of engines may take: Spark and Ray start slowly.
const MOST_OF_JUDGE: Duration = Duration::from_secs(1200);

pub fn status(output: &perf::Output) -> Option<i32> {
    output.status.and_then(|status| status.code())
}

/// Copies fixtures to a folder, as a.data, b.data and so on.
pub fn folder_of(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (letter, name) in ('a'..).zip(names) {
        let target = folder.path().join(format!("{letter}.data"));
        fs::copy(recordings::fixture(name).path, target).expect("a fixture");
    }
    folder
}

/// Returns all files below a folder, relative to it, with hidden ones.
pub fn files(folder: &Path) -> BTreeSet<PathBuf> {
    fn add(folder: &Path, root: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("a name").path();
            match path.is_dir() {
                true => add(&path, root, found),
                false => {
                    found.insert(path.strip_prefix(root).expect("below").to_owned());
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    add(folder, folder, &mut found);
    found
}

fn rows(path: &Path) -> i64 {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    reader.metadata().file_metadata().num_rows()
}

/// Returns the number of rows of all files below a folder.
fn all_rows(folder: &Path) -> i64 {
    let files = files(folder);
    files.iter().map(|path| rows(&folder.join(path))).sum()
}

/// Returns the values of a column of names in an Arrow stream, with the number of their rows.
fn counts_of(stream: &Path, column: &str) -> BTreeMap<String, u64> {
    let file = File::open(stream).expect("a stream");
    let reader = arrow_ipc::reader::StreamReader::try_new(file, None).expect("a stream");
    let mut counts = BTreeMap::new();
    for batch in reader {
        let batch = batch.expect("rows");
        let names = batch.column_by_name(column).expect("the column");
        let names = names.as_dictionary::<Int32Type>();
        let values = names.values().as_string::<i32>();
        for key in names.keys().values() {
            let name = values.value(usize::try_from(*key).expect("a key"));
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// A sample with the counters of a group is a row for each of them that increased, as in perf
/// script; and `--event` selects among them.
#[test]
fn events_of_groups_have_rows() {
    for name in ["6.1-x86_64-file-group-S", "6.12-aarch64-file-group-S-noinh"] {
        let folder = folder_of(&[name]);
        let stream = folder.path().join("all.arrow");
        let export = "perfconv export -q --no-symbols a.data -o";
        let output = in_shell(
            folder.path(),
            &format!(
                "{export} all.arrow --to arrow && {export} text --to perf-script -F event && \
                 {export} one.arrow --to arrow -e task-clock && {export} one.parquet -e task-clock"
            ),
        );
        assert!(output.success(), "{}", output.stderr);
        let found = counts_of(&stream, "event");
        let text = fs::read_to_string(folder.path().join("text")).expect("lines");
        let mut expected = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let event = line.trim().trim_end_matches(':').to_owned();
            *expected.entry(event).or_default() += 1;
        }
        assert_eq!(found, expected, "{name}");
        assert!(found.len() > 1, "{found:?}");
        let one = counts_of(&folder.path().join("one.arrow"), "event");
        let selected: Vec<_> = found
            .iter()
            .filter(|(event, _)| *event == "task-clock")
            .collect();
        assert_eq!(one.iter().collect::<Vec<_>>(), selected, "{name}");
        let selected: u64 = selected.iter().map(|(_, count)| **count).sum();
        let rows = rows(&folder.path().join("one.parquet"));
        assert_eq!(u64::try_from(rows).expect("a number"), selected, "{name}");
    }
}

/// A recording of a host that did nothing is there, with 0 samples, and is not tried again.
#[test]
fn an_idle_host_is_a_row() {
    let folder = folder_of(&["6.1-x86_64-file-g"]);
    let append = "perfconv export --no-symbols idle.data --append-to fleet";
    let output = in_shell(
        folder.path(),
        &format!(
            "perfconv -q --comms nobody --allow-empty a.data -o idle.data && {append} && {append}"
        ),
    );
    assert!(output.success(), "{}", output.stderr);
    let at = |table: &str| folder.path().join("fleet").join(table);
    assert_eq!(all_rows(&at("recordings")), 1);
    assert_eq!(all_rows(&at("samples")), 0);
    assert!(all_rows(&at("events")) > 0);
    let alone = in_shell(
        folder.path(),
        "perfconv export --no-symbols idle.data -o idle.parquet",
    );
    assert_eq!(status(&alone), Some(1));
}

fn samples(name: &str) -> i64 {
    let mut samples = Samples::open(recordings::fixture(name).path).expect("a fixture");
    let mut count = 0;
    while samples.next().expect("a fixture").is_some() {
        count += 1;
    }
    count
}

const CALLCHAINS: &str = "6.1-x86_64-file-g";
const TRACED: &str = "6.1-x86_64-file-tp";

#[test]
fn outputs_are_a_file_a_directory_or_a_stream() {
    let folder = folder_of(&[CALLCHAINS, TRACED]);
    let at = folder.path();
    let commands = "set -e; export='perfconv export -q --no-symbols'
        $export a.data -o a.parquet
        $export a.data --to parquet -o - > piped.parquet
        $export b.data --to parquet -o tables
        $export a.data --to arrow -o - > a.arrows
        $export a.data -o b.arrows
        perfconv -q file2pipe a.data -o - | $export --to parquet -o stream.parquet
        $export a.data --first 7 --columns time,comm -o few.parquet";
    let output = in_shell(at, commands);
    assert!(output.success(), "{}", output.stderr);
    let count = samples(CALLCHAINS);
    for name in ["a.parquet", "piped.parquet", "stream.parquet"] {
        assert_eq!(rows(&at.join(name)), count, "{name}");
    }
    assert_eq!(rows(&at.join("few.parquet")), 7);
    assert_eq!(rows(&at.join("tables/samples.parquet")), samples(TRACED));
    assert_eq!(rows(&at.join("tables/recordings.parquet")), 1);
    let traced = all_rows(&at.join("tables/tracepoints"));
    assert_eq!(traced, samples(TRACED));
    let arrow = |name: &str| fs::read(at.join(name)).expect("a stream");
    assert!(arrow("a.arrows").starts_with(b"\xff\xff\xff\xff"));
    assert_eq!(arrow("a.arrows"), arrow("b.arrows"));
    // Both have the same bytes, if the recording has the same.
    let piped = fs::read(at.join("piped.parquet")).expect("a file");
    assert_eq!(fs::read(at.join("a.parquet")).expect("a file"), piped);
}

/// A directory may contain an image of the kernel, which no export would contain.
#[test]
fn exports_do_not_miss_the_image_of_the_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::create_dir_all(at.join("in.data/kcore_dir")).expect("a folder");
    let data = recordings::fixture("7.2-x86_64-file-kcore")
        .path
        .join("data");
    fs::copy(data, at.join("in.data/data")).expect("a copy");
    fs::write(at.join("in.data/kcore_dir/kcore"), "kernel").expect("a file");
    for words in ["-o a.parquet", "--to folded -o a.folded"] {
        let output = in_shell(at, &format!("perfconv export --no-symbols in.data {words}"));
        assert!(output.success(), "{}", output.stderr);
        assert!(!output.stderr.contains("kcore_dir"), "{}", output.stderr);
        assert!(output.stderr.contains("173 samples"), "{}", output.stderr);
    }
}

#[test]
fn outputs_are_not_replaced_by_mistake() {
    let folder = folder_of(&[CALLCHAINS]);
    let at = folder.path();
    let export = |words: &str| in_shell(at, &format!("perfconv export -q --no-symbols {words}"));
    assert!(export("a.data --to parquet -o tables").success());
    let again = export("a.data --to parquet -o tables");
    assert_eq!(status(&again), Some(2), "{}", again.stderr);
    assert!(export("a.data --to parquet -o tables --force").success());
    fs::write(at.join("tables/notes.txt"), "mine").expect("a file");
    let again = export("a.data --to parquet -o tables --force");
    assert_eq!(status(&again), Some(2));
    assert!(again.stderr.contains("notes.txt"), "{}", again.stderr);
    assert!(at.join("tables/samples.parquet").exists());
    // Errors of the command line.
    for (words, expected) in [
        ("a.data a.data -o b.parquet", "--append-to DIR adds"),
        ("a.data --append-to x --to arrow", "writes Parquet"),
        ("a.data --append-to x -o y", "cannot be used with"),
        ("a.data --columns nothing -o b.parquet", "callchain"),
        ("a.data --append-to -", "standard output"),
    ] {
        let output = export(words);
        assert_eq!(status(&output), Some(2), "{words}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    assert!(!at.join("b.parquet").exists() && !at.join("x").exists());
    // A recording without the selected samples has no output.
    let empty = export("a.data --comms nobody -o empty.parquet");
    assert_eq!(status(&empty), Some(1));
    assert!(!at.join("empty.parquet").exists());
    assert!(export("a.data --comms nobody --allow-empty -o empty.parquet").success());
    assert_eq!(rows(&at.join("empty.parquet")), 0);
}

#[test]
fn recordings_are_added_once() {
    let folder = folder_of(&[CALLCHAINS, TRACED, "6.1-s390x-file-clockmono"]);
    let at = folder.path();
    let bad = fs::read(at.join("a.data")).expect("a fixture");
    fs::write(at.join("bad.data"), &bad[..200]).expect("a file");
    fs::write(at.join("other.data"), "no recording").expect("a file");
    let append = "perfconv export --no-symbols *.data --append-to fleet";
    let output = in_shell(at, append);
    assert_eq!(status(&output), Some(1), "{}", output.stderr);
    let said = &output.stderr;
    assert!(said.contains("3 recordings added, 2 skipped"), "{said}");
    assert!(
        said.contains("bad.data") && said.contains("other.data"),
        "{said}"
    );
    let fleet = at.join("fleet");
    let found = files(&fleet);
    assert_eq!(all_rows(&fleet.join("recordings")), 3);
    let counts = [CALLCHAINS, TRACED, "6.1-s390x-file-clockmono"].map(samples);
    assert_eq!(all_rows(&fleet.join("samples")), counts.iter().sum::<i64>());
    assert_eq!(all_rows(&fleet.join("tracepoints")), counts[1]);
    let is_partition = |path: &PathBuf| {
        let text = path.to_string_lossy();
        ["recordings/", "broken/"]
            .iter()
            .any(|table| text.starts_with(table))
            || text.ends_with("/_common_metadata")
            || (text.contains("/date=20") && text.matches('/').count() <= 3)
    };
    assert!(found.iter().all(is_partition), "{found:?}");
    // The time of day is in the recording: the date does not depend on the file.
    let clock = "samples/date=2026-";
    assert!(
        found
            .iter()
            .any(|path| path.to_string_lossy().starts_with(clock)),
        "{found:?}"
    );
    // Again: nothing is added, also under another name.
    let again = in_shell(
        at,
        "mv a.data z.data; rm bad.data other.data; \
        perfconv export --no-symbols *.data --append-to fleet",
    );
    assert!(again.success(), "{}", again.stderr);
    assert!(
        again.stderr.contains("0 recordings added, 3 already there"),
        "{}",
        again.stderr
    );
    assert_eq!(files(&fleet), found);
    // Several processes at once, and files that an interrupted one left.
    let marker = found.iter().find(|path| path.starts_with("recordings"));
    let marker = fleet.join(marker.expect("a recording"));
    fs::remove_file(&marker).expect("a file");
    let id = marker
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    File::create(fleet.join(format!("recordings/.{id}.unfinished"))).expect("a file");
    let at_once = "for n in 1 2 3; do \
        perfconv export -q --no-symbols *.data --append-to fleet --jobs 2 & done; wait";
    let output = in_shell(at, at_once);
    assert!(output.success(), "{}", output.stderr);
    assert_eq!(files(&fleet), found);
    // Other options take effect with --force.
    let forced = in_shell(
        at,
        "perfconv export -q --no-symbols --first 1 z.data --append-to fleet -f",
    );
    assert!(forced.success(), "{}", forced.stderr);
    let rest = counts.iter().sum::<i64>() - counts[0] + 1;
    assert_eq!(all_rows(&fleet.join("samples")), rest);
}

/// Returns the values of a column of text in all files below a folder.
fn texts_of(folder: &Path, column: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files(folder) {
        let file = File::open(folder.join(path)).expect("a file");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let (_, field) = row
                .get_column_iter()
                .find(|(name, _)| *name == column)
                .expect("the column");
            found.insert(field.to_string().trim_matches('"').to_owned());
        }
    }
    found
}

/// A recording that cannot be read is listed, and only tried again when it has changed.
#[test]
fn broken_recordings_are_listed() {
    let folder = folder_of(&[CALLCHAINS]);
    let at = folder.path();
    let good = fs::read(at.join("a.data")).expect("a fixture");
    fs::write(at.join("bad.data"), &good[..200]).expect("a file");
    fs::write(at.join("other.data"), "no recording").expect("a file");
    let append = |words: &str| {
        let export = "perfconv export --no-symbols --append-to fleet";
        in_shell(at, &format!("{export} {words}"))
    };
    let broken = at.join("fleet/broken");
    let first = append("*.data");
    assert_eq!(status(&first), Some(1), "{}", first.stderr);
    assert_eq!(all_rows(&broken), 2);
    let path = |name: &str| {
        let path = at.canonicalize().expect("a folder").join(name);
        path.to_str().expect("a name").to_owned()
    };
    let names = ["bad.data", "other.data"].map(path);
    assert_eq!(texts_of(&broken, "path"), BTreeSet::from(names));
    assert_eq!(
        texts_of(&broken, "size"),
        ["12", "200"].map(String::from).into()
    );
    assert_eq!(texts_of(&broken, "status"), ["1".to_owned()].into());
    assert_eq!(texts_of(&broken, "retry"), ["false".to_owned()].into());
    for error in texts_of(&broken, "error") {
        assert!(first.stderr.contains(&error), "{error}: {}", first.stderr);
    }
    // They are not tried again, also under another name.
    let listed = files(&broken);
    let again = append("*.data ./bad.data");
    assert!(again.success(), "{}", again.stderr);
    let expected = "0 recordings added, 1 already there, 3 broken as before";
    assert!(again.stderr.contains(expected), "{}", again.stderr);
    assert_eq!(again.stderr.lines().count(), 1, "{}", again.stderr);
    let alone = append("other.data");
    assert!(
        alone.success() && alone.stderr.contains("1 broken"),
        "{}",
        alone.stderr
    );
    assert_eq!(status(&append("-f *.data")), Some(1));
    // Another time or size is another recording. Several processes may find out.
    let changed = in_shell(
        at,
        "touch -d 2026-11-01T12:00:00Z bad.data; echo >> other.data
        for n in 1 2 3; do
            perfconv export -q --no-symbols *.data --append-to fleet 2> $n.log & pids=\"$pids $!\"
        done
        for pid in $pids; do wait $pid; echo $?; done; cat *.log >&2",
    );
    assert!(changed.stdout.contains('1'), "{}", changed.stdout);
    assert!(changed.stderr.contains("bad.data: "), "{}", changed.stderr);
    assert_eq!(files(&broken), listed);
    assert_eq!(
        texts_of(&broken, "size"),
        ["13", "200"].map(String::from).into()
    );
    assert!(append("*.data").success());
    // A repaired one is no longer listed.
    fs::write(at.join("bad.data"), &good).expect("a file");
    assert!(append("*.data").success());
    assert_eq!(texts_of(&broken, "path"), [path("other.data")].into());
    assert_eq!(all_rows(&at.join("fleet/recordings")), 1);
    // A corrupt row says nothing.
    let hidden = in_shell(at, "printf x > fleet/broken/$(basename fleet/broken/*)");
    assert!(hidden.success());
    assert_eq!(status(&append("other.data")), Some(1));
    assert_eq!(all_rows(&broken), 1);
}

/// The date is that of the recording, if it contains one, and not that of a copy.
#[test]
fn dates_come_from_the_best_source() {
    let folder = folder_of(&[CALLCHAINS, "6.1-s390x-file-clockmono"]);
    let at = folder.path();
    let date_of = |words: &str| {
        let commands = format!(
            "rm -rf fleet; touch -d 2020-02-02T12:00:00Z *.data
            perfconv export --no-symbols --append-to fleet {words}"
        );
        let output = in_shell(at, &commands);
        assert!(output.success(), "{words}: {}", output.stderr);
        let source = texts_of(&at.join("fleet/recordings"), "date_source");
        let names = fs::read_dir(at.join("fleet/events")).expect("a folder");
        let names = names.map(|entry| entry.expect("a name").file_name());
        let dates: Vec<String> = names
            .map(|name| name.to_string_lossy().replace("date=", ""))
            .collect();
        let source: Vec<String> = source.into_iter().collect();
        (dates.join(" "), source.join(" "), output.stderr)
    };
    fs::copy(at.join("a.data"), at.join("web1-20261127-235959.data")).expect("a copy");
    let pattern = "--recorded-at-name %Y%m%d-%H%M%S";
    for (words, date, source) in [
        ("a.data".to_owned(), "2020-02-02", "mtime"),
        (
            "a.data --recorded-at 2026-11-27".into(),
            "2026-11-27",
            "option",
        ),
        (
            "a.data --recorded-at 2026-11-27T23:30:00-01:00".into(),
            "2026-11-28",
            "option",
        ),
        (format!("web1*.data {pattern}"), "2026-11-27", "name"),
        (format!("web1*.data {pattern}%z"), "2020-02-02", "mtime"),
        (format!("a.data {pattern}"), "2020-02-02", "mtime"),
    ] {
        let found = date_of(&words);
        assert_eq!(
            (found.0.as_str(), found.1.as_str()),
            (date, source),
            "{words}"
        );
        let is_noted = found.2.contains("does not contain the time");
        assert_eq!(
            is_noted,
            words.contains("name") && source == "mtime",
            "{}",
            found.2
        );
    }
    // The recording contains its time.
    let own = date_of("b.data");
    assert_eq!(own.1, "clock");
    let named = date_of("b.data --recorded-at 2026-01-01");
    assert_eq!((&named.0, &named.1), (&own.0, &own.1));
    for words in [
        "--recorded-at soon",
        "--recorded-at-name %H",
        "--recorded-at 2026-01-01 -o b.parquet",
        "--recorded-at-name %s -o b.parquet",
    ] {
        let output = in_shell(at, &format!("perfconv export a.data {words}"));
        assert_eq!(status(&output), Some(2), "{words}: {}", output.stderr);
    }
}

/// A run that was killed leaves nothing with a final name.
#[test]
fn killed_runs_leave_nothing() {
    let folder = folder_of(&[CALLCHAINS]);
    let at = folder.path();
    // The stream does not end.
    let commands = "mkfifo stream; (perfconv -q file2pipe a.data -o -; sleep 60) > stream & \
        perfconv export -q --no-symbols --to parquet -o out < stream & one=$!; \
        perfconv export -q --no-symbols a.data --to parquet -o done; \
        sleep 1; kill -KILL $one; wait $one; kill %1; ls -A";
    let output = in_shell(at, commands);
    let names: BTreeSet<&str> = output.stdout.lines().collect();
    assert!(!names.contains("out"), "{names:?}");
    assert!(names.contains("done"), "{names:?}");
}

#[test]
fn a_directory_that_cannot_be_written_ends_the_command() {
    let folder = folder_of(&[CALLCHAINS, TRACED]);
    let at = folder.path();
    fs::write(at.join("fleet"), "a file").expect("a file");
    let output = in_shell(
        at,
        "perfconv export -q --no-symbols *.data --append-to fleet",
    );
    assert_eq!(status(&output), Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("fleet"), "{}", output.stderr);
}

/// Runs a judge in `folder` with Python, and notes the engines that are not installed. Returns
/// whether there was something to compare.
pub fn judged(judge: &str, folder: &Path, words: &[&OsStr]) -> bool {
    let python = std::env::var_os("PERFCONV_PYTHON").unwrap_or("python3".into());
    let mut command = Command::new(&python);
    command.current_dir(folder);
    command.arg(recordings::root().join("tests/judges").join(judge));
    command.args(words);
    let Ok(output) = perf::run_for(command, MOST_OF_JUDGE) else {
        skipped::note("python3");
        return false;
    };
    let missing = output.stdout.lines();
    for engine in missing.filter_map(|line| line.strip_prefix("not installed: ")) {
        skipped::note(format_args!("{engine} for Python (PERFCONV_PYTHON)"));
    }
    if status(&output) == Some(77) {
        return false;
    }
    assert!(output.success(), "{}{}", output.stdout, output.stderr);
    print!("{}", output.stdout);
    true
}

/// Other programs read the same values of all fixtures as `dump --json` shows, and answer the
/// queries of docs/parquet.md alike.
#[test]
fn engines_read_the_same_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !judged("columns.py", at, &[]) {
        return;
    }
    let fixtures = recordings::fixtures_dir();
    let commands = format!(
        "cd '{}'
        # Some recordings are compacted, and others have their own files.
        export='perfconv export -q --no-unwind --append-to {at}/fleet'
        $export 6.*.data
        perfconv -q compact {at}/fleet > {at}/compacted
        $export *.data
        mkdir {at}/dumps {at}/single
        for file in *.data; do
            perfconv dump --json $file > {at}/dumps/$file.jsonl
            perfconv info --json $file > {at}/dumps/$file.info
        done
        set -e
        for name in {CALLCHAINS} {TRACED} 6.1-s390x-file-clockmono; do
            to={at}/single/$name; mkdir $to; export='perfconv export -q'
            $export $name.data -o $to/samples.parquet
            $export $name.data -o $to/samples.arrows
            $export $name.data --to parquet -o $to/tables
        done",
        fixtures.display(),
        at = at.display(),
    );
    let output = in_shell(at, &commands);
    assert!(output.success(), "{}", output.stderr);
    assert!(!output.stderr.contains("error"), "{}", output.stderr);
    let compacted = fs::read_to_string(at.join("compacted")).expect("a file");
    assert!(compacted.contains("\nsamples/date="), "{compacted}");
    let document = recordings::root().join("docs/parquet.md");
    judged("columns.py", at, &[document.as_os_str(), at.as_os_str()]);
}

/// The programs in docs/fleets.md give the same answers with every engine.
#[test]
fn fleets_answer_the_same_questions() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    if !judged("fleets.py", at, &[]) {
        return;
    }
    let hosts = if is_thorough() { 500 } else { 4 };
    let [before, after] = ["6.1-x86_64-file-g", "7.2-x86_64-file-g"]
        .map(|name| recordings::fixture(name).path.display().to_string());
    let commands = format!(
        "set -e; mkdir recordings
        for host in $(seq {hosts}); do
            perfconv -q convert '{before}' --set HOSTNAME=web$host -o recordings/$host-a.data
            perfconv -q convert '{after}' --set HOSTNAME=web$host -o recordings/$host-b.data
        done
        touch -d 2026-11-01T12:00:00Z recordings/*-a.data
        touch -d 2026-11-02T12:00:00Z recordings/*-b.data
        export='perfconv -q export --append-to fleet --recording-label service=web'
        $export recordings/[1-3]-?.data
        perfconv -q compact fleet
        $export recordings/*.data
        printf x > broken.data
        ! perfconv -q export broken.data --append-to fleet"
    );
    let output = in_shell(at, &commands);
    assert!(output.success(), "{}", output.stderr);
    let document = recordings::root().join("docs/fleets.md");
    let arguments = ["2026-11-01", "2026-11-02", "[kernel.kallsyms]"];
    let arguments = arguments.map(OsStr::new);
    let words: Vec<&OsStr> = [document.as_os_str()]
        .into_iter()
        .chain(arguments)
        .collect();
    judged("fleets.py", at, &words);
}

/// Labels are columns of `recordings`, also of recordings that have others.
#[test]
fn labels_are_columns() {
    let folder = folder_of(&[CALLCHAINS, TRACED]);
    let at = folder.path();
    let append = |words: &str| {
        let export = "perfconv export -q --no-symbols --append-to fleet";
        in_shell(at, &format!("{export} {words}"))
    };
    let recordings = at.join("fleet/recordings");
    let first = append("a.data --recording-label service=checkout --recording-label zone='a=1 b'");
    assert!(first.success(), "{}", first.stderr);
    let second = append("b.data --recording-label service=search --recording-label release=1.2");
    assert!(second.success(), "{}", second.stderr);
    let schema = |path: &Path| {
        let file = File::open(path).expect("a file");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let names = schema.columns().iter();
        let names: Vec<String> = names.map(|column| column.name().to_owned()).collect();
        names
    };
    // A file has the columns that were there before.
    let all = schema(&recordings.join("_common_metadata"));
    let fixed = Table::Recordings.columns().len();
    assert_eq!(all[fixed..], ["service", "zone", "release"]);
    let with_zone = schema(&recordings.join(file_with(&recordings, "checkout")));
    assert_eq!(with_zone, all[..fixed + 2]);
    let with_release = schema(&recordings.join(file_with(&recordings, "search")));
    assert_eq!(with_release, all);
    // Those of a recording that is there change with --force.
    assert!(append("a.data --recording-label service=cart").success());
    assert_eq!(
        texts_of(&recordings, "service"),
        ["checkout", "search"].map(String::from).into()
    );
    assert!(append("*.data -f").success());
    for name in ["service", "zone", "release"] {
        assert_eq!(texts_of(&recordings, name), ["null".to_owned()].into());
    }
    let paths = ["a.data", "b.data"].map(|name| {
        let path = at.canonicalize().expect("a folder").join(name);
        path.to_str().expect("a name").to_owned()
    });
    assert_eq!(texts_of(&recordings, "path"), paths.into());
    for (words, expected) in [
        ("--recording-label host=x", "has a column host"),
        ("--recording-label version=x", "has a column version"),
        ("--recording-label Service=x", "lower-case"),
        ("--recording-label service", "KEY=VALUE"),
        (
            "--recording-label a=1 --recording-label a=2",
            "gives a twice",
        ),
        ("--recording-label a=1 -o b.parquet", "cannot be used with"),
    ] {
        let output = append(&format!("a.data {words}"));
        assert_eq!(status(&output), Some(2), "{words}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    let alone = in_shell(
        at,
        "perfconv export a.data -o b.parquet --recording-label a=1",
    );
    assert_eq!(status(&alone), Some(2), "{}", alone.stderr);
}

/// Returns the file of the table `recordings` whose label `service` has this value.
fn file_with(recordings: &Path, service: &str) -> PathBuf {
    let mut files = files(recordings).into_iter();
    let found = files.find(|path| {
        let file = File::open(recordings.join(path)).expect("a file");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        let mut rows = reader.get_row_iter(None).expect("rows");
        rows.next().is_some_and(|row| {
            let row = row.expect("a row");
            let mut columns = row.get_column_iter();
            columns.any(|(name, value)| name == "service" && value.to_string().contains(service))
        })
    });
    found.expect("the recording")
}
