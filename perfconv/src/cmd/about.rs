//! `perfconv FILE`: describes a recording and suggests commands.

use std::io::Write;
use std::path::Path;

use super::objects::NamedShare;
use super::{Outcome, open, open_unseen, print};
use perfdata_core::read::Limits;
use perfdata_core::record::RecordType;
use perfdata_export::{Needs, Report, ResolvedSamples};

use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::Result;
use perfdata_recipe::{Export, sources_in};
use perfdata_report::show::overview::Overview;

/// Maximum number of samples whose functions are searched: with all of them, the description of a large
/// recording takes twenty times as long.
const MOST_SAMPLES: u64 = 250_000;

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
    let is_part = overview.count(RecordType::SAMPLE) > MOST_SAMPLES;
    let share = share.map(|share| share.of_first(is_part.then_some(MOST_SAMPLES)));
    print(out, &suggestions::text(&overview, share.as_ref(), input))?;
    Ok(Outcome::Done)
}

/// Searches the functions of the first samples. Returns `None` if they cannot be read: the overview
/// contains the reason.
fn names(input: &Path, limits: Limits, messages: Messages) -> Option<Report> {
    let mut export = Export::new(sources_in(None, &[]).ok()?);
    export.recipe.limits = limits;
    // Samples of traces would have to be decoded, and callers are not counted.
    export.traces = None;
    export.unwind = false;
    let input = open_unseen(input, limits, messages).ok()?;
    let opened = export.open(input).ok()?;
    let needs = Needs::default().innermost_frame(true);
    let mut samples = ResolvedSamples::new(opened.samples, opened.symbols).with_needs(needs);
    for _ in 0..MOST_SAMPLES {
        if samples.next_with(|_| {}).ok()?.is_none() {
            break;
        }
    }
    Some(samples.finish())
}
