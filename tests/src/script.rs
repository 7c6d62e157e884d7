//! Parsed samples of `perf script`, and the same samples as resolved by `perfdata-session`.

use std::{collections::HashMap, path::Path};

use perfdata_core::{attr::SampleType, record::CpuMode};
use perfdata_session::{DsoKind, Frame, Sample, Samples};

/// A sample in the output of `perf script`: a line or a paragraph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Time in nanoseconds.
    pub time: u64,
    /// Thread ID.
    pub tid: i32,
    /// Name of the thread.
    pub comm: String,
    /// Process ID, if it is printed.
    pub pid: Option<i32>,
    /// CPU, if it is printed.
    pub cpu: Option<u32>,
    /// The text after the time: period, event, and the rest.
    pub rest: String,
    /// Addresses, each with the text in the parentheses after it.
    pub frames: Vec<(u64, Option<String>)>,
}

/// Returns the samples in the output of `perf script --ns`.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for text in text.lines() {
        if let Some(line) = line(text) {
            lines.push(line);
        } else if let Some(frame) = text.strip_prefix(['\t', ' ']).and_then(frame)
            && let Some(last) = lines.last_mut()
        {
            last.frames.push(frame);
        }
    }
    lines.retain(|line| !line.rest.starts_with("PERF_RECORD_"));
    lines
}

fn line(text: &str) -> Option<Line> {
    // The time is the first word that consists of digits, a point, nine digits and a colon.
    let (at, word) = words(text).find(|(_, word)| {
        word.strip_suffix(':')
            .and_then(|word| word.split_once('.'))
            .is_some_and(|(seconds, rest)| {
                rest.len() == 9
                    && [seconds, rest]
                        .iter()
                        .all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
            })
    })?;
    let (seconds, nanoseconds) = word.strip_suffix(':')?.split_once('.')?;
    let time = seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(nanoseconds.parse().ok()?)?;
    let mut head = text[..at].trim_end();
    let mut cpu = None;
    if let Some((before, word)) = head.rsplit_once(' ')
        && let Some(number) = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'))
    {
        (head, cpu) = (before.trim_end(), Some(number.parse().ok()?));
    }
    let (comm, ids) = head.rsplit_once(' ')?;
    let (comm, pid, tid) = match ids.split_once('/') {
        Some((pid, tid)) if !tid.is_empty() => (comm, Some(pid.parse().ok()?), tid.parse().ok()?),
        _ => match comm.trim_end().rsplit_once(' ') {
            // perf pads "1234/-1" to "1234/ -1".
            Some((before, pid)) if pid.ends_with('/') => (
                before,
                Some(pid.strip_suffix('/')?.parse().ok()?),
                ids.parse().ok()?,
            ),
            _ => (comm, None, ids.parse().ok()?),
        },
    };
    let rest = text[at + word.len()..].trim();
    let mut line = Line {
        time,
        tid,
        comm: comm.trim().to_owned(),
        pid,
        cpu,
        rest: rest.to_owned(),
        frames: vec![],
    };
    // Without a callchain, the address follows the event.
    if let Some((event, behind)) = rest.rsplit_once(':')
        && let Some(one) =
            frame(behind).filter(|_| !event.contains("PERF_RECORD") && !behind.trim().is_empty())
    {
        line.frames.push(one);
        line.rest = format!("{event}:");
    }
    Some(line)
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(' ').scan(0, |at, word| {
        let start = *at;
        *at += word.len() + 1;
        Some((start, word))
    })
}

/// Parses an address and the text in the parentheses after it.
fn frame(text: &str) -> Option<(u64, Option<String>)> {
    let text = text.trim();
    let (address, rest) = text.split_once(' ').unwrap_or((text, ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let dso = match rest.trim() {
        "" => None,
        name => Some(name.strip_prefix('(')?.strip_suffix(')')?.to_owned()),
    };
    Some((address, dso))
}

/// A frame as resolved by the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The address.
    pub address: u64,
    /// The offset in the mapped DSO.
    pub offset: Option<u64>,
    /// The name and kind of the mapped DSO.
    pub dso: Option<(String, DsoKind)>,
    /// The name of the DSO that perf finds among the mappings of an earlier program.
    pub before_exec: Option<String>,
    /// The CPU mode.
    pub mode: CpuMode,
}

impl Seen {
    fn of(frame: &Frame<'_>, sample: &Sample<'_>) -> Self {
        let session = sample.session();
        let text = crate::perf::text;
        let before = frame
            .before_exec
            .and_then(|id| session.dso(session.mapping(id)?.dso));
        Seen {
            address: frame.address,
            offset: frame.offset(),
            dso: frame.dso().map(|dso| (text(&dso.name), dso.kind)),
            before_exec: before.map(|dso| text(&dso.name)),
            mode: frame.mode,
        }
    }
}

/// A sample and its frames.
pub type Resolved = (Line, Vec<Seen>);

/// Replaces the text after the time for a sample with a copy of the user stack, which perf unwinds.
pub const USER_STACK: &str = "user stack";

/// Returns the samples of the recording at `path` as `perf script` would print them, in time order.
///
/// # Errors
/// As text, if the recording cannot be read to its end. The samples before the error are returned,
/// too.
pub fn resolved(path: &Path) -> (Vec<Resolved>, Result<(), String>) {
    let mut all = Vec::new();
    let result = Samples::open(path).and_then(|mut samples| {
        while let Some(sample) = samples.next()? {
            let has_stack = sample
                .attr()
                .is_some_and(|attr| attr.sample_type.has(SampleType::STACK_USER));
            let (pid, tid) = sample.tid().map_or((-1, -1), |tid| {
                (tid.pid.cast_signed(), tid.tid.cast_signed())
            });
            let line = Line {
                time: sample.time().unwrap_or(0),
                tid,
                comm: String::from_utf8_lossy(sample.comm()).trim().to_owned(),
                pid: Some(pid),
                cpu: sample.cpu(),
                rest: if has_stack {
                    USER_STACK.into()
                } else {
                    String::new()
                },
                frames: Vec::new(),
            };
            all.push((
                line,
                sample
                    .frames()
                    .map(|frame| Seen::of(&frame, &sample))
                    .collect(),
            ));
        }
        Ok(())
    });
    (all, result.map_err(|error| error.to_string()))
}

/// Groups samples by their key.
pub fn by_time<T>(
    samples: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> (u64, i32),
) -> HashMap<(u64, i32), Vec<T>> {
    let mut all: HashMap<_, Vec<T>> = HashMap::new();
    for sample in samples {
        all.entry(key(&sample)).or_default().push(sample);
    }
    all
}
