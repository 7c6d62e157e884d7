//! The arguments of everything that makes a recording out of a recording.

use std::path::PathBuf;

use clap::{Arg, ArgGroup, Args, ValueHint};
use perfdata_convert::stages::compress::Compress;
use perfdata_core::Version;

use super::{
    ByteOrder, CallchainArgs, Container, HugePageArgs, InputArg, JitArgs, Objects, OffCpuArgs,
    OutputArgs, READS_OBJECTS, SanitizeArgs, SliceArgs, ThinArgs, TraceArgs, UnknownContent,
};

/// Heading of options that change the whole recording.
pub(super) const CONVERSIONS: &str = "Conversions";
/// Heading of options for single feature sections.
const FEATURES: &str = "Feature sections";
/// Heading of options for build IDs.
const BUILD_IDS: &str = "Build IDs";

/// Arguments of everything that makes a recording out of a recording.
#[derive(Debug, Args)]
#[command(mut_arg("output", writes_recording))]
#[command(group = ArgGroup::new(READS_OBJECTS).args(["convert_callchain", "itrace"]).multiple(true))]
pub struct ConvertArgs {
    /// Recording to read.
    #[command(flatten)]
    pub input: InputArg,
    /// Recording to write.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Container of OUTPUT [default: as INPUT; a file if INPUT is a directory]
    ///
    /// A stream stays a stream: pipe2file converts it to a file. A file has no kernel image: dir
    /// keeps the one of `perf record --kcore`.
    #[arg(long, value_name = "CONTAINER", help_heading = CONVERSIONS)]
    pub to: Option<Container>,
    /// Write the opposite byte order of INPUT
    #[arg(long, conflicts_with = "endian", help_heading = CONVERSIONS)]
    pub swap_endian: bool,
    /// Write this byte order
    #[arg(long, value_name = "ORDER", help_heading = CONVERSIONS)]
    pub endian: Option<ByteOrder>,
    /// Decompress the records of `perf record -z`
    #[arg(long, help_heading = CONVERSIONS)]
    pub decompress: bool,
    /// Compress the records as `perf record -z` does
    ///
    /// Records that are compressed at another level are compressed again. perf 6.15 and newer read
    /// the result; with --compat, the named release does.
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(i32).range(Compress::LEVELS),
        conflicts_with = "decompress",
        help_heading = CONVERSIONS
    )]
    pub compress: Option<i32>,
    /// Merge deferred callchains into their samples
    ///
    /// Applies to `perf record --call-graph fp,defer`. A stream is stored until it ends. For files,
    /// --compat below 6.19 does this by itself.
    #[arg(long, hide_short_help = true, help_heading = CONVERSIONS)]
    pub merge_deferred: bool,
    /// Expand the samples of perf record --off-cpu (6.16) for other readers
    ///
    /// Moves task, period and callchain from the RAW data of the samples to the samples, as perf
    /// does when it reads. A stream is stored until it ends.
    #[arg(long, hide_short_help = true, help_heading = CONVERSIONS)]
    pub expand_off_cpu: bool,
    /// Put the records in the order of time
    ///
    /// perf writes the records of one CPU after those of another. A stream is stored until it ends.
    #[arg(long, help_heading = CONVERSIONS)]
    pub sort: bool,
    /// How to handle unknown content that must be converted
    ///
    /// Applies to records, features and fields that perfconv does not know, if the conversion
    /// depends on their meaning.
    #[arg(long, value_name = "WHAT", default_value = "error", help_heading = CONVERSIONS)]
    pub unknown: UnknownContent,
    /// Write a recording that perf VERSION can read, such as 6.1
    ///
    /// An older perf refuses a recording of a newer one ("incompatible file format", "wrong feature
    /// ID").
    #[arg(long, value_name = "VERSION", value_parser = release, help_heading = CONVERSIONS)]
    pub compat: Option<Version>,
    /// Whether and how to add generated code.
    #[command(flatten)]
    pub jit: JitArgs,
    /// What happens to user stacks.
    #[command(flatten)]
    pub callchains: CallchainArgs,
    /// Whether the files of code on huge pages are found.
    #[command(flatten)]
    pub huge_pages: HugePageArgs,
    /// What becomes of traces.
    #[command(flatten)]
    pub traces: TraceArgs,
    /// Samples of threads that were off the CPU.
    #[command(flatten)]
    pub off_cpu: OffCpuArgs,
    /// Which samples to keep.
    #[command(flatten)]
    pub slice: SliceArgs,
    /// What to remove from samples.
    #[command(flatten)]
    pub thin: ThinArgs,
    /// What others may learn from the recording.
    #[command(flatten)]
    pub sharing: SanitizeArgs,
    /// Take missing sections from another recording of the machine, or from this machine ("system")
    ///
    /// Formats of tracepoints, PMUs, topology, names of host and kernel, if nothing in INPUT contradicts
    /// them. "system" requires that INPUT names the running kernel, or has its address.
    #[arg(long, value_name = "FILE|system", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = FEATURES)]
    pub features_from: Option<PathBuf>,
    /// Set a feature section (repeatable) to text, a number, or JSON as printed by info --json
    #[arg(long, value_name = "NAME=VALUE", value_parser = named, help_heading = FEATURES)]
    pub set: Vec<(String, String)>,
    /// Set a feature section to the bytes of FILE (repeatable)
    #[arg(long, value_name = "NAME=FILE", value_parser = named, help_heading = FEATURES)]
    pub set_raw: Vec<(String, String)>,
    /// Remove feature sections (repeatable), by number or by name as printed by info
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = FEATURES)]
    pub drop: Vec<String>,
    /// Add the build IDs of the objects that samples hit, or of all mapped objects
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "hit")]
    #[arg(help_heading = BUILD_IDS)]
    pub build_ids: Option<Objects>,
    /// Store them in the MMAP2 records instead of inodes
    #[arg(long, help_heading = BUILD_IDS)]
    pub mmap2_build_ids: bool,
    /// Search this directory for objects and debug files instead of this machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = BUILD_IDS)]
    pub sysroot: Option<PathBuf>,
    /// Known build IDs: "ID PATH" pairs separated by commas, or file://PATH with the output of perf
    /// buildid-list
    #[arg(long, value_name = "LIST", help_heading = BUILD_IDS)]
    pub known_build_ids: Option<String>,
    /// The kernel image of the recording
    #[arg(long, value_name = "FILE", help_heading = BUILD_IDS)]
    pub vmlinux: Option<PathBuf>,
}

/// Returns the argument for the output of a command that writes a recording.
fn writes_recording(arg: Arg) -> Arg {
    arg.help("Recording to write [default: standard output, unless that is a terminal]")
}

/// Splits `NAME=VALUE`.
fn named(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a release of perf, also in the format of the kernel's tags and `uname -r`: `v6.1`.
fn release(text: &str) -> Result<Version, String> {
    text.strip_prefix('v').unwrap_or(text).parse()
}
