//! Why a command failed, and with which exit status.

use std::io;
use std::path::PathBuf;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is damaged, or no recording.
    #[error(transparent)]
    Read(#[from] perfdata_core::Error),
    /// The output could not be made.
    #[error(transparent)]
    Write(#[from] perfdata_write::Error),
    /// The conversion cannot be done right, so it is not done.
    #[error("{0}")]
    Refused(String),
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// One of two recordings cannot be compared.
    #[error("{}: {source}", path.display())]
    Compared {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<Error>,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: the system's error with the file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }

    /// 1: the input is bad or the conversion was refused; 2: usage, or the operating system.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Read(e) if e.is_io() => 2,
            Error::Write(perfdata_write::Error::Io { .. }) => 2,
            Error::Read(_) | Error::Write(_) | Error::Refused(_) => 1,
            Error::Usage(_) | Error::Compared { .. } | Error::Io { .. } => 2,
        }
    }

    /// Whether the reader of the output went away: not an error of a command in a pipeline.
    pub fn is_broken_pipe(&self) -> bool {
        let source = match self {
            Error::Write(perfdata_write::Error::Io { source, .. }) | Error::Io { source, .. } => source,
            _ => return false,
        };
        source.kind() == io::ErrorKind::BrokenPipe
    }
}
