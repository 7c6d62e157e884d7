//! Why a file was not fetched.

use std::fmt;
use std::io;

use perfdata_session::BuildId;

/// Why a file was not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchFailure {
    /// No server has the file.
    NotFound,
    /// The server cannot be reached, and why.
    Unreachable(String),
    /// No server is left that could be reached.
    NoServer,
    /// The transfer made no progress for this time in seconds, or took longer than permitted.
    Timeout,
    /// The server reported an error.
    Status(u16),
    /// The server forwards the request too often, or to an address that is not permitted.
    Redirects,
    /// The file is larger than this maximum in bytes.
    TooLarge(u64),
    /// The transfer ended before the file was complete.
    Incomplete,
    /// The answer violates the protocol.
    Invalid(String),
    /// The file is not an ELF file.
    Unreadable(String),
    /// The file has another build ID, or none.
    OtherBuildId(Option<BuildId>),
    /// The file cannot be written to the cache.
    Unwritable(String),
}

impl FetchFailure {
    /// Returns whether the server cannot be reached or does not answer.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self, FetchFailure::Unreachable(_) | FetchFailure::Timeout)
    }

    /// Returns the failure to write to the cache.
    pub(crate) fn unwritable(error: io::Error) -> Self {
        FetchFailure::Unwritable(error.to_string())
    }
}

impl From<ureq::Error> for FetchFailure {
    fn from(error: ureq::Error) -> Self {
        use ureq::Timeout;

        let is_broken = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
            )
        };
        match error {
            ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                FetchFailure::Unreachable("the connection was not accepted in time".into())
            }
            ureq::Error::Timeout(_) => FetchFailure::Timeout,
            ureq::Error::TooManyRedirects | ureq::Error::RedirectFailed => FetchFailure::Redirects,
            ureq::Error::HostNotFound => FetchFailure::Unreachable("its name is not known".into()),
            ureq::Error::Io(error) if is_broken(&error) => FetchFailure::Incomplete,
            ureq::Error::Io(error) => FetchFailure::Unreachable(error.to_string()),
            ureq::Error::ConnectionFailed | ureq::Error::ConnectProxyFailed(_) => {
                FetchFailure::Unreachable("the connection failed".into())
            }
            ureq::Error::Tls(error) => FetchFailure::Unreachable(error.into()),
            ureq::Error::Rustls(error) => FetchFailure::Unreachable(error.to_string()),
            other => FetchFailure::Invalid(other.to_string()),
        }
    }
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchFailure::NotFound => f.write_str("no server has it"),
            FetchFailure::Unreachable(error) => f.write_str(error),
            FetchFailure::NoServer => f.write_str("no server can be reached"),
            FetchFailure::Timeout => f.write_str("the server does not answer"),
            FetchFailure::Status(status) => write!(f, "the server reports HTTP status {status}"),
            FetchFailure::Redirects => f.write_str("the server redirects too often"),
            FetchFailure::TooLarge(most) => {
                write!(f, "it has more than {most} bytes (DEBUGINFOD_MAXSIZE)")
            }
            FetchFailure::Incomplete => f.write_str("the transfer ended before it was complete"),
            FetchFailure::Invalid(error) => write!(f, "the answer is not valid: {error}"),
            FetchFailure::Unreadable(error) => write!(f, "the file is not an ELF file: {error}"),
            FetchFailure::OtherBuildId(Some(id)) => write!(f, "the file has the build ID {id}"),
            FetchFailure::OtherBuildId(None) => f.write_str("the file has no build ID"),
            FetchFailure::Unwritable(error) => write!(f, "the cache cannot be written: {error}"),
        }
    }
}

impl std::error::Error for FetchFailure {}
