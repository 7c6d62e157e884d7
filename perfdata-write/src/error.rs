//! Why a recording could not be written.

use std::io;

use perfdata_core::Endian;
use perfdata_core::container_layout::Part;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("writing {what}: {source}")]
    Io {
        /// What was being written.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A value that cannot be encoded.
    #[error(transparent)]
    Encode(#[from] perfdata_core::Error),
    /// A record in the other byte order than the recording.
    #[error("a record in {} order for a recording in {} order", name(*.found), name(*.expected))]
    ByteOrder {
        /// That of the record.
        found: Endian,
        /// That of the recording.
        expected: Endian,
    },
    /// A record without all of the payload that it announces.
    #[error("{missing} bytes are missing of the payload that the {kind} record announces, and that goes with it")]
    NoPayload {
        /// Type of the record.
        kind: String,
        /// How many bytes.
        missing: u64,
    },
    /// A payload of no record, or more than its record announces.
    #[error("{len} bytes that no record announces: only an AUXTRACE or HEADER_TRACING_DATA record has a payload")]
    NoRecord {
        /// How many bytes.
        len: u64,
    },
    /// A record to be encoded in a stream of nothing but records, whose events are not known.
    #[error("a stream of bare records has no events to encode a record for")]
    NoEvents,
    /// A section that does not fit into a record of a pipe.
    #[error("feature {name} has {size} bytes, a record of a pipe holds {max}")]
    TooLarge {
        /// The feature's name.
        name: String,
        /// Bytes of the section.
        size: usize,
        /// The most that fit.
        max: usize,
    },
    /// A section whose parts become records of a pipe, and which cannot be read.
    #[error("feature {name} cannot be made into records: {source}")]
    Section {
        /// The feature's name.
        name: String,
        /// What is wrong with it.
        source: perfdata_core::Error,
    },
    /// A section in a file that has no place for one.
    #[error("feature {name} cannot be added: the recording was never finished, is cut, or has no room for features")]
    Unfinished {
        /// The feature's name.
        name: String,
    },
    /// A changed recording whose parts share bytes: nothing can move.
    #[error("{part} changed its size from {planned} to {actual} bytes in a damaged file whose parts overlap")]
    Overlap {
        /// The part that changed.
        part: Part,
        /// Its size as found.
        planned: u64,
        /// Its size now.
        actual: u64,
    },
}

impl Error {
    /// For `map_err`: the system's error with what was being written.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }
}

fn name(endian: Endian) -> &'static str {
    if endian == Endian::Little { "little-endian" } else { "big-endian" }
}
