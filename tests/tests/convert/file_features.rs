//! The feature sections that readers of a file rely on: every written file has them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata_convert::io::{Input, Output};
use perfdata_convert::recover::Recover;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::RecordType;
use perfdata_tests::convert::{Converted, Whole, convert};
use perfdata_tests::recordings::{fixture, fixtures_dir};
use perfdata_tests::{perf, skipped};
use tempfile::TempDir;

const HOSTNAME: FeatureId = FeatureId::HOSTNAME;
const ARCH: FeatureId = FeatureId::ARCH;
const EVENT_DESC: FeatureId = FeatureId::EVENT_DESC;

/// Returns the host name, the architecture and the names of events, as far as they are there.
fn features(path: &Path) -> (Option<String>, Option<String>, Option<Vec<String>>) {
    let recording = Whole::read_file(path).expect("a recording").recording;
    let value = |id| {
        let section = recording.feature(id)?;
        Some(section.expect("it can be read").value)
    };
    let host = value(HOSTNAME).map(|value| match value {
        Feature::Hostname(host) => host.to_string(),
        other => panic!("{other:?}"),
    });
    let arch = value(ARCH).map(|value| match value {
        Feature::Arch(arch) => arch.to_string(),
        other => panic!("{other:?}"),
    });
    let names = value(EVENT_DESC).map(|value| match value {
        Feature::EventDescs(descs) => {
            let names = descs.events.0.iter();
            names.map(|event| event.name.to_string()).collect()
        }
        other => panic!("{other:?}"),
    });
    (host, arch, names)
}

/// Returns the recording of a fixture as a killed perf leaves it: without the size of the records,
/// and without features.
fn killed(name: &str, folder: &TempDir) -> PathBuf {
    let mut bytes = fs::read(fixture(name).path).expect("a fixture");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let end = word(40) + word(48);
    bytes.truncate(end as usize);
    bytes[48..56].fill(0);
    bytes[72..104].fill(0);
    let path = folder.path().join("killed.data");
    fs::write(&path, bytes).expect("a file");
    path
}

fn recovered(path: &Path) -> (PathBuf, Vec<String>) {
    let output = path.with_extension("recovered");
    let to = Output::create(&output, path, true).expect("an output");
    let input = Input::open(path).expect("it opens");
    let recovery = Recover::default().run(input, to.synced(false));
    (output, recovery.expect("it is recovered").summary.notes)
}

/// Returns what `perf script` shows, or the error.
fn samples_of(perf: &perf::Perf, path: &Path) -> Result<String, String> {
    let mut command = perf.command();
    command
        .args(["script", "-F", "comm,tid,time,event,ip", "-i"])
        .arg(path);
    let said = perf::run(command).expect("perf runs");
    let is_shown = said.success();
    is_shown.then_some(said.stdout).ok_or(said.stderr)
}

/// Returns what `perf script` of each perf shows, of both byte orders.
fn samples(path: &Path) -> Vec<(&'static str, String)> {
    let all = perf::all().iter().map(|perf| {
        let shown = samples_of(perf, path);
        (
            perf.name,
            shown.unwrap_or_else(|said| panic!("{perf}: {said}")),
        )
    });
    all.collect()
}

/// A recovered recording is read by perfs of both byte orders, in both byte orders.
#[test]
fn recovered_recordings_are_read_in_both_byte_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let killed = killed("6.1-x86_64-file-default", &folder);
    assert_eq!(features(&killed), (None, None, None));
    let (path, notes) = recovered(&killed);
    let note = "added HOSTNAME, ARCH, EVENT_DESC";
    assert!(notes.iter().any(|line| line.starts_with(note)), "{notes:?}");
    let names = vec!["cpu-clock".to_owned()];
    let expected = (Some(String::new()), Some("x86_64".into()), Some(names));
    assert_eq!(features(&path), expected);

    let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
    let swapped = convert(&path, None, vec![swap]).expect("it is swapped");
    let of_fixture = samples(&fixture("6.1-x86_64-file-default").path);
    if of_fixture.is_empty() {
        return skipped::note("perf");
    }
    for path in [path, swapped.path()] {
        assert_eq!(samples(&path), of_fixture);
    }
}

