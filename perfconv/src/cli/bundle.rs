//! The options of `perfconv bundle` and `perfconv unbundle`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{DebuginfodArgs, InputArg, OutputArgs};

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub struct BundleArgs {
    /// Recording to read.
    #[command(flatten)]
    pub input: InputArg,
    /// File to write.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Pack all mapped objects, not only those that samples hit
    #[arg(long)]
    pub all: bool,
    /// Search objects in DIR, a copy of the recorded machine's root
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub sysroot: Option<PathBuf>,
    /// Search debug files in DIR, in the form of /usr/lib/debug or ~/.debug (repeatable)
    ///
    /// An archive of `perf archive` (perf.data.tar.bz2) is unpacked to a temporary directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub debug_dir: Vec<PathBuf>,
    /// Where objects are fetched.
    #[command(flatten)]
    pub debuginfod: DebuginfodArgs,
    /// Image of the recorded kernel
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub vmlinux: Option<PathBuf>,
    /// Copy of the recorded kernel's /proc/kallsyms
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kallsyms: Option<PathBuf>,
    /// Also pack objects that are not known to be the recorded ones
    #[arg(long)]
    pub unverified: bool,
}

/// What a bundle becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unbundled {
    /// A directory that perf reads
    Dir,
    /// The objects only, as `perf archive` packs them: perf.data.tar.bz2
    PerfArchive,
}

/// Arguments of `unbundle`.
#[derive(Debug, Args)]
pub struct UnbundleArgs {
    /// Bundle to read.
    #[command(flatten)]
    pub input: InputArg,
    /// Directory to create: perf.data, index.json, debug and root; or the archive to write
    #[arg(short, long, value_name = "OUTPUT", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// What OUTPUT is
    #[arg(long, value_name = "FORMAT", default_value = "dir")]
    pub to: Unbundled,
    /// Replace OUTPUT: a directory only if perfconv created it
    #[arg(short, long)]
    pub force: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, hide_short_help = true)]
    pub no_sync: bool,
}
