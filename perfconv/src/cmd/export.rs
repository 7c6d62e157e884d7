//! `perfconv export`: the samples of a recording for other profilers.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use perfdata_core::read::Limits;
use perfdata_export::{
    Count, Fields, Firefox, FlameGraph, FlameGraphForm, Folded, Label, Like, Otlp, PerfScript,
    Pprof, Report, Root, Sink, Sources, Speedscope, Unresolved,
};
use perfdata_inject::itrace::{ItraceCommand, ItraceOptions};
use perfdata_recipe::{Export, Exported, Traces, check_debug_dirs, check_readable, sources_in};

use super::{Outcome, Several, debuginfod, objects, open, output_or_standard, profile};
#[cfg(feature = "columns")]
use super::{append, columns};
use crate::cli::{Counted, ExportArgs, Format, LabelArg, LikeArg, Mark, RootFrame};
use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::Output;

/// Bytes of an output that are written at once: a thread may have to be woken for each of them.
const WRITTEN: usize = 128 << 10;

/// Maximum number of objects without names, and of other events, that are listed.
const MOST_LISTED: usize = 5;

/// Exports according to `args`. `several` contains the inputs.
pub fn run(
    args: &ExportArgs,
    limits: Limits,
    messages: Messages,
    several: &Several<'_>,
) -> Result<Outcome> {
    #[cfg(feature = "columns")]
    if let Some(folder) = &args.columns.append_to {
        return append::run(args, folder, limits, messages, several);
    }
    if let Some(form) = args.to.and_then(profile::form_of) {
        return profile::run(args, form, limits, messages, several);
    }
    let [input] = several.paths else {
        let what = "several recordings cannot be exported to one output";
        return Err(Error::Usage(match cfg!(feature = "columns") {
            true => format!("{what}; --append-to DIR adds their tables to a directory"),
            false => what.into(),
        }));
    };
    export_one(args, input, limits, messages)?;
    Ok(Outcome::Done)
}

/// Exports one recording.
fn export_one(
    args: &ExportArgs,
    recording: &Path,
    limits: Limits,
    messages: Messages,
) -> Result<()> {
    let path = output_or_standard(args.output.path.as_deref(), recording)?;
    let Some(format) = args.to.or_else(|| Format::of(path)) else {
        let what = format!("the format is not known by the name {}", path.display());
        return Err(Error::Usage(what).with_step(Step::Other("--to folded".into())));
    };
    check_debug_info(args, format)?;
    #[cfg(feature = "columns")]
    if matches!(format, Format::Parquet | Format::Arrow) {
        return columns::export(args, format, recording, path, limits, messages);
    }
    let inputs: Vec<&Path> = [recording]
        .into_iter()
        .chain(args.diff.as_deref())
        .collect();
    let output =
        Output::create_beside(path, &inputs, args.output.force)?.synced(!args.output.no_sync);
    let command = match format {
        Format::PerfScript => ItraceCommand::Script,
        _ => ItraceCommand::Report,
    };
    let read = |input: &Path, sink: &mut dyn Sink| {
        let input = open(input, limits, messages)?;
        of_args(args, command, limits)?.run(input, sink, path)
    };
    let name = recording.file_name().unwrap_or_default().as_encoded_bytes();
    let write = |out: &mut dyn Write| {
        let out = BufWriter::with_capacity(WRITTEN, out);
        let exported = match format {
            Format::Folded => {
                let mut sink = folded(args, out);
                let mut exported = read(recording, &mut sink)?;
                exported.notes.extend(other_events(&sink.events()));
                exported
            }
            Format::Flamegraph | Format::Svg => {
                let form = match format {
                    Format::Svg => FlameGraphForm::Picture,
                    _ => FlameGraphForm::Page,
                };
                let mut sink = FlameGraph::new(out, form, name);
                if let Some(other) = &args.diff {
                    sink = sink.with_other(other.as_os_str().as_encoded_bytes());
                }
                let mut exported = vec![read(recording, &mut sink)?];
                if let Some(other) = &args.diff {
                    exported.push(read(other, &mut sink)?);
                }
                if let (FlameGraphForm::Picture, Some(last)) = (form, exported.last_mut()) {
                    last.notes.extend(other_events(&sink.events()));
                }
                return Ok(exported);
            }
            Format::Pprof => {
                let mut sink = Pprof::new(out).with_labels(labels(args));
                read(recording, &mut sink)?
            }
            Format::Otlp => {
                let mut sink = Otlp::new(out).with_labels(labels(args));
                read(recording, &mut sink)?
            }
            Format::Firefox => read(recording, &mut Firefox::new(out, name))?,
            Format::Speedscope => read(recording, &mut Speedscope::new(out, name))?,
            Format::PerfScript => read(recording, &mut script(args, out))?,
            Format::Bolt | Format::LlvmProfgen | Format::Autofdo => {
                return Err(Error::Usage("profiles are written by other sinks".into()));
            }
            #[cfg(feature = "columns")]
            Format::Parquet | Format::Arrow => {
                return Err(Error::Usage("columns are written to other outputs".into()));
            }
        };
        Ok(vec![exported])
    };
    let exported = match args.in_place && path.is_file() {
        true => write_in_place(path, write)?,
        false => output.write_stream(limits.threads(), write)?,
    };
    for exported in &exported {
        tell(exported, messages);
    }
    Ok(())
}

