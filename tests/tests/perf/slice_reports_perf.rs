//! Slices compared with other reports of perf than `perf script`: those of single events, and the
//! latency, for which perf counts the running threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfdata_core::attr::SampleType;
use perfdata_core::record::is_known_time;
use perfdata_edit::slice::{Patterns, Select, Slice};
use perfdata_tests::convert::convert;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, PerfVersion, Recording};
use perfdata_tests::{judge, skipped};

/// Returns the files that `perf script --per-event-dump` writes, by the name of the event.
fn dumps(perf: &Perf, path: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let input = folder.path().join("in.data");
    fs::copy(path, &input).map_err(|error| error.to_string())?;
    let mut command = perf.command();
    command
        .args(["script", "--no-inline", "--ns", "--per-event-dump"])
        .args(["-F", "-symoff,-sym", "-i"])
        .arg(&input);
    perf::run(command).map_err(|error| error.to_string())?;
    let mut dumps = BTreeMap::new();
    for entry in fs::read_dir(folder.path()).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let event = name
            .strip_prefix("in.data.")
            .and_then(|name| name.strip_suffix(".dump"));
        if let Some(event) = event {
            let text = fs::read(&path).map_err(|error| error.to_string())?;
            dumps.insert(event.to_owned(), text);
        }
    }
    Ok(dumps)
}

fn check_events(recording: &Recording) -> Result<bool, String> {
    if recording.is_damaged() || !recording.path.is_file() {
        return Ok(false);
    }
    let Some(perf) = judge::native(recording) else {
        return Ok(false);
    };
    let whole = dumps(perf, &recording.path)?;
    let full = whole.iter().filter(|(_, text)| !text.is_empty());
    let is_plain = |event: &str| !event.contains([',', '*', '?']);
    let Some((event, text)) = full.clone().find(|(event, _)| is_plain(event)) else {
        return Ok(false);
    };
    if full.count() < 2 {
        return Ok(false);
    }
    let mut select = Select::default();
    select.events = Some(Patterns::between_commas(event));
    let sliced = convert(&recording.path, None, vec![Box::new(Slice::new(select))]);
    let Ok(sliced) = sliced else {
        // perf and EVENT_DESC may have different names for an event.
        return Ok(false);
    };
    let of_slice = dumps(perf, &sliced.path())?;
    if of_slice.get(event) != Some(text) {
        return Err(format!("{perf}: {event} is not as in the whole"));
    }
    // A sample of the leader of a group contains the counter values of its members, and perf shows
    // a sample for each of them.
    let others = of_slice.iter().filter(|(other, _)| *other != event);
    if !has_counters(&recording.path) && others.clone().any(|(_, text)| !text.is_empty()) {
        return Err(format!("{perf}: there are other events than {event}"));
    }
    Ok(true)
}

fn has_counters(path: &Path) -> bool {
    perfdata_core::open(path).is_ok_and(|reader| {
        let mut events = reader.recording().events.iter();
        events.any(|event| event.attr.sample_type.has(SampleType::READ))
    })
}

/// Checks recordings, and that at least `least` of them could be compared.
fn check_some(check: fn(&Recording) -> Result<bool, String>, least: usize) {
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    let compared = std::sync::atomic::AtomicUsize::new(0);
    recordings::check_all(&recordings::all(), |recording| {
        if check(recording)? {
            compared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    });
    let compared = compared.into_inner();
    assert!(
        compared >= least,
        "only {compared} recordings were compared"
    );
}

#[test]
fn perf_shows_a_selected_event_as_in_the_whole() {
    check_some(check_events, 5);
}

/// Returns the times of the samples.
fn times(path: &Path) -> Vec<u64> {
    let mut times = Vec::new();
    let Ok(reader) = perfdata_core::open(path) else {
        return times;
    };
    let mut records = reader.by_time();
    while let Ok(Some(record)) = records.next() {
        let time = record.sample_view().and_then(|view| view.time());
        times.extend(time.filter(|&time| is_known_time(time)));
    }
    times
}

fn latency(perf: &Perf, keys: &str, range: Option<&str>, path: &Path) -> Result<String, String> {
    let mut command = perf.command();
    command
        .args(["report", "--stdio", "--latency", "-s", keys, "-i"])
        .arg(path);
    command.args(range.into_iter().flat_map(|range| ["--time", range]));
    let output = perf::run(command).map_err(|error| error.to_string())?;
    let lines = output.stdout.lines().filter(|line| !line.starts_with('#'));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn check_latency(recording: &Recording) -> Result<bool, String> {
    let has_switches = perfdata_core::open(&recording.path).is_ok_and(|reader| {
        let mut events = reader.recording().events.iter();
        events.any(|event| event.attr.flags.context_switch() == 1)
    });
    let times = times(&recording.path);
    if !has_switches || times.len() < 8 || recording.is_damaged() {
        return Ok(false);
    }
    // The first release with --latency.
    let first = PerfVersion {
        major: 6,
        minor: 15,
    };
    let Some(perf) = judge::native(recording).filter(|perf| perf.version >= first) else {
        return Ok(false);
    };
    let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let at = |part: usize| times[(times.len() - 1) * part / 8];
    let mut is_compared = false;
    for (from, to) in [(1, 3), (2, 7), (5, 6), (4, 8)] {
        let range = format!("{},{}", seconds(at(from)), seconds(at(to)));
        let mut select = Select::default();
        select.times = range.parse().ok();
        let sliced = convert(&recording.path, None, vec![Box::new(Slice::new(select))])
            .map_err(|error| error.to_string())?;
        for keys in ["comm", "parallelism,comm"] {
            let expected = latency(perf, keys, Some(&range), &recording.path)?;
            let found = latency(perf, keys, None, &sliced.path())?;
            if expected != found {
                return Err(format!(
                    "{perf}: {range}: by {keys}:\n{expected}\nbut here\n{found}"
                ));
            }
            is_compared |= expected.contains('%');
        }
    }
    Ok(is_compared)
}

#[test]
fn perf_shows_the_latency_as_in_the_whole() {
    let is_new = |perf: &Perf| {
        perf.version
            >= PerfVersion {
                major: 6,
                minor: 15,
            }
    };
    if !perf::all().iter().any(is_new) {
        return skipped::note("perf 6.15 or newer, for the latency of slices");
    }
    check_some(check_latency, 2);
}
