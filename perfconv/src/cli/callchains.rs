//! The options for user stacks.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perfdata_convert::error::Result;
use perfdata_convert::stages::callchains::Callchains;

use super::convert::CONVERSIONS;
use crate::cmd::objects;

/// What happens to user stacks.
#[derive(Debug, Clone, Args)]
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
    /// Also search this directory for debug files, as /usr/lib/debug (repeatable)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "convert_callchain")]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub debug_dir: Vec<PathBuf>,
    /// Also unwind with objects whose build IDs the recording does not contain
    ///
    /// They may be other versions than the recorded ones, and then callchains are wrong. Without
    /// this option, such objects are used only if the recording was made on this machine.
    #[arg(long, requires = "convert_callchain", hide_short_help = true, help_heading = CONVERSIONS)]
    pub unverified: bool,
}

impl CallchainArgs {
    /// Returns the stage, if it is requested. Callchains have at most `max_stack` frames. The stage
    /// comes after one that adds generated code, if `has_code` is set, and unwinds with `threads`.
    ///
    /// # Errors
    /// A named folder does not exist.
    pub fn stage(
        &self,
        sysroot: Option<&Path>,
        max_stack: Option<u32>,
        has_code: bool,
        threads: usize,
    ) -> Result<Option<Callchains>> {
        if self.drop_stacks {
            return Ok(Some(Callchains::without_stacks()));
        }
        if !self.convert_callchain {
            return Ok(None);
        }
        let sources = objects::sources(sysroot, &self.debug_dir)?.with_unverified(self.unverified);
        let stage = Callchains::unwound(sources)
            .with_frame_pointers(self.frame_pointers)
            .with_generated_code(has_code)
            .with_threads(threads)
            .with_help(objects::help);
        Ok(Some(match max_stack {
            Some(frames) => stage.with_max_frames(frames),
            None => stage,
        }))
    }
}
