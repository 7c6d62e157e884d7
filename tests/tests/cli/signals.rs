//! Signals: the first Ctrl-C lets a stream end normally, the second ends the command. In all cases,
//! no temporary file remains.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use perfdata_tests::{
    convert::{Whole, perfconv},
    perf::{self, Perf, Question},
    recordings, skipped, synth,
};

use crate::{
    patience::patiently,
    stalled::{Stalled, TIMEOUT, end, names, said, signals_arrive},
};

/// Signals that let a stream end normally.
const ASKING: [(&str, i32); 3] = [("INT", 2), ("TERM", 15), ("HUP", 1)];

fn pipe() -> Vec<u8> {
    fs::read(recordings::fixture("7.2-x86_64-pipe-default").path).expect("a fixture")
}

/// Returns every command that reads a stream and writes, with the stream.
fn commands() -> Vec<(&'static str, Vec<u8>)> {
    let file = fs::read(recordings::fixture("6.1-x86_64-file-default").path).expect("a fixture");
    vec![
        ("convert - -o out", pipe()),
        ("pipe2file - -o out", pipe()),
        ("pipe2file --compress - -o out", pipe()),
        ("file2pipe - -o out", file.clone()),
        ("--swap-endian - -o out", file),
        ("--to dir - -o out", pipe()),
        ("inject -b -i - -o out", pipe()),
        ("recover - -o out", pipe()),
        ("extract-aux - -o out", synth::pipe::with_aux(false)),
        ("split --by tid - -o out", pipe()),
        ("info - --html out", pipe()),
    ]
}

fn command(words: &str, folder: &Path) -> Command {
    let mut command = perfconv();
    command.args(words.split(' ')).current_dir(folder);
    command
}

/// Returns the bytes of a file, or of all files in a folder.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = match path.is_dir() {
        true => names(path).into_iter().map(PathBuf::from).collect(),
        false => vec![PathBuf::new()],
    };
    let read = |name: &PathBuf| match name.as_os_str().is_empty() {
        true => fs::read(path),
        false => fs::read(path.join(name)),
    };
    files
        .into_iter()
        .map(|name| (name.clone(), read(&name).expect("an output")))
        .collect()
}

#[test]
fn the_first_signal_lets_a_stream_come_to_its_end() {
    if !signals_arrive() {
        return;
    }
    for (words, stream) in commands() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("out");
        let remove = || {
            if out.is_dir() {
                fs::remove_dir_all(&out)
            } else {
                fs::remove_file(&out)
            }
        };
        let done = Stalled::new(command(words, folder.path()), &stream).finish();
        assert!(done.status.success(), "{words}: {}", said(&done));
        let expected = contents(&out);
        remove().expect("an output");
        for (signal, _) in ASKING {
            let mut run = Stalled::new(command(words, folder.path()), &stream);
            run.send(signal);
            assert!(run.waits(), "{words}: SIG{signal} ends it");
            let done = run.finish();
            assert!(
                done.status.success(),
                "{words}: {}: {}",
                done.status,
                said(&done)
            );
            assert!(
                contents(&out) == expected,
                "{words}: another output after SIG{signal}"
            );
            assert_eq!(names(folder.path()), ["out"], "{words}");
            remove().expect("an output");
        }
    }
}

/// Commands that only read a stream also end normally at its end.
#[test]
fn reports_on_a_stream_are_complete() {
    if !signals_arrive() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for words in ["-", "info -", "verify -", "dump -"] {
        let whole = Stalled::new(command(words, folder.path()), &pipe()).finish();
        let mut run = Stalled::new(command(words, folder.path()), &pipe());
        run.send("INT");
        assert!(run.waits(), "{words}");
        let done = run.finish();
        assert!(
            done.status.success() && done.stdout == whole.stdout,
            "{words}: {}",
            said(&done)
        );
    }
}

