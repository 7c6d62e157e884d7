//! The options of `perf inject`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, FromArgMatches};

use super::{InputArg, JitArgs};

/// Arguments of `inject`: the words of `perf inject`.
#[derive(Debug, Args)]
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
    /// Whether and how to add generated code.
    #[command(flatten)]
    pub jit: JitArgs,
    /// Search this directory for objects and debug files instead of this machine (not in perf)
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Known build IDs: "ID PATH" pairs separated by commas, or file://PATH with the output of perf
    /// buildid-list
    #[arg(long, value_name = "LIST")]
    pub known_build_ids: Option<String>,
    /// The kernel image of the recording
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// No effect: perfconv does not check the owner of INPUT
    #[arg(short, long)]
    pub force: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, hide_short_help = true)]
    pub no_sync: bool,
    /// Options of `perf inject` that perfconv does not have.
    #[command(flatten)]
    pub elsewhere: OnlyInPerf,
}

/// Returns an argument of `convert` for `inject`: the default directory of images is that of perf.
pub fn of_inject(arg: Arg) -> Arg {
    let arg = arg.help_heading(None);
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
    /// The first such option on the command line, and its function.
    pub given: Option<(&'static str, &'static str)>,
}

impl OnlyInPerf {
    /// Long and short form, and the function in perf.
    const OPTIONS: [(&str, Option<char>, &str); 11] = [
        (
            "sched-stat",
            Some('s'),
            "merging sched_stat with sched_switch events",
        ),
        (
            "itrace",
            None,
            "synthesizing samples from an instruction trace",
        ),
        (
            "strip",
            None,
            "synthesizing samples from an instruction trace",
        ),
        (
            "vm-time-correlation",
            None,
            "correlating the clocks of guests",
        ),
        ("guest-data", None, "merging the recording of a guest"),
        ("guestmount", None, "reading the files of guests"),
        ("kallsyms", None, "reading the symbols of the kernel"),
        ("ignore-vmlinux", None, "reading the symbols of the kernel"),
        ("convert-callchain", None, "unwinding stacks"),
        ("unwind-style", None, "unwinding stacks"),
        ("aslr", None, "changing addresses"),
    ];
}

impl FromArgMatches for OnlyInPerf {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::OPTIONS
            .into_iter()
            .find(|(name, ..)| matches.contains_id(name));
        Ok(OnlyInPerf {
            given: given.map(|(name, _, what)| (name, what)),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for OnlyInPerf {
    fn augment_args(command: clap::Command) -> clap::Command {
        let arg = |(name, short, _)| {
            Arg::new(name)
                .long(name)
                .short(short)
                .num_args(0..=1)
                .hide(true)
        };
        command.args(Self::OPTIONS.map(arg))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
