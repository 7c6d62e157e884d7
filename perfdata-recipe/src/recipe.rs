//! A conversion as data: its steps, and their order.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use perfdata_convert::error::Result;
use perfdata_convert::io::{Input, InputBundle, Output, OutputDirectory};
use perfdata_convert::pipeline::{Conversion, Converted, Ending, Stage, Summary, to_directory};
use perfdata_convert::recover::{
    Recover, Recovery, convert_recovered, convert_recovered_to_directory,
};
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Limits;
use perfdata_core::record::RecordType;
use perfdata_core::version::Version;
use perfdata_edit::slice::{By, Select, Slice};
use perfdata_edit::sort::Sort;
use perfdata_edit::split::{self, Split};
use perfdata_export::ObjectFetcher;
use perfdata_inject::build_ids;
use perfdata_inject::expand_off_cpu::ExpandOffCpu;
use perfdata_inject::huge_pages::HugePages;
use perfdata_inject::merge_deferred::MergeDeferred;
use perfdata_inject::off_cpu::{OffCpu, OffCpuOptions};
use perfdata_inject::sched_stat::SchedStat;
use perfdata_report::tally::Tally;

use crate::conflict::{Conflict, Part};
use crate::steps::{
    AddBuildIds, Carried, FeatureSource, GeneratedCode, Sanitizing, Thinning, Traces, UserStacks,
    check_debug_dirs, check_readable,
};

/// What to do with a recording. By default, nothing: the output is an exact copy.
///
/// The order of the fields is that in which the steps process a record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recipe {
    /// Which samples to keep; by default all.
    pub select: Option<Select>,
    /// Where missing feature sections come from.
    pub features_from: Option<FeatureSource>,
    /// Whether compressed records are replaced by the records in them.
    pub decompress: bool,
    /// Whether records are sorted by time.
    pub sort: bool,
    /// Whether executable memory in the place of a file becomes a mapping of the file
    /// ([`HugePages`]). The records are sorted before.
    pub huge_pages: bool,
    /// Samples made of traces. The records are sorted before.
    pub traces: Option<Traces>,
    /// Code of JIT compilers to add.
    pub code: Option<GeneratedCode>,
    /// Whether deferred callchains are joined with their samples. For releases of perf that discard
    /// them ([`compat`](Self::compat)), they are where this is possible.
    pub merge_deferred: bool,
    /// Whether the samples of `perf record --off-cpu` become separate ones.
    pub expand_off_cpu: bool,
    /// What becomes of user stacks; by default, they stay as they are.
    pub user_stacks: Option<UserStacks>,
    /// Samples of threads that were off the CPU. The records are sorted before.
    pub off_cpu: Option<OffCpuOptions>,
    /// Whether `sched_stat` events are joined with `sched_switch` (`perf inject --sched-stat`). The
    /// records are sorted before.
    pub sched_stat: bool,
    /// Build IDs to add.
    pub build_ids: Option<AddBuildIds>,
    /// What to remove from samples.
    pub thin: Thinning,
    /// What others must not learn.
    pub sanitize: Option<Sanitizing>,
    /// The release of perf that must be able to read the output.
    pub compat: Option<Version>,
    /// The byte order of the output; by default that of the input.
    pub byte_order: Option<Target>,
    /// Changes of feature sections, each with the name or the number of the feature.
    pub changes: Vec<(String, Change)>,
    /// The level at which records are compressed ([`Compress::LEVELS`]).
    pub compress: Option<i32>,
    /// Whether records of the output are counted by type, for a note.
    pub tally: bool,
    /// The container of the output; by default that of the input.
    pub to: Option<ContainerKind>,
    /// What becomes of content whose byte order or release is unknown.
    pub unknown: Unknown,
    /// A folder with the files of the recorded machine; by default `/`.
    pub sysroot: Option<PathBuf>,
    /// The bundle of the recording. What runs a recipe on an input takes that of the input.
    pub bundle: Option<InputBundle>,
    /// What fetches objects that are not on this machine, for user stacks and traces. `None`: nothing is
    /// fetched.
    pub fetcher: Option<Arc<dyn ObjectFetcher>>,
    /// The limits of readers, and the number of threads.
    pub limits: Limits,
    /// Whether written files are forced to the disk.
    pub sync: bool,
}

