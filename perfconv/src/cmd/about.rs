//! `perfconv FILE`: describes a recording and suggests commands.

use std::io::Write;
use std::path::Path;

use super::objects::NamedShare;
use super::{Outcome, open, open_unseen, print};
use perfdata_core::read::Limits;
use perfdata_core::record::RecordType;
use perfdata_export::{Needs, Report, ResolvedSample, Sink};

use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::Result;
use perfdata_recipe::{Export, sources_in};
use perfdata_report::show::overview::Overview;

/// Describes the recording at `input`.
pub fn run(
    input: &Path,
    out: &mut dyn Write,
    limits: Limits,
    messages: Messages,
) -> Result<Outcome> {
    let overview = Overview::of(open(input, limits, messages)?)?;
    // Standard input cannot be read again.
    let is_readable = input != Path::new("-") && overview.count(RecordType::SAMPLE) > 0;
    let report = is_readable
        .then(|| names(input, limits, messages))
        .flatten();
    let share = report.as_ref().and_then(NamedShare::of);
    print(out, &suggestions::text(&overview, share.as_ref(), input))?;
    Ok(Outcome::Done)
}

/// Searches the functions of all samples. Returns `None` if not all samples can be read: the overview
/// contains the reason.
fn names(input: &Path, limits: Limits, messages: Messages) -> Option<Report> {
    let mut export = Export::new(sources_in(None, &[]));
    export.recipe.limits = limits;
    // Samples of traces would have to be decoded, and callers are not asked for.
    export.traces = None;
    export.unwind = false;
    let input = open_unseen(input, limits, messages).ok()?;
    let exported = export.run(input, &mut Innermost, Path::new("")).ok()?;
    Some(exported.report)
}

/// A sink for what the report counts.
struct Innermost;

impl Sink for Innermost {
    fn needs(&self) -> Needs {
        Needs::default().innermost_frame(true)
    }

    fn sample(&mut self, _: &ResolvedSample<'_>) -> perfdata_export::Result<()> {
        Ok(())
    }
}
