//! The command line interface: help, manual pages, completions, suggestions, and progress messages.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use clap::{CommandFactory, error::ErrorKind};
use perfconv::cli::Cli;
use perfdata_tests::{convert, perf, recordings, skipped, snapshot, synth};

use crate::patience::patiently;

/// Number of lines of a terminal.
const SCREEN: usize = 50;
/// Maximum number of lines of the short help of commands with all groups of conversions.
const CONVERSIONS: usize = 73;
/// Maximum number of lines of the command's own short help.
const SHORT: usize = 38;

/// Returns the exit status and the output of perfconv without a terminal.
fn perfconv(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = convert::perfconv();
    command
        .args(args)
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::null());
    let output = perf::run(command).expect("perfconv can be started");
    (
        output.status.and_then(|status| status.code()),
        output.stdout,
        output.stderr,
    )
}

/// Returns the output of a successful run.
fn printed(args: &[&str]) -> String {
    let (status, stdout, stderr) = perfconv(args);
    assert_eq!(
        (status, stderr.as_str()),
        (Some(0), ""),
        "perfconv {}",
        args.join(" ")
    );
    stdout
}

/// Returns the names of all subcommands.
fn commands() -> Vec<String> {
    Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect()
}

fn fixture(name: &str) -> String {
    recordings::fixture(name).path.display().to_string()
}

#[test]
fn help_is_as_it_was() {
    let folder = recordings::root().join("tests/snapshots/help");
    let pages = commands()
        .into_iter()
        .map(|name| (name.clone(), vec![name]))
        .chain([("perfconv".into(), vec![])]);
    let mut expected = BTreeSet::new();
    for (name, words) in pages {
        let with = |option| {
            printed(
                &words
                    .iter()
                    .map(String::as_str)
                    .chain([option])
                    .collect::<Vec<_>>(),
            )
        };
        let (short, long) = (with("-h"), with("--help"));
        let lines = short.lines().count();
        let most = match (words.is_empty(), short.contains("\nConversions:\n")) {
            (true, _) => SHORT,
            (false, true) => CONVERSIONS,
            (false, false) => SCREEN,
        };
        assert!(lines <= most, "{name} -h has {lines} lines");
        assert!(
            long.contains("\nExamples:\n"),
            "{name} --help has no examples"
        );
        snapshot::check(
            &folder.join(format!("{name}.txt")),
            &format!("$ {name} -h\n{short}\n$ {name} --help\n{long}"),
        );
        expected.insert(format!("{name}.txt"));
    }
    let there = fs::read_dir(folder).expect("the snapshots").flatten();
    let there: BTreeSet<_> = there
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(there, expected);
}

/// perfconv accepts every example in `--help` as a command line.
#[test]
fn examples_in_help_make_sense() {
    let mut checked = 0;
    let mut command = Cli::command();
    let texts: Vec<String> = [command.clone()]
        .iter()
        .chain(command.get_subcommands())
        .filter_map(|command| Some(command.get_after_long_help()?.to_string()))
        .collect();
    command.build();
    for line in texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| line.starts_with("    "))
    {
        let Some(start) = line.find("perfconv ") else {
            continue;
        };
        let words = line[start..]
            .split(['|', '>'])
            .next()
            .unwrap_or_default()
            .split_whitespace();
        if let Err(error) = Cli::from_args(words) {
            panic!("{line}\n{error}");
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked} examples");
}

