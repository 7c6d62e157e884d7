//! Errors of writing.

use std::io;

use perfdata_core::Endian;
use perfdata_core::container_layout::Part;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error.
    #[error("writing {what}: {source}")]
    Io {
        /// The part that was being written.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A value cannot be encoded.
    #[error(transparent)]
    Encode(#[from] perfdata_core::Error),
    /// A record does not have the byte order of the recording.
    #[error("a {} record in a {} recording", name(*.found), name(*.expected))]
    ByteOrder {
        /// Byte order of the record.
        found: Endian,
        /// Byte order of the recording.
        expected: Endian,
    },
    /// A record is not followed by all of its payload.
    #[error("the payload of the {kind} record is {missing} bytes too short")]
    NoPayload {
        /// Type of the record.
        kind: String,
        /// Number of missing bytes.
        missing: u64,
    },
    /// A payload without a record, or more payload than its record declares.
    #[error(
        "{len} payload bytes without a record: only an AUXTRACE or HEADER_TRACING_DATA record has a payload"
    )]
    NoRecord {
        /// Number of excess bytes.
        len: u64,
    },
    /// A record cannot be encoded in a stream that contains only records, because its events are
    /// not known.
    #[error("a stream without metadata has no events to encode the record")]
    NoEvents,
    /// A section is too large for a record of a pipe.
    #[error("feature {name} has {size} bytes, but a record of a pipe can contain at most {max}")]
    TooLarge {
        /// The feature's name.
        name: String,
        /// Size of the section in bytes.
        size: usize,
        /// Maximum size in bytes.
        max: usize,
    },
    /// A section that must be split into records of a pipe is corrupt.
    #[error("feature {name} cannot be converted to records: {source}")]
    Section {
        /// The feature's name.
        name: String,
        /// The error in the section.
        source: perfdata_core::Error,
    },
    /// A feature section cannot be added to this file.
    #[error(
        "feature {name} cannot be added: the recording is unfinished or truncated, or its header has no feature table"
    )]
    Unfinished {
        /// The feature's name.
        name: String,
    },
    /// A changed recording cannot be written, because parts of its file share bytes and cannot be
    /// moved.
    #[error(
        "{part} changed its size from {planned} to {actual} bytes in a damaged file whose parts overlap"
    )]
    Overlap {
        /// The part that changed.
        part: Part,
        /// Its size in the original file, in bytes.
        planned: u64,
        /// Its new size in bytes.
        actual: u64,
    },
}

impl Error {
    /// Returns a function for `map_err`, which adds the part that was being written to an error of
    /// the system.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }
}

fn name(endian: Endian) -> &'static str {
    if endian == Endian::Little {
        "little-endian"
    } else {
        "big-endian"
    }
}