#[test]
fn the_second_signal_ends_the_command() {
    if !signals_arrive() {
        return;
    }
    for (words, stream) in commands() {
        for (signal, number) in ASKING {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let is_directory = ["--to dir", "extract-aux", "split"]
                .iter()
                .any(|start| words.starts_with(start));
            if !is_directory {
                fs::write(folder.path().join("out"), "before").expect("a temporary file");
            }
            let words = match words.split(' ').next() {
                Some("inject") => words.to_owned(),
                _ => format!("{words} -f"),
            };
            let run = Stalled::new(command(&words, folder.path()), &stream);
            run.send(signal);
            assert_eq!(
                run.insist(signal, &words).signal(),
                Some(number),
                "{words}: SIG{signal}"
            );
            if is_directory {
                assert_eq!(names(folder.path()), [""; 0], "{words}: SIG{signal}");
            } else {
                assert_eq!(names(folder.path()), ["out"], "{words}: SIG{signal}");
                assert_eq!(
                    fs::read(folder.path().join("out")).expect("it is there"),
                    b"before",
                    "{words}"
                );
            }
        }
    }
}

/// A stream that ends within a record, as of a killed recorder, is complete except for this record.
#[test]
fn a_stream_may_end_in_a_record_after_a_signal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stream = pipe();
    let run = Stalled::new(
        command("pipe2file - -o out", folder.path()),
        &stream[..stream.len() - 3],
    );
    run.send("INT");
    let done = run.finish();
    assert!(
        done.status.success() && said(&done).contains("warning"),
        "{}",
        said(&done)
    );
    assert!(folder.path().join("out").exists());
}

/// `timeout` sends a signal to the process and to its group, so it arrives twice.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    for signal in ["INT", "TERM", "HUP"] {
        patiently(|factor| comes_twice_at_once(signal, factor));
    }
}

fn comes_twice_at_once(signal: &str, factor: u32) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("in"), pipe()).expect("a temporary file");
    let (end, sent) = (factor, f64::from(factor) * 0.4);
    let script = format!(
        "(head -c 5000 in; sleep {end}; tail -c +5001 in) | timeout -s {signal} {sent} \"$0\" pipe2file - -f -o out"
    );
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .arg(perfconv().get_program())
        .current_dir(&folder);
    let done = shell.output().expect("bash runs");
    // The exit status of `timeout` if it had to send the signal.
    assert_eq!(done.status.code(), Some(124), "{}", said(&done));
    assert!(
        said(&done).contains(" records, "),
        "SIG{signal}: {}",
        said(&done)
    );
}

/// As with `nohup`, or in the background of a script.
#[test]
fn what_is_ignored_stays_ignored() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut shell = Command::new("bash");
    shell.args([
        "-c",
        "trap '' INT TERM HUP QUIT USR1; exec \"$0\" pipe2file - -o out",
    ]);
    shell.arg(perfconv().get_program()).current_dir(&folder);
    let mut run = Stalled::new(shell, &pipe());
    for signal in ["INT", "TERM", "HUP", "QUIT", "USR1"] {
        for _ in 0..3 {
            run.send(signal);
            assert!(run.waits(), "SIG{signal} ends it");
        }
    }
    let done = run.finish();
    assert!(
        done.status.success() && folder.path().join("out").exists(),
        "{}",
        said(&done)
    );
}

