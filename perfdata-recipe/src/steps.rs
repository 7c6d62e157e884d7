//! The parameters of single steps.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::Input;
use perfdata_convert::io::unpack_archive;
use perfdata_convert::stages::features_from::FeaturesFrom;
use perfdata_core::attr::SampleType;
use perfdata_core::read::Limits;
use perfdata_edit::thin::{StackSize, Thin};
use perfdata_export::{BundleFolder, ObjectFetcher, Reason, Sources};
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Select, Storage, Sysroot};
use perfdata_inject::callchains::Callchains;
use perfdata_inject::itrace::{Itrace, ItraceOptions};
use perfdata_inject::jit::{Images, Jit, JitClock};
use perfdata_inject::perf_maps::PerfMaps;
use perfdata_sanitize::{Key, Policy, Sanitize};
use perfdata_session::BuildId;

/// Where missing feature sections come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureSource {
    /// This machine, if its kernel made the recording.
    System,
    /// Another recording of the same machine.
    Recording(PathBuf),
}

impl FeatureSource {
    pub(crate) fn stage(&self, limits: Limits) -> Result<FeaturesFrom> {
        match self {
            FeatureSource::System => Ok(FeaturesFrom::system()),
            FeatureSource::Recording(path) => FeaturesFrom::recording(path, limits),
        }
    }
}

/// Objects that are not files of a machine.
#[derive(Clone)]
pub(crate) struct Carried {
    /// Those that came with the recording.
    pub bundle: Option<BundleFolder>,
    /// Those that can be fetched.
    pub fetcher: Option<Arc<dyn ObjectFetcher>>,
}

/// What becomes of traces in AUX data.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Traces {
    /// Which samples are made of them; `None`: they are only removed.
    pub samples: Option<ItraceOptions>,
    /// Whether all other samples, and the records of context switches, are dropped.
    pub strip: bool,
    /// Whether code is also read from objects whose build IDs the recording does not contain.
    pub unverified: bool,
    /// Whether traces that cannot be decoded are left out with a note, instead of an error.
    pub where_possible: bool,
    /// Returns what could help if an object cannot be used, as a part of a note.
    pub help: Option<fn(&Reason) -> &'static str>,
}

impl Traces {
    /// Returns what makes these samples, or only removes the traces, and keeps all other samples.
    pub fn new(samples: Option<ItraceOptions>) -> Self {
        Traces {
            samples,
            strip: false,
            unverified: false,
            where_possible: false,
            help: None,
        }
    }

    pub(crate) fn stage(self, sysroot: Option<&Path>, carried: Carried) -> Result<Itrace> {
        Ok(match self.samples {
            Some(options) => {
                let sources = sources_in(sysroot, &[])?
                    .with_unverified(self.unverified)
                    .with_bundle(carried.bundle)
                    .with_fetcher(carried.fetcher);
                let mut stage = Itrace::new(options, self.strip).with_sources(sources);
                if let Some(help) = self.help {
                    stage = stage.with_help(help);
                }
                match self.where_possible {
                    true => stage.where_possible(),
                    false => stage,
                }
            }
            None => Itrace::without_samples(self.strip),
        })
    }
}

/// The dumps of JIT compilers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dumps {
    /// A folder with dumps, which are found there by their names or by the process ID.
    pub folder: Option<PathBuf>,
    /// Nanoseconds to add to all their times.
    pub clock_offset: Option<i64>,
    /// The clock of their times, whatever their headers say.
    pub clock: Option<JitClock>,
}

/// Generated code to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedCode {
    /// From jitdumps.
    pub dumps: Option<Dumps>,
    /// From `perf-PID.map`: of a folder, or of `/tmp` if there is none.
    pub perf_maps: Option<Option<PathBuf>>,
    /// Where the images of functions are written.
    pub images: Images,
}

