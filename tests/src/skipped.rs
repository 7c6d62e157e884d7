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
use std::sync::Mutex;
use std::{env, fmt, io, thread};

/// The missing item for tests that take minutes with all recordings.
pub const TEST_ALL: &str =
    "the environment variable PERFCONV_TEST_ALL, with which everything is tried";

/// With more tests of a program that lack the same, the table only has their number.
const MOST_NAMED: usize = 16;

/// Reports that the current test is skipped, fully or in part, because of `lack`. The thread of a
/// test has its name; notes of other threads are of all tests of the program.
pub fn note(lack: impl fmt::Display) {
    static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = thread::current();
    let test = thread.name().filter(|name| *name != "main");
    let line = format!("{lack}\t{}::{}\n", program(), test.unwrap_or("all tests"));
    let is_new = NOTED
        .lock()
        .is_ok_and(|mut noted| noted.insert(line.clone()));
    if is_new {
        eprintln!("skipped for want of {lack}");
        // Without the file, only the line above is printed.
        let _ = append(line.as_bytes());
    }
}

/// Returns the notes of this run as a table, and deletes them; `None` if there are no notes. If the
/// environment variable `PERFCONV_SKIPPED` names a file, the notes are in it then, one a line:
/// what was missing, a tab, and the test.
pub fn take_table() -> Option<String> {
    let file = file()?;
    let text = fs::read_to_string(&file).ok()?;
    let _ = fs::remove_dir_all(file.parent()?);
    if let Some(copy) = env::var_os("PERFCONV_SKIPPED") {
        fs::write(copy, &text).expect("the file of PERFCONV_SKIPPED can be written");
    }
    let mut rows: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (lack, test) in text.lines().filter_map(|line| line.split_once('\t')) {
        let (program, test) = test.split_once("::").unwrap_or((test, "all tests"));
        let tests = rows.entry(lack).or_default().entry(program).or_default();
        tests.insert(test);
    }
    let mut table = String::from("Not tested on this machine, or with less than elsewhere:\n");
    for (lack, programs) in rows {
        table.push_str(&format!("\n  {lack}\n"));
        for (program, tests) in programs {
            if tests.len() > MOST_NAMED {
                table.push_str(&format!("      {program}: {} tests\n", tests.len()));
                continue;
            }
            for test in tests {
                table.push_str(&format!("      {program}::{test}\n"));
            }
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
