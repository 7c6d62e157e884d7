//! `perfconv verify`: checks whether a recording is complete and consistent.

use std::io::Write;

use super::{Outcome, Several, open, print};
use perfdata_core::read::Limits;

use crate::cli::VerifyArgs;
use crate::messages::Verbosity;
use perfdata_convert::Result;
use perfdata_convert::verify::{Report, Severity};
use perfdata_report::show::input_name as shown;

/// Checks the recordings in `args`.
pub fn run(
    args: &VerifyArgs,
    out: &mut dyn Write,
    limits: Limits,
    inputs: &Several<'_>,
) -> Result<Outcome> {
    inputs.each(out, |input, out| {
        let report = Report::of(open(input, limits, inputs.messages)?)?;
        let fails = |worst| worst <= Severity::from(args.fail_on);
        let outcome = if report.worst().is_some_and(fails) {
            Outcome::Found
        } else {
            Outcome::Done
        };
        if inputs.messages.verbosity == Verbosity::Quiet {
            return Ok(outcome);
        }
        let text = match (args.json, inputs.are_many()) {
            (true, _) => report.json_of(Some(input)),
            (false, false) => report.text(),
            (false, true) => {
                let name = shown(input);
                report
                    .text()
                    .lines()
                    .map(|line| format!("{name}: {line}\n"))
                    .collect()
            }
        };
        print(out, &text)?;
        Ok(outcome)
    })
}
