//! Conversion of recordings in tests, with the library and with the command.

use std::{
    env, fs,
    io::{self, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use perfdata_convert::error;
use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::Conversion;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::pipeline::Summary;
use perfdata_core::{
    Recording,
    container_layout::ContainerLayout,
    header::ContainerKind,
    read::{Limits, RecordingReader, SourceReader, StreamItem},
    record::RecordType,
};
use perfdata_report::diff;
use tempfile::TempDir;

use crate::perf;

/// The result of a conversion in a temporary folder, which is deleted on drop.
#[derive(Debug)]
pub struct Converted {
    folder: TempDir,
    /// The summary that the conversion reported.
    pub summary: Summary,
}

impl Converted {
    /// Returns the path of the new recording.
    pub fn path(&self) -> PathBuf {
        output_in(&self.folder)
    }

    /// Returns the bytes of the new recording.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("the conversion left its output")
    }
}

fn output_in(folder: &TempDir) -> PathBuf {
    folder.path().join("converted.data")
}

/// Does the same as `perfconv convert` and its short forms: converts `input` with `stages` into the
/// container `to`, or into the container of the input.
///
/// # Errors
/// The errors of the conversion. In this case, no output exists, not even in part; otherwise this
/// panics.
pub fn convert(
    input: &Path,
    to: Option<ContainerKind>,
    stages: Vec<Box<dyn Stage>>,
) -> error::Result<Converted> {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let result = Output::create(&output_in(&folder), input, false).and_then(|output| {
        Conversion::new(stages)
            .to(to)
            .run(input, output.synced(false))
    });
    match result {
        Ok(summary) => Ok(Converted { folder, summary }),
        Err(error) => {
            let left = fs::read_dir(&folder).expect("the folder is there").count();
            assert_eq!(
                left,
                0,
                "{} failed ({error}) and left something behind",
                input.display()
            );
            Err(error)
        }
    }
}

/// A writer into memory that can be read afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts an input into memory.
///
/// # Errors
/// The errors of the conversion.
pub fn into_memory(
    input: Input,
    to: Option<ContainerKind>,
    stages: Vec<Box<dyn Stage>>,
) -> error::Result<Vec<u8>> {
    let written = Shared::default();
    Conversion::new(stages)
        .to(to)
        .run_on(input, Output::to_writer(written.clone()))?;
    let mut written = written.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *written))
}

/// A reader of a recording in memory.
pub type MemoryReader = RecordingReader<SourceReader<Arc<Vec<u8>>>>;

/// Opens a recording in memory.
///
/// # Errors
/// The bytes are not a recording.
pub fn open(bytes: Vec<u8>) -> perfdata_core::Result<MemoryReader> {
    RecordingReader::open(Arc::new(bytes))
}

/// A recording as it is read: the model with all metadata, its layout in the container, and the
/// record stream.
#[derive(Debug)]
pub struct Whole {
    /// The model after the last record.
    pub recording: Recording,
    /// Offsets and sizes of all parts.
    pub container_layout: ContainerLayout,
    /// Records with their payloads, in order, followed by the bytes that are not records.
    pub stream: Vec<u8>,
    /// Offset in `stream`, and type, of each record.
    pub records: Vec<(usize, RecordType)>,
    /// Offset in `stream` of the end of the last record and its payload, where bytes that are not
    /// records start.
    pub records_end: usize,
}

impl Whole {
    /// Returns the type and the bytes of each record with its payload; the bytes that are not
    /// records belong to the last one.
    pub fn records_with_payloads(&self) -> impl Iterator<Item = (RecordType, &[u8])> {
        let starts = self.records.iter().skip(1).map(|(at, _)| *at);
        let ends = starts.chain([self.stream.len()]);
        let records = self.records.iter().zip(ends);
        records.map(|((at, kind), end)| (*kind, &self.stream[*at..end]))
    }

