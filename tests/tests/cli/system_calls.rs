//! Runs in which a system call fails: each call of a run in turn, injected by strace.
//!
//! A run is first traced without failures. It is then repeated, and for each kind of call for files
//! the first, the second … fails, in several ways. Either the output is correct and the status is
//! 0; or the status is 2 (1 if a part of the recording could not be read as such), there is a
//! message, the target is unchanged, and no temporary file remains.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, SystemTime},
};

use perfdata_core::Endian;
use perfdata_tests::{
    convert::perfconv,
    is_thorough,
    perf::{self, Output},
    recordings::{self, in_parallel},
    skipped,
    synth::{
        self,
        jitdump::{Dump, Header},
    },
    told::{MONOTONIC, Told, made},
};
use tempfile::TempDir;

use crate::stalled::names;

/// Commands that write recordings, directories and reports.
pub const COMMANDS: &[&str] = &[
    "convert in.file -o out",
    "pipe2file in.pipe -o out",
    "file2pipe in.file -o out",
    "--swap-endian in.file -o out",
    "--compress in.file -o out",
    "--decompress in.z -o out -f",
    "--build-ids --to pipe in.file -o out --sysroot .",
    "inject -b -i in.file -o out --sysroot .",
    "recover in.cut -o out",
    "recover in.cut -o out --to dir",
    "--to dir in.pipe -o out",
    "--to dir in.dir -o out -f",
    "--to file in.dir -o out",
    "extract-aux in.aux -o out --sideband side",
    "extract-aux in.aux -o out --sideband side -f",
    "split in.file -o out --by tid",
    "split in.z -o out --by samples=100",
    "info in.file --html out",
    "info in.file --html out -f",
    "--set-raw HOSTNAME=raw in.file -o out",
    "file2pipe in.file -o -",
    "pipe2file in.pipe -o -",
];

/// Conversions with their own outputs, merges and exports, with one line for each kind of output.
pub const CONVERSIONS: &[&str] = &[
    "--sort in.file -o out",
    "--sort in.pipe -o out -f",
    "--time 0%-50% in.file -o out",
    "--max-stack 2 in.file -o out",
    "--compat 6.1 in.file -o out",
    "--convert-callchain in.dwarf -o out --sysroot .",
    "--merge-deferred in.defer -o out",
    "--jit --jit-dir . --build-ids --sysroot . in.jit -o out",
    "--perf-maps=. --build-ids --sysroot . in.jit -o out",
    "--sanitize --key raw-key in.file -o out",
    "merge in.file in.second -o out",
    "merge in.file in.second --align after -o out -f",
    "merge in.pipe in.z -o -",
];

/// All formats of exports.
pub const EXPORTS: &[&str] = &[
    "export in.file --no-symbols --to folded -o out",
    "export in.file --no-symbols --to folded -o -",
    "export in.file --no-symbols --to flamegraph -o out",
    "export in.file --no-symbols --to svg -o out",
    "export in.file --no-symbols --to pprof -o out -f",
    "export in.file --no-symbols --to firefox -o out",
    "export in.z --no-symbols --to speedscope -o out",
    "export in.file --no-symbols --to otlp-1.10 -o out",
    "export in.file --no-symbols --to perf-script -o out",
    "export in.file --no-symbols --to arrow -o out",
    "export in.file --no-symbols --to parquet -o out",
    "export in.file --no-symbols --to parquet -o out.parquet",
    "export in.file in.second --no-symbols --append-to out",
    "export in.traced --no-symbols --append-to out --recording-label service=web",
];

/// Commands that only read.
pub const READING: &[&str] = &[
    "info --json in.file",
    "dump in.z",
    "dump --resolved --json in.pipe",
    "verify in.file",
    "diff in.file in.file",
];

