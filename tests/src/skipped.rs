//! Notes of skipped tests on this machine, and their table at the end of a run.
//!
//! A test that lacks something (perf, a program, further recordings) reports it with [`note`], and
//! returns or continues with fewer checks. The test program `skipped` is the last that `cargo test`
//! runs, and prints all notes of the run. Notes are stored in a file named after the process that
//! started the test programs, which is the same for a whole run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::parent_id;
use std::path::PathBuf;
use std::{env, fmt, io, thread};

/// The missing item for tests that take minutes with all recordings.
pub const TEST_ALL: &str =
    "the environment variable PERFCONV_TEST_ALL, with which everything is tried";

/// Reports that the current test is skipped, fully or in part, because of `lack`.
pub fn note(lack: impl fmt::Display) {
    say(&lack, thread::current().name().unwrap_or("all tests"));
}

/// Reports the same for all tests of the program.
pub fn note_for_all(lack: impl fmt::Display) {
    say(&lack, "all tests");
}

fn say(lack: &dyn fmt::Display, test: &str) {
    eprintln!("skipped for want of {lack}");
    let line = format!("{lack}\t{}::{test}\n", program());
    // Without the file, only the line above is printed.
    let _ = append(line.as_bytes());
}

/// Returns the notes of this run as a table, and deletes them; `None` if there are no notes.
pub fn take_table() -> Option<String> {
    let file = file()?;
    let text = fs::read_to_string(&file).ok()?;
    let _ = fs::remove_dir_all(file.parent()?);
    let mut rows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (lack, test) in text.lines().filter_map(|line| line.split_once('\t')) {
        rows.entry(lack).or_default().insert(test);
    }
    let mut table = String::from("Not tested on this machine, or with less than elsewhere:\n");
    for (lack, tests) in rows {
        table.push_str(&format!("\n  {lack}\n"));
        for test in tests {
            table.push_str(&format!("      {test}\n"));
        }
    }
    Some(table)
}

fn append(line: &[u8]) -> io::Result<()> {
    let file = file().ok_or(io::ErrorKind::NotFound)?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?
        .write_all(line)
}

/// Returns the name of the test program without the hash that cargo appends.
fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-')
        .map_or(name.as_ref(), |(name, _)| name)
        .to_owned()
}

/// `target/<profile>/skipped/<process that runs the test programs>`
fn file() -> Option<PathBuf> {
    Some(
        env::current_exe()
            .ok()?
            .parent()?
            .parent()?
            .join("skipped")
            .join(parent_id().to_string()),
    )
}