/// Returns which event is counted, and which are not, with their numbers of samples; `None` if only one
/// event has samples.
fn other_events(events: &[(&[u8], u64)]) -> Option<String> {
    let (first, others) = events.split_first()?;
    let text = |(name, samples): &(&[u8], u64)| {
        let samples = suggestions::count(*samples, "sample");
        format!("{} ({samples})", String::from_utf8_lossy(name))
    };
    let mut list: Vec<String> = others.iter().take(MOST_LISTED).map(text).collect();
    if let Some(more) = others
        .len()
        .checked_sub(MOST_LISTED)
        .filter(|&more| more > 0)
    {
        list.push(format!("{more} more"));
    }
    (!others.is_empty()).then(|| {
        format!(
            "only {} is counted, not {}: --event selects another event",
            text(first),
            list.join(", ")
        )
    })
}

/// Refuses inlined functions and lines in formats that cannot contain them.
fn check_debug_info(args: &ExportArgs, format: Format) -> Result<()> {
    let refused =
        |what: &str, step: &str| Err(Error::Usage(what.into()).with_step(Step::Other(step.into())));
    match format {
        Format::PerfScript if args.lines => refused(
            "the text of perf script shows source lines as a field",
            "-F +srcline",
        ),
        Format::Folded | Format::Flamegraph | Format::Svg if args.lines => {
            refused("this format has no source lines for --lines", "--to pprof")
        }
        _ => Ok(()),
    }
}

/// Writes to an existing file, which others may have opened, once the output is complete.
fn write_in_place<T>(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let temporary = || Error::io("a temporary file");
    let mut spool = tempfile::tempfile().map_err(temporary())?;
    let result = write(&mut spool)?;
    spool.rewind().map_err(temporary())?;
    let mut file = File::create(path).map_err(Error::io(path))?;
    io::copy(&mut spool, &mut file).map_err(Error::io(path))?;
    Ok(result)
}

/// Returns what the options require of a recording. Without letters of `--itrace`, traces become
/// the samples of `command`.
pub(super) fn of_args(args: &ExportArgs, command: ItraceCommand, limits: Limits) -> Result<Export> {
    let mut export = Export::new(sources(args)?);
    let default = ItraceOptions::of_command(command);
    let samples = args.traces.options(default)?;
    let traces = |samples, where_possible| {
        let mut traces = Traces::new(Some(samples));
        traces.unverified = args.unverified;
        traces.where_possible = where_possible;
        traces.help = Some(objects::help);
        traces
    };
    export.recipe.traces = samples.map(|samples| traces(samples, false));
    export.traces = (!args.traces.no_itrace).then(|| traces(default, true));
    export.recipe.sysroot.clone_from(&args.sysroot);
    export.recipe.fetcher = debuginfod::fetcher(&args.debuginfod)?;
    export.recipe.select = args.slice.select(limits)?;
    export.recipe.huge_pages = args.huge_pages.deduce_huge_pages;
    export.recipe.off_cpu = args.off_cpu.options(true);
    export.recipe.limits = limits;
    export.symbols = !args.no_symbols;
    export.inlines = args.inlines;
    export.lines = args.lines;
    export.unwind = !args.no_unwind;
    export.allow_empty = args.slice.allow_empty;
    // The text of perf script has a line for each counter of a group.
    export.groups = command != ItraceCommand::Script;
    export.help = Some(objects::help);
    Ok(export)
}

/// Returns how many of several recordings are read at the same time.
pub(super) fn jobs_of(args: &ExportArgs, limits: Limits, recordings: usize) -> usize {
    let jobs = args.jobs.map_or_else(|| limits.threads(), Into::into);
    jobs.min(recordings).max(1)
}

/// Returns the labels of the samples.
fn labels(args: &ExportArgs) -> Vec<Label> {
    let labels = args.label.iter().map(|label| match label {
        LabelArg::Pid => Label::Pid,
        LabelArg::Tid => Label::Tid,
        LabelArg::Comm => Label::Comm,
        LabelArg::Cpu => Label::Cpu,
        LabelArg::Cgroup => Label::Cgroup,
        LabelArg::Mode => Label::Mode,
    });
    labels.collect()
}

/// Returns the sink for folded stacks.
fn folded<W: Write>(args: &ExportArgs, out: W) -> Folded<W> {
    let marks = |mark| args.mark.contains(&mark);
    Folded::new(out)
        .with_count(match args.count {
            Counted::Period => Count::Period,
            Counted::Samples => Count::Samples,
        })
        .with_root(match args.root {
            RootFrame::Comm => Root::Comm,
            RootFrame::Pid => Root::Pid,
            RootFrame::Tid => Root::Tid,
        })
        .with_marks(marks(Mark::Kernel), marks(Mark::Jit))
        .with_inline_marks(marks(Mark::Inline))
}