/// Returns the errors with which a call may fail.
fn errors(call: &str) -> &'static [&'static str] {
    match call {
        "read" | "pread64" | "getdents64" => &["EIO", "EINTR"],
        "write" | "pwrite64" => &["ENOSPC", "EIO", "EINTR"],
        "fallocate" | "ftruncate" => &["ENOSPC", "EIO", "EOPNOTSUPP", "ENOSYS"],
        "openat" | "open" => &[
            "EMFILE",
            "EIO",
            "EINTR",
            "EACCES",
            "ENOSPC",
            "EOPNOTSUPP",
            "ENOENT",
        ],
        "fcntl" | "dup" | "dup3" => &["EMFILE"],
        "linkat" | "renameat2" | "rename" | "mkdir" | "mkdirat" => &[
            "ENOSPC",
            "EIO",
            "EEXIST",
            "EPERM",
            "ENOSYS",
            "EOPNOTSUPP",
            "EINVAL",
            "EINTR",
        ],
        "fsync" | "fdatasync" => &["EIO", "ENOSPC", "EINVAL", "EINTR"],
        "copy_file_range" | "sendfile" => &["EIO", "ENOSPC", "EXDEV", "ENOSYS", "EOPNOTSUPP"],
        "statx" | "newfstatat" | "fstat" => &["EIO", "ENOSYS", "ENOMEM", "EACCES"],
        "close" => &["EIO", "ENOSPC", "EINTR"],
        "ioctl" => &["EIO", "ENOTTY"],
        _ => &["EIO", "ENOSYS", "EACCES"],
    }
}

/// Number of successive calls of one kind that fail; of later calls, only some fail.
const MOST: usize = 25;

/// Calls that do not affect the files.
const OTHERS: &[&str] = &["execve", "mmap", "poll", "ppoll", "epoll_wait"];

/// Calls after which the output has its name.
const LATE: &[&str] = &[
    "fsync",
    "openat",
    "close",
    "unlink",
    "rmdir",
    "unlinkat",
    "getdents64",
    "newfstatat",
    "statx",
    "fcntl",
    "fstat",
    "read",
    "ioctl",
    "lseek",
    "write",
];

/// Files of a scene that are no outputs.
const OF_SCENE: &[&str] = &["raw", "raw-key", "calls", "jit-5.dump", "perf-5.map"];

/// Names and contents of files.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A folder with recordings, and with previous outputs if the command line contains `-f`.
pub struct Scene {
    folder: TempDir,
    words: &'static str,
}

