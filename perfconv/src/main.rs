//! The `perfconv` command.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use perfconv::cli::Cli;
use perfconv::cmd::diagnostics::{Given, exit_code};
use perfconv::cmd::{self, signals, system};
use perfconv::messages::Messages;
use perfdata_convert::{Error, Result, interrupt};

/// Size of the buffer for standard output in bytes.
const BLOCK: usize = 1 << 16;

fn main() -> ExitCode {
    let cli = match Cli::from_args(std::env::args_os()) {
        Ok(cli) => cli,
        Err(said) => return explain(&said),
    };
    let given = Given::new(&cli);
    let messages = Messages::from(cli.messages);
    signals::watch(messages);
    match report(|out| cmd::run_paged(cli, out)) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(e) if e.is_broken_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            // A signal that ends the process may have removed the temporary file whose absence is
            // the error: then this waits for the end.
            interrupt::undisturbed(|| ());
            given.explain(&e, messages);
            ExitCode::from(exit_code(&e))
        }
    }
}

/// Calls `write` with standard output, and checks that the complete report was written.
fn report<T>(write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let failed = || Error::io("standard output");
    let out = system::stdout().map_err(failed())?;
    let mut out = BufWriter::with_capacity(BLOCK, out);
    let result = write(&mut out);
    // Output before an error is useful. The error is more important than a failure to write the
    // report.
    let flushed = out.flush().map_err(failed());
    let result = result?;
    flushed?;
    Ok(result)
}

/// Prints the requested help or version, or the error in the command line.
fn explain(said: &clap::Error) -> ExitCode {
    if said.use_stderr() {
        let _ = said.print();
        return ExitCode::from(2);
    }
    let text = match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => said.render().to_string(),
        _ => said.render().ansi().to_string(),
    };
    match report(|out| {
        out.write_all(text.as_bytes())
            .map_err(Error::io("standard output"))
    }) {
        Err(e) if !e.is_broken_pipe() => {
            Messages::default().error(&e);
            ExitCode::from(exit_code(&e))
        }
        _ => ExitCode::SUCCESS,
    }
}
