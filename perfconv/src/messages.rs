//! Messages on standard error, or to the program that runs a command, according to the verbosity
//! that the user wants.

use std::fmt::Display;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use perfdata_convert::io::Watch;

use crate::progress::Progress;

/// The amount of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Also warnings, notes and summaries.
    #[default]
    Normal,
    /// Also the inputs and outputs.
    Verbose,
    /// Everything.
    All,
}

/// The meaning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// The reason of a failure.
    Error,
    /// The command that solves the problem of an error.
    Next,
    /// A problem.
    Warning,
    /// A note about the output.
    Note,
    /// A summary of the finished work.
    Summary,
    /// Details about the finished work.
    Detail,
}

/// A program that runs a command in its own process.
pub trait Host: Sync {
    /// Receives a message, without control characters.
    fn message(&self, kind: MessageKind, text: String);

    /// Returns the observer of all inputs.
    fn watch(&self) -> Arc<dyn Watch>;
}

/// Writes messages to the user. Colours are used on terminals, unless `NO_COLOR` is set.
#[derive(Clone, Copy, Default)]
pub struct Messages<'a> {
    /// The amount of messages.
    pub verbosity: Verbosity,
    /// The program that receives the messages instead of standard error.
    pub host: Option<&'a dyn Host>,
}

impl Messages<'_> {
    /// Writes the reason of a failure, in every case.
    pub fn error(self, text: impl Display) {
        self.say(MessageKind::Error, "error", AnsiColor::Red, &text);
    }

    /// Writes the command that solves the problem of an error.
    pub fn next(self, command: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.say(MessageKind::Next, "try", AnsiColor::Green, &command);
        }
    }

    /// Writes a warning about a problem.
    pub fn warning(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.say(MessageKind::Warning, "warning", AnsiColor::Yellow, &text);
        }
    }

    /// Writes a note about the output.
    pub fn note(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.say(MessageKind::Note, "note", AnsiColor::Cyan, &text);
        }
    }

    /// Writes a summary of the finished work.
    pub fn summary(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            self.tell(MessageKind::Summary, &text);
        }
    }

    /// Writes a message that cannot wait until [`release`].
    pub fn at_once(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            write_now(&format!("perfconv: {}", harmless(&text)));
        }
    }

    /// Writes details about the finished work.
    pub fn detail(self, text: impl Display) {
        if self.verbosity >= Verbosity::Verbose {
            self.tell(MessageKind::Detail, &text);
        }
    }

    /// Returns the observer of the inputs: a progress bar, or that of the host.
    pub fn watch(self) -> Option<Arc<dyn Watch>> {
        match self.host {
            Some(host) => Some(host.watch()),
            None if self.verbosity == Verbosity::Quiet => None,
            None => Some(Progress::new()),
        }
    }

    fn tell(self, kind: MessageKind, text: &dyn Display) {
        match self.host {
            Some(host) => host.message(kind, harmless(text)),
            None => write(&format!("perfconv: {}", harmless(text))),
        }
    }

    fn say(self, kind: MessageKind, word: &str, color: AnsiColor, text: &dyn Display) {
        if let Some(host) = self.host {
            return host.message(kind, harmless(text));
        }
        let style = Style::new().bold().fg_color(Some(color.into()));
        write(&format!(
            "perfconv: {style}{word}:{style:#} {}",
            harmless(text)
        ));
    }
}

/// Messages to write when the terminal is free again.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn held<T>(change: impl FnOnce(&mut Option<Vec<String>>) -> T) -> T {
    change(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Stores messages from now on until [`release`].
pub fn hold() {
    held(|held| *held = Some(Vec::new()));
}

/// Writes the stored messages. Further ones are written immediately.
pub fn release() {
    let lines = held(Option::take);
    lines.into_iter().flatten().for_each(|line| write(&line));
}

/// Writes a line, now or later.
fn write(line: &str) {
    let is_kept = held(|held| match held {
        Some(lines) => {
            lines.push(line.to_owned());
            true
        }
        None => false,
    });
    if !is_kept {
        write_now(line);
    }
}

fn write_now(line: &str) {
    // If standard error cannot be written, for instance on a closed terminal, the message is lost
    // and the work continues.
    let _ = writeln!(anstream::stderr(), "{line}");
}

/// Escapes control characters, and characters that change the position of text. Messages contain
/// names of files, and recordings in directories bring their own file names.
fn harmless(text: &dyn Display) -> String {
    let mut shown = String::new();
    for c in text.to_string().chars() {
        if c == '\n' || c == ' ' || c.is_ascii_graphic() {
            shown.push(c)
        } else {
            shown.extend(c.escape_debug())
        }
    }
    shown
}
