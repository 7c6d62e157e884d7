//! The subcommands, one file each.

mod about;
#[cfg(feature = "columns")]
mod append;
#[cfg(feature = "columns")]
mod broken;
mod bundle;
#[cfg(feature = "columns")]
mod columns;
#[cfg(feature = "columns")]
mod compact;
#[cfg(feature = "columns")]
mod compact_folder;
#[cfg(feature = "columns")]
mod compacted_index;
mod completions;
mod convert;
mod debuginfod;
pub mod diagnostics;
mod diff;
mod dump;
pub mod embedded;
mod export;
mod extract_aux;
mod info;
mod inject;
mod man;
mod merge;
pub mod objects;
pub mod pager;
mod profile;
mod recipe;
mod recover;
#[cfg(feature = "columns")]
mod shared_columns;
#[cfg_attr(not(unix), path = "other/signals.rs")]
pub mod signals;
mod split;
#[cfg_attr(not(unix), path = "other/system.rs")]
#[allow(unsafe_code, reason = "the C library")]
pub mod system;
mod unbundle;
mod verify;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use perfdata_core::read::Limits;

use crate::cli::{Cli, Command, Container};
use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::io::Input;

use diagnostics::{Given, exit_code};

/// The result of a successful command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All work is done.
    Done,
    /// The report contains errors or differences.
    Found,
    /// One of several inputs could not be read, and the error was already reported. Contains its
    /// exit status.
    Failed(u8),
}

impl Outcome {
    /// Returns the exit status.
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Found => 1,
            Outcome::Failed(status) => status,
        }
    }
}

/// Runs the command. A long report goes through a pager on a terminal, and otherwise to `out`.
///
/// # Errors
/// As [`run`].
pub fn run_paged(cli: Cli, out: &mut dyn Write) -> Result<Outcome> {
    if cli.is_paged() && pager::is_of_use() {
        pager::paged(|out| run(cli, out))
    } else {
        run(cli, out)
    }
}

/// Runs the command, and writes its report to `out`.
///
/// # Errors
/// The error of the command; see [`exit_code`].
pub fn run(cli: Cli, out: &mut dyn Write) -> Result<Outcome> {
    let messages = Messages::from(cli.messages);
    run_telling(cli, messages, out)
}

/// Runs the command, with its messages to `messages`.
fn run_telling(cli: Cli, messages: Messages, out: &mut dyn Write) -> Result<Outcome> {
    if cli.inputs().is_some_and(<[PathBuf]>::is_empty) {
        let what = "no input: there is no perf.data in this folder, and nothing is piped into standard input";
        return Err(Error::Usage(what.into()));
    }
    let given = Given::new(&cli);
    let mut outcome = Outcome::Done;
    let limits = Limits::from(cli.limits);
    let fetched = cli.debuginfod();
    match cli.command {
        None if cli.asked.0 => convert::run(&cli.convert, None, limits, messages)?,
        None => {
            let several = Several::new(cli.convert.input.all(), &given, messages);
            outcome = several.each(out, |input, out| about::run(input, out, limits, messages))?;
        }
        Some(Command::Convert(args)) => convert::run(&args, None, limits, messages)?,
        Some(Command::Pipe2file(args)) => {
            convert::run(&args, Some(Container::File), limits, messages)?
        }
        Some(Command::File2pipe(args)) => {
            convert::run(&args, Some(Container::Pipe), limits, messages)?
        }
        Some(Command::Inject(args)) => inject::run(&args, limits, messages)?,
        Some(Command::Merge(args)) => merge::run(&args, limits, messages)?,
        Some(Command::Split(args)) => split::run(&args, limits, messages)?,
        Some(Command::Export(args)) => {
            let several = Several::new(&args.input, &given, messages);
            outcome = export::run(&args, limits, messages, &several)?;
        }
        #[cfg(feature = "columns")]
        Some(Command::Compact(args)) => outcome = compact::run(&args, out, limits, messages)?,
        Some(Command::Info(args)) => {
            outcome = info::run(
                &args,
                out,
                limits,
                &Several::new(&args.input, &given, messages),
            )?
        }
        Some(Command::Dump(args)) => dump::run(&args, out, limits, messages)?,
        Some(Command::ExtractAux(args)) => extract_aux::run(&args, limits, messages)?,
        Some(Command::Bundle(args)) => bundle::run(&args, limits, messages)?,
        Some(Command::Unbundle(args)) => unbundle::run(&args, limits, messages)?,
        Some(Command::Recover(args)) => recover::run(&args, limits, messages)?,
        Some(Command::Diff(args)) => outcome = diff::run(&args, out, limits, messages)?,
        Some(Command::Verify(args)) => {
            outcome = verify::run(
                &args,
                out,
                limits,
                &Several::new(&args.input, &given, messages),
            )?;
        }
        Some(Command::Man(args)) => man::run(&args, out, !cli.messages.no_pager)?,
        Some(Command::Completions(args)) => completions::run(&args, out)?,
    }
    debuginfod::tell(&fetched, messages);
    match out.flush() {
        // If the reader of the output has quit, the exit status is still the result.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io(STANDARD_OUTPUT)(error))
        }
        _ => Ok(outcome),
    }
}

