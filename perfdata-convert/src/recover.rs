//! Recovery: writes the intact data of a damaged recording as a valid recording.
//!
//! The reader does most of the work ([`Survey`](perfdata_core::read::Survey),
//! [`RecordingReader::salvaged`](perfdata_core::read::RecordingReader::salvaged)): it returns
//! intact records, and a layout without the lost parts. The input is first surveyed, so that
//! nothing is written if nothing is left, or if everything is required. An undamaged input is
//! copied without a survey (`intact.rs`).

mod intact;
mod losses;
mod plan;
mod without;

use std::fmt;
use std::fs::File;
use std::io::{self, Seek};

use perfdata_core::error::Problem;
use perfdata_core::header::FileSection;
use perfdata_core::read::Skipped;

use crate::count::number_of;
use crate::error::{Error, Result};
use crate::io::{Input, Output, OutputDirectory, in_temporary, temporary_file};
use crate::leftover::{CUT, without_place};
use crate::pipeline::{Conversion, Stage, Summary, to_directory};
use crate::support::stopwatch::Stopwatch;
use crate::verify::{Finding, Report, Severity};
use intact::is_intact;
use plan::Plan;

/// The result of recovering a damaged recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovery {
    /// The summary of the conversion.
    pub summary: Summary,
    /// The skipped ranges of the input, ascending; only the first thousand, if there are more.
    pub skipped: Vec<Gap>,
    /// Other losses, and how they were handled.
    pub losses: Vec<String>,
}

impl Recovery {
    /// The result for a recording without damage.
    fn of_intact(summary: Summary) -> Self {
        Recovery {
            summary,
            skipped: Vec::new(),
            losses: Vec::new(),
        }
    }
}

/// A skipped range of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The name of the file in a directory.
    pub file: Option<String>,
    /// Its offset and size.
    pub place: FileSection,
    /// The reason why its first bytes cannot be read.
    pub why: String,
}

impl Gap {
    /// Returns the range `skipped`; `is_last` if no records follow it.
    fn of(file: &Option<String>, skipped: &Skipped, is_last: bool) -> Self {
        let why = without_place(&skipped.why);
        let is_cut = is_last && matches!(skipped.why.problem(), Problem::Truncated { .. });
        let why = if is_cut { format!("{why}: {CUT}") } else { why };
        Gap {
            file: file.clone(),
            place: skipped.place,
            why,
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap {
            file,
            place: FileSection { offset, size },
            why,
        } = self;
        if let Some(file) = file {
            write!(f, "{file}: ")?;
        }
        write!(
            f,
            "{offset:#x} to {:#x} ({size} bytes): {why}",
            offset.saturating_add(*size)
        )
    }
}

/// Maximum number of rounds in which the remaining data are checked again.
const ROUNDS: usize = 16;

/// The recovery of a damaged recording.
///
/// When damaged bytes are removed, other records become adjacent, and one of them may then no
/// longer be plausible. So the remaining data are checked again until nothing else must be removed:
/// a recovered recording needs no recovery.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Recover {
    /// Whether a recording with records after damaged bytes is refused.
    pub strict: bool,
}

impl Recover {
    /// Sets [`strict`](Self::strict).
    #[must_use]
    pub fn with_strict(self, strict: bool) -> Self {
        Recover { strict, ..self }
    }

    /// Writes the intact data of `input` to `output`. The output of an undamaged recording is
    /// byte-identical.
    ///
    /// # Errors
    /// The input cannot be read, has no attribute left, or is refused. In these cases, there is no
    /// output.
    pub fn run(&self, input: Input, output: Output) -> Result<Recovery> {
        let input = input.into_seekable()?;
        let output = output.dated(input.modified());
        output.write_seekable(|file| recover_into(&input, file, self.strict))
    }

    /// Recovers like [`run`](Self::run), and then converts the recovered recording with
    /// `to_output`.
    ///
    /// # Errors
    /// As [`run`](Self::run), and the errors of `to_output`.
    pub fn run_and(
        &self,
        input: Input,
        to_output: impl FnOnce(Input) -> Result<Summary>,
    ) -> Result<Recovery> {
        let start = Stopwatch::start();
        let input = input.into_seekable()?;
        let size = input.size();
        if is_intact(input.again().ok_or_else(unsalvaged)?) {
            let summary = to_output(input)?;
            return Ok(Recovery::of_intact(Summary {
                bytes_in: size.bytes(),
                elapsed: start.elapsed(),
                ..summary
            }));
        }
        let mut plain = temporary_file()?;
        let recovery = recover_damaged(&input, &mut plain, self.strict).map_err(in_temporary)?;
        let summary = to_output(input.in_file(&plain)?)?;
        let Summary {
            bytes_in,
            from,
            elapsed,
            ..
        } = recovery.summary;
        let elapsed = summary.elapsed.saturating_add(elapsed);
        Ok(Recovery {
            summary: Summary {
                bytes_in,
                from,
                elapsed,
                ..summary
            },
            ..recovery
        })
    }
}