impl Default for Recipe {
    fn default() -> Self {
        Recipe {
            select: None,
            features_from: None,
            decompress: false,
            sort: false,
            huge_pages: false,
            traces: None,
            code: None,
            merge_deferred: false,
            expand_off_cpu: false,
            user_stacks: None,
            off_cpu: None,
            sched_stat: false,
            build_ids: None,
            thin: Thinning::default(),
            sanitize: None,
            compat: None,
            byte_order: None,
            changes: Vec::new(),
            compress: None,
            tally: false,
            to: None,
            unknown: Unknown::default(),
            sysroot: None,
            bundle: None,
            fetcher: None,
            limits: Limits::default(),
            sync: true,
        }
    }
}

impl Recipe {
    /// Checks whether the parts can be combined. Everything that runs a recipe checks it, too.
    ///
    /// # Errors
    /// The first conflict.
    pub fn check(&self) -> std::result::Result<(), Conflict> {
        self.check_selection()?;
        self.check_steps()
    }

    /// Checks whether the parts can be combined where the recording is read once: by
    /// [`stages`](Self::stages), [`recover`](Self::recover) and in directories.
    ///
    /// # Errors
    /// The first conflict.
    pub fn check_in_one_pass(&self) -> std::result::Result<(), Conflict> {
        self.check()?;
        let excluded = |part, by, why| Err(Conflict::Excluded { part, by, why });
        if self.select.is_some() && self.off_cpu.is_some() {
            // The switches of other threads say when the selected ones run.
            let why = "add the off-CPU samples first, and then select";
            return excluded(Part::OffCpu, Part::Select, why);
        }
        if self.select.is_some() && self.makes_samples() {
            // The samples that the conditions apply to are not there yet.
            let why = "make samples of the traces first, and then select";
            return excluded(Part::Itrace, Part::Select, why);
        }
        if self.select.is_some() && self.huge_pages {
            // The selection drops mappings that no sample needs.
            let why = "find the files first, and then select";
            return excluded(Part::HugePages, Part::Select, why);
        }
        // In a pipe, the build IDs precede the samples and the mappings.
        if self.adds_hits() && self.to != Some(ContainerKind::File) {
            if self.makes_samples() {
                let why = "make samples of the traces first, and then add the build IDs";
                return excluded(Part::Itrace, Part::BuildIds, why);
            }
            if self.huge_pages {
                let why = "find the files first, and then add the build IDs";
                return excluded(Part::HugePages, Part::BuildIds, why);
            }
        }
        Ok(())
    }

    fn makes_samples(&self) -> bool {
        self.traces.is_some_and(|traces| traces.samples.is_some())
    }

    /// Returns whether build IDs of objects that samples hit are added.
    fn adds_hits(&self) -> bool {
        let hits = self.build_ids.as_ref();
        hits.is_some_and(|ids| ids.of == build_ids::Select::Hit)
    }

    fn check_selection(&self) -> std::result::Result<(), Conflict> {
        match self.select.is_some() && self.adds_dumps() {
            // Which records the kept samples need is decided before the mappings are added.
            true => Err(Conflict::Excluded {
                part: Part::Jit,
                by: Part::Select,
                why: "add the code first, and then select",
            }),
            false => Ok(()),
        }
    }

    fn check_steps(&self) -> std::result::Result<(), Conflict> {
        if let Some(Sanitizing::By(..)) = self.sanitize {
            self.check_sanitized()?;
        }
        if let (Some(version), Some(_)) = (self.compat, self.compress)
            && Compress::kind_for(version).is_none()
        {
            return Err(Conflict::NotCompressed(version));
        }
        Ok(())
    }

    /// Refuses what would add content that is not sanitized.
    fn check_sanitized(&self) -> std::result::Result<(), Conflict> {
        const NEW: &str = "what it adds is not sanitized; use it on the sanitized recording";
        const IMAGES: &str =
            "the images beside the recording are not sanitized; add the code first";
        let mut changes = self.changes.iter().map(|(_, change)| change);
        let is_set = changes
            .clone()
            .any(|change| matches!(change, Change::Set(_)));
        let refused = [
            (
                self.unknown == Unknown::Keep,
                Part::UnknownKeep,
                "unknown content may tell everything",
            ),
            (is_set, Part::Set, NEW),
            (
                changes.any(|change| matches!(change, Change::Raw(_))),
                Part::SetRaw,
                NEW,
            ),
            (
                self.features_from.is_some(),
                Part::FeaturesFrom,
                "add the sections first",
            ),
            (self.adds_dumps(), Part::Jit, IMAGES),
            (self.adds_perf_maps(), Part::PerfMaps, IMAGES),
        ];
        match refused.into_iter().find(|(is_given, ..)| *is_given) {
            None => Ok(()),
            Some((_, part, why)) => Err(Conflict::Excluded {
                part,
                by: Part::Sanitize,
                why,
            }),
        }
    }