/// The name of standard output in errors.
const STANDARD_OUTPUT: &str = "standard output";

/// The inputs of a command that processes one after the other.
struct Several<'a> {
    paths: &'a [PathBuf],
    given: &'a Given,
    messages: Messages<'a>,
}

impl<'a> Several<'a> {
    fn new(paths: &'a [PathBuf], given: &'a Given, messages: Messages<'a>) -> Self {
        Several {
            paths,
            given,
            messages,
        }
    }

    /// Returns whether a report must show the name of its input.
    fn are_many(&self) -> bool {
        self.paths.len() > 1
    }

    /// Reports the error of one of several inputs.
    fn failed(&self, path: &Path, error: &Error) -> Outcome {
        self.given.explain_of(Some(path), error, self.messages);
        Outcome::Failed(exit_code(error))
    }

    /// Calls `look` with each input. After an error in one of several inputs, the next ones are
    /// processed anyway. Returns the worst of all outcomes.
    fn each(
        &self,
        out: &mut dyn Write,
        mut look: impl FnMut(&Path, &mut dyn Write) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let mut worst = Outcome::Done;
        for path in self.paths {
            let outcome = match look(path, out) {
                Ok(outcome) => outcome,
                Err(error) if !self.are_many() || is_of_output(&error) => return Err(error),
                Err(error) => {
                    out.flush().map_err(Error::io(STANDARD_OUTPUT))?;
                    self.given.explain_of(Some(path), &error, self.messages);
                    Outcome::Failed(exit_code(&error))
                }
            };
            worst = if outcome.exit_code() > worst.exit_code() {
                outcome
            } else {
                worst
            };
        }
        Ok(worst)
    }
}

/// Returns whether the error is about writing the report, regardless of the input.
fn is_of_output(error: &Error) -> bool {
    error.is_broken_pipe()
        || matches!(error, Error::Io { path, .. } if path == Path::new(STANDARD_OUTPUT))
}

/// Returns the output of a command that makes one recording of `input`. The default is standard
/// output, unless that is a terminal.
fn output_or_standard<'a>(named: Option<&'a Path>, input: &Path) -> Result<&'a Path> {
    match named {
        Some(path) => Ok(path),
        None if !io::stdout().is_terminal() => Ok(Path::new("-")),
        None => {
            let what = "no output: standard output is a terminal; use -o OUTPUT";
            Err(Error::Usage(what.into())
                .with_step(Step::Other(format!("-o {}", suggestions::output_of(input)))))
        }
    }
}

/// Opens a recording to read it to its end, with a progress bar. The end of a stream depends on its
/// writer.
fn open(path: &Path, limits: Limits, messages: Messages) -> Result<Input> {
    let input = Input::open_with(path, signals::stream_begins)?.limited_by(limits);
    Ok(match messages.watch() {
        Some(watch) => input.watched_by(watch),
        None => input,
    })
}

/// Opens a recording without a progress bar.
fn open_unseen(path: &Path, limits: Limits, messages: Messages) -> Result<Input> {
    let input = Input::open_with(path, signals::stream_begins)?.limited_by(limits);
    Ok(match messages.host {
        Some(host) => input.watched_by(host.watch()),
        None => input,
    })
}

/// Writes a report.
fn print(out: &mut dyn Write, report: &str) -> Result<()> {
    out.write_all(report.as_bytes())
        .map_err(Error::io(STANDARD_OUTPUT))
}
