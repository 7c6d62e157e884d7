//! Errors.

use std::fmt;
use std::io;

/// A result with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a bundle cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reports an error.
    Io(io::Error),
    /// A temporary file cannot be written.
    Temporary(io::Error),
    /// The bytes at this offset are not those of a bundle.
    Corrupt {
        /// Offset in the bundle in bytes.
        offset: u64,
        /// What was found.
        what: String,
    },
    /// A member is missing.
    Missing(&'static str),
    /// A member has more bytes than are accepted.
    TooLarge {
        /// Name of the member.
        member: String,
        /// Maximum number of bytes after decompression.
        most: u64,
    },
    /// A path is too long for the name of a member, or leads out of its folder.
    Name(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::Temporary(error) => write!(f, "temporary file: {error}"),
            Error::Corrupt { offset, what } => write!(f, "bundle, offset {offset:#x}: {what}"),
            Error::Missing(member) => write!(f, "the bundle contains no {member}"),
            Error::TooLarge { member, most } => {
                write!(f, "bundle, {member}: more than {most} bytes")
            }
            Error::Name(name) => write!(f, "{name}: not a path that a bundle can contain"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) | Error::Temporary(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}
