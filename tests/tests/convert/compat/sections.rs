//! Recordings that are not finished, and sections that are removed.

use perfdata_convert::stages::compat::Compat;
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::recordings;

use super::{single_recordings, version};

/// The header of a killed recording contains a data size of 0; this is preserved if records are
/// changed.
#[test]
fn unfinished_recordings_stay_unfinished() {
    let unfinished: Vec<_> = single_recordings()
        .into_iter()
        .filter(|recording| recording.name.contains("file-crashed"))
        .collect();
    for recording in &unfinished {
        let before = Whole::read_file(&recording.path).expect("a recording");
        let stage = Box::new(Compat::new(version("5.10")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let after = Whole::read(converted.bytes()).expect("a recording");
        assert!(
            after.records.len() + 9 >= before.records.len(),
            "{}: {} records",
            recording.name,
            after.records.len()
        );
    }
}

/// Sections that another option removes are not treated as damaged.
#[test]
fn sections_that_are_taken_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (fixture, options) in [
        ("7.2-x86_64-file-z", &["--decompress"][..]),
        ("7.2-x86_64-file-threads", &[]),
        ("7.2-x86_64-file-default", &["--drop", "CMDLINE"]),
    ] {
        let mut command = perfconv();
        command
            .args(["--compat", "6.1", "-f"])
            .args(options)
            .arg(recordings::fixture(fixture).path);
        let said = command
            .arg("-o")
            .arg(folder.path().join("out"))
            .output()
            .expect("perfconv runs");
        let notes = String::from_utf8_lossy(&said.stderr);
        assert!(
            said.status.success() && !notes.contains("damaged"),
            "{fixture}: {notes}"
        );
    }
}
