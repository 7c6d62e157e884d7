//! On a system that starts no threads, such as a container with a limit of processes, the command
//! works without them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{self, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use perfdata_tests::{
    convert::perfconv,
    generate::{Generator, Mix},
    recordings, skipped, synth,
};
use tempfile::TempDir;

use crate::stalled::{Stalled, names, said, signals_arrive};

/// A folder for a user who may have one thread, with a copy of the program.
struct Room {
    folder: TempDir,
    user: u32,
}

impl Room {
    /// Returns `None` if this is not root: the limit counts all threads of a user, and only root
    /// can become another user.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Tests run in parallel, and the limit counts the threads of each user.
        static ROOMS: AtomicU32 = AtomicU32::new(0);
        let user = 1_000_000 + process::id() * 8 + ROOMS.fetch_add(1, Ordering::Relaxed);
        let room = Room { folder, user };
        fs::set_permissions(room.folder.path(), fs::Permissions::from_mode(0o777))
            .expect("it is ours");
        fs::copy(perfconv().get_program(), room.path("perfconv"))
            .expect("the program can be copied");
        let mut probe = Command::new("setpriv");
        probe
            .args([&format!("--reuid={user}"), "--clear-groups"])
            .arg(room.path("perfconv"))
            .arg("--version");
        if !probe.output().is_ok_and(|done| done.status.success()) {
            skipped::note("the right to become another user, who may start no thread");
            return None;
        }
        Some(room)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn input(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("a temporary file");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o644))
            .expect("it is ours");
    }

    /// Returns the command with at most `threads` threads, including the first one.
    fn command(&self, words: &str, threads: u32) -> Command {
        let mut command = Command::new("prlimit");
        command.args([
            &format!("--nproc={threads}"),
            "setpriv",
            &format!("--reuid={}", self.user),
            "--clear-groups",
        ]);
        command
            .arg(self.path("perfconv"))
            .args(words.split(' '))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &str, threads: u32) -> Output {
        self.command(words, threads).output().expect("prlimit runs")
    }
}

/// Returns a recording that is large enough for all threads.
fn large() -> Vec<u8> {
    let basic = synth::file::basic(false);
    let records = synth::record::stream(&synth::file::basic_records(false, &basic.events[0]));
    synth::file::File {
        data: records.repeat((8 << 20) / records.len()),
        ..basic
    }
    .bytes()
}

fn read(path: &Path) -> Vec<u8> {
    let path = if path.is_dir() {
        path.join("data")
    } else {
        path.to_owned()
    };
    fs::read(path).expect("an output")
}

