//! `perfconv verify`: whether a recording is whole and consistent.

use std::io::Write;

use super::{Outcome, open, print};
use perfdata_core::read::Limits;

use crate::cli::VerifyArgs;
use crate::error::Result;
use crate::messages::Messages;
use crate::verify::Report;

/// Checks the recording by `args`.
pub fn run(args: &VerifyArgs, out: &mut dyn Write, limits: Limits, messages: Messages) -> Result<Outcome> {
    let report = Report::of(open(&args.input, limits, messages)?)?;
    print(out, &if args.json { report.json() } else { report.text() })?;
    Ok(if report.is_clean() { Outcome::Done } else { Outcome::Found })
}
