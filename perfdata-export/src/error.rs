//! Errors of exports.

use std::io;

use crate::script::FieldsError;

/// Why a recording could not be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] perfdata_core::Error),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
    /// A field of the text of `perf script` was requested that the samples of an event do not have.
    #[error(transparent)]
    Fields(#[from] FieldsError),
    /// The output would be larger than its format allows.
    #[error(
        "the output would have {len} bytes, but its format allows {most}: export a part of the recording"
    )]
    TooLarge {
        /// Size of the output in bytes.
        len: u64,
        /// Maximum size in bytes.
        most: u64,
    },
    /// There is nothing of which a profile for compilers can be made.
    #[error("{0}")]
    Profile(String),
    /// The file of the object of a profile cannot be used.
    #[error("{name}: {reason}")]
    Object {
        /// The object in the recording.
        name: String,
        /// Why.
        reason: String,
    },
    /// The metadata of a stream changes too often for several threads.
    #[error("the metadata of the stream changes too often for several threads")]
    ChangesTooOften,
    /// A temporary file cannot be created, written or read.
    #[error("a temporary file: {0}")]
    Temporary(#[source] io::Error),
}

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;
