//! The subcommands, one file each.

mod about;
mod completions;
mod convert;
mod diff;
mod dump;
mod extract_aux;
mod info;
mod inject;
mod man;
mod recover;
pub mod trouble;
mod verify;

use std::io::Write;
use std::path::Path;

use perfdata_core::read::Limits;

use crate::cli::{Cli, Command, Container};
use crate::error::{Error, Result};
use crate::io::Input;
use crate::messages::{Messages, Verbosity};
use crate::progress::Progress;

/// What a command that went well has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is done.
    Done,
    /// The report tells of something that is wrong, or differs.
    Found,
}

impl Outcome {
    /// The exit status.
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Found => 1,
        }
    }
}

/// Runs the command, whose report goes to `out`.
///
/// # Errors
/// What the command could not do; see [`Error::exit_code`].
pub fn run(cli: Cli, out: &mut dyn Write) -> Result<Outcome> {
    let mut outcome = Outcome::Done;
    let (messages, limits) = (Messages::from(cli.messages), Limits::from(cli.limits));
    match (cli.command, cli.convert) {
        (None, Some(args)) if args.output.is_none() => about::run(&args.input, out, limits, messages)?,
        (Some(Command::Convert(args)), _) | (None, Some(args)) => convert::run(&args, None, limits, messages)?,
        (Some(Command::Pipe2file(args)), _) => convert::run(&args, Some(Container::File), limits, messages)?,
        (Some(Command::File2pipe(args)), _) => convert::run(&args, Some(Container::Pipe), limits, messages)?,
        (Some(Command::Inject(args)), _) => inject::run(&args, limits, messages)?,
        (Some(Command::Info(args)), _) => info::run(&args, out, limits, messages)?,
        (Some(Command::Dump(args)), _) => dump::run(&args, out, limits, messages)?,
        (Some(Command::ExtractAux(args)), _) => extract_aux::run(&args, limits, messages)?,
        (Some(Command::Recover(args)), _) => recover::run(&args, limits, messages)?,
        (Some(Command::Diff(args)), _) => outcome = diff::run(&args, out, limits)?,
        (Some(Command::Verify(args)), _) => outcome = verify::run(&args, out, limits, messages)?,
        (Some(Command::Man(args)), _) => man::run(&args, out)?,
        (Some(Command::Completions(args)), _) => completions::run(&args, out)?,
        (None, None) => return Err(Error::Usage("no input given; see perfconv --help".into())),
    }
    out.flush().map_err(Error::io("standard output"))?;
    Ok(outcome)
}

/// Opens a recording that is read to its end, and shows how far that is.
fn open(path: &Path, limits: Limits, messages: Messages) -> Result<Input> {
    let input = Input::open(path)?.limited_by(limits);
    Ok(if messages.verbosity == Verbosity::Quiet { input } else { input.watched_by(Progress::new()) })
}

/// Writes a report.
fn print(out: &mut dyn Write, report: &str) -> Result<()> {
    out.write_all(report.as_bytes()).map_err(Error::io("standard output"))
}
