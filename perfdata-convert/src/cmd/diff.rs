//! `perfconv diff`: what two recordings say differently.

use std::io::Write;

use perfdata_core::read::Limits;

use super::Outcome;
use crate::cli::DiffArgs;
use crate::diff;
use crate::error::Result;

/// Compares the recordings by `args`.
pub fn run(args: &DiffArgs, out: &mut dyn Write, limits: Limits) -> Result<Outcome> {
    let differs = diff::run(&args.a, &args.b, args.json, limits, out)?;
    Ok(if differs { Outcome::Found } else { Outcome::Done })
}
