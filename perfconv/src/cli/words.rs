//! Support for command lines in the style of perf or zstd: accepts them, or suggests the correct
//! command line.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};

use super::Cli;
use perfdata_convert::support::shell;
use perfdata_convert::support::suggest;

/// Returns the subcommand with a name similar to `name`.
pub fn nearest_command(name: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    suggest::nearest(name, names).map(str::to_owned)
}

/// The program that pprof runs for a recording: `perf_to_profile -i INPUT -o OUTPUT -f`
/// (google/pprof, internal/driver/fetch.go).
const FOR_PPROF: &str = "perf_to_profile";

/// Its option for mappings of JIT compilers that are not aligned. They need no option here.
const UNALIGNED: &str = "-j";

/// Returns the command line of perfconv if the program was called by another name, such as by a
/// symbolic link.
pub(super) fn of_program(args: Vec<OsString>) -> Vec<OsString> {
    let program = args.first().map(Path::new).and_then(Path::file_name);
    if program != Some(OsStr::new(FOR_PPROF)) {
        return args;
    }
    // pprof reads the file that it created before.
    let words = ["perfconv", "export", "--to", "pprof", "--in-place"].map(OsString::from);
    let rest = args.into_iter().skip(1).filter(|word| word != UNALIGNED);
    words.into_iter().chain(rest).collect()
}

/// Returns the words of `args`, with values joined to options that require `=`: `--compress 5`
/// becomes `--compress=5`.
///
/// # Errors
/// There is a file with the name of the value, which may be the input.
pub(super) fn with_values(
    command: &mut Command,
    args: &[OsString],
) -> Result<Vec<OsString>, clap::Error> {
    let mut joined: Vec<OsString> = Vec::with_capacity(args.len());
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        joined.push(word.clone());
        if word == "--" {
            break;
        }
        let Some(next) = rest.as_slice().first().and_then(|next| next.to_str()) else {
            continue;
        };
        if !word
            .to_str()
            .is_some_and(|word| takes_joined(command, word, next))
        {
            continue;
        }
        let option = word.to_string_lossy();
        if Path::new(next).exists() {
            let what = format!(
                "'{option} {next}' is ambiguous: write '{option}={next}' for the value, or './{next}' for the file"
            );
            return Err(command.error(ErrorKind::ArgumentConflict, what));
        }
        rest.next();
        joined.pop();
        joined.push(format!("{option}={next}").into());
    }
    joined.extend(rest.cloned());
    Ok(joined)
}

/// Returns whether `word` is an option that requires `=` before its value, and `next` looks like
/// such a value.
fn takes_joined(command: &Command, word: &str, next: &str) -> bool {
    let Some(name) = word.strip_prefix("--") else {
        return false;
    };
    let commands = [command].into_iter().chain(command.get_subcommands());
    let mut options = commands.flat_map(Command::get_arguments);
    let Some(option) =
        options.find(|arg| arg.is_require_equals_set() && arg.get_long() == Some(name))
    else {
        return false;
    };
    let values = option.get_possible_values();
    match values.is_empty() {
        true => !next.is_empty() && next.bytes().all(|byte| byte.is_ascii_digit()),
        false => values.iter().any(|value| value.matches(next, false)),
    }
}

/// Returns the error with a suggestion, if there is one.
pub(super) fn explained(
    command: &mut Command,
    args: &[OsString],
    error: clap::Error,
) -> clap::Error {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return error;
    }
    if let Some(word) =
        first_word(args).filter(|word| !is_command(command, word) && is_nothing(Path::new(word)))
    {
        return no_such(command, Path::new(word));
    }
    unexpected(command, args, error)
}

/// Returns the first word after options that apply to all commands.
fn first_word(args: &[OsString]) -> Option<&OsStr> {
    let is_general = |word: &&OsString| {
        word.to_str().is_some_and(|word| {
            matches!(
                word,
                "-q" | "--quiet" | "-v" | "-vv" | "--verbose" | "--no-pager"
            )
        })
    };
    let word = args.iter().skip(1).find(|word| !is_general(word))?;
    (!word.as_encoded_bytes().starts_with(b"-")).then_some(word)
}

fn is_command(command: &Command, word: &OsStr) -> bool {
    word == "help" || command.find_subcommand(word).is_some()
}

/// Returns whether `path` looks like the name of a command, and is not an existing file.
fn is_nothing(path: &Path) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let word = path.as_os_str().as_encoded_bytes();
    word != b"-" && word.iter().all(is_plain) && path.symlink_metadata().is_err()
}

/// Returns the error about a first word that is neither a command nor a file.
fn no_such(command: &mut Command, word: &Path) -> clap::Error {
    let near = word.to_str().and_then(nearest_command);
    let tip = near
        .map(|near| format!("\n\n  tip: a similar command exists: '{near}'"))
        .unwrap_or_default();
    command.error(
        ErrorKind::InvalidSubcommand,
        format!("there is no command or file {}{tip}", quoted(word)),
    )
}

/// Returns the error about an additional argument, with a suggestion if it looks like the output.
fn unexpected(command: &Command, args: &[OsString], mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(stray)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let writes = |name: &OsStr| {
        command
            .find_subcommand(name)
            .is_some_and(|command| command.get_arguments().any(is_output))
    };
    let has_output = args
        .iter()
        .any(|word| word == "-o" || word.as_encoded_bytes().starts_with(b"--output"));
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

/// Checks the inputs of a command line without a command. `converts`: it requests a conversion.
/// `has_output`: it names an output.
///
/// # Errors
/// The first input is neither a file nor a command, or the second one looks like an output.
pub(super) fn check(
    command: &mut Command,
    inputs: &[PathBuf],
    converts: bool,
    has_output: bool,
) -> Result<(), clap::Error> {
    let [first, rest @ ..] = inputs else {
        return Ok(());
    };
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
        true => (
            format!(
                "only one recording can be converted at a time; unexpected {}",
                quoted(stray)
            ),
            !has_output,
        ),
        false => (format!("there is no file {}", quoted(stray)), true),
    };
    let tip = if tip {
        format!("\n\n  tip: {}", output_tip(stray))
    } else {
        String::new()
    };
    Err(command.error(ErrorKind::TooManyValues, format!("{what}{tip}")))
}

/// Returns a quoted name for messages.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().escape_debug())
}
