//! Outputs: an existing file remains unless it may be overwritten, even if it appears during the
//! run; outputs are on the disk at the end of the command; standard descriptors may be closed.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Output, Stdio},
};

use perfdata_tests::{
    convert::{Whole, perfconv},
    recordings, skipped, synth,
};
use tempfile::TempDir;

use crate::stalled::{Stalled, names, said};

fn pipe() -> Vec<u8> {
    fs::read(recordings::fixture("7.2-x86_64-pipe-default").path).expect("a fixture")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn command(words: &str, folder: &Path) -> Command {
    let mut command = perfconv();
    command.args(words.split(' ')).current_dir(folder);
    command
}

fn run(words: &str, folder: &Path) -> Output {
    command(words, folder)
        .stdin(Stdio::null())
        .output()
        .expect("perfconv runs")
}

/// Returns the command on a system without unnamed files: the command finds these through `/proc`.
/// Returns `None` if `/proc` cannot be hidden here.
fn without_unnamed(words: &str, folder: &Path) -> Option<Command> {
    let hidden = "mount -t tmpfs none /proc";
    let mut command = Command::new("unshare");
    let status = command
        .args(["--mount", "sh", "-c", hidden])
        .stderr(Stdio::null())
        .status();
    if !status.is_ok_and(|status| status.success()) {
        skipped::note("the right to mount, for what is done where there is no /proc");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        &format!("{hidden} && exec \"$0\" {words}"),
    ]);
    command.arg(perfconv().get_program()).current_dir(folder);
    Some(command)
}

