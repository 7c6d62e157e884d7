//! When recordings were made, as the command line says it.

use std::str::FromStr;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime};

/// A time of day: microseconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(pub i64);

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = DateTime::parse_from_rfc3339(text).map(|time| time.timestamp_micros());
        let date = || {
            let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
            Some(date.and_time(NaiveTime::MIN).and_utc().timestamp_micros())
        };
        let time = time.ok().or_else(date);
        let what = "it is no time such as 2026-11-27T10:00:00Z or 2026-11-27";
        time.map(TimeOfDay).ok_or_else(|| what.into())
    }
}

/// The pattern by which the name of a file contains the time of its recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Vec<PatternItem>);

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternItem {
    /// This byte of the name.
    Byte(u8),
    /// Digits with this meaning.
    Number(Number),
    /// `Z`, `+0100` or `+01:00`.
    Zone,
}

/// The meaning of digits in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// Seconds since 1970 (UTC).
    Epoch,
}

impl Number {
    /// Returns the minimum and maximum number of digits.
    fn digits(self) -> (usize, usize) {
        match self {
            Number::Year => (4, 4),
            Number::Epoch => (1, 12),
            _ => (2, 2),
        }
    }
}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut items = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let item = match (byte, if byte == b'%' { bytes.next() } else { None }) {
                (b'%', Some(b'Y')) => PatternItem::Number(Number::Year),
                (b'%', Some(b'm')) => PatternItem::Number(Number::Month),
                (b'%', Some(b'd')) => PatternItem::Number(Number::Day),
                (b'%', Some(b'H')) => PatternItem::Number(Number::Hour),
                (b'%', Some(b'M')) => PatternItem::Number(Number::Minute),
                (b'%', Some(b'S')) => PatternItem::Number(Number::Second),
                (b'%', Some(b's')) => PatternItem::Number(Number::Epoch),
                (b'%', Some(b'z')) => PatternItem::Zone,
                (b'%', Some(b'%')) => PatternItem::Byte(b'%'),
                (b'%', _) => {
                    return Err("after %, one of YmdHMSsz% must follow".into());
                }
                (byte, _) => PatternItem::Byte(byte),
            };
            let is_twice = !matches!(item, PatternItem::Byte(_)) && items.contains(&item);
            if is_twice {
                return Err("the same part of the time occurs twice".into());
            }
            items.push(item);
        }
        let has = |number| items.contains(&PatternItem::Number(number));
        let is_date = has(Number::Year) && has(Number::Month) && has(Number::Day);
        let is_time = has(Number::Hour) || !(has(Number::Minute) || has(Number::Second));
        if is_date == has(Number::Epoch) || !is_time {
            return Err(
                "the time needs %Y, %m and %d, with %H before %M and %S; or only %s".into(),
            );
        }
        Ok(NamePattern(items))
    }
}

impl NamePattern {
    /// Returns the time in the name of a file, in microseconds since 1970 (UTC): the first that the
    /// name contains. Digits of the pattern are not a part of longer numbers.
    pub fn time_in(&self, name: &[u8]) -> Option<i64> {
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        (0..name.len()).find_map(|start| {
            let (before, rest) = name.split_at_checked(start)?;
            if is_digit(before.last()) && is_digit(rest.first()) {
                return None;
            }
            let mut found = FoundTime::default();
            let mut rest = rest;
            for item in &self.0 {
                rest = found.take(*item, rest)?;
            }
            let used = name.len().saturating_sub(rest.len());
            let last = used.checked_sub(1).and_then(|last| name.get(last));
            if is_digit(last) && is_digit(rest.first()) {
                return None;
            }
            found.micros()
        })
    }
}

/// The numbers in a name.
#[derive(Debug, Default)]
struct FoundTime {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    epoch: Option<i64>,
    /// Seconds east of UTC.
    zone: i32,
}

