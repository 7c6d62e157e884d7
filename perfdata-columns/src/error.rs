//! Errors.

use std::io;
use std::path::PathBuf;

use arrow_schema::ArrowError;

/// Why a recording could not be converted to columns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The recording cannot be read, or exceeds its limits.
    #[error(transparent)]
    Recording(#[from] perfdata_core::Error),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[source] io::Error),
    /// A file of a table cannot be read.
    #[error("{}: {error}", .path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// The samples cannot be resolved.
    #[error(transparent)]
    Samples(perfdata_export::Error),
    /// The library for Arrow or Parquet refuses the data.
    #[error("columns cannot be encoded: {0}")]
    Encoding(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns an error of reading the file `path`.
    #[cfg(feature = "parquet")]
    pub(crate) fn in_file(path: &std::path::Path, error: Error) -> Self {
        // The conversions from the errors of the libraries take it for one of writing.
        let error = match error {
            Error::Output(error) => error.to_string(),
            Error::Encoding(error) => error.to_string(),
            other => other.to_string(),
        };
        Error::InFile {
            path: path.to_owned(),
            error,
        }
    }
}

/// Returns an error on a big-endian host: the libraries write the numbers of Parquet files and
/// Arrow streams in the byte order of the host, and readers expect little-endian.
pub(crate) fn require_little_endian_host() -> Result<()> {
    if cfg!(target_endian = "little") {
        return Ok(());
    }
    let what = "Parquet files and Arrow streams can only be written on a little-endian host";
    Err(Error::Encoding(what.into()))
}

/// The result of an operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<perfdata_export::Error> for Error {
    fn from(error: perfdata_export::Error) -> Self {
        match error {
            perfdata_export::Error::Recording(error) => Error::Recording(error),
            perfdata_export::Error::Output(error) => Error::Output(error),
            other => Error::Samples(other),
        }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Error::Output(error),
            ArrowError::ExternalError(error) => match error.downcast::<io::Error>() {
                Ok(error) => Error::Output(*error),
                Err(error) => Error::Encoding(error),
            },
            other => Error::Encoding(other.into()),
        }
    }
}

#[cfg(feature = "parquet")]
impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => Error::Output(*error),
                Err(error) => Error::Encoding(error),
            },
            other => Error::Encoding(other.into()),
        }
    }
}
