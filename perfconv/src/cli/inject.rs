//! The options of `perf inject`.

use std::path::PathBuf;

use clap::{Arg, ArgGroup, ArgMatches, Args, FromArgMatches, ValueEnum, ValueHint};

use super::{CallchainArgs, InputArg, JitArgs, READS_OBJECTS, SanitizeArgs, TraceArgs};

/// Heading of the options that `perf inject` does not have.
const NOT_IN_PERF: &str = "Not in perf inject";

/// Arguments of `inject`: the words of `perf inject`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new(READS_OBJECTS).args(["convert_callchain", "itrace"]).multiple(true))]
pub struct InjectArgs {
    /// Recording to read.
    #[command(flatten)]
    pub input: InputArg,
    /// Recording to write, even if it exists; - is standard output, which receives a pipe stream
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Add the build IDs of the objects that samples hit
    #[arg(short, long)]
    pub build_ids: bool,
    /// Add the build IDs of all mapped objects
    #[arg(long)]
    pub buildid_all: bool,
    /// Store the build IDs of the objects that samples hit in their MMAP2 records; drop no record
    #[arg(short = 'B', long)]
    pub mmap2_buildids: bool,
    /// Store the build IDs of all mapped objects in their MMAP2 records
    #[arg(long)]
    pub mmap2_buildid_all: bool,
    /// Merge sched_stat with sched_switch events: where and how long tasks slept
    #[arg(short, long)]
    pub sched_stat: bool,
    /// What becomes of traces.
    #[command(flatten)]
    pub traces: TraceArgs,
    /// Move all addresses, and remove what contains others: stacks, registers, raw and AUX data
    ///
    /// Unlike perf inject, keeps every sample, and also moves the addresses in compressed records
    /// and in feature sections.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["sanitize", "jit", "perf_maps"])]
    pub aslr: bool,
    /// What others may learn from the recording.
    #[command(flatten)]
    pub sharing: SanitizeArgs,
    /// Whether and how to add generated code.
    #[command(flatten)]
    pub jit: JitArgs,
    /// What happens to user stacks.
    #[command(flatten)]
    pub callchains: CallchainArgs,
    /// Search this directory for objects and debug files instead of this machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = NOT_IN_PERF)]
    pub sysroot: Option<PathBuf>,
    /// Known build IDs: "ID PATH" pairs separated by commas, or file://PATH with the output of perf
    /// buildid-list
    #[arg(long, value_name = "LIST")]
    pub known_build_ids: Option<String>,
    /// The kernel image of the recording
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// Do not use images of the kernel, only the build ID that the running kernel reports
    #[arg(long)]
    pub ignore_vmlinux: bool,
    /// Directory with the file system of each guest, by the process ID of its virtual machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub guestmount: Option<PathBuf>,
    /// No effect, as in perf; FILE must be readable
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub kallsyms: Option<PathBuf>,
    /// No effect: perfconv has one unwinder
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub unwind_style: Vec<Unwinder>,
    /// No effect: perfconv does not check the owner of INPUT
    #[arg(short, long)]
    pub force: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, hide_short_help = true, help_heading = NOT_IN_PERF)]
    pub no_sync: bool,
    /// Options of `perf inject` that perfconv does not have.
    #[command(flatten)]
    pub elsewhere: OnlyInPerf,
}

/// The unwinders of perf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unwinder {
    /// That of elfutils
    Libdw,
    /// That of LLVM or nongnu
    Libunwind,
}

/// The options of `perf inject` that have a heading in `convert`.
const OF_PERF: [&str; 5] = ["jit", "convert_callchain", "itrace", "no_itrace", "strip"];

/// Returns whether `perf inject` has an option. Of those that `convert` has, too, and which have a
/// heading there, it has only few.
pub fn is_of_perf(arg: &Arg) -> bool {
    arg.get_help_heading().is_none() || OF_PERF.contains(&arg.get_id().as_str())
}

/// Returns an argument of `convert` for `inject`: the default directory of images is that of perf,
/// and the short help names the words for traces.
pub fn of_inject(arg: Arg) -> Arg {
    let heading = (!is_of_perf(&arg)).then_some(NOT_IN_PERF);
    let arg = arg.help_heading(heading);
    if matches!(arg.get_id().as_str(), "itrace" | "strip") {
        return arg.hide_short_help(false);
    }
    if arg.get_id() != "jit_images" {
        return arg;
    }
    let help = "Write the images to this directory [default: that of each dump or map]";
    arg.help(help).long_help(help)
}

/// The options of `perf inject` that perfconv refuses with an explanation, for scripts that use
/// them.
#[derive(Debug, Default)]
pub struct OnlyInPerf {
    /// The first such option on the command line, and why it is refused.
    pub given: Option<(&'static str, &'static str)>,
}

impl OnlyInPerf {
    /// The option, why it is refused, and what to use instead.
    const OPTIONS: [(&str, &str); 2] = [
        (
            "vm-time-correlation",
            "it changes the times inside Intel PT data, which perfconv reads but does not rewrite; use perf inject",
        ),
        (
            "guest-data",
            "perfconv does not assign the records of a guest to the CPUs of its host; use perf inject, or perfconv merge --machines to see both by time",
        ),
    ];
}

impl FromArgMatches for OnlyInPerf {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::OPTIONS
            .into_iter()
            .find(|(name, _)| matches.contains_id(name));
        Ok(OnlyInPerf { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for OnlyInPerf {
    fn augment_args(command: clap::Command) -> clap::Command {
        let arg = |(name, _)| Arg::new(name).long(name).num_args(0..=1).hide(true);
        command.args(Self::OPTIONS.map(arg))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