/// Signals that are not sent on purpose also leave no temporary files, both for a file as output,
/// and for a directory, which has a name from the start.
#[test]
fn other_signals_leave_nothing() {
    if !signals_arrive() {
        return;
    }
    let rest = [
        "QUIT", "ABRT", "ALRM", "VTALRM", "PROF", "USR1", "USR2", "XCPU", "IO", "PWR", "STKFLT",
        "SYS", "TRAP",
    ];
    let numbers = [3, 6, 14, 26, 27, 10, 12, 24, 29, 30, 16, 31, 5];
    let real_time = [34, 50, 64].map(|number| (number.to_string(), number));
    let all = rest
        .into_iter()
        .map(str::to_owned)
        .zip(numbers)
        .chain(real_time);
    for (signal, number) in all {
        for words in ["pipe2file - -f -o out", "--to dir - -f -o new"] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            fs::write(folder.path().join("out"), "before").expect("a temporary file");
            let mut shell = Command::new("bash");
            shell
                .args(["-c", &format!("ulimit -c 0; exec \"$0\" {words}")])
                .arg(perfconv().get_program());
            shell.current_dir(&folder);
            let run = Stalled::new(shell, &pipe());
            run.send(&signal);
            let status = run.end(words);
            assert_eq!(
                status.signal(),
                Some(number),
                "{words}: SIG{signal}: {status}"
            );
            assert_eq!(names(folder.path()), ["out"], "{words}: SIG{signal}");
            assert_eq!(
                fs::read(folder.path().join("out")).expect("it is there"),
                b"before",
                "{words}"
            );
        }
    }
    // These signals indicate errors of the output, and do not end the command.
    for signal in ["PIPE", "XFSZ"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut run = Stalled::new(command("pipe2file - -o out", folder.path()), &pipe());
        run.send(signal);
        assert!(run.waits(), "SIG{signal} ends it");
        assert!(run.finish().status.success());
    }
}

/// On systems with unnamed files.
#[test]
fn not_even_sigkill_leaves_a_file() {
    // A file system in memory: every Linux supports unnamed files there.
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        skipped::note("/dev/shm");
        return;
    };
    for words in ["pipe2file - -o out", "recover - -o out", "convert - -o out"] {
        let run = Stalled::new(command(words, folder.path()), &pipe());
        assert_eq!(names(folder.path()), [""; 0], "{words}");
        run.send("KILL");
        assert_eq!(run.end(words).signal(), Some(9), "{words}");
        assert_eq!(names(folder.path()), [""; 0], "{words}");
    }
}

/// A shell command on a separate terminal.
struct Terminal {
    script: std::process::Child,
    keys: std::process::ChildStdin,
    /// What the terminal has shown.
    shown: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl Terminal {
    fn new(commands: &str, folder: &Path) -> Option<Self> {
        let mut script = Command::new("script");
        script
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                commands,
                "/dev/null",
            ])
            .current_dir(folder);
        // The commands are for bash, independent of the user's shell.
        script
            .env("SHELL", "/bin/bash")
            .env("TERM", "xterm")
            .env("PERFCONV", perfconv().get_program());
        script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let Ok(mut script) = script.spawn() else {
            skipped::note("script, which makes a terminal");
            return None;
        };
        let keys = script.stdin.take().expect("a pipe");
        let mut output = script.stdout.take().expect("a pipe");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let to = shown.clone();
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = output.read(&mut bytes) {
                to.lock()
                    .expect("no panic")
                    .extend_from_slice(&bytes[..len]);
            }
        });
        Some(Terminal {
            script,
            keys,
            shown,
            reader,
        })
    }

    /// Waits until the terminal shows `text`.
    fn wait_for(&self, text: &str) {
        let shows = || {
            let shown = self.shown.lock().expect("no panic");
            String::from_utf8_lossy(&shown).contains(text)
        };
        wait_until(text, shows);
    }

    fn control_c(&mut self) {
        self.keys
            .write_all(b"\x03")
            .and_then(|()| self.keys.flush())
            .expect("the terminal is there");
    }

    /// Returns the contents of the terminal at the end.
    fn text(mut self) -> String {
        end(&mut self.script, "on a terminal");
        self.reader.join().expect("no panic");
        String::from_utf8_lossy(&self.shown.lock().expect("no panic")).into_owned()
    }
}

/// Longer than the interval in which two Ctrl-C count as one.
const APART: Duration = Duration::from_millis(400);

