//! The command line: parsing, help, manual pages and completions are generated from its definition.

mod abbreviations;
mod bundle;
mod callchains;
mod choices;
#[cfg(feature = "columns")]
mod columns;
#[cfg(feature = "columns")]
mod compact;
mod convert;
mod debuginfod;
mod examples;
mod export;
mod huge_pages;
mod inject;
mod input;
mod jit;
pub mod limits;
mod merge;
mod off_cpu;
mod output;
#[cfg(feature = "columns")]
mod recorded_at;
#[cfg(feature = "columns")]
mod recording_label;
mod sanitize;
mod slice;
mod split;
mod thin;
mod traces;
mod words;

pub use bundle::{BundleArgs, UnbundleArgs, Unbundled};
pub use callchains::{CallchainArgs, READS_OBJECTS};
pub use choices::{ByteOrder, Container, FailOn, Objects, UnknownContent};
#[cfg(feature = "columns")]
pub use columns::ColumnArgs;
#[cfg(feature = "columns")]
pub use compact::CompactArgs;
pub use convert::ConvertArgs;
pub use debuginfod::DebuginfodArgs;
pub use export::{Counted, ExportArgs, Format, LabelArg, LikeArg, Mark, RootFrame};
pub use huge_pages::HugePageArgs;
pub use inject::{InjectArgs, OnlyInPerf};
pub use input::{InputArg, InputArgs};
pub use jit::{JitArgs, images_beside};
pub use limits::LimitArgs;
pub use merge::MergeArgs;
pub use off_cpu::OffCpuArgs;
pub use output::OutputArgs;
pub use sanitize::SanitizeArgs;
pub use slice::{SLICE as SAMPLES_TO_KEEP, SliceArgs};
pub use split::SplitArgs;
pub use thin::ThinArgs;
pub use traces::{ItraceArgs, TraceArgs};
pub use words::nearest_command;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint,
};

use crate::messages::{Messages, Verbosity};

/// Read, write and convert Linux perf.data recordings without losing a byte.
#[derive(Debug, Parser)]
#[command(
    name = "perfconv",
    version,
    max_term_width = 100,
    subcommand_negates_reqs = true
)]
#[command(disable_version_flag = true)]
#[command(override_usage = "\
    perfconv FILE                        show what it contains and how to convert it\n       \
    perfconv [OPTIONS] INPUT -o OUTPUT   convert; without options, copy exactly\n       \
    perfconv COMMAND …                   see perfconv COMMAND -h")]
#[command(after_long_help = examples::TOP)]
#[command(mut_args(at_top))]
pub struct Cli {
    /// The command; without it, `convert`, or `about` if there are only names.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Whether arguments of `convert` request a conversion. This field precedes them, because
    /// reading an argument removes it.
    #[command(flatten)]
    pub asked: Asked,
    /// Arguments of `convert`.
    #[command(flatten)]
    pub convert: ConvertArgs,
    /// The verbosity.
    #[command(flatten)]
    pub messages: MessageArgs,
    /// Print version
    #[arg(short = 'V', long, action = ArgAction::Version, hide_short_help = true)]
    pub version: Option<bool>,
    /// The limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The words of the command line after the program's name.
    #[arg(skip)]
    pub words: Vec<OsString>,
}

/// Whether there is an option of `convert` without the word `convert`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked(pub bool);

impl FromArgMatches for Asked {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // Naming the options takes time, and only matters without a command.
        if matches.subcommand_name().is_some() {
            return Ok(Asked(false));
        }
        let all = ConvertArgs::augment_args(clap::Command::new("convert"));
        let of_conversions =
            |arg: &&Arg| is_conversion(arg) || matches!(arg.get_id().as_str(), "output" | "force");
        let mut ids = all
            .get_arguments()
            .filter(of_conversions)
            .map(|arg| arg.get_id().as_str());
        Ok(Asked(ids.any(|id| {
            matches.value_source(id) == Some(ValueSource::CommandLine)
        })))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Asked {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}

/// Returns the end of `perfconv -h`: the names of the options that do not fit on one screen.
fn after_short_help() -> String {
    let all = ConvertArgs::augment_args(clap::Command::new("convert"));
    let longs = all
        .get_arguments()
        .filter(|arg| is_conversion(arg) && !arg.is_hide_short_help_set())
        .filter_map(Arg::get_long);
    let longs: Vec<String> = longs.map(|long| format!("--{long}")).collect();
    format!("Conversions (perfconv convert -h): {}", longs.join(" "))
}

/// Returns whether an argument of `convert` requests a conversion.
fn is_conversion(arg: &Arg) -> bool {
    arg.get_help_heading().is_some()
}

/// Returns an argument of `convert` for command lines without the word `convert`, which may have
/// several inputs.
fn at_top(arg: Arg) -> Arg {
    let is_input = input::IDS.contains(&arg.get_id().as_str());
    let hidden = is_input || is_conversion(&arg);
    let arg = if is_input { input::several(arg) } else { arg };
    let arg = if arg.get_id() == "no_sync" {
        arg.requires("output")
    } else {
        arg
    };
    if hidden {
        arg.hide_short_help(true)
    } else {
        arg
    }
}

/// How much to say, for all commands.
#[derive(Debug, Clone, Copy, Args)]
pub struct MessageArgs {
    /// Print only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Show what was read and written; -vv adds the number of records by type
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Do not show long reports with $PAGER (default: less)
    #[arg(long, global = true, hide_short_help = true)]
    pub no_pager: bool,
}

impl From<MessageArgs> for Messages<'_> {
    fn from(args: MessageArgs) -> Self {
        let verbosity = match (args.quiet, args.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Verbose,
            (false, _) => Verbosity::All,
        };
        Messages {
            verbosity,
            host: None,
        }
    }
}

