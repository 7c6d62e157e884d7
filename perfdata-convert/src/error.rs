//! Errors, and their solutions.

use std::io;
use std::path::PathBuf;

use perfdata_core::error::Problem;
use perfdata_core::feature::FeatureId;

use crate::foreign::Foreign;
use crate::stages::swap::Unknown;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is corrupt, or not a recording.
    #[error(transparent)]
    Read(#[from] perfdata_core::Error),
    /// The output could not be written.
    #[error(transparent)]
    Write(#[from] perfdata_write::Error),
    /// A correct conversion is not possible.
    #[error("{0}")]
    Refused(String),
    /// The arguments are invalid.
    #[error("{0}")]
    Usage(String),
    /// One of two recordings cannot be compared.
    #[error("{}: {source}", path.display())]
    Compared {
        /// The path of this recording.
        path: PathBuf,
        /// The reason.
        source: Box<Error>,
    },
    /// One of several recordings cannot be merged with the others.
    #[error("{}: {source}", path.display())]
    Merged {
        /// The path of this recording.
        path: PathBuf,
        /// The reason.
        source: Box<Error>,
    },
    /// An error of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A stream is not a recording.
    #[error("{source}")]
    Unrecognised {
        /// The type of its content.
        foreign: Foreign,
        /// The error of the reader.
        source: Box<Error>,
    },
    /// An error for which a solution is known.
    #[error("{source}")]
    Avoidable {
        /// The error.
        source: Box<Error>,
        /// The solution.
        step: Step,
    },
}

/// The solution for an operation that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Recover the input first: [`recover`](crate::recover).
    Recover,
    /// Overwrite the output: `force` of [`Output::create`](crate::io::Output::create).
    Overwrite,
    /// Drop a feature section: [`Change::Drop`](crate::stages::edit::Change::Drop).
    DropFeature(FeatureId),
    /// Set the bytes of a feature section:
    /// [`Change::Raw`](crate::stages::edit::Change::Raw).
    SetBytes(FeatureId),
    /// Decide what happens to unknown content. The value preserves as much as possible.
    Decide(Unknown),
    /// Decompress the records: [`Decompress`](crate::stages::decompress::Decompress).
    Decompress,
    /// Merge deferred callchains: `merge_deferred::MergeDeferred` of perfdata-inject.
    MergeDeferred,
    /// Name the difference between the clocks of jitdumps and recording:
    /// `jit::Jit::with_clock_offset` of perfdata-inject.
    JitClockOffset,
    /// Align the recordings by the time of day, or put one after the other:
    /// `merge::Align` of perfdata-edit.
    InOrder,
    /// Move the kernel of the later recordings: `merge::Merge::rebase_kernel` of perfdata-edit.
    RebaseKernel,
    /// A solution that only the caller knows, in its own words.
    Other(String),
}

impl Error {
    /// For `map_err`: adds the file to the error of the system.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { path, source }
    }

    /// Adds the solution to the error.
    #[must_use]
    pub fn with_step(self, step: Step) -> Error {
        Error::Avoidable {
            source: Box::new(self),
            step,
        }
    }

    /// Returns a refusal and its solution.
    pub fn refused_without(what: impl Into<String>, step: Step) -> Error {
        Error::Refused(what.into()).with_step(step)
    }

    /// For `map_err`: recovering the input discards records that cannot be read.
    #[must_use]
    pub fn of_records(self) -> Error {
        match self {
            Error::Read(error)
                if !error.is_io() && !matches!(error.problem(), Problem::Limit { .. }) =>
            {
                Error::Read(error).with_step(Step::Recover)
            }
            other => other,
        }
    }

    /// Returns the solution, if one is known.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Error::Avoidable { step, .. } => Some(step),
            Error::Compared { source, .. } | Error::Merged { source, .. } => source.step(),
            _ => None,
        }
    }

    /// Returns the error of the input, if the input is the reason.
    pub fn of_input(&self) -> Option<&perfdata_core::Error> {
        match self {
            Error::Read(error) => Some(error),
            Error::Avoidable { source, .. }
            | Error::Unrecognised { source, .. }
            | Error::Merged { source, .. } => source.of_input(),
            _ => None,
        }
    }

    /// Returns whether the content of the input is the reason: it is corrupt, or the conversion
    /// refuses it. Otherwise the arguments or the operating system are.
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::Read(error) => !error.is_io(),
            Error::Write(error) => !matches!(error, perfdata_write::Error::Io { .. }),
            Error::Refused(_) => true,
            Error::Usage(_) | Error::Compared { .. } | Error::Io { .. } => false,
            Error::Avoidable { source, .. }
            | Error::Unrecognised { source, .. }
            | Error::Merged { source, .. } => source.is_refusal(),
        }
    }

    /// Returns whether the reader of the output has quit, which is not an error of a command in a
    /// pipeline.
    pub fn is_broken_pipe(&self) -> bool {
        let source = match self {
            Error::Write(perfdata_write::Error::Io { source, .. }) | Error::Io { source, .. } => {
                source
            }
            _ => return false,
        };
        source.kind() == io::ErrorKind::BrokenPipe
    }
}
