//! All commands with less and less address space, down to what the loader of programs needs.
//!
//! The status is 0 and the output is the right one; or the status is 2, there is a message, the
//! target is as before, and no temporary file is left; or an allocation failed, and the standard
//! library ends the process with its own message. In this case, the target is as before, too, and
//! only a temporary directory may be left. A program that the system cannot start says nothing.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_tests::convert::perfconv;
use perfdata_tests::recordings::in_parallel;
use perfdata_tests::{is_thorough, skipped};

use crate::faults::{Known, all_scenes, ended, fault};
use crate::system_calls::Scene;

const SIGABRT: i32 = 6;

/// Address space in bytes.
fn limits(first: u64) -> Vec<u64> {
    let most = 64 << 20;
    let step = if is_thorough() { 128 << 10 } else { 2 << 20 };
    // With the smallest one, the program does not start.
    let small = (first..most).step_by(step);
    small.chain([most]).collect()
}

/// Returns the command under a limit of the address space.
fn limited(limit: u64) -> Command {
    let mut prlimit = Command::new("prlimit");
    prlimit
        .arg(format!("--as={limit}"))
        .arg(perfconv().get_program())
        // A backtrace needs more memory than any command.
        .env_remove("RUST_BACKTRACE");
    prlimit
}

/// Returns the smallest limit, in steps of 128 KiB, with which the program starts.
fn least() -> u64 {
    (1..512)
        .map(|step| step << 17)
        .find(|&limit| {
            let mut version = limited(limit);
            version.arg("--version").stdout(Stdio::null());
            version
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.code().is_some_and(|code| code <= 2))
        })
        .expect("it starts with 64 MiB")
}

/// Returns whether a file is part of an output directory that was not finished, or is this
/// directory.
fn is_in_temporary_directory(name: &str) -> bool {
    let name = name.strip_prefix("out/").unwrap_or(name);
    name.starts_with(".perfconv-") && name.contains('/')
}

/// Returns what is wrong with the run of a command.
fn check((words, before, whole): &Known, limit: u64) -> Result<&'static str, String> {
    let scene = Scene::new(words);
    let run = ended(&scene, limited(limit));
    match run.output.status {
        // The kernel or the loader ended it.
        Some(status) if status.signal().is_some() && run.output.stderr.is_empty() => {
            return match scene.is_as_before(&run.files, before, &whole.files) {
                true => Ok("not started"),
                false => Err("ended by a signal, and another target".into()),
            };
        }
        Some(status) if status.code() == Some(127) => return Ok("not started"),
        // After a failed allocation, Rust aborts; libraries panic, and so does the start of threads.
        Some(status) if status.signal() == Some(SIGABRT) || status.code() == Some(101) => {
            let mut files = run.files.clone();
            files.retain(|name, _| !is_in_temporary_directory(name));
            return match scene.is_as_before(&files, before, &whole.files) {
                _ if run.output.stderr.is_empty() => Err("no message".into()),
                true => Ok("ended by Rust"),
                false => Err(format!("another target: {}", run.output.stderr)),
            };
        }
        Some(status) if status.code() == Some(1) => {
            return Err(format!("the input is blamed: {}", run.output.stderr));
        }
        _ => {}
    }
    match fault(&scene, &run, before, whole) {
        Some(what) => Err(what),
        None if run.output.success() => Ok("right output"),
        None => Ok("error"),
    }
}

#[test]
fn all_commands_end_with_a_message() {
    if !limited(1 << 30)
        .arg("--version")
        .output()
        .is_ok_and(|done| done.status.success())
    {
        skipped::note("prlimit");
        return;
    }
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
    }
    let least = least();
    let limits = limits(least.saturating_sub(1 << 20));
    let scenes = all_scenes();
    let runs: Vec<_> = scenes
        .iter()
        .enumerate()
        // Commands take turns with the limits between the steps.
        .flat_map(|(at, scene)| {
            let shift = (at as u64 * 7 % 16) << 17;
            let limits = limits.iter();
            limits.map(move |limit| (scene, if is_thorough() { *limit } else { limit + shift }))
        })
        .collect();
    let faults = AtomicUsize::new(0);
    let tally = std::sync::Mutex::new(BTreeMap::<_, usize>::new());
    in_parallel(&runs, |&(scene, limit)| match check(scene, limit) {
        Ok(end) => *tally.lock().expect("no panic").entry(end).or_default() += 1,
        Err(what) => {
            eprintln!("{}, {limit} bytes: {what}", scene.0);
            faults.fetch_add(1, Ordering::Relaxed);
        }
    });
    let tally = tally.into_inner().expect("as above");
    eprintln!("{} runs, from {least} bytes: {tally:?}", runs.len());
    assert!(tally.contains_key("right output") && tally.contains_key("error"));
    let faults = faults.into_inner();
    assert!(faults == 0, "{faults} of {} runs", runs.len());
}
