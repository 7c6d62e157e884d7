//! The fixtures match their manifest and their names.

use std::{fs, io, path::Path};

use perfdata_tests::{
    manifest, per_fixture,
    recordings::{self, Container, Form, Recording},
};

per_fixture!(is_what_its_name_says);

fn is_what_its_name_says(recording: &Recording) -> Result<(), String> {
    let recorder = recording
        .recorder
        .as_ref()
        .ok_or("no recorder in the name")?;
    let form = recording.form.ok_or("neither file nor pipe")?;
    if form.endian != recorder.endian() {
        return Err(format!("{form:?} recorded on {}", recorder.arch));
    }
    recording.header_text().ok_or("no header text beside it")?;
    recording.script_text().ok_or("no events text beside it")?;
    Ok(())
}

#[test]
fn manifest_lists_every_file() {
    let differences = manifest::differences().expect("fixtures/ can be read");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn all_containers_and_recorders_are_there() {
    let fixtures = recordings::fixtures();
    for container in [Container::File, Container::Pipe, Container::Directory] {
        let is_one = |recording: &&Recording| matches!(recording.form, Some(Form { container: is, .. }) if is == container);
        assert!(fixtures.iter().any(|r| is_one(&r)), "{container:?}");
    }
    for outside in recordings::shared() {
        let recorder = outside.recorder.as_ref();
        assert!(
            fixtures.iter().any(|r| r.recorder.as_ref() == recorder),
            "{recorder:?}"
        );
    }
}

/// Returns whether the path is invalid on Windows: a device name with any extension, or a forbidden
/// character.
fn has_bad_name(path: &Path) -> bool {
    const DEVICES: [&str; 4] = ["aux", "con", "nul", "prn"];
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    DEVICES.contains(&stem)
        || name.contains(['<', '>', ':', '"', '|', '?', '*', '\\'])
        || name.ends_with(['.', ' '])
}

fn bad_names(folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if has_bad_name(&entry.path()) {
            found.push(entry.path().display().to_string());
        }
        if entry.file_type()?.is_dir() {
            bad_names(&entry.path(), found)?;
        }
    }
    Ok(())
}

/// A clone can also be checked out on other systems.
#[test]
fn windows_can_check_out_every_file() {
    let mut found = Vec::new();
    for folder in [
        "docs",
        "fixtures",
        "fuzz/fuzz_targets",
        "packaging",
        "perfconv",
        "perfdata-convert",
        "perfdata-core",
        "perfdata-demangle",
        "perfdata-export",
        "perfdata-edit",
        "perfdata-inject",
        "perfdata-intel-pt",
        "perfdata-report",
        "perfdata-sanitize",
        "perfdata-session",
        "perfdata-symbols",
        "perfdata-write",
        "tests",
    ] {
        bad_names(&recordings::root().join(folder), &mut found)
            .expect("a folder of the repository");
    }
    assert_eq!(found, [""; 0]);
    assert!(
        has_bad_name(Path::new("src/aux"))
            && has_bad_name(Path::new("Con.rs"))
            && !has_bad_name(Path::new("auxtrace.rs"))
    );
}

#[test]
fn recordings_outside_are_recognised() {
    recordings::check_all(&recordings::shared(), |recording| {
        recording
            .form
            .map(drop)
            .ok_or("neither file nor pipe".into())
    });
}
