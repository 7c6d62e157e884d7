//! The `perfconv` command.

use std::process::ExitCode;

use clap::Parser;
use perfdata_convert::cli::Cli;
use perfdata_convert::{cmd, interrupt};

fn main() -> ExitCode {
    interrupt::watch();
    match cmd::run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.is_broken_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("perfconv: {e}");
            ExitCode::from(e.exit_code())
        }
    }
}
