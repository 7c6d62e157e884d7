//! Why a recording could not be written.

use std::io;

use perfdata_core::arrangement::Part;

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
    #[error("{part:?} changed its size from {planned} to {actual} bytes in a damaged file whose parts overlap")]
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
