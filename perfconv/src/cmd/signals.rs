//! The effects of signals on a command.
//!
//! Before a signal ends the process, temporary files are removed. If the input is a stream, the
//! first Ctrl-C, SIGTERM or SIGHUP also goes to the writer of the stream. In this case, the stream
//! is read to its end, and the output becomes complete; the second signal ends the command. Signals
//! that were ignored at the start of the process (`nohup`, a background job of a script) remain
//! ignored.

use std::ffi::c_int;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::{pager, system};
use crate::messages::Messages;
use perfdata_convert::interrupt;

use crate::progress;

/// The signals after which a stream is first read to its end.
const ASKING: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The other signals that end a process by default. Those about errors in the program (SIGSEGV and
/// similar) cannot wait.
const ENDING: [c_int; 11] = [
    SIGQUIT, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGXCPU, SIGIO, SIGABRT, SIGSYS,
    SIGTRAP,
];

/// Maximum time between two signals that were sent for one reason: `timeout` sends one to the
/// process, and one to its group.
const AGAIN: Duration = Duration::from_millis(50);

/// The same for signals that are not from the keyboard. When a terminal is closed, its shell sends
/// SIGHUP, and then the system does. At the end of a session, SIGTERM and SIGHUP arrive.
const AGAIN_BY_SYSTEM: Duration = Duration::from_millis(250);

/// Maximum time for output to a terminal that may block.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether the input is a stream.
static STREAMS: AtomicBool = AtomicBool::new(false);

/// Whether the next signal ends the process; used if there is no thread that waits for signals.
static NEXT_ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Declares that the input is a stream. The first signal then waits for its end.
pub fn stream_begins() {
    STREAMS.store(true, Ordering::Relaxed);
    if let Some(ends) = NEXT_ENDS.get() {
        ends.store(false, Ordering::Relaxed);
    }
}

/// Starts to handle signals as described for this module, on a separate thread: the others may be
/// blocked by input that never arrives.
pub fn watch(messages: Messages<'static>) {
    let known = |signal: &c_int| !system::is_ignored(*signal);
    if known(&SIGXFSZ) {
        // With a handler, exceeding the maximum file size is an error of the write instead of a
        // signal.
        let _ = flag::register(SIGXFSZ, Arc::default());
    }
    let all = ASKING
        .into_iter()
        .chain(ENDING)
        .chain(system::other_ending_signals());
    let all: Vec<c_int> = all.filter(known).collect();
    // If the thread cannot be started, the signals must not be caught: they would have no effect.
    let (send, receive) = channel();
    let thread = thread::Builder::new().spawn(move || {
        if let Ok(signals) = receive.recv() {
            wait_for(signals, messages);
        }
    });
    match thread.and_then(|_| Signals::new(&all)) {
        Ok(signals) => {
            drop(send.send(signals));
        }
        Err(_) => watch_alone(known),
    }
}

/// Handles signals without a thread. A signal that ends the process does not remove temporary files
/// that have names.
fn watch_alone(known: impl Fn(&c_int) -> bool) {
    let ends =
        NEXT_ENDS.get_or_init(|| Arc::new(AtomicBool::new(!STREAMS.load(Ordering::Relaxed))));
    for signal in ASKING.into_iter().filter(known) {
        // In this order, the first signal does not end the process, and sets the flag so that the
        // next one does.
        let _ = flag::register_conditional_default(signal, ends.clone());
        let _ = flag::register(signal, ends.clone());
    }
}

fn wait_for(mut signals: Signals, messages: Messages<'static>) {
    let mut first: Option<Instant> = None;
    for signal in signals.forever() {
        if signal == SIGINT && pager::is_open() {
            continue;
        }
        if ASKING.contains(&signal) && STREAMS.load(Ordering::Relaxed) {
            let again = if signal == SIGINT {
                AGAIN
            } else {
                AGAIN_BY_SYSTEM
            };
            match first {
                None => {
                    first = Some(Instant::now());
                    if io::stderr().is_terminal() {
                        let what = "finishing; press Ctrl-C again to abort";
                        // Until a pager shows the report, the terminal is free.
                        let say = move || {
                            if pager::is_open() {
                                messages.summary(what)
                            } else {
                                messages.at_once(what)
                            }
                        };
                        aside(move || progress::without_bar(say));
                    }
                    continue;
                }
                Some(at) if at.elapsed() < again => continue,
                Some(_) => {}
            }
        }
        interrupt::end(|| {
            clear_terminal();
            system::end_by(signal)
        });
    }
}

/// Removes the progress bar from the terminal, unless that takes long.
fn clear_terminal() {
    aside(progress::clear);
}

/// Runs `work`, which writes to the terminal, but does not wait longer than [`PATIENCE`] if the
/// terminal is blocked.
fn aside(work: impl FnOnce() + Send + 'static) {
    let (done, wait) = sync_channel::<()>(0);
    let work = move || {
        work();
        drop(done);
    };
    if thread::Builder::new().spawn(work).is_ok() {
        let _ = wait.recv_timeout(PATIENCE);
    }
}
