//! What is said on standard error, by how much the user wants to hear.

use std::fmt::Display;

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
            anstream::eprintln!("perfconv: {}", harmless(&text));
        }
    }

    /// More about what was done.
    pub fn detail(self, text: impl Display) {
        if self.verbosity >= Verbosity::Verbose {
            anstream::eprintln!("perfconv: {}", harmless(&text));
        }
    }
}

fn say(word: &str, color: AnsiColor, text: &dyn Display) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    anstream::eprintln!("perfconv: {style}{word}:{style:#} {}", harmless(text));
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
