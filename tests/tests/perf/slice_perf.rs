//! Slices compared with perf: `perf script` of a slice prints what it prints for the whole
//! recording with the same conditions.

use std::path::Path;

use perfdata_convert::error::Step;
use perfdata_convert::pipeline::{Link, Stage};
use perfdata_core::record::{RawRecord, is_known_time};
use perfdata_edit::slice::{Patterns, Select, Slice};
use perfdata_tests::convert::convert;
use perfdata_tests::generate::random::Random;
use perfdata_tests::perf::{self, Output, Perf};
use perfdata_tests::recordings::{self, Container, Endian, PerfVersion, Recording};
use perfdata_tests::{is_thorough, judge, skipped};

/// A sample that conditions are made from.
#[derive(Debug, Clone)]
struct Seen {
    time: u64,
    pid: u32,
    tid: u32,
    cpu: Option<u32>,
    comm: String,
}

/// Returns the samples of a recording, in the order of time.
fn samples(path: &Path) -> Vec<Seen> {
    let mut all = Vec::new();
    let Ok(mut samples) = perfdata_session::open(path) else {
        return all;
    };
    while let Ok(Some(sample)) = samples.next() {
        let (Some(time), Some(thread)) = (sample.time(), sample.thread()) else {
            continue;
        };
        if is_known_time(time) {
            all.push(Seen {
                time,
                pid: thread.pid,
                tid: thread.tid,
                cpu: sample.cpu(),
                comm: String::from_utf8_lossy(sample.comm()).into_owned(),
            });
        }
    }
    all
}

/// Conditions in the words of `perf script`.
type Words = Vec<(&'static str, String)>;

/// Returns some conditions that select a part of the samples.
fn conditions(samples: &[Seen], is_file: bool, random: &mut Random) -> Words {
    let mut any = || samples[random.below(samples.len() as u64) as usize].clone();
    let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let range = |one: &Seen, other: &Seen| {
        let (from, to) = (one.time.min(other.time), one.time.max(other.time));
        ("--time", format!("{},{}", seconds(from), seconds(to)))
    };
    let (one, other) = (any(), any());
    let is_plain = |comm: &str| !comm.contains([',', '*', '?', ':']) && comm.trim() == comm;
    match random.below(9) {
        0 | 1 => vec![range(&one, &other)],
        2 => vec![("--time", format!("{},", seconds(one.time)))],
        3 if is_file => vec![("--time", "10%/2,10%/4,10%/10".into())],
        3 => vec![("--time", format!(",{}", seconds(one.time)))],
        4 => {
            // perf selects nothing if a number is there twice.
            let mut pids = vec![one.pid.cast_signed(), other.pid.cast_signed()];
            pids.dedup();
            let pids: Vec<_> = pids.iter().map(i32::to_string).collect();
            vec![("--pid", pids.join(","))]
        }
        5 => vec![("--tid", one.tid.cast_signed().to_string())],
        6 if is_plain(&one.comm) => vec![("--comms", one.comm)],
        7 => match one.cpu {
            Some(cpu) => vec![("--cpu", cpu.to_string())],
            None => vec![range(&one, &other)],
        },
        _ => vec![
            range(&one, &other),
            ("--pid", one.pid.cast_signed().to_string()),
        ],
    }
}

/// Returns the conditions for the stage.
fn select(words: &Words) -> Select {
    let mut select = Select::default();
    for (option, value) in words {
        let wrong = "the value is valid";
        match *option {
            "--time" => select.times = Some(value.parse().expect(wrong)),
            "--pid" => select.pids = Some(value.parse().expect(wrong)),
            "--tid" => select.tids = Some(value.parse().expect(wrong)),
            "--cpu" => select.cpus = Some(value.parse().expect(wrong)),
            "--comms" => select.comms = Some(Patterns::between_commas(value)),
            other => panic!("{other}"),
        }
    }
    select
}

fn script(perf: &Perf, words: &Words, path: &Path) -> Result<Output, String> {
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let mut command = perf.command();
    command
        // Symbols depend on the machine that reads the recording.
        .args(["script", "--no-inline", "--ns", "-F", "-symoff,-sym", "-i"])
        .arg(path);
    for (option, value) in words {
        command.args([*option, value]);
    }
    perf::run(command).map_err(|error| error.to_string())
}

/// Returns the output without samples after the EXIT record of their thread. perf since 6.6 calls
/// such a thread by its number; here and before, it keeps its name.
fn without_unnamed(text: &str) -> String {
    let mut is_left_out = false;
    text.split_inclusive('\n')
        .filter(|line| {
            if !line.starts_with(['\t', '\n']) {
                is_left_out = line.trim_start().starts_with(':');
            }
            !is_left_out
        })
        .collect()
}

/// Returns the output without what depends on other parts of the recording: offsets in AUX data,
/// and errors of its decoding, which a cut can shorten.
fn without_offsets(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with(" instruction trace error"))
        .map(|line| match line.split_once("psb offs: ") {
            Some((before, after)) => {
                let address = after
                    .trim_start()
                    .split_once(' ')
                    .map_or("", |(_, rest)| rest);
                format!("{before}psb {}", address.trim_start())
            }
            None => line.to_owned(),
        })
        .collect()
}

