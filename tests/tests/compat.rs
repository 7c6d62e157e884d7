//! An older perf reads what a newer one recorded, and a newer one what an older one did.

use perfdata_convert::convert::compat::Compat;
use perfdata_core::Version;
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::judge::{self, Texts};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{self, Container, Endian, Form, PerfVersion, Recording};

fn version(text: &str) -> Version {
    text.parse().expect("a release")
}

fn perf_of(major: u16, minor: u16, endian: Endian) -> Option<&'static Perf> {
    let wanted = PerfVersion { major, minor };
    let found = perf::all().iter().find(|perf| perf.version == wanted && perf.endian == endian);
    if found.is_none() {
        eprintln!("skipped: no {endian:?}-endian perf {wanted}");
    }
    found
}

fn all_recordings() -> Vec<Recording> {
    let mut all = recordings::fixtures();
    all.extend(recordings::shared());
    all
}

fn single_recordings() -> Vec<Recording> {
    let mut all = all_recordings();
    all.retain(|r| {
        matches!(r.form, Some(Form { container: Container::File | Container::Pipe, endian: Endian::Little }))
    });
    all
}

#[test]
fn perf_6_1_reads_what_later_ones_recorded() {
    let perfs = [Endian::Little, Endian::Big].map(|endian| perf_of(6, 1, endian));
    let older = PerfVersion { major: 6, minor: 1 };
    let mut newer = all_recordings();
    newer.retain(|recording| recording.recorder.as_ref().is_some_and(|recorder| recorder.perf > older));
    recordings::check_all(&newer, |recording| {
        let endian = recording.form.map(|form| form.endian);
        let Some(perf) = perfs.iter().flatten().find(|perf| Some(perf.endian) == endian) else { return Ok(()) };
        let stage = Box::new(Compat::new(version("6.1")));
        let converted = convert(&recording.path, None, vec![stage]).map_err(|error| error.to_string())?;
        judge::compare_events(recording, &Texts::new(&converted.path(), perf))
    });
}

/// perf 7.2 refuses stat recordings whose COMPRESSED section is all zeros, build ids and CPU maps of odd size, and
/// empty sections.
#[test]
fn perf_7_2_reads_what_it_refused() {
    let Some(perf) = perf_of(7, 2, Endian::Little) else { return };
    let mut repaired = 0;
    let mut all = single_recordings();
    let old = ["quipper/piped.header_features-4.16", "quipper/armv7.perf_3.14-3.8"];
    all.extend(recordings::corpus().into_iter().filter(|r| old.contains(&r.name.as_str())));
    for recording in &all {
        let is_stat = ["stat-record", "-hw-stat"].iter().any(|what| recording.name.contains(what));
        // Tracepoints without their formats, and a file that ends in zeros.
        let is_hopeless = recording.name.contains("stat-record-group") || recording.name == "6.1-x86_64-hw-stat";
        let is_known = is_stat || recording.name.contains("file-injected") || old.contains(&recording.name.as_str());
        if !is_known || is_hopeless || Texts::new(&recording.path, perf).is_readable().expect("perf starts") {
            continue;
        }
        let stage = Box::new(Compat::new(version("7.2")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let script = Texts::new(&converted.path(), perf);
        let script = script.answer(Question::Script).expect("perf starts");
        assert!(script.success() && !script.stdout.is_empty(), "{}: {}", recording.name, script.stderr);
        repaired += 1;
    }
    assert!(repaired > 5, "only {repaired} recordings were repaired");
}

/// A recording that was killed says that it has no data; it says so still when records were changed.
#[test]
fn unfinished_recordings_stay_unfinished() {
    let unfinished: Vec<_> =
        single_recordings().into_iter().filter(|recording| recording.name.contains("file-crashed")).collect();
    for recording in &unfinished {
        let before = Whole::read_file(&recording.path).expect("a recording");
        let stage = Box::new(Compat::new(version("5.10")));
        let converted = convert(&recording.path, None, vec![stage]).expect("a conversion");
        let after = Whole::read(converted.bytes()).expect("a recording");
        assert!(after.records.len() + 9 >= before.records.len(), "{}: {} records", recording.name, after.records.len());
    }
}

/// What another option takes out is not damaged.
#[test]
fn sections_that_are_taken_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (fixture, options) in [
        ("7.2-x86_64-file-z", &["--decompress"][..]),
        ("7.2-x86_64-file-threads", &[]),
        ("7.2-x86_64-file-default", &["--drop", "CMDLINE"]),
    ] {
        let mut command = perfconv();
        command.args(["--compat", "6.1", "-f"]).args(options).arg(recordings::fixture(fixture).path);
        let said = command.arg("-o").arg(folder.path().join("out")).output().expect("perfconv runs");
        let notes = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success() && !notes.contains("damaged"), "{fixture}: {notes}");
    }
}