/// Waits until `is_so` returns true.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "{what}: not after {TIMEOUT:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether perfconv runs in `folder`, has a handler for `signal`, and has read at least
/// `read` bytes, including its libraries.
fn is_ready(folder: &Path, signal: i32, read: u64) -> bool {
    let folder = folder.canonicalize().expect("it is there");
    let has_handler = |process: &Path| -> Option<bool> {
        if process.join("exe").read_link().ok()?.file_name()? != "perfconv"
            || process.join("cwd").read_link().ok()? != folder
        {
            return None;
        }
        let number = |file: &str, field: &str, radix: u32| {
            let text = fs::read_to_string(process.join(file)).ok()?;
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
            u64::from_str_radix(value.trim(), radix).ok()
        };
        let caught = number("status", "SigCgt", 16)? | number("status", "SigBlk", 16)?;
        Some(caught >> (signal - 1) & 1 == 1 && number("io", "rchar", 10)? >= read)
    };
    let processes = fs::read_dir("/proc")
        .expect("processes are there")
        .flatten();
    processes
        .into_iter()
        .any(|process| has_handler(&process.path()) == Some(true))
}

/// Size of the first part of a stream in bytes, less than what a pipe holds.
const FIRST: usize = 50_000;

/// Returns a stream of more than [`FIRST`] bytes.
fn long_pipe() -> Vec<u8> {
    let stream = pipe();
    let whole = Whole::read(stream.clone()).expect("a recording");
    [stream, whole.stream.repeat(8)].concat()
}

/// Waits until perfconv has read most of the first part of a stream, more than the program itself
/// is.
fn wait_for_stream(folder: &Path, signal: i32) {
    wait_until("a stream", || is_ready(folder, signal, 40_000));
}

const FINISHING: &str = "perfconv: finishing; press Ctrl-C again to abort";

/// A producer that ends on Ctrl-C, as perf does, and one that ignores it.
#[test]
fn control_c_on_a_terminal() {
    if !signals_arrive() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, end) = (folder.path().join("in"), folder.path().join("end"));
    fs::write(&input, long_pipe()).expect("a temporary file");
    // The producer delays its end until the message has appeared.
    let producer = format!(
        "(trap 'until [ -e end ]; do sleep 0.05; done; tail -c +{} in; exit' INT; head -c {FIRST} in; \
        while :; do sleep 0.05; done)",
        FIRST + 1
    );
    let interrupt = |terminal: &mut Terminal| {
        wait_for_stream(folder.path(), 2);
        terminal.control_c();
        terminal.wait_for(FINISHING);
        fs::write(&end, "").expect("a temporary file");
    };
    let commands = format!("{producer} | \"$PERFCONV\" pipe2file - -o out; echo status $?");
    let Some(mut terminal) = Terminal::new(&commands, folder.path()) else {
        return;
    };
    interrupt(&mut terminal);
    let text = terminal.text();
    assert!(
        text.contains(" records, ") && text.contains("status 0"),
        "{text}"
    );
    fs::remove_file(&end).expect("it is there");

    // A report that will go to a pager does not delay the message.
    let commands = format!("{producer} | PAGER=cat \"$PERFCONV\" info -; echo status $?");
    let mut terminal = Terminal::new(&commands, folder.path()).expect("there is one");
    interrupt(&mut terminal);
    let text = terminal.text();
    let [message, report] = [FINISHING, "command line:"].map(|part| text.find(part));
    assert!(
        message.is_some() && message < report && text.contains("status 0"),
        "{text}"
    );
    fs::remove_file(&end).expect("it is there");

    // The progress bar displayed by then is removed, and so is the partial output.
    let producer =
        format!("(trap '' INT; head -c {FIRST} in; until [ -e end ]; do sleep 0.05; done)");
    let commands =
        format!("trap : INT; {producer} | \"$PERFCONV\" pipe2file - -o other; echo status $?");
    let mut terminal = Terminal::new(&commands, folder.path()).expect("there is one");
    wait_for_stream(folder.path(), 2);
    terminal.wait_for("B/s");
    terminal.control_c();
    terminal.wait_for(FINISHING);
    thread::sleep(APART);
    terminal.control_c();
    wait_until("the end", || !is_ready(folder.path(), 2, 0));
    fs::write(&end, "").expect("a temporary file");
    let text = terminal.text();
    assert!(text.contains("status 130"), "{text:?}");
    let bar = text
        .rfind("B/s")
        .unwrap_or_else(|| panic!("no bar: {text:?}"));
    let cleared = text.rfind("\u{1b}[2K").expect("a line is cleared");
    assert!(cleared > bar, "a bar is left: {text:?}");
    assert_eq!(names(folder.path()), ["end", "in", "out"]);
}

