//! The fixtures are what their manifest and their names say.

use perfdata_tests::{
    manifest, per_fixture,
    recordings::{self, Container, Form, Recording},
};

per_fixture!(is_what_its_name_says);

fn is_what_its_name_says(recording: &Recording) -> Result<(), String> {
    let recorder = recording.recorder.as_ref().ok_or("no recorder in the name")?;
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
        let is_one =
            |recording: &&Recording| matches!(recording.form, Some(Form { container: is, .. }) if is == container);
        assert!(fixtures.iter().any(|r| is_one(&r)), "{container:?}");
    }
    for outside in recordings::shared() {
        let recorder = outside.recorder.as_ref();
        assert!(fixtures.iter().any(|r| r.recorder.as_ref() == recorder), "{recorder:?}");
    }
}

#[test]
fn recordings_outside_are_recognised() {
    recordings::check_all(&recordings::shared(), |recording| {
        recording.form.map(drop).ok_or("neither file nor pipe".into())
    });
}
