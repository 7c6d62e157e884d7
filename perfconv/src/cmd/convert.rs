//! `perfconv convert`, and its short forms.

use std::fs::{self, File};
use std::path::Path;

use indicatif::HumanBytes;
use perfdata_core::Endian;
use perfdata_core::read::Limits;
use perfdata_core::record::RecordType;
use perfdata_core::version::Version;

use super::{open, output_or_standard};
use crate::cli::{ByteOrder, Code, Container, ConvertArgs, UnknownContent, images_beside};
use crate::messages::{Messages, Verbosity};
use crate::suggestions;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::inspect::show::endian_name;
use perfdata_convert::io::{Output, OutputDirectory, read_at_most};
use perfdata_convert::pipeline::{Conversion, Form, Stage, Summary, to_directory};
use perfdata_convert::stages::build_ids::{BuildIds, KnownBuildIds, Resolver, Storage, Sysroot};
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::expand_off_cpu::ExpandOffCpu;
use perfdata_convert::stages::features_from::FeaturesFrom;
use perfdata_convert::stages::merge_deferred::MergeDeferred;
use perfdata_convert::stages::sanitize::Sanitize;
use perfdata_convert::stages::slice::Slice;
use perfdata_convert::stages::sort::Sort;
use perfdata_convert::stages::swap::{Swap, Target};
use perfdata_convert::stages::tally::Tally;

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
    let output = output_or_standard(args.output.path.as_deref(), &args.input)?;
    let stages = || {
        let mut stages = stages(args, limits)?;
        if messages.verbosity >= Verbosity::All {
            stages.push(Box::new(Tally::default()));
        }
        Ok(stages)
    };
    let to = to.or(args.to);
    if to == Some(Container::Dir) {
        let output = OutputDirectory::create(
            output,
            &args.input,
            args.output.force,
            to_directory::is_part,
        )?;
        let output = output.synced(!args.output.no_sync);
        let summary = to_directory::convert(open(&args.input, limits, messages)?, output, stages)?;
        report(&summary, messages);
        return Ok(());
    }
    let to = to.and_then(Container::kind);
    let output =
        Output::create(output, &args.input, args.output.force)?.synced(!args.output.no_sync);
    let summary = Conversion::new(stages()?)
        .to(to)
        .run_on(open(&args.input, limits, messages)?, output)?;
    warn_of_unfinished(&summary, &args.input, messages);
    report(&summary, messages);
    Ok(())
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

/// Returns the stages for the options, in the order in which they process a record.
pub(super) fn stages(args: &ConvertArgs, limits: Limits) -> Result<Vec<Box<dyn Stage>>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    let code = code(args)?;
    if let Some(select) = args.slice.select(limits)? {
        if code.jit.is_some() {
            // Which records the kept samples need is decided before the mappings are added.
            return Err(Error::Usage(
                "--jit cannot be combined with options that select samples: add the code first, and then select"
                    .into(),
            ));
        }
        stages.push(Box::new(Slice::new(select)));
    }
    stages.extend(stages_after_selection(args, code, limits)?);
    Ok(stages)
}

/// Returns the stages for the options, except those that select samples.
pub(super) fn stages_of_parts(args: &ConvertArgs, limits: Limits) -> Result<Vec<Box<dyn Stage>>> {
    if args.jit.is_given() {
        return Err(Error::Usage(
            "--jit and --perf-maps do not apply to the parts of a recording: add the code first, and then split it"
                .into(),
        ));
    }
    if args.callchains.convert_callchain {
        return Err(Error::Usage(
            "--convert-callchain does not apply to the parts of a recording: unwind the stacks first, and then split it"
                .into(),
        ));
    }
    args.sharing.check(&[(
        "split",
        true,
        "the parts would have nothing in common; sanitize the recording first, and then split it",
    )])?;
    stages_after_selection(args, Code::default(), limits)
}

fn stages_after_selection(
    args: &ConvertArgs,
    code: Code,
    limits: Limits,
) -> Result<Vec<Box<dyn Stage>>> {
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    match args.features_from.as_deref() {
        Some(name) if name == Path::new("system") => stages.push(Box::new(FeaturesFrom::system())),
        Some(path) => stages.push(Box::new(FeaturesFrom::recording(path, limits)?)),
        None => {}
    }
    if args.decompress || args.compress.is_some() {
        stages.push(Box::new(Decompress::default()));
    }
    // The records of a sorted stream remain sorted with the mappings.
    let sorts_first = args.sort && code.jit.is_some();
    if sorts_first {
        stages.push(Box::new(Sort::new()));
    }
    let has_code = code.jit.is_some();
    if let Some(jit) = code.jit {
        stages.push(Box::new(jit));
    }
    if let Some(maps) = code.perf_maps {
        stages.push(Box::new(maps));
    }
    // perf before 6.19 discards deferred callchains.
    let is_old = |version: Version| {
        RecordType::CALLCHAIN_DEFERRED
            .info()
            .is_some_and(|info| !version.has(info.since))
    };
    if args.merge_deferred {
        stages.push(Box::new(MergeDeferred::new()));
    } else if args.compat.is_some_and(is_old) {
        stages.push(Box::new(MergeDeferred::where_possible()));
    }
    if args.expand_off_cpu {
        stages.push(Box::new(ExpandOffCpu::new()));
    }
    let callchains = args.callchains.stage(
        args.sysroot.as_deref(),
        args.thin.max_stack,
        has_code,
        limits.threads(),
    )?;
    if let Some(callchains) = callchains {
        stages.push(Box::new(callchains));
    }
    if let Some(build_ids) = build_ids(args)? {
        stages.push(Box::new(build_ids));
    }
    if let Some(thin) = args.thin.stage() {
        stages.push(Box::new(thin));
    }
    if let Some(sanitize) = sanitize(args)? {
        stages.push(Box::new(sanitize));
    }
    if args.sort && !sorts_first {
        stages.push(Box::new(Sort::new()));
    }
    if let Some(version) = args.compat {
        stages.push(Box::new(Compat::new(version).deciding(args.unknown.into())));
    }
    let order = args.endian.map(|order| match order {
        ByteOrder::Little => Target::Order(Endian::Little),
        ByteOrder::Big => Target::Order(Endian::Big),
        ByteOrder::Native => Target::Order(Endian::NATIVE),
    });
    if let Some(target) = order.or(args.swap_endian.then_some(Target::Other)) {
        stages.push(Box::new(Swap::new(target, args.unknown.into())));
    }
    let changes = changes(args, limits)?;
    if !changes.is_empty() {
        stages.push(Box::new(Edit::new(changes)?));
    }
    if let Some(level) = args.compress {
        stages.push(Box::new(
            Compress::new(compressed_kind(args.compat)?, level).with_threads(limits.threads()),
        ));
    }
    Ok(stages)
}

