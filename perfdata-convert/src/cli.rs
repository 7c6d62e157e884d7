//! The command line: its definition gives parsing, help, manual page and completions.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Read, write and convert Linux perf.data recordings without losing a byte.
#[derive(Debug, Parser)]
#[command(name = "perfconv", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Exit status: 0 done; 1 bad input or refused, nothing written; 2 usage or I/O.")]
pub struct Cli {
    /// What to do; without it, `convert`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of `convert`.
    #[command(flatten)]
    pub convert: Option<ConvertArgs>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert a recording; without options, an exact copy
    Convert(ConvertArgs),
    /// Turn a pipe stream (perf record -o -) into a seekable file
    Pipe2file(ConvertArgs),
}

/// Arguments of everything that makes a recording out of a recording.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// Recording to write; - is standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Overwrite OUTPUT if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}