#[test]
fn all_commands_do_without_threads() {
    let Some(room) = Room::new() else { return };
    room.input("in", &large());
    room.input(
        "pipe",
        &fs::read(recordings::fixture("7.2-x86_64-pipe-default").path).expect("a fixture"),
    );
    let mut faults = Vec::new();
    for words in [
        "in",
        "info in",
        "info in --html out",
        "dump in",
        "dump --json in",
        "verify in",
        "diff in pipe",
        "diff pipe in",
        "in -o out",
        "file2pipe in -o out",
        "pipe2file pipe -o out",
        "--swap-endian in -o out",
        "--compress=3 in -o out",
        "--build-ids=all --sysroot / in -o out",
        "inject -b -i in -o out",
        "recover in -o out",
        "--to dir in -o out",
        "--version",
        "--help",
        "man",
    ] {
        let whole = perfconv()
            .args(words.split(' '))
            .current_dir(&room.folder)
            .output()
            .expect("perfconv runs");
        let out = room.path("out");
        let output = out.exists().then(|| read(&out));
        let _ = if out.is_dir() {
            fs::remove_dir_all(&out)
        } else {
            fs::remove_file(&out)
        };
        for threads in [1, 2, 3] {
            let done = room.run(words, threads);
            let is_same = done.status.code() == whole.status.code() && done.stdout == whole.stdout;
            if !is_same || out.exists().then(|| read(&out)) != output {
                faults.push(format!(
                    "{words}, {threads} threads: {}: {}",
                    done.status,
                    said(&done)
                ));
            }
            let _ = if out.is_dir() {
                fs::remove_dir_all(&out)
            } else {
                fs::remove_file(&out)
            };
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The output does not depend on the number of threads.
#[test]
fn any_number_of_threads_gives_the_same_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("in"), large()).expect("a temporary file");
    let stream = fs::read(recordings::fixture("7.2-x86_64-pipe-default").path).expect("a fixture");
    fs::write(path("pipe"), stream).expect("a temporary file");
    fs::write(path("key"), [7; 32]).expect("a temporary file");
    for (name, mix) in [("stacks", Mix::Stacks), ("packed", Mix::Compressed)] {
        let file = fs::File::create(path(name)).expect("a temporary file");
        let made = Generator::new(mix, 8_000_000).file(file);
        made.expect("a temporary file");
    }
    for words in [
        "dump in",
        "dump --json packed",
        "verify --json packed",
        "diff in packed",
        "in -o out",
        "--swap-endian packed -o out",
        "--compress=3 in -o out",
        "--convert-callchain stacks -o out",
        "--sanitize --key key in -o out",
        "inject -b -i in -o out",
        "inject -b -i packed -o out",
        "recover in -o out",
        "merge in packed -o out",
        "pipe2file pipe -o out",
        "export --to parquet --no-symbols in -o out.parquet",
        "export --to folded --no-symbols in -o out",
    ] {
        let mut first = None;
        for threads in ["1", "2", "3", "8"] {
            let done = perfconv()
                .args(words.split(' '))
                .args(["--threads", threads])
                .args(words.contains("-o").then_some("--no-sync"))
                .current_dir(&folder)
                .output()
                .expect("perfconv runs");
            let out = path(words.rsplit(' ').next().unwrap_or_default());
            let output = words.contains("-o").then(|| read(&out));
            if output.is_some() {
                fs::remove_file(&out).expect("an output");
            }
            assert_ne!(done.status.code(), Some(2), "{words}: {}", said(&done));
            let result = (done.status.code(), done.stdout, output);
            let expected = first.get_or_insert_with(|| result.clone());
            assert!(*expected == result, "{words} --threads {threads}");
        }
    }
}

/// With `--threads 1` there is only one thread, apart from that which waits for signals.
#[test]
fn one_thread_starts_no_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("in"), large()).expect("a temporary file");
    for words in [
        "dump in",
        "verify in",
        "in -o out",
        "--swap-endian in -o out",
        "--compress=3 in -o out",
        "inject -b -i in -o out",
        "recover in -o out",
        "merge in in -o out",
        "--sanitize in -o out",
    ] {
        let clones = |threads: &str| {
            let mut strace = Command::new("strace");
            strace
                .args([
                    "-f",
                    "-c",
                    "-e",
                    "trace=clone,clone3,fork,vfork",
                    "-o",
                    "calls",
                ])
                .arg(perfconv().get_program())
                .args(words.split(' '))
                .args(["--threads", threads, "-q"])
                .current_dir(&folder);
            let done = strace.output().ok()?;
            let _ = fs::remove_file(folder.path().join("out"));
            assert!(done.status.code() == Some(0), "{words}: {}", said(&done));
            let calls = fs::read_to_string(folder.path().join("calls")).ok()?;
            let count = |line: &str| line.split_whitespace().nth(3)?.parse::<usize>().ok();
            Some(
                calls
                    .lines()
                    .filter(|line| line.contains("clone"))
                    .filter_map(count)
                    .sum::<usize>(),
            )
        };
        let Some(found) = clones("1") else {
            skipped::note("strace");
            return;
        };
        assert!(found <= 1, "{words}: {found} threads");
    }
}

/// Without a thread that waits for signals, they have the same effect.
#[test]
fn signals_without_a_thread() {
    if !signals_arrive() {
        return;
    }
    let Some(room) = Room::new() else { return };
    let stream = fs::read(recordings::fixture("7.2-x86_64-pipe-default").path).expect("a fixture");
    let mut run = Stalled::new(room.command("pipe2file - -o out", 1), &stream);
    run.send("INT");
    assert!(run.waits(), "the first signal ends it");
    let done = run.finish();
    assert!(done.status.success(), "{}", said(&done));
    fs::remove_file(room.path("out")).expect("an output");
    for signal in ["INT", "TERM"] {
        let mut run = Stalled::new(room.command("pipe2file - -o out", 1), &stream);
        run.send(signal);
        assert!(run.waits(), "the first signal ends it");
        assert!(!run.insist(signal, signal).success());
        assert_eq!(names(room.folder.path()), ["perfconv"], "{signal}");
    }
}

/// Commands that only show information about perfconv start no thread.
#[test]
fn help_starts_no_thread() {
    for words in ["--version", "--help", "convert --help"] {
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-e", "trace=clone,clone3,fork,vfork"])
            .arg(perfconv().get_program());
        let Ok(done) = strace.args(words.split(' ')).output() else {
            skipped::note("strace");
            return;
        };
        assert!(
            done.status.success() && !said(&done).contains("clone"),
            "{words}: {}",
            said(&done)
        );
    }
}
