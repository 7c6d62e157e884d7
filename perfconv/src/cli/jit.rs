//! The options for generated code.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::convert::CONVERSIONS;
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use perfdata_convert::error::{Error, Result, Step};
use perfdata_inject::jit::{Images, JitClock};
use perfdata_recipe::{Dumps, GeneratedCode};

/// The options that write images.
const IMAGES: &str = "images";

/// Whether and how to add generated code.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new(IMAGES).args(["jit", "perf_maps"]).multiple(true))]
pub struct JitArgs {
    /// Add the functions that JIT compilers wrote to jit-PID.dump
    ///
    /// Writes an ELF image of each function, and adds the mappings of these images. Record with
    /// `perf record -k mono`. The recording contains the paths of the dumps; with --sysroot, they
    /// are first looked for in this directory.
    #[arg(short = 'j', long, help_heading = CONVERSIONS)]
    pub jit: bool,
    /// Look for the dumps in this directory, by their names, and for those of processes that map none
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "jit")]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub jit_dir: Option<PathBuf>,
    /// Write the images to this directory [default: OUTPUT.jit]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = IMAGES)]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub jit_images: Option<PathBuf>,
    /// Add NS nanoseconds to the times of the dumps, which may then be of another clock
    #[arg(
        long,
        value_name = "NS",
        requires = "jit",
        allow_negative_numbers = true
    )]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub jit_clock_offset: Option<i64>,
    /// Take the times of the dumps for those of this clock, whatever their headers say
    #[arg(long, value_name = "CLOCK", requires = "jit")]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub jit_clock: Option<ClockOfDumps>,
    /// Add the names that JIT compilers wrote to perf-PID.map (in /tmp)
    ///
    /// Writes ELF images with these names, and maps them where the code was. Without DIR, maps are
    /// read from /tmp of --sysroot, or of this machine if it made the recording.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    #[arg(value_hint = ValueHint::DirPath, help_heading = CONVERSIONS)]
    pub perf_maps: Option<Option<PathBuf>>,
}

/// The clock of the times in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockOfDumps {
    /// Nanoseconds of CLOCK_MONOTONIC
    Mono,
    /// The cycle counter of the CPU
    Cycles,
}

impl From<ClockOfDumps> for JitClock {
    fn from(clock: ClockOfDumps) -> Self {
        match clock {
            ClockOfDumps::Mono => JitClock::Monotonic,
            ClockOfDumps::Cycles => JitClock::Cycles,
        }
    }
}

impl JitArgs {
    /// Returns whether an option adds generated code.
    pub fn is_given(&self) -> bool {
        self.jit || self.perf_maps.is_some()
    }

    /// Returns the code to add, if there is any. `images` returns where its images are written,
    /// unless an option says so.
    ///
    /// # Errors
    /// That of `images`.
    pub fn code(&self, images: impl FnOnce() -> Result<Images>) -> Result<Option<GeneratedCode>> {
        if !self.is_given() {
            return Ok(None);
        }
        let images = match &self.jit_images {
            Some(folder) => Images::In(folder.clone()),
            None => images()?,
        };
        let dumps = self.jit.then(|| {
            let mut dumps = Dumps::default();
            dumps.folder.clone_from(&self.jit_dir);
            dumps.clock_offset = self.jit_clock_offset;
            dumps.clock = self.jit_clock.map(Into::into);
            dumps
        });
        Ok(Some(GeneratedCode {
            dumps,
            perf_maps: self.perf_maps.clone(),
            images,
        }))
    }
}

/// Returns the directory for the images of a recording at `output`: beside it, with the same name
/// and `.jit`.
///
/// # Errors
/// The output is not a file or directory, or the directory exists and `force` is not given, or it
/// is a link.
pub fn images_beside(output: &Path, force: bool) -> Result<Images> {
    let is_named = output != Path::new("-")
        && fs::metadata(output).map_or(true, |meta| meta.is_file() || meta.is_dir());
    if !is_named {
        let what = "the images of generated code need a directory: name it with --jit-images";
        return Err(Error::Usage(what.into()));
    }
    // The name of a directory may end with slashes.
    let mut folder: OsString = output.components().collect::<PathBuf>().into();
    folder.push(".jit");
    let folder = PathBuf::from(folder);
    let found = folder.symlink_metadata();
    if found.as_ref().is_ok_and(Metadata::is_symlink) {
        let shown = folder.display();
        let what = format!("{shown} is a link: name the directory of the images with --jit-images");
        return Err(Error::Usage(what));
    }
    if !force && found.is_ok() {
        let what = format!("{} exists", folder.display());
        return Err(Error::Usage(what).with_step(Step::Overwrite));
    }
    Ok(Images::In(folder))
}
