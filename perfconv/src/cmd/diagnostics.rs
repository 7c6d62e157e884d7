//! Error messages: what is wrong, where, and the command that solves the problem, if there is one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use perfdata_core::error::Problem;
use perfdata_core::header::Magic;

use crate::cli::{Cli, limits};
use crate::messages::Messages;
use crate::suggestions;
use perfdata_convert::error::{Error, Step};
use perfdata_convert::foreign::{self, Foreign};
use perfdata_convert::io::Input;
use perfdata_convert::stages::swap::Unknown;
use perfdata_convert::support::shell;

/// A command line, for messages about its errors.
pub struct Given {
    words: Vec<OsString>,
    input: Option<PathBuf>,
}

impl Given {
    /// Returns the command line of `cli`.
    pub fn new(cli: &Cli) -> Self {
        let input = match cli.inputs() {
            Some([input]) => Some(input.clone()),
            _ => None,
        };
        Given {
            words: cli.words.clone(),
            input,
        }
    }

    /// Writes the error and a suggestion.
    pub fn explain(&self, error: &Error, messages: Messages) {
        self.explain_of(self.input.as_deref(), error, messages);
    }

    /// Writes the error about one of several inputs, and a suggestion.
    pub(super) fn explain_of(&self, input: Option<&Path>, error: &Error, messages: Messages) {
        let solution = error
            .step()
            .and_then(solution)
            .map_or_else(String::new, |solution| format!("; {solution}"));
        match input {
            Some(input) if error.is_refusal() || error.of_input().is_some() => {
                messages.error(format_args!("{}: {error}{solution}", shown(input)))
            }
            _ => messages.error(format_args!("{error}{solution}")),
        }
        let (note, next) = self.beyond(error, input);
        if let Some(note) = note {
            messages.note(note);
        }
        if let Some(command) = next {
            messages.next(command);
        }
    }

    /// Returns further information about the error, and a command that solves the problem.
    fn beyond(&self, error: &Error, input: Option<&Path>) -> (Option<String>, Option<String>) {
        match error {
            Error::Compared { path, source } | Error::Merged { path, source } => {
                return self.beyond(source, Some(path));
            }
            Error::Unrecognised {
                foreign: Foreign { what, unpack, .. },
                ..
            } => {
                let name = input.map_or_else(|| "the input".to_owned(), shown);
                let way_out = unpack
                    .map(|unpack| format!("; decompress it with {unpack} and pipe it to perfconv"));
                return (
                    Some(format!("{name} is {what}{}", way_out.unwrap_or_default())),
                    None,
                );
            }
            _ => {}
        }
        match (error.step(), input) {
            (Some(Step::Recover), Some(input)) => return (None, Some(suggestions::recover(input))),
            (Some(step), _) if options(step).is_some() => {
                return (None, options(step).and_then(|options| self.with(&options)));
            }
            _ => {}
        }
        match (error, input) {
            (Error::Io { source, path }, Some(input))
                if source.kind() == io::ErrorKind::PermissionDenied && path == input =>
            {
                (
                    None,
                    Some(format!(
                        "sudo cat {} | {}",
                        shell::word(input),
                        self.command(Some(input))
                    )),
                )
            }
            (_, Some(input)) => match error.of_input().map(perfdata_core::Error::problem) {
                Some(Problem::Io(_)) | None => (None, None),
                Some(&Problem::Limit { name, limit, found }) => (
                    None,
                    Some(self.granting(name, limits::beyond(name, limit, found))),
                ),
                Some(Problem::Truncated { available: 0, .. }) if is_at_start(error) => {
                    (Some(empty(input)), None)
                }
                Some(_) => self.look_at(input),
            },
            _ => (None, None),
        }
    }

    /// Returns the command line with more options, unless it already has one of them.
    fn with(&self, options: &str) -> Option<String> {
        let option = options.split(' ').next().unwrap_or(options);
        let known = self.words.iter().any(|word| word == option);
        (!known).then(|| format!("{} {options}", self.command(None)))
    }

    /// Returns the command line with `limit` as the new value of the option `name`.
    fn granting(&self, name: &str, limit: u64) -> String {
        let option = format!("--{name}");
        let mut words = Vec::new();
        let mut all = self.words.iter();
        while let Some(word) = all.next() {
            if word.to_str() == Some(&option) {
                all.next();
            } else if !word
                .to_str()
                .is_some_and(|word| word.starts_with(&format!("{option}=")))
            {
                words.push(word.clone());
            }
        }
        let rest = Given { words, input: None };
        format!("{} {option} {limit}", rest.command(None))
    }

