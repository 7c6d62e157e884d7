//! The `perfconv` command.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use perfdata_convert::cli::Cli;
use perfdata_convert::cmd::trouble::Given;
use perfdata_convert::messages::Messages;
use perfdata_convert::{cmd, interrupt};

/// Bytes of a report that are gathered before they go to standard output.
const BLOCK: usize = 1 << 16;

fn main() -> ExitCode {
    interrupt::watch();
    let mut out = BufWriter::with_capacity(BLOCK, std::io::stdout());
    let cli = Cli::from_args(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let given = Given::new(std::env::args_os().skip(1), &cli);
    let messages = Messages::from(cli.messages);
    match cmd::run(cli, &mut out) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(e) if e.is_broken_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            // What was found before the error is worth showing, and a report that cannot be shown is lost anyway.
            let _ = out.flush();
            given.explain(&e, messages);
            ExitCode::from(e.exit_code())
        }
    }
}