#[test]
fn manual_pages_explain_every_option() {
    let cli = Cli::command();
    let pages = cli
        .get_subcommands()
        .map(|command| (vec!["man", command.get_name()], command))
        .chain([(vec!["man"], &cli)]);
    for (args, command) in pages {
        let page = printed(&args);
        assert!(
            page.contains(".SH NAME")
                && page.contains(".SH OPTIONS")
                && page.contains(".SH EXAMPLES"),
            "{args:?}"
        );
        assert!(!page.contains(".SH EXTRA"), "{args:?}");
        // Every page that is referred to exists.
        for name in page
            .split("perfconv\\-")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once("(1)")?.0))
        {
            assert!(
                commands().contains(&name.replace("\\-", "-")),
                "{args:?} names {name}"
            );
        }
        for option in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let long = option
                .get_long()
                .map(|long| format!("\\-\\-{}", long.replace('-', "\\-")));
            let Some(at) = long.and_then(|long| page.find(&long)) else {
                assert!(
                    option.get_long().is_none(),
                    "{args:?} says nothing of {}",
                    option.get_id()
                );
                continue;
            };
            let help = option
                .get_help()
                .map(|help| help.to_string().replace('-', "\\-"))
                .unwrap_or_default();
            let first = help
                .split(['`', '"', '\'', '.'])
                .next()
                .unwrap_or_default()
                .trim();
            let id = option.get_id();
            assert!(page[at..].contains(first), "{args:?}: {id}: {help}");
        }
    }
    assert_eq!(
        perfconv(&["man", "inof"]).2,
        "perfconv: error: perfconv has no command inof; did you mean info?\n"
    );
}

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for word in commands().iter().map(String::as_str).chain(["swap-endian"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

/// Returns bash's completions of the last of `words`, in a folder with `a.data`, `b c.data` and a
/// folder `sub`.
fn completed(words: &[&str]) -> BTreeSet<String> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("sub")).expect("a folder can be made");
    for name in ["a.data", "b c.data"] {
        fs::write(folder.path().join(name), "").expect("a file can be written");
    }
    let words: Vec<String> = ["perfconv"]
        .iter()
        .chain(words)
        .map(|word| format!("'{word}'"))
        .collect();
    let commands = format!(
        "source <(perfconv completions bash); COMP_WORDS=({}); COMP_CWORD={}; _perfconv; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1
    );
    let output = convert::in_shell(folder.path(), &commands);
    assert!(output.success(), "{words:?}: {}", output.stderr);
    output
        .stdout
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_what_is_taken() {
    let set = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<BTreeSet<_>>()
    };
    let files = set(&["a.data", "b c.data", "sub"]);
    let all = commands().into_iter().collect();
    // Files and commands for an empty word; only files after a file, or after a command that reads.
    for (words, expected) in [
        (&[""] as &[&str], files.union(&all).cloned().collect()),
        (&["-q", ""], files.union(&all).cloned().collect()),
        (&["a.data", ""], files.clone()),
        (&["info", ""], files.clone()),
        (&["--compress", ""], files.clone()),
        (&["-o", ""], files.clone()),
        (&["-i", "a"], set(&["a.data"])),
        (&["--sysroot", ""], set(&["sub"])),
        (&["pipe"], set(&["pipe2file"])),
        (&["--to", ""], set(&["dir", "file", "pipe"])),
        (&["--to", "=", "f"], set(&["file"])),
        (&["--build-ids", "="], set(&["all", "hit"])),
        (&["--drop", "HOST"], set(&["HOSTNAME"])),
        (&["--drop", "=", "CPU_P"], set(&["CPU_PMU_CAPS"])),
        (&["convert", "--set", "OSR"], set(&["OSRELEASE="])),
        (&["dump", "--type", "MM"], set(&["MMAP", "MMAP2"])),
        (
            &["dump", "--type", "COMM,MM"],
            set(&["COMM,MMAP", "COMM,MMAP2"]),
        ),
        (&["--compat", ""], set(&[])),
        (&["man", "in"], set(&["info", "inject"])),
        (&["completions", "z"], set(&["zsh"])),
        (&["a.data", "--swap"], set(&["--swap-endian"])),
        // Words that would be refused: the same option twice, or two options that exclude each
        // other.
        (&["--swap-endian", "--swap"], set(&[])),
        (&["--swap-endian", "--endi"], set(&[])),
        (&["--compress", "--decomp"], set(&[])),
        (&["info", "--json", "--map"], set(&[])),
        (&["dump", "--type", "COMM", "--ty"], set(&["--type"])),
        (&["info", "--swap"], set(&[])),
    ] {
        assert_eq!(completed(words), expected, "{words:?}");
    }
}

