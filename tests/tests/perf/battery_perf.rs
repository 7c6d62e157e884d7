//! Recordings with the options that people use, and the text of perf as the judge.
//!
//! Each set of options records the same work on this machine. The default text of the recording here
//! is compared with that of perf, in both directions, and perf's text of the results of conversions
//! with that of the original. Lines that differ are counted by cause: the causes that are by design
//! have a paragraph in docs/export.md, everything else fails.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Instant;

use perfdata_tests::convert::in_shell;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{Endian, in_parallel, root};
use perfdata_tests::{is_thorough, skipped};
use perfdata_tracepoint::Like;

/// Shells, threads of Python, and exec, also of a file in memory.
const WORK: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; \
    ls -lR /usr/share/perl5 | sort | gzip > /dev/null; \
    python3 -c 'import threading, time, hashlib
def run():
    for i in range(20): hashlib.sha256(b\"x\" * 20000).digest(); [time.monotonic() for i in range(3000)]
threads = [threading.Thread(target=run) for i in range(3)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]'; \
    bash -c 'for i in 1 2 3; do /bin/true; done; exec ls -R /usr/lib/python3 > /dev/null'; \
    python3 -c 'import os
file = os.memfd_create(\"program\", 0); os.write(file, open(\"/bin/ls\", \"rb\").read())
os.execv(\"/proc/self/fd/%d\" % file, [\"ls\", \"-R\", \"/usr/share/perl5\"])' > /dev/null; true";

/// The programs that run, and the idle CPUs.
const COMMS: [&str; 8] = [
    "sh", "ls", "sort", "gzip", "python3", "bash", "true", "swapper",
];

/// Sets of options of `perf record`. A set that ends with `-o -` is a stream.
const SETS: [&str; 36] = [
    "-e cpu-clock -F 999",
    "-e cpu-clock -F 999 -g",
    "-e cpu-clock:u -F 999 -g",
    "-e cpu-clock:k -F 999 -g",
    "-e cpu-clock -F 299 --call-graph dwarf,4096",
    "-e cpu-clock -F 299 --call-graph dwarf,4096 -z",
    "-e cpu-clock -F 999 -g -z",
    "-e cpu-clock -F 999 -g -B",
    "-e cpu-clock -F 999 -g -N",
    "-e cpu-clock -F 999 -g -o -",
    "-e cpu-clock -F 999 -g -z -o -",
    "-e cpu-clock -F 999 -g --threads",
    "-e cpu-clock -F 199 -g -a",
    "-e cpu-clock -F 199 -g -a --threads",
    "-e {cpu-clock,page-faults}:S -F 999",
    "-e {cpu-clock,page-faults}:S -F 999 -g -a",
    "-e cpu-clock,page-faults,context-switches -F 999 -g",
    "-e cpu-clock -F 999 --all-cgroups",
    "-e cpu-clock -F 999 -g --switch-events",
    "-e cpu-clock -F 999 -g -s",
    "-e page-faults -c 1 -d",
    "-e cpu-clock -F 999 -W -d --phys-data",
    "-e cpu-clock -F 999 --user-regs=ip,sp,bp",
    "-e cpu-clock -F 999 --intr-regs=ip,sp",
    "-e cpu-clock -F 999 -g -k CLOCK_MONOTONIC",
    "-e cpu-clock -F 999 -k CLOCK_REALTIME",
    "-e sched:sched_switch,sched:sched_wakeup",
    "-e sched:* -a",
    "-e raw_syscalls:sys_enter -g",
    "-e syscalls:sys_enter_openat,cpu-clock -F 999",
    "-e cpu-clock -F 999 -g --buildid-all",
    "-e cpu-clock -F 1999 -g --buildid-mmap",
    "-e cpu-clock -F 999 -g -m 1",
    "-e cpu-clock -F 999 --no-inherit --per-thread -T -g",
    "-e cpu-clock -F 999 --namespaces --code-page-size --data-page-size",
    "-e cpu-clock -F 999 -g --tail-synthesize -T -P",
];

/// A conversion whose result has the text of its input.
struct Conversion {
    name: &'static str,
    /// Converts `in` to `out`.
    command: &'static str,
    /// The byte order of the perf that reads the result.
    endian: Endian,
}

/// Returns a conversion for the perf of this machine.
const fn same(name: &'static str, command: &'static str) -> Conversion {
    let endian = Endian::Little;
    Conversion {
        name,
        command,
        endian,
    }
}

const CONVERSIONS: [Conversion; 14] = [
    same(
        "copy",
        "perfconv in -o out && { test -d in || cmp in out; }",
    ),
    same("to pipe", "perfconv file2pipe in -o out"),
    same(
        "to pipe and file",
        "perfconv --to pipe in -o - | perfconv pipe2file - -o out",
    ),
    same("compress", "perfconv --compress --compat 6.1 in -o out"),
    same(
        "compress and decompress",
        "perfconv --compress in -o - | perfconv --decompress - -o out",
    ),
    Conversion {
        name: "swap",
        command: "perfconv --swap-endian in -o out",
        endian: Endian::Big,
    },
    same(
        "swap twice",
        "perfconv --swap-endian in -o - | perfconv --swap-endian - -o out",
    ),
    same("inject", "perfconv inject -b in -o out"),
    same("all build IDs", "perfconv --build-ids=all in -o out"),
    same("sort", "perfconv --sort in -o out"),
    // Each perf marks the end of features in a stream in its own way.
    same("compat", "perfconv --compat 5.10 --to file in -o out"),
    same("recover", "perfconv recover in -o out"),
    same(
        "split by time and merge",
        "perfconv split in --by time=200ms -o parts && perfconv merge parts/*.data -o out",
    ),
    same(
        "split by samples and merge",
        "perfconv split in --by samples=100 -o parts && perfconv merge parts/*.data -o out",
    ),
];

/// Number of conversions of each recording, unless everything is tested.
const IN_TURN: usize = 2;

/// A line in the text of perf and here; `None` if only one of them has it.
type Line<'a> = (Option<&'a str>, Option<&'a str>);

/// A cause of differences between the text of perf and that here.
struct Cause {
    /// The name of its paragraph in docs/export.md.
    name: &'static str,
    /// Whether it occurs with these options of `perf record`, in the text of this version.
    occurs: fn(&str, Like) -> bool,
    /// Maximum share of the lines, in percent.
    most: fn(Like) -> usize,
    explains: fn(Line<'_>) -> bool,
}

/// The causes that are by design.
const CAUSES: [Cause; 2] = [
    Cause {
        name: "Procedure linkage tables",
        occurs: |_, like| like == Like::Perf6_1,
        most: |_| 3,
        explains: |line| {
            has(line, |function| {
                function.contains("@plt") || function.starts_with(".plt")
            })
        },
    },
    Cause {
        name: "User stacks",
        occurs: |options, _| options.contains("dwarf"),
        most: |like| if like == Like::Perf6_1 { 50 } else { 10 },
        explains: |(perf, ours)| {
            let mut lines = [perf, ours].into_iter().flatten();
            lines.all(|line| line.starts_with('\t'))
        },
    },
];

/// Divides a line into what is before its address, the address, the function with its offset, and the
/// object.
fn parts(line: &str) -> [&str; 4] {
    let (before, object) = line.rsplit_once(" (").unwrap_or((line, ""));
    let (head, frame) = match line.starts_with('\t') {
        true => ("", before),
        false => before.rsplit_once(": ").unwrap_or((before, "")),
    };
    let frame = frame.trim();
    let (address, function) = frame.split_once(' ').unwrap_or((frame, ""));
    [head, address, function, object]
}

/// Returns whether both texts have a line at the address, and one of the functions is such a one.
fn has((perf, ours): Line<'_>, is_it: fn(&str) -> bool) -> bool {
    let mut lines = [perf, ours].into_iter().flatten();
    perf.is_some() && ours.is_some() && lines.any(|line| is_it(parts(line)[2]))
}

/// Returns the lines that are not in both texts. Those at the same address are one difference.
fn differences<'a>(perf: &'a str, ours: &'a str) -> Vec<Line<'a>> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in perf.lines() {
        *counts.entry(line).or_default() += 1;
    }
    for line in ours.lines() {
        *counts.entry(line).or_default() -= 1;
    }
    let mut sides: BTreeMap<(&str, &str), [Vec<&str>; 2]> = BTreeMap::new();
    // Callchains are separated by empty lines, which show nothing.
    for (line, count) in counts.into_iter().filter(|(line, _)| !line.is_empty()) {
        let side = usize::from(count < 0);
        let [head, address, ..] = parts(line);
        let list = &mut sides.entry((head, address)).or_default()[side];
        list.extend((0..count.abs()).map(|_| line));
    }
    let mut differences = Vec::new();
    for [perf, ours] in sides.into_values() {
        for at in 0..perf.len().max(ours.len()) {
            differences.push((perf.get(at).copied(), ours.get(at).copied()));
        }
    }
    differences
}

/// The differences of all texts.
#[derive(Default)]
struct Tally {
    lines: usize,
    /// By cause.
    explained: BTreeMap<&'static str, usize>,
    faults: Vec<String>,
}

impl Tally {
    /// Counts the differences between two texts. `causes` explain some of them.
    fn compare<'a>(
        &mut self,
        what: &str,
        perf: &str,
        ours: &str,
        like: Like,
        causes: impl Iterator<Item = &'a Cause> + Clone,
    ) {
        let lines = perf.lines().count();
        self.lines += lines;
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut unexplained = Vec::new();
        for line in differences(perf, ours) {
            match causes.clone().find(|cause| (cause.explains)(line)) {
                Some(cause) => *counts.entry(cause.name).or_default() += 1,
                None => unexplained.push(line),
            }
        }
        for cause in causes {
            let count = counts.get(cause.name).copied().unwrap_or_default();
            if count * 100 > (cause.most)(like) * lines.max(200) {
                let name = cause.name;
                self.faults
                    .push(format!("{what}: {name}: {count} of {lines} lines"));
            }
            if count > 0 {
                *self.explained.entry(cause.name).or_default() += count;
            }
        }
        if !unexplained.is_empty() {
            let some = &unexplained[..unexplained.len().min(4)];
            self.faults.push(format!(
                "{what}: {} of {lines} lines differ, perf's and ours:\n{some:#?}",
                unexplained.len()
            ));
        }
    }
}

/// Records to `in` in `folder`. Returns false if the options do not work on this machine.
fn record(recorder: &Perf, folder: &Path, options: &str) -> bool {
    let mut command = recorder.command();
    command.arg("record").arg("-q").args(options.split(' '));
    let is_stream = options.ends_with("-o -");
    if !is_stream {
        command.arg("-o").arg(folder.join("in"));
    }
    command.args(["--", "sh", "-c", WORK]);
    if let Some(home) = env::var_os("HOME") {
        command.env("HOME", home);
    }
    let is_recorded = match is_stream {
        true => {
            let file = File::create(folder.join("in")).expect("a file");
            command
                .stdin(Stdio::null())
                .stdout(file)
                .stderr(Stdio::null());
            command.status().expect("perf can be started").success()
        }
        false => perf::run(command).expect("perf can be started").success(),
    };
    let has_data =
        fs::metadata(folder.join("in")).is_ok_and(|found| found.len() > 4000 || found.is_dir());
    is_recorded && has_data
}

/// Returns the text of `perf script` with more arguments.
fn text_of_perf(perf: &Perf, path: &Path, arguments: &[&str]) -> String {
    let mut command = perf.command();
    command.arg("script").args(arguments).arg("-i").arg(path);
    perf::run(command).expect("perf can be started").stdout
}

/// Returns the samples of the work, and of threads without a name. What else runs on the machine may have
/// any functions.
fn of_work(text: &str) -> String {
    let mut kept = String::new();
    let mut is_kept = false;
    for line in text.split_inclusive('\n') {
        if !line.starts_with(['\t', '\n']) {
            let comm = line.split_whitespace().next().unwrap_or_default();
            is_kept = COMMS.contains(&comm) || comm.starts_with(':');
        }
        kept.push_str(if is_kept { line } else { "" });
    }
    kept
}

/// Compares the default text of a recording with that of perf.
fn check_text(options: &str, perf: &Perf, folder: &Path, tally: &Mutex<Tally>) {
    let input = folder.join("in");
    let is_of_all = options.split(' ').any(|word| word == "-a");
    let expected = text_of_perf(perf, &input, &["--no-inline"]);
    let like = perf.version.like();
    let version = match like {
        Like::Perf6_1 => "6.1",
        Like::Perf6_12 => "6.12",
        _ => "7.2",
    };
    // perf loads the plugins of libtraceevent where they are installed.
    let plugin = match expected.contains(" ==> ") && !expected.contains("next_comm=") {
        true => "--sched-plugin",
        false => "",
    };
    let export = format!("perfconv export -q in --to perf-script --like {version} {plugin} -o -");
    let ours = in_shell(folder, &export);
    let mut tally = tally.lock().expect("no comparison panics");
    let what = format!("{options}: {perf}");
    match ours.success() && !expected.is_empty() {
        true => {
            let texts = [&expected, &ours.stdout].map(|text| match is_of_all {
                true => of_work(text),
                false => text.clone(),
            });
            let [expected, ours] = texts;
            let causes = CAUSES.iter().filter(|cause| (cause.occurs)(options, like));
            tally.compare(&what, &expected, &ours, like, causes);
        }
        false => tally.faults.push(format!("{what}: {}", ours.stderr)),
    }
}

/// Compares perf's text of the results of conversions with that of the original.
fn check_conversions(options: &str, recorder: &Perf, folder: &Path, tally: &Mutex<Tally>) {
    let own = ["--no-inline"];
    let original = text_of_perf(recorder, &folder.join("in"), &own);
    let number = SETS.iter().position(|set| *set == options).unwrap_or(0);
    let step = CONVERSIONS.len().div_ceil(IN_TURN);
    let is_in_turn = |at: usize| is_thorough() || at % step == number % step;
    let conversions = CONVERSIONS.iter().enumerate();
    for (_, conversion) in conversions.filter(|(at, _)| is_in_turn(*at)) {
        let Conversion {
            name,
            command,
            endian,
        } = conversion;
        let judge = perf::all()
            .iter()
            .find(|perf| perf.endian == *endian && perf.version.like() == recorder.version.like());
        let Some(judge) = judge else {
            skipped::note(format_args!("perf {} {endian:?} endian", recorder.version));
            continue;
        };
        // A perf of another machine knows neither functions nor its own vDSO, and unwinds no stacks.
        let has_tracepoints = options.contains("sched:") || options.contains("sys");
        let other: &[&str] = match has_tracepoints {
            true => &["--no-inline", "-F", "comm,tid,time,event,trace"],
            false if options.contains("dwarf") || options.ends_with("-o -") => {
                &["--no-inline", "-F", "-ip,-sym,-symoff,-dso"]
            }
            false => &["--no-inline", "-F", "-sym,-symoff,-dso"],
        };
        let (arguments, expected): (&[&str], _) = match endian == &recorder.endian {
            true => (&own, None),
            false => (
                other,
                Some(text_of_perf(recorder, &folder.join("in"), other)),
            ),
        };
        let expected = expected.as_ref().unwrap_or(&original);
        let done = in_shell(
            folder,
            &format!("set -o pipefail; rm -rf out parts; {command}"),
        );
        let converted = text_of_perf(judge, &folder.join("out"), arguments);
        let mut tally = tally.lock().expect("no comparison panics");
        let what = format!("{options}: {name}");
        match done.success() {
            true => tally.compare(
                &what,
                expected,
                &converted,
                recorder.version.like(),
                [].iter(),
            ),
            false => tally.faults.push(format!("{what}: {}", done.stderr)),
        }
    }
}

/// Records with options, and compares. Returns false if the options do not work on this machine.
fn check(options: &str, judges: &[&Perf], tally: &Mutex<Tally>) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let recorder = judges[0];
    if !record(recorder, folder, options) {
        skipped::note(format_args!("perf record {options}"));
        return false;
    }
    for perf in judges {
        check_text(options, perf, folder, tally);
    }
    check_conversions(options, recorder, folder, tally);
    true
}

#[test]
fn recordings_with_usual_options_have_the_text_of_perf() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    if recorder.endian != Endian::Little || !record(recorder, folder.path(), SETS[0]) {
        return skipped::note("the permission to record");
    }
    let others = perf::all()
        .iter()
        .filter(|perf| perf.version > recorder.version && perf.endian == recorder.endian);
    let judges: Vec<&Perf> = [recorder]
        .into_iter()
        .chain(others.max_by_key(|perf| perf.version))
        .collect();
    let (tally, start) = (Mutex::default(), Instant::now());
    let recorded = Mutex::new(0);
    in_parallel(&SETS, |options| {
        if check(options, &judges, &tally) {
            *recorded.lock().expect("it does not panic") += 1;
        }
    });
    let tally: Tally = tally.into_inner().expect("no comparison panics");
    let recorded = recorded.into_inner().expect("it does not panic");
    eprintln!(
        "{recorded} of {} sets of options, {} lines, {:.0} s; differences by cause: {:?}",
        SETS.len(),
        tally.lines,
        start.elapsed().as_secs_f64(),
        tally.explained
    );
    assert!(tally.faults.is_empty(), "{}", tally.faults.join("\n"));
    assert!(recorded >= 20, "{recorded} sets of options");
}

/// Each cause of differences is described.
#[test]
fn differences_are_described() {
    let page = fs::read_to_string(root().join("docs/export.md")).expect("the page");
    for name in CAUSES.iter().map(|cause| cause.name) {
        assert!(page.contains(&format!("- **{name}**")), "{name}");
    }
}
