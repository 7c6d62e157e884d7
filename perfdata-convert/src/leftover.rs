//! What is left of a record stream where it cannot be read on, in words.

use std::fmt;

use perfdata_core::Error;
use perfdata_core::read::{RecordSource, Tail};

use crate::error::{self, Step};

/// What is said of a record that is cut.
pub(crate) const CUT: &str = "the recording ends inside this record";

/// The bytes at the end of a record stream that are no whole record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// How many there are. Where the data behind the last record end early, there are none.
    pub bytes: u64,
    /// What they are.
    pub tail: Tail,
    /// Absolute offset of the first of them.
    pub offset: u64,
    /// Why they are no record.
    pub why: String,
}

impl Leftover {
    /// The `bytes` that `reader`, which is at its end, could not read as records.
    pub fn of(reader: &(impl RecordSource + ?Sized), bytes: u64) -> Option<Self> {
        let (damage, tail) = (reader.damage()?, reader.tail()?);
        Some(Leftover { bytes, tail, offset: damage.offset().unwrap_or(0), why: without_place(damage) })
    }

    /// The refusal of a conversion that would drop these bytes, unless they are the start of the last record, messages
    /// of perf, or zeros.
    ///
    /// # Errors
    /// They are damaged.
    pub(crate) fn check(&self) -> error::Result<()> {
        match self.tail {
            Tail::Cut | Tail::Text | Tail::Zeros => Ok(()),
            Tail::Damage => Err(damaged(self.offset, &self.why)),
        }
    }

    /// The refusal of a conversion to a file, where a record without all of the data behind it would take for data what
    /// follows it.
    ///
    /// # Errors
    /// The data behind the last record end early.
    pub(crate) fn check_payload(&self) -> error::Result<()> {
        if self.bytes > 0 {
            return Ok(());
        }
        let what = format!("at offset {:#x}: {}: a file has no place for it", self.offset, self.meaning());
        Err(error::Error::Refused(what).with_step(Step::Recover))
    }

    /// The same in a report that has the offset already.
    pub(crate) fn meaning(&self) -> String {
        let Leftover { bytes, tail, why, .. } = self;
        match tail {
            Tail::Cut => format!("{why}: {CUT}"),
            Tail::Text => format!("{bytes} bytes from here on are messages of perf record, no records"),
            Tail::Zeros => format!("{why}: {bytes} zeros from here on, room for records that were never written"),
            Tail::Damage if *bytes == 0 => format!("{why}: there are records in it, so its size is wrong"),
            Tail::Damage => format!("{why}: damaged; {bytes} bytes from here on are no records"),
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Leftover { bytes, tail, offset, why } = self;
        match tail {
            Tail::Cut if *bytes > 0 => {
                write!(f, "the last {bytes} bytes are no whole record: at offset {offset:#x}: {why}")
            }
            Tail::Text => write!(f, "the last {bytes} bytes are messages of perf record, no records"),
            Tail::Zeros => write!(f, "the last {bytes} bytes are zeros, room for records that were never written"),
            _ => write!(f, "at offset {offset:#x}: {}", self.meaning()),
        }
    }
}

/// The refusal of a conversion that would drop records behind damage at `offset`.
pub(crate) fn damaged(offset: u64, why: impl fmt::Display) -> error::Error {
    let what = format!("at offset {offset:#x}: {why}: the records are damaged here, and those behind would be lost");
    error::Error::Refused(what).with_step(Step::Recover)
}

/// What an error of the library says behind its offset.
pub(crate) fn without_place(error: &Error) -> String {
    let text = error.to_string();
    match (error.offset(), text.split_once(": ")) {
        (Some(_), Some((_, rest))) => rest.to_owned(),
        _ => text,
    }
}
