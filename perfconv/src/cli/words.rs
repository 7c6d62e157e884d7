//! Command lines as people type them who come from perf or zstd: what is meant, or what would have to be written.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};

use super::Cli;
use perfdata_convert::shell;
use perfdata_convert::suggest;

/// The subcommand that is nearly called `name`.
pub fn nearest_command(name: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    suggest::nearest(name, names).map(str::to_owned)
}

/// The words of `args` with each value that stands behind an option which takes it only with `=` joined to that:
/// `--compress 5` is meant as `--compress=5`.
///
/// # Errors
/// There is a file of that name, so that it may be the input.
pub(super) fn with_values(command: &mut Command, args: &[OsString]) -> Result<Vec<OsString>, clap::Error> {
    let mut joined: Vec<OsString> = Vec::with_capacity(args.len());
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        joined.push(word.clone());
        if word == "--" {
            break;
        }
        let Some(next) = rest.as_slice().first().and_then(|next| next.to_str()) else { continue };
        if !word.to_str().is_some_and(|word| takes_joined(command, word, next)) {
            continue;
        }
        let option = word.to_string_lossy();
        if Path::new(next).exists() {
            let what =
                format!("'{option} {next}' has two meanings: '{option}={next}' is the value, './{next}' the file");
            return Err(command.error(ErrorKind::ArgumentConflict, what));
        }
        rest.next();
        joined.pop();
        joined.push(format!("{option}={next}").into());
    }
    joined.extend(rest.cloned());
    Ok(joined)
}

/// Whether `word` is an option which takes a value only with `=`, and `next` looks like one.
fn takes_joined(command: &Command, word: &str, next: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else { return false };
    let commands = [command].into_iter().chain(command.get_subcommands());
    let mut options = commands.flat_map(Command::get_arguments);
    let Some(option) = options.find(|arg| arg.is_require_equals_set() && arg.get_long() == Some(name)) else {
        return false;
    };
    let values = option.get_possible_values();
    match values.is_empty() {
        true => !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit()),
        false => values.iter().any(|value| value.matches(next, false)),
    }
}

/// The error with what was meant, where that can be told.
pub(super) fn explained(command: &mut Command, args: &[OsString], error: clap::Error) -> clap::Error {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return error;
    }
    if let Some(word) = first_word(args).filter(|word| !is_command(command, word) && is_nothing(Path::new(word))) {
        return no_such(command, Path::new(word));
    }
    unexpected(command, args, error)
}

/// The word in front, behind options that are for all commands.
fn first_word(args: &[OsString]) -> Option<&OsStr> {
    let is_general = |word: &&OsString| {
        word.to_str().is_some_and(|word| matches!(word, "-q" | "--quiet" | "-v" | "-vv" | "--verbose" | "--no-pager"))
    };
    let word = args.iter().skip(1).find(|word| !is_general(word))?;
    (!word.as_encoded_bytes().starts_with(b"-")).then_some(word)
}

fn is_command(command: &Command, word: &OsStr) -> bool {
    word == "help" || command.find_subcommand(word).is_some()
}

/// Whether `path` is a plain word, as the names of commands are, and no file either.
fn is_nothing(path: &Path) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let word = path.as_os_str().as_encoded_bytes();
    word != b"-" && word.iter().all(is_plain) && path.symlink_metadata().is_err()
}

/// The error about a word in front that is neither a command nor a file.
fn no_such(command: &mut Command, word: &Path) -> clap::Error {
    let near = word.to_str().and_then(nearest_command);
    let tip = near.map(|near| format!("\n\n  tip: a similar command exists: '{near}'")).unwrap_or_default();
    command.error(ErrorKind::InvalidSubcommand, format!("no command or file {}{tip}", quoted(word)))
}

/// An error about a second recording, which was to be the output.
fn unexpected(command: &Command, args: &[OsString], mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(stray)) = error.get(ContextKind::InvalidArg) else { return error };
    let writes =
        |name: &OsStr| command.find_subcommand(name).is_some_and(|command| command.get_arguments().any(is_output));
    let has_output = args.iter().any(|word| word == "-o" || word.as_encoded_bytes().starts_with(b"--output"));
    let is_output = error.kind() == ErrorKind::UnknownArgument
        && !stray.starts_with('-')
        && !has_output
        && first_word(args).is_some_and(writes);
    if is_output {
        let tip = StyledStr::from(output_tip(Path::new(stray)));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn is_output(arg: &Arg) -> bool {
    arg.get_id() == "output"
}

fn output_tip(path: &Path) -> String {
    format!("'-o {}' names the output", shell::word(path))
}

/// Checks the inputs of a command line without a command: `converts` if it asks for a conversion, and `has_output` if
/// it says where the result goes.
///
/// # Errors
/// The first is neither a file nor a command, or the second is not what is meant.
pub(super) fn check(
    command: &mut Command,
    inputs: &[PathBuf],
    converts: bool,
    has_output: bool,
) -> Result<(), clap::Error> {
    let [first, rest @ ..] = inputs else { return Ok(()) };
    if is_nothing(first) {
        return Err(no_such(command, first));
    }
    let exists = |path: &Path| path.as_os_str() == "-" || path.symlink_metadata().is_ok();
    let stray = match rest {
        [second, ..] if converts => second,
        [second] if exists(first) && !exists(second) => second,
        _ => return Ok(()),
    };
    let (what, tip) = match converts {
        true => (format!("one recording is converted at a time, and {} is another", quoted(stray)), !has_output),
        false => (format!("there is no file {}", quoted(stray)), true),
    };
    let tip = if tip { format!("\n\n  tip: {}", output_tip(stray)) } else { String::new() };
    Err(command.error(ErrorKind::TooManyValues, format!("{what}{tip}")))
}

/// A name in a message.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().escape_debug())
}
