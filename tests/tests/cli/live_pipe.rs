//! `perfconv pipe2file` in practice: after a running `perf record` in a pipeline, and with all
//! kinds of inputs and outputs.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
};

use perfdata_core::{header::ContainerKind, record::RecordType};
use perfdata_tests::skipped;
use perfdata_tests::{
    convert::{Whole, convert, perfconv},
    perf::{self, Perf, Question},
    recordings,
    synth::{
        self,
        file::Magic,
        pipe::{Pipe, TERMINATOR},
    },
};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn a_pipe() -> PathBuf {
    recordings::fixture("6.1-x86_64-pipe-default").path
}

/// Runs `perfconv pipe2file INPUT -o OUTPUT` with further arguments and `stdin`.
fn pipe2file(input: &Path, output: &Path, more: &[&str], stdin: impl Into<Stdio>) -> Output {
    let mut command = perfconv();
    command
        .arg("pipe2file")
        .arg(input)
        .arg("-o")
        .arg(output)
        .args(more)
        .stdin(stdin);
    command.output().expect("perfconv runs")
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the result of the same conversion by the library, with a file as input.
fn expected(input: &Path) -> Vec<u8> {
    convert(input, Some(ContainerKind::File), Vec::new())
        .expect("it can be converted")
        .bytes()
}

/// Returns a perf of this machine that may record `event` here; if there is none, reports the
/// reason.
fn recorder(event: &str) -> Option<&'static Perf> {
    let perf = perf::all().iter().find(|perf| perf.name == "perf");
    let can_record = |perf: &&Perf| {
        let output = record(perf, event, "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        output.is_ok_and(|status| status.success())
    };
    let found = perf.filter(can_record);
    if found.is_none() {
        skipped::note(format_args!("a perf that may record {event}"));
    }
    found
}

/// Returns the command `perf record -o -` for a shell command.
fn record(perf: &Perf, event: &str, work: &str) -> Command {
    let mut command = perf.command();
    // Every hit of a tracepoint, every 0.1 ms of a clock.
    let period = if event.contains(':') { "1" } else { "100000" };
    command.args([
        "record", "-q", "-e", event, "-c", period, "-o", "-", "--", "sh", "-c", work,
    ]);
    command.stdin(Stdio::null());
    command
}

fn spawn(mut command: Command) -> Child {
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Records through a real pipe into `perfconv`; `tee` stores the stream.
fn record_and_convert(perf: &Perf, event: &str, folder: &Path) -> (PathBuf, PathBuf) {
    let (through, file) = (folder.join("through"), folder.join("perf.data"));
    // CPU time for the clock event, and waiting for other processes for the scheduler's tracepoint.
    let mut command = record(
        perf,
        event,
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; for n in 1 2 3 4 5 6 7 8 9; do true | cat; done",
    );
    command.stdout(Stdio::piped());
    let mut recorder = spawn(command);
    let mut command = Command::new("tee");
    command
        .arg(&through)
        .stdin(recorder.stdout.take().expect("it is piped"))
        .stdout(Stdio::piped());
    let mut tee = spawn(command);
    let output = pipe2file(
        Path::new("-"),
        &file,
        &[],
        tee.stdout.take().expect("it is piped"),
    );
    assert!(output.status.success(), "{}", message(&output));
    assert!(
        recorder.wait().is_ok_and(|status| status.success()),
        "perf record fails"
    );
    assert!(tee.wait().is_ok_and(|status| status.success()), "tee fails");
    (through, file)
}

#[test]
fn a_running_recorder_is_converted() {
    for (event, shown) in [
        ("cpu-clock", "cpu-clock:"),
        ("sched:sched_switch", "sched:sched_switch:"),
    ] {
        let Some(perf) = recorder(event) else {
            continue;
        };
        let folder = folder();
        let (through, file) = record_and_convert(perf, event, folder.path());
        assert!(
            fs::read(&file).expect("an output") == expected(&through),
            "the stream is converted otherwise"
        );

        let ask = |question, path: &Path| perf.ask(question, path).expect("perf runs");
        let (script, pipe_script) = (
            ask(Question::Script, &file),
            ask(Question::Script, &through),
        );
        assert!(script.success(), "{}", script.stderr);
        assert!(
            script
                .stdout
                .lines()
                .filter(|line| line.contains(shown))
                .count()
                > 5,
            "{}",
            script.stdout
        );
        assert_eq!(script.stdout, pipe_script.stdout);
        let header = ask(Question::Header, &file);
        assert!(
            header.stdout.contains(&format!("# event : name = {event}")),
            "{}",
            header.stdout
        );
        assert!(
            !header.stdout.contains("# time of first sample : 0.000000"),
            "{}",
            header.stdout
        );
        assert!(ask(Question::Evlist, &file).stdout.starts_with(event));
    }
}

/// perf then writes the information about the recording after the samples.
#[test]
fn a_recorder_that_synthesizes_late_is_converted() {
    let Some(perf) = recorder("cpu-clock") else {
        return;
    };
    let folder = folder();
    let (through, file) = (
        folder.path().join("through"),
        folder.path().join("perf.data"),
    );
    let mut command = perf.command();
    command.args([
        "record",
        "-q",
        "--tail-synthesize",
        "-e",
        "cpu-clock",
        "-o",
        "-",
        "--",
    ]);
    command.args([
        "sh",
        "-c",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
    ]);
    let stream = File::create(&through).expect("a temporary file");
    let status = command
        .stdin(Stdio::null())
        .stdout(stream)
        .status()
        .expect("perf runs");
    assert!(status.success());

    let kinds: Vec<_> = Whole::read_file(&through)
        .expect("it is read")
        .records
        .iter()
        .map(|record| record.1)
        .collect();
    let sample = kinds.iter().position(|&kind| kind == RecordType::SAMPLE);
    let events = kinds
        .iter()
        .position(|&kind| kind == RecordType::HEADER_ATTR);
    assert!(
        sample < events && sample.is_some(),
        "the events are not late"
    );

    let output = pipe2file(&through, &file, &[], Stdio::null());
    assert!(output.status.success(), "{}", message(&output));
    let script = perf.ask(Question::Script, &file).expect("perf runs");
    assert!(
        script.success() && script.stdout.contains("cpu-clock:"),
        "{}",
        script.stderr
    );
    let header = perf.ask(Question::Header, &file).expect("perf runs");
    assert!(
        header.stdout.contains("# event : name = cpu-clock"),
        "{}",
        header.stdout
    );
}

#[test]
fn a_stream_that_ends_inside_a_record_is_converted_up_to_there() {
    let folder = folder();
    let whole = fs::read(a_pipe()).expect("a fixture");
    let (cut, file) = (folder.path().join("cut"), folder.path().join("perf.data"));
    fs::write(&cut, &whole[..whole.len() - 3]).expect("a temporary file");

    let output = pipe2file(
        Path::new("-"),
        &file,
        &[],
        File::open(&cut).expect("a temporary file"),
    );
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    assert!(
        message(&output).contains("warning: "),
        "{}",
        message(&output)
    );
    let (whole, converted) = (expected(&a_pipe()), fs::read(&file).expect("an output"));
    let (whole, converted) = (
        Whole::read(whole).expect("a file"),
        Whole::read(converted).expect("a file"),
    );
    assert_eq!(converted.records.len() + 1, whole.records.len());
    assert!(whole.stream.starts_with(&converted.stream));
    assert_eq!(
        converted.stream.len(),
        converted.records_end,
        "what is no record has no place in a file"
    );
    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == recordings::Endian::Little)
    {
        let script = perf.ask(Question::Script, &file).expect("perf runs");
        assert!(
            script.success() && script.stdout.contains("cpu-clock:"),
            "{perf}: {}",
            script.stderr
        );
    }
}

#[test]
fn what_is_no_recording_leaves_no_output() {
    let folder = folder();
    let basic = synth::file::basic(false);
    let features = Pipe::new(false, Magic::V2)
        .feature(3, &basic.features[0].1)
        .terminator(TERMINATOR);
    let inputs: [(&str, Vec<u8>); 5] = [
        ("empty", Vec::new()),
        ("text", b"perf.data is not what this is\n".repeat(10)),
        ("header alone", Pipe::new(false, Magic::V2).bytes),
        (
            "no attributes",
            features
                .records(&synth::file::basic_records(false, &basic.events[0]))
                .bytes,
        ),
        ("cut header", b"PERFILE2\x10".to_vec()),
    ];
    for (name, bytes) in inputs {
        let input = folder.path().join("input");
        fs::write(&input, bytes).expect("a temporary file");
        for existing in [false, true] {
            let target = folder.path().join("target");
            if existing {
                fs::write(&target, "precious").expect("a temporary file");
            }
            let from_stdin = File::open(&input).expect("a temporary file");
            for output in [
                pipe2file(&input, &target, &["--force"], Stdio::null()),
                pipe2file(Path::new("-"), &target, &["--force"], from_stdin),
            ] {
                assert_eq!(
                    output.status.code(),
                    Some(1),
                    "{name}: {}",
                    message(&output)
                );
                assert!(
                    message(&output).starts_with("perfconv: "),
                    "{name}: {}",
                    message(&output)
                );
                assert_eq!(target.exists(), existing, "{name}");
                assert!(
                    !existing || fs::read(&target).is_ok_and(|left| left == b"precious"),
                    "{name}"
                );
                let count = fs::read_dir(&folder).expect("the folder is there").count();
                assert_eq!(
                    count,
                    1 + usize::from(existing),
                    "{name}: something is left behind"
                );
            }
            drop(fs::remove_file(&target));
        }
    }
}

#[test]
fn an_existing_output_needs_force() {
    let folder = folder();
    let target = folder.path().join("target");
    fs::write(&target, "precious").expect("a temporary file");
    let output = pipe2file(&a_pipe(), &target, &[], Stdio::null());
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert!(message(&output).contains("--force"), "{}", message(&output));
    assert_eq!(fs::read(&target).expect("still there"), b"precious");
    let output = pipe2file(&a_pipe(), &target, &["-f", "-q"], Stdio::null());
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        message(&output)
    );
    assert!(fs::read(&target).expect("an output") == expected(&a_pipe()));
}

