//! `perfconv completions`: what makes a shell complete the command line, made of its definition.

use std::io::Write;

use clap::CommandFactory;

use super::print;
use crate::cli::{Cli, CompletionsArgs};
use crate::error::Result;

/// Writes the script for a shell.
pub fn run(args: &CompletionsArgs, out: &mut dyn Write) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "perfconv", &mut script);
    print(out, &String::from_utf8_lossy(&script))
}