/// Prints zsh's completions of the line `$2`, on a separate terminal, with the script `$1`.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty z zsh -f -i
setup="PROMPT=
autoload -Uz compinit && compinit -u -D
source $1
compdef _perfconv perfconv
compadd () { if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd \"\$@\"; return \$?; fi; typeset -a hits; builtin compadd -A hits \"\$@\"; [[ -n \$hits ]] && print -l -- \"HIT:\"\${^hits}; }
begin () { print -r -- BEGIN }
compprefuncs=(begin)
comppostfuncs=(begin exit)
bindkey '^I' complete-word
print READY"
zpty -w z "$setup"
zpty -r z line '*READY*READY*'
zpty -w z "$2"$'\t'
while zpty -r z line; do print -r -- "$line"; done
"#;

#[test]
fn zsh_completes_what_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.data"), "").expect("a file can be written");
    fs::write(folder.path().join("capture.zsh"), ZSH).expect("a file can be written");
    let script = printed(&["completions", "zsh"]);
    fs::write(folder.path().join("_perfconv.zsh"), script).expect("a file can be written");
    for (line, some, none) in [
        (
            "perfconv ",
            &["a.data", "info", "convert"] as &[&str],
            &[] as &[&str],
        ),
        ("perfconv info ", &["a.data"], &["convert", "info"]),
        ("perfconv a.data ", &["a.data"], &["convert", "info"]),
        ("perfconv a.data --sw", &["--swap-endian"], &["info"]),
        ("perfconv dump --type SAM", &["SAMPLE"], &["COMM"]),
        ("perfconv --drop HOST", &["HOSTNAME"], &["CMDLINE"]),
        ("perfconv --swap-endian --endi", &[], &["--endian"]),
    ] {
        let commands =
            format!("timeout 20 zsh -f capture.zsh ./_perfconv.zsh '{line}' | tr -d '\\r'");
        let output = convert::in_shell(folder.path(), &commands);
        if output.stderr.contains("not found") || output.stderr.contains("No such file") {
            skipped::note("zsh");
            return;
        }
        let hits: BTreeSet<&str> = output
            .stdout
            .lines()
            .filter_map(|line| line.split_once("HIT:"))
            .map(|(_, hit)| hit.trim())
            .collect();
        assert!(
            some.iter().all(|word| hits.contains(word)),
            "{line}: {hits:?}: {}{}",
            output.stdout,
            output.stderr
        );
        assert!(
            none.iter().all(|word| !hits.contains(word)),
            "{line}: {hits:?}"
        );
    }
}

/// The command accepts every option that bash completes.
#[test]
fn no_word_that_bash_completes_is_refused() {
    for command in commands().iter().map(String::as_str).chain([""]) {
        let words: Vec<&str> = [command, "--"]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        let options = completed(&words);
        assert!(options.len() > 3, "{command}: {options:?}");
        for option in options {
            let args = ["perfconv", command, &option]
                .into_iter()
                .filter(|word| !word.is_empty());
            let refused = Cli::from_args(args)
                .err()
                .is_some_and(|error| error.kind() == ErrorKind::UnknownArgument);
            assert!(!refused, "{command} {option}");
        }
    }
}

#[test]
fn what_is_nearly_right_is_recognised() {
    let input = fixture("6.1-x86_64-pipe-default");
    for (args, meant) in [
        (
            &["inof", &input] as &[&str],
            "a similar command exists: 'info'",
        ),
        (
            &["convert", "--swap-endain", &input, "-o", "x"],
            "a similar argument exists: '--swap-endian'",
        ),
        (
            &["--decompres", &input, "-o", "x"],
            "a similar argument exists: '--decompress'",
        ),
        (
            &["--to", "pip", &input, "-o", "x"],
            "a similar value exists: 'pipe'",
        ),
        (
            &["--set", "hostnam=x", &input, "-o", "/dev/null"],
            "did you mean HOSTNAME?",
        ),
        (
            &["--drop", "CMDLIN", &input, "-o", "/dev/null"],
            "did you mean CMDLINE?",
        ),
        (&["dump", "--type", "mmap22", &input], "did you mean MMAP2?"),
        (&["-o", "x", "info", &input], "must follow it"),
    ] {
        let (status, stdout, stderr) = perfconv(args);
        assert_eq!(
            (status, stdout.as_str()),
            (Some(2), ""),
            "{args:?}: {stderr}"
        );
        assert!(stderr.contains(meant), "{args:?}: {stderr}");
    }
}

