//! The examples of the three crates do what they say.

use std::{ffi::OsStr, path::Path, process::Command, time::Duration};

use perfdata_core::read::RecordingReader;
use perfdata_core::record::RecordType;
use perfdata_tests::{
    convert::{self, Whole},
    perf::{self, Question},
    recordings,
};

/// What an example prints.
fn run<A: AsRef<OsStr>>(package: &str, name: &str, args: &[A]) -> String {
    let mut command: Command = convert::example(package, name).expect("the example can be built");
    command.args(args);
    let output = perf::run(command, Duration::from_secs(60)).expect("the example can be started");
    assert!(output.success(), "{name}: {}", output.stderr);
    output.stdout
}

fn read(path: &Path) -> Whole {
    Whole::read_file(path).expect("a recording")
}

#[test]
fn print_shows_every_record() {
    let path = recordings::root().join("fixtures/6.1-s390x-file-default.data");
    let text = run("perfdata-core", "print", &[&path]);
    assert_eq!(text.lines().count(), read(&path).records.len());
    let comm = text.lines().find(|line| line.contains("COMM")).expect("a COMM record");
    assert!(comm.contains(" pid=") && comm.contains(" comm=\""), "{comm}");
}

#[test]
fn a_recording_built_from_nothing_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("built.data");
    run("perfdata-write", "build", &[&path]);
    let whole = read(&path);
    let kinds: Vec<RecordType> = whole.records.iter().map(|record| record.1).collect();
    assert_eq!(kinds, [RecordType::COMM, RecordType::SAMPLE, RecordType::SAMPLE, RecordType::SAMPLE]);
    assert!(RecordingReader::open(std::fs::read(&path).expect("the file")).is_ok());

    for perf in perf::all().iter().filter(|perf| perf.endian == recordings::Endian::Little) {
        let script = perf.ask(Question::Script, &path).expect("perf can be started");
        assert_eq!(script.stdout.matches("cpu-clock").count(), 3, "{perf}: {}{}", script.stdout, script.stderr);
        let header = perf.ask(Question::Header, &path).expect("perf can be started");
        assert!(header.stdout.contains("hostname : nowhere"), "{perf}: {}", header.stdout);
    }
}

#[test]
fn a_stage_of_ones_own_keeps_the_first_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::root().join("fixtures/6.1-x86_64-file-default.data");
    let output = folder.path().join("first.data");
    run("perfdata-convert", "first_samples", &[input.as_os_str(), OsStr::new("10"), output.as_os_str()]);
    let count = |whole: &Whole, sample: bool| {
        whole.records.iter().filter(|record| (record.1 == RecordType::SAMPLE) == sample).count()
    };
    let (before, after) = (read(&input), read(&output));
    assert!(count(&before, true) > 10);
    assert_eq!(count(&after, true), 10);
    assert_eq!(count(&after, false), count(&before, false));
    assert_eq!(after.recording.features, before.recording.features);
}
