//! Divides a recording into several ones.
//!
//! Each part is a [slice](crate::slice): it contains samples, and the records that perf
//! needs to show them as it shows them in the whole recording. Each sample is in one part.
//!
//! The recording is read twice: the first pass decides which parts contain a record, the second one
//! writes the parts at the same time. Up to [`MOST_OPEN`] parts are written in one pass; more parts
//! in time need further passes. If there are more than 250 keys, such as processes, the ones with
//! the fewest samples become one part.

mod index;
mod names;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use perfdata_core::Recording;
use perfdata_core::header::ContainerKind;

use crate::slice::{Decisions, Select};
use perfdata_convert::count::Counts;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Input, OutputDirectory};
use perfdata_convert::leftover::Leftover;
use perfdata_convert::pipeline::to_parts::{PartConversion, PartNumber, WrittenPart};
use perfdata_convert::pipeline::{Stage, opened};
use perfdata_convert::support::files::date;
use perfdata_convert::support::os::open_files;
use perfdata_convert::support::stopwatch::Stopwatch;

pub use crate::slice::By;

/// Maximum number of parts that are written in one pass.
pub const MOST_OPEN: usize = 200;

/// Number of files that are open beside the parts: the input, its directory, temporary files and
/// the standard streams.
const OTHER_FILES: usize = 24;

/// Maximum size in bytes of the metadata of all parts that are written in one pass.
const MOST_METADATA: usize = 128 << 20;

/// The name of the index in a directory of parts. `docs/json.md` describes it.
pub const INDEX: &str = "index.json";

/// The extension of the parts.
pub const EXTENSION: &str = ".data";

/// How a recording is divided.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// # let output = folder.path().join("parts");
/// use perfdata_convert::io::{Input, OutputDirectory};
/// use perfdata_edit::split::{By, Split, is_part};
///
/// let folder = OutputDirectory::create(&output, input.as_ref(), false, is_part)?;
/// let split = Split::new(By::Samples(100));
/// let report = split.run(Input::open(input.as_ref())?, folder, || Ok(Vec::new()))?;
/// assert!(report.parts.iter().all(|part| part.samples <= 100));
/// assert!(output.join(&report.parts[0].file).exists());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Split {
    /// By what the samples are divided.
    pub by: By,
    /// Which samples the parts contain together; by default all.
    pub select: Select,
    /// The container of the parts; by default a file.
    pub to: ContainerKind,
}

/// What was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The parts, in their order.
    pub parts: Vec<PartReport>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The records of the input; records inside of compressed records are not counted.
    pub counts: Counts,
    /// Size of the input in bytes.
    pub bytes_in: u64,
    /// Size of all parts in bytes.
    pub bytes_out: u64,
    /// The elapsed time.
    pub elapsed: Duration,
    /// The bytes at the end of the input that are not a complete record. No part contains them.
    pub unreadable: Option<Leftover>,
}

