//! Inputs that change while they are read: a truncated one is an error, and appended bytes are not
//! read.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use perfdata_tests::{convert::perfconv, synth};
use rustix::io::ioctl_fionread;

use crate::stalled::{TIMEOUT, names};

/// Size of the recording in bytes: large enough to change before it is completely read.
const LEN: usize = 48 << 20;

/// Number of attempts to change a file before it is read; a busy machine may be late.
const ATTEMPTS: usize = 40;

fn large() -> Vec<u8> {
    let basic = synth::file::basic(false);
    let records = synth::record::stream(&synth::file::basic_records(false, &basic.events[0]));
    synth::file::File {
        data: records.repeat(LEN / records.len()),
        ..basic
    }
    .bytes()
}

/// Waits until a process has opened a file.
fn wait_for(child: &mut Child, file: &Path) {
    let start = Instant::now();
    let folder = format!("/proc/{}/fd", child.id());
    let has_opened = || {
        let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        entries.any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link == file))
    };
    while !has_opened() {
        assert!(start.elapsed() < TIMEOUT, "the input is not opened");
        if child.try_wait().expect("it is a child").is_some() {
            return;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

/// Waits until a process has started to read a file that it has opened.
fn wait_for_reads(child: &mut Child, file: &Path) {
    let io = format!("/proc/{}/io", child.id());
    let read = || -> Option<u64> {
        let counters = fs::read_to_string(&io).ok()?;
        counters
            .lines()
            .find_map(|line| line.strip_prefix("rchar: "))?
            .parse()
            .ok()
    };
    wait_for(child, file);
    let start = Instant::now();
    // The program's own libraries and settings have some kilobytes.
    while read().is_some_and(|bytes| bytes < 1 << 20) {
        assert!(start.elapsed() < TIMEOUT, "the input is not read");
        thread::sleep(Duration::from_micros(100));
    }
}

/// All commands that read a recording.
const COMMANDS: [&str; 15] = [
    "in",
    "info in",
    "info in --html out",
    "dump in",
    "verify in",
    "diff in in",
    "in -o out",
    "in -o -",
    "file2pipe in -o out",
    "--swap-endian in -o out",
    "--compress in -o out",
    "inject -b -i in -o out",
    "recover in -o out",
    "--to dir in -o out",
    "--to file in.dir -o out",
];

#[test]
fn an_input_that_is_cut_is_an_error() {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder");
    let folder = folder.path().canonicalize().expect("it is there");
    let bytes = large();
    let mut faults = Vec::new();
    fs::create_dir(folder.join("in.dir")).expect("a temporary folder");
    for words in COMMANDS {
        let input = if words.contains("in.dir") {
            folder.join("in.dir/data")
        } else {
            folder.join("in")
        };
        let mut was_hit = false;
        for _ in 0..ATTEMPTS {
            fs::write(&input, &bytes).expect("a temporary file");
            let mut command = perfconv();
            command
                .args(words.split(' '))
                .current_dir(&folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let mut child = command
                .stderr(Stdio::piped())
                .spawn()
                .expect("perfconv runs");
            wait_for_reads(&mut child, &input);
            let file = File::options()
                .write(true)
                .open(&input)
                .expect("it is there");
            file.set_len(1 << 20).expect("a file");
            let done = child.wait_with_output().expect("it is a child");
            let said = String::from_utf8_lossy(&done.stderr);
            let out = folder.join("out");
            match (done.status.code(), out.exists()) {
                (Some(2), false) if said.contains("the file was truncated while it was read") => {
                    was_hit = true
                }
                // The input had already been read completely.
                (Some(0), _) if words.starts_with("diff") || !words.contains("out") => {}
                (Some(0), true)
                    if out.is_dir()
                        || fs::metadata(&out).is_ok_and(|meta| meta.len() > 2 << 20) => {}
                _ => {
                    faults.push(format!("{words}: {}: {said}", done.status));
                    break;
                }
            }
            let _ = if out.is_dir() {
                fs::remove_dir_all(&out)
            } else {
                fs::remove_file(&out)
            };
            if was_hit {
                break;
            }
        }
        if !was_hit && faults.is_empty() {
            faults.push(format!("{words}: was never hit"));
        }
    }
    let left: Vec<_> = names(&folder)
        .into_iter()
        .filter(|name| name != "in" && name != "in.dir")
        .collect();
    assert!(
        faults.is_empty() && left.is_empty(),
        "{left:?}\n{}",
        faults.join("\n")
    );
}

/// If another program still writes a file, it is read up to its size at the time when it was
/// opened.
#[test]
fn what_an_input_gains_is_not_read() {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder");
    let folder = folder.path().canonicalize().expect("it is there");
    let (input, out) = (folder.join("in"), folder.join("out"));
    let bytes = large();
    for words in ["in -o out", "file2pipe in -o out", "recover in -o out"] {
        fs::write(&input, &bytes).expect("a temporary file");
        let run = || {
            let mut command = perfconv();
            command
                .args(words.split(' '))
                .arg("-q")
                .current_dir(&folder)
                .stdin(Stdio::null());
            command
        };
        assert!(run().status().expect("perfconv runs").success());
        let expected = fs::read(&out).expect("an output");
        fs::remove_file(&out).expect("an output");
        let mut child = run().spawn().expect("perfconv runs");
        wait_for_reads(&mut child, &input);
        let mut file = File::options()
            .append(true)
            .open(&input)
            .expect("it is there");
        file.write_all(&[0xff; 1 << 20]).expect("a temporary file");
        assert!(child.wait().expect("it is a child").success(), "{words}");
        assert!(fs::read(&out).expect("an output") == expected, "{words}");
        fs::remove_file(&out).expect("an output");
    }
}

/// Reading starts at the offset where the shell left the file.
#[test]
fn a_file_as_standard_input_that_is_cut() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let stream = fs::read(perfdata_tests::recordings::fixture("7.2-x86_64-pipe-default").path)
        .expect("a fixture");
    fs::write(
        folder.path().join("in"),
        [b"12345678", &stream[..]].concat(),
    )
    .expect("a temporary file");
    // If nobody reads the output, the command blocks after filling the pipe.
    let mut long = stream.clone();
    let records = perfdata_tests::convert::Whole::read(stream)
        .expect("a recording")
        .stream;
    (0..200).for_each(|_| long.extend_from_slice(&records));
    fs::write(folder.path().join("in"), [b"12345678", &long[..]].concat())
        .expect("a temporary file");
    let mut shell = Command::new("bash");
    let script = "exec 3<in; head -c 8 <&3 >/dev/null; exec \"$0\" convert - -o - <&3";
    shell
        .args(["-c", script])
        .arg(perfconv().get_program())
        .current_dir(&folder);
    let mut child = shell
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash runs");
    let output = child.stdout.as_ref().expect("it is piped");
    let start = Instant::now();
    while ioctl_fionread(output).expect("a pipe") == 0 {
        assert!(start.elapsed() < TIMEOUT, "there is no output");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(
        child.try_wait().expect("it is a child").is_none(),
        "it is not held up"
    );
    let file = File::options()
        .write(true)
        .open(folder.path().join("in"))
        .expect("it is there");
    file.set_len(1 << 20).expect("a file");
    let done = child.wait_with_output().expect("it is a child");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the file was truncated while it was read"),
        "{said}"
    );
}
