//! `perfconv diff`: the differences between two recordings.

use std::io::Write;

use perfdata_core::read::Limits;

use super::Outcome;
use crate::cli::DiffArgs;
use crate::messages::{Messages, Verbosity};
use perfdata_convert::Result;
use perfdata_report::diff::Diff;

/// Compares the recordings in `args`.
pub fn run(
    args: &DiffArgs,
    out: &mut dyn Write,
    limits: Limits,
    messages: Messages,
) -> Result<Outcome> {
    let brief = args.brief || messages.verbosity == Verbosity::Quiet;
    let diff = Diff::default()
        .with_json(args.json)
        .with_brief(brief)
        .with_stat(args.stat)
        .with_limit(args.limit)
        .with_hint(Some("--limit 0 shows all"));
    let differs = diff.run(&args.a, &args.b, limits, out)?;
    Ok(if differs {
        Outcome::Found
    } else {
        Outcome::Done
    })
}
