//! The paths of the files of many recordings in one directory.

use std::fmt::Write as _;

use crate::schema::Table;

/// The ending of Parquet files.
pub const ENDING: &str = ".parquet";

/// The value of a partition that is null, in the convention of Hive.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Maximum length of a value in bytes. The name of a file has at most 255.
const MOST: usize = 200;

/// Microseconds in a day.
const DAY: i64 = 86_400_000_000;

/// The values by which files are divided into folders, in the convention of Hive:
/// `date=DATE/host=HOST`.
///
/// ```
/// use perfdata_columns::{Partition, Table};
///
/// let partition = Partition::new(Some(1_795_364_413_000_000), Some("web 1"));
/// let path = partition.path_of(&Table::Samples, "0123");
/// assert_eq!(path, "samples/date=2026-11-22/host=web%201/0123.parquet");
/// assert_eq!(partition.path_of(&Table::Recordings, "0123"), "recordings/0123.parquet");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    date: String,
    host: String,
}

impl Partition {
    /// Returns the partition of a recording that began at `time`, in microseconds since 1970 (UTC),
    /// on a host. What is not known becomes `__HIVE_DEFAULT_PARTITION__`.
    pub fn new(time: Option<i64>, host: Option<&str>) -> Self {
        Partition {
            date: time.map_or_else(|| NULL.into(), date_of),
            host: host
                .filter(|host| !host.is_empty())
                .map_or_else(|| NULL.into(), encoded),
        }
    }

    /// Returns the path of a table's file for the recording `id`. The tables `recordings` and
    /// `broken` are not divided.
    pub fn path_of(&self, table: &Table, id: &str) -> String {
        self.path_of_name(&table.name(), id)
    }

    /// Returns the path of the file of the table called `table`, as [`path_of`](Self::path_of).
    pub fn path_of_name(&self, table: &str, id: &str) -> String {
        let Partition { date, host } = self;
        if [Table::Recordings, Table::Broken]
            .iter()
            .any(|whole| table == whole.name())
        {
            return format!("{table}/{id}{ENDING}");
        }
        format!("{table}/date={date}/{}/{id}{ENDING}", folder_of_host(host))
    }

    /// Returns the name of the folder of the host.
    pub fn host_folder(&self) -> String {
        folder_of_host(&self.host)
    }
}

fn folder_of_host(host: &str) -> String {
    format!("host={host}")
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

/// Returns a value as the name of a folder: other characters than letters, digits, `_`, `-` and `.`
/// are percent-encoded, as engines expect it.
fn encoded(value: &str) -> String {
    let mut shown = String::new();
    for &byte in value.as_bytes() {
        if shown.len() >= MOST {
            break;
        }
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            shown.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(shown, "%{byte:02X}");
        }
    }
    shown
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

    #[test]
    fn hosts_are_names_of_folders() {
        let folder = |host| Partition::new(None, host).path_of(&Table::Lost, "id");
        let null = format!("date={NULL}");
        assert_eq!(folder(None), format!("lost/{null}/host={NULL}/id.parquet"));
        assert_eq!(folder(Some("")), folder(None));
        let odd = folder(Some("../a=b/ü\n"));
        assert_eq!(
            odd,
            format!("lost/{null}/host=..%2Fa%3Db%2F%C3%BC%0A/id.parquet")
        );
        assert!(folder(Some(&"ü".repeat(1000))).len() < 300);
    }
}