impl GeneratedCode {
    /// Returns the folders with the code.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        let dumps = self.dumps.iter().filter_map(|dumps| dumps.folder.as_ref());
        dumps.chain(self.perf_maps.iter().flatten())
    }

    /// Returns the stages, in the order in which they process a record.
    pub(crate) fn stages(
        &self,
        sysroot: Option<&Path>,
        adds_build_ids: bool,
        syncs: bool,
    ) -> (Option<Jit>, Option<PerfMaps>) {
        let sysroot = Sysroot::new(sysroot.map(Path::to_owned));
        let jit = self.dumps.as_ref().map(|dumps| {
            let mut jit = Jit::new(self.images.clone()).with_sysroot(sysroot.clone());
            if let Some(folder) = &dumps.folder {
                jit = jit.with_dumps(folder.clone());
            }
            if let Some(offset) = dumps.clock_offset {
                jit = jit.with_clock_offset(offset);
            }
            if let Some(clock) = dumps.clock {
                jit = jit.with_clock(clock);
            }
            jit.with_build_ids(adds_build_ids).synced(syncs)
        });
        let perf_maps = self.perf_maps.as_ref().map(|folder| {
            let mut maps = PerfMaps::new(self.images.clone()).with_sysroot(sysroot);
            if let Some(folder) = folder {
                maps = maps.with_maps(folder.clone());
            }
            maps.with_build_ids(adds_build_ids).synced(syncs)
        });
        (jit, perf_maps)
    }
}

/// How user stacks are unwound.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Unwinding {
    /// Folders with debug files.
    pub debug_dirs: Vec<PathBuf>,
    /// Whether frame pointers are followed where there is no call frame information.
    pub frame_pointers: bool,
    /// Whether objects are used that are not known to be those of the recording.
    pub unverified: bool,
    /// Returns what could help if an object cannot be used, as a part of a note.
    pub help: Option<fn(&Reason) -> &'static str>,
}

/// What becomes of user stacks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum UserStacks {
    /// They are dropped, without another callchain.
    Drop,
    /// They become callchains.
    Unwind(Unwinding),
}

impl UserStacks {
    /// Returns the folders with debug files.
    pub(crate) fn debug_dirs(&self) -> &[PathBuf] {
        match self {
            UserStacks::Drop => &[],
            UserStacks::Unwind(unwinding) => &unwinding.debug_dirs,
        }
    }

    pub(crate) fn stage(
        &self,
        sysroot: Option<&Path>,
        carried: Carried,
        max_frames: Option<u32>,
        has_code: bool,
        threads: usize,
    ) -> Result<Callchains> {
        let unwinding = match self {
            UserStacks::Drop => return Ok(Callchains::without_stacks()),
            UserStacks::Unwind(unwinding) => unwinding,
        };
        let sources = sources_in(sysroot, &unwinding.debug_dirs)?
            .with_unverified(unwinding.unverified)
            .with_bundle(carried.bundle)
            .with_fetcher(carried.fetcher);
        let mut stage = Callchains::unwound(sources)
            .with_frame_pointers(unwinding.frame_pointers)
            .with_generated_code(has_code)
            .with_threads(threads);
        if let Some(help) = unwinding.help {
            stage = stage.with_help(help);
        }
        Ok(match max_frames {
            Some(frames) => stage.with_max_frames(frames),
            None => stage,
        })
    }
}

/// Returns the sources of objects in a root directory, or on this machine, and in `debug_dirs`: folders in
/// the form of `/usr/lib/debug` or of a build ID cache, and archives of `perf archive`, which are unpacked
/// to temporary folders.
///
/// # Errors
/// An archive cannot be read.
pub fn sources_in(sysroot: Option<&Path>, debug_dirs: &[PathBuf]) -> Result<Sources> {
    let root = sysroot.map(|folder| {
        let sysroot = Sysroot::new(Some(folder.to_owned()));
        Arc::new(move |path: &Path| sysroot.locate(path))
            as Arc<dyn Fn(&Path) -> PathBuf + Send + Sync>
    });
    let (mut folders, mut temporary) = (Vec::new(), Vec::new());
    for path in debug_dirs {
        if path.is_file() {
            let unpacked = unpack_archive(path)?;
            folders.push((*unpacked).as_ref().join("debug"));
            temporary.push(unpacked);
        } else {
            folders.push(path.clone());
        }
    }
    let sources = Sources::default();
    let caches = [&*folders, &*sources.caches].concat();
    Ok(sources
        .with_root(root)
        .with_debug_dirs(folders)
        .with_caches(caches)
        .with_temporary(temporary))
}