    /// Checks whether the recipe applies to the parts that [`split`](Self::split) makes. The
    /// selection applies to all of them together.
    ///
    /// # Errors
    /// The first conflict.
    pub fn check_split(&self) -> std::result::Result<(), Conflict> {
        if self.code.is_some() {
            return Err(Conflict::WholeOnly {
                parts: &[Part::Jit, Part::PerfMaps],
                why: "add the code first, and then split it",
            });
        }
        if let Some(UserStacks::Unwind(_)) = self.user_stacks {
            return Err(Conflict::WholeOnly {
                parts: &[Part::ConvertCallchain],
                why: "unwind the stacks first, and then split it",
            });
        }
        if self.off_cpu.is_some() {
            return Err(Conflict::WholeOnly {
                parts: &[Part::OffCpu],
                why: "add the off-CPU samples first, and then split it",
            });
        }
        if self.sanitize.is_some() {
            return Err(Conflict::Excluded {
                part: Part::Split,
                by: Part::Sanitize,
                why: "the parts would have nothing in common; sanitize the recording first, and then split it",
            });
        }
        if self.makes_samples() {
            return Err(Conflict::WholeOnly {
                parts: &[Part::Itrace],
                why: "make samples of the traces first, and then split it",
            });
        }
        self.check_steps()
    }

    /// Checks whether the files and folders in which something is searched can be read.
    fn check_searched(&self) -> Result<()> {
        let code = self.code.iter().flat_map(GeneratedCode::folders);
        let debug_dirs = self.user_stacks.iter().flat_map(UserStacks::debug_dirs);
        let guests = self.build_ids.iter().filter_map(|ids| ids.guests.as_ref());
        let folders = self.sysroot.iter().chain(code);
        let kernel = self.build_ids.iter().filter_map(|ids| ids.vmlinux.as_ref());
        check_debug_dirs(debug_dirs)?;
        check_readable(folders.chain(guests), kernel)
    }

    fn adds_dumps(&self) -> bool {
        self.code.as_ref().is_some_and(|code| code.dumps.is_some())
    }

    fn adds_perf_maps(&self) -> bool {
        let code = self.code.as_ref();
        code.is_some_and(|code| code.perf_maps.is_some())
    }

    /// Returns the stages, in the order in which they process a record: for a
    /// [`Conversion`] with further ones.
    ///
    /// # Errors
    /// There is a conflict; or a file or folder that the recipe names cannot be read.
    pub fn stages(&self) -> Result<Vec<Box<dyn Stage>>> {
        self.check_in_one_pass()?;
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        if let Some(select) = &self.select {
            stages.push(Box::new(Slice::new(select.clone())));
        }
        self.push_steps(&mut stages)?;
        Ok(stages)
    }

