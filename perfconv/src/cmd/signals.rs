//! What signals do to a command.
//!
//! One that ends programs removes what is temporary first. But where the input is a stream, the first Ctrl-C, SIGTERM or
//! SIGHUP goes to who writes the stream, too: it is read to its end then, and the output becomes complete. The second
//! one ends the command. What the process was told to ignore when it was started (`nohup`, a job in the background of
//! a script) it ignores.

use std::ffi::c_int;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGSYS, SIGTERM, SIGTRAP, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::{pager, system};
use crate::messages::Messages;
use perfdata_convert::interrupt;

use crate::progress;

/// Those that let a stream come to its end first.
const ASKING: [c_int; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The others that end a process which does not know them. Those of a fault in the program (SIGSEGV and the like)
/// cannot wait.
const ENDING: [c_int; 11] =
    [SIGQUIT, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGXCPU, SIGIO, SIGABRT, SIGSYS, SIGTRAP];

/// How soon a signal comes again that was sent twice for one reason: by `timeout`, to the process and to its group.
const AGAIN: Duration = Duration::from_millis(50);

/// The same of signals that nobody types: when a terminal is closed, its shell sends SIGHUP, and then the system does;
/// at the end of a session SIGTERM and SIGHUP come.
const AGAIN_BY_SYSTEM: Duration = Duration::from_millis(250);

/// How long something on a terminal may take that does not take what is written.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whether the input is a stream.
static STREAMS: AtomicBool = AtomicBool::new(false);

/// Without a thread that waits for signals: whether the next one ends the process.
static NEXT_ENDS: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on the input is a stream, which the first signal lets come to its end.
pub fn stream_begins() {
    STREAMS.store(true, Ordering::Relaxed);
    if let Some(ends) = NEXT_ENDS.get() {
        ends.store(false, Ordering::Relaxed);
    }
}

/// Does with signals from now on what this page says. On a thread of its own: the others may wait for input that never
/// comes.
pub fn watch(messages: Messages) {
    let known = |signal: &c_int| !system::is_ignored(*signal);
    if known(&SIGXFSZ) {
        // Who writes more than a file may have gets an error then.
        let _ = flag::register(SIGXFSZ, Arc::default());
    }
    let all = ASKING.into_iter().chain(ENDING).chain(system::other_ending_signals());
    let all: Vec<c_int> = all.filter(known).collect();
    // Signals that were caught for a thread which then cannot be started would have no effect any more.
    let (send, receive) = channel();
    let thread = thread::Builder::new().spawn(move || {
        if let Ok(signals) = receive.recv() {
            wait_for(signals, messages);
        }
    });
    match thread.and_then(|_| Signals::new(&all)) {
        Ok(signals) => drop(send.send(signals)),
        Err(_) => watch_alone(known),
    }
}

/// The same without a thread: a signal that ends the process leaves what is temporary and has a name.
fn watch_alone(known: impl Fn(&c_int) -> bool) {
    let ends = NEXT_ENDS.get_or_init(|| Arc::new(AtomicBool::new(!STREAMS.load(Ordering::Relaxed))));
    for signal in ASKING.into_iter().filter(known) {
        // In this order: the first one is let pass, and says that the next one is not.
        let _ = flag::register_conditional_default(signal, ends.clone());
        let _ = flag::register(signal, ends.clone());
    }
}

fn wait_for(mut signals: Signals, messages: Messages) {
    let mut first: Option<Instant> = None;
    for signal in signals.forever() {
        if signal == SIGINT && pager::is_open() {
            continue;
        }
        if ASKING.contains(&signal) && STREAMS.load(Ordering::Relaxed) {
            let again = if signal == SIGINT { AGAIN } else { AGAIN_BY_SYSTEM };
            match first {
                None => {
                    first = Some(Instant::now());
                    if io::stderr().is_terminal() {
                        let what = "finishing; press Ctrl-C again to abort";
                        // Until a pager shows the report, the terminal is free.
                        let say =
                            move || if pager::is_open() { messages.summary(what) } else { messages.at_once(what) };
                        aside(move || progress::without_bar(say));
                    }
                    continue;
                }
                Some(at) if at.elapsed() < again => continue,
                Some(_) => {}
            }
        }
        interrupt::end(|| {
            aside(progress::clear);
            system::end_by(signal)
        });
    }
}

/// Does something on the terminal, and does not wait for one that takes nothing.
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