impl Cli {
    /// Parses the command line in `args`, starting with the name of the program.
    ///
    /// # Errors
    /// The command line is invalid; or it requests help, which clap also handles as an error.
    pub fn from_args<A: Into<OsString> + Clone>(
        args: impl IntoIterator<Item = A>,
    ) -> Result<Self, clap::Error> {
        let args = words::of_program(args.into_iter().map(Into::into).collect());
        let mut command = Self::command();
        let mut complete = args.clone();
        if abbreviations::are_for_inject(&args) {
            command = abbreviations::with_negations(command);
            complete = abbreviations::expanded(&mut command, &args)?;
        }
        let joined = words::with_values(&mut command, &complete)?;
        let mut matches = command.try_get_matches_from_mut(&joined);
        if matches
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::DisplayHelp)
        {
            command = command.after_help(after_short_help());
            matches = command.try_get_matches_from_mut(&joined);
        }
        let matches = matches.map_err(|error| words::explained(&mut command, &args, error))?;
        if let Some(name) = matches.subcommand_name() {
            let given = |arg: &&Arg| {
                matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
            };
            let stray = command
                .get_arguments()
                .filter(|arg| !arg.is_global_set())
                .find(given)
                .map(Arg::to_string);
            if let Some(stray) = stray {
                let what = format!("'{stray}' precedes the command '{name}' and must follow it");
                return Err(command.error(ErrorKind::ArgumentConflict, what));
            }
        }
        let cli = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        if let (Some(Command::Export(args)), Some((name, matches))) =
            (&cli.command, matches.subcommand())
            && let Some(command) = command.find_subcommand_mut(name)
            && let Some(what) = export::misplaced(command, matches, args)
        {
            return Err(command.error(ErrorKind::ArgumentConflict, what));
        }
        if cli.command.is_none() {
            words::check(
                &mut command,
                cli.convert.input.all(),
                cli.asked.0,
                cli.convert.output.path.is_some(),
            )?;
        }
        Ok(Cli {
            words: args.into_iter().skip(1).collect(),
            ..cli
        })
    }

    /// Returns whether the command writes a report that may be long, and the user permits a pager.
    pub fn is_paged(&self) -> bool {
        let Some(command) = &self.command else {
            return false;
        };
        let is_long = match command {
            Command::Info(args) => args.html.is_none(),
            Command::Dump(_) | Command::Verify(_) | Command::Diff(_) => true,
            _ => false,
        };
        is_long && !self.messages.no_pager
    }

    /// Returns where objects are fetched.
    pub fn debuginfod(&self) -> DebuginfodArgs {
        let args = match &self.command {
            None => &self.convert.callchains.debuginfod,
            Some(Command::Convert(args) | Command::Pipe2file(args) | Command::File2pipe(args)) => {
                &args.callchains.debuginfod
            }
            Some(Command::Inject(args)) => &args.callchains.debuginfod,
            Some(Command::Recover(args)) => &args.convert.callchains.debuginfod,
            Some(Command::Split(args)) => &args.convert.callchains.debuginfod,
            Some(Command::Merge(args)) => &args.convert.callchains.debuginfod,
            Some(Command::Export(args)) => &args.debuginfod,
            Some(Command::Bundle(args)) => &args.debuginfod,
            Some(_) => return DebuginfodArgs::default(),
        };
        args.clone()
    }

    /// Returns the recordings that are read one after the other; `None` if the command reads none,
    /// or several at a time.
    pub fn inputs(&self) -> Option<&[PathBuf]> {
        Some(match &self.command {
            None => self.convert.input.all(),
            Some(Command::Convert(args) | Command::Pipe2file(args) | Command::File2pipe(args)) => {
                args.input.all()
            }
            Some(Command::Inject(args)) => args.input.all(),
            Some(Command::Info(args)) => &args.input,
            Some(Command::Dump(args)) => args.input.all(),
            Some(Command::Verify(args)) => &args.input,
            Some(Command::ExtractAux(args)) => args.input.all(),
            Some(Command::Bundle(args)) => args.input.all(),
            Some(Command::Unbundle(args)) => args.input.all(),
            Some(Command::Export(args)) => &args.input,
            Some(Command::Recover(args)) => args.convert.input.all(),
            Some(Command::Split(args)) => args.convert.input.all(),
            #[cfg(feature = "columns")]
            Some(Command::Compact(_)) => return None,
            Some(
                Command::Merge(_) | Command::Diff(_) | Command::Man(_) | Command::Completions(_),
            ) => return None,
        })
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Convert a recording; without options, copy it exactly
    #[command(after_long_help = examples::CONVERT)]
    Convert(ConvertArgs),
    /// Convert a pipe stream (perf record -o -) to a seekable file
    ///
    /// On a live stream, the first Ctrl-C ends the recording and completes OUTPUT; the second one
    /// aborts.
    #[command(after_long_help = examples::PIPE2FILE, mut_arg("to", |arg| arg.hide(true)))]
    Pipe2file(ConvertArgs),
    /// Convert a file to a pipe stream
    #[command(after_long_help = examples::FILE2PIPE, mut_arg("to", |arg| arg.hide(true)))]
    File2pipe(ConvertArgs),
    /// Add build IDs and generated code; accepts perf inject's options
    ///
    /// Reads standard input and writes standard output by default.
    // As in perf, options may be repeated, and the last one counts.
    #[command(args_override_self = true)]
    #[command(after_long_help = examples::INJECT, mut_args(inject::of_inject))]
    Inject(InjectArgs),
    /// Merge several recordings into one, by time
    ///
    /// For recordings of one boot: of several processes, events or tools at once, or of one run
    /// after the other; with --machines, of several machines. Events that are the same become one.
    /// The features are those of the first recording, except those that describe events, samples,
    /// objects and CPUs.
    #[command(after_long_help = examples::MERGE, mut_args(merge::of_merge))]
    Merge(MergeArgs),
    /// Split a recording into several ones, by time, size, process …
    ///
    /// Each part contains some of the samples, and what perf needs to show them as in the whole
    /// recording. Each sample is in one part.
    #[command(after_long_help = examples::SPLIT, mut_args(split::of_split))]
    Split(SplitArgs),
    /// Export the samples for other profilers, with the names of functions
    ///
    /// Names are those that perf finds, but only of the recorded objects, by their build IDs.
    /// Deferred callchains are joined with their samples.
    #[command(after_long_help = examples::EXPORT, mut_args(export::of_export))]
    Export(ExportArgs),
    /// Put the Parquet files of many recordings together
    ///
    /// In a directory of export --append-to, each recording has a file in each table. This command
    /// puts those of a table and a day into one, sorted by host, while others read the directory and
    /// add recordings.
    #[cfg(feature = "columns")]
    #[command(after_long_help = examples::COMPACT)]
    Compact(CompactArgs),
    /// Show what a recording contains
    ///
    /// Shows the command line and date, samples by event, CPU and comm, lost records, events with
    /// their attributes, feature sections, and the number of records by type. -v adds the raw
    /// header fields and fields that are 0.
    #[command(after_long_help = examples::INFO)]
    Info(InfoArgs),
    /// Show every record with all its fields
    ///
    /// Includes the contents of compressed records.
    #[command(after_long_help = examples::DUMP)]
    Dump(DumpArgs),
    /// Check that a recording is complete and consistent
    ///
    /// Also checks that reading and writing it gives the same bytes.
    #[command(after_help = "Exit status: 0 no errors found; 1 errors found; 2 usage or I/O error.")]
    #[command(after_long_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Repair a truncated, unfinished or corrupt recording
    ///
    /// For recordings of a killed perf, after a crash, or from a full disk. Keeps all intact
    /// records and reports what is lost.
    #[command(after_long_help = examples::RECOVER)]
    Recover(RecoverArgs),
    /// Show the differences between two recordings
    ///
    /// Containers and byte orders may differ.
    #[command(after_help = "Exit status: 0 no differences; 1 differences found; 2 error.")]
    #[command(after_long_help = examples::DIFF)]
    Diff(DiffArgs),
    /// Extract AUX data: Intel PT, Arm SPE, CoreSight …
    ///
    /// Writes a file of raw bytes for each CPU or thread, and an index for decoders.
    #[command(after_long_help = examples::EXTRACT_AUX)]
    ExtractAux(ExtractAuxArgs),
    /// Pack a recording with the objects that name its functions
    ///
    /// Made on the recorded machine, the bundle shows the same names everywhere: every command that
    /// reads a recording also reads a bundle.
    #[command(after_long_help = examples::BUNDLE)]
    Bundle(BundleArgs),
    /// Unpack a bundle to a recording and a folder that perf reads
    #[command(after_long_help = examples::UNBUNDLE)]
    Unbundle(UnbundleArgs),
    /// Show the manual page of perfconv or of a command
    #[command(after_long_help = examples::MAN)]
    Man(ManArgs),
    /// Generate shell completions
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command; without it, perfconv
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
    /// Recordings to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Write one JSON object instead of text
    #[arg(long, group = "form")]
    pub json: bool,
    /// Show what the recording would tell others, by place and count
    #[arg(long, conflicts_with_all = ["map", "html"])]
    pub leaks: bool,
    /// Draw the layout to scale, as wide as the terminal
    #[arg(long, group = "form")]
    pub map: bool,
    /// Write an HTML page with layout, tables and charts to PAGE; - is standard output
    #[arg(long, value_name = "PAGE", group = "form")]
    pub html: Option<PathBuf>,
    /// Overwrite the PAGE of --html if it exists
    #[arg(short, long, requires = "html")]
    pub force: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, requires = "html", hide_short_help = true)]
    pub no_sync: bool,
}

