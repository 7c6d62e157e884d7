//! Information about the recorded machine does not change on a machine with another name.

use std::path::Path;
use std::process::Command;

use perfdata_core::feature::FeatureId;
use perfdata_tests::convert::{Whole, perfconv};
use perfdata_tests::recordings::{Container, Form, fixtures};
use perfdata_tests::skipped;

/// Runs `perfconv` in a UTS namespace where the host has another name. Returns whether it
/// succeeded.
fn elsewhere(arguments: &[&str], input: &Path, output: &Path) -> bool {
    let program = perfconv().get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args([
        "--uts",
        "sh",
        "-c",
        "hostname elsewhere && exec \"$@\"",
        "sh",
    ]);
    let status = command
        .arg(program)
        .args(arguments)
        .arg(input)
        .arg("-qo")
        .arg(output)
        .status();
    status.is_ok_and(|status| status.success())
}

/// Returns whether a namespace can be created.
fn can_be_elsewhere() -> bool {
    let allowed = Command::new("unshare")
        .args(["--uts", "hostname", "elsewhere"])
        .status();
    let allowed = allowed.is_ok_and(|status| status.success());
    if !allowed {
        skipped::note("root and unshare, to make a UTS namespace");
    }
    allowed
}

/// Sections with information about the contents of the recording, not about the machine.
const OF_THE_RECORDING: [FeatureId; 6] = [
    FeatureId::BUILD_ID,
    FeatureId::EVENT_DESC,
    FeatureId::AUXTRACE,
    FeatureId::SAMPLE_TIME,
    FeatureId::DIR_FORMAT,
    FeatureId::COMPRESSED,
];

/// Conversions that change the contents of the recording preserve the information about the
/// machine.
#[test]
fn no_option_takes_anything_from_the_machine() {
    if !can_be_elsewhere() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().to_str().expect("a temporary folder in UTF-8");
    let ways: [&[&str]; 8] = [
        &["--compress"],
        &["--decompress"],
        &["--compat", "7.2"],
        &["--build-ids", "--sysroot", root],
        &["--mmap2-build-ids", "--decompress", "--sysroot", root],
        &["--set", "CLN_SIZE=64", "--drop", "60"],
        &["inject", "-b", "--sysroot", root, "-i"],
        &["--to", "pipe"],
    ];
    let output = folder.path().join("output");
    let mut converted = 0;
    for recording in fixtures().into_iter().skip(1).step_by(6) {
        let before = Whole::read_file(&recording.main_file())
            .expect("a fixture")
            .recording
            .features;
        for way in ways {
            let _ = std::fs::remove_file(&output);
            if !elsewhere(way, &recording.path, &output) {
                continue;
            }
            let after = Whole::read_file(&output)
                .expect("a recording")
                .recording
                .features;
            for (id, section) in &before {
                let is_kept =
                    OF_THE_RECORDING.iter().all(|other| other != id) && !section.is_empty();
                let is_set = *id == FeatureId::CLN_SIZE && way.contains(&"--set");
                if is_kept && !is_set {
                    assert!(
                        after.get(id) == Some(section),
                        "{} {way:?}: feature {id} changed",
                        recording.name
                    );
                }
            }
            converted += 1;
        }
    }
    assert!(converted > 200, "only {converted} conversions");
}

#[test]
fn no_conversion_takes_anything_from_the_machine() {
    if !can_be_elsewhere() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let mut converted = 0;
    for recording in fixtures().into_iter().step_by(4) {
        let back = match recording.form {
            Some(Form {
                container: Container::File,
                ..
            }) => "--to=file",
            Some(Form {
                container: Container::Pipe,
                ..
            }) => "--to=pipe",
            _ => continue,
        };
        let there = if back == "--to=file" {
            "--to=pipe"
        } else {
            "--to=file"
        };
        let before = Whole::read_file(&recording.path)
            .expect("a fixture")
            .recording
            .features;
        for arguments in [vec![], vec![there], vec!["--swap-endian", "--unknown=keep"]] {
            let mut home = vec![back];
            home.extend(
                arguments
                    .iter()
                    .filter(|argument| argument.starts_with("--s") || argument.starts_with("--u")),
            );
            let _ = std::fs::remove_file(&first);
            let _ = std::fs::remove_file(&second);
            // Recordings that cannot be swapped are refused.
            if !elsewhere(&arguments, &recording.path, &first) {
                continue;
            }
            assert!(
                elsewhere(&home, &first, &second),
                "{}: {home:?}",
                recording.name
            );
            let after = Whole::read_file(&second)
                .expect("a recording")
                .recording
                .features;
            for (id, section) in &before {
                // The offsets of records, and times that a pipe does not contain.
                if matches!(*id, FeatureId::AUXTRACE | FeatureId::SAMPLE_TIME) || section.is_empty()
                {
                    continue;
                }
                assert!(
                    after.get(id) == Some(section),
                    "{} {arguments:?}: feature {id} changed",
                    recording.name
                );
            }
            converted += 1;
        }
    }
    assert!(converted > 80, "only {converted} conversions");
}
