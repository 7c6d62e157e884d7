//! The only error type of this crate: the offset in the input, the structure and field, what was
//! found and what was expected.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::describe::field_name;

/// Result of all fallible functions of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an input could not be read or a value could not be written.
///
/// Small (one pointer), so that `Result` stays cheap on the paths that run once per record.
pub struct Error(Box<Inner>);

struct Inner {
    offset: Option<u64>,
    structure: Cow<'static, str>,
    field: Option<Cow<'static, str>>,
    problem: Problem,
}

/// The kind of problem, which also determines its cause.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A read, seek or write of the operating system failed.
    Io(io::Error),
    /// The input ends before the structure does. Sizes in bytes.
    Truncated {
        /// Bytes that the structure needs, counted from the offset.
        needed: u64,
        /// Available bytes.
        available: u64,
    },
    /// A value that the format does not allow.
    Invalid {
        /// Value in the input.
        found: Cow<'static, str>,
        /// Permitted values.
        expected: Cow<'static, str>,
    },
    /// A value above a limit given to the reader, for example the size of decompressed data.
    Limit {
        /// The value in the input, if the input contains it.
        found: Option<u64>,
        /// Name of the limit: a field of [`Limits`](crate::read::Limits).
        name: &'static str,
        /// Value of the limit.
        limit: u64,
    },
    /// The operation needs the meaning of these bytes, which is unknown.
    Unknown(Cow<'static, str>),
}

impl Error {
    /// Returns an error of `structure` without an offset and a field.
    pub fn new(structure: impl Into<Cow<'static, str>>, problem: Problem) -> Self {
        Error(Box::new(Inner {
            offset: None,
            structure: structure.into(),
            field: None,
            problem,
        }))
    }

    /// Returns an error for a value that the format does not allow.
    pub fn invalid(
        structure: impl Into<Cow<'static, str>>,
        field: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error::new(
            structure,
            Problem::Invalid {
                found: found.into(),
                expected: expected.into(),
            },
        )
        .field(field)
    }

    /// Returns an error for an input that ends too early.
    pub fn truncated(structure: impl Into<Cow<'static, str>>, needed: u64, available: u64) -> Self {
        Error::new(structure, Problem::Truncated { needed, available })
    }

    /// Returns an error for a system call that failed while `structure` was read or written.
    pub fn io(structure: impl Into<Cow<'static, str>>, error: io::Error) -> Self {
        Error::new(structure, Problem::Io(error))
    }

    /// Sets the absolute offset in the input.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Adds `base` to an offset that is relative to it.
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

    /// Replaces the structure, for example with the name of the record that contains it.
    #[must_use]
    pub fn structure(mut self, structure: impl Into<Cow<'static, str>>) -> Self {
        self.0.structure = structure.into();
        self
    }

    /// Adds the file of a directory to which the offset refers.
    #[must_use]
    pub fn inside(mut self, file: &str) -> Self {
        self.0.structure = format!("{file}: {}", self.0.structure).into();
        self
    }

    /// Returns the absolute offset in the input in bytes, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the name of the structure.
    pub fn structure_name(&self) -> &str {
        &self.0.structure
    }

    /// Returns the name of the field, if known.
    pub fn field_name(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// Returns the problem.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Returns whether the cause is the operating system, not the input.
    pub fn is_io(&self) -> bool {
        matches!(self.0.problem, Problem::Io(_))
    }

    /// Translates binrw's error about `structure`, whose `len` bytes begin at offset 0 of the
    /// reader.
    pub(crate) fn from_binrw(structure: &'static str, len: u64, error: binrw::Error) -> Self {
        let field = innermost_field(&error);
        let error = match error {
            binrw::Error::Backtrace(backtrace) => *backtrace.error,
            other => other,
        };
        let out = match error {
            binrw::Error::AssertFail { pos, message } => Error::new(
                structure,
                Problem::Invalid {
                    found: message.into(),
                    expected: "".into(),
                },
            )
            .at(pos),
            binrw::Error::Custom { pos, err } => {
                match err
                    .downcast::<Error>()
                    .map_err(|err| err.downcast::<WireError>())
                {
                    // The error of an inner structure is more precise.
                    Ok(part) => return part.within(pos),
                    Err(Ok(err)) => Error::new(structure, err.problem()).at(pos),
                    Err(Err(_)) => {
                        Error::new(structure, Problem::Unknown("malformed".into())).at(pos)
                    }
                }
            }
            other if other.is_eof() => {
                Error::truncated(structure, len.saturating_add(1), len).at(len)
            }
            binrw::Error::Io(e) => Error::io(structure, e),
            other => Error::new(structure, Problem::Unknown(other.to_string().into())),
        };
        match field {
            Some(field) => out.field(field),
            None => out,
        }
    }
}

/// Errors that the hand-written parts of the wire types report through binrw.
#[derive(Debug)]
pub(crate) enum WireError {
    Short {
        needed: u64,
        available: u64,
    },
    Invalid {
        found: String,
        expected: Cow<'static, str>,
    },
}

impl WireError {
    fn problem(self) -> Problem {
        match self {
            WireError::Short { needed, available } => Problem::Truncated { needed, available },
            WireError::Invalid { found, expected } => Problem::Invalid {
                found: found.into(),
                expected,
            },
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Short { needed, available } => {
                write!(f, "{needed} bytes needed, {available} available")
            }
            WireError::Invalid { found, expected } => {
                write!(f, "found {found}, expected {expected}")
            }
        }
    }
}

/// Returns the innermost field. binrw names it only in the text of its backtrace's frames,
/// innermost first. For fields of tuple structs, which binrw calls `self_0`, the field that
/// contains the tuple struct is returned.
fn innermost_field(error: &binrw::Error) -> Option<String> {
    let binrw::Error::Backtrace(backtrace) = error else {
        return None;
    };
    backtrace.frames.iter().find_map(|frame| match frame {
        binrw::error::BacktraceFrame::Full { message, .. } => message
            .split('\'')
            .nth(1)
            .filter(|name| !name.starts_with("self_"))
            .map(|name| field_name(name).to_owned()),
        _ => None,
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            offset,
            structure,
            field,
            problem,
        } = &*self.0;
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
                write!(f, "{needed} bytes needed, {available} available")
            }
            Problem::Invalid { found, expected } if expected.is_empty() => f.write_str(found),
            Problem::Invalid { found, expected } => write!(f, "found {found}, expected {expected}"),
            Problem::Limit {
                found: Some(found),
                name,
                limit,
            } => {
                write!(f, "{found} exceeds the limit {name} of {limit}")
            }
            Problem::Limit {
                found: None,
                name,
                limit,
            } => write!(f, "exceeds the limit {name} of {limit}"),
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
