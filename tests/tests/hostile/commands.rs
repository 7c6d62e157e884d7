//! The commands that process every input, and functions to run them.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use clap::CommandFactory;
use perfconv::cli::Cli;
use perfconv::cmd;
use perfdata_convert::error::Error;
use perfdata_tests::fuzz;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::memory;

/// Command lines: IN is the input, OUT the output, ORIGINAL the recording that the input was made
/// from.
const COMMANDS: &[&str] = &[
    "convert IN -o OUT",
    "pipe2file IN -o OUT",
    "file2pipe IN -o OUT",
    "convert --swap-endian IN -o OUT",
    "convert --swap-endian --unknown keep IN -o OUT",
    "convert --swap-endian --unknown drop --to pipe IN -o OUT",
    "convert --decompress IN -o OUT",
    "convert --compress IN -o OUT",
    "convert --sort IN -o OUT",
    "convert --sort --swap-endian --unknown keep --to pipe IN -o OUT",
    "convert --compat 6.1 IN -o OUT",
    "convert --compat 5.0 --to file IN -o OUT",
    "convert --build-ids=all --sysroot /proc/tty --known-build-ids KNOWN IN -o OUT",
    "convert --build-ids --mmap2-build-ids --to pipe --sysroot /proc/tty --known-build-ids KNOWN IN -o OUT",
    "convert --max-stack 2 --stack-size=64 IN -o OUT",
    "convert --max-stack 1 --stack-size --omit period --to pipe IN -o OUT",
    "convert --set HOSTNAME=h --drop CMDLINE --drop BUILD_ID IN -o OUT",
    "convert --time 20%-60% --allow-empty IN -o OUT",
    "convert --comms *a* --descendants --last 9 --to pipe IN -o OUT",
    "convert --every 2 --invert --cpu 0-9999 IN -o OUT",
    "inject -b --sysroot /proc/tty --known-build-ids KNOWN -i IN -o OUT",
    "info IN",
    "info --json IN",
    "dump IN",
    "dump --json IN",
    "dump --hex IN",
    "dump --json --hex IN",
    "verify IN",
    "verify --json IN",
    "merge IN ORIGINAL -o OUT",
    "merge --align after --machines --rebase-kernel --unknown keep ORIGINAL IN --to pipe -o OUT",
    "diff IN ORIGINAL",
    "diff --json ORIGINAL IN",
    "recover IN -o OUT",
    "extract-aux IN -o OUT",
];

const KNOWN: &str = "0123456789012345678901234567890123456789 [kernel.kallsyms]";

/// Returns the commands of this perfconv, split into words.
pub fn all() -> Vec<Vec<String>> {
    let known = Cli::command();
    let words = COMMANDS
        .iter()
        .map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
    words
        .filter(|words| {
            words
                .first()
                .is_some_and(|name| known.find_subcommand(name).is_some())
        })
        .collect()
}

/// The result of a command.
pub enum End {
    /// Exit status 0, or findings.
    Done,
    /// An error with a position.
    Refused,
    /// An incorrect result.
    Fault(String),
}

/// Time and memory of one run.
pub struct Run {
    pub end: End,
    /// CPU time of this thread in nanoseconds.
    pub time: u64,
    /// Peak size of allocated memory in bytes.
    pub memory: usize,
}

impl Run {
    fn of(work: impl FnOnce() -> End) -> Self {
        let before = time();
        let (end, memory) = memory::peak_of(|| catch_unwind(AssertUnwindSafe(work)));
        let time = time().saturating_sub(before);
        let end = end
            .unwrap_or_else(|_| End::Fault(format!("panicked: {}", crate::worker::last_panic())));
        Run { end, time, memory }
    }

    /// Reads a recording and writes it in memory. The output is the same, and so is each readable
    /// record.
    pub fn copy(bytes: &[u8]) -> Self {
        Self::of(|| {
            fuzz::copy(bytes);
            End::Done
        })
    }
}