#[test]
fn as_much_is_said_as_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.data").display().to_string();
    let cut = fixture("7.2-x86_64-pipe-cut");
    let said = |args: &[&str]| {
        let (status, stdout, stderr) = perfconv(args);
        assert_eq!(
            (status, stdout.as_str()),
            (Some(0), ""),
            "{args:?}: {stderr}"
        );
        stderr
    };
    let normal = said(&["pipe2file", "-f", &cut, "-o", &output]);
    let lines: Vec<&str> = normal.lines().collect();
    let [warning, summary] = lines[..] else {
        panic!("{normal}")
    };
    assert!(
        warning.starts_with("perfconv: warning: the last 19 bytes are an incomplete record"),
        "{warning}"
    );
    let size = |path: &str| fs::metadata(path).expect("a file").len();
    let bytes = |size| format!("{:.2} KiB", size as f64 / 1024.0);
    let expected = format!(
        "perfconv: 113 records, 22 features, {} in, {} out, ",
        bytes(size(&cut)),
        bytes(size(&output))
    );
    assert!(
        summary.starts_with(&expected) && summary.ends_with(" s"),
        "{summary}; {expected}"
    );

    assert_eq!(said(&["pipe2file", "-q", "-f", &cut, "-o", &output]), "");
    assert_eq!(said(&["-q", "pipe2file", "-f", &cut, "-o", &output]), "");
    let verbose = said(&["-v", "pipe2file", "-f", &cut, "-o", &output]);
    assert!(
        verbose.contains("perfconv: converted a little-endian pipe to a little-endian file\n"),
        "{verbose}"
    );
    assert!(!verbose.contains("SAMPLE,"), "{verbose}");
    let all = said(&["pipe2file", "-f", &cut, "-o", &output, "-vv"]);
    assert!(
        all.contains("perfconv: note: written: ") && all.contains(" SAMPLE"),
        "{all}"
    );
    assert_eq!(
        perfconv(&["-q", "info", "nowhere"]).2,
        "perfconv: error: nowhere: No such file or directory (os error 2)\n"
    );
    assert_eq!(perfconv(&["-q", "-v", "info", &cut]).0, Some(2));
}

/// Returns the commands that `perfconv FILE` shows. A shell runs it in an empty folder.
fn steps(folder: &Path, name: &str) -> Vec<String> {
    let mut command = convert::perfconv();
    command.arg(name).current_dir(folder);
    let output = perf::run(command).expect("perfconv can be started");
    assert!(output.success(), "{}", output.stderr);
    output
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  perfconv "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_name_alone_tells_what_to_do() {
    let program = convert::perfconv().get_program().to_owned();
    for (fixture, expected) in [
        (
            "6.1-x86_64-pipe-default",
            &["bundle ", "pipe2file ", "--compat 7.2 "][..],
        ),
        (
            "6.1-s390x-pipe-z",
            &["bundle ", "pipe2file ", "--swap-endian "],
        ),
        (
            "6.1-s390x-file-default",
            &["bundle ", "--swap-endian ", "info --leaks "],
        ),
        (
            "6.1-x86_64-file-z",
            &["bundle ", "--decompress ", "info --leaks "],
        ),
        (
            "7.2-x86_64-file-default",
            &["bundle ", "--compat 6.1 ", "info --leaks "],
        ),
        (
            "7.2-x86_64-file-threads",
            &["bundle ", "--to file ", "--compat 6.1 "],
        ),
        (
            "6.1-x86_64-file-default",
            &["bundle ", "info --leaks ", "--compress "],
        ),
        ("7.2-x86_64-file-crashed", &["recover "]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        // A name that the shell would split.
        let name = "it's mine.data";
        std::os::unix::fs::symlink(recordings::fixture(fixture).path, folder.path().join(name))
            .expect("a link");
        let steps = steps(folder.path(), name);
        let are_expected = steps.len() == expected.len()
            && steps
                .iter()
                .zip(expected)
                .all(|(step, start)| step.starts_with(start));
        assert!(are_expected, "{fixture}: {steps:?}");
        for step in &steps {
            let mut shell = Command::new("bash");
            shell
                .args(["-c", &format!("\"$0\" -q {step}")])
                .arg(&program)
                .current_dir(&folder);
            let output = perf::run(shell).expect("bash can be started");
            assert!(
                output.success() && output.stderr.is_empty(),
                "{fixture}: {step}: {}",
                output.stderr
            );
        }
        // Each command that writes created a separate file.
        let files = steps.iter().filter(|step| step.contains(" -o ")).count();
        assert_eq!(
            fs::read_dir(&folder).expect("the folder").count(),
            files + 1,
            "{fixture}"
        );
    }
}

/// Standard input was consumed, so no command can read it again.
#[test]
fn standard_input_is_not_named_in_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = format!(
        "cat {0} | perfconv -; cat {0} | perfconv",
        fixture("6.1-x86_64-pipe-default")
    );
    let output = convert::in_shell(folder.path(), &commands);
    assert!(
        output.success() && output.stderr.is_empty(),
        "{}",
        output.stderr
    );
    assert_eq!(
        output
            .stdout
            .matches("standard input: a recording of Linux perf\n")
            .count(),
        2,
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("perfconv "), "{}", output.stdout);
}

