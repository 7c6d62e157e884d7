//! The session model compared with perf: the mappings that every sample hit, for every recording
//! that a perf of its byte order can read.

use std::collections::BTreeMap;
use std::sync::Mutex;

use perfdata_core::record::CpuMode;
use perfdata_session::DsoKind;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, Recording};
use perfdata_tests::script::{self, Line, Seen};
use perfdata_tests::skipped;

/// Number of occurrences of perf's choices, by reason.
static CHOICES: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());
/// Number of samples and frames that were compared.
static COMPARED: Mutex<(usize, usize)> = Mutex::new((0, 0));

fn met(choice: &'static str) {
    *CHOICES
        .lock()
        .expect("it does not panic")
        .entry(choice)
        .or_default() += 1;
}

fn check(recording: &Recording) -> Result<(), String> {
    let mut judges = perf::all().iter().filter(|perf| {
        let is_native = recording
            .recorder
            .as_ref()
            .is_none_or(|recorder| recorder.perf <= perf.version);
        recording
            .form
            .is_some_and(|form| form.endian == perf.endian)
            && is_native
    });
    judges.try_for_each(|perf| check_by(recording, perf))
}

fn check_by(recording: &Recording, perf: &Perf) -> Result<(), String> {
    let (seen, result) = script::resolved(&recording.path);
    if seen.is_empty() || result.is_err() {
        return Ok(());
    }
    let has_cpu = seen.iter().all(|(line, _)| line.cpu.is_some());
    let fields = if has_cpu {
        "comm,pid,tid,cpu,time,event,ip,dso"
    } else {
        "comm,pid,tid,time,event,ip,dso"
    };
    let path = recording
        .path
        .canonicalize()
        .map_err(|error| error.to_string())?;
    let mut command = perf.command();
    command
        .args(["script", "--no-inline", "--ns", "-F", fields, "-i"])
        .arg(path);
    let output = perf::run(command).map_err(|error| error.to_string())?;
    let expected = script::lines(&output.stdout);
    let mut seen = script::by_time(seen, |(line, _)| (line.time, line.tid));
    let mut wrong: Vec<String> = Vec::new();
    for line in &expected {
        let Some(found) = seen
            .get_mut(&(line.time, line.tid))
            .filter(|found| !found.is_empty())
        else {
            // Samples without a time, and counters of a group, are compared in library/session.rs.
            continue;
        };
        let same = |(_, frames): &(Line, Vec<Seen>)| is_same(line, frames);
        let at = found.iter().position(same).unwrap_or(0);
        let (ours, frames) = found.remove(at);
        if line.pid.is_some_and(|pid| Some(pid) != ours.pid)
            || line.cpu.is_some() && line.cpu != ours.cpu
        {
            wrong.push(format!("{line:?} {ours:?}"));
        }
        let mut compared = COMPARED.lock().expect("it does not panic");
        (compared.0, compared.1) = (
            compared.0 + 1,
            compared.1 + line.frames.len().min(frames.len()),
        );
        drop(compared);
        for ((address, dso), seen) in line.frames.iter().zip(&frames) {
            if *address != seen.address
                && Some(*address) != seen.offset
                && seen.before_exec.is_none()
            {
                break;
            }
            let dso = dso.as_deref().unwrap_or("[unknown]");
            if is_named(seen, dso) {
                continue;
            }
            match choice(line, seen, dso, perf) {
                Some(choice) => met(choice),
                None => wrong.push(format!("{address:#x} ({dso}), but here {seen:x?}")),
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let count = wrong.len();
    wrong.sort();
    wrong.dedup();
    wrong.truncate(3);
    Err(format!(
        "{perf}: {count} of {} samples:\n  {}",
        expected.len(),
        wrong.join("\n  ")
    ))
}

fn is_same(line: &Line, frames: &[Seen]) -> bool {
    line.frames
        .iter()
        .zip(frames)
        .all(|((address, dso), seen)| {
            (*address == seen.address || Some(*address) == seen.offset)
                && is_named(seen, dso.as_deref().unwrap_or(""))
        })
}

/// Returns whether perf's name of a DSO is the same as ours.
fn is_named(seen: &Seen, dso: &str) -> bool {
    match &seen.dso {
        None => dso == "[unknown]",
        Some((name, DsoKind::Module)) => name == dso || module(name) == module(dso),
        Some((name, DsoKind::Anonymous)) => name == dso || dso.starts_with("/tmp/perf-"),
        Some((name, _)) => name == dso,
    }
}

/// Returns `ext4` for `/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz` and for `[ext4]`.
fn module(name: &str) -> String {
    let file = name
        .rsplit('/')
        .next()
        .unwrap_or(name)
        .trim_matches(['[', ']']);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// Returns the choice of perf that causes the difference.
fn choice(line: &Line, seen: &Seen, dso: &str, perf: &Perf) -> Option<&'static str> {
    if seen.before_exec.as_deref() == Some(dso) {
        return Some("perf keeps what was mapped before exec");
    }
    if line.comm == format!(":{}", line.tid) && dso == "[unknown]" {
        return Some("perf forgets what a thread that has ended had mapped");
    }
    if seen
        .dso
        .as_ref()
        .is_some_and(|(_, kind)| matches!(kind, DsoKind::Vdso | DsoKind::Vdso32))
        && perf.endian == Endian::Big
    {
        return Some("perf looks for the vDSO of its own process, which has none when emulated");
    }
    if seen.dso.is_none()
        && seen.mode == CpuMode::KERNEL
        && dso == "[kernel.kallsyms]"
        && perf.version.major >= 7
    {
        return Some("perf 7.2 takes what is behind the kernel's mapped text for a part of it");
    }
    None
}

#[test]
fn perf_finds_the_same_files() {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    recordings::check_all(&recordings::fixtures(), check);
    recordings::check_all(&recordings::shared(), check);
    let (samples, frames) = *COMPARED.lock().expect("it does not panic");
    eprintln!(
        "{samples} samples and {frames} frames compared; {:#?}",
        CHOICES.lock().expect("it does not panic")
    );
    assert!(
        samples > 1000 && frames > 5000,
        "{samples} samples, {frames} frames"
    );
}
