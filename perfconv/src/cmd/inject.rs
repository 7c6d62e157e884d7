//! `perfconv inject`: the function of `perf inject` for build IDs, generated code, callchains and
//! traces of Arm SPE, with the same options.

use std::fs::{self, File};
use std::path::Path;

use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;

use super::convert::{report, resolver, warn_of_unfinished};
use super::open;
use crate::cli::{InjectArgs, SanitizeArgs};
use crate::messages::Messages;
use perfdata_convert::io::Output;
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::build_ids::{BuildIds, Select, Storage};
use perfdata_convert::stages::itrace::{Itrace, ItraceOptions};
use perfdata_convert::stages::jit::Images;
use perfdata_convert::stages::sched_stat::SchedStat;
use perfdata_convert::stages::sort::Sort;
use perfdata_convert::{Error, Result};

/// Copies the recording, with the build IDs, generated code and callchains that `args` select. Like
/// perf, it writes a pipe to standard output, and otherwise a file.
pub fn run(args: &InjectArgs, limits: Limits, messages: Messages) -> Result<()> {
    if let Some((option, why)) = args.elsewhere.given {
        return Err(Error::Usage(format!("--{option} is not supported: {why}")));
    }
    let resolver = resolver(
        args.known_build_ids.as_deref(),
        args.sysroot.as_deref(),
        args.vmlinux.as_deref(),
    )?;
    if let Some(folder) = &args.guestmount {
        fs::read_dir(folder).map_err(Error::io(folder))?;
    }
    // Like perf, which does not use it either.
    if let Some(file) = &args.kallsyms {
        File::open(file).map_err(Error::io(file))?;
    }
    let resolver = resolver
        .without_vmlinux(args.ignore_vmlinux)
        .with_guests(args.guestmount.clone());
    let asked = asked(args).map(|(select, place)| BuildIds::new(select, place, resolver));
    let code = args.jit.stages(
        args.sysroot.as_deref(),
        || Ok(Images::BesideDump),
        asked.is_some(),
        !args.no_sync,
    )?;
    let itrace = itrace(args)?;
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if args.sched_stat || itrace.is_some() {
        stages.push(Box::new(Sort::new()));
    }
    if let Some(itrace) = itrace {
        stages.push(Box::new(itrace));
    }
    if let Some(jit) = code.jit {
        stages.push(Box::new(jit));
    }
    if let Some(maps) = code.perf_maps {
        stages.push(Box::new(maps));
    }
    let callchains = &args.callchains;
    let stage = callchains.stage(
        args.sysroot.as_deref(),
        None,
        args.jit.jit,
        limits.threads(),
    )?;
    if let Some(stage) = stage {
        stages.push(Box::new(stage));
    }
    if args.sched_stat {
        stages.push(Box::new(SchedStat::new()));
    }
    if let Some(asked) = asked {
        stages.push(Box::new(asked));
    }
    const IMAGES: &str = "the images of generated code are not sanitized; add the code first";
    args.sharing.check(&[
        ("--jit", args.jit.jit, IMAGES),
        ("--perf-maps", args.jit.perf_maps.is_some(), IMAGES),
    ])?;
    let sanitize = match args.aslr {
        true => Some(SanitizeArgs::only_addresses()?),
        false => args.sharing.stage()?,
    };
    if let Some(stage) = sanitize {
        stages.push(Box::new(stage));
    }
    let to = if args.output == Path::new("-") {
        ContainerKind::Pipe
    } else {
        ContainerKind::File
    };
    let output = Output::create(&args.output, &args.input, true)?.synced(!args.no_sync);
    let summary = Conversion::new(stages)
        .to(to)
        .run_on(open(&args.input, limits, messages)?, output)?;
    warn_of_unfinished(&summary, &args.input, messages);
    report(&summary, messages);
    Ok(())
}

/// Returns the stage that replaces AUX data by samples, if it is requested.
fn itrace(args: &InjectArgs) -> Result<Option<Itrace>> {
    if args.no_itrace {
        return Ok(Some(Itrace::without_samples(args.strip)));
    }
    let Some(words) = &args.itrace else {
        return Ok(None);
    };
    let hits = args.build_ids || args.mmap2_buildids;
    if hits && args.output == Path::new("-") {
        // They precede the samples in a pipe.
        return Err(Error::Usage(
            "--itrace into a pipe cannot be combined with the build IDs of what samples hit: use --buildid-all or --mmap2-buildid-all"
                .into(),
        ));
    }
    let options = match words {
        Some(words) => ItraceOptions::parse(words)?,
        None => ItraceOptions::all(),
    };
    Ok(Some(Itrace::new(options, args.strip)))
}

/// Returns which objects get a build ID, and where it is stored. Of several options, the one for
/// more objects has precedence, and MMAP2 records have precedence over the BUILD_ID section.
fn asked(args: &InjectArgs) -> Option<(Select, Storage)> {
    let words = [
        (args.mmap2_buildid_all, Select::All, Storage::Mmap2),
        (args.mmap2_buildids, Select::Hit, Storage::Mmap2),
        (args.buildid_all, Select::All, Storage::Table),
        (args.build_ids, Select::Hit, Storage::Table),
    ];
    words
        .into_iter()
        .find(|(given, ..)| *given)
        .map(|(_, select, place)| (select, place))
}
