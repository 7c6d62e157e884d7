//! `perfconv recover`: makes a valid recording from one that is truncated, unfinished or corrupt.

use super::convert::{report, stages};
use super::{open, output_or_standard};
use perfdata_core::read::Limits;

use crate::cli::{Container, RecoverArgs};
use crate::messages::Messages;
use perfdata_convert::Result;
use perfdata_convert::io::{Output, OutputDirectory};
use perfdata_convert::pipeline::{Conversion, to_directory};
use perfdata_convert::recover::{
    Recover, Recovery, convert_recovered, convert_recovered_to_directory,
};

/// Recovers the recording according to `args`.
pub fn run(args: &RecoverArgs, limits: Limits, messages: Messages) -> Result<()> {
    let RecoverArgs {
        convert: args,
        strict,
    } = args;
    let path = output_or_standard(args.output.path.as_deref(), &args.input)?;
    let stages = || stages(args, limits);
    let is_converted = args.to.is_some() || !stages()?.is_empty();
    let recover = Recover::default().with_strict(*strict);
    let input = || open(&args.input, limits, messages);
    let Recovery {
        summary,
        skipped,
        losses,
        ..
    } = match args.to {
        Some(Container::Dir) => {
            let output = OutputDirectory::create(
                path,
                &args.input,
                args.output.force,
                to_directory::is_part,
            )?;
            let output = output.synced(!args.output.no_sync);
            recover.run_and(input()?, |recovered| {
                convert_recovered_to_directory(recovered, output, stages)
            })?
        }
        to => {
            let output =
                Output::create(path, &args.input, args.output.force)?.synced(!args.output.no_sync);
            let conversion = Conversion::new(stages()?).to(to.and_then(Container::kind));
            if is_converted {
                recover.run_and(input()?, |recovered| {
                    convert_recovered(conversion, recovered, output)
                })?
            } else {
                recover.run(input()?, output)?
            }
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
