//! `perfconv bundle`: a recording with the objects that name its functions.

use std::io::{self, BufWriter, Write};
use std::time::SystemTime;

use indicatif::HumanBytes;
use perfdata_bundle::{BundleWriter, Gathered, Gatherer, Member};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Limits, RecordRef};
use perfdata_core::record::{AuxtraceType, Body, Record, RecordType};
use perfdata_recipe::{
    Export, OpenExport, check_debug_dirs, check_readable, sources_in, with_objects_of,
};

use super::{debuginfod, open, output_or_standard};
use crate::cli::BundleArgs;
use crate::messages::Messages;
use crate::suggestions::count;
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Input, Output, bundle_index};
use perfdata_convert::pipeline::Conversion;
use perfdata_convert::support::counted::CountedWriter;
use perfdata_export::{FetchAhead, Sources, fetch_objects};

/// Maximum number of objects that are listed because they were not found.
const MOST_LISTED: usize = 5;

/// Packs a recording according to `args`.
pub fn run(args: &BundleArgs, limits: Limits, messages: Messages) -> Result<()> {
    check_readable(&args.sysroot, [])?;
    check_debug_dirs(&args.debug_dir)?;
    check_readable([], args.vmlinux.iter().chain(&args.kallsyms))?;
    let path = output_or_standard(args.output.path.as_deref(), &args.input)?;
    let output = Output::create(path, &args.input, args.output.force)?;
    let output = output.synced(!args.output.no_sync);
    let mut input = open(&args.input, limits, messages)?.into_seekable()?;
    let sources = sources_in(args.sysroot.as_deref(), &args.debug_dir)?
        .with_vmlinux(args.vmlinux.clone())
        .with_kallsyms(args.kallsyms.clone())
        .with_unverified(args.unverified)
        .with_fetcher(debuginfod::fetcher(&args.debuginfod)?);
    let sources = with_objects_of(sources, &input)?;
    if let Some(directory) = input.directory() {
        for name in directory.extras() {
            messages.note(format_args!(
                "{name} is not in the bundle, except for its list of symbols"
            ));
        }
        // A bundle contains a recording that is one file.
        let conversion = Conversion::new(Vec::new()).to(Some(ContainerKind::File));
        let (file, _) = conversion.run_apart(input)?;
        input = file.limited_by(limits);
    }
    let gathered = gather(&input, sources, args.all, limits, messages)?;
    let size = output.write_stream(limits.threads(), |out| write(&input, &gathered, out))?;
    tell(&gathered, size, messages);
    Ok(())
}

/// Finds the objects of a recording.
fn gather(
    input: &Input,
    sources: Sources,
    all: bool,
    limits: Limits,
    messages: Messages,
) -> Result<Gathered> {
    let Some(again) = input.again() else {
        return Err(Error::Refused(
            "this recording can be read only once".into(),
        ));
    };
    let mut export = Export::new(sources.clone());
    export.recipe.limits = limits;
    (export.symbols, export.allow_empty) = (false, true);
    let has_samples_in_traces = traces_of(input) == Some(AuxtraceType::ARM_SPE);
    if !has_samples_in_traces {
        export.traces = None;
    }
    let OpenExport {
        mut samples,
        ending,
        ..
    } = export.open(again)?;
    fetch_objects(&sources, samples.recording(), FetchAhead::Lines)?;
    let mut gatherer = Gatherer::new(sources, samples.recording());
    let mut needs_code = false;
    let mut see = |record: RecordRef<'_>| needs_code |= record.raw().kind == RecordType::AUXTRACE;
    while let Some(sample) = samples.next_with(&mut see).map_err(Error::Read)? {
        gatherer.sample(&sample);
    }
    if needs_code && !has_samples_in_traces {
        gatherer.programs(samples.session());
    }
    if all {
        gatherer.all(samples.session());
    }
    drop(samples);
    if let (_, Some(leftover)) = ending.check()? {
        messages.warning(format_args!("{leftover}"));
    }
    Ok(gatherer.finish())
}

/// Returns the type of the traces in a recording, if AUXTRACE_INFO precedes the records of the kernel, as
/// `perf record` writes it. What cannot be read is an error when the samples are read.
fn traces_of(input: &Input) -> Option<AuxtraceType> {
    let (mut reader, _) = input.again()?.reader().ok()?;
    while let (Chunk::Records(batch), recording) = reader.next_chunk().ok()?? {
        for raw in batch.iter() {
            if raw.kind == RecordType::AUXTRACE_INFO {
                let layout = recording.events.layout_of(&raw);
                return match Record::decode(&raw, &layout).ok()?.body {
                    Body::AuxtraceInfo(info) => Some(info.kind),
                    _ => None,
                };
            }
            if raw.kind.is_kernel() {
                return None;
            }
        }
    }
    None
}

/// Writes the bundle. Returns its size in bytes.
fn write(input: &Input, gathered: &Gathered, out: &mut dyn Write) -> Result<u64> {
    let counted = CountedWriter {
        out: BufWriter::new(out),
        bytes: 0,
    };
    let index = bundle_index(gathered);
    let mut bundle =
        BundleWriter::new(counted, &index, &gathered.build_ids()).map_err(unwritten)?;
    let modified = input.modified().or_else(|| Some(SystemTime::now()));
    let mut failed = None;
    let added = bundle.add_written(&Member::Recording, modified, |out| {
        let mut result = Ok(());
        let read = input.each_block(|bytes| {
            if result.is_ok() {
                result = out.write_all(bytes);
            }
        });
        match read {
            Ok(_) => result,
            Err(error) => {
                failed = Some(error);
                Err(io::Error::other("the recording cannot be read"))
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    added.map_err(unwritten)?;
    for carried in &gathered.files {
        let place = String::from_utf8_lossy(&carried.file.path).into_owned();
        let mut content = carried.open().map_err(Error::io(place))?;
        let added = bundle.add(&carried.member, &mut content, None);
        added.map_err(unwritten)?;
    }
    let mut counted = bundle.finish().map_err(unwritten)?;
    counted.flush().map_err(Error::io("bundle"))?;
    Ok(counted.bytes)
}

fn unwritten(error: perfdata_bundle::Error) -> Error {
    match error {
        perfdata_bundle::Error::Io(error) => Error::io("bundle")(error),
        perfdata_bundle::Error::Temporary(error) => Error::io("a temporary file")(error),
        other => Error::Refused(other.to_string()),
    }
}

/// Reports what the bundle contains, and what was not found.
fn tell(gathered: &Gathered, size: u64, messages: Messages) {
    for carried in &gathered.files {
        messages.detail(format_args!(
            "{}: {}",
            String::from_utf8_lossy(&carried.name),
            carried.file.evidence
        ));
    }
    for (at, absent) in gathered.absent.iter().enumerate() {
        let name = String::from_utf8_lossy(&absent.name);
        match at < MOST_LISTED {
            true => messages.note(format_args!(
                "{name} is not in the bundle: {}",
                absent.reason
            )),
            false => {
                messages.detail(format_args!(
                    "{name} is not in the bundle: {}",
                    absent.reason
                ));
            }
        }
    }
    if let Some(more) = gathered.absent.len().checked_sub(MOST_LISTED)
        && more > 0
    {
        let more = count(more as u64, "other object");
        messages.note(format_args!("{more} not in the bundle; -v lists them"));
    }
    messages.summary(format_args!(
        "{} of objects, {}",
        count(gathered.files.len() as u64, "file"),
        HumanBytes(size)
    ));
}
