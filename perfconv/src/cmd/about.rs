//! `perfconv FILE`: describes a recording and suggests commands.

use std::io::Write;
use std::path::Path;

use super::{Outcome, open, print};
use perfdata_core::read::Limits;

use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::Result;
use perfdata_report::show::overview::Overview;

/// Describes the recording at `input`.
pub fn run(
    input: &Path,
    out: &mut dyn Write,
    limits: Limits,
    messages: Messages,
) -> Result<Outcome> {
    let overview = Overview::of(open(input, limits, messages)?)?;
    print(out, &suggestions::text(&overview, input))?;
    Ok(Outcome::Done)
}