#[test]
fn the_input_is_never_the_output() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::copy(a_pipe(), path("input")).expect("a temporary file");
    fs::hard_link(path("input"), path("hard")).expect("a link");
    symlink(path("input"), path("soft")).expect("a link");
    for target in ["input", "hard", "soft"] {
        let output = pipe2file(&path("input"), &path(target), &["--force"], Stdio::null());
        assert_eq!(
            output.status.code(),
            Some(2),
            "{target}: {}",
            message(&output)
        );
        assert!(
            fs::read(path("input")).expect("still there") == fs::read(a_pipe()).expect("a fixture"),
            "{target}"
        );
    }
}

#[test]
fn what_the_system_refuses_is_no_fault_of_the_input() {
    let folder = folder();
    let nowhere = folder.path().join("nowhere");
    let output = pipe2file(&nowhere, &folder.path().join("target"), &[], Stdio::null());
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    let output = pipe2file(&a_pipe(), &nowhere.join("target"), &[], Stdio::null());
    assert_eq!(output.status.code(), Some(2), "{}", message(&output));
    assert_eq!(
        fs::read_dir(&folder).expect("the folder is there").count(),
        0
    );
}

#[test]
fn a_fifo_is_read() {
    let folder = folder();
    let (fifo, file) = (folder.path().join("fifo"), folder.path().join("perf.data"));
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .is_ok_and(|status| status.success())
    );
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            fs::write(&fifo, fs::read(a_pipe()).expect("a fixture")).expect("someone reads")
        });
        pipe2file(&fifo, &file, &[], Stdio::null())
    });
    assert!(output.status.success(), "{}", message(&output));
    assert!(fs::read(&file).expect("an output") == expected(&a_pipe()));
}

