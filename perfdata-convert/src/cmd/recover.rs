//! `perfconv recover`: a good recording from one that is cut, was never finished, or is damaged.

use super::{convert::report, open};
use perfdata_core::read::Limits;

use crate::cli::RecoverArgs;
use crate::convert::recover::{Recovery, recover};
use crate::error::Result;
use crate::io::Output;
use crate::messages::Messages;

/// Recovers the recording by `args`.
pub fn run(args: &RecoverArgs, limits: Limits, messages: Messages) -> Result<()> {
    let output = Output::create(&args.output, &args.input, args.force)?;
    let Recovery { summary, skipped, losses } = recover(open(&args.input, limits, messages)?, output, args.strict)?;
    for gap in &skipped {
        messages.warning(format_args!("skipped {gap}"));
    }
    for loss in &losses {
        messages.warning(loss);
    }
    if skipped.is_empty() && losses.is_empty() {
        messages.note("nothing had to be recovered");
    }
    report(&summary, messages);
    Ok(())
}
