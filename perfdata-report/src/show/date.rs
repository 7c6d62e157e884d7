//! Dates and times.

/// Seconds per day.
const DAY: i64 = 86_400;

/// Year, month, day, hour, minute and second, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date([i64; 6]);

impl Date {
    /// Returns the date of a time in seconds since 1970-01-01 00:00:00 UTC.
    pub fn from_unix(seconds: i64) -> Self {
        // Years that start in March end with the leap day; 400 of them always have the same length.
        let days = seconds.div_euclid(DAY) + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = 400 * era + year + i64::from(month <= 2);
        let second = seconds.rem_euclid(DAY);
        Date([
            year,
            month,
            day,
            second / 3600,
            second / 60 % 60,
            second % 60,
        ])
    }

    /// Formats the date as `2026-11-22 16:20:13 UTC`.
    pub fn text(self) -> String {
        let Date([year, month, day, hour, minute, second]) = self;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }

    /// Formats the date as `2026-11-22T16:20:13Z`.
    pub fn iso(self) -> String {
        let Date([year, month, day, hour, minute, second]) = self;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_364_413, "2026-11-22T16:20:13Z"),
            (18_446_744_073, "2554-07-21T23:34:33Z"),
        ] {
            assert_eq!(Date::from_unix(seconds).iso(), expected, "{seconds}");
        }
        assert_eq!(
            Date::from_unix(951_782_400).text(),
            "2000-02-29 00:00:00 UTC"
        );
    }
}
