//! The perf binaries of this machine, and their output for a recording.
//!
//! A machine has one `perf`. Other versions, and perfs of big-endian machines, are found by name
//! (`perf-6.12`, `perf-6.12-s390x`, …) in `$PERF_ORACLES/bin` or on the `PATH`. Without them, fewer
//! tests run.

use std::{
    env,
    fmt::{self, Write as _},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use crate::recordings::{Endian, PerfVersion};
use crate::skipped;

/// The names of perf programs. The suffix is the machine that they were built for.
const NAMES: [&str; 6] = [
    "perf",
    "perf-6.12",
    "perf-7.2",
    "perf-6.1-s390x",
    "perf-6.12-s390x",
    "perf-7.2-s390x",
];

/// Many times the maximum time that a command of the tests needs, emulated and on a machine that is
/// busy or was suspended: only a command that hangs takes longer.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A perf program.
#[derive(Debug)]
pub struct Perf {
    /// `perf-6.12-s390x`
    pub name: &'static str,
    /// Its release.
    pub version: PerfVersion,
    /// The byte order of the machine that it was built for.
    pub endian: Endian,
    program: PathBuf,
}

/// A question about a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Every record, as text.
    Script,
    /// The header and the feature sections, as text.
    Header,
    /// The attributes.
    Evlist,
    /// The build IDs of the DSOs.
    BuildIds,
}

/// The output of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit status; `None` after a timeout.
    pub status: Option<ExitStatus>,
    /// Standard output, with bytes that are not UTF-8 as `\xNN`.
    pub stdout: String,
    /// Standard error, in the same form.
    pub stderr: String,
}

impl Question {
    /// All questions.
    pub const ALL: [Self; 4] = [Self::Script, Self::Header, Self::Evlist, Self::BuildIds];

    /// Returns the arguments of perf, without the input.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            // Symbols and DSO names depend on the machine that reads the recording.
            Self::Script => &[
                "script",
                "--no-inline",
                "--ns",
                "--show-task-events",
                "--show-mmap-events",
                "--show-switch-events",
                "--show-namespace-events",
                "--show-lost-events",
                "--show-cgroup-events",
                "-F",
                "-symoff,-sym,-dso",
            ],
            Self::Header => &["report", "--header-only", "-I"],
            Self::Evlist => &["evlist", "-v"],
            Self::BuildIds => &["buildid-list"],
        }
    }
}

impl Output {
    /// Returns whether the command succeeded.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

impl Perf {
    /// Returns a perf command whose output depends only on the recording: no build ID cache, no
    /// configuration, an empty working directory, the C locale.
    pub fn command(&self) -> Command {
        let home = home();
        let mut command = Command::new(&self.program);
        command
            .args(["--no-pager", "--buildid-dir"])
            .arg(home.join("build-ids"))
            .current_dir(home)
            .env("HOME", home)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("PERF_CONFIG", "/dev/null")
            .env_remove("DEBUGINFOD_URLS");
        command
    }

    /// Returns the output of this perf for a question about the recording at `path`, in any
    /// container.
    pub fn ask(&self, question: Question, path: &Path) -> io::Result<Output> {
        let path = path.canonicalize()?;
        let mut command = self.command();
        command.args(question.arguments()).arg("-i").arg(path);
        let mut output = run(command)?;
        match question {
            Question::Header => output.stdout = without_capture_time(&output.stdout),
            Question::BuildIds => output.stdout = without_reader_vdso(&output.stdout),
            Question::Script | Question::Evlist => {}
        }
        Ok(output)
    }

    /// Returns the size of this perf's `perf_event_attr`. In file mode, perf rejects attributes
    /// that are larger.
    pub fn attr_size(&self) -> u32 {
        match (self.version.major, self.version.minor) {
            (6, 18..) | (7.., _) => 144,
            (6, 3..) => 136,
            (5, 13..) | (6, _) => 128,
            _ => 120,
        }
    }

    fn find(name: &'static str) -> Option<Self> {
        let program = program(name)?;
        let mut command = Command::new(&program);
        command.arg("--version");
        let said = run(command).ok()?;
        // An emulated program may print other lines first.
        let version = said
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("perf version "));
        let Some(version) = version.and_then(|version| version.parse().ok()) else {
            eprintln!("left out: {} does not say its version", program.display());
            return None;
        };
        let endian = byte_order(&program).unwrap_or(match name.ends_with("-s390x") {
            true => Endian::Big,
            false => Endian::Little,
        });
        Some(Self {
            name,
            version,
            endian,
            program,
        })
    }
}

impl fmt::Display for Perf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, {:?} endian)",
            self.name, self.version, self.endian
        )
    }
}

/// Records programs with callchains to `path`, with the perf of this machine. Returns the perfs
/// that can judge the recording; `None`, with a note, if nothing can be recorded here.
pub fn record_programs(path: &Path, frequency: u32, programs: &str) -> Option<Vec<&'static Perf>> {
    let frequency = frequency.to_string();
    record_with(path, &["-g", "-F", &frequency], programs)
}

