//! Directories that contain something other than a file, or a damaged file.

use std::{fs, io, os::unix::fs::symlink, path::Path, process::Command};

use perfdata_tests::{convert::perfconv, perf, synth};

use crate::commands::is_printable;

/// Commands that accept directories.
const OF_DAMAGED: [&str; 8] = [
    "info",
    "dump --json",
    "verify",
    "convert -o /dev/null",
    "convert --swap-endian -o /dev/null",
    "convert --decompress --to file -o /dev/null",
    "file2pipe -o /dev/null",
    "recover -o /dev/null",
];

/// Runs the family, prints its figures, and returns the faults.
pub fn run(folder: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    type Spoil = fn(&Path) -> io::Result<()>;
    let spoils: [(&str, Spoil); 6] = [
        ("a FIFO among the records", |at| fifo(&at.join("data.2"))),
        ("a dangling link", |at| {
            symlink("nowhere", at.join("data.2"))
        }),
        ("a link to itself", |at| {
            symlink("data.2", at.join("data.2"))
        }),
        ("a folder among the records", |at| {
            fs::create_dir(at.join("data.2"))
        }),
        ("a device", |at| symlink("/dev/zero", at.join("data.2"))),
        ("no data", |at| fs::remove_file(at.join("data"))),
    ];
    for (number, (what, spoil)) in spoils.into_iter().enumerate() {
        let at = folder.join(format!("directory{number}"));
        fs::create_dir(&at).expect("a temporary folder");
        for (name, bytes) in synth::dir::files(false, false) {
            fs::write(at.join(name), bytes).expect("a temporary file");
        }
        spoil(&at).expect("it can be made");
        faults.extend(ends_with_an_error(what, &at));
    }
    let at = folder.join("fifos");
    fs::create_dir(&at)
        .and_then(|()| fifo(&at.join("data")))
        .expect("a FIFO");
    faults.extend(ends_with_an_error("a FIFO in place of data", &at));
    let at = folder.join("name");
    fs::create_dir(&at).expect("a temporary folder");
    for (name, bytes) in synth::dir::files(false, false) {
        fs::write(at.join(name), bytes).expect("a temporary file");
    }
    fs::write(at.join("data.\x1b[31m"), [0xff; 64]).expect("a temporary file");
    faults.extend(names_what_is_damaged(&at, "data.\\u{1b}[31m"));
    println!(
        "{:8} directories with something else in them",
        spoils.len() + 2
    );
    faults.extend(damaged(folder));
    faults
}

fn fifo(path: &Path) -> io::Result<()> {
    Command::new("mkfifo").arg(path).status().map(drop)
}

/// Tests directories with a file that is truncated or has a changed byte.
fn damaged(folder: &Path) -> Vec<String> {
    const PLACES: usize = 6;
    let mut faults = Vec::new();
    let mut runs = 0;
    let at = folder.join("damaged");
    fs::create_dir(&at).expect("a temporary folder");
    let put = |name: &str, bytes: &[u8]| fs::write(at.join(name), bytes).expect("a temporary file");
    for (big, compressed) in [(false, false), (false, true), (true, false)] {
        let files = synth::dir::files(big, compressed);
        for (name, bytes) in &files {
            files.iter().for_each(|(name, bytes)| put(name, bytes));
            for place in 0..2 * PLACES {
                let mut damaged = bytes.clone();
                let at_byte = bytes.len() * (place / 2) / PLACES;
                if place % 2 == 0 {
                    damaged.truncate(at_byte);
                } else {
                    damaged[at_byte] ^= 0xff;
                }
                put(name, &damaged);
                for command in OF_DAMAGED {
                    let (status, text) = said(command, &at);
                    runs += 1;
                    if !matches!(status, Some(0 | 1)) || !is_printable(&text) {
                        let what = if place % 2 == 0 { "cut" } else { "flipped" };
                        faults.push(format!(
                            "{name} {what} at {at_byte}: {command}: {status:?}: {text:?}"
                        ));
                    }
                }
            }
        }
    }
    println!("{runs:8} runs with directories that have a damaged file");
    faults
}

/// Returns the exit status and the output of a command for `input`.
fn said(command: &str, input: &Path) -> (Option<i32>, String) {
    let mut program = perfconv();
    program.args(command.split(' ')).arg(input);
    let said = perf::run(program).expect("perfconv runs");
    (
        said.status.and_then(|status| status.code()),
        format!("{}{}", said.stdout, said.stderr),
    )
}

/// Checks that every command reports that the file `name` is damaged, and that commands that only
/// read continue with the other files.
fn names_what_is_damaged(input: &Path, name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (command, expected) in [
        ("info", 0),
        ("dump", 0),
        ("verify", 1),
        ("convert -o /dev/null", 1),
    ] {
        let (status, text) = said(command, input);
        if status != Some(expected) || !text.contains(name) || !is_printable(&text) {
            faults.push(format!(
                "a name with an escape: {command}: {status:?}: {text:?}"
            ));
        }
    }
    faults
}

/// Checks that every command ends with a printable error.
fn ends_with_an_error(what: &str, input: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for command in ["info", "dump", "verify", "convert -o /dev/null"] {
        let (status, text) = said(command, input);
        if !matches!(status, Some(1 | 2)) || !text.contains(": ") || !is_printable(&text) {
            faults.push(format!("{what}: {command}: {status:?}: {text:?}"));
        }
    }
    faults
}
