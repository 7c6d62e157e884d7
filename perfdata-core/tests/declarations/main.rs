//! Headers, attributes, features and records: values against bytes, real recordings, random bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a panic fails the test"
)]

mod feature_recordings;
mod feature_values;
mod from_values;
mod header_values;
mod jitdump;
mod positions;
mod records;
mod sample_view;

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folders with recordings: `fixtures/`, and those of the further recordings, which are
/// in the folder that the environment variable `PERFCONV_RECORDINGS` names.
fn folders() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")];
    match std::env::var_os("PERFCONV_RECORDINGS").map(PathBuf::from) {
        Some(further) => folders.extend(["recordings", "corpus"].map(|part| further.join(part))),
        None => eprintln!("skipped for want of further recordings (PERFCONV_RECORDINGS)"),
    }
    folders
}

/// Returns the recordings in a folder and below it, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path
            .extension()
            .is_some_and(|ext| ext == "txt" || ext == "gz" || ext == "cmd" || ext == "md")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}
