//! The subcommands, one file each.

mod convert;
mod diff;
mod dump;
mod info;
mod inject;
mod verify;

use std::io::Write;

use crate::cli::{Cli, Command, Container};
use crate::error::{Error, Result};

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
    match (cli.command, cli.convert) {
        (Some(Command::Convert(args)), _) | (None, Some(args)) => convert::run(&args, None)?,
        (Some(Command::Pipe2file(args)), _) => convert::run(&args, Some(Container::File))?,
        (Some(Command::File2pipe(args)), _) => convert::run(&args, Some(Container::Pipe))?,
        (Some(Command::Inject(args)), _) => inject::run(&args)?,
        (Some(Command::Info(args)), _) => info::run(&args, out)?,
        (Some(Command::Dump(args)), _) => dump::run(&args, out)?,
        (Some(Command::Diff(args)), _) => outcome = diff::run(&args, out)?,
        (Some(Command::Verify(args)), _) => outcome = verify::run(&args, out)?,
        (None, None) => return Err(Error::Usage("no input given; see perfconv --help".into())),
    }
    out.flush().map_err(Error::io("standard output"))?;
    Ok(outcome)
}

/// Writes a report.
fn print(out: &mut dyn Write, report: &str) -> Result<()> {
    out.write_all(report.as_bytes()).map_err(Error::io("standard output"))
}
