//! By what a recording is divided into parts.

use std::fmt;
use std::str::FromStr;

use perfdata_core::attr::SampleType;

use perfdata_convert::error::{Error, Result};

/// By what samples are divided into parts.
///
/// | Text | A part contains |
/// |---|---|
/// | `time=10s` | the samples of 10 seconds, from the first sample on; the unit is `h`, `m`, `s`, `ms`, `us` or `ns` |
/// | `samples=1000` | 1,000 samples, in the order of time |
/// | `size=100M` | records of about 100 MiB; `K`, `M`, `G` and `T` are powers of 1,024 bytes |
/// | `pid`, `tid`, `comm` | the samples of a process, of a thread, or of all threads with a name |
/// | `cpu`, `event` | the samples of a CPU, or of an event |
///
/// ```
/// use perfdata_edit::slice::By;
///
/// assert_eq!("time=1.5s".parse::<By>()?, By::Time(1_500_000_000));
/// assert_eq!("size=2K".parse::<By>()?, By::Size(2048));
/// assert!("time=0s".parse::<By>().is_err());
/// # Ok::<(), perfdata_convert::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// Intervals of so many nanoseconds. The first one starts at the first sample; the end of an
    /// interval does not belong to it. Intervals without samples are left out.
    Time(u64),
    /// So many samples.
    Samples(u64),
    /// Records of about so many bytes, without compression.
    Size(u64),
    /// Processes. As in perf, the process of a sample is that of its thread in the COMM and FORK
    /// records.
    Pid,
    /// Threads.
    Tid,
    /// The names of threads at the time of the sample.
    Comm,
    /// CPUs.
    Cpu,
    /// Events.
    Event,
}

/// The words for keys.
const WORDS: [(&str, By); 5] = [
    ("pid", By::Pid),
    ("tid", By::Tid),
    ("comm", By::Comm),
    ("cpu", By::Cpu),
    ("event", By::Event),
];

/// Units of time and their number of nanoseconds.
const TIMES: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units of sizes and their number of bytes, as in perf (`parse_tag_value`).
const SIZES: [(&str, u64); 5] = [
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

impl By {
    /// Returns the word for it, without a number.
    pub fn word(self) -> &'static str {
        match self {
            By::Time(_) => "time",
            By::Samples(_) => "samples",
            By::Size(_) => "size",
            By::Pid => "pid",
            By::Tid => "tid",
            By::Comm => "comm",
            By::Cpu => "cpu",
            By::Event => "event",
        }
    }

    /// Returns whether the parts follow each other in time.
    pub(super) fn is_ordered(self) -> bool {
        matches!(self, By::Time(_) | By::Samples(_) | By::Size(_))
    }

    /// Returns whether the parts depend on threads, so that a part needs no other processes.
    pub fn is_of_threads(self) -> bool {
        matches!(self, By::Pid | By::Tid | By::Comm)
    }

    /// Returns the part of samples that is needed, with its name.
    pub(super) fn needs(self) -> Option<(SampleType, &'static str)> {
        match self {
            By::Time(_) | By::Samples(_) | By::Size(_) => Some((SampleType::TIME, "time")),
            By::Pid | By::Tid | By::Comm => Some((SampleType::TID, "process and thread")),
            By::Cpu => Some((SampleType::CPU, "CPU")),
            By::Event => None,
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            By::Time(length) => write!(f, "={}", duration(*length)),
            By::Samples(count) => write!(f, "={count}"),
            By::Size(bytes) => {
                let (unit, size) = in_units(*bytes, &SIZES);
                write!(f, "={size}{unit}")
            }
            By::Pid | By::Tid | By::Comm | By::Cpu | By::Event => Ok(()),
        }
    }
}

/// Returns a number of nanoseconds in the largest unit of which it is a multiple.
pub(crate) fn duration(ns: u64) -> String {
    if ns == 0 {
        return "0s".to_owned();
    }
    let (unit, count) = in_units(ns, &TIMES);
    format!("{count}{unit}")
}

/// Returns the largest of `units` of which `value` is a multiple, and the number of them.
fn in_units(value: u64, units: &[(&'static str, u64)]) -> (&'static str, u64) {
    let fits = |unit: &&(&str, u64)| value.checked_rem(unit.1) == Some(0);
    let (name, unit) = units.iter().rev().find(fits).copied().unwrap_or(("", 1));
    (name, value.checked_div(unit).unwrap_or(value))
}

impl FromStr for By {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let why = |why: &str| Error::Usage(format!("{text:?} does not say how to split: {why}"));
        let Some((word, value)) = text.split_once('=') else {
            let found = WORDS.iter().find(|(word, _)| *word == text);
            return found.map(|(_, by)| *by).ok_or_else(|| {
                why("it is time=DURATION, size=BYTES, samples=N, pid, tid, comm, cpu or event")
            });
        };
        let by = match word {
            "time" => By::Time(number(value, &TIMES, None).ok_or_else(|| {
                why("a duration has a unit, such as 10s, 500ms or 5m, and is at least 1 ns")
            })?),
            "size" => By::Size(number(value, &SIZES, Some(1)).ok_or_else(|| {
                why("a size is a number of bytes, or has the unit K, M, G or T, such as 100M")
            })?),
            "samples" => By::Samples(
                number(value, &[], Some(1))
                    .ok_or_else(|| why("a number of samples is at least 1"))?,
            ),
            _ => return Err(why("only time, size and samples have a value")),
        };
        Ok(by)
    }
}

/// Returns a number with up to 9 decimals and a unit, in the smallest unit; `None` if it is zero or
/// too large. `plain` is the unit of a number without one.
fn number(text: &str, units: &[(&str, u64)], plain: Option<u64>) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = match units.iter().find(|(name, _)| *name == unit) {
        Some((_, unit)) => *unit,
        None if unit.is_empty() => plain?,
        None => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || decimals.len() > 9 {
        return None;
    }
    let mut value = u128::from(whole.parse::<u64>().ok()?).checked_mul(u128::from(unit))?;
    if number.contains('.') {
        let scale = 10u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
        let part = u128::from(decimals.parse::<u64>().ok()?).checked_mul(u128::from(unit))?;
        value = value.checked_add(part.checked_div(scale)?)?;
    }
    u64::try_from(value).ok().filter(|&value| value > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_values() {
        let good = [
            ("time=10s", By::Time(10_000_000_000)),
            ("time=0.5ms", By::Time(500_000)),
            ("time=2m", By::Time(120_000_000_000)),
            ("size=1.5K", By::Size(1536)),
            ("size=100", By::Size(100)),
            ("samples=7", By::Samples(7)),
            ("comm", By::Comm),
            ("event", By::Event),
        ];
        for (text, by) in good {
            assert_eq!(text.parse::<By>().expect(text), by);
            assert_eq!(by.to_string().parse::<By>().expect(text), by);
        }
        assert_eq!(By::Time(90_000_000_000).to_string(), "time=90s");
        let bad = [
            "",
            "time",
            "time=",
            "time=10",
            "time=0s",
            "time=-1s",
            "time=.5s",
            "time=1.s",
            "size=0",
            "size=1X",
            "size=99999999999T",
            "samples=0",
            "samples=1K",
            "samples=1.5e3",
            "pid=1",
            "Pid",
        ];
        for text in bad {
            assert!(text.parse::<By>().is_err(), "{text}");
        }
    }

    #[test]
    fn words_are_their_own_names() {
        for (word, by) in WORDS {
            assert_eq!(by.word(), word);
        }
    }
}