/// Arguments of `dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Recording to read.
    #[command(flatten)]
    pub input: InputArg,
    /// Write one JSON object per record and line
    #[arg(long)]
    pub json: bool,
    /// Show the bytes of each field, and of the parts outside the records
    #[arg(long)]
    pub hex: bool,
    /// Show only samples, with the comm at that time and the mapped file of each callchain address
    ///
    /// Function names are not looked up: each address is shown as the offset in its file, as
    /// addr2line expects it.
    #[arg(long, conflicts_with_all = ["hex", "types"])]
    pub resolved: bool,
    /// Show the packets of hardware traces: Intel PT, Intel BTS, Arm SPE
    ///
    /// As perf script -D prints them. With --json, each packet is an object. --limit counts packets.
    #[arg(long, conflicts_with_all = ["hex", "types", "resolved"])]
    pub aux: bool,
    /// Do not unwind user stacks (--call-graph dwarf)
    ///
    /// Their samples then have only the frames that the kernel recorded.
    #[arg(long, requires = "resolved", hide_short_help = true)]
    pub no_unwind: bool,
    /// Show only records of these types (repeatable), such as MMAP2 or sample,comm
    #[arg(long = "type", value_name = "NAME", value_delimiter = ',')]
    pub types: Vec<String>,
    /// Omit the first N of these records
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "aux"
    )]
    pub skip: u64,
    /// Stop after N records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Recordings to read.
    #[command(flatten)]
    pub input: InputArgs,
    /// Write one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Which findings make the exit status 1
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    pub fail_on: FailOn,
}

