//! `perfconv man`: the manual pages, made of the definition of the command line.

use std::io::Write;

use clap::CommandFactory;

use crate::cli::{Cli, ManArgs, nearest_command};
use crate::error::{Error, Result};

/// Writes the page of perfconv, or of one of its commands.
pub fn run(args: &ManArgs, out: &mut dyn Write) -> Result<()> {
    let mut command = Cli::command();
    command.build();
    if let Some(name) = &args.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| {
            let near = nearest_command(name).map(|near| format!("; did you mean {near}?"));
            Error::Usage(format!("perfconv has no command {name}{}", near.unwrap_or_default()))
        })?;
        let title = format!("perfconv-{name}");
        command = command.name(title);
    } else {
        command = command.override_usage("perfconv FILE\nperfconv [OPTIONS] INPUT -o OUTPUT\nperfconv COMMAND …");
    }
    // A page has room for everything.
    let command = command.mut_args(|arg| arg.hide_short_help(false));
    clap_mangen::Man::new(command).render(out).map_err(Error::io("standard output"))
}
