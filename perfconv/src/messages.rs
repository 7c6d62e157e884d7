//! What is said on standard error, by how much the user wants to hear.

use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};

/// How much is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors.
    Quiet,
    /// Warnings, notes and what was done, too.
    #[default]
    Normal,
    /// What was read and what was written, too.
    Verbose,
    /// All there is.
    All,
}

/// Speaks to the user. Colours are for terminals, and for those who did not set `NO_COLOR`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Messages {
    /// How much is said.
    pub verbosity: Verbosity,
}

impl Messages {
    /// Why the command failed: always said.
    pub fn error(self, text: impl Display) {
        say("error", AnsiColor::Red, &text);
    }

    /// The command that leads past an error.
    pub fn next(self, command: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            say("try", AnsiColor::Green, &command);
        }
    }

    /// That something is not as it should be.
    pub fn warning(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            say("warning", AnsiColor::Yellow, &text);
        }
    }

    /// What the user should know of the output.
    pub fn note(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            say("note", AnsiColor::Cyan, &text);
        }
    }

    /// What was done.
    pub fn summary(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            write(&format!("perfconv: {}", harmless(&text)));
        }
    }

    /// What cannot wait until [`release`].
    pub fn at_once(self, text: impl Display) {
        if self.verbosity >= Verbosity::Normal {
            write_now(&format!("perfconv: {}", harmless(&text)));
        }
    }

    /// More about what was done.
    pub fn detail(self, text: impl Display) {
        if self.verbosity >= Verbosity::Verbose {
            write(&format!("perfconv: {}", harmless(&text)));
        }
    }
}

/// What is said while something else has the terminal.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn held<T>(change: impl FnOnce(&mut Option<Vec<String>>) -> T) -> T {
    change(&mut HELD.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps what is said from now on until [`release`].
pub fn hold() {
    held(|held| *held = Some(Vec::new()));
}

/// Says what was kept, and all else at once again.
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
    // Where standard error takes nothing, a closed terminal for instance, nobody hears of it, and the work goes on.
    let _ = writeln!(anstream::stderr(), "{line}");
}

fn say(word: &str, color: AnsiColor, text: &dyn Display) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    write(&format!("perfconv: {style}{word}:{style:#} {}", harmless(text)));
}

/// The text without what a terminal would obey, or show elsewhere than where it stands: names of files are in it, and
/// those of a directory come with it.
fn harmless(text: &dyn Display) -> String {
    let mut shown = String::new();
    for c in text.to_string().chars() {
        if c == '\n' || c == ' ' || c.is_ascii_graphic() { shown.push(c) } else { shown.extend(c.escape_debug()) }
    }
    shown
}