/// Arguments of `recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// Input and output, and conversions of the recovered recording.
    #[command(flatten)]
    pub convert: ConvertArgs,
    /// Refuse a recording with intact records after corrupt bytes
    #[arg(long)]
    pub strict: bool,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A recording
    pub a: PathBuf,
    /// The recording to compare with
    pub b: PathBuf,
    /// Write one JSON object per difference and line
    #[arg(long)]
    pub json: bool,
    /// Print nothing; the exit status is the result
    #[arg(long, conflicts_with_all = ["json", "stat", "limit"])]
    pub brief: bool,
    /// Show only numbers: differences in features and events, records by type
    #[arg(long, conflicts_with = "limit")]
    pub stat: bool,
    /// Show up to N differences of features, events and records each; 0 for all
    /// [default: 100; all with --json]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// Arguments of `extract-aux`.
#[derive(Debug, Args)]
pub struct ExtractAuxArgs {
    /// Recording to read.
    #[command(flatten)]
    pub input: InputArg,
    /// Directory to create
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// Also write the recording without AUX data
    #[arg(long, value_name = "FILE")]
    pub sideband: Option<PathBuf>,
    /// Replace DIR if perfconv created it, and overwrite FILE
    #[arg(short, long)]
    pub force: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, hide_short_help = true)]
    pub no_sync: bool,
}
