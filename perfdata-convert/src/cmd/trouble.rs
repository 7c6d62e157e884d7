//! What is said when a command fails: what is wrong, where, and the command that leads on if there is one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use perfdata_core::error::Problem;
use perfdata_core::header::Magic;

use crate::advice;
use crate::cli::{Cli, limits, nearest_command};
use crate::error::{Error, Step};
use crate::io::Input;
use crate::messages::Messages;
use crate::shell;

/// Programs that make a stream of a compressed file, by the first bytes of the file.
const PACKED: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "zcat"),
    (b"\xfd7zXZ\0", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstdcat"),
    (b"BZh", "bzcat"),
    (b"\x04\x22\x4d\x18", "lz4cat"),
];
/// Other things that are taken for recordings.
const OTHERS: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF file: a program, library or core"),
    (b"{", "text in JSON; perfconv reads what perf record writes"),
    (b"PK\x03\x04", "a ZIP archive; a recording may be in it"),
];
/// Bytes by which a file is judged.
const SNIFF: u64 = 512;

/// A command line, for what to say when it fails.
pub struct Given {
    words: Vec<OsString>,
    input: Option<PathBuf>,
}

impl Given {
    /// The command line `args`, without the program's name, and what it means.
    pub fn new(args: impl IntoIterator<Item = OsString>, cli: &Cli) -> Self {
        Given { words: args.into_iter().collect(), input: cli.input().map(Path::to_owned) }
    }

    /// Says what is wrong, and what to do about it.
    pub fn explain(&self, error: &Error, messages: Messages) {
        match &self.input {
            Some(input) if error.exit_code() == 1 || error.of_input().is_some() => {
                messages.error(format_args!("{}: {error}", shown(input)))
            }
            _ => messages.error(error),
        }
        let (note, next) = self.beyond(error);
        if let Some(note) = note {
            messages.note(note);
        }
        if let Some(command) = next {
            messages.next(command);
        }
    }

    /// What else is known of the trouble, and a command that leads past it.
    fn beyond(&self, error: &Error) -> (Option<String>, Option<String>) {
        match (error.step(), &self.input) {
            (Some(Step::Add(options)), _) => return (None, self.with(options)),
            (Some(Step::Recover), Some(input)) => return (None, Some(advice::recover(input))),
            _ => {}
        }
        match (error, &self.input) {
            (Error::Io { source, path }, _) if source.kind() == io::ErrorKind::NotFound && self.is_only(path) => {
                let near = path.to_str().and_then(nearest_command);
                (None, near.map(|name| format!("perfconv {name} -h")))
            }
            (Error::Io { source, path }, Some(input))
                if source.kind() == io::ErrorKind::PermissionDenied && path == input =>
            {
                (None, Some(format!("sudo cat {} | {}", shell::word(input), self.command(Some(input)))))
            }
            (_, Some(input)) => match error.of_input().map(perfdata_core::Error::problem) {
                Some(Problem::Io(_)) | None => (None, None),
                Some(&Problem::Limit { name, limit, found }) => {
                    (None, Some(self.granting(name, limits::beyond(name, limit, found))))
                }
                Some(Problem::Invalid { found, .. }) if found == NOTHING => (Some(empty(input)), None),
                Some(_) => self.look_at(input),
            },
            _ => (None, None),
        }
    }

    /// Whether the command line is nothing but `path`.
    fn is_only(&self, path: &Path) -> bool {
        matches!(&self.words[..], [word] if word == path.as_os_str())
    }

    /// The command line with more options, unless it has one of them already.
    fn with(&self, options: &str) -> Option<String> {
        let option = options.split(' ').next().unwrap_or(options);
        let known = self.words.iter().any(|word| word == option);
        (!known).then(|| format!("{} {options}", self.command(None)))
    }

    /// The command line with another `limit` in place of the one that it may have.
    fn granting(&self, name: &str, limit: u64) -> String {
        let option = format!("--{name}");
        let mut words = Vec::new();
        let mut all = self.words.iter();
        while let Some(word) = all.next() {
            if word.to_str() == Some(&option) {
                all.next();
            } else if !word.to_str().is_some_and(|word| word.starts_with(&format!("{option}="))) {
                words.push(word.clone());
            }
        }
        let rest = Given { words, input: None };
        format!("{} {option} {limit}", rest.command(None))
    }

    /// What an input is that could not be read as a recording.
    fn look_at(&self, input: &Path) -> (Option<String>, Option<String>) {
        let mut first = Vec::new();
        let Ok(file) = File::open(input) else { return (None, None) };
        // A device or FIFO may have no end, and a directory has no bytes.
        if !file.metadata().is_ok_and(|meta| meta.is_file()) || file.take(SNIFF).read_to_end(&mut first).is_err() {
            return (None, None);
        }
        let name = shown(input);
        if let Some((_, program)) = PACKED.iter().find(|(start, _)| first.starts_with(start)) {
            let command = format!("{program} {} | {}", shell::word(input), self.command(Some(input)));
            return (Some(format!("{name} is a compressed file")), Some(command));
        }
        let other = OTHERS.iter().find(|(start, _)| first.starts_with(start)).map(|(_, what)| *what);
        let is_text = || std::str::from_utf8(&first).is_ok_and(|text| !text.contains('\0'));
        let what = match other {
            Some(what) => what,
            // The trouble is in the records: there may be more of it.
            None if Input::open(input).and_then(Input::reader).is_ok() => {
                return (None, Some(format!("perfconv verify {}", shell::word(input))));
            }
            None if Magic::recognise(&first).is_some() => return (None, None),
            None if is_text() => "text; perfconv reads what perf record writes, not what perf script makes of it",
            None => return (None, None),
        };
        (Some(format!("{name} is {what}")), None)
    }

    /// The command once more; `-` in place of the input that now comes from elsewhere.
    fn command(&self, piped: Option<&Path>) -> String {
        let words = self.words.iter().map(|word| match piped {
            Some(input) if word == input.as_os_str() => "-".into(),
            _ => shell::quoted(word),
        });
        ["perfconv".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// What an error says that it found in an empty file.
const NOTHING: &str = "\"\"";

/// What there is to say of an empty input.
fn empty(input: &Path) -> String {
    let data = if input.is_dir() { "'s data" } else { "" };
    format!("{}{data} is empty: perf record wrote nothing, or is still at work", shown(input))
}

/// The name of an input in a message.
fn shown(input: &Path) -> String {
    if input == OsStr::new("-") { "standard input".into() } else { input.display().to_string() }
}
