//! Why a command failed, and with which exit status.

use std::io;
use std::path::PathBuf;

use perfdata_core::error::Problem;

use crate::foreign::Foreign;

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
    /// What comes as a stream is something else than a recording.
    #[error("{source}")]
    Unrecognised {
        /// What it is.
        foreign: Foreign,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// An error that can be got around.
    #[error("{source}")]
    Avoidable {
        /// What is wrong.
        source: Box<Error>,
        /// How it goes.
        step: Step,
    },
}

/// What leads past an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The same command with these options.
    Add(String),
    /// Saving what can be read of the input, first.
    Recover,
}

impl Error {
    /// For `map_err`: the system's error with the file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }

    /// The same error with the step that leads past it.
    #[must_use]
    pub fn with_step(self, step: Step) -> Error {
        Error::Avoidable { source: Box::new(self), step }
    }

    /// For `map_err` and the like: a refusal, and the options with which it is none.
    pub fn refused_without(what: impl Into<String>, options: impl Into<String>) -> Error {
        Error::Refused(what.into()).with_step(Step::Add(options.into()))
    }

    /// For `map_err`: records that cannot be read are left out by `perfconv recover`.
    #[must_use]
    pub(crate) fn of_records(self) -> Error {
        match self {
            Error::Read(error) if !error.is_io() && !matches!(error.problem(), Problem::Limit { .. }) => {
                Error::Read(error).with_step(Step::Recover)
            }
            other => other,
        }
    }

    /// The step that leads past the error, if one is known.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Error::Avoidable { step, .. } => Some(step),
            Error::Compared { source, .. } => source.step(),
            _ => None,
        }
    }

    /// What is wrong with the input, where that is the trouble.
    pub fn of_input(&self) -> Option<&perfdata_core::Error> {
        match self {
            Error::Read(error) => Some(error),
            Error::Avoidable { source, .. } | Error::Unrecognised { source, .. } => source.of_input(),
            _ => None,
        }
    }

    /// 1: the input is bad or the conversion was refused; 2: usage, or the operating system.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Read(e) if e.is_io() => 2,
            Error::Write(perfdata_write::Error::Io { .. }) => 2,
            Error::Read(_) | Error::Write(_) | Error::Refused(_) => 1,
            Error::Usage(_) | Error::Compared { .. } | Error::Io { .. } => 2,
            Error::Avoidable { source, .. } | Error::Unrecognised { source, .. } => source.exit_code(),
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