impl Scene {
    pub fn new(words: &'static str) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let fixture = |name: &str| fs::read(recordings::fixture(name).path).expect("a fixture");
        fs::write(path("raw"), [2, 0, 0, 0, b'x', 0]).expect("a temporary file");
        fs::write(path("raw-key"), [7; 64]).expect("a temporary file");
        let file = fixture("6.1-x86_64-file-default");
        for input in words.split(' ').filter(|word| word.starts_with("in.")) {
            let put = |bytes: &[u8]| fs::write(path(input), bytes).expect("a temporary file");
            match input {
                "in.pipe" => put(&fixture("7.2-x86_64-pipe-default")),
                "in.second" => put(&fixture("6.1-x86_64-file-g")),
                "in.traced" => put(&fixture("6.1-x86_64-file-tp")),
                "in.z" => put(&fixture("7.2-x86_64-file-z")),
                "in.dwarf" => put(&fixture("6.1-x86_64-file-dwarf-u")),
                "in.defer" => put(&fixture("6.1-x86_64-pipe-defer")),
                "in.jit" => {
                    let dump = Dump::new(false, Header::of(5))
                        .load(100, 0x1000, 1, "first", &[0x90; 16])
                        .load(100, 0x2000, 2, "second", &[0xc3; 5]);
                    fs::write(path("jit-5.dump"), dump.bytes()).expect("a temporary file");
                    fs::write(path("perf-5.map"), "1010 20 third\n").expect("a temporary file");
                    let told = [
                        (20, Told::Map(5, 0x1000, 0x10000, "//anon")),
                        (90, Told::Map(5, 0x70_0000, 0x1000, "/gone/jit-5.dump")),
                        (101, Told::Sample(5, 0x1000)),
                        (102, Told::Sample(5, 0x1018)),
                    ];
                    made(&path(input), Endian::Little, MONOTONIC, &told);
                }
                "in.cut" => put(&file[..file.len() - 3000]),
                "in.aux" => put(&synth::file::kitchen_sink(false)),
                "in.dir" => {
                    let threads = recordings::fixture("6.1-x86_64-file-threads").path;
                    fs::create_dir(path(input)).expect("a temporary folder");
                    for name in names(&threads) {
                        fs::copy(threads.join(&name), path(input).join(&name)).expect("a fixture");
                    }
                }
                _ => put(&file),
            }
            if let Ok(file) = File::open(path(input)) {
                // A report contains the time of the recording.
                file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000))
                    .expect("it is ours");
            }
        }
        Scene { folder, words }.reset()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Restores the previous state.
    pub fn reset(self) -> Self {
        self.clear();
        if self.words.ends_with(" -f") {
            if self.words.contains("--to dir") {
                fs::create_dir(self.path("out")).expect("a temporary folder");
                fs::write(self.path("out/data"), "precious").expect("a temporary file");
            } else if self.words.contains("extract-aux") {
                fs::create_dir(self.path("out")).expect("a temporary folder");
                fs::write(self.path("out/index.json"), "precious").expect("a temporary file");
                fs::write(self.path("side"), "precious").expect("a temporary file");
            } else {
                fs::write(self.path("out"), "precious").expect("a temporary file");
            }
        }
        self
    }

    pub fn clear(&self) {
        for name in names(self.folder.path()) {
            let path = self.path(&name);
            let is_output = name.starts_with("out") || name.starts_with(".perfconv");
            if is_output || ["side", "calls"].contains(&name.as_str()) {
                let _ = if path.is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                };
            }
        }
    }

    /// Runs the command with its words, started by `starter`.
    pub fn run_by(&self, mut starter: Command) -> Output {
        starter
            .args(self.words.split(' '))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .env("TMPDIR", self.folder.path());
        perf::run(starter).expect("it can be started")
    }

    /// Returns whether the output goes to standard output.
    pub fn is_direct(&self) -> bool {
        self.words.ends_with("-o -") || !self.words.contains(" out")
    }

    /// Runs the command under strace with `options`.
    fn run(&self, options: &[&str]) -> Output {
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "--seccomp-bpf", "-q", "-o", "calls"])
            .args(options)
            .arg(perfconv().get_program());
        self.run_by(strace)
    }

    /// Returns the names and contents of all files in the folder except inputs.
    pub fn outputs(&self) -> Files {
        let mut all = BTreeMap::new();
        for name in names(self.folder.path()) {
            if !OF_SCENE.contains(&name.as_str()) && !name.starts_with("in.") {
                self.add(name, &mut all);
            }
        }
        all
    }

    /// Returns whether a failed command left the outputs `found` where those in `before` were.
    /// `whole` are the outputs of the command without failures.
    pub fn is_as_before(&self, found: &Files, before: &Files, whole: &Files) -> bool {
        if self.words.contains("--append-to") {
            // Folders may remain, and a table lists what failed. A recording that is there is complete.
            let is_complete = |(name, bytes): (&String, &Vec<u8>)| match whole.get(name) {
                Some(right) => right == bytes,
                None => name.ends_with(".unfinished") || name.starts_with("out/broken/"),
            };
            let recordings = found.keys().filter_map(|name| {
                let id = name.strip_prefix("out/recordings/")?;
                // The schema of the table may appear before a recording.
                (!id.is_empty() && !id.starts_with(['.', '_'])).then_some(id)
            });
            let has_all = |id: &str| {
                let mut tables = whole.keys().filter(|name| name.ends_with(id));
                tables.all(|name| found.contains_key(name))
            };
            return found.iter().all(is_complete) && { recordings }.all(has_all);
        }
        // Images are complete before their recording is.
        let found = found
            .iter()
            .filter(|(name, _)| !name.starts_with("out.jit/"));
        found.eq(before)
    }

    /// Adds the file or directory called `name`, and everything in it.
    fn add(&self, name: String, all: &mut Files) {
        let path = self.path(&name);
        if path.is_dir() {
            all.insert(format!("{name}/"), Vec::new());
            for part in names(&path) {
                self.add(format!("{name}/{part}"), all);
            }
        } else {
            all.insert(
                name,
                self.without_folder(fs::read(path).unwrap_or_default()),
            );
        }
    }

    /// Replaces the path of the folder, which recordings with images contain.
    fn without_folder(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let folder = self.folder.path().as_os_str().as_encoded_bytes();
        let places = bytes.windows(folder.len()).enumerate();
        let places: Vec<usize> = places
            .filter(|(_, piece)| *piece == folder)
            .map(|(at, _)| at)
            .collect();
        for at in places {
            bytes[at..at + folder.len()].fill(b'F');
        }
        bytes
    }
}

