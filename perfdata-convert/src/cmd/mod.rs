//! The subcommands, one file each.

mod convert;
mod info;

use std::io::Write;

use perfdata_core::header::ContainerKind;

use crate::cli::{Cli, Command};
use crate::error::{Error, Result};

/// Runs the command.
///
/// # Errors
/// What the command could not do; see [`Error::exit_code`].
pub fn run(cli: Cli) -> Result<()> {
    match (cli.command, cli.convert) {
        (Some(Command::Convert(args)), _) | (None, Some(args)) => convert::run(&args, None),
        (Some(Command::Pipe2file(args)), _) => convert::run(&args, Some(ContainerKind::File)),
        (Some(Command::Info(args)), _) => info::run(&args),
        (None, None) => Err(Error::Usage("no input given; see perfconv --help".into())),
    }
}

/// Writes a report to standard output.
fn print(report: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(report.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("standard output"))
}
