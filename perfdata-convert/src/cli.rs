//! The command line: its definition gives parsing, help, manual page and completions.

mod examples;
mod inject;
pub mod limits;

pub use inject::{InjectArgs, OnlyInPerf};
pub use limits::LimitArgs;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use perfdata_core::Version;

use crate::convert::build_ids::Select;
use crate::convert::compress::Compress;
use crate::convert::swap::Unknown;
use crate::messages::{Messages, Verbosity};
use crate::suggest;

/// Read, write and convert Linux perf.data recordings without losing a byte.
#[derive(Debug, Parser)]
#[command(name = "perfconv", version, max_term_width = 100, subcommand_negates_reqs = true)]
#[command(disable_version_flag = true)]
#[command(override_usage = "\
    perfconv FILE                        what it is, and what can be done with it\n       \
    perfconv [OPTIONS] INPUT -o OUTPUT   convert; without options, an exact copy\n       \
    perfconv COMMAND …                   perfconv COMMAND -h says more")]
#[command(after_help = after_short_help(), after_long_help = examples::TOP)]
#[command(mut_args(at_top))]
pub struct Cli {
    /// What to do; without it, `convert`, or with nothing but a name, `about`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of `convert`.
    #[command(flatten)]
    pub convert: Option<ConvertArgs>,
    /// How much to say.
    #[command(flatten)]
    pub messages: MessageArgs,
    /// Print version
    #[arg(short = 'V', long, action = ArgAction::Version, hide_short_help = true)]
    pub version: Option<bool>,
    /// How far to go.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// The end of `perfconv -h`: the options that have no room on one screen, by name.
fn after_short_help() -> String {
    let all = ConvertArgs::augment_args(clap::Command::new("convert"));
    let longs = all.get_arguments().filter(|arg| is_conversion(arg)).filter_map(Arg::get_long);
    let longs: Vec<String> = longs.map(|long| format!("--{long}")).collect();
    format!("Conversions (perfconv convert -h): {}", longs.join(" "))
}

/// Whether an argument of `convert` says what is to be converted.
fn is_conversion(arg: &Arg) -> bool {
    arg.get_help_heading().is_some()
}

/// An argument of `convert` where there is no word `convert`: with nothing but a name there is no output, but where
/// there is an option of a conversion, there must be one.
fn at_top(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "output" => arg.required(false),
        "input" => arg.hide_short_help(true),
        "quiet" | "verbose" | "version" | "max_decompressed" | "max_window_log" | "max_metadata" => arg,
        _ => {
            let hidden = is_conversion(&arg);
            arg.requires("output").hide_short_help(hidden)
        }
    }
}

