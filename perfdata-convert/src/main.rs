//! The `perfconv` command.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;
use perfdata_convert::cli::Cli;
use perfdata_convert::{cmd, interrupt};

/// Bytes of a report that are gathered before they go to standard output.
const BLOCK: usize = 1 << 16;

fn main() -> ExitCode {
    interrupt::watch();
    let mut out = BufWriter::with_capacity(BLOCK, std::io::stdout());
    match cmd::run(Cli::parse(), &mut out) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(e) if e.is_broken_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            // What was found before the error is worth showing, and a report that cannot be shown is lost anyway.
            let _ = out.flush();
            eprintln!("perfconv: {e}");
            ExitCode::from(e.exit_code())
        }
    }
}
