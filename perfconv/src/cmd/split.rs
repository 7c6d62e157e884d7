//! `perfconv split`: a recording as several ones.

use std::path::Path;

use indicatif::HumanBytes;
use perfdata_core::read::Limits;

use super::{open, recipe};
use crate::cli::{Container, SplitArgs};
use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::OutputDirectory;
use perfdata_edit::split::{Report, is_part};

/// Splits the recording in `args`.
pub fn run(args: &SplitArgs, limits: Limits, messages: Messages) -> Result<()> {
    let convert = &args.convert;
    let input: &Path = &convert.input;
    let Some(output) = &convert.output.path else {
        return Err(Error::Usage(
            "no directory for the parts: add -o DIR".into(),
        ));
    };
    if convert.to == Some(Container::Dir) {
        return Err(Error::Usage(
            "a part becomes a file or a pipe, not a directory".into(),
        ));
    }
    let directory = OutputDirectory::create(output, input, convert.output.force, is_part)?;
    let recipe = recipe::of_split(convert, args.by.is_of_threads(), limits)?;
    let report = recipe.split(args.by, open(input, limits, messages)?, directory)?;
    tell(&report, messages);
    Ok(())
}

/// Reports what was written.
fn tell(report: &Report, messages: Messages) {
    if let Some(leftover) = &report.unreadable {
        messages.warning(format_args!("{leftover}; no part contains them"));
    }
    for note in &report.notes {
        messages.note(note);
    }
    for part in &report.parts {
        messages.detail(format_args!(
            "{}: {}, {}",
            part.file,
            suggestions::count(part.samples, "sample"),
            HumanBytes(part.bytes)
        ));
    }
    messages.summary(format_args!(
        "{}, {}, {} in, {} out, {:.2} s",
        suggestions::count(report.parts.len() as u64, "part"),
        report.counts.short(),
        HumanBytes(report.bytes_in),
        HumanBytes(report.bytes_out),
        report.elapsed.as_secs_f64()
    ));
}
