//! A whole run of the command, from its arguments to its exit status.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};
use perfdata_convert::{Error, Result, interrupt};

use crate::cli::Cli;
use crate::cmd::diagnostics::{Given, exit_code};
use crate::cmd::{self, signals, system};
use crate::messages::Messages;

/// Size of the buffer for standard output in bytes.
const BLOCK: usize = 1 << 16;

/// Runs the command with `args`, which begin with the name of the program. Handles the signals of the
/// process, and writes to its standard output and error. Returns the exit status.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    // The standard library knows no folder of temporary files there.
    #[cfg(target_os = "wasi")]
    let _ = tempfile::env::override_temp_dir(std::path::Path::new("/tmp"));
    let cli = match Cli::from_args(args) {
        Ok(cli) => cli,
        Err(said) => return explain(&said),
    };
    let given = Given::new(&cli);
    let messages = Messages::from(cli.messages);
    signals::watch(messages);
    match report(|out| cmd::run_paged(cli, out)) {
        Ok(outcome) => outcome.exit_code(),
        Err(e) if e.is_broken_pipe() => 0,
        Err(e) => {
            // A signal that ends the process may have removed the temporary file whose absence is
            // the error: then this waits for the end.
            interrupt::undisturbed(|| ());
            given.explain(&e, messages);
            exit_code(&e)
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
fn explain(said: &clap::Error) -> u8 {
    if said.use_stderr() {
        let _ = said.print();
        return 2;
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
            exit_code(&e)
        }
        _ => 0,
    }
}
