//! Snapshots of all reports of the command, as text and JSON, for a few recordings.
//!
//! `UPDATE_SNAPSHOTS=1` rewrites `tests/snapshots/reports/`.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path};

use perfdata_tests::{convert, recordings, snapshot, synth};

/// The snapshots, and the commands that print them.
const REPORTS: &[(&str, &str)] = &[
    ("about-pipe.txt", "perfconv pipe.data"),
    ("about-big-endian.txt", "perfconv compressed.data"),
    ("about-aux.txt", "perfconv everything.data"),
    ("info-pipe.txt", "perfconv info pipe.data"),
    ("info-pipe.json", "perfconv info --json pipe.data"),
    (
        "info-compressed.json",
        "perfconv info --json compressed.data",
    ),
    ("info-directory.json", "perfconv info --json directory.data"),
    (
        "info-unfinished.json",
        "perfconv info --json unfinished.data",
    ),
    (
        "info-everything.json",
        "perfconv info --json everything.data",
    ),
    (
        "dump-directory.jsonl",
        "perfconv dump --json --limit 40 directory.data",
    ),
    (
        "dump-everything.jsonl",
        "perfconv dump --json everything.data",
    ),
    (
        "resolved-everything.jsonl",
        "perfconv dump --resolved --json everything.data",
    ),
    (
        "resolved-everything.txt",
        "perfconv dump --resolved everything.data",
    ),
    (
        "resolved-directory.txt",
        "perfconv dump --resolved --limit 20 directory.data",
    ),
    (
        "dump-bytes.jsonl",
        "perfconv dump --json --hex --limit 4 compressed.data",
    ),
    ("verify-good.json", "perfconv verify --json pipe.data"),
    (
        "verify-unfinished.json",
        "perfconv verify --json unfinished.data",
    ),
    ("verify-unfinished.txt", "perfconv verify unfinished.data"),
    ("verify-cut.json", "perfconv verify --json cut.data"),
    (
        "diff-same.jsonl",
        "perfconv diff --json pipe.data pipe.data",
    ),
    (
        "diff-machines.jsonl",
        "perfconv diff --json pipe.data unfinished.data | head -60",
    ),
    (
        "diff-machines.txt",
        "perfconv diff pipe.data unfinished.data | head -60",
    ),
    (
        "diff-edited.jsonl",
        "perfconv -q --set HOSTNAME=x --drop CMDLINE pipe.data -o x.data; perfconv diff --json pipe.data x.data",
    ),
    (
        "extract-aux.json",
        "perfconv extract-aux -q everything.data -o aux; cat aux/index.json",
    ),
    (
        "extract-aux-big-endian.json",
        "perfconv extract-aux -q big.data -o aux; cat aux/index.json",
    ),
    // The elapsed time is different in each run.
    (
        "convert-summary.txt",
        "perfconv -vv --endian big --decompress pipe.data -o x.data 2>&1 | sed 's/[0-9.]* s$/… s/'",
    ),
    (
        "compat-summary.txt",
        "perfconv --compat 2.6.36 pipe.data -o x.data 2>&1 | sed 's/[0-9.]* s$/… s/'",
    ),
    (
        "recover-unfinished.txt",
        "perfconv recover unfinished.data -o x.data 2>&1 | sed 's/[0-9.]* s$/… s/'",
    ),
    (
        "recover-cut.txt",
        "perfconv recover cut.data -o x.data 2>&1 | sed 's/[0-9.]* s$/… s/'",
    ),
];

/// Creates the recordings that the commands read.
fn fill(folder: &Path) {
    for (name, fixture) in [
        ("pipe.data", "6.1-x86_64-pipe-default"),
        ("compressed.data", "6.1-s390x-file-z"),
        ("directory.data", "7.2-x86_64-file-threads"),
        ("unfinished.data", "7.2-x86_64-file-crashed"),
        ("cut.data", "7.2-x86_64-pipe-cut"),
    ] {
        symlink(recordings::fixture(fixture).path, folder.join(name)).expect("a link can be made");
    }
    for (name, big) in [("everything.data", false), ("big.data", true)] {
        fs::write(folder.join(name), synth::file::kitchen_sink(big))
            .expect("a file can be written");
    }
}

#[test]
fn reports_are_as_they_were() {
    let snapshots = recordings::root().join("tests/snapshots/reports");
    for (name, commands) in REPORTS {
        let folder = tempfile::tempdir().expect("a folder");
        fill(folder.path());
        let output = convert::in_shell(folder.path(), commands);
        assert_eq!(output.stderr, "", "{commands}");
        assert!(
            name.starts_with("diff-same") != output.stdout.ends_with('\n'),
            "{commands}: {}",
            output.stdout
        );
        if let Some(form) = name.split('.').next_back().filter(|form| *form != "txt") {
            let documents: Vec<&str> = match form {
                "json" => vec![&output.stdout],
                _ => output.stdout.lines().collect(),
            };
            for document in documents {
                if let Err(error) = serde_json::from_str::<serde_json::Value>(document) {
                    panic!("{commands}: {error}: {document}");
                }
            }
        }
        snapshot::check(
            &snapshots.join(name),
            &snapshot::without_file_times(&output.stdout),
        );
    }
    let there = fs::read_dir(&snapshots).expect("the snapshots").flatten();
    let there: BTreeSet<_> = there
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        there,
        REPORTS.iter().map(|(name, _)| (*name).to_owned()).collect()
    );
}