    /// Describes an input that could not be read as a recording.
    fn look_at(&self, input: &Path) -> (Option<String>, Option<String>) {
        let mut first = Vec::new();
        let Ok(file) = File::open(input) else {
            return (None, None);
        };
        // A device or FIFO may be endless, and a directory has no bytes.
        if !file.metadata().is_ok_and(|meta| meta.is_file())
            || file
                .take(foreign::SNIFF as u64)
                .read_to_end(&mut first)
                .is_err()
        {
            return (None, None);
        }
        if Magic::recognise(&first).is_some() {
            // The error is in the records: there may be more errors.
            let is_open = Input::open(input).and_then(Input::reader).is_ok();
            return (
                None,
                is_open.then(|| format!("perfconv verify {}", shell::word(input))),
            );
        }
        let Some(Foreign { what, unpack, .. }) = foreign::recognise(&first) else {
            return (None, None);
        };
        let note = format!("{} is {what}", shown(input));
        (
            Some(note),
            unpack.map(|unpack| {
                format!(
                    "{unpack} {} | {}",
                    shell::word(input),
                    self.command(Some(input))
                )
            }),
        )
    }

    /// Returns the command again, with `-` instead of the input if it is piped.
    fn command(&self, piped: Option<&Path>) -> String {
        let words = self.words.iter().map(|word| match piped {
            Some(input) => match naming(word, input) {
                Some(option) => format!("{option}-"),
                None => shell::quoted(word),
            },
            None => shell::quoted(word),
        });
        ["perfconv".to_owned()]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns the options for a solution.
fn options(step: &Step) -> Option<String> {
    match step {
        Step::Overwrite => Some("--force".into()),
        Step::DropFeature(id) => Some(format!("--drop {id}")),
        Step::Decide(Unknown::Keep) => Some("--unknown keep".into()),
        Step::Decide(Unknown::Drop) => Some("--unknown drop".into()),
        Step::Decompress => Some("--decompress".into()),
        Step::MergeDeferred => Some("--merge-deferred".into()),
        Step::RebaseKernel => Some("--rebase-kernel".into()),
        Step::Other(options) => Some(options.clone()),
        _ => None,
    }
}

/// Returns the solution as a part of the message.
fn solution(step: &Step) -> Option<String> {
    let option = options(step).unwrap_or_default();
    Some(match step {
        Step::Overwrite => format!("{option} overwrites it"),
        Step::DropFeature(_) | Step::Decide(Unknown::Drop) => format!("{option} drops it"),
        Step::SetBytes(id) => format!("--set-raw {id}=FILE sets its bytes"),
        Step::Decide(_) => "use --unknown keep or --unknown drop".into(),
        Step::Decompress => format!("use {option}"),
        Step::RebaseKernel => format!("{option} moves it to one address"),
        Step::JitClockOffset => "or name the difference with --jit-clock-offset".into(),
        Step::InOrder => "use --align wall or --align after".into(),
        _ => return None,
    })
}

/// Returns the exit status after an error: 1 if the content of the input is the reason; 2 for the
/// command line and the operating system.
pub fn exit_code(error: &Error) -> u8 {
    if error.is_refusal() { 1 } else { 2 }
}

/// Returns the part of a word before the name of `input`: empty, or an option. Returns `None` if
/// the word does not name the input.
fn naming(word: &OsStr, input: &Path) -> Option<&'static str> {
    let rest = |option: &str| word.as_encoded_bytes().strip_prefix(option.as_bytes());
    ["", "-i", "--input="]
        .into_iter()
        .find(|option| rest(option) == Some(input.as_os_str().as_encoded_bytes()))
}

/// Returns whether the error is at the first byte of the input.
fn is_at_start(error: &Error) -> bool {
    error
        .of_input()
        .is_some_and(|error| error.offset() == Some(0))
}

/// Returns the message about an empty input.
fn empty(input: &Path) -> String {
    let data = if input.is_dir() { "'s data" } else { "" };
    format!(
        "{}{data} is empty: perf record wrote nothing, or is still running",
        shown(input)
    )
}

/// Returns the name of an input for messages.
fn shown(input: &Path) -> String {
    if input == OsStr::new("-") {
        "standard input".into()
    } else {
        input.display().to_string()
    }
}
