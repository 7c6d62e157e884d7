//! All commands where the system gives less than was asked for: short, interrupted and unavailable
//! reads and writes, and full devices.
//!
//! The status is 0 and the output is the right one; or the status is 2, there is a message, the
//! target is as before, and no temporary file is left.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_tests::convert::perfconv;
use perfdata_tests::perf::Output;
use perfdata_tests::recordings::in_parallel;
use perfdata_tests::skipped;

use crate::system_calls::{COMMANDS, CONVERSIONS, EXPORTS, Files, READING, Scene};

/// The result of a command.
pub struct Ended {
    pub output: Output,
    pub files: Files,
}

/// Runs the command of a scene, started by `starter`, which is followed by its words.
pub fn ended(scene: &Scene, starter: Command) -> Ended {
    let output = scene.run_by(starter);
    Ended {
        output,
        files: scene.outputs(),
    }
}

/// Returns what is wrong with a run, compared with the run without faults.
pub fn fault(scene: &Scene, run: &Ended, before: &Files, whole: &Ended) -> Option<String> {
    let said: String = run.output.stderr.chars().take(300).collect();
    let Some(code) = run.output.status.and_then(|status| status.code()) else {
        return Some(format!("{:?}: {said}", run.output.status));
    };
    if let Some(name) = run.files.keys().find(|name| name.contains(".perfconv-")) {
        return Some(format!("status {code}, and {name} is left: {said}"));
    }
    match code {
        0 if run.files != whole.files => Some(format!("status 0, but another output: {said}")),
        0 if scene.is_direct() && run.output.stdout != whole.output.stdout => {
            Some(format!("status 0, but another report: {said}"))
        }
        0 => None,
        1 | 2 if !said.contains("perfconv: ") => Some(format!("no message: {said}")),
        1 | 2 if !scene.is_as_before(&run.files, before, &whole.files) => {
            Some(format!("status {code}, but another target: {said}"))
        }
        1 | 2 => None,
        _ => Some(format!("status {code}: {said}")),
    }
}

/// The words of a command, the files before it, and its result without faults.
pub type Known = (&'static str, Files, Ended);

pub fn all_scenes() -> Vec<Known> {
    let scenes = Mutex::new(Vec::new());
    let all = [COMMANDS, CONVERSIONS, EXPORTS, READING].concat();
    in_parallel(&all, |&words| {
        let scene = Scene::new(words);
        let before = scene.outputs();
        let whole = ended(&scene, perfconv());
        assert!(whole.output.success(), "{words}: {}", whole.output.stderr);
        scenes
            .lock()
            .expect("no panic holds it")
            .push((words, before, whole));
    });
    let mut scenes = scenes.into_inner().expect("as above");
    scenes.sort_by_key(|(words, ..)| *words);
    scenes
}

/// Compiles the library that is loaded before the C library.
fn shim(folder: &tempfile::TempDir) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/faults.c");
    let library = folder.path().join("faults.so");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .args([source, "-ldl"])
        .status();
    compiled
        .is_ok_and(|status| status.success())
        .then_some(library)
}

#[test]
fn reads_and_writes_may_be_short_or_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = shim(&folder) else {
        skipped::note("a C compiler");
        return;
    };
    let scenes = all_scenes();
    let runs: Vec<_> = scenes
        .iter()
        .flat_map(|scene| ["short", "interrupted", "unavailable"].map(|fault| (scene, fault)))
        .collect();
    let faults = AtomicUsize::new(0);
    in_parallel(&runs, |((words, before, whole), kind)| {
        let scene = Scene::new(words);
        let mut starter = perfconv();
        starter
            .env("LD_PRELOAD", &library)
            .env("PERFCONV_FAULT", kind);
        let done = ended(&scene, starter);
        let mut what = fault(&scene, &done, before, whole);
        // Neither is an error, for any program.
        if *kind != "unavailable" && !done.output.success() {
            what = Some(format!("it fails: {}", done.output.stderr));
        }
        if let Some(what) = what {
            eprintln!("{words}: {kind}: {what}");
            faults.fetch_add(1, Ordering::Relaxed);
        }
    });
    let faults = faults.into_inner();
    assert!(faults == 0, "{faults} of {} runs", runs.len());
}

/// Streams arrive in pieces, and the pipe is not always ready.
#[test]
fn pipes_may_be_unavailable() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = shim(&folder) else {
        skipped::note("a C compiler");
        return;
    };
    let scene = Scene::new("pipe2file in.pipe -o out");
    let before = scene.outputs();
    let whole = ended(&scene, perfconv());
    for (kind, words) in [
        ("short", "pipe2file - -o out"),
        ("interrupted", "pipe2file - -o out"),
        ("unavailable", "pipe2file - -o out"),
        ("short", "recover - -o out"),
        ("unavailable", "dump -"),
        ("unavailable", "export --no-symbols --to folded - -o out"),
    ] {
        let scene = scene_after(&scene);
        let mut cat = Command::new("cat")
            .arg(scene.path("in.pipe"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat starts");
        let output = perfconv()
            .args(words.split(' '))
            .current_dir(scene.path(""))
            .env("LD_PRELOAD", &library)
            .env("PERFCONV_FAULT", kind)
            .stdin(cat.stdout.take().expect("a pipe"))
            .output()
            .expect("perfconv starts");
        let _ = cat.wait();
        let said = String::from_utf8_lossy(&output.stderr);
        let files = scene.outputs();
        match output.status.code() {
            Some(0) if words.starts_with("pipe2file") => {
                assert!(files == whole.files, "{words}: {kind}: {said}");
            }
            Some(0) => assert!(files.keys().all(|name| !name.starts_with('.'))),
            Some(2) if kind == "unavailable" => {
                assert!(files == before, "{words}: {kind}: {said}");
                assert!(said.contains("perfconv: error: "), "{said}");
            }
            other => panic!("{words}: {kind}: {other:?} {said}"),
        }
    }
}

/// Removes the outputs of the run before.
fn scene_after(scene: &Scene) -> &Scene {
    scene.clear();
    scene
}

/// Devices that are full, for every command that writes to standard output.
#[test]
fn full_devices_are_an_error() {
    for (words, _, _) in all_scenes() {
        let scene = Scene::new(words);
        if !scene.is_direct() || words.starts_with("verify") || words.starts_with("diff") {
            continue;
        }
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a device");
        let output = perfconv()
            .args(words.split(' '))
            .current_dir(scene.path(""))
            .stdout(full)
            .output()
            .expect("perfconv starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains("No space left on device"), "{words}: {said}");
    }
}
