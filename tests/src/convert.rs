//! Converting recordings in tests: by the library, and by the command.

use std::{
    env, fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
    time::Duration,
};

use perfdata_convert::{
    convert::{Conversion, Stage, Summary},
    diff, error,
    io::Output,
};
use perfdata_core::{
    Recording,
    container_layout::ContainerLayout,
    header::ContainerKind,
    read::{Limits, RecordingReader, SourceReader, StreamItem},
    record::RecordType,
};
use tempfile::TempDir;

use crate::perf;

/// What a conversion made, in a folder of its own that goes away with this.
#[derive(Debug)]
pub struct Converted {
    folder: TempDir,
    /// What the conversion says of itself.
    pub summary: Summary,
}

impl Converted {
    /// The new recording.
    pub fn path(&self) -> PathBuf {
        output_in(&self.folder)
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("the conversion left its output")
    }
}

fn output_in(folder: &TempDir) -> PathBuf {
    folder.path().join("converted.data")
}

/// What `perfconv convert` and its short forms do: `input` through `stages` into the container `to`, or into that
/// of the input.
///
/// # Errors
/// Those of the conversion. Then there is no output, not even a part of it: else this panics.
pub fn convert(input: &Path, to: Option<ContainerKind>, stages: Vec<Box<dyn Stage>>) -> error::Result<Converted> {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let result = Output::create(&output_in(&folder), input, false)
        .and_then(|output| Conversion { stages, to }.run(input, output.synced(false)));
    match result {
        Ok(summary) => Ok(Converted { folder, summary }),
        Err(error) => {
            let left = fs::read_dir(&folder).expect("the folder is there").count();
            assert_eq!(left, 0, "{} failed ({error}) and left something behind", input.display());
            Err(error)
        }
    }
}

/// A reader of a recording in memory.
pub type MemoryReader = RecordingReader<SourceReader<Arc<Vec<u8>>>>;

/// Opens a recording in memory.
///
/// # Errors
/// It is none.
pub fn open(bytes: Vec<u8>) -> perfdata_core::Result<MemoryReader> {
    RecordingReader::open(Arc::new(bytes))
}

/// A recording as it is read: the model with all metadata, how it stood in its container, and the record stream.
#[derive(Debug)]
pub struct Whole {
    /// The model when the last record has passed.
    pub recording: Recording,
    /// The places of everything.
    pub container_layout: ContainerLayout,
    /// Records with their payloads, in order; behind them bytes that are none.
    pub stream: Vec<u8>,
    /// Where in `stream` each record starts, and its type.
    pub records: Vec<(usize, RecordType)>,
    /// Where in `stream` the last record and what follows it ends, and bytes that are no records begin.
    pub records_end: usize,
}

impl Whole {
    /// Reads a recording to its end.
    ///
    /// # Errors
    /// It is none, or its metadata is damaged.
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
        let (recording, container_layout) = (reader.recording().clone(), reader.container_layout().clone());
        Ok(Whole { recording, container_layout, stream, records, records_end })
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

/// What `perfconv diff` says of two recordings, line by line.
///
/// # Errors
/// As text: one of them cannot be read.
pub fn differences(a: &Path, b: &Path) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let mut see = |_, difference: diff::Difference| {
        lines.push(difference.to_string());
        Ok(ControlFlow::Continue(()))
    };
    let summary = diff::compare(a, b, Limits::default(), &mut see).map_err(|error| error.to_string())?;
    let differs = summary.differs;
    if differs == lines.is_empty() { Err(format!("differs: {differs}, but {lines:?}")) } else { Ok(lines) }
}

/// The `perfconv` command, built by the profile that these tests were built by.
pub fn perfconv() -> Command {
    Command::new(built().join("perfconv"))
}

/// Runs `commands` by a shell in `folder`, with `perfconv` on its search path, without a terminal and an input.
pub fn in_shell(folder: &Path, commands: &str) -> perf::Output {
    let program = perfconv().get_program().to_owned();
    let bin = Path::new(&program).parent().expect("it is in a folder").to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&path))).expect("a search path");
    let mut shell = Command::new("bash");
    shell.args(["-c", commands]).current_dir(folder).stdin(Stdio::null()).env("PATH", path);
    shell.env_remove("COLUMNS").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("LC_ALL", "C");
    perf::run(shell, Duration::from_secs(60)).expect("bash can be started")
}

/// The example `name`, built likewise.
pub fn example(name: &str) -> Command {
    Command::new(built().join("examples").join(name))
}

/// The folder of programs that cargo builds.
///
/// Only the package of a program knows where it is, and only if its own tests were asked for: cargo builds it anew if
/// anything has changed, and else says at once that it is there. With the whole workspace and its examples it takes the
/// same dependencies as for tests.
fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let own = env::current_exe().expect("this program has a path");
        // target/debug/deps/suite-0123
        let (Some(folder), Some(target)) = (own.ancestors().nth(2), own.ancestors().nth(3)) else {
            panic!("the tests do not run from a target directory: {}", own.display());
        };
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            None | Some("debug") => "dev",
            Some(profile) => profile,
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--bin", "perfconv", "--examples", "--profile", profile])
            .arg("--target-dir")
            .arg(target)
            .current_dir(crate::recordings::root())
            .status()
            .expect("cargo can be started");
        assert!(status.success(), "perfconv and the examples cannot be built");
        folder.to_owned()
    })
}
