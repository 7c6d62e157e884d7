//! The words of `perf inject`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, FromArgMatches};

use super::InputArg;

/// Arguments of `inject`: the words of `perf inject`.
#[derive(Debug, Args)]
pub struct InjectArgs {
    /// Recording to read.
    #[command(flatten)]
    pub input: InputArg,
    /// Recording to write, over one that exists; - is standard output, and then a pipe
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Add the build ids of the objects that samples hit
    #[arg(short, long)]
    pub build_ids: bool,
    /// Add the build ids of all objects that are mapped
    #[arg(long)]
    pub buildid_all: bool,
    /// Put the build ids of the objects that samples hit into their MMAP2 records; no record is dropped
    #[arg(short = 'B', long)]
    pub mmap2_buildids: bool,
    /// Put the build ids of all objects that are mapped into their MMAP2 records
    #[arg(long)]
    pub mmap2_buildid_all: bool,
    /// Look for objects and debug files in this folder, not on this machine (not in perf)
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Build ids told: "ID PATH" pairs between commas, or file://PATH of what perf buildid-list wrote
    #[arg(long, value_name = "LIST")]
    pub known_build_ids: Option<String>,
    /// The image of the recording's kernel
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// Nothing: whose file INPUT is makes no difference here
    #[arg(short, long)]
    pub force: bool,
    /// Be done before the output is on the disk: a crash of the machine may lose it
    #[arg(long, hide_short_help = true)]
    pub no_sync: bool,
    /// Options of `perf inject` that are not here.
    #[command(flatten)]
    pub elsewhere: OnlyInPerf,
}

/// The options of `perf inject` that are refused, so that a script learns why.
#[derive(Debug, Default)]
pub struct OnlyInPerf {
    /// The first that was given, and what it does.
    pub given: Option<(&'static str, &'static str)>,
}

impl OnlyInPerf {
    /// Long and short form, and what perf does.
    const OPTIONS: [(&str, Option<char>, &str); 12] = [
        ("jit", Some('j'), "merging jitdump files"),
        ("sched-stat", Some('s'), "merging sched_stat with sched_switch events"),
        ("itrace", None, "making samples of an instruction trace"),
        ("strip", None, "making samples of an instruction trace"),
        ("vm-time-correlation", None, "correlating the clocks of guests"),
        ("guest-data", None, "merging the recording of a guest"),
        ("guestmount", None, "reading the files of guests"),
        ("kallsyms", None, "reading the symbols of the kernel"),
        ("ignore-vmlinux", None, "reading the symbols of the kernel"),
        ("convert-callchain", None, "unwinding stacks"),
        ("unwind-style", None, "unwinding stacks"),
        ("aslr", None, "moving addresses"),
    ];
}

impl FromArgMatches for OnlyInPerf {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::OPTIONS.into_iter().find(|(name, ..)| matches.contains_id(name));
        Ok(OnlyInPerf { given: given.map(|(name, _, what)| (name, what)) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for OnlyInPerf {
    fn augment_args(command: clap::Command) -> clap::Command {
        let arg = |(name, short, _)| Arg::new(name).long(name).short(short).num_args(0..=1).hide(true);
        command.args(Self::OPTIONS.map(arg))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
