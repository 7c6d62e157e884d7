//! The date of a recording: that of its file, which perf shows (`captured on`).

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use perfdata_tests::convert::in_shell;
use perfdata_tests::recordings;

/// A date long before these tests, and a later one.
const OLD: Duration = Duration::from_secs(1_600_000_000);
const LATER: Duration = Duration::from_secs(1_600_000_100);

fn date(path: &Path) -> Duration {
    let meta = fs::metadata(path).expect("a file");
    let modified = meta.modified().expect("its date");
    modified
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a date after 1970")
}

/// Copies a recording to a file with this date.
fn copy(from: &str, to: &Path, date: Option<Duration>) {
    fs::copy(recordings::fixture(from).path, to).expect("a fixture");
    if let Some(date) = date {
        let file = File::options().write(true).open(to).expect("a file");
        file.set_modified(SystemTime::UNIX_EPOCH + date)
            .expect("a date");
    }
}

#[test]
fn conversions_keep_the_date() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    copy("6.1-x86_64-file-default", &at("in.data"), Some(OLD));
    copy("6.1-x86_64-file-default", &at("later.data"), Some(LATER));
    copy("6.1-x86_64-pipe-default", &at("pipe.data"), Some(OLD));
    copy("7.2-x86_64-file-crashed", &at("bad.data"), Some(OLD));
    let commands = [
        ("perfconv in.data -o copy.data", "copy.data", OLD),
        (
            "perfconv --swap-endian in.data -o swapped.data",
            "swapped.data",
            OLD,
        ),
        (
            "perfconv file2pipe in.data -o stream.data",
            "stream.data",
            OLD,
        ),
        (
            "perfconv pipe2file pipe.data -o file.data",
            "file.data",
            OLD,
        ),
        ("perfconv recover bad.data -o good.data", "good.data", OLD),
        ("perfconv recover in.data -o same.data", "same.data", OLD),
        (
            "perfconv recover --compress bad.data -o small.data",
            "small.data",
            OLD,
        ),
        ("perfconv convert --to dir in.data -o dir", "dir/data", OLD),
        (
            "perfconv split in.data -o parts --by samples=1000000",
            "parts/00000-samples.data",
            OLD,
        ),
        (
            "perfconv merge later.data in.data -o merged.data",
            "merged.data",
            LATER,
        ),
    ];
    for (command, output, expected) in commands {
        let done = in_shell(folder.path(), command);
        assert!(done.success(), "{command}: {}", done.stderr);
        assert_eq!(date(&at(output)), expected, "{command}");
    }
    // The date of a stream is not known, and an export is new.
    for (command, output) in [
        ("cat in.data | perfconv - -o streamed.data", "streamed.data"),
        (
            "perfconv export -q --no-symbols in.data -o out.folded",
            "out.folded",
        ),
    ] {
        let done = in_shell(folder.path(), command);
        assert!(done.success(), "{command}: {}", done.stderr);
        assert!(date(&at(output)) > LATER, "{command}");
    }
}

#[test]
fn only_the_date_of_a_recording_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let shown = |name: &str| {
        let done = in_shell(folder.path(), &format!("perfconv {name}"));
        assert!(done.success(), "{name}: {}", done.stderr);
        done.stdout
    };
    // Another machine made it.
    copy("6.1-x86_64-file-default", &at("new.data"), None);
    copy("6.1-x86_64-file-default", &at("old.data"), Some(OLD));
    let new = shown("new.data");
    assert!(!new.contains("recorded:"), "{new}");
    let old = shown("old.data");
    assert!(old.contains("recorded: 2020-09-13"), "{old}");
    // perf stat record writes CLOCK_DATA of zeros.
    copy("6.1-x86_64-stat-record", &at("stat.data"), None);
    let stat = shown("stat.data");
    assert!(!stat.contains("1970"), "{stat}");
    // Newer releases of perf refuse what this one wrote.
    assert!(stat.contains("--compat 7.2"), "{stat}");
}