/// A part that was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartReport {
    /// The name of its file in the directory.
    pub file: String,
    /// Number of its samples.
    pub samples: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Split {
    /// Returns the division of all samples `by` something, into files.
    pub fn new(by: By) -> Self {
        Split {
            by,
            select: Select::default(),
            to: ContainerKind::File,
        }
    }

    /// Returns the division of the samples that `select` describes.
    #[must_use]
    pub fn with_select(self, select: Select) -> Self {
        Split { select, ..self }
    }

    /// Returns the division with this container for the parts.
    #[must_use]
    pub fn to(self, to: ContainerKind) -> Self {
        Split { to, ..self }
    }

    /// Divides `input` into files in `output`, each after its own `stages`. A stream is stored in a
    /// temporary file.
    ///
    /// # Errors
    /// The input cannot be read, divided or converted, there are no samples, or the output cannot
    /// be written. In these cases, there is no output.
    pub fn run(
        self,
        input: Input,
        output: OutputDirectory,
        stages: impl Fn() -> Result<Vec<Box<dyn Stage>>>,
    ) -> Result<Report> {
        let start = Stopwatch::start();
        let input = input.into_seekable()?;
        let bytes_in = input.size().bytes();
        let report = output.write(|folder| {
            let report = self.write(&input, folder, &stages)?;
            Ok(Report {
                bytes_in,
                elapsed: start.elapsed(),
                ..report
            })
        })?;
        output.finish()?;
        Ok(report)
    }

    fn write(
        &self,
        input: &Input,
        folder: &Path,
        stages: &dyn Fn() -> Result<Vec<Box<dyn Stage>>>,
    ) -> Result<Report> {
        let again = || {
            let refused = "an input that cannot be read twice cannot be divided";
            input.again().ok_or_else(|| Error::Refused(refused.into()))
        };
        let (source, recording) = opened(again()?)?;
        let decisions = Decisions::of(&self.select, Some(self.by), &source, &recording)
            .map_err(Error::of_records)?;
        let decisions = Arc::new(decisions);
        let files = names::of(&decisions);
        let conversion = PartConversion {
            division: decisions.clone(),
            stages,
            to: self.to,
        };
        let count = PartNumber::try_from(files.len()).unwrap_or(PartNumber::MAX);
        let at_once = at_once(&recording);
        let mut summary = None;
        let mut written: Vec<WrittenPart> = Vec::new();
        for first in (0..count).step_by(at_once) {
            let end = usize::from(first).saturating_add(at_once);
            let end = PartNumber::try_from(end).unwrap_or(count).min(count);
            let path_of = |part: PartNumber| {
                let file = files.get(usize::from(part)).cloned();
                folder.join(file.unwrap_or_default())
            };
            let (pass, parts) = conversion.run(again()?, first..end, path_of)?;
            written.extend(parts);
            for file in files.iter().take(usize::from(end)).skip(usize::from(first)) {
                let path = folder.join(file);
                date(
                    &File::open(&path).map_err(Error::io(&path))?,
                    input.modified(),
                );
            }
            summary.get_or_insert(pass);
        }
        let parts = files.into_iter().zip(&decisions.parts).zip(&written);
        let parts = parts.map(|((file, part), written)| PartReport {
            file,
            samples: part.samples,
            bytes: written.bytes,
        });
        let parts: Vec<PartReport> = parts.collect();
        index::write(&folder.join(INDEX), self.by, &decisions, &parts, &written)?;
        let mut notes = decisions.notes();
        let mut counts = Counts::default();
        let mut unreadable = None;
        if let Some(summary) = summary {
            (counts, unreadable) = (summary.counts, summary.unreadable);
            notes.extend(summary.notes);
        }
        notes.extend(common_notes(&written));
        Ok(Report {
            bytes_out: parts
                .iter()
                .fold(0, |sum, part| sum.saturating_add(part.bytes)),
            parts,
            notes,
            counts,
            bytes_in: 0,
            elapsed: Duration::ZERO,
            unreadable,
        })
    }
}

/// Returns the number of parts that are written in one pass. Each is an open file, and has its own
/// metadata in memory.
fn at_once(recording: &Recording) -> usize {
    let features = recording.features.values();
    let metadata = features.fold(1usize, |sum, bytes| sum.saturating_add(bytes.len()));
    MOST_METADATA
        .checked_div(metadata)
        .unwrap_or(MOST_OPEN)
        .min(open_files().saturating_sub(OTHER_FILES))
        .clamp(1, MOST_OPEN)
}

/// Returns the notes that all parts have in common, and how many others there are. The index
/// contains all of them.
fn common_notes(written: &[WrittenPart]) -> Vec<String> {
    let Some((first, rest)) = written.split_first() else {
        return Vec::new();
    };
    let is_common = |note: &&String| rest.iter().all(|part| part.notes.contains(note));
    let mut notes: Vec<String> = first.notes.iter().filter(is_common).cloned().collect();
    let all: usize = written.iter().map(|part| part.notes.len()).sum();
    let others = all.saturating_sub(notes.len().saturating_mul(written.len()));
    if others > 0 {
        notes.push(format!("{INDEX} contains notes about single parts"));
    }
    notes
}

/// Returns whether [`Split`] writes a file of this name to a directory.
pub fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = |name: &str| {
        let (number, rest) = name.split_once('-').unwrap_or_default();
        number.len() >= names::DIGITS
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && rest.ends_with(EXTENSION)
    };
    path.is_file() && name.is_some_and(|name| name == INDEX || is_named(name))
}
