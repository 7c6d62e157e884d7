//! Snapshots: texts that were checked once and must not change.

use std::{env, fs, path::Path};

/// Replaces each time of writing a file in `text` by a constant date, and removes the lines that
/// show it as the date of a recording, because it depends on the clone.
pub fn without_file_times(text: &str) -> String {
    const DATE: &str = "2026-11-22";
    let dated = |line: &str| match line.split_once("\"file_time\": \"") {
        Some((before, _)) => format!("{before}\"file_time\": \"{DATE}T00:00:00Z\","),
        None => line.to_owned(),
    };
    let lines = text.split('\n');
    let lines = lines.filter(|line| !line.ends_with(", when the file was written"));
    lines.map(dated).collect::<Vec<_>>().join("\n")
}

/// Panics unless `text` is the content of the file at `path`. If the variable `UPDATE_SNAPSHOTS` is
/// set, writes the file instead.
pub fn check(path: &Path, text: &str) {
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if let Some((number, (is, was))) = (1..)
        .zip(text.lines().zip(expected.lines()))
        .find(|(_, (is, was))| is != was)
    {
        panic!(
            "{}, line {number}:\n- {was}\n+ {is}\nUPDATE_SNAPSHOTS=1 accepts it",
            path.display()
        );
    }
    assert_eq!(
        text.lines().count(),
        expected.lines().count(),
        "lines of {}",
        path.display()
    );
}
