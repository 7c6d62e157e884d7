//! `perfconv export --to bolt`, `llvm-profgen` and `autofdo`: profiles for compilers.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::Output;
use perfdata_core::read::Limits;
use perfdata_export::{Binary, BranchCounts, BranchProfile, ProfileForm, ProfileSummary};
use perfdata_inject::itrace::ItraceCommand;
use perfdata_recipe::{Ending, Exported, failed};
use perfdata_session::BuildId;

use super::export::{jobs_of, of_args, sources};
use super::{Outcome, Several, open, open_unseen, output_or_standard};
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
    several: &Several<'_>,
) -> Result<Outcome> {
    let inputs = several.paths;
    let first = inputs.first().map_or(Path::new(""), PathBuf::as_path);
    let path = output_or_standard(args.output.path.as_deref(), first)?;
    let binary = args.binary.as_deref().map(binary).transpose()?;
    let all: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let output = Output::create_beside(path, &all, args.output.force)?.synced(!args.output.no_sync);
    let jobs = jobs_of(args, limits, inputs.len());
    // The threads are for several recordings, then for parts of each.
    let threads = limits.threads().checked_div(jobs).unwrap_or(1).max(1);
    let limits_of_each = limits.with_max_threads(Some(threads));
    let mut export = of_args(args, ItraceCommand::Compiler, limits_of_each)?;
    (export.symbols, export.unwind) = (false, false);
    // One of several hosts may have done nothing.
    export.allow_empty |= inputs.len() > 1;
    let open = |input: &Path| match jobs {
        1 => open(input, limits_of_each, messages),
        _ => open_unseen(input, limits_of_each, messages),
    };
    let opened = open(first).and_then(|input| Ok((input.bundle_folder()?, input)));
    let (folder, opened) = match opened {
        Ok((folder, input)) => (folder, Mutex::new(Some(input))),
        Err(error) if several.are_many() => return Ok(several.failed(first, &error)),
        Err(error) => return Err(error),
    };
    let mut failed_at = None;
    let written = output.write_stream(limits.threads(), |out: &mut dyn Write| {
        let sink = BranchProfile::new(
            BufWriter::new(out),
            form,
            sources(args)?.with_bundle(folder),
        );
        let mut sink = sink.with_binary(binary);
        let count = |number: usize, input: &Path, mut counts: BranchCounts| {
            let first = match number {
                0 => opened.lock().unwrap_or_else(PoisonError::into_inner).take(),
                _ => None,
            };
            let input = first.map_or_else(|| open(input), Ok)?;
            let exported = export.run(input, &mut counts, path)?;
            Ok((exported, counts))
        };
        let exported = count_all(&mut sink, inputs, jobs, path, &count);
        let exported = exported.map_err(|(number, error)| {
            failed_at = inputs.get(number);
            error
        })?;
        let summary = sink.write().map_err(|error| unwritten(error, path))?;
        Ok((exported, summary))
    });
    let (exported, summary) = match (written, failed_at) {
        (Ok(written), _) => written,
        (Err(error), Some(input)) if several.are_many() => {
            return Ok(several.failed(input, &error));
        }
        (Err(error), _) => return Err(error),
    };
    for (exported, input) in exported.iter().zip(inputs) {
        let whose = match inputs.len() {
            1 => String::new(),
            _ => format!("{}: ", input.display()),
        };
        if let Some(leftover) = &exported.leftover {
            messages.warning(format_args!(
                "{whose}{leftover}; the output does not contain them"
            ));
        }
        if exported.report.samples == 0 {
            messages.note(format_args!("{whose}{}", Ending::NO_SAMPLES));
        }
        for note in &exported.notes {
            messages.note(format_args!("{whose}{note}"));
        }
    }
    tell(&summary, form, messages);
    Ok(Outcome::Done)
}

/// The counts of one input.
type CountResult = Result<(Exported, BranchCounts)>;

/// Counts the branches of all inputs, several at the same time, and adds them to `sink`. Of several
/// errors, that of the first input is returned, with the number of the input.
fn count_all<W: Write>(
    sink: &mut BranchProfile<W>,
    inputs: &[PathBuf],
    jobs: usize,
    path: &Path,
    count: &(dyn Fn(usize, &Path, BranchCounts) -> CountResult + Sync),
) -> Result<Vec<Exported>, (usize, Error)> {
    // What threads begin with, in the order of the inputs.
    let all = inputs.iter().enumerate();
    let all: Vec<_> = all
        .map(|(number, input)| (number, input, sink.counts_of(number, jobs)))
        .collect();
    let waiting = Mutex::new(all.into_iter());
    let next = || {
        waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next()
    };
    let is_over = AtomicBool::new(false);
    let mut exported = BTreeMap::new();
    let mut first_error: Option<(usize, Error)> = None;
    let mut add = |number: usize, result: CountResult| {
        let result = result.and_then(|(exported, counts)| {
            sink.add(counts).map_err(|error| failed(error, path))?;
            Ok(exported)
        });
        match result {
            Ok(one) => drop(exported.insert(number, one)),
            Err(error) => {
                is_over.store(true, Ordering::Relaxed);
                if first_error
                    .as_ref()
                    .is_none_or(|(first, _)| number < *first)
                {
                    first_error = Some((number, error));
                }
            }
        }
    };
    let next = || match is_over.load(Ordering::Relaxed) {
        true => None,
        false => next(),
    };
    thread::scope(|scope| {
        let (sender, results) = mpsc::sync_channel(jobs);
        let start = |_| {
            let sender = sender.clone();
            thread::Builder::new().spawn_scoped(scope, || {
                let sender = sender;
                while let Some((number, input, counts)) = next() {
                    let result = count(number, input, counts);
                    is_over.fetch_or(result.is_err(), Ordering::Relaxed);
                    if sender.send((number, result)).is_err() {
                        return;
                    }
                }
            })
        };
        let is_started = jobs > 1 && (0..jobs).map_while(|at| start(at).ok()).count() > 0;
        drop(sender);
        if !is_started {
            while let Some((number, input, counts)) = next() {
                add(number, count(number, input, counts));
            }
        }
        for (number, result) in results {
            add(number, result);
        }
    });
    match first_error {
        Some(found) => Err(found),
        None => Ok(exported.into_values().collect()),
    }
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
fn tell(summary: &ProfileSummary, form: ProfileForm, messages: Messages) {
    let has_branches = summary.with_branches > 0;
    if !has_branches && form == ProfileForm::Bolt {
        messages.note(
            "without branch records, the table is for perf2bolt --pa --nl of LLVM 21 or later",
        );
    }
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