/// Returns both ways to create a file.
fn both(words: &str, folder: &Path) -> Vec<Command> {
    [Some(command(words, folder)), without_unnamed(words, folder)]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn a_target_that_appears_in_the_meantime_stays() {
    for words in [
        "pipe2file - -o out",
        "recover - -o out",
        "file2pipe - -o out",
        "info - --html out",
    ] {
        let folder = folder();
        let out = folder.path().join("out");
        let whole = Stalled::new(command(words, folder.path()), &pipe()).finish();
        assert!(whole.status.success(), "{words}: {}", said(&whole));
        let expected = fs::read(&out).expect("an output");
        fs::remove_file(&out).expect("an output");
        for command in both(words, folder.path()) {
            let run = Stalled::new(command, &pipe());
            fs::write(&out, "precious").expect("a temporary file");
            let done = run.finish();
            assert_eq!(done.status.code(), Some(2), "{words}: {}", said(&done));
            assert!(
                said(&done).contains("out was created by another process"),
                "{words}: {}",
                said(&done)
            );
            assert_eq!(fs::read(&out).expect("it stays"), b"precious", "{words}");
            assert_eq!(names(folder.path()), ["out"], "{words}");
            fs::remove_file(&out).expect("it is ours");
        }
        for command in both(&format!("{words} -f"), folder.path()) {
            let run = Stalled::new(command, &pipe());
            fs::write(&out, "worthless").expect("a temporary file");
            let done = run.finish();
            assert!(done.status.success(), "{words}: {}", said(&done));
            assert!(fs::read(&out).expect("an output") == expected, "{words}");
            assert_eq!(names(folder.path()), ["out"], "{words}");
            assert_eq!(
                fs::metadata(&out).expect("an output").permissions().mode() & 0o777,
                0o600,
                "{words}"
            );
            fs::remove_file(&out).expect("it is ours");
        }
    }
}

#[test]
fn a_directory_that_appears_in_the_meantime_stays() {
    for force in ["", " -f"] {
        let folder = folder();
        let out = folder.path().join("out");
        for command in both(&format!("--to dir - -o out{force}"), folder.path()) {
            let run = Stalled::new(command, &pipe());
            fs::create_dir(&out)
                .and_then(|()| fs::write(out.join("mine"), "precious"))
                .expect("a temporary folder");
            let done = run.finish();
            assert_eq!(done.status.code(), Some(2), "{}", said(&done));
            assert_eq!(fs::read(out.join("mine")).expect("it stays"), b"precious");
            assert_eq!(
                (names(folder.path()), names(&out)),
                (vec!["out".into()], vec!["mine".into()])
            );
            fs::remove_dir_all(&out).expect("it is ours");
            // Replacing an empty directory would lose nothing, but it is not replaced without
            // --force either.
            let run = Stalled::new(
                self::command(&format!("--to dir - -o out{force}"), folder.path()),
                &pipe(),
            );
            fs::create_dir(&out).expect("a temporary folder");
            let done = run.finish();
            assert_eq!(
                done.status.code(),
                Some(if force.is_empty() { 2 } else { 0 }),
                "{}",
                said(&done)
            );
            fs::remove_dir_all(&out).expect("it is ours");
        }
    }
}

/// If one of them cannot be created, the other is not created either.
#[test]
fn aux_data_and_sideband_appear_together() {
    let stream = synth::pipe::kitchen_sink(false);
    for force in ["", " -f"] {
        let folder = folder();
        let (out, side) = (folder.path().join("out"), folder.path().join("side"));
        let words = format!("extract-aux - -o out --sideband side{force}");
        for command in both(&words, folder.path()) {
            if !force.is_empty() {
                fs::create_dir(&out)
                    .and_then(|()| fs::write(out.join("index.json"), "old"))
                    .expect("a temporary folder");
            }
            let run = Stalled::new(command, &stream);
            // A file cannot replace a folder.
            fs::create_dir(&side).expect("a temporary folder");
            let done = run.finish();
            assert_eq!(done.status.code(), Some(2), "{words}: {}", said(&done));
            assert!(said(&done).contains("side"), "{words}: {}", said(&done));
            if force.is_empty() {
                assert_eq!(names(folder.path()), ["side"], "{words}");
            } else {
                assert_eq!(names(folder.path()), ["out", "side"], "{words}");
                assert_eq!(names(&out), ["index.json"], "{words}");
                assert_eq!(
                    fs::read(out.join("index.json")).expect("it stays"),
                    b"old",
                    "{words}"
                );
                fs::remove_dir_all(&out).expect("it is ours");
            }
            fs::remove_dir(&side).expect("it is ours");
        }
        let done = Stalled::new(command(&words, folder.path()), &stream).finish();
        assert!(done.status.success(), "{words}: {}", said(&done));
        assert_eq!(names(folder.path()), ["out", "side"], "{words}");
    }
}

/// Also if they appear during the run, and in a directory that looks like a kernel image.
#[test]
fn foreign_files_in_a_directory_block() {
    let folder = folder();
    let out = folder.path().join("out");
    for name in ["mine", "kcore_dir/mine"] {
        for command in both("--to dir - -f -o out", folder.path()) {
            assert!(
                Stalled::new(self::command("--to dir - -o out", folder.path()), &pipe())
                    .finish()
                    .status
                    .success()
            );
            fs::create_dir(out.join("kcore_dir")).expect("a temporary folder");
            fs::write(out.join("kcore_dir/kcore"), "kernel").expect("a temporary file");
            let data = fs::read(out.join("data")).expect("an output");

            let run = Stalled::new(command, &pipe());
            fs::write(out.join(name), "precious").expect("a temporary file");
            let done = run.finish();
            assert_eq!(done.status.code(), Some(2), "{name}: {}", said(&done));
            assert!(
                said(&done).contains("was not written by a conversion"),
                "{name}: {}",
                said(&done)
            );
            assert_eq!(
                fs::read(out.join(name)).expect("it stays"),
                b"precious",
                "{name}"
            );
            assert!(fs::read(out.join("data")).expect("it stays") == data);
            assert_eq!(names(folder.path()), ["out"], "{name}");

            fs::remove_file(out.join(name)).expect("it is ours");
            let done = Stalled::new(
                self::command("--to dir - -f -o out", folder.path()),
                &pipe(),
            )
            .finish();
            assert!(done.status.success(), "{name}: {}", said(&done));
            assert_eq!(
                (names(folder.path()), names(&out)),
                (vec!["out".into()], vec!["data".into()])
            );
            fs::remove_dir_all(&out).expect("it is ours");
        }
    }
}

#[test]
fn one_of_twelve_runs_gets_the_name() {
    for words in [
        "pipe2file - -o out",
        "--to dir - -o out",
        "recover - -o out",
    ] {
        let folder = folder();
        let runs: Vec<_> = (0..12)
            .map(|_| Stalled::new(command(words, folder.path()), &pipe()))
            .collect();
        let threads = runs
            .into_iter()
            .map(|run| std::thread::spawn(|| run.finish()));
        // All of them are started before the first is joined.
        let threads: Vec<_> = threads.collect();
        let done: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"))
            .collect();
        let codes: Vec<_> = done.iter().map(|done| done.status.code()).collect();
        assert_eq!(
            codes.iter().filter(|&&code| code == Some(0)).count(),
            1,
            "{words}: {codes:?}"
        );
        assert_eq!(
            codes.iter().filter(|&&code| code == Some(2)).count(),
            11,
            "{words}: {codes:?}"
        );
        assert_eq!(names(folder.path()), ["out"], "{words}");
    }
}

#[test]
fn a_dangling_link_is_followed() {
    let folder = folder();
    fs::write(folder.path().join("in"), pipe()).expect("a temporary file");
    fs::create_dir(folder.path().join("deep")).expect("a temporary folder");
    for (link, to) in [
        ("first", "deep/second"),
        ("deep/second", "third"),
        ("lost", "nowhere/out"),
        ("loop", "loop"),
    ] {
        symlink(to, folder.path().join(link)).expect("a link");
    }
    let done = run("pipe2file in -o first", folder.path());
    assert!(done.status.success(), "{}", said(&done));
    assert!(Whole::read_file(&folder.path().join("deep/third")).is_ok());
    assert!(
        folder.path().join("first").is_symlink() && folder.path().join("deep/second").is_symlink()
    );
    for (link, why) in [
        ("first", "first exists"),
        ("lost", "lost is a symbolic link into a missing folder"),
        ("loop", "Too many levels of symbolic links"),
    ] {
        let done = run(&format!("pipe2file in -o {link}"), folder.path());
        assert_eq!(done.status.code(), Some(2), "{link}: {}", said(&done));
        assert!(said(&done).contains(why), "{link}: {}", said(&done));
    }
    assert_eq!(
        names(folder.path()),
        ["deep", "first", "in", "loop", "lost"]
    );
    assert_eq!(names(&folder.path().join("deep")), ["second", "third"]);
}

/// A link to a directory that is the input.
#[test]
fn no_link_leads_into_the_input() {
    let folder = folder();
    fs::write(folder.path().join("in"), pipe()).expect("a temporary file");
    assert!(run("--to dir in -o in.dir", folder.path()).status.success());
    symlink("in.dir/data.7", folder.path().join("link")).expect("a link");
    let done = run("--to file in.dir -o link", folder.path());
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert_eq!(names(&folder.path().join("in.dir")), ["data"]);
}

/// The calls that store a file durably precede its renaming and the end, and are made only on
/// request.
#[test]
fn outputs_are_on_the_disk() {
    let folder = folder();
    fs::write(folder.path().join("in"), pipe()).expect("a temporary file");
    // Returns the steps of a run; nothing without strace. File systems differ in how a file gets
    // its name: by a link or by renaming.
    let steps_to = |words: &str, stdout: Stdio| {
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-o",
            "calls",
            "-e",
            "trace=fsync,fdatasync,link,linkat,rename,renameat,renameat2",
        ]);
        strace
            .arg(perfconv().get_program())
            .args(words.split(' '))
            .current_dir(&folder)
            .stdin(Stdio::null());
        let mut child = strace.stdout(stdout).stderr(Stdio::piped()).spawn().ok()?;
        // If standard output is a pipe, nothing reads it; the data fits into the pipe.
        let behind = child.stdout.take();
        let done = child.wait_with_output().expect("strace ends");
        drop(behind);
        let text = fs::read_to_string(folder.path().join("calls")).unwrap_or_default();
        let steps = text
            .lines()
            // strace does not know which call a thread makes that ends with its process.
            .filter(|line| !line.contains(" = -1 ") && !line.contains("???("))
            .filter_map(|line| {
                let call = line.split_once(' ')?.1.trim_start().split_once('(')?.0;
                Some(if call.ends_with("sync") {
                    "disk"
                } else {
                    "name"
                })
            });
        Some((
            done.status.success(),
            steps.collect::<Vec<_>>(),
            format!("{words}: {}{text}", said(&done)),
        ))
    };
    let Some((true, ..)) = steps_to("convert in -o first", Stdio::null()) else {
        skipped::note("strace");
        return;
    };
    let check = |words: &str, stdout: Stdio, expected: &[&str]| {
        let (succeeds, steps, text) = steps_to(words, stdout).expect("strace runs");
        assert!(
            succeeds && steps == expected,
            "{steps:?} instead of {expected:?}: {text}"
        );
    };
    check(
        "pipe2file in -o out",
        Stdio::null(),
        &["disk", "name", "disk"],
    );
    check("pipe2file in -o out2 --no-sync", Stdio::null(), &["name"]);
    // The file, the new directory, and its parent.
    check(
        "--to dir in -o dir",
        Stdio::null(),
        &["name", "disk", "disk", "name", "disk"],
    );
    check(
        "--to dir in -o dir2 --no-sync",
        Stdio::null(),
        &["name", "name"],
    );
    // A file as standard output is synced, too; a pipe cannot be synced.
    for words in ["convert in -o -", "pipe2file in -o -"] {
        let file = || fs::File::create(folder.path().join("redirected")).expect("a temporary file");
        check(words, file().into(), &["disk"]);
        check(&format!("{words} --no-sync"), file().into(), &[]);
        check(words, Stdio::piped(), &[]);
    }
}

