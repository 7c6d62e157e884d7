//! The command line: its definition gives parsing, help, manual page and completions.

mod inject;

pub use inject::{InjectArgs, OnlyInPerf};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use perfdata_core::Version;

use crate::convert::build_ids::Select;
use crate::convert::compress::Compress;
use crate::convert::swap::Unknown;

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
    /// Turn a file into a pipe stream, for tools that read one
    File2pipe(ConvertArgs),
    /// Add build ids, by the words of perf inject; from standard input to standard output if nothing else is said
    Inject(InjectArgs),
    /// Say what is in a recording: header, events, feature sections, and how many records of which type
    Info(InfoArgs),
    /// Show every record with all its fields, those in compressed records too
    Dump(DumpArgs),
    /// Check that a recording is whole and consistent, and that writing it again gives the same bytes
    #[command(after_help = "Exit status: 0 nothing is wrong; 1 something is; 2 usage or I/O.")]
    Verify(VerifyArgs),
    /// Say what differs between two recordings, whatever containers and byte orders they have
    #[command(after_help = "Exit status: 0 nothing differs; 1 something does; 2 trouble.")]
    Diff(DiffArgs),
}

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// A container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Container {
    /// A seekable file, as perf record makes it
    File,
    /// A stream, as perf record -o - makes it
    Pipe,
}

/// A byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByteOrder {
    /// Least significant byte first (x86, ARM, RISC-V, POWER with ppc64le)
    Little,
    /// Most significant byte first (s390x, SPARC, big-endian MIPS and POWER)
    Big,
    /// That of this machine
    Native,
}

/// Heading of the options about build ids.
const BUILD_IDS: &str = "Build ids";

/// Arguments of everything that makes a recording out of a recording.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// Recording to write; - is standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Container of OUTPUT; without it, that of INPUT
    #[arg(long, value_name = "CONTAINER")]
    pub to: Option<Container>,
    /// Write the byte order that INPUT does not have
    #[arg(long, conflicts_with = "endian")]
    pub swap_endian: bool,
    /// Write this byte order
    #[arg(long, value_name = "ORDER")]
    pub endian: Option<ByteOrder>,
    /// Write the records of `perf record -z` plain, in the order of the stream
    #[arg(long)]
    pub decompress: bool,
    /// Compress the records as `perf record -z` does, also those that are compressed at another level; perf reads
    /// the result since 6.15
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(i32).range(Compress::LEVELS),
        conflicts_with = "decompress"
    )]
    pub compress: Option<i32>,
    /// What to do with records, features and fields whose meaning a conversion needs and nobody knows
    #[arg(long, value_name = "WHAT", default_value = "error")]
    pub unknown: Unknown,
    /// Make OUTPUT readable for perf VERSION, such as 6.1
    #[arg(long, value_name = "VERSION")]
    pub compat: Option<Version>,
    /// Set a feature section (repeatable): text, a number, or JSON as info prints it
    #[arg(long, value_name = "NAME=VALUE", value_parser = named, help_heading = "Feature sections")]
    pub set: Vec<(String, String)>,
    /// Set a feature section to the bytes of FILE (repeatable)
    #[arg(long, value_name = "NAME=FILE", value_parser = named, help_heading = "Feature sections")]
    pub set_raw: Vec<(String, String)>,
    /// Leave a feature section out (repeatable): its name or number
    #[arg(long, value_name = "NAME", help_heading = "Feature sections")]
    pub drop: Vec<String>,
    /// Add the build ids of the objects that samples hit, or of all that are mapped
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "hit")]
    #[arg(help_heading = BUILD_IDS)]
    pub build_ids: Option<Select>,
    /// Put them into the MMAP2 records, in place of inodes
    #[arg(long, help_heading = BUILD_IDS)]
    pub mmap2_build_ids: bool,
    /// Look for objects and debug files in this folder, not on this machine
    #[arg(long, value_name = "DIR", help_heading = BUILD_IDS)]
    pub sysroot: Option<PathBuf>,
    /// Build ids told: "ID PATH" pairs between commas, or file://PATH of what perf buildid-list wrote
    #[arg(long, value_name = "LIST", help_heading = BUILD_IDS)]
    pub known_build_ids: Option<String>,
    /// The image of the recording's kernel
    #[arg(long, value_name = "FILE", help_heading = BUILD_IDS)]
    pub vmlinux: Option<PathBuf>,
    /// Overwrite OUTPUT if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// A JSON object for each record, one a line
    #[arg(long)]
    pub json: bool,
    /// Show the bytes of each field, and those of everything around the records
    #[arg(long)]
    pub hex: bool,
    /// Show only records of this type (repeatable), such as MMAP2 or sample
    #[arg(long = "type", value_name = "NAME")]
    pub types: Vec<String>,
    /// Stop after N records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A recording
    pub a: PathBuf,
    /// Another one
    pub b: PathBuf,
    /// A JSON object for each difference, one a line
    #[arg(long)]
    pub json: bool,
}

/// Takes `NAME=VALUE` apart.
fn named(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no = behind the name")?;
    Ok((name.to_owned(), value.to_owned()))
}
