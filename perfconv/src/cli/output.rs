//! The output of a command.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The file that a command writes, and how.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// File to write [default: standard output, unless that is a terminal]
    #[arg(id = "output", short = 'o', long, value_name = "OUTPUT", value_hint = ValueHint::FilePath)]
    pub path: Option<PathBuf>,
    /// Overwrite OUTPUT if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, hide_short_help = true)]
    pub no_sync: bool,
}
