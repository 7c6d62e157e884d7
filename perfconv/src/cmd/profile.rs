//! `perfconv export --to bolt`, `llvm-profgen` and `autofdo`: profiles for compilers.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::Output;
use perfdata_core::read::Limits;
use perfdata_export::{Binary, BranchProfile, ProfileForm, ProfileSummary};
use perfdata_inject::itrace::ItraceCommand;
use perfdata_recipe::{Exported, failed};
use perfdata_session::BuildId;

use super::export::{of_args, sources};
use super::{Outcome, open, output_or_standard};
use crate::cli::{ExportArgs, Format};
use crate::messages::Messages;
use crate::suggestions::count;

/// Returns the form of a format that is a profile for compilers.
pub(super) fn form_of(format: Format) -> Option<ProfileForm> {
    match format {
        Format::Bolt => Some(ProfileForm::Bolt),
        Format::LlvmProfgen => Some(ProfileForm::LlvmProfgen),
        Format::Autofdo => Some(ProfileForm::AutoFdo),
        _ => None,
    }
}

/// Adds up the branches of all inputs.
pub(super) fn run(
    args: &ExportArgs,
    form: ProfileForm,
    limits: Limits,
    messages: Messages,
    inputs: &[PathBuf],
) -> Result<Outcome> {
    let first = inputs.first().map_or(Path::new(""), PathBuf::as_path);
    let path = output_or_standard(args.output.path.as_deref(), first)?;
    let binary = args.binary.as_deref().map(binary).transpose()?;
    let all: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let output = Output::create_beside(path, &all, args.output.force)?.synced(!args.output.no_sync);
    let mut export = of_args(args, ItraceCommand::Compiler, limits)?;
    (export.symbols, export.unwind) = (false, false);
    let opened = open(first, limits, messages)?;
    let folder = opened.bundle_folder()?;
    let mut opened = Some(opened);
    let (exported, summary) = output.write_stream(limits.threads(), |out: &mut dyn Write| {
        let sink = BranchProfile::new(
            BufWriter::new(out),
            form,
            sources(args)?.with_bundle(folder),
        );
        let mut sink = sink.with_binary(binary);
        let exported = inputs.iter().map(|input| {
            let input = match opened.take() {
                Some(first) => first,
                None => open(input, limits, messages)?,
            };
            export.run(input, &mut sink, path)
        });
        let exported: Vec<Exported> = exported.collect::<Result<_>>()?;
        let summary = sink.write().map_err(|error| unwritten(error, path))?;
        Ok((exported, summary))
    })?;
    for Exported {
        notes, leftover, ..
    } in &exported
    {
        if let Some(leftover) = leftover {
            messages.warning(format_args!("{leftover}; the output does not contain them"));
        }
        notes.iter().for_each(|note| messages.note(note));
    }
    tell(&summary, messages);
    Ok(Outcome::Done)
}

/// Returns the error of a profile. A file that cannot be found can be named.
fn unwritten(error: perfdata_export::Error, path: &Path) -> Error {
    let is_nameable = matches!(error, perfdata_export::Error::Object { .. });
    let error = failed(error, path);
    match is_nameable {
        true => error.with_step(Step::Other("--binary FILE".into())),
        false => error,
    }
}

/// Returns the object of `--binary`: the name of a file, or a build ID.
fn binary(named: &Path) -> Result<Binary> {
    let id = named.to_str().and_then(BuildId::from_hex);
    match id.filter(|_| !named.exists()) {
        Some(id) => Ok(Binary::with_build_id(id)),
        None => Binary::open(named)
            .map_err(|reason| Error::Refused(format!("{}: {reason}", named.display()))),
    }
}

/// Reports what the profile contains.
fn tell(summary: &ProfileSummary, messages: Messages) {
    let has_branches = summary.with_branches > 0;
    let counted = |number| match has_branches {
        true => match number {
            1 => "1 branch".into(),
            _ => format!("{number} branches"),
        },
        false => count(number, "sample"),
    };
    if has_branches && summary.without_branches > 0 {
        messages.note(format_args!(
            "{} without branch records left out",
            count(summary.without_branches, "sample")
        ));
    }
    if summary.impossible > 0 {
        messages.note(format_args!(
            "{} left out: code does not run through there without a branch",
            count(summary.impossible, "fall-through")
        ));
    }
    if summary.unnumbered > 0 {
        messages.note(format_args!(
            "{} not counted: there are too many",
            count(summary.unnumbered, "object")
        ));
    }
    if let Some((name, number)) = &summary.next {
        messages.note(format_args!(
            "not in this profile: {} of other objects, most of {name} ({number}); --binary selects one",
            counted(summary.of_others)
        ));
    }
    messages.summary(format_args!(
        "{} of {}",
        counted(summary.counted),
        summary.object
    ));
}
