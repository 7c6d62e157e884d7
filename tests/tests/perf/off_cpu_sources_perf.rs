//! The times off the CPU from two sources, of the same moment of this machine.

use std::collections::HashMap;

use perfdata_tests::convert::convert;
use perfdata_tests::perf;
use perfdata_tests::skipped;

use super::off_cpu_live_perf::{OFF_CPU, OffCpuTime, Waiters, off_cpu, script, stages};

/// Returns the reason of a sample.
fn reason(off: &OffCpuTime) -> &str {
    off.frames.first().map_or("", String::as_str)
}

/// Joins the waiting of each thread with the time after it in which the thread could run.
fn joined(samples: HashMap<u32, Vec<OffCpuTime>>) -> HashMap<u32, Vec<OffCpuTime>> {
    let join = |list: Vec<OffCpuTime>| {
        let mut all: Vec<OffCpuTime> = Vec::new();
        for off in list {
            match all.last_mut() {
                Some(last) if last.end == off.begin && reason(&off) == "[runnable]" => {
                    last.end = off.end;
                }
                _ => all.push(off),
            }
        }
        all
    };
    samples
        .into_iter()
        .map(|(tid, list)| (tid, join(list)))
        .collect()
}

/// SWITCH records and samples of `sched:sched_switch` show the same times. The records say only
/// whether a thread was preempted.
#[test]
fn sources_agree() {
    let Some(recorder) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return skipped::note("perf");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let waiters = Waiters::start();
    // One recorder runs inside the other.
    let inner = recorder.command();
    let mut command = recorder.command();
    command.current_dir(folder.path()).args(["record", "-q"]);
    command.args(["--switch-events", "-e", "cpu-clock/freq=499/", "-g", "-a"]);
    command.args(["-m", "2048", "-o", "records.data", "--"]);
    command.arg(inner.get_program()).args(["record", "-q"]);
    command.args(["--switch-events", "-e", "sched:sched_switch"]);
    command.args(["-e", "sched:sched_waking", "-g", "-a", "-m", "2048"]);
    command.args(["-o", "switches.data", "--", "sleep", "0.2"]);
    let said = perf::run(command).expect("perf can be started");
    drop(waiters);
    if !said.success() {
        return skipped::note("a perf that may record the events of the scheduler");
    }
    let [switches, records] = ["switches.data", "records.data"].map(|name| {
        let output = convert(&folder.path().join(name), None, stages());
        let output = output.expect("it is converted");
        off_cpu(&script(recorder, &output.path(), &OFF_CPU))
    });
    let (mut all, mut found) = (0, 0);
    let (mut of_switches, mut of_records) = (0, 0);
    for (tid, list) in joined(switches) {
        let others = records.get(&tid).map(Vec::as_slice).unwrap_or_default();
        // At the start, only records were counted on some CPUs.
        for off in list.iter().filter(|off| reason(off) != "[blocked]") {
            all += 1;
            let distance =
                |other: &&OffCpuTime| other.begin.abs_diff(off.begin) + other.end.abs_diff(off.end);
            let closest = others.iter().min_by_key(distance);
            let Some(other) = closest.filter(|other| distance(other) < 1_000_000) else {
                continue;
            };
            found += 1;
            of_switches += off.end - off.begin;
            of_records += other.end - other.begin;
            let is_preempted = |off| reason(off) == "[preempted]";
            let what = format!("thread {tid}: {off:?} {other:?}");
            assert_eq!(is_preempted(off), is_preempted(other), "{what}");
        }
    }
    eprintln!("{found} of {all}: {of_switches} and {of_records} ns");
    // Some end before the first record, or were too long for their difference.
    assert!(all > 100 && found * 100 > all * 95, "{found} of {all}");
    let difference = of_switches.abs_diff(of_records);
    assert!(difference * 20 < of_switches, "{of_switches} {of_records}");
}