#[test]
fn descriptors_that_are_not_there() {
    let folder = folder();
    fs::write(folder.path().join("in"), pipe()).expect("a temporary file");
    let shell = |commands: &str| {
        let mut shell = Command::new("bash");
        shell
            .args(["-c", commands])
            .arg(perfconv().get_program())
            .current_dir(&folder);
        shell.output().expect("bash runs")
    };
    for commands in [
        "\"$0\" in -o - >/dev/full",
        "\"$0\" --help >/dev/full",
        "\"$0\" convert --help >/dev/full",
        "\"$0\" --version >/dev/full",
        "\"$0\" man >/dev/full",
        "\"$0\" completions bash >/dev/full",
    ] {
        let done = shell(commands);
        assert_eq!(done.status.code(), Some(2), "{commands}: {}", said(&done));
        assert!(
            said(&done).contains("standard output: "),
            "{commands}: {}",
            said(&done)
        );
    }
    // A closed descriptor is /dev/null: an input without a byte, and an output for nobody.
    let done = shell("\"$0\" pipe2file - -o out <&-");
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(said(&done).contains("empty"), "{}", said(&done));
    assert_eq!(names(folder.path()), ["in"]);
    for commands in ["\"$0\" in -o - >&-", "\"$0\" info in >&-"] {
        let done = shell(commands);
        assert_eq!(done.status.code(), Some(0), "{commands}: {}", said(&done));
    }
    // No opened file gets the number of a closed descriptor.
    for closed in ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"] {
        let done = shell(&format!("\"$0\" in -o out {closed}"));
        assert_eq!(done.status.code(), Some(0), "{closed}: {}", said(&done));
        assert!(
            fs::read(folder.path().join("out")).expect("an output") == pipe(),
            "{closed}"
        );
        fs::remove_file(folder.path().join("out")).expect("an output");
    }
    let help = shell("\"$0\" --help").stdout;
    assert!(help.starts_with(b"Read, write and convert") && help.ends_with(b"\n"));
}

