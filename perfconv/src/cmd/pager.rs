//! Long reports, a screen at a time: on a terminal they go through a pager, as those of git do.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::messages;

/// The pager if none is named, and what it does then: quit where one screen is enough, obey colours, and leave the text
/// on the screen.
const LESS: &str = "less";
const OPTIONS: &str = "FRX";

/// Bytes of a report that are gathered before they go to the pager.
const BLOCK: usize = 1 << 16;

/// Whether a pager has the terminal.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Whether a pager has the terminal, and gets what is typed there: Ctrl-C is its business.
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Relaxed)
}

/// Has `write` write a report through a pager, where a person reads it; messages come behind it. The pager starts with
/// the first byte: where there is nothing to read there is none.
pub(super) fn paged<T>(write: impl FnOnce(&mut dyn Write) -> T) -> T {
    messages::hold();
    let mut out = BufWriter::with_capacity(BLOCK, Pager::Waiting);
    let result = write(&mut out);
    // A report that nobody wants to read on is no error.
    let _ = out.flush();
    drop(out);
    messages::release();
    result
}

/// Whether somebody reads what goes to standard output on a terminal that a pager can fill.
pub(super) fn is_of_use() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    let is_none = pager().is_some_and(|pager| pager.is_empty() || pager == "cat");
    io::stdout().is_terminal() && !is_dumb && !is_none
}

/// The pager that the user wants.
fn pager() -> Option<OsString> {
    env::var_os("PAGER")
}

enum Pager {
    /// Nothing was written yet.
    Waiting,
    Open(Child),
    /// There is none.
    Missing(Stdout),
}

impl Pager {
    fn start() -> Self {
        let mut command = match pager() {
            Some(pager) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(pager);
                shell
            }
            None => Command::new(LESS),
        };
        if env::var_os("LESS").is_none() {
            command.env("LESS", OPTIONS);
        }
        // Before it runs: a signal may come with its first instruction.
        IS_OPEN.store(true, Ordering::Relaxed);
        match command.stdin(Stdio::piped()).spawn() {
            Ok(child) => Pager::Open(child),
            Err(_) => {
                IS_OPEN.store(false, Ordering::Relaxed);
                Pager::Missing(io::stdout())
            }
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Pager::Waiting = self {
            *self = Pager::start();
        }
        match self {
            Pager::Open(child) => child.stdin.as_mut().map_or(Ok(bytes.len()), |pipe| pipe.write(bytes)),
            Pager::Missing(stdout) => stdout.write(bytes),
            Pager::Waiting => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Pager::Open(child) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
            Pager::Missing(stdout) => stdout.flush(),
            Pager::Waiting => Ok(()),
        }
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        if let Pager::Open(child) = self {
            drop(child.stdin.take());
            // Who reads decides when it is over.
            let _ = child.wait();
            IS_OPEN.store(false, Ordering::Relaxed);
        }
    }
}