/// Returns the stage that sanitizes the recording, if it is requested.
fn sanitize(args: &ConvertArgs) -> Result<Option<Sanitize>> {
    const NEW: &str = "what it adds is not sanitized; use it on the sanitized recording";
    args.sharing.check(&[
        (
            "--unknown keep",
            args.unknown == UnknownContent::Keep,
            "unknown content may tell everything",
        ),
        ("--set", !args.set.is_empty(), NEW),
        ("--set-raw", !args.set_raw.is_empty(), NEW),
        (
            "--features-from",
            args.features_from.is_some(),
            "add the sections first",
        ),
        (
            "--jit",
            args.jit.jit,
            "the images beside the recording are not sanitized; add the code first",
        ),
        (
            "--perf-maps",
            args.jit.perf_maps.is_some(),
            "the images beside the recording are not sanitized; add the code first",
        ),
    ])?;
    args.sharing.stage()
}

/// Returns the stages that add generated code.
fn code(args: &ConvertArgs) -> Result<Code> {
    let images = || {
        let output = output_or_standard(args.output.path.as_deref(), &args.input)?;
        images_beside(output, args.output.force)
    };
    let adds_build_ids = args.build_ids.is_some() || args.mmap2_build_ids;
    let sysroot = args.sysroot.as_deref();
    args.jit
        .stages(sysroot, images, adds_build_ids, !args.output.no_sync)
}

/// Returns the newest type of compressed record that the release `compat` can read.
fn compressed_kind(compat: Option<Version>) -> Result<RecordType> {
    let Some(version) = compat else {
        return Ok(RecordType::COMPRESSED2);
    };
    Compress::kind_for(version).ok_or_else(|| {
        Error::Usage(format!(
            "perf {version} cannot read compressed records: omit --compress"
        ))
    })
}

/// Returns the changes of feature sections.
fn changes(args: &ConvertArgs, limits: Limits) -> Result<Vec<(String, Change)>> {
    let set = args
        .set
        .iter()
        .map(|(name, value)| Ok((name.clone(), Change::Set(value.clone()))));
    let raw = args.set_raw.iter().map(|(name, file)| {
        let bytes = read_at_most(limits.max_metadata, Path::new(file))?;
        Ok((name.clone(), Change::Raw(bytes)))
    });
    let drop = args
        .drop
        .iter()
        .map(|name| Ok((name.clone(), Change::Drop)));
    set.chain(raw).chain(drop).collect()
}

/// Returns the stage that adds build IDs, if it is requested.
fn build_ids(args: &ConvertArgs) -> Result<Option<BuildIds>> {
    let place = if args.mmap2_build_ids {
        Storage::Mmap2
    } else {
        Storage::Table
    };
    if args.build_ids.is_none() && place == Storage::Table {
        let sources = [
            (
                "--sysroot",
                args.sysroot.is_some()
                    && !args.jit.is_given()
                    && !args.callchains.convert_callchain,
            ),
            ("--known-build-ids", args.known_build_ids.is_some()),
            ("--vmlinux", args.vmlinux.is_some()),
        ];
        return match sources.iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                let what = format!("{option} requires --build-ids or --mmap2-build-ids");
                Err(Error::Usage(what).with_step(Step::Other("--build-ids".into())))
            }
            None => Ok(None),
        };
    }
    let resolver = resolver(
        args.known_build_ids.as_deref(),
        args.sysroot.as_deref(),
        args.vmlinux.as_deref(),
    )?;
    Ok(Some(BuildIds::new(
        args.build_ids.map(Into::into).unwrap_or_default(),
        place,
        resolver,
    )))
}

/// Returns the sources of build IDs. A named file or folder must exist: if its name is wrong, no
/// build ID would be found.
pub(super) fn resolver(
    known: Option<&str>,
    sysroot: Option<&Path>,
    vmlinux: Option<&Path>,
) -> Result<Resolver> {
    let known = known
        .map(KnownBuildIds::parse)
        .transpose()?
        .unwrap_or_default();
    if let Some(folder) = sysroot {
        fs::read_dir(folder).map_err(Error::io(folder))?;
    }
    if let Some(kernel) = vmlinux {
        File::open(kernel).map_err(Error::io(kernel))?;
    }
    Ok(Resolver::new(
        known,
        Sysroot::new(sysroot.map(Path::to_owned)),
        vmlinux.map(Path::to_owned),
    ))
}
