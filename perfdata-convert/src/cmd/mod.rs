//! The subcommands, one file each.

mod convert;

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
        (None, None) => Err(Error::Usage("no input given; see perfconv --help".into())),
    }
}
