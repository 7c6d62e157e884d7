//! Shows long reports on a terminal through a pager, like git.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::messages;

/// The default pager, and its default options: quit if the text fits on one screen, show colours,
/// and leave the text on the screen.
const LESS: &str = "less";
const OPTIONS: &str = "FRX";

/// Size of the buffer for the pager's input in bytes.
const BLOCK: usize = 1 << 16;

/// Whether a pager uses the terminal.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Returns whether a pager uses the terminal, and receives its input: the pager handles Ctrl-C.
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Relaxed)
}

/// Calls `write` with the input of a pager, and writes messages afterwards. The pager starts with
/// the first byte, so an empty report starts none.
pub(super) fn paged<T>(write: impl FnOnce(&mut dyn Write) -> T) -> T {
    messages::hold();
    let mut out = BufWriter::with_capacity(BLOCK, Pager::Waiting);
    let result = write(&mut out);
    // It is not an error if the user quits the pager early.
    let _ = out.flush();
    drop(out);
    messages::release();
    result
}

/// Returns whether standard output is a terminal on which a pager works.
pub(super) fn is_of_use() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    let is_none = pager().is_some_and(|pager| pager.is_empty() || pager == "cat");
    io::stdout().is_terminal() && !is_dumb && !is_none
}

/// Returns the user's pager.
fn pager() -> Option<OsString> {
    env::var_os("PAGER")
}

enum Pager {
    /// Nothing was written yet.
    Waiting,
    Open(Child),
    /// The pager could not be started.
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
        // Set before the pager runs: a signal may arrive with its first instruction.
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
            Pager::Open(child) => child
                .stdin
                .as_mut()
                .map_or(Ok(bytes.len()), |pipe| pipe.write(bytes)),
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
            // The user decides when to quit the pager.
            let _ = child.wait();
            IS_OPEN.store(false, Ordering::Relaxed);
        }
    }
}
