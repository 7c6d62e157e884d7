//! The paths of the files of many recordings in one directory.

use crate::schema::Table;

/// The ending of Parquet files.
pub const ENDING: &str = ".parquet";

/// The value of a partition that is null, in the convention of Hive.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Microseconds in a day.
const DAY: i64 = 86_400_000_000;

/// The value by which files are divided into folders, in the convention of Hive: `date=DATE`.
///
/// ```
/// use perfdata_columns::{Partition, Table};
///
/// let partition = Partition::new(Some(1_795_364_413_000_000));
/// let path = partition.path_of(&Table::Samples, "0123");
/// assert_eq!(path, "samples/date=2026-11-22/0123.parquet");
/// assert_eq!(partition.path_of(&Table::Recordings, "0123"), "recordings/0123.parquet");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    date: String,
}

impl Partition {
    /// Returns the partition of a recording that began at `time`, in microseconds since 1970 (UTC).
    /// Without a time, the date is `__HIVE_DEFAULT_PARTITION__`.
    pub fn new(time: Option<i64>) -> Self {
        Partition {
            date: time.map_or_else(|| NULL.into(), date_of),
        }
    }

    /// Returns the path of a table's file for the recording `id`. The tables `recordings` and
    /// `broken` are not divided.
    pub fn path_of(&self, table: &Table, id: &str) -> String {
        self.path_of_name(&table.name(), id)
    }

    /// Returns the path of the file of the table called `table`, as [`path_of`](Self::path_of).
    pub fn path_of_name(&self, table: &str, id: &str) -> String {
        if [Table::Recordings, Table::Broken]
            .iter()
            .any(|whole| table == whole.name())
        {
            return format!("{table}/{id}{ENDING}");
        }
        format!("{table}/date={}/{id}{ENDING}", self.date)
    }
}

/// Returns the date of a time as `2026-11-22`.
fn date_of(micros: i64) -> String {
    // The calendar repeats after 400 years. Years that start in March end with the leap day.
    let days = micros.div_euclid(DAY).saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = day
        .saturating_sub(day.div_euclid(1460))
        .saturating_add(day.div_euclid(36_524))
        .saturating_sub(day.div_euclid(146_096))
        .div_euclid(365);
    let before = year
        .saturating_mul(365)
        .saturating_add(year.div_euclid(4))
        .saturating_sub(year.div_euclid(100));
    let day = day.saturating_sub(before);
    let month = day.saturating_mul(5).saturating_add(2).div_euclid(153);
    let first = month.saturating_mul(153).saturating_add(2).div_euclid(5);
    let day = day.saturating_sub(first).saturating_add(1);
    let (month, next) = match month {
        0..10 => (month.saturating_add(3), 0),
        _ => (month.saturating_sub(9), 1),
    };
    let year = era
        .saturating_mul(400)
        .saturating_add(year)
        .saturating_add(next);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (4_107_542_400, "2100-03-01"),
            (1_795_364_413, "2026-11-22"),
        ] {
            assert_eq!(date_of(seconds * 1_000_000), expected);
        }
        date_of(i64::MIN);
        date_of(i64::MAX);
    }
}
