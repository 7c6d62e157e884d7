//! The recipes for the options of the command line.

use std::path::Path;

use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::read_at_most;
use perfdata_convert::stages::edit::Change;
use perfdata_convert::stages::swap::Target;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;
use perfdata_inject::build_ids::{KnownBuildIds, Select, Storage};
use perfdata_inject::jit::Images;
use perfdata_recipe::{
    AddBuildIds, Conflict, FeatureSource, Part, Recipe, Sanitizing, Thinning, check_readable,
};
use perfdata_sanitize::Key;

use super::{debuginfod, output_or_standard};
use crate::cli::{Container, ConvertArgs, InjectArgs, images_beside};

/// Returns the recipe for the options, with the samples that they select.
pub fn of_convert(args: &ConvertArgs, limits: Limits) -> Result<Recipe> {
    let mut recipe = steps_of(args, limits)?;
    recipe.select = args.slice.select(limits)?;
    recipe.check().map_err(conflict)?;
    Ok(recipe)
}

/// Returns the recipe for the options, for a recording that is read once.
pub fn of_convert_in_one_pass(args: &ConvertArgs, limits: Limits) -> Result<Recipe> {
    let recipe = of_convert(args, limits)?;
    recipe.check_in_one_pass().map_err(conflict)?;
    Ok(recipe)
}

/// Returns the recipe for the options of `split`, of which some select samples. `are_threads`: each
/// part contains samples of certain threads.
pub fn of_split(args: &ConvertArgs, are_threads: bool, limits: Limits) -> Result<Recipe> {
    let mut recipe = steps_of(args, limits)?;
    recipe.select = Some(args.slice.conditions(limits, are_threads)?.0);
    recipe.check_split().map_err(conflict)?;
    Ok(recipe)
}

/// Returns the recipe for the options, without a selection of samples.
fn steps_of(args: &ConvertArgs, limits: Limits) -> Result<Recipe> {
    let mut recipe = Recipe::default();
    recipe.features_from =
        args.features_from
            .as_deref()
            .map(|name| match name == Path::new("system") {
                true => FeatureSource::System,
                false => FeatureSource::Recording(name.to_owned()),
            });
    recipe.decompress = args.decompress;
    recipe.sort = args.sort;
    recipe.huge_pages = args.huge_pages.deduce_huge_pages;
    recipe.traces = args.traces.traces(args.callchains.unverified)?;
    recipe.code = args.jit.code(|| {
        let output = output_or_standard(args.output.path.as_deref(), &args.input)?;
        images_beside(output, args.output.force)
    })?;
    recipe.merge_deferred = args.merge_deferred;
    recipe.expand_off_cpu = args.expand_off_cpu;
    recipe.user_stacks = (&args.callchains).into();
    recipe.off_cpu = args.off_cpu.options(false);
    recipe.build_ids = build_ids(args)?;
    recipe.thin = Thinning::from(&args.thin);
    recipe.sanitize = args.sharing.sanitizing()?;
    recipe.compat = args.compat;
    recipe.byte_order = args.endian.map(Target::from);
    if args.swap_endian {
        recipe.byte_order = Some(Target::Other);
    }
    recipe.changes = changes(args, limits)?;
    recipe.compress = args.compress;
    recipe.to = args.to.and_then(Container::kind);
    recipe.unknown = args.unknown.into();
    recipe.sysroot.clone_from(&args.sysroot);
    recipe.fetcher = debuginfod::fetcher(&args.callchains.debuginfod)?;
    recipe.limits = limits;
    recipe.sync = !args.output.no_sync;
    Ok(recipe)
}

/// Returns the recipe for the options of `perf inject`. Like perf, it makes a pipe for standard
/// output, and otherwise a file.
pub fn of_inject(args: &InjectArgs, limits: Limits) -> Result<Recipe> {
    // Like perf, which refuses wrong names also where no option uses them. It does not use a list of
    // the kernel's symbols either.
    check_readable([], args.vmlinux.iter().chain(&args.kallsyms))?;
    check_readable(args.sysroot.iter().chain(&args.guestmount), [])?;
    let known = known(args.known_build_ids.as_deref())?;
    let mut recipe = Recipe::default();
    recipe.to = Some(match args.output == Path::new("-") {
        true => ContainerKind::Pipe,
        false => ContainerKind::File,
    });
    recipe.traces = args.traces.traces(args.callchains.unverified)?;
    recipe.code = args.jit.code(|| Ok(Images::BesideDump))?;
    recipe.user_stacks = (&args.callchains).into();
    recipe.sched_stat = args.sched_stat;
    recipe.build_ids = of_objects(args).map(|(objects, storage)| {
        let mut build_ids = AddBuildIds::new(objects, storage);
        build_ids.known = known;
        build_ids.vmlinux.clone_from(&args.vmlinux);
        build_ids.ignores_vmlinux = args.ignore_vmlinux;
        build_ids.guests.clone_from(&args.guestmount);
        build_ids
    });
    recipe.sanitize = match args.aslr {
        true => Some(Sanitizing::Addresses(Key::random()?)),
        false => args.sharing.sanitizing()?,
    };
    recipe.sysroot.clone_from(&args.sysroot);
    recipe.fetcher = debuginfod::fetcher(&args.callchains.debuginfod)?;
    recipe.limits = limits;
    recipe.sync = !args.no_sync;
    recipe.check().map_err(conflict)?;
    Ok(recipe)
}

/// Returns which objects get a build ID, and where it is stored. Of several options, the one for
/// more objects has precedence, and MMAP2 records have precedence over the BUILD_ID section.
fn of_objects(args: &InjectArgs) -> Option<(Select, Storage)> {
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

/// Returns the error with the options that are in conflict.
fn conflict(conflict: Conflict) -> Error {
    Error::Usage(conflict.with_names(|part| match part {
        Part::Select => "options that select samples",
        Part::Split => "split",
        Part::Jit => "--jit",
        Part::PerfMaps => "--perf-maps",
        Part::ConvertCallchain => "--convert-callchain",
        Part::Sanitize => "--sanitize",
        Part::UnknownKeep => "--unknown keep",
        Part::Set => "--set",
        Part::SetRaw => "--set-raw",
        Part::FeaturesFrom => "--features-from",
        Part::Compress => "--compress",
        Part::Itrace => "--itrace",
        Part::HugePages => "--deduce-huge-pages",
        Part::OffCpu => "--off-cpu",
        Part::BuildIds => "--build-ids",
        other => other.name(),
    }))
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

/// Returns the build IDs to add, if they are requested.
fn build_ids(args: &ConvertArgs) -> Result<Option<AddBuildIds>> {
    let storage = match args.mmap2_build_ids {
        true => Storage::Mmap2,
        false => Storage::Table,
    };
    if args.build_ids.is_none() && storage == Storage::Table {
        let sources = [
            (
                "--sysroot",
                args.sysroot.is_some()
                    && !args.jit.is_given()
                    && !args.callchains.convert_callchain
                    && args.traces.samples.itrace.is_none(),
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
    let objects = args.build_ids.map(Into::into).unwrap_or_default();
    let mut build_ids = AddBuildIds::new(objects, storage);
    build_ids.known = known(args.known_build_ids.as_deref())?;
    build_ids.vmlinux.clone_from(&args.vmlinux);
    Ok(Some(build_ids))
}

fn known(list: Option<&str>) -> Result<KnownBuildIds> {
    list.map_or_else(|| Ok(KnownBuildIds::default()), KnownBuildIds::parse)
}