#[test]
fn a_name_alone_tells_of_aux_data() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("trace.data"),
        synth::file::kitchen_sink(false),
    )
    .expect("a file can be written");
    let steps = steps(folder.path(), "trace.data");
    assert!(
        steps
            .iter()
            .any(|step| step == "extract-aux trace.data -o trace.aux"),
        "{steps:?}"
    );
}

/// Runs a shell command on a terminal, and returns the terminal's output.
fn on_a_terminal(commands: &str) -> Option<String> {
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command", commands, "/dev/null"])
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    let output = perf::run(script);
    match output {
        Ok(output) => Some(output.stdout),
        Err(error) => {
            skipped::note(format_args!("script, which makes a terminal ({error})"));
            None
        }
    }
}

#[test]
fn colours_are_for_terminals() {
    let program = convert::perfconv().get_program().display().to_string();
    let Some(colored) = on_a_terminal(&format!("{program} nowhere")) else {
        return;
    };
    assert!(
        colored.contains("\u{1b}[") && colored.contains("error:"),
        "{colored:?}"
    );
    let plain = on_a_terminal(&format!("NO_COLOR=1 {program} nowhere")).expect("as before");
    assert!(
        !plain.contains('\u{1b}') && plain.contains("error:"),
        "{plain:?}"
    );
    let help = on_a_terminal(&format!("NO_COLOR=1 {program} --help")).expect("as before");
    assert!(!help.contains('\u{1b}'), "{help:?}");
}

#[test]
fn long_work_shows_a_bar_on_a_terminal() {
    patiently(shows_a_bar);
}

fn shows_a_bar(factor: u32) {
    let program = convert::perfconv().get_program().display().to_string();
    let input = fixture("6.1-x86_64-pipe-default");
    let (pause, long_pause) = (f64::from(factor) * 1.5, factor * 3);
    let slowly = |options: &str| {
        format!(
            "(head -c 8000 {input}; sleep {pause}; tail -c +8001 {input}) | {program} {options}"
        )
    };
    let Some(said) = on_a_terminal(&slowly("pipe2file - -o /dev/null")) else {
        return;
    };
    assert!(said.contains("/s"), "no rate: {said:?}");
    assert!(said.contains("260 records"), "{said:?}");
    let stalled = on_a_terminal(&format!(
        "(head -c 8000 {input}; sleep {long_pause}) | {program} info - > /dev/null"
    ));
    let drawn = stalled.expect("as before").matches("/s").count();
    assert!(drawn > 3, "drawn {drawn} times while no input came");
    let fast =
        on_a_terminal(&format!("{program} pipe2file {input} -o /dev/null")).expect("as before");
    assert!(!fast.contains("/s"), "{fast:?}");
    let quiet = on_a_terminal(&slowly("pipe2file -q - -o /dev/null")).expect("as before");
    assert_eq!(quiet, "");
    let mut shell = Command::new("bash");
    shell.args(["-c", &slowly("pipe2file - -o /dev/null")]);
    let elsewhere = thread::spawn(move || perf::run(shell));
    let output = elsewhere
        .join()
        .expect("no panic")
        .expect("bash can be started");
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    assert!(!output.stderr.contains("/s"), "{}", output.stderr);
}