/// If the terminal is closed, only the messages on it are lost.
#[test]
fn a_terminal_that_is_closed() {
    if !signals_arrive() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("in"), long_pipe()).expect("a temporary file");
    let producer = format!(
        "(trap 'sleep 0.5; tail -c +{} in; exit' HUP; head -c {FIRST} in; while :; do sleep 0.05; done)",
        FIRST + 1
    );
    let commands = format!("{producer} | \"$PERFCONV\" pipe2file - -v -o out");
    let Some(mut terminal) = Terminal::new(&commands, folder.path()) else {
        return;
    };
    wait_for_stream(folder.path(), 1);
    terminal.script.kill().expect("it runs");
    let _ = terminal.script.wait();
    let start = Instant::now();
    while !folder.path().join("out").exists() {
        assert!(
            start.elapsed() < TIMEOUT,
            "no output: {:?}",
            names(folder.path())
        );
        thread::sleep(Duration::from_millis(20));
    }
    assert!(
        perf::run(perfconv_verify(&folder.path().join("out")))
            .expect("it runs")
            .success()
    );
}

fn perfconv_verify(path: &Path) -> Command {
    let mut command = perfconv();
    command.arg("verify").arg(path);
    command
}

/// The usual way to end `perf record`: in ten of ten runs, perf can read the resulting file.
#[test]
fn control_c_ends_a_live_recording() {
    if !signals_arrive() {
        return;
    }
    let Some(perf) = perf::all().iter().find(|perf| perf.name == "perf") else {
        skipped::note("perf");
        return;
    };
    let program = perf.command().get_program().to_owned();
    let mut allowed = Command::new(&program);
    allowed.args([
        "record",
        "-q",
        "-a",
        "-e",
        "cpu-clock",
        "-o",
        "-",
        "--",
        "true",
    ]);
    if !allowed
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        skipped::note("a perf that may record all CPUs");
        return;
    }
    for number in 0..10 {
        // perfconv may also see the signal after the end of the stream.
        patiently(|factor| ends_a_live_recording(perf, number, factor));
    }
}

fn ends_a_live_recording(perf: &Perf, number: u32, factor: u32) {
    let program = perf.command().get_program().to_owned();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(format!("cc{number}.data"));
    let commands = format!(
        "{} record -a -e cpu-clock -o - | \"$PERFCONV\" pipe2file - -o {}; echo status ${{PIPESTATUS[*]}}",
        program.display(),
        file.display()
    );
    let Some(mut terminal) = Terminal::new(&format!("bash -c '{commands}'"), folder.path()) else {
        return;
    };
    // perf has written the synthesized records, so it waits for Ctrl-C.
    wait_until("a recording", || is_ready(folder.path(), 2, 64 << 10));
    thread::sleep(factor * Duration::from_millis(200 + 40 * u64::from(number)));
    terminal.control_c();
    let text = terminal.text();
    assert!(
        text.contains(FINISHING) && text.contains(" records, "),
        "run {number}: {text}"
    );
    let report = perf.ask(Question::Script, &file).expect("perf runs");
    assert!(
        report.success() && report.stdout.contains("cpu-clock"),
        "run {number}: {}",
        report.stderr
    );
    let mut command = perf.command();
    command.args(["report", "--stdio", "-i"]).arg(&file);
    let report = perf::run(command).expect("perf runs");
    assert!(
        report.success() && report.stdout.contains("# Samples: "),
        "run {number}: {}",
        report.stderr
    );
}