/// Returns the output without CPUs. perf 7.2 shows 0 for CPUs that the features do not lead it to
/// expect, and a conversion of an old stream completes these.
fn without_cpus(text: &str) -> String {
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let cpu = line
            .find(" [")
            .filter(|at| line.get(at + 5..at + 7) == Some("] "));
        let (before, after) = cpu.map_or((line, ""), |at| (&line[..at], &line[at + 6..]));
        kept.extend([before, after]);
    }
    kept
}

fn first_difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let at = (0..)
        .find(|&at| expected.get(at) != found.get(at))
        .unwrap_or(0);
    let counts = (expected.len(), found.len());
    format!(
        "{counts:?} lines, line {at}: {:?}, but here {:?}",
        expected.get(at),
        found.get(at)
    )
}

fn check(recording: &Recording) -> Result<(), String> {
    let samples = samples(&recording.path);
    if samples.len() < 2 || recording.is_damaged() {
        return Ok(());
    }
    let is_file = recording
        .form
        .is_some_and(|form| form.container == Container::File);
    let seed = recording.name.bytes().fold(7, |seed: u64, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    let mut random = Random(seed);
    for perf in judge::panel(recording)? {
        // A perf of another byte order is emulated.
        let is_native = (perf.endian == Endian::Little) == cfg!(target_endian = "little");
        let count = if is_thorough() && is_native { 12 } else { 1 };
        for _ in 0..count {
            let words = conditions(&samples, is_file, &mut random);
            // perf compares the name of a thread when the callchain of its sample has arrived.
            let is_deferred = recording.name.contains("-defer");
            if is_deferred && words.iter().any(|(option, _)| *option == "--comms") {
                continue;
            }
            let expected = script(perf, &words, &recording.path)?;
            if !expected.success() {
                continue;
            }
            let slice = Slice::new(select(&words));
            let sliced = match convert(&recording.path, None, vec![Box::new(slice)]) {
                Ok(sliced) => sliced,
                Err(_) if expected.stdout.is_empty() => continue,
                Err(error) if error.step() == Some(&Step::Recover) => continue,
                Err(error) => return Err(format!("{perf}: {words:?}: {error}")),
            };
            // The times of samples in AUX data are known only when they are decoded.
            let has_aux_data = sliced
                .summary
                .notes
                .iter()
                .any(|note| note.contains("AUX data"));
            let again = if has_aux_data {
                words.clone()
            } else {
                Vec::new()
            };
            let found = script(perf, &again, &sliced.path())?;
            let has_name = words.iter().any(|(option, _)| *option == "--comms");
            let is_new = perf.version >= PerfVersion { major: 6, minor: 6 };
            let lacks_cpus = recording.name.contains("quipper/piped") && perf.version.major >= 7;
            let text = |output: &Output| {
                let mut text = output.stdout.clone();
                if has_name && is_new {
                    text = without_unnamed(&text);
                }
                if has_aux_data {
                    text = without_offsets(&text);
                }
                if lacks_cpus {
                    text = without_cpus(&text);
                }
                text
            };
            let (expected, found) = (text(&expected), text(&found));
            if expected != found {
                return Err(format!(
                    "{perf}: {words:?}: {}",
                    first_difference(&expected, &found)
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn perf_shows_a_slice_as_it_shows_the_whole() {
    recordings::check_all(&recordings::all(), check);
}

/// A cut without regard to the state of perf: drops every record outside of a range.
struct NaiveCut(u64, u64);

impl Stage for NaiveCut {
    fn record(
        &mut self,
        record: &RawRecord<'_>,
        next: &mut Link<'_>,
    ) -> perfdata_convert::Result<()> {
        match next
            .recording()
            .events
            .time(record)
            .filter(|&time| time != 0)
        {
            Some(time) if time < self.0 || time > self.1 => Ok(()),
            _ => next.record(record),
        }
    }
}

#[test]
fn a_naive_cut_is_noticed() {
    let recording = recordings::fixture("6.1-x86_64-file-default");
    let samples = samples(&recording.path);
    let Some(perf) = perf::all()
        .iter()
        .find(|perf| Some(perf.endian) == recording.form.map(|form| form.endian))
    else {
        return skipped::note("perf");
    };
    let (first, last) = (
        samples[samples.len() / 2].time,
        samples[samples.len() - 1].time,
    );
    let text = |stage: Box<dyn Stage>| {
        let cut = convert(&recording.path, None, vec![stage]).expect("it is converted");
        script(perf, &Vec::new(), &cut.path())
            .expect("perf runs")
            .stdout
    };
    let mut slice = Select::default();
    let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    slice.times = Some(
        format!("{},{}", seconds(first), seconds(last))
            .parse()
            .expect("a range"),
    );
    assert_ne!(
        text(Box::new(NaiveCut(first, last))),
        text(Box::new(Slice::new(slice)))
    );
}
