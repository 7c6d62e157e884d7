//! Checks that an output is not the input: inputs are never changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::STANDARD;
use crate::error::Error;
use crate::support::os;

/// Returns the error for an output that would change the input.
pub(super) fn input_stays(output: &Path) -> Error {
    Error::Usage(format!(
        "{} is the input: inputs are never changed",
        output.display()
    ))
}

/// Returns the metadata of an input, which may be standard input.
fn input_metadata(input: &Path) -> io::Result<fs::Metadata> {
    match input.as_os_str() == STANDARD {
        true => os::stdin().and_then(|stdin| stdin.metadata()),
        false => fs::metadata(input),
    }
}

/// Returns whether `output` is the file or directory that `input` names, the file that is standard
/// input, or a file that would be created in the input directory.
pub(super) fn is_input(output: &Path, input: &Path) -> bool {
    let is_same = match (fs::metadata(output), input_metadata(input)) {
        (Ok(one), Ok(other)) => match (os::identity(&one), os::identity(&other)) {
            (Some(one), Some(other)) => one == other,
            // An output replaces the name of a file, and not the file of other names.
            _ => input.as_os_str() != STANDARD && resolved(output) == resolved(input),
        },
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
    let stdout = os::stdout().and_then(|stdout| stdout.metadata());
    let stdout = stdout.ok().filter(fs::Metadata::is_file);
    let Some(stdout) = stdout.as_ref().and_then(os::identity) else {
        return false;
    };
    let is_it =
        |meta: io::Result<fs::Metadata>| meta.is_ok_and(|meta| os::identity(&meta) == Some(stdout));
    let mut inside = fs::read_dir(input).into_iter().flatten().flatten();
    is_it(input_metadata(input)) || inside.any(|entry| is_it(entry.metadata()))
}
