//! `perfconv convert`, and its short forms.

use std::path::Path;

use indicatif::HumanBytes;
use perfdata_core::read::Limits;
use perfdata_recipe::Recipe;

use super::{open, output_or_standard, recipe};
use crate::cli::{Container, ConvertArgs};
use crate::messages::{Messages, Verbosity};
use crate::suggestions;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Output, OutputDirectory};
use perfdata_convert::pipeline::{Form, Summary, to_directory};
use perfdata_report::show::endian_name;

/// Converts according to `args`; `to` is the container in the command's name.
pub fn run(
    args: &ConvertArgs,
    to: Option<Container>,
    limits: Limits,
    messages: Messages,
) -> Result<()> {
    if to.is_some() && args.to.is_some_and(|other| to != Some(other)) {
        return Err(Error::Usage(
            "--to contradicts the container of this command".into(),
        ));
    }
    let path = output_or_standard(args.output.path.as_deref(), &args.input)?;
    let to = to.or(args.to);
    if to == Some(Container::Dir) {
        let (force, is_part) = (args.output.force, to_directory::is_part);
        let output = OutputDirectory::create(path, &args.input, force, is_part)?;
        let recipe = recipe_of(args, to, limits, messages)?;
        let input = open(&args.input, limits, messages)?;
        report(&recipe.convert_to_directory(input, output)?, messages);
        return Ok(());
    }
    let output = Output::create(path, &args.input, args.output.force)?;
    let recipe = recipe_of(args, to, limits, messages)?;
    let summary = recipe.convert(open(&args.input, limits, messages)?, output)?;
    warn_of_unfinished(&summary, &args.input, messages);
    report(&summary, messages);
    Ok(())
}

/// Returns the recipe for the options and the container.
fn recipe_of(
    args: &ConvertArgs,
    to: Option<Container>,
    limits: Limits,
    messages: Messages,
) -> Result<Recipe> {
    let mut recipe = match to {
        Some(Container::Dir) => recipe::of_convert_in_one_pass(args, limits)?,
        _ => recipe::of_convert(args, limits)?,
    };
    recipe.to = to.and_then(Container::kind);
    recipe.tally = messages.verbosity >= Verbosity::All;
    Ok(recipe)
}

/// Warns that the output is unfinished, like the input.
pub fn warn_of_unfinished(summary: &Summary, input: &Path, messages: Messages) {
    if summary.unfinished {
        messages.warning("the recording is unfinished or truncated, and so is the copy");
        messages.next(suggestions::recover(input));
    }
}

/// Reports the results of a conversion.
pub fn report(summary: &Summary, messages: Messages) {
    if let Some(leftover) = &summary.unreadable {
        let what = if leftover.bytes <= 1 { "it" } else { "them" };
        messages.warning(format_args!("{leftover}; perfconv recover removes {what}"));
    }
    for note in &summary.notes {
        messages.note(note);
    }
    messages.detail(format_args!(
        "converted a {} to a {}",
        form(summary.from),
        form(summary.to)
    ));
    let Summary {
        counts,
        features,
        bytes_in,
        bytes_out,
        elapsed,
        ..
    } = summary;
    messages.summary(format_args!(
        "{}, {}, {} in, {} out, {:.2} s",
        counts.short(),
        suggestions::count(*features as u64, "feature"),
        HumanBytes(*bytes_in),
        HumanBytes(*bytes_out),
        elapsed.as_secs_f64()
    ));
}

fn form(form: Form) -> String {
    format!("{} {}", endian_name(form.endian), form.container)
}
