//! Ranges of time in the grammar of perf's `--time` (tools/perf/util/time-utils.c, Linux 7.2).

use std::str::FromStr;

use perfdata_core::feature::SampleTime;

use perfdata_convert::error::{Error, Result};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A range of time in nanoseconds on the recording's clock. Both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeRange {
    /// The first time.
    pub start: u64,
    /// The last time; `None` if the range has no end.
    pub end: Option<u64>,
}

impl TimeRange {
    /// Returns whether `time` is in the range.
    #[inline]
    pub fn contains(&self, time: u64) -> bool {
        time >= self.start && self.end.is_none_or(|end| time <= end)
    }
}

/// Ranges of time, as `perf script --time` takes them.
///
/// | Text | Meaning |
/// |---|---|
/// | `1.5,2.5` | from 1.5 s to 2.5 s, with at most 9 decimals, both ends included |
/// | `1.5,` and `,2.5` | without an end, and without a start |
/// | `1,2 4,5` | several ranges; they ascend and do not overlap |
/// | `10%/2` | the second tenth of the time from the first sample to the last one |
/// | `10%/1,10%/3` | several parts of this time |
/// | `0%-10%,30%-40%` | parts of this time by their ends |
/// | `10%` | the first tenth |
///
/// A start or end of 0 is none, as in perf.
///
/// ```
/// use perfdata_edit::slice::TimeRanges;
///
/// let ranges: TimeRanges = "1.5,2".parse()?;
/// assert!(!ranges.need_bounds());
/// assert!("5".parse::<TimeRanges>().is_err());
/// # Ok::<(), perfdata_convert::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TimeRanges(RangeForm);

#[derive(Debug, Clone, PartialEq)]
enum RangeForm {
    /// Start and end in nanoseconds; 0 if there is none.
    Absolute(Vec<(u64, u64)>),
    /// Start and end as parts of the time from the first sample to the last one, 0 to 1.
    Parts(Vec<(f64, f64)>),
}

impl FromStr for TimeRanges {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let form = if text.contains('%') {
            parts(text).map(RangeForm::Parts)
        } else {
            absolute(text).map(RangeForm::Absolute)
        };
        let why =
            |why: String| Error::Usage(format!("{text:?} is not a list of time ranges: {why}"));
        form.map(TimeRanges).map_err(why)
    }
}

impl TimeRanges {
    /// Returns whether the ranges depend on the times of the first and the last sample.
    pub fn need_bounds(&self) -> bool {
        matches!(self.0, RangeForm::Parts(_))
    }

    /// Returns the ranges on the recording's clock, if its samples have the times `bounds`. With
    /// `relative`, absolute times count from the first sample.
    pub fn resolve(&self, bounds: &SampleTime, relative: bool) -> Vec<TimeRange> {
        let offset = if relative { bounds.first } else { 0 };
        match &self.0 {
            RangeForm::Absolute(ranges) => ranges
                .iter()
                .map(|&(start, end)| TimeRange {
                    start: start.saturating_add(offset),
                    end: (end > 0).then(|| end.saturating_add(offset)),
                })
                .collect(),
            RangeForm::Parts(parts) => parts.iter().map(|&part| part_of(part, bounds)).collect(),
        }
    }
}

/// Returns a part of the time between two samples. The end of a part is 1 ns before the start of
/// the next one, so each sample is in one part (`set_percent_time`).
///
/// perf computes both ends as floating-point numbers, which is not exact above 2^53 ns. The first
/// and the last sample are exact here, so that the parts cover all samples.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "perf's own arithmetic"
)]
fn part_of((from, to): (f64, f64), &SampleTime { first, last }: &SampleTime) -> TimeRange {
    let total = last.saturating_sub(first) as f64;
    let at = |part: f64| match part {
        part if part <= 0.0 => first,
        part if part >= 1.0 => last,
        part => (first as f64 + (part * total).round()) as u64,
    };
    let (start, end) = (at(from), at(to));
    let is_inner = end > start && end != last;
    TimeRange {
        start,
        end: Some(end.saturating_sub(u64::from(is_inner))),
    }
}

fn absolute(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for range in without_blanks_after_commas(text).split_whitespace() {
        let Some((start, end)) = range.split_once(',') else {
            return Err(format!("a comma separates start and end, as in {range},"));
        };
        let (start, end) = (seconds(start)?, seconds(end)?);
        if end > 0 && end < start {
            return Err(format!("{range} ends before it starts"));
        }
        match ranges.last() {
            Some(&(_, 0)) => return Err("only the last range may have no end".into()),
            Some(&(_, last)) if last >= start => {
                return Err("the ranges do not ascend, or overlap".into());
            }
            _ => ranges.push((start, end)),
        }
    }
    if ranges.is_empty() {
        return Err("it is empty".into());
    }
    Ok(ranges)
}

fn without_blanks_after_commas(text: &str) -> String {
    let mut pieces = text.split(',');
    let first = pieces.next().unwrap_or_default().to_owned();
    // A blank after the last comma of a range with an end separates ranges: "1,2 4,". One after a
    // comma does not: "1, 2".
    pieces.fold(first, |all, piece| {
        let blank = if piece.trim().is_empty() {
            ""
        } else {
            piece.trim_start()
        };
        all + "," + blank
    })
}

