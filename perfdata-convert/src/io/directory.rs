//! Directories of `perf record --threads` and `--kcore` as input.

use std::iter;

use perfdata_core::read::{DataFile, Foreknown, Limits, RecordingReader};

use super::input::Bytes;
use super::reader::{InputReader, Meter, Stream};
use crate::error::Result;

pub use perfdata_core::read::Directory;

/// Returns a reader of the recording in `directory`, which reads through `meter`.
pub(super) fn reader(
    directory: &Directory,
    limits: Limits,
    meter: Meter,
) -> Result<RecordingReader<InputReader>> {
    Ok(directory
        .reader(limits)?
        .map_input(|files| meter.of(Stream::Path(files))))
}

/// Returns the limits of each file when the files are salvaged: each file is decompressed twice,
/// for the survey and for the merge.
pub(super) fn limits(directory: &Directory, all: Limits) -> Limits {
    let files = directory.files().len();
    if files == 0 {
        all
    } else {
        all.of_each(2 * (files + 1))
    }
}

/// Returns a reader of the readable part of the recording in `directory`.
pub(super) fn salvaged_reader(
    directory: &Directory,
    foreknown: &[Foreknown],
    all: Limits,
    meter: Meter,
) -> Result<RecordingReader<InputReader>> {
    let limits = limits(directory, all);
    let mut told = foreknown
        .iter()
        .copied()
        .chain(iter::repeat(Foreknown::default()));
    let data: (Bytes, _) = (directory.data().clone(), told.next().unwrap_or_default());
    if !directory.is_split() {
        let reader = RecordingReader::salvaged(data.0, data.1, limits)
            .map_err(|error| error.inside("data"))?;
        return Ok(reader.map_input(|file| meter.of(Stream::Salvaged(Box::new(file)))));
    }
    let files = directory.files().iter().zip(told).map(|(file, foreknown)| {
        (
            DataFile {
                name: file.name.clone(),
                source: file.source.clone() as Bytes,
            },
            foreknown,
        )
    });
    let reader = RecordingReader::salvaged_directory(data, files.collect(), limits)?;
    Ok(reader.map_input(|merged| meter.of(Stream::SalvagedFiles(Box::new(merged)))))
}
