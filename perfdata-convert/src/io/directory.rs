//! Directories of `perf record --threads` and `--kcore` as input.

use std::iter;
use std::sync::Arc;

use perfdata_core::read::{Foreknown, InputFile, Limits, RecordingReader};

use super::reader::{InputReader, Meter, Stream};
use crate::error::Result;

pub use perfdata_core::read::Directory;

/// The recording in `directory`, read through `meter`.
pub(super) fn reader(directory: &Directory, limits: Limits, meter: Meter) -> Result<RecordingReader<InputReader>> {
    Ok(directory.reader(limits)?.map_input(|files| meter.of(Stream::Path(files))))
}

/// What is granted to each of its files where they are salvaged: each is decompressed to be looked at, and once more to
/// be merged.
pub(super) fn limits(directory: &Directory, all: Limits) -> Limits {
    let files = directory.files().len();
    if files == 0 { all } else { all.of_each(2 * (files + 1)) }
}

/// What can be believed of the recording in `directory`.
pub(super) fn salvaged_reader(
    directory: &Directory,
    foreknown: &[Foreknown],
    all: Limits,
    meter: Meter,
) -> Result<RecordingReader<InputReader>> {
    let limits = limits(directory, all);
    let mut told = foreknown.iter().copied().chain(iter::repeat(Foreknown::default()));
    let data: (Arc<InputFile>, _) = (directory.data().clone(), told.next().unwrap_or_default());
    if !directory.is_split() {
        let reader = RecordingReader::salvaged(data.0, data.1, limits).map_err(|error| error.inside("data"))?;
        return Ok(reader.map_input(|file| meter.of(Stream::Salvaged(Box::new(file)))));
    }
    let files = directory.files().iter().cloned().zip(told).collect();
    let reader = RecordingReader::salvaged_directory(data, files, limits)?;
    Ok(reader.map_input(|merged| meter.of(Stream::MendedFiles(Box::new(merged)))))
}