impl FoundTime {
    /// Takes what the item matches, and returns the rest.
    fn take<'a>(&mut self, item: PatternItem, name: &'a [u8]) -> Option<&'a [u8]> {
        let number = match item {
            PatternItem::Byte(byte) => {
                let (first, rest) = name.split_first()?;
                return (*first == byte).then_some(rest);
            }
            PatternItem::Zone => {
                let (zone, rest) = zone(name)?;
                self.zone = zone;
                return Some(rest);
            }
            PatternItem::Number(number) => number,
        };
        let (least, most) = number.digits();
        let (value, rest) = digits(name, least, most)?;
        match number {
            Number::Year => self.year = value,
            Number::Month => self.month = value,
            Number::Day => self.day = value,
            Number::Hour => self.hour = value,
            Number::Minute => self.minute = value,
            Number::Second => self.second = value,
            Number::Epoch => self.epoch = Some(value),
        }
        Some(rest)
    }

    /// Returns the time, if there is such a date.
    fn micros(&self) -> Option<i64> {
        if let Some(epoch) = self.epoch {
            return epoch.checked_mul(1_000_000);
        }
        let of = |value: i64| u32::try_from(value).ok();
        let date = NaiveDate::from_ymd_opt(
            i32::try_from(self.year).ok()?,
            of(self.month)?,
            of(self.day)?,
        )?;
        let time = NaiveTime::from_hms_opt(of(self.hour)?, of(self.minute)?, of(self.second)?)?;
        let zone = FixedOffset::east_opt(self.zone)?;
        let time = NaiveDateTime::new(date, time).and_local_timezone(zone);
        Some(time.single()?.timestamp_micros())
    }
}

/// Returns the number at the start of a name.
fn digits(name: &[u8], least: usize, most: usize) -> Option<(i64, &[u8])> {
    let count = name.iter().take(most);
    let count = count.take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = name.split_at_checked(count)?;
    let number = std::str::from_utf8(number).ok()?;
    (count >= least).then_some((number.parse().ok()?, rest))
}

/// Returns the time zone at the start of a name, in seconds east of UTC.
fn zone(name: &[u8]) -> Option<(i32, &[u8])> {
    let (first, rest) = name.split_first()?;
    let sign = match first {
        b'Z' => return Some((0, rest)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2, 2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = digits(rest, 2, 2)?;
    let seconds = hours
        .checked_mul(3600)?
        .checked_add(minutes.checked_mul(60)?)?;
    let seconds = i32::try_from(seconds).ok()?.checked_mul(sign)?;
    Some((seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 1_795_737_600;
    const TEN: i64 = DAY + 36_000;

    #[test]
    fn times_are_those_of_rfc_3339() {
        let of = |text: &str| text.parse::<TimeOfDay>().ok().map(|time| time.0);
        assert_eq!(of("2026-11-27T10:00:00Z"), Some(TEN * 1_000_000));
        assert_eq!(
            of("2026-11-27T11:00:00.5+01:00"),
            Some(TEN * 1_000_000 + 500_000)
        );
        assert_eq!(of("2026-11-27"), Some(DAY * 1_000_000));
        for odd in ["", "10:00", "2026-11-31", "2026-11-27T10:00:00", "tomorrow"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }

    #[test]
    fn names_contain_times() {
        let of = |pattern: &str, name: &str| {
            let pattern: NamePattern = pattern.parse().expect("a pattern");
            pattern
                .time_in(name.as_bytes())
                .map(|time| time / 1_000_000)
        };
        let usual = "%Y%m%d-%H%M%S";
        assert_eq!(of(usual, "perf-20261127-100000.data"), Some(TEN));
        assert_eq!(of(usual, "web1-7-20261127-100000"), Some(TEN));
        // The first one that is a time, and no part of a longer number.
        assert_eq!(of(usual, "20269927-100000.20261127-100000"), Some(TEN));
        assert_eq!(of(usual, "120261127-100000"), None);
        assert_eq!(of(usual, "20261127-1000001"), None);
        assert_eq!(of(usual, "20261127"), None);
        assert_eq!(of("%Y-%m-%d", "2026-11-27.data"), Some(DAY));
        assert_eq!(of(".%s.", "perf.1795773600.data"), Some(TEN));
        assert_eq!(of("%Y%m%dT%H%M%z", "20261127T1130+0130"), Some(TEN));
        assert_eq!(of("%Y%m%dT%H%M%z", "20261127T1000Z.data"), Some(TEN));
        assert_eq!(of("%Y%m%dT%H%M%z", "20261127T1000"), None);
        assert_eq!(of("100%%-%Y%m%d", "100%-20261127"), Some(DAY));
    }

    #[test]
    fn patterns_name_a_day() {
        for odd in [
            "", "%Y%m", "%H%M%S", "%Y%m%d%M", "%Y%m%d%s", "%q", "%", "%Y%Y%m%d",
        ] {
            assert!(odd.parse::<NamePattern>().is_err(), "{odd}");
        }
    }
}
