//! The options of `perfconv merge`.

use clap::{Arg, Args, ValueEnum};

use super::{ConvertArgs, input};
use perfdata_edit::merge;

/// How times become those of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Align {
    /// They are: recordings of one boot
    #[default]
    Boot,
    /// By the time of day, for recordings of perf record -k
    Wall,
    /// One recording after the other, in the order of the arguments
    After,
}

impl From<Align> for merge::Align {
    fn from(align: Align) -> Self {
        match align {
            Align::Boot => merge::Align::Boot,
            Align::Wall => merge::Align::Wall,
            Align::After => merge::Align::After,
        }
    }
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// How to bring the times to one clock
    #[arg(long, value_name = "HOW", default_value = "boot", help_heading = MERGING)]
    pub align: Align,
    /// Move the kernel of later recordings to its address in the first one
    ///
    /// The kernel has another address after each boot. It must be the same kernel, by its build ID.
    #[arg(long, help_heading = MERGING)]
    pub rebase_kernel: bool,
    /// Keep the processes and CPUs of different machines apart
    ///
    /// Adds 4194304 (2^22) to the process IDs of each further machine, and the number of CPUs
    /// before it to its CPU numbers.
    #[arg(long, help_heading = MERGING)]
    pub machines: bool,
    /// Inputs and output, and conversions of the result.
    #[command(flatten)]
    pub convert: ConvertArgs,
}

/// Heading of the options of `merge` alone.
const MERGING: &str = "Merging";

/// Returns an argument of `convert` for `merge`, which has several inputs.
pub fn of_merge(arg: Arg) -> Arg {
    if arg.get_id() == "to" {
        let help = "Container of OUTPUT [default: a file; as INPUT if there is only one]";
        return arg.help(help).long_help(help);
    }
    if !input::IDS.contains(&arg.get_id().as_str()) {
        return arg;
    }
    let is_option = arg.get_long().is_some();
    let arg = input::several(arg);
    if is_option {
        arg
    } else {
        arg.help("Recordings to merge, first the one whose features are kept; - is standard input")
    }
}
