//! perf reads merged recordings like the recordings themselves: `perf script` of the result is the
//! union of the scripts of the inputs, by time.
//!
//! The test records pairs itself. The judges are all perfs of this machine's byte order.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use perfdata_tests::convert::perfconv;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::Endian;
use perfdata_tests::script::{self, Line};
use perfdata_tests::skipped;
use tempfile::TempDir;

/// A folder with recordings.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Records with perf; returns false if this machine does not permit it.
    fn record(&self, recorder: &Perf, name: &str, options: &str, command: &[&str]) -> bool {
        let mut perf = recorder.command();
        perf.args(["record", "-q"]).args(options.split_whitespace());
        perf.arg("-o").arg(self.path(name)).arg("--").args(command);
        let recorded = perf::run(perf).is_ok_and(|output| output.success());
        if !recorded {
            skipped::note(format_args!("perf record {options}"));
        }
        recorded
    }

    /// Merges recordings; returns the messages if that is refused.
    fn merge(&self, words: &[&str], output: &str) -> Result<PathBuf, String> {
        let merged = perfconv()
            .arg("merge")
            .args(words)
            .args(["-f", "-o", output])
            .current_dir(self.0.path())
            .output()
            .expect("perfconv runs");
        let text = String::from_utf8_lossy(&merged.stderr).into_owned();
        match merged.status.code() {
            Some(0) => Ok(self.path(output)),
            Some(1) => Err(text),
            status => panic!("{words:?}: {status:?}, {text}"),
        }
    }
}

/// The perf that records: the first of this machine's byte order.
fn recorder() -> Option<&'static Perf> {
    let recorder = judges().next();
    if recorder.is_none() {
        skipped::note("perf");
    }
    recorder
}

fn judges() -> impl Iterator<Item = &'static Perf> {
    perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little)
}

/// Returns the samples that perf shows, and its messages.
fn script(perf: &Perf, path: &Path) -> (Vec<Line>, String) {
    let mut command = perf.command();
    let fields = "comm,pid,tid,time,event,period,ip,sym,dso";
    command
        .args(["script", "--no-inline", "--ns", "-F", fields, "-i"])
        .arg(path);
    let output = perf::run(command).expect("perf runs");
    let mut lines = script::lines(&output.stdout);
    // The width of columns depends on the names of all events.
    for line in &mut lines {
        line.rest = line.rest.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    (lines, output.stderr)
}

/// Compares what perf shows of the merged recording with what it shows of its inputs.
fn compare(folder: &Folder, inputs: &[&str], merged: &Path) {
    for perf in judges() {
        let mut expected: Vec<Line> = inputs
            .iter()
            .flat_map(|input| script(perf, &folder.path(input)).0)
            .collect();
        let (lines, messages) = script(perf, merged);
        assert!(!messages.contains("out of order"), "{perf}: {messages}");
        assert!(
            lines.is_sorted_by_key(|line| line.time),
            "{perf}: {inputs:?}"
        );
        let mut found = lines;
        expected.sort();
        found.sort();
        assert!(!expected.is_empty(), "{perf}: {inputs:?}: {messages}");
        let wrong = expected.iter().zip(&found).find(|(a, b)| a != b);
        assert!(wrong.is_none(), "{perf}: {inputs:?}: {wrong:?}");
        assert_eq!(
            found.len(),
            expected.len(),
            "{perf}: {inputs:?}: {messages}"
        );
    }
}

const WORK: &[&str] = &[
    "sh",
    "-c",
    "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
];

/// Pairs of recordings with different events, records and containers.
#[test]
fn the_script_of_a_merge_is_the_union() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new();
    let kinds = [
        ("clock", "-e cpu-clock -F 2000"),
        ("faults", "-e page-faults -c 1"),
        ("stacks", "-e cpu-clock -F 500 --call-graph dwarf"),
        ("chains", "-e cpu-clock -F 1000 -g -z"),
        ("group", "-e {cpu-clock,page-faults}"),
        ("all", "-e cpu-clock -F 500 -a"),
        (
            "tracepoints",
            "-e sched:sched_process_exec,sched:sched_process_exit -a",
        ),
        ("more-tracepoints", "-e sched:sched_process_fork -a"),
    ];
    let recorded: Vec<&str> = kinds
        .into_iter()
        .filter(|(name, options)| folder.record(recorder, name, options, WORK))
        .map(|(name, _)| name)
        .collect();
    let Some(first) = recorded.first() else {
        return;
    };
    for other in &recorded[1..] {
        for inputs in [[*first, other], [other, *first]] {
            let merged = folder.merge(&inputs, "merged").expect("they can be merged");
            compare(&folder, &inputs, &merged);
        }
    }
    let merged = folder
        .merge(&recorded, "merged")
        .expect("they can be merged");
    compare(&folder, &recorded, &merged);
    // The same from a stream, and in the other byte order.
    let pipe = folder.path("pipe");
    let swapped = perfconv()
        .args(["convert", "--swap-endian", "--to", "pipe"])
        .arg(folder.path(recorded[recorded.len() - 1]))
        .arg("-o")
        .arg(&pipe)
        .status()
        .expect("perfconv runs");
    if swapped.success() && !recorded[recorded.len() - 1].contains("tracepoints") {
        let merged = folder
            .merge(&[first, "pipe"], "merged")
            .expect("they can be merged");
        compare(&folder, &[first, recorded[recorded.len() - 1]], &merged);
    }
}