    /// Appends the stages after that which selects samples.
    fn push_steps(&self, stages: &mut Vec<Box<dyn Stage>>) -> Result<()> {
        let threads = self.limits.threads();
        let sysroot = self.sysroot.as_deref();
        let unwinds = matches!(self.user_stacks, Some(UserStacks::Unwind(_)));
        let bundle = match &self.bundle {
            Some(bundle) if unwinds || self.traces.is_some() => Some(bundle.folder()?),
            _ => None,
        };
        let carried = Carried {
            bundle,
            fetcher: self.fetcher.clone(),
        };
        if let Some(source) = &self.features_from {
            stages.push(Box::new(source.stage(self.limits)?));
        }
        self.check_searched()?;
        if self.decompress || self.compress.is_some() {
            stages.push(Box::new(Decompress::default()));
        }
        // The records of a sorted stream remain sorted with the mappings of generated code.
        let sorts_first = self.adds_dumps() && self.sort;
        let is_sorted = sorts_first
            || self.huge_pages
            || self.traces.is_some()
            || self.sched_stat
            || self.off_cpu.is_some();
        if is_sorted {
            stages.push(Box::new(match self.sort {
                true => Sort::new(),
                false => Sort::new().without_note(),
            }));
        }
        if self.huge_pages {
            stages.push(Box::new(HugePages::default()));
        }
        if let Some(traces) = self.traces {
            stages.push(Box::new(traces.stage(sysroot, carried.clone())?));
        }
        if let Some(code) = &self.code {
            let (jit, perf_maps) = code.stages(sysroot, self.build_ids.is_some(), self.sync);
            stages.extend(jit.map(|jit| Box::new(jit) as Box<dyn Stage>));
            stages.extend(perf_maps.map(|maps| Box::new(maps) as Box<dyn Stage>));
        }
        if self.merge_deferred {
            stages.push(Box::new(MergeDeferred::new()));
        } else if self.compat.is_some_and(discards_deferred) {
            stages.push(Box::new(MergeDeferred::where_possible()));
        }
        if self.expand_off_cpu {
            stages.push(Box::new(ExpandOffCpu::new()));
        } else if self.off_cpu.is_some() {
            stages.push(Box::new(ExpandOffCpu::where_possible()));
        }
        if let Some(stacks) = &self.user_stacks {
            let max_stack = self.thin.max_stack;
            let stage = stacks.stage(sysroot, carried, max_stack, self.adds_dumps(), threads)?;
            stages.push(Box::new(stage));
        }
        if let Some(options) = self.off_cpu {
            stages.push(Box::new(OffCpu::new(options)));
        }
        if self.sched_stat {
            stages.push(Box::new(SchedStat::new()));
        }
        if let Some(build_ids) = &self.build_ids {
            let known = self.bundle.as_ref().map(InputBundle::build_ids);
            stages.push(Box::new(build_ids.stage(sysroot, known.transpose()?)));
        }
        if let Some(thin) = self.thin.stage() {
            stages.push(Box::new(thin));
        }
        if let Some(sanitize) = &self.sanitize {
            stages.push(Box::new(sanitize.stage()));
        }
        if self.sort && !is_sorted {
            stages.push(Box::new(Sort::new()));
        }
        if let Some(version) = self.compat {
            stages.push(Box::new(Compat::new(version).deciding(self.unknown)));
        }
        if let Some(target) = self.byte_order {
            stages.push(Box::new(Swap::new(target, self.unknown)));
        }
        if !self.changes.is_empty() {
            stages.push(Box::new(Edit::new(self.changes.iter().cloned())?));
        }
        if let Some(level) = self.compress {
            let kind = self.compressed_kind()?;
            stages.push(Box::new(Compress::new(kind, level).with_threads(threads)));
        }
        if self.tally {
            stages.push(Box::new(Tally::default()));
        }
        Ok(())
    }

    /// Returns the newest type of compressed record that readers of the output know.
    fn compressed_kind(&self) -> std::result::Result<RecordType, Conflict> {
        match self.compat {
            None => Ok(RecordType::COMPRESSED2),
            Some(version) => Compress::kind_for(version).ok_or(Conflict::NotCompressed(version)),
        }
    }

    fn conversion(&self) -> Result<Conversion> {
        Ok(Conversion::new(self.stages()?).to(self.to))
    }

    /// Converts `input` to `output`.
    ///
    /// # Errors
    /// As [`stages`](Self::stages) and [`Conversion::run_on`]. There is no output then.
    pub fn convert(&self, input: Input, output: Output) -> Result<Summary> {
        let recipe = self.of(&input);
        let (recipe, input, first) = recipe.after_additions(input.limited_by(self.limits))?;
        let output = output.synced(self.sync);
        let summary = recipe.conversion()?.run_on(input, output)?;
        Ok(match first {
            Some(first) => summary.after(first),
            None => summary,
        })
    }