/// Returns for each call the number of calls by the loader, before the program itself started, and
/// the maximum number of calls by one thread.
fn calls(trace: &str) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut before = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((name, _)) = rest.trim().split_once('(') else {
            continue;
        };
        if rest.trim().starts_with('<') {
            continue;
        }
        // The first call of a Rust program.
        if name == "poll" && before.is_empty() {
            before = counts.clone();
        }
        *counts.entry((thread, name)).or_default() += 1;
    }
    let mut all: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for ((thread, name), count) in counts {
        let first = before.get(&(thread, name)).copied().unwrap_or(0);
        let entry = all.entry(name.to_owned()).or_default();
        *entry = (entry.0.max(first), entry.1.max(count));
    }
    all.retain(|name, _| !OTHERS.contains(&name.as_str()));
    all
}

/// A call that fails.
#[derive(Debug, Clone)]
struct Failure {
    call: String,
    error: &'static str,
    /// The number of the call, and whether all later ones fail, too.
    when: String,
}

/// Returns all failures of a run; by default one for each call and each of its errors, at varying
/// positions.
fn failures(words: &str, calls: &BTreeMap<String, (usize, usize)>) -> Vec<Failure> {
    let mut all = Vec::new();
    let mut turn = words.len();
    for (call, &(before, count)) in calls {
        for &error in errors(call) {
            let places: Vec<usize> = (before + 1..=count).collect();
            if places.is_empty() {
                continue;
            }
            turn += 1;
            let failure = |at: usize, more: &str| Failure {
                call: call.clone(),
                error,
                when: format!("{at}{more}"),
            };
            // A repeatedly interrupted call would be repeated forever.
            let ways: &[&str] = if error == "EINTR" { &[""] } else { &["", "+"] };
            if is_thorough() {
                let some = places
                    .iter()
                    .take(MOST)
                    .chain(places.iter().skip(MOST).step_by(17));
                all.extend(
                    some.flat_map(|&at| ways.iter().map(move |more| (at, more)))
                        .map(|(at, more)| failure(at, more)),
                );
            } else if turn.is_multiple_of(4) {
                all.push(failure(
                    places[turn * 7 % places.len()],
                    ways[turn % ways.len()],
                ));
            }
        }
    }
    all
}