/// Starts `perf record` of a process.
fn attach(recorder: &Perf, pid: u32, output: &Path) -> Child {
    let pid = pid.to_string();
    let mut command = recorder.command();
    command
        .args([
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            "999",
            "-p",
            &pid,
            "-o",
        ])
        .arg(output)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("perf starts")
}

fn interrupt(mut child: Child) -> bool {
    let pid = child.id().to_string();
    let _ = Command::new("kill").args(["-INT", &pid]).status();
    child.wait().is_ok()
}

/// Two recordings of one process, around an exec: no sample gets the name of the other program.
#[test]
fn samples_keep_their_names_around_an_exec() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new();
    if !folder.record(recorder, "probe", "-e cpu-clock", &["true"]) {
        return;
    }
    let names = |name: &str| -> Vec<String> {
        let lines = script(recorder, &folder.path(name)).0;
        let mut names: Vec<String> = lines.into_iter().map(|line| line.comm).collect();
        names.sort();
        names.dedup();
        names
    };
    let next = folder.path("next");
    // The shell runs until the file exists, then the same process is another program.
    let work = format!(
        "while [ ! -e {} ]; do :; done; exec awk 'BEGIN {{ while (1) i++ }}'",
        next.display()
    );
    let mut process = Command::new("sh")
        .args(["-c", &work])
        .spawn()
        .expect("sh starts");
    let record = |name: &str| {
        for _ in 0..20 {
            let child = attach(recorder, process.id(), &folder.path(name));
            thread::sleep(Duration::from_millis(400));
            interrupt(child);
            if !names(name).is_empty() {
                break;
            }
        }
    };
    record("before");
    std::fs::write(&next, "").expect("a file");
    let comm = format!("/proc/{}/comm", process.id());
    while std::fs::read_to_string(&comm).expect("it runs") == "sh\n" {
        thread::sleep(Duration::from_millis(10));
    }
    record("after");
    process.kill().expect("it still runs");
    process.wait().expect("it was started");
    let (before, after) = (names("before"), names("after"));
    if before.is_empty() || after.is_empty() {
        return skipped::note("samples of a process that perf record -p attaches to");
    }
    assert_ne!(before, after);
    for inputs in [["before", "after"], ["after", "before"]] {
        let merged = folder.merge(&inputs, "merged").expect("they can be merged");
        compare(&folder, &inputs, &merged);
    }
}

/// perf 7.2 puts samples of CPUs beyond NRCPUS on CPU 0.
#[test]
fn perf_accepts_the_cpus_of_several_machines() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new();
    if !folder.record(recorder, "one", "-e cpu-clock -F 2000 -a", WORK) {
        return;
    }
    let words = ["--machines", "--align", "after", "one", "one"];
    let merged = folder.merge(&words, "merged").expect("they can be merged");
    let cpus = |perf: &Perf, path: &Path| -> Vec<u32> {
        let mut command = perf.command();
        command
            .args([
                "script",
                "--no-inline",
                "--ns",
                "-F",
                "comm,pid,tid,cpu,time,event",
                "-i",
            ])
            .arg(path);
        let output = perf::run(command).expect("perf runs");
        let lines = script::lines(&output.stdout);
        let mut cpus: Vec<u32> = lines.into_iter().filter_map(|line| line.cpu).collect();
        cpus.sort_unstable();
        cpus
    };
    let count = thread::available_parallelism().map_or(1, usize::from) as u32;
    for perf in judges() {
        let once = cpus(perf, &folder.path("one"));
        let of_second = once.iter().map(|cpu| cpu + count);
        let mut expected: Vec<u32> = once.iter().copied().chain(of_second).collect();
        expected.sort_unstable();
        assert_eq!(cpus(perf, &merged), expected, "{perf}");
    }
}

/// Times of recordings of one clock, and of two clocks.
#[test]
fn clocks_are_compared() {
    let Some(recorder) = recorder() else {
        return;
    };
    let folder = Folder::new();
    let done = folder.record(
        recorder,
        "monotonic",
        "-k CLOCK_MONOTONIC -e cpu-clock",
        WORK,
    ) && folder.record(
        recorder,
        "faults",
        "-k CLOCK_MONOTONIC -e page-faults",
        WORK,
    ) && folder.record(recorder, "own", "-e cpu-clock", WORK);
    if !done {
        return;
    }
    let inputs = ["monotonic", "faults"];
    let merged = folder
        .merge(&inputs, "merged")
        .expect("they have one clock");
    compare(&folder, &inputs, &merged);
    let why = folder
        .merge(&["monotonic", "own"], "more")
        .expect_err("two clocks");
    assert!(
        why.contains("the clock differs: monotonic in monotonic, perf's own in own"),
        "{why}"
    );
    let merged = folder
        .merge(&["--align", "after", "monotonic", "own"], "more")
        .expect("one after the other");
    for perf in judges() {
        let expected = ["monotonic", "own"].map(|name| script(perf, &folder.path(name)).0.len());
        assert_eq!(
            script(perf, &merged).0.len(),
            expected.iter().sum::<usize>(),
            "{perf}"
        );
    }
}
