//! Threads with known waits, recorded here: the times on and off the CPU add up to the life of each
//! thread, and are those of `perf sched timehist`.

use std::collections::HashMap;
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_edit::sort::Sort;
use perfdata_inject::off_cpu::{OffCpu, OffCpuOptions};
use perfdata_tests::convert::{convert, in_shell};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{Endian, PerfVersion};
use perfdata_tests::skipped;
use serde_json::Value;
use tempfile::TempDir;

/// The names of the threads: the part of a stack in which each waits, and why.
const WAITS: [(&str, &str, &str); 5] = [
    ("oc-sleep", "nanosleep", "[sleep]"),
    ("oc-pipe", "unix_stream", "[sleep]"),
    ("oc-futex", "futex", "[sleep]"),
    ("oc-disk", "sync", "[disk]"),
    ("oc-spin", "", "[preempted]"),
];

/// Threads that wait for something, until the value is dropped.
pub(super) struct Waiters {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Waiters {
    pub(super) fn start() -> Self {
        let mut waiters = Waiters {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        waiters.spawn("oc-sleep", || thread::sleep(Duration::from_millis(3)));
        let (mut here, mut there) = UnixStream::pair().expect("a pair");
        for stream in [&here, &there] {
            let timeout = Some(Duration::from_millis(50));
            stream.set_read_timeout(timeout).expect("a timeout");
        }
        let _ = here.write(&[1]);
        for stream in [here, there.try_clone().expect("a stream")] {
            let mut stream = stream;
            waiters.spawn("oc-pipe", move || {
                // The other thread may have ended.
                let _ = stream.read(&mut [0]);
                let _ = stream.write(&[1]);
                thread::sleep(Duration::from_micros(200));
            });
        }
        let _ = there.write(&[1]);
        let turn = Arc::new((Mutex::new(0), Condvar::new()));
        for own in 0..2 {
            let turn = Arc::clone(&turn);
            waiters.spawn("oc-futex", move || {
                let mut now = turn.0.lock().expect("a lock");
                if *now != own {
                    let timeout = Duration::from_millis(20);
                    now = turn.1.wait_timeout(now, timeout).expect("a lock").0;
                }
                *now = 1 - own;
                turn.1.notify_all();
                drop(now);
                thread::sleep(Duration::from_micros(300));
            });
        }
        let mut file = tempfile::tempfile().expect("a file");
        waiters.spawn("oc-disk", move || {
            let _ = file.write_all(&[0; 4096]);
            let _ = file.sync_data();
            let _ = file.rewind();
        });
        let cpus = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..cpus.min(8) + 1 {
            waiters.spawn("oc-spin", || {
                (0..10_000).for_each(|_| std::hint::spin_loop());
            });
        }
        waiters
    }

    fn spawn(&mut self, name: &str, mut step: impl FnMut() + Send + 'static) {
        let stop = Arc::clone(&self.stop);
        let repeat = move || {
            while !stop.load(Ordering::Relaxed) {
                step();
            }
        };
        let thread = thread::Builder::new().name(name.into()).spawn(repeat);
        self.threads.push(thread.expect("a thread"));
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Records the scheduler's events of the machine for a moment.
fn recorded(path: &Path) -> Option<&'static Perf> {
    let recorder = perf::all().iter().find(|perf| perf.name == "perf")?;
    let waiters = Waiters::start();
    let mut command = recorder.command();
    command.args(["record", "-q", "-g", "-a", "-m", "512"]);
    for event in ["switch", "waking", "wakeup", "wakeup_new"] {
        command.args(["-e", &format!("sched:sched_{event}")]);
    }
    command.arg("-o").arg(path).args(["--", "sleep", "0.2"]);
    let said = perf::run(command).ok()?;
    drop(waiters);
    said.success().then_some(recorder)
}

pub(super) fn stages() -> Vec<Box<dyn Stage>> {
    let options = OffCpuOptions::default();
    vec![Box::new(Sort::new()), Box::new(OffCpu::new(options))]
}

/// The options of `perf script` for [`off_cpu`].
pub(super) const OFF_CPU: [&str; 2] = ["-F", "comm,tid,time,event,period,ip,sym"];

pub(super) fn script(perf: &Perf, path: &Path, options: &[&str]) -> String {
    let mut command = perf.command();
    command
        .args(["script", "--no-inline", "--ns"])
        .args(options);
    command.arg("-i").arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    said.stdout
}

/// Returns seconds with 9 decimals as nanoseconds.
fn nanoseconds(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a time")
}

/// Returns the number after `key` in the text of a tracepoint.
fn number(text: &str, key: &str) -> u32 {
    let rest = text.split_once(key).expect("a field").1;
    let digits = rest.split(' ').next().unwrap_or_default();
    digits.parse().expect("a number")
}

/// What the switches in the text of perf say about a thread.
#[derive(Default)]
struct Life {
    /// When it ran.
    runs: Vec<(u64, u64)>,
    since: Option<u64>,
    has_stopped: bool,
    /// When it began to exit.
    exit: Option<u64>,
    /// Whether all of its switches are there.
    is_complete: bool,
}

/// Returns the life of each thread from its first switch on. `text` contains the samples of
/// `sched:sched_switch`, and the records of exits.
fn lives(text: &str) -> HashMap<u32, Life> {
    let mut lives: HashMap<u32, Life> = HashMap::new();
    let mut running: HashMap<&str, u32> = HashMap::new();
    for line in text.lines() {
        if let Some((head, ids)) = line.split_once("PERF_RECORD_EXIT(") {
            let time = head.split_whitespace().next_back().expect("a time");
            let ids = ids.split(')').next().unwrap_or_default();
            let (_, tid) = ids.split_once(':').expect("a thread");
            let life = lives.entry(tid.parse().expect("a number")).or_default();
            life.exit = Some(nanoseconds(time));
            continue;
        }
        if !line.contains("sched_switch:") {
            continue;
        }
        let mut words = line.split_whitespace();
        let cpu = words.find(|word| word.starts_with('[')).expect("a CPU");
        let time = nanoseconds(words.next().expect("a time"));
        let prev = number(line, "prev_pid=");
        let next = number(line, "next_pid=");
        let before = running.insert(cpu, next);
        let is_gap = before.is_some_and(|before| before != prev);
        for tid in [prev, next].into_iter().chain(before.filter(|_| is_gap)) {
            let life = lives.entry(tid).or_insert_with(|| Life {
                is_complete: true,
                ..Life::default()
            });
            life.is_complete &= !is_gap;
        }
        let life = lives.entry(prev).or_default();
        match life.since.take() {
            Some(since) => life.runs.push((since, time)),
            // It ran when the events of this CPU were not yet counted.
            None => life.is_complete &= !life.has_stopped,
        }
        life.has_stopped = true;
        lives.entry(next).or_default().since = Some(time);
    }
    lives
}

/// A sample of the new event: when it began and ended, its reason, and the names of its frames.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffCpuTime {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) comm: String,
    pub(super) frames: Vec<String>,
}

/// Returns the samples of each thread.
pub(super) fn off_cpu(text: &str) -> HashMap<u32, Vec<OffCpuTime>> {
    let mut all: HashMap<u32, Vec<OffCpuTime>> = HashMap::new();
    let mut current = None;
    for line in text.lines() {
        if line.starts_with([' ', '\t']) && line.split_whitespace().count() <= 2 {
            let frame = line.split_whitespace().nth(1).unwrap_or_default();
            if let Some(tid) = current {
                let last: Option<&mut OffCpuTime> =
                    all.get_mut(&tid).and_then(|list| list.last_mut());
                last.expect("a sample").frames.push(frame.into());
            }
            continue;
        }
        current = None;
        let Some((head, _)) = line.split_once("offcpu-time:") else {
            continue;
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        let [comm @ .., tid, time, period] = &words[..] else {
            panic!("{line}");
        };
        let (tid, end) = (tid.parse().expect("a thread"), nanoseconds(time));
        let period: u64 = period.parse().expect("a period");
        all.entry(tid).or_default().push(OffCpuTime {
            begin: end - period,
            end,
            comm: comm.join(" "),
            frames: Vec::new(),
        });
        current = Some(tid);
    }
    all
}

/// A line of `perf sched timehist`, in microseconds: the thread and the time at which it stopped;
/// the time for which it had waited before it ran, a part of it for which it could run, and the
/// time for which it ran.
fn timehist(perf: &Perf, path: &Path) -> Vec<(u32, u64, [u64; 3])> {
    let mut command = perf.command();
    command.args(["sched", "timehist", "-i"]).arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    let line = |line: &str| {
        let (time, rest) = line.trim_start().split_once(' ')?;
        let (task, rest) = rest.split_once(']')?.1.trim_start().split_once(']')?;
        let tid = task.rsplit_once('[')?.1;
        let tid = tid.split('/').next()?.parse().ok()?;
        let mut numbers = rest.split_whitespace();
        let mut next = || {
            let digits = numbers.next()?.replace('.', "");
            digits.parse().ok()
        };
        Some((tid, nanoseconds(time), [next()?, next()?, next()?]))
    };
    said.stdout.lines().filter_map(line).collect()
}

/// A recording made here, and the result with the new event.
struct Case {
    folder: TempDir,
    recorder: &'static Perf,
    lives: HashMap<u32, Life>,
    /// Whether perf shows that a thread waited for a disk.
    waits_for_disks: bool,
}

impl Case {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.data");
        let Some(recorder) = recorded(&path) else {
            skipped::note("a perf that may record the events of the scheduler");
            return None;
        };
        let text = script(
            recorder,
            &path,
            &["-F", "tid,cpu,time,event,trace", "--show-task-events"],
        );
        let waits = |line: &str| {
            ["prev_comm=oc-disk ", "prev_state=D "]
                .iter()
                .all(|part| line.contains(part))
        };
        Some(Case {
            folder,
            recorder,
            lives: lives(&text),
            waits_for_disks: text.lines().any(waits),
        })
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("perf.data")
    }
}

/// The intervals of each thread have no gaps and do not overlap, in every container; every perf
/// reads the samples, with stacks that show the known waits.
#[test]
fn times_on_and_off_the_cpu_are_the_life_of_each_thread() {
    let Some(case) = Case::new() else {
        return;
    };
    let mut first = None;
    for (kind, endian) in [
        (ContainerKind::File, Endian::Little),
        (ContainerKind::Pipe, Endian::Little),
        (ContainerKind::File, Endian::Big),
    ] {
        let mut stages = stages();
        if endian == Endian::Big {
            stages.push(Box::new(Swap::new(Target::Other, Unknown::Error)));
        }
        let output = convert(&case.path(), Some(kind), stages).expect("it is converted");
        for perf in perf::all().iter().filter(|perf| perf.endian == endian) {
            let found = off_cpu(&script(perf, &output.path(), &OFF_CPU));
            let expected = first.get_or_insert_with(|| found.clone());
            assert_eq!(found.len(), expected.len(), "{perf} {kind}");
            for (tid, list) in expected {
                let (found, times) = (&found[tid], |off: &OffCpuTime| (off.begin, off.end));
                let same = found.iter().map(times).eq(list.iter().map(times));
                assert!(same, "{perf} {kind}: thread {tid}");
                // Versions differ in the names of functions of programs, and other machines in
                // those of the kernel.
                let count = if endian == Endian::Little { 2 } else { 1 };
                let names = |off: &OffCpuTime| -> Vec<String> {
                    off.frames.iter().take(count).cloned().collect()
                };
                for (found, off) in found.iter().zip(list) {
                    assert_eq!(names(found), names(off), "{perf} {kind}: thread {tid}");
                    // Newer versions forget a thread when it begins to exit.
                    let is_named = !found.comm.starts_with(':');
                    assert!(
                        found.comm == off.comm || !is_named,
                        "{perf} {kind}: thread {tid}"
                    );
                }
            }
        }
    }
    let samples = first.expect("perf");
    let mut complete = 0;
    for (tid, life) in case
        .lives
        .iter()
        .filter(|(tid, life)| **tid != 0 && life.is_complete)
    {
        let mut parts = life.runs.clone();
        let off = samples.get(tid).map(Vec::as_slice).unwrap_or_default();
        parts.extend(off.iter().map(|off| (off.begin, off.end)));
        parts.sort_unstable();
        for pair in parts.windows(2) {
            assert_eq!(pair[0].1, pair[1].0, "thread {tid}: {pair:?}");
        }
        complete += 1;
    }
    assert!(complete > 10, "{complete} threads with all switches");
    for (comm, function, reason) in WAITS {
        // Files may be in memory.
        if comm == "oc-disk" && !case.waits_for_disks {
            skipped::note("a disk for temporary files");
            continue;
        }
        let has_frames = |off: &&OffCpuTime| {
            off.comm == comm
                && off.frames.first().is_some_and(|first| first == reason)
                && off.frames.iter().any(|frame| frame.contains(function))
        };
        let waits: Vec<&OffCpuTime> = samples.values().flatten().filter(has_frames).collect();
        assert!(!waits.is_empty(), "{comm}: no {reason} in {function}");
        if comm == "oc-sleep" {
            let shortest = waits.iter().map(|off| off.end - off.begin).min();
            // It sleeps 3 ms, by another clock than that of the samples.
            assert!(shortest >= Some(2_900_000), "{shortest:?}");
        }
    }
}

#[test]
fn times_are_those_of_perf_sched_timehist() {
    let Some(case) = Case::new() else {
        return;
    };
    let output = convert(&case.path(), None, stages()).expect("it is converted");
    let text = script(case.recorder, &output.path(), &OFF_CPU);
    let samples = off_cpu(&text);
    let judges = perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little);
    for perf in judges {
        let lines = timehist(perf, &case.path());
        // The events of the recording are still there.
        assert!(timehist(perf, &output.path()) == lines, "{perf}");
        let knows_preemption = perf.version >= "6.12".parse::<PerfVersion>().expect("a release");
        let (mut compared, mut woken_early, mut odd) = (0, 0, 0);
        for (tid, time, [wait, delay, run]) in lines {
            let life = case
                .lives
                .get(&tid)
                .filter(|life| tid != 0 && life.is_complete);
            let ran = life.and_then(|life| life.runs.iter().find(|ran| ran.1 / 1000 == time));
            let Some(&(begin, end)) = ran else {
                continue;
            };
            let mut before: Vec<&OffCpuTime> = Vec::new();
            let mut at = begin;
            for off in samples.get(&tid).into_iter().flatten().rev() {
                if off.end == at {
                    at = off.begin;
                    before.push(off);
                }
            }
            // The first time is not known completely.
            let is_known = life.is_some_and(|life| life.runs.iter().any(|ran| ran.1 == at));
            assert_eq!((end - begin) / 1000, run, "{perf}: thread {tid} at {time}");
            // Newer versions forget a thread when it begins to exit.
            let exits = life
                .and_then(|life| life.exit)
                .is_some_and(|exit| exit < end);
            if !is_known || exits && knows_preemption {
                continue;
            }
            compared += 1;
            assert_eq!((begin - at) / 1000, wait, "{perf}: thread {tid} at {time}");
            let of = |name: &str| {
                let of = before
                    .iter()
                    .filter(|off| off.frames.first().is_some_and(|first| first == name));
                of.map(|off| off.end - off.begin).sum::<u64>()
            };
            let (runnable, preempted) = (of("[runnable]"), of("[preempted]"));
            let expected = match preempted {
                0 => runnable,
                _ if knows_preemption => preempted,
                _ => continue,
            };
            // perf ignores a waking before the switch that it follows.
            if delay == 0 && expected > 0 && preempted == 0 {
                woken_early += 1;
                continue;
            }
            if expected / 1000 != delay {
                eprintln!("{perf}: thread {tid} at {time}: {delay} µs: {before:#?}");
                odd += 1;
            }
        }
        assert!(
            compared > 50 && woken_early * 10 < compared,
            "{perf}: {compared}, {woken_early}"
        );
        // On a busy machine, perf 6.12 shows a delay of a thread that no event woke up.
        assert!(odd * 100 <= compared, "{perf}: {odd} of {compared} delays");
    }
}

/// Exports have the same time; a selection applies to the new samples, not to those they are made
/// of.
#[test]
fn exports_contain_the_time_off_the_cpu() {
    let Some(case) = Case::new() else {
        return;
    };
    let output = convert(&case.path(), None, stages()).expect("it is converted");
    let text = script(case.recorder, &output.path(), &OFF_CPU);
    let samples = off_cpu(&text);
    let sum = |is: &dyn Fn(&u32, &OffCpuTime) -> bool| {
        let all = samples
            .iter()
            .flat_map(|(tid, list)| list.iter().map(move |off| (tid, off)));
        let all = all.filter(|(tid, off)| is(tid, off));
        all.map(|(_, off)| off.end - off.begin).sum::<u64>()
    };
    let folded = |options: &str| {
        let command = format!("perfconv export -q --off-cpu {options} perf.data --to folded -o -");
        let said = in_shell(case.folder.path(), &command);
        assert!(said.success(), "{command}: {}", said.stderr);
        said.stdout
    };
    let total = |text: &str| {
        let weights = text.lines().filter_map(|line| line.rsplit_once(' '));
        weights
            .map(|(_, weight)| weight.parse::<u64>().expect("a weight"))
            .sum::<u64>()
    };
    let all = folded("");
    assert_eq!(total(&all), sum(&|_, _| true));
    assert!(all.lines().any(|line| line.starts_with("oc-sleep;")
        && line.contains("nanosleep")
        && line.contains(";[sleep] ")));
    // The thread that slept longest.
    let tid = samples
        .iter()
        .filter(|(_, list)| list.iter().any(|off| off.comm == "oc-sleep"))
        .map(|(tid, _)| *tid)
        .next()
        .expect("a thread");
    let own = sum(&|of, _| *of == tid);
    assert!(own > 0);
    assert_eq!(total(&folded(&format!("--tid {tid}"))), own);
    let commands = "perfconv export -q --off-cpu perf.data -o out.pb.gz && \
                    perfconv export -q --off-cpu perf.data -o out.html && \
                    perfconv export -q --off-cpu --wakers perf.data -o out.json.gz && \
                    gzip -dc out.pb.gz | tr -c '[:print:]' '\\n' && \
                    gzip -dc out.json.gz | grep -o '\"reason\":\"[^\"]*\"' | sort -u";
    let said = in_shell(case.folder.path(), commands);
    assert!(said.success(), "{}", said.stderr);
    assert!(said.stdout.contains("off-cpu_samples") && said.stdout.contains("[sleep]"));
    assert!(
        said.stdout.contains("\"reason\":\"[sleep]\""),
        "{}",
        said.stdout
    );
    let page = std::fs::read_to_string(case.folder.path().join("out.html")).expect("a page");
    assert!(page.contains("[\"offcpu-time\",true,true]"));
    let commands = "perfconv export -q --off-cpu perf.data -o out.speedscope.json && \
                    perfconv export -q --off-cpu perf.data -o out.parquet && \
                    perfconv export -q --off-cpu perf.data --to otlp-1.10 -o out.otlp && \
                    perfconv export -q --off-cpu perf.data --to perf-script -F period,event -o -";
    let said = in_shell(case.folder.path(), commands);
    assert!(said.success(), "{}", said.stderr);
    let all = sum(&|_, _| true);
    let lines = said.stdout.lines().map(|line| {
        let (period, event) = line.trim().split_once(' ').expect("two fields");
        assert_eq!(event.trim(), "offcpu-time:");
        period.parse::<u64>().expect("a period")
    });
    assert_eq!(lines.sum::<u64>(), all);
    let read = |name: &str| std::fs::read(case.folder.path().join(name)).expect("an output");
    let json: Value = serde_json::from_slice(&read("out.speedscope.json")).expect("JSON");
    let threads = &json["profiles"][0];
    assert_eq!(threads["name"], "offcpu-time: all threads");
    let weights = threads["weights"].as_array().expect("weights").iter();
    let weights = weights.map(|weight| weight.as_u64().expect("a weight"));
    assert_eq!(weights.sum::<u64>(), all);
    assert_eq!(rows(&case.folder.path().join("out.parquet")), all);
    let otlp = read("out.otlp");
    let has = |text: &[u8]| otlp.windows(text.len()).any(|window| window == text);
    assert!(has(b"off-cpu") && has(b"[sleep]"));
}

/// Returns the sum of the periods in a table.
fn rows(path: &Path) -> u64 {
    let file = std::fs::File::open(path).expect("a table");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let batches = reader.build().expect("a Parquet file");
    let sums = batches.map(|batch| {
        let batch = batch.expect("rows");
        let periods = batch.column_by_name("period").expect("a column");
        let periods = periods.as_primitive::<Int64Type>();
        periods.iter().flatten().sum::<i64>() as u64
    });
    sums.sum()
}