/// The folder for inputs and outputs.
pub struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    pub fn new() -> io::Result<Self> {
        // In memory, if there is such a folder, because thousands of files are created and deleted.
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() {
            tempfile::tempdir_in(shm)
        } else {
            tempfile::tempdir()
        }?;
        Ok(Room { folder })
    }

    pub fn input(&self) -> PathBuf {
        self.folder.path().join("input.data")
    }

    pub fn original(&self) -> PathBuf {
        self.folder.path().join("original.data")
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output.data")
    }

    /// Returns the command with its files.
    pub fn fill(&self, words: &[String]) -> Vec<String> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        let filled = words.iter().map(|word| match word.as_str() {
            "IN" => path(self.input()),
            "OUT" => path(self.output()),
            "ORIGINAL" => path(self.original()),
            "KNOWN" => KNOWN.to_owned(),
            word => word.to_owned(),
        });
        filled.collect()
    }

    /// Runs a command on the files in the folder.
    pub fn run(&self, words: &[String]) -> Run {
        let args = ["perfconv".to_owned()]
            .into_iter()
            .chain(self.fill(words))
            .chain(["-q".to_owned()]);
        let args: Vec<String> = if words.first().is_some_and(|word| word == "inject") {
            args.filter(|word| word != "-q").collect()
        } else {
            args.collect()
        };
        let run = Run::of(|| {
            let mut report = Report::default();
            let cli = Cli::from_args(args).map_err(|error| Error::Usage(error.to_string()));
            let result = cli.and_then(|cli| cmd::run(cli, &mut report));
            match (result, report.fault) {
                (_, Some(fault)) => End::Fault(fault),
                (Ok(_), None) => End::Done,
                (Err(error), None) => refused(&error),
            }
        });
        Run {
            end: self.clean(run.end),
            ..run
        }
    }

    /// Removes the output. An output that remains after an error is a fault, and so is any other
    /// file.
    fn clean(&self, end: End) -> End {
        let mut left = Vec::new();
        for entry in fs::read_dir(self.folder.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            if path == self.input() || path == self.original() {
                continue;
            }
            if path != self.output() || matches!(end, End::Refused) {
                left.push(entry.file_name().to_string_lossy().into_owned());
            }
            let _ = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
        }
        if left.is_empty() {
            end
        } else {
            End::Fault(format!("left behind: {}", left.join(", ")))
        }
    }
}

/// Checks that an error contains a position, and no control sequences for a terminal.
fn refused(error: &Error) -> End {
    let text = error.to_string();
    if !is_printable(&text) {
        return End::Fault(format!("an error with control characters: {text:?}"));
    }
    let mut inner = error;
    while let Error::Compared { source, .. } = inner {
        inner = source;
    }
    match inner {
        Error::Read(read) if read.offset().is_none() && !read.is_io() => {
            End::Fault(format!("an error without offset: {text}"))
        }
        Error::Usage(_) => End::Fault(format!("taken for a wrong command line: {text}")),
        _ => End::Refused,
    }
}

/// Returns whether a terminal displays the whole text: it contains no control characters except
/// line feeds.
pub fn is_printable(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !c.is_control())
}

/// Checks a report instead of storing it.
#[derive(Default)]
struct Report {
    fault: Option<String>,
}

impl io::Write for Report {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.fault.is_none() {
            match std::str::from_utf8(bytes) {
                Ok(text) if is_printable(text) => {}
                Ok(text) => {
                    let line = text
                        .lines()
                        .find(|line| !is_printable(line))
                        .unwrap_or_default();
                    self.fault = Some(format!("control characters in the report: {line:?}"));
                }
                Err(error) => self.fault = Some(format!("a report that is not UTF-8: {error}")),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the CPU time of this thread in nanoseconds.
fn time() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(tv_sec * 1_000_000_000 + tv_nsec).unwrap_or(0)
}