#[test]
fn a_file_as_standard_input_is_read_from_where_it_stands() {
    let folder = folder();
    let target = folder.path().join("perf.data");
    let mut input = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(folder.path().join("input"))
        .expect("new");
    input.write_all(b"12345").expect("a temporary file");
    input
        .write_all(&fs::read(a_pipe()).expect("a fixture"))
        .expect("a temporary file");
    input.seek(SeekFrom::Start(5)).expect("a temporary file");
    let output = pipe2file(Path::new("-"), &target, &[], input);
    assert!(output.status.success(), "{}", message(&output));
    assert!(fs::read(&target).expect("an output") == expected(&a_pipe()));
}

/// A file's header points to data after the records, so a file that is read as a stream is stored
/// until it is complete.
#[test]
fn a_file_through_a_pipe_is_read() {
    let original = recordings::fixture("6.1-x86_64-file-default").path;
    let mut command = Command::new("cat");
    command.arg(&original).stdout(Stdio::piped());
    let mut cat = spawn(command);
    let output = pipe2file(
        Path::new("-"),
        Path::new("-"),
        &[],
        cat.stdout.take().expect("it is piped"),
    );
    assert!(cat.wait().is_ok_and(|status| status.success()));
    assert!(output.status.success(), "{}", message(&output));
    assert!(
        output.stdout == fs::read(&original).expect("a fixture"),
        "a file stays as it is"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut command = perfconv();
    command
        .arg("pipe2file")
        .arg(a_pipe())
        .args(["-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = spawn(command);
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("perfconv runs");
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
}
