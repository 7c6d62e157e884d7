//! The options for user stacks.

use std::path::PathBuf;

use clap::{Arg, Args, ValueHint};
use perfdata_recipe::{Unwinding, UserStacks};

use super::convert::CONVERSIONS;
use super::debuginfod::{DEBUGINFOD, DebuginfodArgs};
use crate::cmd::objects;

/// The options with which code and unwind information are read from objects.
pub const READS_OBJECTS: &str = "reads_objects";

/// What happens to user stacks.
#[derive(Debug, Clone, Args)]
#[command(mut_args(reading_objects))]
pub struct CallchainArgs {
    /// Unwind user stacks (--call-graph dwarf) to callchains
    ///
    /// The output is much smaller, and readers need no objects to show its callchains. The objects
    /// must be here now, with the recorded build IDs. A stream is stored until it ends. Without
    /// --max-stack, a callchain has at most 126 entries, as that of perf inject.
    #[arg(long, help_heading = CONVERSIONS)]
    pub convert_callchain: bool,
    /// Drop user stacks and user registers
    ///
    /// Callchains keep only what the kernel recorded.
    #[arg(long, conflicts_with = "convert_callchain", help_heading = CONVERSIONS)]
    pub drop_stacks: bool,
    /// Follow frame pointers in code without call frame information
    ///
    /// As perf script does. Frames are wrong if such code uses the register for something else.
    #[arg(long, requires = "convert_callchain", hide_short_help = true, help_heading = CONVERSIONS)]
    pub frame_pointers: bool,
    /// Also search this directory for debug files: as /usr/lib/debug, or ~/.debug (repeatable)
    ///
    /// An archive of `perf archive` (perf.data.tar.bz2) is unpacked to a temporary directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath, requires = "convert_callchain")]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub debug_dir: Vec<PathBuf>,
    /// Where objects are fetched.
    #[command(flatten)]
    pub debuginfod: DebuginfodArgs,
    /// Also unwind with objects whose build IDs the recording does not contain
    ///
    /// They may be other versions than the recorded ones, and then callchains are wrong. Without
    /// this option, such objects are used only if the recording was made on this machine.
    #[arg(long, requires = READS_OBJECTS, hide_short_help = true, help_heading = CONVERSIONS)]
    pub unverified: bool,
}

/// Returns an argument for commands that may read objects.
fn reading_objects(arg: Arg) -> Arg {
    match arg.get_id() == DEBUGINFOD {
        true => arg
            .requires(READS_OBJECTS)
            .hide_short_help(true)
            .help_heading(CONVERSIONS),
        false => arg,
    }
}

impl From<&CallchainArgs> for Option<UserStacks> {
    fn from(args: &CallchainArgs) -> Self {
        if args.drop_stacks {
            return Some(UserStacks::Drop);
        }
        args.convert_callchain.then(|| {
            let mut unwinding = Unwinding::default();
            unwinding.debug_dirs.clone_from(&args.debug_dir);
            unwinding.frame_pointers = args.frame_pointers;
            unwinding.unverified = args.unverified;
            unwinding.help = Some(objects::help);
            UserStacks::Unwind(unwinding)
        })
    }
}
