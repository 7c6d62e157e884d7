//! Runs that end abnormally. In all cases, the input is unchanged, the target is unchanged or
//! complete, and no temporary file remains. SIGKILL leaves a temporary file, recognizable by its
//! name, if the system does not support unnamed files, or at the moment when a file replaces
//! another one.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::ExitStatusExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use perfdata_tests::skipped;
use perfdata_tests::{
    convert::{Whole, perfconv},
    is_thorough, recordings, synth,
};
use tempfile::TempDir;

use crate::stalled::{Stalled, end, signals_arrive};

/// The previous content of the target.
const BEFORE: &[u8] = b"what was here before";

/// Size of the converted recording in bytes: large enough to interrupt a run.
const LEN: usize = 8 << 20;

/// A folder with an input, and an existing target.
struct Room {
    folder: TempDir,
    crc: u32,
}

impl Room {
    fn new(recording: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("input.data"), recording).expect("a temporary file");
        let room = Room {
            crc: crc32fast::hash(recording),
            folder,
        };
        room.reset();
        room
    }

    fn reset(&self) {
        fs::write(self.target(), BEFORE).expect("a temporary file");
    }

    fn input(&self) -> PathBuf {
        self.folder.path().join("input.data")
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target.data")
    }

    /// Returns a perfconv command for the input that overwrites the target.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = perfconv();
        command
            .arg("convert")
            .args(words)
            .args(["-q", "--force"])
            .arg(self.input())
            .arg("-o")
            .arg(self.target());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the names of other files than input and target in the folder.
    fn others(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let names = entries.map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        names
            .filter(|name| name != "input.data" && name != "target.data")
            .collect()
    }

    fn is_input_whole(&self) -> bool {
        crc32fast::hash(&fs::read(self.input()).expect("the input is there")) == self.crc
    }

    /// Returns whether the target is unchanged; otherwise it must be `complete`.
    fn is_untouched(&self, complete: &[u8]) -> Result<bool, String> {
        let target = fs::read(self.target()).map_err(|error| format!("no target: {error}"))?;
        match target.as_slice() {
            BEFORE => Ok(true),
            target if target == complete => Ok(false),
            target => Err(format!(
                "the target has {} bytes, neither those from before nor all",
                target.len()
            )),
        }
    }
}

/// Returns a large recording.
fn large(pipe: bool) -> Vec<u8> {
    let name = if pipe {
        "7.2-x86_64-pipe-default"
    } else {
        "7.2-x86_64-file-default"
    };
    let bytes = fs::read(recordings::fixture(name).path).expect("a fixture");
    let Whole {
        mut stream,
        records_end,
        ..
    } = Whole::read(bytes.clone()).expect("a recording");
    stream.truncate(records_end);
    if pipe {
        let mut all = bytes[..bytes.len() - stream.len()].to_vec();
        while all.len() < LEN {
            all.extend_from_slice(&stream);
        }
        return all;
    }
    let basic = synth::file::basic(false);
    let records = synth::record::stream(&synth::file::basic_records(false, &basic.events[0]));
    synth::file::File {
        data: records.repeat(LEN / records.len()),
        ..basic
    }
    .bytes()
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    assert!(sent.is_ok(), "kill can be started");
}

