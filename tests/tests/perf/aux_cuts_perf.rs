//! perf decodes Intel PT data that are cut at PSB packets as it decodes the original.

use std::collections::BTreeMap;
use std::path::Path;

use perfdata_core::record::{AuxtracePrivate, Body, RawRecord, Record};
use perfdata_edit::slice::{Select, Slice};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, Recording};
use perfdata_tests::{is_thorough, skipped};

/// A range of time in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct TimeSpan {
    start: Option<u64>,
    end: Option<u64>,
}

impl TimeSpan {
    /// Returns the range in the words of perf.
    fn text(self) -> String {
        let text = |time: Option<u64>| {
            time.map_or(String::new(), |time| {
                format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
            })
        };
        format!("{},{}", text(self.start), text(self.end))
    }

    /// Returns the stage that keeps it.
    fn slice(self) -> Slice {
        let mut select = Select::default();
        select.times = Some(self.text().parse().expect("a range of time"));
        Slice::new(select)
    }
}

/// Returns the times of all PSB packets in nanoseconds, found in a simple way.
fn times(path: &Path) -> Vec<u64> {
    let whole = Whole::read_file(path).expect("a recording");
    let (mut info, mut data) = (None, BTreeMap::<u32, Vec<u8>>::new());
    let ends = whole.records.iter().skip(1).map(|&(at, _)| at);
    for (&(from, _), to) in whole.records.iter().zip(ends.chain([whole.records_end])) {
        let raw = RawRecord::first(&whole.stream[from..to], whole.recording.endian, 0);
        let raw = raw.expect("a record");
        match Record::decode(&raw, &whole.recording.events.layout_of(&raw))
            .map(|record| record.body)
        {
            Ok(Body::AuxtraceInfo(found)) => info = Some(found.private),
            Ok(Body::Auxtrace(piece)) => {
                let payload = &whole.stream[from + raw.bytes.len()..to];
                data.entry(piece.idx)
                    .or_default()
                    .extend_from_slice(payload);
            }
            _ => {}
        }
    }
    let Some(AuxtracePrivate::IntelPt(info)) = info else {
        return Vec::new();
    };
    let psb = [0x02, 0x82].repeat(8);
    let mut times = Vec::new();
    for data in data.values() {
        let starts = (0..data.len()).filter(|&at| data[at..].starts_with(&psb));
        for start in starts {
            let after = &data[start + 16..];
            let Some(at) = after.iter().take(40).position(|&byte| byte == 0x19) else {
                continue;
            };
            let Some(word) = after.get(at..at + 8) else {
                continue;
            };
            let tsc = u64::from_le_bytes(word.try_into().expect("8 bytes")) >> 8;
            let scaled = (u128::from(tsc) * u128::from(info.time_mult)) >> info.time_shift;
            times.push(info.time_zero.wrapping_add(scaled as u64));
        }
    }
    times.sort_unstable();
    times
}

/// Returns the output of perf for the samples in a range.
fn script(perf: &Perf, path: &Path, range: TimeSpan) -> String {
    let mut command = perf.command();
    command.args([
        "script",
        "--itrace=iq",
        "--ns",
        "-F",
        "-symoff,-sym,-dso",
        "--time",
    ]);
    command.arg(range.text()).arg("-i").arg(path);
    let output = perf::run(command).expect("perf starts");
    assert!(output.success(), "{perf}: {}", output.stderr);
    output.stdout
}

fn check(recording: &Recording, perf: &Perf, times: &[u64]) -> usize {
    let mut ranges = vec![TimeSpan::default()];
    for (at, &time) in times.iter().enumerate() {
        let later = times.get(at + 2).copied();
        let range = |start, end| TimeSpan { start, end };
        ranges.push(range(Some(time), None));
        ranges.push(range(None, Some(time)));
        ranges.push(range(Some(time + 1), later));
        ranges.push(range(Some(time - 1), later));
    }
    if !is_thorough() {
        let step = ranges.len().div_ceil(12);
        ranges = ranges.into_iter().step_by(step.max(1)).collect();
    }
    let size = |path: &Path| std::fs::metadata(path).expect("a file").len();
    let mut smaller = 0;
    for range in ranges {
        let cut = convert(&recording.path, None, vec![Box::new(range.slice())]);
        let cut = cut.expect("it is cut");
        smaller += usize::from(size(&cut.path()) < size(&recording.path));
        let old = script(perf, &recording.path, range);
        let new = script(perf, &cut.path(), range);
        if old != new {
            let lines = old.lines().zip(new.lines());
            let first = lines.clone().find(|(old, new)| old != new);
            panic!(
                "{perf}: {}, {range:?}: {} and {} lines, the first that differs: {first:?}",
                recording.name,
                old.lines().count(),
                new.lines().count()
            );
        }
    }
    smaller
}

/// For recordings of Intel PT among those that others published; at a few PSB packets, or at all of
/// them if `PERFCONV_TEST_ALL` is set.
#[test]
fn cut_data_are_decoded_as_the_original() {
    let mut list = recordings::corpus();
    list.retain(|recording| recording.name.ends_with("/intel_pt-4.14"));
    if list.is_empty() {
        return skipped::note("recordings of Intel PT");
    }
    let perfs: Vec<&Perf> = perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little)
        .collect();
    if perfs.is_empty() {
        return skipped::note("perf");
    }
    for recording in &list {
        let times = times(&recording.path);
        assert!(times.len() > 3, "{}: {times:?}", recording.name);
        for perf in &perfs {
            assert!(check(recording, perf, &times) > 3, "{}", recording.name);
        }
    }
}
