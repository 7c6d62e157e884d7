//! Where the date of a recording comes from.

use std::fmt;

/// Where the time of a recording, and with it the date of its partition, comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DateSource {
    /// The first sample, by CLOCK_DATA.
    Clock,
    /// CLOCK_DATA alone: no sample has a time.
    Header,
    /// The caller says when all recordings were made.
    Option,
    /// The name of the file.
    Name,
    /// The last change of the file. Copies often have another one.
    Modified,
}

impl DateSource {
    /// All sources, the best first.
    pub const ALL: [DateSource; 5] = [
        DateSource::Clock,
        DateSource::Header,
        DateSource::Option,
        DateSource::Name,
        DateSource::Modified,
    ];

    /// Returns the name, as in the column `date_source`.
    pub fn name(self) -> &'static str {
        match self {
            DateSource::Clock => "clock",
            DateSource::Header => "header",
            DateSource::Option => "option",
            DateSource::Name => "name",
            DateSource::Modified => "mtime",
        }
    }
}

impl fmt::Display for DateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When a recording was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedAt {
    /// Microseconds since 1970 (UTC).
    pub micros: i64,
    /// Where this comes from.
    pub source: DateSource,
}