/// Converts the recovered recording to `output`, which only becomes visible if it contains no
/// errors.
///
/// # Errors
/// The errors of the conversion; or [`Report`] finds an error in the output.
pub fn convert_recovered(
    conversion: Conversion,
    recovered: Input,
    output: Output,
) -> Result<Summary> {
    let start = Stopwatch::start();
    let output = output.dated(recovered.modified());
    output.write_seekable(|file| {
        let as_file = recovered.again().ok_or_else(unsalvaged)?;
        let summary = conversion.run_into(recovered, file)?;
        check(&as_file.in_file(file)?)?;
        Ok(Summary {
            elapsed: start.elapsed(),
            ..summary
        })
    })
}

/// Converts the recovered recording to a directory, through new `stages` for each of its files.
///
/// # Errors
/// As [`convert_recovered`].
pub fn convert_recovered_to_directory(
    recovered: Input,
    output: OutputDirectory,
    stages: impl Fn() -> Result<Vec<Box<dyn Stage>>>,
) -> Result<Summary> {
    let start = Stopwatch::start();
    let there = recovered.again().ok_or_else(unsalvaged)?;
    let summary = to_directory::convert_and(recovered, output, stages, |folder| {
        check(&there.in_folder(folder)?)
    })?;
    Ok(Summary {
        elapsed: start.elapsed(),
        ..summary
    })
}

/// Recovers what was recovered: discarded bytes may have hidden others. Returns whether anything
/// changed.
fn recover_again(
    input: &Input,
    file: &mut File,
    summary: &mut Summary,
    losses: &mut Vec<String>,
) -> Result<bool> {
    let again = Plan::of(&input.in_file(file)?, false)?;
    let Some((stages, damaged)) = again.conversion else {
        return Ok(false);
    };
    let gone = again.skipped.iter().map(|gap| {
        format!(
            "dropped {} of the remaining data: {}",
            number_of(gap.place.size, "more byte"),
            gap.why
        )
    });
    for line in gone.chain(again.losses) {
        if !losses.contains(&line) {
            losses.push(line);
        }
    }
    let mut rest = temporary_file()?;
    let Summary {
        counts,
        bytes_out,
        features,
        ..
    } = Conversion::new(stages)
        .run_into(damaged, &mut rest)
        .map_err(in_temporary)?;
    (summary.counts, summary.bytes_out, summary.features) = (counts, bytes_out, features);
    replace(file, &mut rest).map_err(Error::io("output"))?;
    Ok(true)
}

/// Writes the intact data of `input` to `file`, and checks the result.
fn recover_into(input: &Input, file: &mut File, strict: bool) -> Result<Recovery> {
    let start = Stopwatch::start();
    match intact::copy(input, file)? {
        Some(summary) => Ok(Recovery::of_intact(Summary {
            bytes_in: input.size().bytes(),
            elapsed: start.elapsed(),
            ..summary
        })),
        None => recover_damaged(input, file, strict),
    }
}

/// Writes the intact data of `input`, in which a check found something, to `file`, and checks the
/// result.
fn recover_damaged(input: &Input, file: &mut File, strict: bool) -> Result<Recovery> {
    let start = Stopwatch::start();
    let Plan {
        skipped,
        mut losses,
        conversion,
    } = Plan::of(input, strict)?;
    let is_whole = conversion.is_none();
    let (stages, readable) = match conversion {
        Some(conversion) => conversion,
        None => (Vec::new(), input.again().ok_or_else(unsalvaged)?),
    };
    let mut summary = Conversion::new(stages).run_into(readable, file)?;
    // A copy of an undamaged recording needs no further pass.
    let mut rounds = if is_whole { 0 } else { ROUNDS };
    while rounds > 0 && recover_again(input, file, &mut summary, &mut losses)? {
        rounds -= 1;
    }
    check(&input.in_file(file)?)?;
    let summary = Summary {
        bytes_in: input.size().bytes(),
        elapsed: start.elapsed(),
        ..summary
    };
    Ok(Recovery {
        summary,
        skipped,
        losses,
    })
}

/// Refuses a recording in which `perfconv verify` finds an error.
fn check(recovered: &Input) -> Result<()> {
    let report = Report::of(recovered.again().ok_or_else(unsalvaged)?)?;
    match report
        .findings
        .iter()
        .find(|finding| finding.severity == Severity::Error)
    {
        None => Ok(()),
        Some(Finding {
            offset, meaning, ..
        }) => {
            let errors = number_of(report.count(Severity::Error), "error");
            let what = format!(
                "nothing is written: the recovered recording has {errors}, the first at its offset {offset:#x}: {meaning}"
            );
            Err(Error::Refused(what))
        }
    }
}

/// Replaces the content of `file` by the content of `from`.
fn replace(file: &mut File, from: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    from.rewind()?;
    io::copy(from, file).map(drop)
}

/// Returns an internal error: an input for recovery can always be read twice.
fn unsalvaged() -> Error {
    Error::Refused("the input cannot be read twice: write it to a file first".into())
}
