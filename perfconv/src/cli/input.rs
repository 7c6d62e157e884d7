//! The input of a command: the named recordings, or perf's default if none is named.

use std::fs;
use std::io::{self, IsTerminal};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, ValueHint};
use perfdata_convert::support::os::{self, Kind};

/// The ID of the positional argument for inputs.
const BY_PLACE: &str = "input";
/// The ID of the option for inputs.
const BY_OPTION: &str = "input-option";
/// The IDs of both.
pub const IDS: [&str; 2] = [BY_PLACE, BY_OPTION];
/// The file that perf reads and writes by default.
const DEFAULT: &str = "perf.data";
/// The name of standard input.
const STANDARD: &str = "-";

/// The single input of a command.
#[derive(Debug, Clone, Default)]
pub struct InputArg(InputArgs);

/// The inputs of a command, which reads them one after the other.
#[derive(Debug, Clone, Default)]
pub struct InputArgs(Vec<PathBuf>);

impl InputArg {
    /// Returns the inputs; empty if none is named, and perf would not find one by default.
    pub fn all(&self) -> &[PathBuf] {
        &self.0
    }
}

impl Deref for InputArg {
    type Target = Path;
    fn deref(&self) -> &Path {
        self.0.first().map_or(Path::new(STANDARD), PathBuf::as_path)
    }
}

impl Deref for InputArgs {
    type Target = [PathBuf];
    fn deref(&self) -> &[PathBuf] {
        &self.0
    }
}

/// Returns perf's default input: standard input if it is a pipe, otherwise `perf.data`. A file that
/// is redirected to standard input also counts. Without `perf.data`, a socket as standard input
/// does, too.
fn assumed() -> Option<PathBuf> {
    let kind = os::stdin().and_then(|stdin| os::kind(&stdin));
    if matches!(kind, Ok(Kind::File | Kind::Pipe)) {
        return Some(STANDARD.into());
    }
    if fs::metadata(DEFAULT).is_ok() {
        return Some(DEFAULT.into());
    }
    let is_other_stream = matches!(kind, Ok(Kind::Socket)) && !io::stdin().is_terminal();
    is_other_stream.then(|| STANDARD.into())
}

/// Returns the positional argument and the option for inputs.
fn arguments(help: &'static str) -> [Arg; 2] {
    let path = || clap::value_parser!(PathBuf);
    let by_place = Arg::new(BY_PLACE)
        .value_name("INPUT")
        .help(help)
        .value_parser(path());
    let by_option = Arg::new(BY_OPTION)
        .short('i')
        .long("input")
        .value_name("FILE")
        .value_parser(path());
    let by_option = by_option
        .help("Same as INPUT, for perf's syntax")
        .conflicts_with(BY_PLACE);
    [by_place, by_option].map(|arg| arg.value_hint(ValueHint::AnyPath))
}

/// Returns an argument that accepts any number of inputs.
pub fn several(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        BY_PLACE => arg.num_args(1..).action(ArgAction::Append),
        _ => arg.action(ArgAction::Append),
    }
}

fn named(matches: &ArgMatches) -> Vec<PathBuf> {
    let of = |id| {
        matches
            .get_many::<PathBuf>(id)
            .into_iter()
            .flatten()
            .cloned()
    };
    let named: Vec<PathBuf> = of(BY_PLACE).chain(of(BY_OPTION)).collect();
    if named.is_empty() {
        assumed().into_iter().collect()
    } else {
        named
    }
}

impl FromArgMatches for InputArg {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(InputArg(InputArgs(named(matches))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for InputArg {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(arguments(
            "Recording to read; - is standard input [default: piped standard input, or perf.data]",
        ))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for InputArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(InputArgs(named(matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for InputArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        let help =
            "Recordings to read; - is standard input [default: piped standard input, or perf.data]";
        command.args(arguments(help).map(several))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
