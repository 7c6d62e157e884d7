//! The `perfconv` command.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

use anstream::{AutoStream, ColorChoice};
use perfconv::cli::Cli;
use perfconv::cmd::diagnostics::{Given, exit_code};
use perfconv::cmd::{self, signals};
use perfconv::messages::Messages;
use perfdata_convert::{Error, Result};

/// Bytes of a report that are gathered before they go to standard output.
const BLOCK: usize = 1 << 16;

fn main() -> ExitCode {
    close_what_was_closed();
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
            given.explain(&e, messages);
            ExitCode::from(exit_code(&e))
        }
    }
}

/// Has `write` write a report to standard output, and sees to it that all of it is there.
fn report<T>(write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let failed = || Error::io("standard output");
    // Not by the standard library's own, which says nothing of a descriptor that cannot be written.
    let out = io::stdout().as_fd().try_clone_to_owned().map_err(failed())?;
    let mut out = BufWriter::with_capacity(BLOCK, File::from(out));
    let result = write(&mut out);
    // What was found before an error is worth showing; the error is more important than a report that cannot be shown.
    let flushed = out.flush().map_err(failed());
    let result = result?;
    flushed?;
    Ok(result)
}

/// Prints what the command line asks for, help or the version, or what is wrong with it.
fn explain(said: &clap::Error) -> ExitCode {
    if said.use_stderr() {
        let _ = said.print();
        return ExitCode::from(2);
    }
    let text = match AutoStream::choice(&io::stdout()) {
        ColorChoice::Never => said.render().to_string(),
        _ => said.render().ansi().to_string(),
    };
    match report(|out| out.write_all(text.as_bytes()).map_err(Error::io("standard output"))) {
        Err(e) if !e.is_broken_pipe() => {
            Messages::default().error(&e);
            ExitCode::from(exit_code(&e))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The standard descriptors that were closed when the process was started, each by its bit.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Puts something in the place of standard input and output that cannot be read or written, if they were closed. The
/// standard library has put `/dev/null` there: a recording must not vanish in it.
fn close_what_was_closed() {
    let closed = CLOSED.load(Ordering::Relaxed);
    // Where /dev/null cannot be opened the standard library has not come so far.
    if closed & 1 != 0
        && let Ok(unreadable) = File::options().write(true).open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stdin(unreadable);
    }
    if closed & 2 != 0
        && let Ok(unwritable) = File::open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stdout(unwritable);
    }
}

/// Sees which descriptors are closed, before the standard library does.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: what the C library calls before `main`: functions of this type.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        for fd in 0..3 {
            // SAFETY: this asks for a flag.
            if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
                CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
            }
        }
    }
    look
};
