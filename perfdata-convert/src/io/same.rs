//! Checks that an output is not the input: inputs are never changed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::STANDARD;
use crate::error::Error;

/// Returns the error for an output that would change the input.
pub(super) fn input_stays(output: &Path) -> Error {
    Error::Usage(format!(
        "{} is the input: inputs are never changed",
        output.display()
    ))
}

/// Returns the identity of a file.
fn identity(meta: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

/// Returns the metadata of an input, which may be standard input.
fn input_metadata(input: &Path) -> io::Result<fs::Metadata> {
    match input.as_os_str() == STANDARD {
        true => io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .and_then(|stdin| File::from(stdin).metadata()),
        false => fs::metadata(input),
    }
}

/// Returns whether `output` is the file or directory that `input` names, the file that is standard
/// input, or a file that would be created in the input directory.
pub(super) fn is_input(output: &Path, input: &Path) -> bool {
    let is_same = match (fs::metadata(output), input_metadata(input)) {
        (Ok(output), Ok(input)) => identity(&output) == identity(&input),
        _ => false,
    };
    is_same || is_within(output, input)
}

/// Returns the path without links and dots, even if it does not exist yet.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().map(|parent| {
        if parent == Path::new("") {
            Path::new(".")
        } else {
            parent
        }
    });
    match (fs::canonicalize(path), parent, path.file_name()) {
        (Ok(found), ..) => found,
        (_, Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Returns whether `path` is, or would be, in `directory`.
pub(super) fn is_within(path: &Path, directory: &Path) -> bool {
    directory.is_dir() && resolved(path).starts_with(resolved(directory))
}

/// Returns whether standard output is a file that is the input, or in the input directory.
pub(super) fn stdout_is_input(input: &Path) -> bool {
    let stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|stdout| File::from(stdout).metadata());
    let Some(stdout) = stdout.ok().filter(fs::Metadata::is_file) else {
        return false;
    };
    let is_it = |meta: io::Result<fs::Metadata>| {
        meta.is_ok_and(|meta| identity(&meta) == identity(&stdout))
    };
    let mut inside = fs::read_dir(input).into_iter().flatten().flatten();
    is_it(input_metadata(input)) || inside.any(|entry| is_it(entry.metadata()))
}