/// How much to say, for all commands.
#[derive(Debug, Clone, Copy, Args)]
pub struct MessageArgs {
    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what was read and written; -vv: also how many records of which type
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl From<MessageArgs> for Messages {
    fn from(args: MessageArgs) -> Self {
        let verbosity = match (args.quiet, args.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::All,
        };
        Messages { verbosity }
    }
}

impl Cli {
    /// The command line in `args`, whose first is the name of the program.
    ///
    /// # Errors
    /// It makes no sense; or it asks for help, which is an error by clap's ways.
    pub fn from_args<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(&args).map_err(|error| meant(&mut command, &args, error))?;
        if let Some(name) = matches.subcommand_name() {
            let given = |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
            let stray = command.get_arguments().filter(|arg| !arg.is_global_set()).find(given).map(Arg::to_string);
            if let Some(stray) = stray {
                let what = format!("'{stray}' stands before the command '{name}'; its place is behind");
                return Err(command.error(ErrorKind::ArgumentConflict, what));
            }
        }
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

impl Cli {
    /// The recording that is read first.
    pub fn input(&self) -> Option<&Path> {
        Some(match &self.command {
            None => &self.convert.as_ref()?.input,
            Some(Command::Convert(args) | Command::Pipe2file(args) | Command::File2pipe(args)) => &args.input,
            Some(Command::Inject(args)) => &args.input,
            Some(Command::Info(args)) => &args.input,
            Some(Command::Dump(args)) => &args.input,
            Some(Command::Verify(args)) => &args.input,
            Some(Command::ExtractAux(args)) => &args.input,
            Some(Command::Recover(args)) => &args.input,
            Some(Command::Diff(_) | Command::Man(_) | Command::Completions(_)) => return None,
        })
    }
}

/// The error with the command that was meant, if the first word is nearly one: it was taken for a recording.
fn meant(command: &mut clap::Command, args: &[OsString], error: clap::Error) -> clap::Error {
    let words = || args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(|arg| !arg.starts_with('-'));
    let Some(word) = words().next().filter(|word| error.kind() == ErrorKind::UnknownArgument && !exists(word)) else {
        return error;
    };
    let Some(near) = nearest_command(word).filter(|near| near != word) else { return error };
    let mut error = clap::Error::new(ErrorKind::InvalidSubcommand).with_cmd(command);
    error.insert(ContextKind::InvalidSubcommand, ContextValue::String(word.to_owned()));
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
    error
}

fn exists(name: &str) -> bool {
    Path::new(name).exists()
}

/// The subcommand that is nearly called `name`.
pub fn nearest_command(name: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    suggest::nearest(name, names).map(str::to_owned)
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert a recording; without options, an exact copy
    #[command(after_long_help = examples::CONVERT)]
    Convert(ConvertArgs),
    /// Turn a pipe stream (perf record -o -) into a seekable file
    #[command(after_long_help = examples::PIPE2FILE)]
    Pipe2file(ConvertArgs),
    /// Turn a file into a pipe stream, for tools that read one
    #[command(after_long_help = examples::FILE2PIPE)]
    File2pipe(ConvertArgs),
    /// Add build ids, by the words of perf inject
    ///
    /// From standard input to standard output if nothing else is said.
    #[command(after_long_help = examples::INJECT)]
    Inject(InjectArgs),
    /// Say what is in a recording
    ///
    /// Header, events with all their attributes, feature sections, and how many records of which type.
    #[command(after_long_help = examples::INFO)]
    Info(InfoArgs),
    /// Show every record with all its fields
    ///
    /// Those in compressed records, too.
    #[command(after_long_help = examples::DUMP)]
    Dump(DumpArgs),
    /// Check that a recording is whole and consistent
    ///
    /// And that writing it again gives the same bytes.
    #[command(after_help = "Exit status: 0 nothing is wrong; 1 something is; 2 usage or I/O.")]
    #[command(after_long_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Make a good recording out of one that is damaged
    ///
    /// One that is cut, was never finished, or has damaged bytes. What is left out is listed.
    #[command(after_long_help = examples::RECOVER)]
    Recover(RecoverArgs),
    /// Say what differs between two recordings
    ///
    /// Whatever containers and byte orders they have.
    #[command(after_help = "Exit status: 0 nothing differs; 1 something does; 2 trouble.")]
    #[command(after_long_help = examples::DIFF)]
    Diff(DiffArgs),
    /// Take out AUX data: Intel PT, Arm SPE, CoreSight …
    ///
    /// A file of raw bytes for each CPU or thread, and an index for decoders.
    #[command(after_long_help = examples::EXTRACT_AUX)]
    ExtractAux(ExtractAuxArgs),
    /// Print the manual page of perfconv, or of a command
    #[command(after_long_help = examples::MAN)]
    Man(ManArgs),
    /// Print what makes a shell complete perfconv's words
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command to explain; without it, perfconv
    pub command: Option<String>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// One JSON object instead of text
    #[arg(long, group = "form")]
    pub json: bool,
    /// Draw the layout to scale, as wide as the terminal
    #[arg(long, group = "form")]
    pub map: bool,
    /// Write a page for a browser: layout, tables and charts
    #[arg(long, value_name = "FILE", group = "form")]
    pub html: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(short, long, requires = "html")]
    pub force: bool,
}

/// A container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Container {
    /// A seekable file, as perf record makes it
    File,
    /// A stream, as perf record -o - makes it
    Pipe,
    /// A directory with what perf record --threads and --kcore put into one
    Dir,
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

/// Heading of what is changed in all of a recording.
const CONVERSIONS: &str = "Conversions";
/// Heading of the options about single feature sections.
const FEATURES: &str = "Feature sections";
/// Heading of the options about build ids.
const BUILD_IDS: &str = "Build ids";

/// Arguments of everything that makes a recording out of a recording.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// Recording to write; - is standard output
    #[arg(short, long, required = true)]
    pub output: Option<PathBuf>,
    /// Overwrite OUTPUT if it exists
    #[arg(short, long)]
    pub force: bool,
    /// Container of OUTPUT; without it, that of INPUT, and a file for a directory
    #[arg(long, value_name = "CONTAINER", help_heading = CONVERSIONS)]
    pub to: Option<Container>,
    /// Write the byte order that INPUT does not have
    #[arg(long, conflicts_with = "endian", help_heading = CONVERSIONS)]
    pub swap_endian: bool,
    /// Write this byte order
    #[arg(long, value_name = "ORDER", help_heading = CONVERSIONS)]
    pub endian: Option<ByteOrder>,
    /// Write the records of `perf record -z` plain, in the order of the stream
    #[arg(long, help_heading = CONVERSIONS)]
    pub decompress: bool,
    /// Compress the records as `perf record -z` does
    ///
    /// Also those that are compressed at another level. perf reads the result since 6.15; with --compat, the release that
    /// is named there.
    #[arg(
        long,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(i32).range(Compress::LEVELS),
        conflicts_with = "decompress",
        help_heading = CONVERSIONS
    )]
    pub compress: Option<i32>,
    /// What to do with what nobody knows how to convert
    ///
    /// Records, features and fields whose meaning a conversion needs, and which are not known.
    #[arg(long, value_name = "WHAT", default_value = "error", help_heading = CONVERSIONS)]
    pub unknown: Unknown,
    /// Make OUTPUT readable for perf VERSION, such as 6.1
    #[arg(long, value_name = "VERSION", help_heading = CONVERSIONS)]
    pub compat: Option<Version>,
    /// Set a feature section (repeatable): text, a number, or JSON as info prints it
    #[arg(long, value_name = "NAME=VALUE", value_parser = named, help_heading = FEATURES)]
    pub set: Vec<(String, String)>,
    /// Set a feature section to the bytes of FILE (repeatable)
    #[arg(long, value_name = "NAME=FILE", value_parser = named, help_heading = FEATURES)]
    pub set_raw: Vec<(String, String)>,
    /// Leave a feature section out (repeatable): its name or number
    #[arg(long, value_name = "NAME", help_heading = FEATURES)]
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

/// Arguments of `recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// Recording to write; - is standard output
    #[arg(short, long)]
    pub output: PathBuf,
    /// Refuse a recording with records behind damaged bytes
    #[arg(long)]
    pub strict: bool,
    /// Overwrite OUTPUT if it exists
    #[arg(short, long)]
    pub force: bool,
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

/// Arguments of `extract-aux`.
#[derive(Debug, Args)]
pub struct ExtractAuxArgs {
    /// Recording to read; - is standard input
    pub input: PathBuf,
    /// Directory to make
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Write the recording without AUX data, too
    #[arg(long, value_name = "FILE")]
    pub sideband: Option<PathBuf>,
    /// Replace DIR, if perfconv made it, and overwrite FILE
    #[arg(short, long)]
    pub force: bool,
}

/// Takes `NAME=VALUE` apart.
fn named(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no = behind the name")?;
    Ok((name.to_owned(), value.to_owned()))
}