/// As [`record_programs`], with options of `perf record`.
pub fn record_with(path: &Path, options: &[&str], programs: &str) -> Option<Vec<&'static Perf>> {
    let Some(recorder) = all().iter().find(|perf| perf.name == "perf") else {
        skipped::note("perf");
        return None;
    };
    let mut command = recorder.command();
    command
        .args(["record", "-e", "cpu-clock"])
        .args(options)
        .arg("-o")
        .arg(path)
        .args(["--", "sh", "-c", programs]);
    if let Some(home) = env::var_os("HOME") {
        command.env("HOME", home);
    }
    let output = run(command).expect("perf runs");
    if !output.success() || !path.exists() {
        skipped::note("the permission to record");
        return None;
    }
    let can_judge =
        |perf: &&Perf| perf.version >= recorder.version && perf.endian == recorder.endian;
    Some(all().iter().filter(can_judge).collect())
}

/// Returns the perfs of this machine, one for each version and byte order. For missing ones, the
/// test is noted as skipped in part.
pub fn all() -> &'static [Perf] {
    static FOUND: OnceLock<(Vec<Perf>, Vec<&str>)> = OnceLock::new();
    let (perfs, missing) = FOUND.get_or_init(|| {
        let mut perfs: Vec<Perf> = Vec::new();
        let mut missing = Vec::new();
        for name in NAMES {
            let Some(perf) = Perf::find(name) else {
                missing.push(name);
                continue;
            };
            let is_same =
                |other: &Perf| (other.version, other.endian) == (perf.version, perf.endian);
            if !perfs.iter().any(is_same) {
                perfs.push(perf);
            }
        }
        (perfs, missing)
    });
    for name in missing {
        skipped::note(format_args!("{name}, on the PATH or in $PERF_ORACLES/bin"));
    }
    perfs
}

/// Returns the file of a program in `$PERF_ORACLES/bin` or on the `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let oracles = env::var_os("PERF_ORACLES").map(|folder| Path::new(&folder).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = oracles.into_iter().chain(env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
}

/// Runs a command without input to its end. One that hangs is killed.
pub fn run(command: Command) -> io::Result<Output> {
    run_for(command, TIMEOUT)
}

/// Runs a command as [`run`], with another limit of its time.
pub fn run_for(mut command: Command, timeout: Duration) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    thread::scope(|scope| {
        let stdout = scope.spawn(|| read_all(stdout));
        let stderr = scope.spawn(|| read_all(stderr));
        let status = wait(&mut child, timeout)?;
        Ok(Output {
            status,
            stdout: stdout.join().expect("reading does not panic")?,
            stderr: stderr.join().expect("reading does not panic")?,
        })
    })
}

fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > timeout {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn read_all(source: Option<impl Read>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(mut source) = source {
        source.read_to_end(&mut bytes)?;
    }
    Ok(text(&bytes))
}

/// Converts bytes to text. Bytes that are not UTF-8 (a command may have any name) become `\xNN`, so
/// that nothing is lost.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Removes the line `captured on`, which contains the time of the file's last change, not data in
/// the file.
fn without_capture_time(header: &str) -> String {
    header
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("# captured on"))
        .collect()
}

/// Removes `[vdso]`. perf replaces a `[vdso]` in a recording by that of the reading machine, which
/// it copies to a file with a random name.
fn without_reader_vdso(build_ids: &str) -> String {
    build_ids
        .split_inclusive('\n')
        .filter(|line| !line.contains(" /tmp/perf-vdso"))
        .collect()
}

/// Returns the byte order of a program, which is not that of these tests if an emulator runs
/// either; `None` for a script.
fn byte_order(program: &Path) -> Option<Endian> {
    let mut start = [0; 6];
    let mut file = fs::File::open(program).ok()?;
    file.read_exact(&mut start).ok()?;
    match start {
        [0x7f, b'E', b'L', b'F', _, 1] => Some(Endian::Little),
        [0x7f, b'E', b'L', b'F', _, 2] => Some(Endian::Big),
        _ => None,
    }
}

/// Returns an empty folder as the home directory for perf.
fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        let home = Path::new(concat!(env!("OUT_DIR"), "/perf-home"));
        fs::create_dir_all(home).expect("the target directory can be written");
        home.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        // A busy machine may start the shell late.
        for milliseconds in [100, 1_000, 10_000, 60_000] {
            let timeout = Duration::from_millis(milliseconds);
            let output =
                run_for(shell("echo before; exec sleep 600"), timeout).expect("sh can be started");
            assert!(output.status.is_none());
            assert!(!output.success());
            if !output.stdout.is_empty() {
                assert_eq!(output.stdout, "before\n");
                return;
            }
        }
        panic!("the output before the end is lost");
    }

    #[test]
    fn both_outputs_and_the_status_are_kept() {
        let output = run(shell("printf 'a\\377b'; echo c >&2; exit 3")).expect("sh can be started");
        assert_eq!(output.stdout, "a\\xffb");
        assert_eq!(output.stderr, "c\n");
        assert_eq!(output.status.and_then(|status| status.code()), Some(3));
    }
}
