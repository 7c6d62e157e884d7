//! `perfconv completions`: shell completions, generated from the definition of the command line.

mod bash;
mod zsh;

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use perfdata_core::{feature, record};

use super::print;
use crate::cli::{Cli, CompletionsArgs};
use perfdata_convert::Result;

/// Writes the script for a shell.
pub fn run(args: &CompletionsArgs, out: &mut dyn Write) -> Result<()> {
    let mut command = with_names(Cli::command());
    let mut generate = |shell: Shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "perfconv", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    let script = match args.shell {
        Shell::Bash => {
            command.build();
            bash::script(&command)
        }
        Shell::Zsh => {
            let script = generate(Shell::Zsh);
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            zsh::with_files(script, &names)
        }
        shell => generate(shell),
    };
    print(out, &script)
}

/// Returns the command line with the names of feature sections, record types and commands as
/// possible values of arguments that accept any text.
fn with_names(command: Command) -> Command {
    let commands: Vec<String> = command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let named = |arg: Arg| {
        let features = || feature::TABLE.iter().map(|info| info.name);
        let names: Vec<String> = match arg.get_id().as_str() {
            "drop" => features().map(str::to_owned).collect(),
            "set" | "set_raw" => features().map(|name| format!("{name}=")).collect(),
            "types" => record::TABLE
                .iter()
                .map(|info| info.name.to_owned())
                .collect(),
            "command" => commands.clone(),
            _ => return arg,
        };
        arg.value_parser(PossibleValuesParser::new(names))
    };
    command
        .mut_args(named)
        .mut_subcommands(|subcommand| subcommand.mut_args(named))
}
