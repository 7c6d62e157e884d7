//! `perfconv recover`: makes a valid recording from one that is truncated, unfinished or corrupt.

use super::convert::report;
use super::{open, output_or_standard, recipe};
use perfdata_core::read::Limits;

use crate::cli::{Container, RecoverArgs};
use crate::messages::Messages;
use perfdata_convert::Result;
use perfdata_convert::io::{Output, OutputDirectory};
use perfdata_convert::pipeline::to_directory;
use perfdata_convert::recover::{Recover, Recovery};

/// Recovers the recording according to `args`.
pub fn run(args: &RecoverArgs, limits: Limits, messages: Messages) -> Result<()> {
    let RecoverArgs {
        convert: args,
        strict,
    } = args;
    let path = output_or_standard(args.output.path.as_deref(), &args.input)?;
    let recover = Recover::default().with_strict(*strict);
    let input = || open(&args.input, limits, messages);
    let Recovery {
        summary,
        skipped,
        losses,
        ..
    } = match args.to {
        Some(Container::Dir) => {
            let (force, is_part) = (args.output.force, to_directory::is_part);
            let output = OutputDirectory::create(path, &args.input, force, is_part)?;
            let recipe = recipe::of_convert_in_one_pass(args, limits)?;
            recipe.recover_to_directory(&recover, input()?, output)?
        }
        _ => {
            let recipe = recipe::of_convert_in_one_pass(args, limits)?;
            let output = Output::create(path, &args.input, args.output.force)?;
            recipe.recover(&recover, input()?, output)?
        }
    };
    for gap in &skipped {
        messages.warning(format_args!("skipped {gap}"));
    }
    for loss in &losses {
        messages.warning(loss);
    }
    if skipped.is_empty() && losses.is_empty() {
        messages.note("the recording is undamaged and was copied");
    }
    report(&summary, messages);
    Ok(())
}
