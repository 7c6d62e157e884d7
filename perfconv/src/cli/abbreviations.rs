//! Options of `inject` in the forms that perf's own parser accepts
//! (tools/lib/subcmd/parse-options.c, Linux 7.2): abbreviated, and negated by `no-`.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

use super::inject::is_of_perf;
use crate::cmd::system;

/// The command whose options are those of perf.
const INJECT: &str = "inject";

/// Returns whether words may contain options of `inject`. Those of other commands need no search.
pub(super) fn are_for_inject(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == INJECT)
}

/// Returns the command with `--no-OPTION` for each option of `perf inject` whose negation has no
/// meaning of its own: the option is as if it had not been given before. Help and completions do
/// not need them.
pub(super) fn with_negations(command: Command) -> Command {
    let mut options: Vec<Arg> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .cloned()
        .collect();
    command.mut_subcommand(INJECT, |inject| {
        options.extend(inject.get_arguments().cloned());
        let of_perf = options.iter().filter(|arg| is_of_perf(arg));
        let is_new = |negation: &Arg| {
            let long = negation.get_long();
            options.iter().all(|arg| arg.get_long() != long)
        };
        let negations: Vec<Arg> = of_perf.filter_map(negation).filter(is_new).collect();
        inject.args(negations)
    })
}

fn negation(arg: &Arg) -> Option<Arg> {
    let name = format!("no-{}", arg.get_long()?);
    let negation = Arg::new(name.clone()).long(name).hide(true);
    Some(
        negation
            .action(ArgAction::SetTrue)
            .overrides_with(arg.get_id()),
    )
}

/// Returns the words of `args` with complete names of the options of `inject`. As in perf, each may
/// be abbreviated as long as no other one of perf starts with the same letters. Options that perf
/// does not have can be abbreviated to what is none of perf.
///
/// # Errors
/// An abbreviation is ambiguous.
pub(super) fn expanded(
    command: &mut Command,
    args: &[OsString],
) -> Result<Vec<OsString>, clap::Error> {
    let is_inject = |&at: &usize| args.get(at).is_some_and(|word| word == INJECT);
    let Some(place) = command_place(command, args).filter(is_inject) else {
        return Ok(args.to_vec());
    };
    let global = command.get_arguments().filter(|arg| arg.is_global_set());
    let inject = command.find_subcommand(INJECT).into_iter();
    let options: Vec<&Arg> = global
        .chain(inject.flat_map(Command::get_arguments))
        .collect();
    let mut words = args.to_vec();
    for word in words.iter_mut().skip(place) {
        if word == "--" {
            break;
        }
        match complete(word, &options) {
            Ok(Some(complete)) => *word = complete,
            Ok(None) => {}
            Err(ambiguous) => return Err(command.error(ErrorKind::ArgumentConflict, ambiguous)),
        }
    }
    Ok(words)
}

/// Returns the place of the first word that is neither an option nor the value of one.
fn command_place(command: &Command, args: &[OsString]) -> Option<usize> {
    let mut words = args.iter().enumerate().skip(1);
    while let Some((at, word)) = words.next() {
        if !word.as_encoded_bytes().starts_with(b"-") {
            return Some(at);
        }
        if command
            .get_arguments()
            .any(|arg| takes_next_word(arg, word))
        {
            words.next();
        }
    }
    None
}

/// Returns whether `word` is this option, and the next word its value.
fn takes_next_word(arg: &Arg, word: &OsStr) -> bool {
    let is_long = |long| word.as_encoded_bytes().strip_prefix(b"--") == Some(str::as_bytes(long));
    let is_short = |short| word.to_str() == Some(format!("-{short}").as_str());
    arg.get_action().takes_values()
        && !arg.is_require_equals_set()
        && (arg.get_long().is_some_and(is_long) || arg.get_short().is_some_and(is_short))
}

/// Returns the complete form of an abbreviated option; `None` if the word is none.
///
/// # Errors
/// Several options start with it.
fn complete(word: &OsStr, options: &[&Arg]) -> Result<Option<OsString>, String> {
    let Some(option) = word.as_encoded_bytes().strip_prefix(b"--") else {
        return Ok(None);
    };
    let end = option.iter().position(|&byte| byte == b'=');
    let end = end.unwrap_or(option.len());
    let name = option.get(..end).unwrap_or(option);
    let starting = |of_perf: bool| -> Vec<&str> {
        let some = options.iter().filter(|arg| is_of_perf(arg) == of_perf);
        let longs = some.filter_map(|arg| arg.get_long());
        longs
            .filter(|long| long.as_bytes().starts_with(name))
            .collect()
    };
    let (of_perf, others) = (starting(true), starting(false));
    let is_complete = |long: &&str| long.as_bytes() == name;
    if of_perf.iter().chain(&others).any(is_complete) {
        return Ok(None);
    }
    let found = if of_perf.is_empty() { others } else { of_perf };
    match found.as_slice() {
        [] => Ok(None),
        [long] => {
            let mut complete = OsString::from(format!("--{long}"));
            let Some(value) = system::tail(word, "--".len().saturating_add(end)) else {
                return Ok(None);
            };
            complete.push(value);
            Ok(Some(complete))
        }
        [most @ .., last] => {
            let most = most.join(", --");
            let name = String::from_utf8_lossy(name);
            Err(format!(
                "'--{name}' is ambiguous: it could be --{most} or --{last}"
            ))
        }
    }
}