/// Reproducible pseudo-random numbers.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Signals at any time of a run: before its start, in the middle, during the replacement of the
/// target.
#[test]
fn signals_at_any_time() {
    if !signals_arrive() {
        return;
    }
    let kills = if is_thorough() { 1000 } else { 40 };
    let mut chance = Seeded(1);
    let mut faults = Vec::new();
    let (mut ended, mut left, mut complete) = ([0_u32; 3], 0, 0);
    for (way, words, pipe) in [
        ("copy", &[][..], false),
        ("pipe2file", &["--to", "file"][..], true),
        ("swap", &["--swap-endian"][..], false),
    ] {
        let room = Room::new(&large(pipe));
        // The shortest of several times: the machine may be busy with other tasks.
        let time = |_| {
            room.reset();
            let start = Instant::now();
            let status = room.command(words).status().expect("perfconv runs");
            assert!(status.success(), "{way}: {status}");
            start.elapsed()
        };
        let usual = (0..5).map(time).min().expect("there are several");
        let whole = fs::read(room.target()).expect("a target");
        for number in 0..kills {
            let (at, signal) = [("-INT", 2), ("-TERM", 15), ("-KILL", 9)][number % 3];
            room.reset();
            let mut child = room.command(words).spawn().expect("perfconv runs");
            let limit = u64::try_from(usual.as_micros())
                .unwrap_or(u64::MAX)
                .saturating_mul(11)
                / 10;
            thread::sleep(Duration::from_micros(chance.below(limit.max(1))));
            send(at, &child);
            let status = end(&mut child, way);
            let what = format!("{way}, {at} number {number}");
            if status.signal() == Some(signal) {
                ended[number % 3] += 1;
            } else if !status.success() {
                faults.push(format!("{what}: {status}"));
            }
            match room.is_untouched(&whole) {
                Ok(true) if status.success() => {
                    faults.push(format!("{what}: success without a target"))
                }
                Ok(is_untouched) => complete += u32::from(!is_untouched),
                Err(error) => faults.push(format!("{what}: {error}")),
            }
            for name in room.others() {
                if signal == 9 && name.starts_with(".perfconv-") && name.ends_with(".tmp") {
                    left += 1;
                } else {
                    faults.push(format!("{what}: left {name}"));
                }
                fs::remove_file(room.folder.path().join(name)).expect("it can be removed");
            }
        }
        assert!(room.is_input_whole(), "{way}: the input has changed");
    }
    println!(
        "{} runs hit: {} ended by SIGINT, {} by SIGTERM, {} by SIGKILL, the others were done before; {complete} targets \
         complete, the others untouched; {left} temporary files left, all by SIGKILL",
        3 * kills,
        ended[0],
        ended[1],
        ended[2],
    );
    assert!(
        ended.iter().all(|&count| count > 0),
        "no run was hit: {ended:?}"
    );
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// A small mounted file system, which is unmounted on drop.
struct Mounted(TempDir);

impl Mounted {
    fn new(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Mounted(folder));
        }
        skipped::note("root, to mount a small file system");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk() {
    let Some(small) = Mounted::new("size=4m") else {
        return;
    };
    let room = Room::new(&large(false));
    let target = small.0.path().join("target.data");
    fs::write(&target, BEFORE).expect("there is room for it");
    for words in [
        &[][..],
        &["--to", "pipe"],
        &["--swap-endian"],
        &["--compress=1"],
    ] {
        let mut command = perfconv();
        command
            .arg("convert")
            .args(words)
            .arg("--force")
            .arg(room.input())
            .arg("-o")
            .arg(&target);
        let said = command.output().expect("perfconv runs");
        let error = String::from_utf8_lossy(&said.stderr);
        if said.status.success() {
            // The compressed output fits.
            fs::write(&target, BEFORE).expect("there is room for it");
            continue;
        }
        assert_eq!(said.status.code(), Some(2), "{words:?}: {error}");
        assert!(
            error.contains("No space left on device"),
            "{words:?}: {error}"
        );
        assert_eq!(fs::read(&target).expect("it is there"), BEFORE, "{words:?}");
        assert_eq!(
            fs::read_dir(small.0.path()).expect("a folder").count(),
            1,
            "{words:?}"
        );
    }
    assert!(room.is_input_whole());

    // The disk is also full for a report.
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let said = perfconv()
        .arg("info")
        .arg(room.input())
        .stdout(full)
        .output()
        .expect("perfconv runs");
    assert_eq!(
        said.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}

#[test]
fn an_output_on_another_file_system() {
    let Some(other) = Mounted::new("size=64m") else {
        return;
    };
    let room = Room::new(&large(true));
    let target = other.0.path().join("target.data");
    let mut command = perfconv();
    command
        .args(["pipe2file", "-q"])
        .arg(room.input())
        .arg("-o")
        .arg(&target);
    assert!(command.status().expect("perfconv runs").success());
    assert!(Whole::read_file(&target).is_ok());
    assert_eq!(fs::read_dir(other.0.path()).expect("a folder").count(), 1);
    assert!(room.is_input_whole());
}

#[test]
fn a_directory_that_cannot_be_written() {
    let room = Room::new(&large(false));
    let program = room.folder.path().join("perfconv");
    fs::copy(perfconv().get_program(), &program).expect("the program can be copied");
    for path in [&program, &room.folder.path().to_owned()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o555)).expect("it is ours");
    }
    fs::set_permissions(room.input(), fs::Permissions::from_mode(0o444)).expect("it is ours");
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    if !Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        skipped::note("root, to run as another user");
    } else {
        nobody
            .arg(&program)
            .args(["convert", "--force"])
            .arg(room.input())
            .arg("-o")
            .arg(room.target());
        let said = nobody.output().expect("setpriv runs");
        let error = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{error}");
        assert!(error.contains("permission denied"), "{error}");
        assert_eq!(fs::read(room.target()).expect("it is there"), BEFORE);
        assert_eq!(room.others(), ["perfconv"]);
        assert!(room.is_input_whole());
    }
    fs::set_permissions(room.folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// The same file by its path, another path, a hard link and a symbolic link, with and without
/// --force.
#[test]
fn an_output_that_is_the_input() {
    let room = Room::new(
        &fs::read(recordings::fixture("6.1-x86_64-file-default").path).expect("a fixture"),
    );
    let folder = room.folder.path();
    fs::hard_link(room.input(), folder.join("hard")).expect("a link");
    symlink("input.data", folder.join("soft")).expect("a link");
    let inputs = [
        room.input(),
        folder.join("./input.data"),
        folder.join("hard"),
        folder.join("soft"),
    ];
    for input in &inputs {
        for output in &inputs {
            for force in [&[][..], &["--force"]] {
                let mut command = perfconv();
                command
                    .args(["convert", "--swap-endian"])
                    .args(force)
                    .arg(input)
                    .arg("-o")
                    .arg(output);
                let said = command.output().expect("perfconv runs");
                let error = String::from_utf8_lossy(&said.stderr);
                assert_eq!(
                    said.status.code(),
                    Some(2),
                    "{} to {}: {error}",
                    input.display(),
                    output.display()
                );
                assert!(error.contains("inputs are never changed"), "{error}");
                assert!(room.is_input_whole());
            }
        }
    }
    let mut others = room.others();
    others.sort();
    assert_eq!(others, ["hard", "soft"]);
    assert!(folder.join("soft").is_symlink());

    // The input is standard input, which has no name.
    let mut command = perfconv();
    command
        .args(["convert", "--swap-endian", "--force", "-", "-o"])
        .arg(room.input());
    command.stdin(File::open(room.input()).expect("it is there"));
    let said = command.output().expect("perfconv runs");
    let error = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{error}");
    assert!(room.is_input_whole());
}

/// The output must be neither a file in the input directory nor a directory around it.
#[test]
fn an_output_in_the_input_or_around_it() {
    let room = Room::new(b"");
    let folder = room.folder.path();
    let directory = folder.join("in.dir");
    fs::create_dir(&directory).expect("a folder");
    for entry in
        fs::read_dir(recordings::fixture("7.2-x86_64-file-threads").path).expect("a fixture")
    {
        let from = entry.expect("a file").path();
        fs::copy(
            &from,
            directory.join(from.file_name().expect("it has a name")),
        )
        .expect("a copy");
    }
    let names = |path: &Path| {
        let mut all: Vec<_> = fs::read_dir(path)
            .expect("it is there")
            .map(|e| e.expect("a file").file_name())
            .collect();
        all.sort();
        all
    };
    let before = names(&directory);
    let bytes = || {
        before
            .iter()
            .map(|name| fs::read(directory.join(name)).expect("it is there"))
            .collect::<Vec<_>>()
    };
    let contents = bytes();
    for words in [
        "--to file in.dir -o in.dir/data",
        "--to file in.dir -o in.dir/data.0",
        "--to file in.dir -o in.dir/data.7",
        "--to dir in.dir -o in.dir/other",
        "--to dir in.dir/data -o in.dir",
        "recover in.dir -o in.dir/data.1",
    ] {
        let said = perfconv()
            .args(words.split(' '))
            .arg("-f")
            .current_dir(folder)
            .output()
            .expect("perfconv runs");
        let error = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{words}: {error}");
        assert!(
            error.contains("inputs are never changed"),
            "{words}: {error}"
        );
        assert!(
            names(&directory) == before && bytes() == contents,
            "{words}"
        );
    }
}

/// A shell may have opened it for writing before.
#[test]
fn standard_output_that_is_the_input() {
    let room = Room::new(
        &fs::read(recordings::fixture("6.1-x86_64-file-default").path).expect("a fixture"),
    );
    let out = || {
        File::options()
            .append(true)
            .open(room.input())
            .expect("it is there")
    };
    for input in [room.input(), PathBuf::from("-")] {
        let mut command = perfconv();
        command
            .args(["convert", "--swap-endian", "-o", "-"])
            .arg(&input)
            .stdout(out());
        let said = command
            .stdin(File::open(room.input()).expect("it is there"))
            .output()
            .expect("perfconv runs");
        let error = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{error}");
        assert!(error.contains("standard output is the input"), "{error}");
        assert!(room.is_input_whole());
    }
}

/// A link remains, and its target is replaced.
#[test]
fn an_output_that_is_a_link() {
    let room = Room::new(
        &fs::read(recordings::fixture("6.1-x86_64-file-default").path).expect("a fixture"),
    );
    let folder = room.folder.path();
    fs::write(folder.join("real"), b"before").expect("a file");
    symlink("real", folder.join("link")).expect("a link");
    let run = |words: &[&str]| {
        perfconv()
            .args(words)
            .current_dir(folder)
            .output()
            .expect("perfconv runs")
            .status
    };
    assert_eq!(run(&["input.data", "-o", "link"]).code(), Some(2));
    assert_eq!(run(&["input.data", "-o", "link", "-f"]).code(), Some(0));
    assert!(folder.join("link").is_symlink());
    assert_eq!(
        fs::read(folder.join("real")).expect("a file"),
        fs::read(room.input()).expect("a file")
    );
}

/// A file that exceeds the size limit of the process is an error like a full disk.
#[test]
fn a_file_that_may_not_grow() {
    let room = Room::new(&large(true));
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "ulimit -f 8; \"$0\" input.data -f -o target.data"])
        .arg(perfconv().get_program());
    let said = shell.current_dir(&room.folder).output().expect("bash runs");
    let error = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{error}");
    assert!(error.contains("File too large"), "{error}");
    assert_eq!(room.others(), [""; 0]);
    assert_eq!(fs::read(room.target()).expect("it is there"), BEFORE);
}

