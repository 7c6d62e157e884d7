//! The one error type of this crate: where in the input, in which structure and field, and what was
//! found there against what was expected.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::describe::field_name;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an input could not be read, or a value not be written.
///
/// Small (one pointer), so that `Result` stays cheap on the paths that run once per record.
pub struct Error(Box<Inner>);

struct Inner {
    offset: Option<u64>,
    structure: Cow<'static, str>,
    field: Option<Cow<'static, str>>,
    problem: Problem,
}

/// What is wrong, and so who is at fault.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused to read, seek or write.
    Io(io::Error),
    /// The input ends before the structure does; sizes in bytes.
    Truncated {
        /// Bytes that the structure needs from the offset on.
        needed: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// A value that the format does not allow.
    Invalid {
        /// What stands in the input.
        found: Cow<'static, str>,
        /// What may stand there.
        expected: Cow<'static, str>,
    },
    /// A value above the limit that the reader was given, for instance what a compressed record may grow to.
    Limit {
        /// What the input asks for, if it says that.
        found: Option<u64>,
        /// The limit's name, that of a field of [`Limits`](crate::read::Limits).
        name: &'static str,
        /// The most that is granted.
        limit: u64,
    },
    /// The meaning of these bytes is not known, and the operation needs it.
    Unknown(Cow<'static, str>),
}

impl Error {
    /// An error of `structure` with nothing said of the place yet.
    pub fn new(structure: impl Into<Cow<'static, str>>, problem: Problem) -> Self {
        Error(Box::new(Inner { offset: None, structure: structure.into(), field: None, problem }))
    }

    /// A value that the format does not allow.
    pub fn invalid(
        structure: impl Into<Cow<'static, str>>,
        field: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::new(structure, Problem::Invalid { found: found.into(), expected: expected.into() }).field(field)
    }

    /// An input that ends too early.
    pub fn truncated(structure: impl Into<Cow<'static, str>>, needed: u64, available: u64) -> Self {
        Error::new(structure, Problem::Truncated { needed, available })
    }

    /// A failed system call while `structure` was read or written.
    pub fn io(structure: impl Into<Cow<'static, str>>, error: io::Error) -> Self {
        Error::new(structure, Problem::Io(error))
    }

    /// Sets the absolute offset in the input.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds `base` to an offset that was relative to it so far.
    #[must_use]
    pub fn within(mut self, base: u64) -> Self {
        self.0.offset = Some(self.0.offset.unwrap_or(0).saturating_add(base));
        self
    }

    /// Sets the field of the structure.
    #[must_use]
    pub fn field(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// Replaces the structure, for instance by the name of the record that it is part of.
    #[must_use]
    pub fn structure(mut self, structure: impl Into<Cow<'static, str>>) -> Self {
        self.0.structure = structure.into();
        self
    }

    /// Says which file of a directory the offset is in.
    #[must_use]
    pub fn inside(mut self, file: &str) -> Self {
        self.0.structure = format!("{file}: {}", self.0.structure).into();
        self
    }

    /// Absolute offset in the input in bytes, where one is known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Whether the operating system, not the input, is the cause.
    pub fn is_io(&self) -> bool {
        matches!(self.0.problem, Problem::Io(_))
    }

    /// Translates what binrw says about `structure`, whose bytes begin at offset 0 of the reader and
    /// number `len`.
    pub(crate) fn from_binrw(structure: &'static str, len: u64, error: binrw::Error) -> Self {
        let field = innermost_field(&error);
        let error = match error {
            binrw::Error::Backtrace(backtrace) => *backtrace.error,
            other => other,
        };
        let out = match error {
            binrw::Error::AssertFail { pos, message } => {
                Error::new(structure, Problem::Invalid { found: message.into(), expected: "".into() }).at(pos)
            }
            binrw::Error::Custom { pos, err } => {
                match err.downcast::<Error>().map_err(|err| err.downcast::<WireError>()) {
                    // A structure within the structure knows more about it.
                    Ok(part) => return part.within(pos),
                    Err(Ok(err)) => Error::new(structure, err.problem()).at(pos),
                    Err(Err(_)) => Error::new(structure, Problem::Unknown("malformed".into())).at(pos),
                }
            }
            other if other.is_eof() => Error::truncated(structure, len.saturating_add(1), len).at(len),
            binrw::Error::Io(e) => Error::io(structure, e),
            other => Error::new(structure, Problem::Unknown(other.to_string().into())),
        };
        match field {
            Some(field) => out.field(field),
            None => out,
        }
    }
}

/// What the hand-written parts of the wire types report through binrw.
#[derive(Debug)]
pub(crate) enum WireError {
    Short { needed: u64, available: u64 },
    Invalid { found: String, expected: Cow<'static, str> },
}

impl WireError {
    fn problem(self) -> Problem {
        match self {
            WireError::Short { needed, available } => Problem::Truncated { needed, available },
            WireError::Invalid { found, expected } => Problem::Invalid { found: found.into(), expected },
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Short { needed, available } => write!(f, "{needed} bytes needed, {available} there"),
            WireError::Invalid { found, expected } => write!(f, "found {found}, expected {expected}"),
        }
    }
}

/// binrw names the field in the text of its backtrace's frames only, innermost first. Fields of tuple structs, which
/// it calls `self_0`, mean the field that holds them.
fn innermost_field(error: &binrw::Error) -> Option<String> {
    let binrw::Error::Backtrace(backtrace) = error else { return None };
    backtrace.frames.iter().find_map(|frame| match frame {
        binrw::error::BacktraceFrame::Full { message, .. } => {
            message.split('\'').nth(1).filter(|name| !name.starts_with("self_")).map(|name| field_name(name).to_owned())
        }
        _ => None,
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { offset, structure, field, problem } = &*self.0;
        if let Some(offset) = offset {
            write!(f, "at offset {offset:#x}: ")?;
        }
        f.write_str(structure)?;
        if let Some(field) = field {
            write!(f, ", field {field}")?;
        }
        f.write_str(": ")?;
        match problem {
            Problem::Io(e) => write!(f, "{e}"),
            Problem::Truncated { needed, available } => {
                write!(f, "{needed} bytes needed, {available} there")
            }
            Problem::Invalid { found, expected } if expected.is_empty() => f.write_str(found),
            Problem::Invalid { found, expected } => write!(f, "found {found}, expected {expected}"),
            Problem::Limit { found: Some(found), name, limit } => {
                write!(f, "{found} is above the limit {name} of {limit}")
            }
            Problem::Limit { found: None, name, limit } => write!(f, "more than the limit {name} of {limit} grants"),
            Problem::Unknown(what) => f.write_str(what),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("offset", &self.0.offset)
            .field("structure", &self.0.structure)
            .field("field", &self.0.field)
            .field("problem", &self.0.problem)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.problem {
            Problem::Io(e) => Some(e),
            _ => None,
        }
    }
}