/// Returns the fault of a run, if any.
fn fault(scene: &Scene, failure: &Failure, old: &Files, whole: &Run) -> Option<String> {
    let Failure { call, error, when } = failure;
    let done = scene.run(&[
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={call}:error={error}:when={when}"),
    ]);
    let found = scene.outputs();
    let trace = fs::read_to_string(scene.path("calls")).unwrap_or_default();
    let injected: Vec<&str> = trace
        .lines()
        .filter(|line| line.contains("(INJECTED)"))
        .collect();
    if injected.is_empty() {
        // The number of calls is different in this run.
        return None;
    }
    // The standard library assumes that closing a folder succeeds, and panics otherwise.
    if call == "close" && done.stderr.contains("unexpected error during closedir") {
        return None;
    }
    let Some(code) = done.status.and_then(|status| status.code()) else {
        return Some(format!(
            "ended by a signal, or not at all: {:?} {}",
            done.status, done.stderr
        ));
    };
    let said: String = done.stderr.chars().take(200).collect();
    let temporary = found.keys().find(|name| name.contains(".perfconv-"));
    // Files that cannot be removed remain, especially folders that cannot be read.
    let is_removal = ["unlink", "rmdir", "unlinkat", "getdents64"].contains(&call.as_str())
        || injected.iter().any(|line| line.contains("O_DIRECTORY"))
        || (when.ends_with('+') && temporary.is_some_and(|name| name.ends_with('/')))
        // The replaced file remains, and a message names it.
        || temporary.is_some_and(|name| done.stderr.contains(name.trim_end_matches('/')));
    if let Some(name) = temporary.filter(|_| !is_removal) {
        return Some(format!("status {code}, {name} is left: {}", said));
    }
    let is_direct = scene.is_direct();
    let is_stderr = call == "write" && trace.contains("write(2,");
    match code {
        0 if found == whole.outputs && (!is_direct || done.stdout == whole.stdout) => None,
        0 if temporary.is_some() => None,
        // An input without offsets is read as a stream, and has no time of its last change.
        0 if call == "lseek" && scene.words.starts_with("info") => None,
        0 if call == "lseek" && scene.words.contains("--append-to") => None,
        0 => Some(format!(
            "status 0, but another output: {:?} {}",
            found.keys(),
            said
        )),
        1 | 2 => {
            if !said.contains("perfconv: ") && !is_stderr {
                return Some(format!("status {code} without a message: {}", said));
            }
            let is_complete = LATE.contains(&call.as_str()) && found == whole.outputs;
            let is_left = temporary.is_some();
            let is_old = scene.is_as_before(&found, old, &whole.outputs);
            (!is_old && !is_complete && !is_left).then(|| {
                format!(
                    "status {code}, but the target is another one: {:?} {}",
                    found.keys(),
                    said
                )
            })
        }
        _ => Some(format!("status {code}: {}", said)),
    }
}

/// The result of a run without failures.
struct Run {
    outputs: Files,
    stdout: String,
}

#[test]
fn any_system_call_may_fail() {
    if !Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        skipped::note("strace, and the right to trace");
        return;
    }
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
    }
    let mut runs: Vec<(usize, Failure)> = Vec::new();
    let mut wholes = Vec::new();
    let mut kinds = BTreeSet::new();
    let commands = [COMMANDS, CONVERSIONS, EXPORTS].concat();
    for (at, &words) in commands.iter().enumerate() {
        let scene = Scene::new(words);
        let old = scene.outputs();
        let done = scene.run(&["-e", "trace=%file,%desc"]);
        assert!(done.success(), "{words}: {}", done.stderr);
        let calls = calls(&fs::read_to_string(scene.path("calls")).expect("what strace saw"));
        kinds.extend(calls.keys().cloned());
        runs.extend(
            failures(words, &calls)
                .into_iter()
                .map(|failure| (at, failure)),
        );
        wholes.push((
            old,
            Run {
                outputs: scene.outputs(),
                stdout: done.stdout,
            },
        ));
    }
    assert!(kinds.len() > 15, "{kinds:?}");
    let faults = AtomicUsize::new(0);
    in_parallel(&runs, |(at, failure)| {
        let words = commands[*at];
        let (old, whole) = &wholes[*at];
        if let Some(fault) = fault(&Scene::new(words), failure, old, whole) {
            let Failure { call, error, when } = failure;
            eprintln!("{words}: {call} {error} {when}: {fault}");
            faults.fetch_add(1, Ordering::Relaxed);
        }
    });
    eprintln!(
        "{} runs, of which one call each failed: {kinds:?}",
        runs.len()
    );
    let faults = faults.into_inner();
    assert!(faults == 0, "{faults} of {} runs", runs.len());
}