    /// Returns the recipe with the bundle of `input`.
    fn of(&self, input: &Input) -> Cow<'_, Recipe> {
        match input.bundle() {
            Some(bundle) => Cow::Owned(Recipe {
                bundle: Some(bundle.clone()),
                ..self.clone()
            }),
            None => Cow::Borrowed(self),
        }
    }

    /// Adds new samples and mappings before samples are selected, or counted for build IDs, if the
    /// recipe does both. Returns the rest of the recipe, the input for it, and the summary of what was done.
    fn after_additions(&self, input: Input) -> Result<(Cow<'_, Recipe>, Input, Option<Summary>)> {
        self.check()?;
        if self.check_in_one_pass().is_ok() {
            return Ok((Cow::Borrowed(self), input, None));
        }
        let first = Recipe {
            huge_pages: self.huge_pages,
            traces: self.traces,
            off_cpu: self.off_cpu,
            sysroot: self.sysroot.clone(),
            bundle: self.bundle.clone(),
            fetcher: self.fetcher.clone(),
            limits: self.limits,
            ..Recipe::default()
        };
        let rest = Recipe {
            huge_pages: false,
            traces: None,
            off_cpu: None,
            ..self.clone()
        };
        let (input, summary) = first.conversion()?.run_apart(input)?;
        Ok((
            Cow::Owned(rest),
            input.limited_by(self.limits),
            Some(summary),
        ))
    }

    /// Converts `input` to a directory, whatever [`to`](Self::to) says.
    ///
    /// # Errors
    /// As [`stages`](Self::stages) and [`to_directory::convert`]. There is no output then.
    pub fn convert_to_directory(&self, input: Input, output: OutputDirectory) -> Result<Summary> {
        self.check_in_one_pass()?;
        let output = output.synced(self.sync);
        let input = input.limited_by(self.limits);
        let recipe = self.of(&input);
        to_directory::convert(input, output, || recipe.stages())
    }

    /// Returns the recording that the conversion makes of `input`, to be read instead of written,
    /// and how reading it will have ended. The container remains that of the input.
    ///
    /// # Errors
    /// As [`stages`](Self::stages) and [`Conversion::read`].
    pub fn read(&self, input: Input) -> Result<(Converted, Ending)> {
        let recipe = self.of(&input);
        let (recipe, input, first) = recipe.after_additions(input.limited_by(self.limits))?;
        let (converted, ending) = Conversion::new(recipe.stages()?).read(input)?;
        Ok((
            converted,
            match first {
                Some(first) => ending.after(first),
                None => ending,
            },
        ))
    }

    /// Divides the selected samples of `input` `by` something, and converts each part to a file in
    /// `output`, or to a pipe ([`to`](Self::to)).
    ///
    /// # Errors
    /// As [`check_split`](Self::check_split), [`stages`](Self::stages) and [`Split::run`]. There is
    /// no output then.
    pub fn split(&self, by: By, input: Input, output: OutputDirectory) -> Result<split::Report> {
        self.check_split()?;
        let select = self.select.clone().unwrap_or_default();
        let to = self.to.unwrap_or(ContainerKind::File);
        let split = Split::new(by).with_select(select).to(to);
        let (input, output) = (input.limited_by(self.limits), output.synced(self.sync));
        let recipe = self.of(&input);
        split.run(input, output, || {
            let mut stages = Vec::new();
            recipe.push_steps(&mut stages)?;
            Ok(stages)
        })
    }

    /// Recovers `input`, and converts what is left of it to `output`. The output of an undamaged
    /// recording is that of [`convert`](Self::convert).
    ///
    /// # Errors
    /// As [`stages`](Self::stages), [`Recover::run_and`] and [`convert_recovered`]. There is no
    /// output then.
    pub fn recover(&self, recover: &Recover, input: Input, output: Output) -> Result<Recovery> {
        let (input, output) = (input.limited_by(self.limits), output.synced(self.sync));
        let conversion = self.of(&input).conversion()?;
        if conversion.stages.is_empty() && self.to.is_none() {
            return recover.run(input, output);
        }
        recover.run_and(input, |recovered| {
            convert_recovered(conversion, recovered, output)
        })
    }

    /// Recovers `input`, and converts what is left of it to a directory.
    ///
    /// # Errors
    /// As [`recover`](Self::recover).
    pub fn recover_to_directory(
        &self,
        recover: &Recover,
        input: Input,
        output: OutputDirectory,
    ) -> Result<Recovery> {
        self.check_in_one_pass()?;
        let (input, output) = (input.limited_by(self.limits), output.synced(self.sync));
        let recipe = self.of(&input);
        recover.run_and(input, |recovered| {
            convert_recovered_to_directory(recovered, output, || recipe.stages())
        })
    }
}

/// Returns whether this release of perf discards deferred callchains.
fn discards_deferred(version: Version) -> bool {
    let deferred = RecordType::CALLCHAIN_DEFERRED.info();
    deferred.is_some_and(|info| !version.has(info.since))
}