/// Parses seconds with up to 9 decimals; 0 if there is nothing.
fn seconds(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let invalid = || format!("{text} is not a number of seconds with at most 9 decimals");
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if decimals.len() > 9 || !is_number(decimals) || !is_number(whole) || whole.is_empty() {
        return Err(invalid());
    }
    let whole: u64 = whole.parse().map_err(|_| invalid())?;
    let nanoseconds: u64 = format!("{decimals:0<9}").parse().map_err(|_| invalid())?;
    whole
        .checked_mul(SECOND)
        .and_then(|whole| whole.checked_add(nanoseconds))
        .ok_or_else(invalid)
}

fn parts(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let part = |text: &str| {
        let (from, to) = if let Some((size, number)) = text.split_once('/') {
            let size = percent(size)?;
            let number: u32 = number
                .parse()
                .map_err(|_| format!("{number} is not the number of a part, from 1"))?;
            (size * (f64::from(number) - 1.0), size * f64::from(number))
        } else if let Some((from, to)) = text.split_once('-') {
            (percent(from)?, percent(to)?)
        } else {
            (0.0, percent(text)?)
        };
        // The last of ten parts of 10 % may end a little above 1 because of rounding.
        let is_valid = from >= 0.0 && to <= 1.0 + f64::EPSILON && from <= to && to > 0.0;
        if is_valid {
            Ok((from, to))
        } else {
            Err(format!("{text} is not between 0% and 100%"))
        }
    };
    let list: Vec<&str> = text.split(',').map(str::trim).collect();
    if list.len() > 1 && list.iter().any(|part| !part.contains(['/', '-'])) {
        return Err("in a list, each part is P%/N or A%-B%".into());
    }
    list.into_iter().map(part).collect()
}

fn percent(text: &str) -> Result<f64, String> {
    text.strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok())
        .filter(|number| number.is_finite())
        .map(|number| number / 100.0)
        .ok_or_else(|| format!("{text} is not a number and %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: SampleTime = SampleTime {
        first: 1000,
        last: 2000,
    };

    fn resolved(text: &str) -> Vec<(u64, Option<u64>)> {
        let ranges: TimeRanges = text.parse().unwrap();
        let ranges = ranges.resolve(&BOUNDS, false);
        ranges
            .iter()
            .map(|range| (range.start, range.end))
            .collect()
    }

    #[test]
    fn times_have_perfs_grammar() {
        assert_eq!(resolved("1.5,2"), [(1_500_000_000, Some(2_000_000_000))]);
        assert_eq!(resolved(",0.000000001"), [(0, Some(1))]);
        assert_eq!(resolved("3,"), [(3_000_000_000, None)]);
        assert_eq!(resolved(","), [(0, None)]);
        assert_eq!(resolved("1, 2"), [(1_000_000_000, Some(2_000_000_000))]);
        let several = [(1_000_000_000, Some(2_000_000_000)), (4_000_000_000, None)];
        assert_eq!(resolved("1,2 4,"), several);
        assert_eq!(resolved("1, 2  4,"), several);
    }

    #[test]
    fn relative_times_count_from_the_first_sample() {
        let ranges: TimeRanges = "0.0000005,".parse().unwrap();
        let range = ranges.resolve(&BOUNDS, true);
        assert_eq!(
            range,
            [TimeRange {
                start: 1500,
                end: None
            }]
        );
    }

    #[test]
    fn parts_cover_each_time_once() {
        assert_eq!(resolved("10%"), [(1000, Some(1099))]);
        assert_eq!(resolved("10%/2"), [(1100, Some(1199))]);
        assert_eq!(resolved("10%/10"), [(1900, Some(2000))]);
        assert_eq!(
            resolved("0%-10%,30%-40%"),
            [(1000, Some(1099)), (1300, Some(1399))]
        );
        assert_eq!(resolved("0%-100%"), [(1000, Some(2000))]);
        let late = SampleTime {
            first: 1_790_000_000_123_456_789,
            last: 1_790_000_777_123_456_791,
        };
        let mut next = late.first;
        for number in 1..=10 {
            let ranges: TimeRanges = format!("10%/{number}").parse().unwrap();
            let [range] = ranges.resolve(&late, false)[..] else {
                panic!()
            };
            assert_eq!(range.start, next);
            next = range.end.unwrap() + 1;
        }
        assert_eq!(next, late.last + 1);
    }

    #[test]
    fn what_perf_refuses_is_refused() {
        for text in [
            "5",
            "",
            "2,1",
            "1,2 2,3",
            "1, 4,5",
            "1.0000000001,2",
            "x,",
            "-1,2",
            "+1,2",
            "1,2 x",
            "0%",
            "110%",
            "10%/0",
            "10%/11",
            "10%/x",
            "10",
            "20%-10%",
            "10%,20%",
            "%",
            "nan%",
            "18446744073709551615,",
            ".,",
        ] {
            assert!(text.parse::<TimeRanges>().is_err(), "{text:?}");
        }
    }
}