/// `| head` is not an error for any output.
#[test]
fn a_reader_that_goes_away() {
    let room = Room::new(&large(true));
    for words in [
        &["dump"][..],
        &["dump", "--json"],
        &["convert", "-o", "-"],
        &["convert", "--to", "file", "-o", "-"],
    ] {
        let mut command = perfconv();
        command
            .args(words)
            .arg(room.input())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("perfconv runs");
        let mut first = [0; 100];
        let mut out = child.stdout.take().expect("it is piped");
        out.read_exact(&mut first).expect("there is more");
        drop(out);
        let status = end(&mut child, "a reader that goes away");
        let mut error = String::new();
        child
            .stderr
            .take()
            .expect("it is piped")
            .read_to_string(&mut error)
            .expect("it is text");
        assert!(status.success(), "{words:?}: {status}: {error}");
        assert!(
            !error.contains("error") && !error.contains("panicked"),
            "{words:?}: {error}"
        );
    }
    assert_eq!(room.others(), [""; 0]);
    assert!(room.is_input_whole());
}

/// There is no target while the input stalls. When the rest arrives, the run succeeds.
#[test]
fn an_input_that_stalls() {
    let recording =
        fs::read(recordings::fixture("7.2-x86_64-pipe-default").path).expect("a fixture");
    for part in [0, 10, recording.len() / 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("target.data");
        let mut command = perfconv();
        command.args(["pipe2file", "-q", "-", "-o"]).arg(&target);
        let mut run = Stalled::behind(command, &recording, part);
        assert!(run.waits() && !target.exists());
        assert!(run.finish().status.success());
        assert!(Whole::read_file(&target).is_ok());
    }
}