/// Returns `sources` with what came with the recording: the time of its file, the folder of its bundle,
/// and, unless a list or an image of the kernel is named, the list of symbols in a directory of
/// `perf record --kcore`.
///
/// # Errors
/// The bundle cannot be read.
pub fn with_objects_of(sources: Sources, input: &Input) -> Result<Sources> {
    let is_named = sources.kallsyms.is_some() || sources.vmlinux.is_some();
    let sources = match input.kernel_symbols().filter(|_| !is_named) {
        Some(list) => sources.with_kallsyms(Some(list)),
        None => sources,
    };
    let sources = match input.bundle_folder()? {
        Some(folder) => sources.with_bundle(Some(folder)),
        None => sources,
    };
    Ok(sources.with_recorded_until(input.modified()))
}

/// Checks whether folders and files can be read: if the name of one is wrong, nothing would be found
/// in it.
///
/// # Errors
/// The first one that cannot be read.
pub fn check_readable<'a>(
    folders: impl IntoIterator<Item = &'a PathBuf>,
    files: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    for folder in folders {
        fs::read_dir(folder).map_err(Error::io(folder))?;
    }
    for file in files {
        File::open(file).map_err(Error::io(file))?;
    }
    Ok(())
}

/// Checks whether the folders and archives of `--debug-dir` can be read, as [`check_readable`] does.
///
/// # Errors
/// One of them cannot be read.
pub fn check_debug_dirs<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    paths.into_iter().try_for_each(|path| match path.is_file() {
        true => check_readable([], [path]),
        false => check_readable([path], []),
    })
}

/// Build IDs to add.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AddBuildIds {
    /// Which objects get one.
    pub of: Select,
    /// Where they are stored.
    pub storage: Storage,
    /// Known ones.
    pub known: KnownBuildIds,
    /// The image of the kernel.
    pub vmlinux: Option<PathBuf>,
    /// Whether no image of the kernel is searched.
    pub ignores_vmlinux: bool,
    /// A folder with the files of guests.
    pub guests: Option<PathBuf>,
}

impl AddBuildIds {
    /// Returns the build IDs of these objects, in this place.
    pub fn new(of: Select, storage: Storage) -> Self {
        AddBuildIds {
            of,
            storage,
            known: KnownBuildIds::default(),
            vmlinux: None,
            ignores_vmlinux: false,
            guests: None,
        }
    }

    pub(crate) fn stage(
        &self,
        sysroot: Option<&Path>,
        bundled: Option<Vec<(Vec<u8>, BuildId)>>,
    ) -> BuildIds {
        let sysroot = Sysroot::new(sysroot.map(Path::to_owned));
        let known = self.known.clone().or(bundled.unwrap_or_default());
        let resolver = Resolver::new(known, sysroot, self.vmlinux.clone())
            .without_vmlinux(self.ignores_vmlinux)
            .with_guests(self.guests.clone());
        BuildIds::new(self.of, self.storage, resolver)
    }
}

/// What to remove from samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thinning {
    /// Maximum number of frames of a callchain.
    pub max_stack: Option<u32>,
    /// Maximum size of a user stack.
    pub stack_size: Option<StackSize>,
    /// Parts to remove.
    pub omit: SampleType,
}

impl Thinning {
    pub(crate) fn stage(&self) -> Option<Thin> {
        if *self == Thinning::default() {
            return None;
        }
        let mut thin = Thin::new().omit(self.omit);
        if let Some(frames) = self.max_stack {
            thin = thin.max_stack(frames);
        }
        if let Some(size) = self.stack_size {
            thin = thin.stack_size(size);
        }
        Some(thin)
    }
}

/// What others must not learn from the recording.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Sanitizing {
    /// Only addresses are moved, as `perf inject --aslr` does.
    Addresses(Key),
    /// What the policy does not keep. The key determines the pseudonyms.
    By(Policy, Key),
}

impl Sanitizing {
    pub(crate) fn stage(&self) -> Sanitize {
        match self {
            Sanitizing::Addresses(key) => Sanitize::new(Policy::only_addresses(), key.clone()),
            Sanitizing::By(policy, key) => Sanitize::new(policy.clone(), key.clone()),
        }
    }
}
