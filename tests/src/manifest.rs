//! `fixtures/MANIFEST.tsv`: the expected properties of every file in `fixtures/`.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::recordings::{self, Container, Form, list};

/// The first line of the manifest.
pub const COLUMNS: &str = "path\tkind\tsize\tcrc32\trecorded with";

/// The name of the manifest in `fixtures/`.
const FILE: &str = "MANIFEST.tsv";

/// Returns the differences between the folder and the manifest, one line each, ready to be
/// displayed; empty if there are none.
pub fn differences() -> io::Result<Vec<String>> {
    let folder = recordings::fixtures_dir();
    let manifest = fs::read_to_string(folder.join(FILE))?;
    let (columns, lines) = manifest.split_once('\n').unwrap_or((&manifest, ""));
    let mut found = Vec::new();
    if columns != COLUMNS {
        found.push(format!("the first line is {columns:?}, not {COLUMNS:?}"));
    }

    let mut expected = BTreeMap::new();
    for line in lines.lines() {
        let path = line.split('\t').next().unwrap_or(line);
        if expected.insert(path.to_owned(), line).is_some() {
            found.push(format!("listed twice: {path}"));
        }
    }
    for path in files(&folder)? {
        let actual = line_for(&folder, &path)?;
        match expected.remove(&path) {
            None => found.push(format!("not listed, add: {actual}")),
            Some(line) if !agrees(line, &actual) => {
                found.push(format!("listed as: {line}\nis:        {actual}"));
            }
            Some(_) => {}
        }
    }
    found.extend(expected.into_keys().map(|path| format!("missing: {path}")));
    Ok(found)
}

/// Returns whether a manifest line matches a file. The recording command is contained only in the
/// manifest.
fn agrees(line: &str, actual: &str) -> bool {
    match actual.strip_suffix('?') {
        Some(facts) => line
            .strip_prefix(facts)
            .is_some_and(|command| command.len() > 1),
        None => line == actual,
    }
}

/// Returns the manifest line of the file at `path`, with `?` for the command line of a recording.
fn line_for(folder: &Path, path: &str) -> io::Result<String> {
    let full = folder.join(path);
    let is_recording = path.ends_with(".data");
    let kind = match Form::of(&full) {
        _ if path.contains(".data/") => "part",
        Ok(Some(form)) if is_recording => match form.container {
            Container::File => "file",
            Container::Pipe => "pipe",
            Container::Directory => "directory",
        },
        _ if is_recording => "unknown",
        _ if path.starts_with("elf/") => "elf",
        _ => "text",
    };
    let facts = if full.is_dir() {
        format!("{path}\t{kind}\t-\t-")
    } else {
        let bytes = fs::read(&full)?;
        let crc = crc32fast::hash(&bytes);
        format!("{path}\t{kind}\t{}\t{crc:08x}", bytes.len())
    };
    Ok(if is_recording {
        format!("{facts}\t?")
    } else {
        facts
    })
}

/// Returns all files in `fixtures/` that the manifest must list, relative to it.
fn files(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = list(folder)?;
    while let Some(path) = open.pop() {
        let relative = path.strip_prefix(folder).expect("listed from the folder");
        let name = relative.to_str().ok_or_else(|| {
            io::Error::other(format!("{}: a name that is not UTF-8", relative.display()))
        })?;
        if path.is_dir() {
            open.extend(list(&path)?);
        }
        let is_page = matches!(name, FILE | "README.md");
        let is_inner_folder = path.is_dir() && !name.ends_with(".data");
        if !is_page && !is_inner_folder {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}