/// Returns the sink for the text of perf script.
fn script<W: Write>(args: &ExportArgs, out: W) -> PerfScript<W> {
    let like = match args.like {
        LikeArg::V6_1 => Like::Perf6_1,
        LikeArg::V6_12 => Like::Perf6_12,
        LikeArg::V7_2 => Like::Perf7_2,
    };
    let fields = args.fields.iter().cloned();
    let fields = fields.fold(Fields::default(), Fields::and);
    PerfScript::new(out, like)
        .with_fields(&fields)
        .with_nanoseconds(args.ns)
        .with_max_stack(args.max_frames)
        .with_scheduler_plugin(args.sched_plugin)
        .with_inlines(args.inlines)
        .with_full_source_path(args.full_source_path)
}

/// Returns where symbols are searched. A named file or folder must exist: if its name is wrong, no
/// names would be found.
pub(super) fn sources(args: &ExportArgs) -> Result<Sources> {
    check_readable([], args.vmlinux.iter().chain(&args.kallsyms))?;
    check_readable(&args.sysroot, [])?;
    check_debug_dirs(&args.debug_dir)?;
    Ok(sources_in(args.sysroot.as_deref(), &args.debug_dir)?
        .with_vmlinux(args.vmlinux.clone())
        .with_kallsyms(args.kallsyms.clone())
        .with_unverified(args.unverified)
        .with_fetcher(debuginfod::fetcher(&args.debuginfod)?))
}

/// Reports what was exported, and which names are missing.
pub(super) fn tell(exported: &Exported, messages: Messages) {
    let Exported {
        report,
        notes,
        leftover,
        ..
    } = exported;
    if let Some(leftover) = leftover {
        messages.warning(format_args!("{leftover}; the output does not contain them"));
    }
    notes.iter().for_each(|note| messages.note(note));
    if report.restarted_counters > 0 {
        messages.note(format_args!(
            "counters go back in {}: they count from 0 again",
            suggestions::count(report.restarted_counters, "sample")
        ));
    }
    if report.guests > 0 {
        messages.note(format_args!(
            "{} of guests, without names of functions; the text of perf script does not contain them",
            suggestions::count(report.guests, "sample")
        ));
    }
    if let Some(note) = objects::note(report) {
        messages.note(note);
    }
    for name in report.on_huge_pages.iter().take(MOST_LISTED) {
        messages.note(format_args!(
            "{}: its code seems to be on huge pages, where functions have no names: --deduce-huge-pages finds them",
            String::from_utf8_lossy(name)
        ));
    }
    for object in report.unresolved.iter().take(MOST_LISTED) {
        messages.note(without_names(object));
    }
    for object in report.unresolved.iter().skip(MOST_LISTED) {
        messages.detail(without_names(object));
    }
    if let Some(others) = report.unresolved.len().checked_sub(MOST_LISTED)
        && others > 0
    {
        messages.note(format_args!(
            "{others} more {} addresses without names; -v lists them",
            if others == 1 {
                "object has"
            } else {
                "objects have"
            }
        ));
    }
    tell_debug_info(report, messages);
    for object in &report.verified {
        messages.detail(format_args!(
            "{}: the same object by {}",
            String::from_utf8_lossy(&object.name),
            object.evidence
        ));
    }
    let (samples, frames) = (
        suggestions::count(report.samples, "sample"),
        suggestions::count(report.frames, "frame"),
    );
    match report.without_functions {
        true => messages.summary(format_args!("{samples}, {frames}")),
        false => messages.summary(format_args!(
            "{samples}, {frames}, {} without a name",
            report.unnamed
        )),
    }
}

/// Reports which objects have no debug information, and what was searched.
fn tell_debug_info(report: &Report, messages: Messages) {
    let list = &report.without_debug_info;
    for object in list.iter().take(MOST_LISTED) {
        let name = String::from_utf8_lossy(&object.name);
        messages.note(format_args!(
            "{name}: no inlined functions and lines: {}",
            object.reason
        ));
    }
    for object in list.iter().skip(MOST_LISTED) {
        let name = String::from_utf8_lossy(&object.name);
        messages.detail(format_args!(
            "{name}: no inlined functions and lines: {}",
            object.reason
        ));
    }
    if let Some(others) = list
        .len()
        .checked_sub(MOST_LISTED)
        .filter(|&others| others > 0)
    {
        let others = suggestions::count(others as u64, "other object");
        messages.note(format_args!(
            "{others} without inlined functions and lines; -v lists them"
        ));
    }
}

/// Returns which names of an object are missing, and why.
fn without_names(object: &Unresolved) -> String {
    format!(
        "{}: {} {} without a name: {}{}",
        String::from_utf8_lossy(&object.name),
        object.lookups,
        if object.lookups == 1 {
            "address"
        } else {
            "addresses"
        },
        object.reason,
        objects::help_for(object)
    )
}
