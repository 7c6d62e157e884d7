//! The options of `perfconv export`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, ValueEnum, ValueHint};
use perfdata_export::Fields;

#[cfg(feature = "columns")]
use super::ColumnArgs;
use super::debuginfod::DEBUGINFOD;
use super::{
    DebuginfodArgs, HugePageArgs, InputArgs, ItraceArgs, OffCpuArgs, OutputArgs, SliceArgs,
};

/// A format of other profilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Folded stacks, for other tools: one line for each stack
    Folded,
    /// A flame graph as a web page
    Flamegraph,
    /// A flame graph as a picture
    Svg,
    /// A compressed profile for pprof
    Pprof,
    /// A compressed profile for the Firefox Profiler
    Firefox,
    /// A JSON file for speedscope.app
    Speedscope,
    /// Profiles of OpenTelemetry (opentelemetry-proto 1.10)
    #[value(name = "otlp-1.10")]
    Otlp,
    /// The text of `perf script`
    PerfScript,
    /// Branches and fall-throughs of one object, for perf2bolt --pa
    Bolt,
    /// The same, for llvm-profgen --unsymbolized-profile
    LlvmProfgen,
    /// The same, for create_llvm_prof --profiler=text
    Autofdo,
    /// Columns for databases: the samples in a file, or all tables in a directory
    #[cfg(feature = "columns")]
    Parquet,
    /// Columns as an Arrow IPC stream: the samples
    #[cfg(feature = "columns")]
    Arrow,
}

impl Format {
    /// Returns the format of files with this name.
    pub fn of(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?;
        let endings: &[(&[&str], Format)] = &[
            (&[".folded", ".collapsed"], Format::Folded),
            (&[".html", ".htm"], Format::Flamegraph),
            (&[".svg"], Format::Svg),
            (&[".pb.gz", ".pprof"], Format::Pprof),
            (&[".json.gz"], Format::Firefox),
            (&[".speedscope.json"], Format::Speedscope),
            (&[".otlp"], Format::Otlp),
            (&[".txt", ".script"], Format::PerfScript),
            #[cfg(feature = "columns")]
            (&[".parquet"], Format::Parquet),
            #[cfg(feature = "columns")]
            (&[".arrows"], Format::Arrow),
        ];
        let has = |ending: &&str| name.ends_with(*ending);
        let found = endings.iter().find(|(endings, _)| endings.iter().any(&has));
        found.map(|&(_, format)| format)
    }
}

/// What the values in an output mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Counted {
    /// The periods of the samples, in units of the event
    #[default]
    Period,
    /// The samples
    Samples,
}

/// What the first frame of each stack names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RootFrame {
    /// The comm of the thread
    #[default]
    Comm,
    /// The comm and the process
    Pid,
    /// The comm, the process and the thread
    Tid,
}

/// A mark of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mark {
    /// `_[k]` after functions of the kernel
    Kernel,
    /// `_[j]` after functions that a JIT compiler generated
    Jit,
    /// `_[i]` after inlined functions
    Inline,
}

/// A label of the samples in a profile for pprof or OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabelArg {
    /// The process ID
    Pid,
    /// The thread ID
    Tid,
    /// The name of the thread
    Comm,
    /// The CPU
    Cpu,
    /// The cgroup (perf record --all-cgroups)
    Cgroup,
    /// The CPU mode: user, kernel, …
    Mode,
}

/// A version of perf whose text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LikeArg {
    /// perf 6.1
    #[value(name = "6.1")]
    V6_1,
    /// perf 6.12
    #[value(name = "6.12")]
    V6_12,
    /// perf 7.2
    #[default]
    #[value(name = "7.2")]
    V7_2,
}

/// Hides the options of slices that make no difference in an export, and shows those of conversions
/// without a heading.
pub fn of_export(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "sideband" => arg.hide(true),
        "itrace" => {
            let help = "Make these samples of traces [default: as perf report, or perf script for its text]";
            let more = "The letters are those of `inject --itrace`. Without letters, and without this \
                option where it is possible: instructions of Intel PT every 100 µs with callchains \
                (i100usge), branches of BTS, and all samples of Arm SPE (i1ibfmtaM); for perf-script, \
                calls (cxwpIe); for compilers, samples with branch stacks (i100usl, of Arm SPE bl). \
                The code of the programs must be here, with the recorded build IDs.";
            arg.help_heading(None)
                .help(help)
                .long_help(format!("{help}\n\n{more}"))
        }
        "no_itrace" => arg.help_heading(None).help("Do not make samples of traces"),
        "deduce_huge_pages" => arg.help_heading(NAMES),
        "off_cpu" | "wakers" => arg.help_heading(None),
        DEBUGINFOD => arg.conflicts_with("no_symbols").help_heading(NAMES),
        _ => arg,
    }
}