    /// Reads a recording to its end.
    ///
    /// # Errors
    /// The bytes are not a recording, or the metadata is corrupt.
    pub fn read(bytes: Vec<u8>) -> perfdata_core::Result<Self> {
        let mut reader = open(bytes)?;
        let (mut stream, mut records, mut records_end) = (Vec::new(), Vec::new(), 0);
        while let Some(item) = reader.next()? {
            match item {
                StreamItem::Record(record) => {
                    records.push((stream.len(), record.kind));
                    stream.extend_from_slice(record.bytes);
                    records_end = stream.len();
                }
                StreamItem::Payload(bytes) => {
                    stream.extend_from_slice(bytes);
                    records_end = stream.len();
                }
                StreamItem::Unreadable(bytes) => stream.extend_from_slice(bytes),
            }
        }
        let (recording, container_layout) = (
            reader.recording().clone(),
            reader.container_layout().clone(),
        );
        Ok(Whole {
            recording,
            container_layout,
            stream,
            records,
            records_end,
        })
    }

    /// Reads the recording at `path` to its end.
    ///
    /// # Errors
    /// As text.
    pub fn read_file(path: &Path) -> Result<Self, String> {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        Self::read(bytes).map_err(|error| error.to_string())
    }
}

/// Returns the output of `perfconv diff` for two recordings, line by line.
///
/// # Errors
/// As text, if one of them cannot be read.
pub fn differences(a: &Path, b: &Path) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let mut see = |_, difference: diff::Difference| {
        lines.push(difference.to_string());
        Ok(ControlFlow::Continue(()))
    };
    let summary =
        diff::compare(a, b, Limits::default(), &mut see).map_err(|error| error.to_string())?;
    let differs = summary.differs;
    if differs == lines.is_empty() {
        Err(format!("differs: {differs}, but {lines:?}"))
    } else {
        Ok(lines)
    }
}

/// Returns the `perfconv` command, built with the cargo profile of these tests.
pub fn perfconv() -> Command {
    Command::new(built().join("perfconv"))
}

/// Runs `commands` in a shell in `folder`, with `perfconv` on the PATH, without a terminal and
/// input.
pub fn in_shell(folder: &Path, commands: &str) -> perf::Output {
    let program = perfconv().get_program().to_owned();
    let bin = Path::new(&program)
        .parent()
        .expect("it is in a folder")
        .to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths([bin].into_iter().chain(env::split_paths(&path))).expect("a search path");
    let mut shell = Command::new("bash");
    shell
        .args(["-c", commands])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("PATH", path);
    shell
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("LC_ALL", "C");
    perf::run(shell).expect("bash can be started")
}

/// Returns the example `name`, built with the same profile.
pub fn example(name: &str) -> Command {
    Command::new(built().join("examples").join(name))
}

/// Returns the folder of programs that cargo builds.
///
/// cargo tells only the package of a program where the program is, and builds it only for the tests
/// of that package. Therefore this runs cargo, which rebuilds the program if something has changed,
/// and returns at once otherwise. With the whole workspace and its examples, cargo selects the same
/// dependencies as for tests.
///
/// If `PERFCONV_TEST_PROGRAMS` names a folder, the programs in it are used as they are: for tests
/// that run on another machine than cargo (`tools/cross-test`).
fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = env::var_os("PERFCONV_TEST_PROGRAMS") {
            return folder.into();
        }
        let own = env::current_exe().expect("this program has a path");
        // target/debug/deps/suite-0123
        let (Some(folder), Some(target)) = (own.ancestors().nth(2), own.ancestors().nth(3)) else {
            panic!(
                "the tests do not run from a target directory: {}",
                own.display()
            );
        };
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            None | Some("debug") => "dev",
            Some(profile) => profile,
        };
        let mut cargo = Command::new(env!("CARGO"));
        // With what cargo sets for a test, it would build the crates again whose build depends on it.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"];
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                cargo.env_remove(&*name);
            }
        }
        let status = cargo
            .args([
                "build",
                "--quiet",
                "--workspace",
                "--bin",
                "perfconv",
                "--examples",
                "--profile",
                profile,
            ])
            .arg("--target-dir")
            .arg(target)
            .current_dir(crate::recordings::root())
            .status()
            .expect("cargo can be started");
        assert!(
            status.success(),
            "perfconv and the examples cannot be built"
        );
        folder.to_owned()
    })
}