/// The error names the file, and the folder in which it could not be written.
#[test]
fn a_full_disk_is_named() {
    let small = folder();
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(small.path())
        .stderr(Stdio::null());
    if !mount.status().is_ok_and(|status| status.success()) {
        skipped::note("the right to mount, for a small file system");
        return;
    }
    let folder = folder();
    let records = fs::read(recordings::fixture("6.1-x86_64-file-default").path).expect("a fixture");
    fs::write(folder.path().join("in"), &records).expect("a temporary file");
    let mut long = pipe();
    let stream = Whole::read(long.clone()).expect("a recording").stream;
    (0..20).for_each(|_| long.extend_from_slice(&stream));
    fs::write(folder.path().join("long"), &long).expect("a temporary file");
    let at = small.path().display().to_string();
    let mut faults = Vec::new();
    for (words, name) in [
        (
            format!("pipe2file long -o {at}/out"),
            format!("{at}/out: No space left on device"),
        ),
        (
            format!("convert long -o {at}/out"),
            format!("{at}/out: No space left on device"),
        ),
        (
            format!("--to dir long -o {at}/dir"),
            format!("{at}/dir/data: No space left on device"),
        ),
    ] {
        let done = run(&words, folder.path());
        let said = said(&done);
        if done.status.code() != Some(2)
            || !said.contains(&name)
            || !said.contains(&format!("was in {at}"))
        {
            faults.push(format!("{words}: {}: {said}", done.status));
        }
        if said.contains(".perfconv-") || !names(small.path()).is_empty() {
            faults.push(format!("{words}: {said}, {:?}", names(small.path())));
        }
    }
    // Temporary files are in a separate folder.
    let mut spooled = command("--to pipe - -o -", folder.path());
    let file = folder.path().join("file");
    assert!(
        run("pipe2file long -o file", folder.path())
            .status
            .success()
    );
    let mut cat = Command::new("cat")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat runs");
    spooled
        .env("TMPDIR", small.path())
        .stdin(cat.stdout.take().expect("a pipe"));
    let done = spooled.output().expect("perfconv runs");
    // The command holds its end of the pipe open.
    drop(spooled);
    let _ = cat.wait();
    let _ = Command::new("umount").arg(small.path()).status();
    let said = said(&done);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&format!("temporary file in {at}: No space left on device")),
        "{said}"
    );
    assert!(said.contains("TMPDIR"), "{said}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