/// Heading of the options for pprof.
const PPROF: &str = "Profiles for pprof and OpenTelemetry";
/// Heading of the options for names.
const NAMES: &str = "Names of functions";
/// Heading of the options of folded stacks.
const FOLDED: &str = "Folded stacks";
/// Heading of the options for the text of perf script.
const SCRIPT: &str = "Text of perf script";
/// Heading of the options of profiles for compilers.
const COMPILERS: &str = "Profiles for compilers";
/// Heading of the options of flame graphs.
const FLAME: &str = "Flame graphs";

/// The formats that are profiles for compilers.
const FOR_COMPILERS: &[Format] = &[Format::Bolt, Format::LlvmProfgen, Format::Autofdo];

/// The headings of options that only some formats have: what the options need, and these formats. The
/// first one is named in the error.
const OF_FORMATS: &[(&str, &str, &[Format])] = &[
    (FLAME, "a flame graph", &[Format::Flamegraph, Format::Svg]),
    (FOLDED, "folded stacks", &[Format::Folded]),
    (
        PPROF,
        "a profile with labels",
        &[Format::Pprof, Format::Otlp],
    ),
    (SCRIPT, "the text of perf script", &[Format::PerfScript]),
    (COMPILERS, "a profile for compilers", FOR_COMPILERS),
    #[cfg(feature = "columns")]
    (
        super::columns::COLUMNS,
        "Parquet or Arrow",
        &[Format::Parquet, Format::Arrow],
    ),
];

