//! What could not be parsed.

use std::borrow::Cow;
use std::fmt;

/// The result of parsing.
pub(crate) type Parsed<T> = Result<T, Problem>;

/// What could not be parsed in a `format` file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Offset in the file in bytes.
    pub offset: usize,
    /// What is there.
    pub found: String,
    /// What libtraceevent needs there.
    pub expected: Cow<'static, str>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            offset,
            found,
            expected,
        } = self;
        write!(
            f,
            "offset {offset:#x} of the format: found {found}, expected {expected}"
        )
    }
}

impl std::error::Error for Problem {}
