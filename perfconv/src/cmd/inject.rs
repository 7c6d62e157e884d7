//! `perfconv inject`: the function of `perf inject` for build IDs, generated code, callchains and
//! traces of Intel PT, Intel BTS and Arm SPE, with the same options.

use perfdata_core::read::Limits;

use super::convert::{report, warn_of_unfinished};
use super::{open, recipe};
use crate::cli::InjectArgs;
use crate::messages::Messages;
use perfdata_convert::io::Output;
use perfdata_convert::{Error, Result};

/// Copies the recording, with the build IDs, generated code and callchains that `args` select.
pub fn run(args: &InjectArgs, limits: Limits, messages: Messages) -> Result<()> {
    if let Some((option, why)) = args.elsewhere.given {
        return Err(Error::Usage(format!("--{option} is not supported: {why}")));
    }
    let recipe = recipe::of_inject(args, limits)?;
    let output = Output::create(&args.output, &args.input, true)?;
    let summary = recipe.convert(open(&args.input, limits, messages)?, output)?;
    warn_of_unfinished(&summary, &args.input, messages);
    report(&summary, messages);
    Ok(())
}