/// Returns the error for an option that has no effect in the format of the output.
pub(super) fn misplaced(
    command: &clap::Command,
    matches: &ArgMatches,
    args: &ExportArgs,
) -> Option<String> {
    let format = args.format()?;
    if args.jobs.is_some() && !args.takes_several(format) {
        let what = "'--jobs' needs --append-to, or a profile for compilers, such as --to bolt";
        return Some(what.into());
    }
    command.get_arguments().find_map(|arg| {
        let heading = arg.get_help_heading()?;
        let (_, need, formats) = OF_FORMATS.iter().find(|(of, ..)| *of == heading)?;
        let is_given =
            matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let first = formats.first()?.to_possible_value()?;
        (is_given && !formats.contains(&format)).then(|| {
            let option = arg.get_long().unwrap_or_default();
            format!(
                "'--{option}' needs {need}, such as --to {}",
                first.get_name()
            )
        })
    })
}

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Recordings to read: one, or several with `--append-to` or for a profile for compilers.
    #[command(flatten)]
    pub input: InputArgs,
    /// File to write.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write to the existing OUTPUT instead of replacing it, because pprof has opened it
    #[arg(long, hide = true)]
    pub in_place: bool,
    /// Format of OUTPUT [default: by the ending of its name]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Read at most N recordings at the same time, with --append-to or for a profile for compilers
    /// [default: number of CPUs]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub jobs: Option<NonZeroUsize>,
    /// Columns for databases.
    #[cfg(feature = "columns")]
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// Show the differences between INPUT and this recording, such as an older one
    #[arg(long, value_name = "OTHER", value_hint = ValueHint::FilePath, help_heading = FLAME)]
    pub diff: Option<PathBuf>,
    /// What is counted
    #[arg(long, value_name = "WHAT", default_value = "period", help_heading = FOLDED)]
    pub count: Counted,
    /// What the first frame of each stack names
    #[arg(long, value_name = "WHAT", default_value = "comm", help_heading = FOLDED)]
    pub root: RootFrame,
    /// Mark these functions
    #[arg(long, value_name = "WHICH,…", value_delimiter = ',', help_heading = FOLDED)]
    pub mark: Vec<Mark>,
    /// Label the samples: pid, tid, comm, cpu, cgroup, mode
    #[arg(
        long,
        value_name = "WHICH,…",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    #[arg(hide_short_help = true, help_heading = PPROF)]
    pub label: Vec<LabelArg>,
    /// Version of perf whose text is written: 6.1, 6.12 or 7.2
    #[arg(
        long,
        value_name = "VERSION",
        default_value = "7.2",
        hide_possible_values = true
    )]
    #[arg(help_heading = SCRIPT)]
    pub like: LikeArg,
    /// Fields to show, as for perf script -F (repeatable)
    ///
    /// A list, such as comm,tid,time,event,ip; changes, such as +addr,-period; or either for one
    /// type of event, such as trace:comm,trace. Types: hw, sw, trace, raw, break, synth.
    #[arg(short = 'F', long, value_name = "FIELDS", allow_hyphen_values = true)]
    #[arg(help_heading = SCRIPT)]
    pub fields: Vec<Fields>,
    /// Show times with nanoseconds
    #[arg(long, hide_short_help = true, help_heading = SCRIPT)]
    pub ns: bool,
    /// Show at most N frames of a callchain
    #[arg(long, value_name = "N", default_value_t = 127, hide_short_help = true)]
    #[arg(help_heading = SCRIPT)]
    pub max_frames: usize,
    /// Show sched_switch and sched_wakeup as perf does with the plugins of libtraceevent
    ///
    /// perf loads them if they are installed. They print values without the names of fields.
    #[arg(long, hide_short_help = true, help_heading = SCRIPT)]
    pub sched_plugin: bool,
    /// Show source files (-F srcline) with their folders
    #[arg(long, hide_short_help = true, help_heading = SCRIPT)]
    pub full_source_path: bool,
    /// The program or library whose profile is written [default: the one with most branches]
    ///
    /// Its file, or its build ID.
    #[arg(long, value_name = "FILE|BUILD-ID", value_hint = ValueHint::FilePath)]
    #[arg(hide_short_help = true, help_heading = COMPILERS)]
    pub binary: Option<PathBuf>,
    /// Do not unwind user stacks (--call-graph dwarf)
    ///
    /// Their samples then have only the frames that the kernel recorded. By default, they are
    /// unwound with the objects on this machine that have the recorded build IDs, or those in
    /// --sysroot.
    #[arg(long, help_heading = NAMES)]
    pub no_unwind: bool,
    /// Unwind user stacks, as by default
    #[arg(long, hide = true, conflicts_with = "no_unwind")]
    pub convert_callchain: bool,
    /// Do not search the names of functions
    #[arg(long, help_heading = NAMES)]
    pub no_symbols: bool,
    /// Show inlined functions as frames (from DWARF)
    #[arg(long, conflicts_with = "no_symbols", help_heading = NAMES)]
    pub inlines: bool,
    /// Show source files and lines (from DWARF)
    #[arg(long, conflicts_with = "no_symbols", help_heading = NAMES)]
    pub lines: bool,
    /// Search this directory for objects and debug files instead of this machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "no_symbols")]
    #[arg(help_heading = NAMES)]
    pub sysroot: Option<PathBuf>,
    /// Also search this directory for debug files: as /usr/lib/debug, or ~/.debug (repeatable)
    ///
    /// An archive of `perf archive` (perf.data.tar.bz2) is unpacked to a temporary directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath, conflicts_with = "no_symbols")]
    #[arg(hide_short_help = true, help_heading = NAMES)]
    pub debug_dir: Vec<PathBuf>,
    /// Where objects are fetched.
    #[command(flatten)]
    pub debuginfod: DebuginfodArgs,
    /// The kernel image of the recording
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_symbols")]
    #[arg(hide_short_help = true, help_heading = NAMES)]
    pub vmlinux: Option<PathBuf>,
    /// A copy of /proc/kallsyms of the recorded machine, made before it booted again
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "no_symbols")]
    #[arg(hide_short_help = true, help_heading = NAMES)]
    pub kallsyms: Option<PathBuf>,
    /// Also use objects whose build IDs the recording does not contain
    ///
    /// They may be other versions than the recorded ones, and then all names are wrong. Without
    /// this option, such objects are used only if the recording was made on this machine.
    #[arg(long, conflicts_with = "no_symbols", hide_short_help = true, help_heading = NAMES)]
    pub unverified: bool,
    /// Whether the files of code on huge pages are found.
    #[command(flatten)]
    pub huge_pages: HugePageArgs,
    /// Which samples are made of traces.
    #[command(flatten)]
    pub traces: ItraceArgs,
    /// Samples of threads that were off the CPU.
    #[command(flatten)]
    pub off_cpu: OffCpuArgs,
    /// Which samples to export.
    #[command(flatten)]
    pub slice: SliceArgs,
}

impl ExportArgs {
    /// Returns the format of the output; `None` if neither an option nor its name tells it.
    pub fn format(&self) -> Option<Format> {
        #[cfg(feature = "columns")]
        if self.columns.append_to.is_some() {
            return Some(Format::Parquet);
        }
        self.to.or_else(|| Format::of(self.output.path.as_deref()?))
    }

    /// Whether there may be several recordings, which `--jobs` reads at the same time.
    fn takes_several(&self, format: Format) -> bool {
        #[cfg(feature = "columns")]
        if self.columns.append_to.is_some() {
            return true;
        }
        FOR_COMPILERS.contains(&format)
    }
}