/// Returns the parser of hotspot.
fn hotspot() -> Option<PathBuf> {
    const NAME: &str = "hotspot-perfparser";
    let folders = ["/usr/libexec", "/usr/lib/libexec", "/usr/local/libexec"];
    let folders = folders.map(PathBuf::from).into_iter();
    let machines = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let machines = machines.map(|entry| entry.path().join("libexec"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = folders
        .chain(machines)
        .chain(std::env::split_paths(&path).collect::<Vec<_>>())
        .map(|folder| folder.join(NAME));
    all.find(|program| program.is_file())
}

/// The parser of hotspot finds the events of a recovered recording.
#[test]
fn hotspot_finds_the_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let recovered = recovered(&killed("6.1-x86_64-file-default", &folder)).0;
    let Some(parser) = hotspot() else {
        return skipped::note("hotspot-perfparser");
    };
    let output = folder.path().join("parsed");
    let mut command = Command::new("timeout");
    command
        .arg("60")
        .arg(&parser)
        .env("QT_QPA_PLATFORM", "offscreen")
        .args([OsStr::new("--input"), recovered.as_os_str()])
        .args([OsStr::new("--output"), output.as_os_str()]);
    let said = perf::run(command).expect("it runs");
    assert!(said.success(), "{}", said.stderr);
    let bytes = fs::read(&output).expect("its output");
    let mut words = bytes.windows(b"cpu-clock".len());
    assert!(words.any(|word| word == b"cpu-clock"));
}

/// Returns the events in the text of a perf, by line.
fn events(perf: &perf::Perf, path: &Path) -> Vec<String> {
    let mut command = perf.command();
    command.args(["script", "-F", "event", "-i"]).arg(path);
    let said = perf::run(command).expect("perf runs");
    assert!(
        said.success(),
        "{perf}, {}: {}",
        path.display(),
        said.stderr
    );
    said.stdout
        .lines()
        .map(|line| line.trim().to_owned())
        .collect()
}

/// Every perf opens a recovered recording with tracepoints, and shows all samples.
#[test]
fn recovered_recordings_with_tracepoints_are_opened() {
    let defect = fixtures_dir().join("defects/killed-with-tracepoint.data");
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("killed.data");
    fs::copy(&defect, &input).expect("a file");
    let (bare, notes) = recovered(&input);
    let note = "added TRACING_DATA with the common fields";
    assert!(notes.iter().any(|line| line.starts_with(note)), "{notes:?}");
    let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
    let swapped = convert(&bare, None, vec![swap]).expect("it is swapped");

    // Only this one has samples.
    let with_samples = recovered(&killed("6.1-i386-file-tp-mixed", &folder)).0;

    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    for perf in perf::all() {
        for path in [&bare, &swapped.path(), &with_samples] {
            assert_eq!(events(perf, path).len(), samples_in(path), "{perf}");
        }
    }
}

/// Returns the result of dropping a section.
fn without(name: &str, path: &Path) -> Converted {
    let edit = Edit::new([(name.to_owned(), Change::Drop)]).expect("a feature");
    convert(path, None, vec![Box::new(edit)]).expect("it is converted")
}

/// A dropped section is replaced by what readers need of it.
#[test]
fn dropped_sections_leave_what_readers_need() {
    let plain = fixture("6.1-x86_64-file-default").path;
    let (_, arch, names) = features(&plain);
    let dropped = without("HOSTNAME", &plain);
    let expected = (Some(String::new()), arch.clone(), names.clone());
    assert_eq!(features(&dropped.path()), expected);
    let note = "added HOSTNAME, which readers of files rely on";
    assert_eq!(dropped.summary.notes, [note]);
    let dropped = without("EVENT_DESC", &plain);
    assert_eq!(features(&dropped.path()).2, names);
    // Nobody invents an architecture.
    assert_eq!(features(&without("ARCH", &plain).path()).1, None);

    let tracepoints = fixture("6.1-i386-file-tp-mixed").path;
    let dropped = without("TRACING_DATA", &tracepoints);
    let [note] = &dropped.summary.notes[..] else {
        panic!("{:?}", dropped.summary.notes);
    };
    assert!(note.starts_with("added TRACING_DATA with the common fields"));
    for perf in perf::all() {
        let shown = events(perf, &dropped.path()).len();
        assert_eq!(shown, samples_in(&tracepoints), "{perf}");
    }
}

/// An undamaged file that lacked a section keeps lacking it, except HOSTNAME in another byte order.
#[test]
fn nothing_is_added_to_files_that_need_no_more_than_before() {
    let made_by_perf = fixture("6.12-x86_64-file-pipe-conv").path;
    assert_eq!(features(&made_by_perf).0, None);
    let edited = without("CMDLINE", &made_by_perf);
    assert_eq!(features(&edited.path()).0, None);
    let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
    let swapped = convert(&made_by_perf, None, vec![swap]).expect("it is swapped");
    assert_eq!(features(&swapped.path()).0, Some(String::new()));
    for perf in perf::all() {
        // Some perfs are too old for the attributes, or of the other byte order.
        if let Ok(expected) = samples_of(perf, &made_by_perf) {
            assert_eq!(samples_of(perf, &swapped.path()), Ok(expected), "{perf}");
        }
    }
}

/// A stream of `perf stat` has no sections, and the file is read by perfs of both byte orders.
#[test]
fn files_of_streams_have_them() {
    let stream = fixture("6.1-x86_64-pipe-stat").path;
    let file = Some(ContainerKind::File);
    let made = convert(&stream, file, Vec::new()).expect("it is converted");
    let (host, _, names) = features(&made.path());
    assert_eq!(host, Some(String::new()));
    assert!(names.is_some());
    let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
    let swapped = convert(&stream, file, vec![swap]).expect("it is converted");
    let counts = |perf: &perf::Perf, path: &Path| {
        let mut command = perf.command();
        command.args(["stat", "report", "-i"]).arg(path);
        let said = perf::run(command).expect("perf runs");
        assert!(said.success(), "{perf}: {}", said.stderr);
        said.stderr
            .lines()
            .filter(|line| line.contains("msec"))
            .count()
    };
    for perf in perf::all() {
        let all = [made.path(), swapped.path()].map(|path| counts(perf, &path));
        assert_eq!(all[0], all[1], "{perf}");
    }
}

/// Returns the notes of `verify` about missing sections.
fn missing(path: &Path) -> Vec<String> {
    let report = Report::of(Input::open(path).expect("it opens")).expect("it is read");
    let notes = report.findings.into_iter();
    let notes = notes.filter(|finding| finding.severity == Severity::Note);
    let meanings = notes.map(|finding| finding.meaning);
    meanings
        .filter(|meaning| meaning.contains("no ") || meaning.contains("without"))
        .collect()
}

#[test]
fn verify_names_who_misses_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let killed = folder.path().join("killed.data");
    fs::copy(fixture("7.2-x86_64-file-crashed").path, &killed).expect("a file");
    let expected = [
        "no HOSTNAME: a perf of the other byte order cannot read the feature sections",
        "no EVENT_DESC: hotspot shows no events",
    ];
    assert_eq!(missing(&killed), expected);
    assert_eq!(missing(&recovered(&killed).0), [""; 0]);
    let file = Some(ContainerKind::File);
    let stat = fixture("6.1-x86_64-pipe-stat").path;
    let stat = convert(&stat, file, Vec::new()).expect("it is converted");
    let expected = ["EVENT_DESC without ARCH, in counts of perf stat: hotspot does not end"];
    assert_eq!(missing(&stat.path()), expected);
}

/// Returns the number of samples in a recording.
fn samples_in(path: &Path) -> usize {
    let whole = Whole::read_file(path).expect("a recording");
    let kinds = whole.records.iter().map(|(_, kind)| *kind);
    kinds.filter(|kind| *kind == RecordType::SAMPLE).count()
}
