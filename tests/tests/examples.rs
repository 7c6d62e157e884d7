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
fn run<A: AsRef<OsStr>>(name: &str, args: &[A]) -> String {
    let mut command: Command = convert::example(name);
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
    let text = run("print", &[&path]);
    assert_eq!(text.lines().count(), read(&path).records.len());
    let comm = text.lines().find(|line| line.contains("COMM")).expect("a COMM record");
    assert!(comm.contains(" pid=") && comm.contains(" comm=\""), "{comm}");
}

#[test]
fn a_recording_built_from_nothing_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("built.data");
    run("build", &[&path]);
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
    run("first_samples", &[input.as_os_str(), OsStr::new("10"), output.as_os_str()]);
    let count = |whole: &Whole, sample: bool| {
        whole.records.iter().filter(|record| (record.1 == RecordType::SAMPLE) == sample).count()
    };
    let (before, after) = (read(&input), read(&output));
    assert!(count(&before, true) > 10);
    assert_eq!(count(&after, true), 10);
    assert_eq!(count(&after, false), count(&before, false));
    assert_eq!(after.recording.features, before.recording.features);
}

#[test]
fn samples_are_counted_as_perf_counts_them() {
    for fixture in ["6.1-x86_64-file-default", "6.1-x86_64-file-z"] {
        let path = recordings::fixture(fixture).path;
        let text = run("samples_by_comm", &[&path]);
        let counts: Vec<(usize, &str)> = text
            .lines()
            .filter_map(|line| line.trim().split_once("  "))
            .map(|(count, name)| (count.parse().expect("a number"), name))
            .collect();
        for perf in perf::all().iter().filter(|perf| perf.endian == recordings::Endian::Little) {
            let mut command = perf.command();
            command.args(["script", "-F", "comm", "-i"]).arg(&path);
            let script = perf::run(command, Duration::from_secs(60)).expect("perf can be started");
            let comms: Vec<&str> = script.stdout.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            assert_eq!(comms.len(), counts.iter().map(|(count, _)| count).sum::<usize>(), "{perf}, {fixture}");
            for (count, name) in &counts {
                assert_eq!(comms.iter().filter(|comm| comm == &name).count(), *count, "{perf}, {fixture}: {name}");
            }
        }
        assert!(!counts.is_empty(), "{fixture}: {text}");
    }
}

#[test]
fn callchains_name_the_objects() {
    let path = recordings::fixture("7.2-x86_64-file-g").path;
    let text = run("callchains", &[&path]);
    let samples = read(&path).records.iter().filter(|record| record.1 == RecordType::SAMPLE).count();
    assert_eq!(text.lines().count(), samples);
    assert!(text.lines().any(|line| line.matches(';').count() > 2 && line.contains("+0x")), "{text}");
}

#[test]
fn stacks_become_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("stacks.txt"), "main;work;sort 3\nmain;print 1\n").expect("a file can be written");
    run("from_stacks", &[path("stacks.txt"), path("stacks.data"), path("perf-4242.map")]);
    let names = std::fs::read_to_string(path("perf-4242.map")).expect("names");
    assert_eq!(names, "100000 100 main\n100300 100 print\n100200 100 sort\n100100 100 work\n");
    let chains = run("callchains", &[path("stacks.data")]);
    let sort = "//anon+0x100080;//anon+0x100180;//anon+0x100280";
    let lines: Vec<&str> = chains.lines().collect();
    assert_eq!(lines, [sort, sort, sort, "//anon+0x100080;//anon+0x100380"]);
}

#[test]
fn features_are_stripped() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = recordings::fixture("6.1-x86_64-file-default").path;
    let output = folder.path().join("bare.data");
    let words = ["ARCH", "EVENT_DESC"].map(OsStr::new);
    let gone = run("strip_features", &[&[input.as_os_str(), output.as_os_str()][..], &words].concat());
    assert!(gone.contains("HOSTNAME") && !gone.contains("ARCH"), "{gone}");
    let left: Vec<u32> = read(&output).recording.features.keys().copied().collect();
    assert_eq!(left, [6, 12]);
}
