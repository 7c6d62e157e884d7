//! Describes the rest of a record stream that cannot be read as records.

use std::fmt;

use perfdata_core::Error;
use perfdata_core::read::{RecordSource, Tail};

use crate::count::number_of;
use crate::error::{self, Step};

/// The description of a truncated record.
pub(crate) const CUT: &str = "the recording ends inside this record";

/// The bytes at the end of a record stream that are not a complete record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Their number; 0 if the data after the last record are truncated.
    pub bytes: u64,
    /// Their kind.
    pub tail: Tail,
    /// Absolute offset of the first byte.
    pub offset: u64,
    /// The reason why they are not a record.
    pub why: String,
}

impl Leftover {
    /// Returns the `bytes` that `reader`, which is at its end, could not read as records.
    pub fn of(reader: &(impl RecordSource + ?Sized), bytes: u64) -> Option<Self> {
        let (damage, tail) = (reader.damage()?, reader.tail()?);
        Some(Leftover {
            bytes,
            tail,
            offset: damage.offset().unwrap_or(0),
            why: without_place(damage),
        })
    }

    /// Refuses a conversion that would drop these bytes, unless they are the start of the last
    /// record, messages of perf, or zeros.
    ///
    /// # Errors
    /// The bytes are corrupt.
    pub fn check(&self) -> error::Result<()> {
        match self.tail {
            Tail::Cut | Tail::Text | Tail::Zeros => Ok(()),
            // A kind that is not known here is not known to be harmless.
            _ => Err(damaged(self.offset, &self.why)),
        }
    }

    /// Returns the error for who needs complete records.
    pub(crate) fn error(&self) -> error::Error {
        let what = format!("at offset {:#x}: {}", self.offset, self.why);
        error::Error::Refused(what).with_step(Step::Recover)
    }

    /// Refuses a conversion to a file if the data after a record are incomplete: readers would
    /// interpret the bytes that follow as these data.
    ///
    /// # Errors
    /// The data after the last record are truncated.
    pub(crate) fn check_payload(&self) -> error::Result<()> {
        if self.bytes > 0 {
            return Ok(());
        }
        let what = format!(
            "at offset {:#x}: {}: a file cannot contain it",
            self.offset,
            self.meaning()
        );
        Err(error::Error::Refused(what).with_step(Step::Recover))
    }

    /// Returns the description for a report that already contains the offset.
    pub(crate) fn meaning(&self) -> String {
        let Leftover {
            bytes, tail, why, ..
        } = self;
        match tail {
            Tail::Cut => format!("{why}: {CUT}"),
            Tail::Text => format!(
                "{} from here on: messages of perf record, not records",
                number_of(*bytes, "byte")
            ),
            Tail::Zeros => {
                format!(
                    "{why}: {} from here on, space for records that were never written",
                    number_of(*bytes, "zero")
                )
            }
            Tail::Damage if *bytes == 0 => {
                format!("{why}: there are records in it, so its size is wrong")
            }
            _ => match bytes {
                1 => format!("{why}: corrupt; the last byte is not a record"),
                _ => format!("{why}: corrupt; the {bytes} bytes from here on are not records"),
            },
        }
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Leftover {
            bytes,
            tail,
            offset,
            why,
        } = self;
        match tail {
            Tail::Cut if *bytes == 1 => {
                write!(
                    f,
                    "the last byte is an incomplete record: at offset {offset:#x}: {why}"
                )
            }
            Tail::Cut if *bytes > 0 => {
                write!(
                    f,
                    "the last {bytes} bytes are an incomplete record: at offset {offset:#x}: {why}"
                )
            }
            Tail::Text => write!(
                f,
                "the last {bytes} bytes are messages of perf record, not records"
            ),
            Tail::Zeros => write!(
                f,
                "the last {bytes} bytes are zeros, space for records that were never written"
            ),
            _ => write!(f, "at offset {offset:#x}: {}", self.meaning()),
        }
    }
}

/// Returns the error of a conversion that would drop records after a corrupt part at `offset`.
pub(crate) fn damaged(offset: u64, why: impl fmt::Display) -> error::Error {
    let what = format!(
        "at offset {offset:#x}: {why}: the records are corrupt here, and all later ones would be lost"
    );
    error::Error::Refused(what).with_step(Step::Recover)
}

/// Returns the text of a library error after its offset.
pub fn without_place(error: &Error) -> String {
    let text = error.to_string();
    match (error.offset(), text.split_once(": ")) {
        (Some(_), Some((_, rest))) => rest.to_owned(),
        _ => text,
    }
}
