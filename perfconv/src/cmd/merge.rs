//! `perfconv merge`: several recordings as one.

use std::path::Path;

use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;

use super::convert::{report, warn_of_unfinished};
use super::{open_unseen, output_or_standard, recipe};
use crate::cli::{Container, MergeArgs};
use crate::messages::{Messages, Verbosity};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Output;
use perfdata_edit::merge::{Merge, Merged};

/// Merges the recordings in `args`.
pub fn run(args: &MergeArgs, limits: Limits, messages: Messages) -> Result<()> {
    let convert = &args.convert;
    let paths = convert.input.all();
    let first: &Path = &convert.input;
    if paths.is_empty() {
        return Err(Error::Usage(
            "no input: name the recordings to merge".into(),
        ));
    }
    let standard = paths.iter().filter(|path| path.as_os_str() == "-").count();
    if standard > 1 {
        return Err(Error::Usage(
            "standard input is given more than once".into(),
        ));
    }
    if convert.to == Some(Container::Dir) {
        return Err(Error::Usage(
            "several recordings become a file or a pipe, not a directory".into(),
        ));
    }
    let path = output_or_standard(convert.output.path.as_deref(), first)?;
    let inputs: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    let output = Output::create_beside(path, &inputs, convert.output.force)?;
    let mut recipe = recipe::of_convert(convert, limits)?;
    recipe.tally = messages.verbosity >= Verbosity::All;
    recipe.to = recipe
        .to
        .or((paths.len() > 1).then_some(ContainerKind::File));
    let inputs = paths
        .iter()
        .map(|path| {
            let input = open_unseen(path, limits, messages).map_err(|error| match error {
                // It has the path already.
                error @ Error::Io { .. } => error,
                error if paths.len() == 1 => error,
                error => Error::Merged {
                    path: path.clone(),
                    source: Box::new(error),
                },
            })?;
            Ok((path.display().to_string(), input))
        })
        .collect::<Result<Vec<_>>>()?;
    let merge = Merge {
        align: args.align.into(),
        rebase_kernel: args.rebase_kernel,
        machines: args.machines,
        unknown: convert.unknown.into(),
    };
    let Merged {
        mut input, notes, ..
    } = merge.open(inputs)?;
    if let Some(watch) = messages.watch() {
        input = input.watched_by(watch);
    }
    let summary = recipe.convert(input, output)?;
    warn_of_unfinished(&summary, first, messages);
    notes.iter().for_each(|note| messages.note(note));
    report(&summary, messages);
    Ok(())
}
