//! Properties of divided recordings that hold without perf.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use perfdata_convert::error::Error;
use perfdata_convert::io::{Input, Output, OutputDirectory};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::attr::SampleType;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Chunk;
use perfdata_core::record::{RecordType, is_known_time};
use perfdata_edit::merge::{Merge, Merged};
use perfdata_edit::slice::{Patterns, Select, Sideband, Slice};
use perfdata_edit::sort::Sort;
use perfdata_edit::split::{self, By, INDEX, Split, is_part};
use perfdata_tests::convert::convert;
use perfdata_tests::recordings::{self, Recording};
use perfdata_tests::synth;
use serde_json::Value;
use tempfile::TempDir;

/// A recording that was divided.
struct Parts {
    folder: TempDir,
    report: split::Report,
}

impl Parts {
    fn of(path: &Path, split: Split) -> Result<Self, Error> {
        Self::with(path, split, || Ok(Vec::new()))
    }

    fn with(
        path: &Path,
        split: Split,
        stages: impl Fn() -> Result<Vec<Box<dyn Stage>>, Error>,
    ) -> Result<Self, Error> {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        let target = folder.path().join("parts");
        let directory = OutputDirectory::create(&target, path, false, is_part)?.synced(false);
        match split.run(Input::open(path)?, directory, stages) {
            Ok(report) => Ok(Parts { folder, report }),
            Err(error) => {
                let left = fs::read_dir(&folder).expect("the folder is there").count();
                assert_eq!(left, 0, "{error}: something was left behind");
                Err(error)
            }
        }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("parts")
    }

    fn paths(&self) -> Vec<PathBuf> {
        let files = self.report.parts.iter().map(|part| &part.file);
        files.map(|file| self.target().join(file)).collect()
    }

    fn index(&self) -> Value {
        let text = fs::read(self.target().join(INDEX)).expect("an index");
        serde_json::from_slice(&text).expect("JSON")
    }
}

/// A sample: its time, and its bytes.
type Sample = (u64, Vec<u8>);

/// Returns the samples of a recording, in the order of time, without the values of counters, which
/// differ in a part.
fn samples(path: &Path) -> Vec<Sample> {
    let mut all = Vec::new();
    let Ok(reader) = perfdata_core::open(path) else {
        return all;
    };
    let mut events = reader.recording().events.iter();
    let has_counters = events.any(|event| event.attr.sample_type.has(SampleType::READ));
    let mut records = reader.by_time();
    while let Ok(Some(record)) = records.next() {
        if record.kind == RecordType::SAMPLE {
            let time = record.sample_view().and_then(|view| view.time());
            let bytes = match has_counters {
                true => vec![0; record.bytes.len()],
                false => record.bytes.to_vec(),
            };
            all.push((time.unwrap_or(0), bytes));
        }
    }
    all
}

/// Ways to divide a recording with these samples.
fn ways(samples: &[Sample]) -> Vec<By> {
    let times = || {
        samples
            .iter()
            .map(|sample| sample.0)
            .filter(|&time| is_known_time(time))
    };
    let length = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let count = samples.len() as u64;
    vec![
        By::Time((length / 7).max(1)),
        By::Samples(count.div_ceil(5).max(1)),
        By::Size(1 << 20),
        By::Pid,
        By::Tid,
        By::Comm,
        By::Cpu,
        By::Event,
    ]
}

/// Returns the samples of a recording that is read to its end, if it has some.
fn divisible(recording: &Recording) -> Option<Vec<Sample>> {
    let samples = samples(&recording.path);
    let is_sound = !recording.is_damaged() && samples.len() > 1;
    is_sound.then_some(samples)
}

fn is_clean(path: &Path) -> bool {
    let input = Input::open(path).expect("it was just written");
    Report::of(input).is_ok_and(|report| report.is_clean())
}

fn check_partition(recording: &Recording) -> Result<(), String> {
    let Some(mut expected) = divisible(recording) else {
        return Ok(());
    };
    let ways = ways(&expected);
    expected.sort();
    let is_sound = is_clean(&recording.path);
    for by in ways {
        let parts = match Parts::of(&recording.path, Split::new(by)) {
            Ok(parts) => parts,
            // The samples do not contain it, or the other records take too much room.
            Err(error) if error.is_refusal() => continue,
            Err(error) => return Err(format!("{by}: {error}")),
        };
        let mut found = Vec::new();
        for (part, path) in parts.report.parts.iter().zip(parts.paths()) {
            let its = samples(&path);
            if its.len() as u64 != part.samples {
                let file = &part.file;
                return Err(format!(
                    "{by}: {file} has {} of {} samples",
                    its.len(),
                    part.samples
                ));
            }
            if is_sound && !is_clean(&path) {
                return Err(format!("{by}: {} is not sound", part.file));
            }
            found.extend(its);
        }
        found.sort();
        if found != expected {
            let (found, expected) = (found.len(), expected.len());
            return Err(format!(
                "{by}: {found} samples in all parts, not {expected}"
            ));
        }
        check_index(&parts, by)?;
    }
    Ok(())
}

/// Checks that the index describes the files.
fn check_index(parts: &Parts, by: By) -> Result<(), String> {
    let index = parts.index();
    let listed = index["parts"].as_array().cloned().unwrap_or_default();
    let mut files: Vec<_> = fs::read_dir(parts.target())
        .expect("a directory")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.retain(|file| !file.ends_with(INDEX));
    let is_listed = |file: &PathBuf| {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let size = fs::metadata(file).expect("a file").len();
        listed
            .iter()
            .any(|part| part["file"] == name && part["bytes"] == size)
    };
    let is_right = index["by"] == by.to_string() && files.iter().all(is_listed);
    match is_right && files.len() == listed.len() && files.iter().all(|file| is_part(file)) {
        true => Ok(()),
        false => Err(format!("{by}: the index is wrong: {index:#}")),
    }
}

#[test]
fn parts_hold_each_sample_once() {
    recordings::check_all(&recordings::fixtures(), check_partition);
}

fn seconds(time: u64) -> String {
    format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}

/// Returns the conditions for the samples of a part, from its entry in the index.
fn conditions(part: &Value) -> Option<Select> {
    let mut select = Select::default();
    let number = |name: &str| part[name].as_i64().map(|number| number.to_string());
    if let (Some(from), Some(to)) = (part["from"].as_u64(), part["to"].as_u64()) {
        let range = format!("{},{}", seconds(from), seconds(to - 1));
        select.times = Some(range.parse().ok()?);
    } else if let Some(pid) = number("pid") {
        select.pids = pid.parse().ok();
    } else if let Some(tid) = number("tid") {
        select.tids = tid.parse().ok();
    } else if let Some(cpu) = number("cpu") {
        select.cpus = cpu.parse().ok();
    } else {
        let text = part["comm"].as_str().or(part["event"].as_str())?;
        if text.contains(['*', '?', ',', '\u{fffd}']) {
            return None;
        }
        let patterns = Some(Patterns::new(vec![text.as_bytes().to_vec()]));
        match part["comm"].is_string() {
            true => select.comms = patterns,
            false => select.events = patterns,
        }
    }
    Some(select)
}

/// Returns the records of a recording that the kernel writes, with their times, in the order of
/// time.
fn records(path: &Path) -> Vec<(Option<u64>, RecordType, Vec<u8>)> {
    let mut all = Vec::new();
    let mut records = perfdata_core::open(path).expect("a recording").by_time();
    while let Ok(Some(record)) = records.next() {
        if record.kind.is_kernel() {
            let time = record.time().filter(|&time| is_known_time(time));
            all.push((time, record.kind, record.bytes.to_vec()));
        }
    }
    all
}

fn has_lost_samples(path: &Path) -> bool {
    let kind = |record: &(_, RecordType, _)| record.1;
    records(path)
        .iter()
        .map(kind)
        .any(|kind| kind == RecordType::LOST_SAMPLES)
}

/// Returns whether two recordings are equal, except for the compression of their records.
fn are_equal(a: &Path, b: &Path) -> Result<bool, String> {
    if fs::read(a).expect("a file") == fs::read(b).expect("a file") {
        return Ok(true);
    }
    let plain = |path: &Path| {
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
        let plain = convert(path, None, stages).map_err(|error| error.to_string())?;
        let reader = perfdata_core::open(path).map_err(|error| error.to_string())?;
        let features = &reader.recording().features;
        let is_compressed = features.contains_key(&FeatureId::COMPRESSED);
        Ok::<_, String>((plain.bytes(), is_compressed))
    };
    let (a, b) = (plain(a)?, plain(b)?);
    Ok(a == b && a.1)
}

fn check_slices(recording: &Recording) -> Result<(), String> {
    let Some(samples) = divisible(recording) else {
        return Ok(());
    };
    if has_lost_samples(&recording.path) {
        // They are in all slices, but only in the last part.
        return Ok(());
    }
    // A sample without a time is in all slices by time, as in perf, and in one part.
    let all_timed = samples.iter().all(|sample| is_known_time(sample.0));
    for by in ways(&samples) {
        let Ok(parts) = Parts::of(&recording.path, Split::new(by)) else {
            continue;
        };
        let index = parts.index();
        let listed = index["parts"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> = listed.iter().map(|part| part["event"].as_str()).collect();
        for (at, (part, path)) in listed.iter().zip(parts.paths()).enumerate() {
            let is_unique = names.iter().filter(|name| **name == names[at]).count() == 1;
            let Some(mut select) = conditions(part).filter(|_| by != By::Event || is_unique) else {
                continue;
            };
            // The last part contains what comes after its samples, too.
            if let (By::Time(_), true) = (by, at + 1 == listed.len()) {
                let from = part["from"].as_u64().expect("a time");
                select.times = format!("{},", seconds(from)).parse().ok();
            }
            if matches!(by, By::Time(_)) && !all_timed {
                continue;
            }
            let stages: Vec<Box<dyn Stage>> = vec![Box::new(Slice::new(select))];
            let sliced = convert(&recording.path, Some(ContainerKind::File), stages)
                .map_err(|error| format!("{by}: {part}: {error}"))?;
            if !are_equal(&sliced.path(), &path)? {
                return Err(format!("{by}: {} is not the slice", path.display()));
            }
        }
    }
    Ok(())
}

#[test]
fn a_part_is_a_slice() {
    recordings::check_all(&recordings::fixtures(), check_slices);
}

/// Merges the parts, and compares the result with the sorted recording.
fn check_merged(recording: &Recording) -> Result<(), String> {
    let Some(samples) = divisible(recording) else {
        return Ok(());
    };
    let events = perfdata_core::open(&recording.path).expect("a recording");
    let mut events = events.recording().events.iter();
    // Deferred callchains have no order.
    if events.any(|event| event.attr.flags.defer_callchain() == 1)
        || !samples.iter().all(|sample| is_known_time(sample.0))
    {
        return Ok(());
    }
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default()), Box::new(Sort::new())];
    let Ok(sorted) = convert(&recording.path, Some(ContainerKind::File), stages) else {
        return Ok(());
    };
    let expected = records(&sorted.path());
    for by in ways(&samples) {
        let mut split = Split::new(by);
        split.select.sideband = Sideband::All;
        let plain = || Ok(vec![Box::new(Decompress::default()) as Box<dyn Stage>]);
        let Ok(parts) = Parts::with(&recording.path, split, plain) else {
            continue;
        };
        let open = |path: PathBuf| {
            (
                path.display().to_string(),
                Input::open(&path).expect("a part"),
            )
        };
        let inputs = parts.paths().into_iter().map(open).collect();
        let Merged { input, .. } = match Merge::default().open(inputs) {
            Ok(merged) => merged,
            Err(error) => return Err(format!("{by}: {error}")),
        };
        let path = parts.folder.path().join("merged.data");
        let output = Output::create(&path, &path, false).expect("an output");
        Conversion::new(Vec::new())
            .to(ContainerKind::File)
            .run_on(input, output.synced(false))
            .map_err(|error| format!("{by}: {error}"))?;
        compare(&expected, &records(&path)).map_err(|error| format!("{by}: {error}"))?;
    }
    Ok(())
}

/// A record of the kernel: its time, type and bytes.
type Timed = (Option<u64>, RecordType, Vec<u8>);

/// Compares the records of a sorted recording with those of its merged parts: every moment has the
/// same records. Where a part follows another one, the latter may contain again what is known of
/// tasks: EXIT records for all of them, and what existed before the part.
fn compare(expected: &[Timed], found: &[Timed]) -> Result<(), String> {
    let sorted = |records: &[Timed]| {
        let mut records = records.to_vec();
        records.sort();
        records
    };
    let (expected, mut found) = (sorted(expected), sorted(found));
    for record in &expected {
        match found.iter().position(|other| other == record) {
            Some(at) => drop(found.remove(at)),
            None => {
                return Err(format!(
                    "{:?} record is missing, of {:?}",
                    record.1, record.0
                ));
            }
        }
    }
    let is_state = |record: &Timed| {
        matches!(
            record.1,
            RecordType::EXIT
                | RecordType::COMM
                | RecordType::FORK
                | RecordType::MMAP
                | RecordType::MMAP2
                | RecordType::NAMESPACES
        )
    };
    match found.iter().find(|record| !is_state(record)) {
        Some(record) => Err(format!("another {:?} record, of {:?}", record.1, record.0)),
        None => Ok(()),
    }
}

#[test]
fn merged_parts_are_the_sorted_recording() {
    recordings::check_all(&recordings::fixtures(), check_merged);
}

fn fixture(name: &str) -> PathBuf {
    recordings::fixture(name).path
}

#[test]
fn more_parts_than_open_files() {
    let path = fixture("6.1-x86_64-file-z");
    let all = samples(&path);
    assert!(all.len() > split::MOST_OPEN);
    let parts = Parts::of(&path, Split::new(By::Samples(1))).expect("it can be divided");
    assert_eq!(parts.report.parts.len(), all.len());
    let found: Vec<_> = parts
        .paths()
        .iter()
        .flat_map(|path| samples(path))
        .collect();
    assert_eq!(found, all);
}

#[test]
fn conversions_of_parts_are_those_of_slices() {
    let path = fixture("7.2-x86_64-file-defer-a");
    let stages = || {
        Ok(vec![
            Box::new(perfdata_inject::merge_deferred::MergeDeferred::new()) as Box<dyn Stage>,
            Box::new(Swap::new(Target::Other, Unknown::Error)),
        ])
    };
    for to in [ContainerKind::File, ContainerKind::Pipe] {
        let split = Split::new(By::Cpu).to(to);
        let parts = Parts::with(&path, split, stages).expect("it can be divided");
        let plain = Parts::of(&path, Split::new(By::Cpu)).expect("it can be divided");
        let listed = parts.index()["parts"].as_array().cloned().expect("parts");
        assert!(listed.len() > 1);
        for ((part, path), plain) in listed.iter().zip(parts.paths()).zip(plain.paths()) {
            let in_steps = convert(&plain, Some(to), stages().expect("stages"));
            let in_steps = in_steps.expect("it can be converted");
            // In a pipe of a part, SAMPLE_TIME is unknown.
            let is_same = match to {
                ContainerKind::File => are_equal(&in_steps.path(), &path).expect("recordings"),
                ContainerKind::Pipe => samples(&in_steps.path()) == samples(&path),
            };
            assert!(is_same && is_clean(&path), "{part}");
        }
    }
}

#[test]
fn only_selected_samples_are_in_parts() {
    let path = fixture("6.1-x86_64-file-z");
    let mut select = Select::default();
    select.every = NonZeroU64::new(3);
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Slice::new(select.clone()))];
    let sliced = convert(&path, None, stages).expect("it can be sliced");
    let split = Split::new(By::Samples(10)).with_select(select);
    let parts = Parts::of(&path, split).expect("it can be divided");
    let found: Vec<_> = parts
        .paths()
        .iter()
        .flat_map(|path| samples(path))
        .collect();
    assert_eq!(found, samples(&sliced.path()));
}

#[test]
fn the_form_of_a_recording_does_not_matter() {
    let path = fixture("6.12-x86_64-file-z-g");
    let counts = |path: &Path, by| {
        let parts = Parts::of(path, Split::new(by)).expect("it can be divided");
        let parts = parts.report.parts.into_iter();
        parts
            .map(|part| (part.file, part.samples))
            .collect::<Vec<_>>()
    };
    type Form = (Option<ContainerKind>, Vec<Box<dyn Stage>>);
    let forms: [Form; 4] = [
        (Some(ContainerKind::Pipe), vec![]),
        (
            None,
            vec![Box::new(Swap::new(Target::Other, Unknown::Keep))],
        ),
        (None, vec![Box::new(Decompress::default())]),
        (
            None,
            vec![
                Box::new(Decompress::default()),
                Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
            ],
        ),
    ];
    for (to, stages) in forms {
        let form = convert(&path, to, stages).expect("it can be converted");
        for by in ways(&samples(&path)) {
            // Sizes are those of the records without compression.
            if by != By::Cpu {
                assert_eq!(counts(&form.path(), by), counts(&path, by), "{by}");
            }
        }
    }
}

#[test]
fn what_cannot_be_divided_is_refused() {
    let refused = |name: &str, by: By| match Parts::of(&fixture(name), Split::new(by)) {
        Ok(parts) => format!("{:?}", parts.report),
        Err(error) => error.to_string(),
    };
    let default = "6.1-x86_64-file-default";
    assert_eq!(
        refused(default, By::Cpu),
        "the samples of event cpu-clock do not contain their CPU"
    );
    assert!(refused(default, By::Size(512)).starts_with("a part of 512 bytes is too small: after"));
    assert_eq!(
        refused("6.1-i386-stat-record-I", By::Event),
        "a recording of perf stat contains no samples: its counters cannot be cut by time"
    );
    let mut select = Select::default();
    select.pids = "4194304".parse().ok();
    let error = Parts::of(&fixture(default), Split::new(By::Tid).with_select(select));
    let error = error.err().expect("it is refused");
    assert_eq!(error.to_string(), "no sample meets the conditions");
}

/// Intel PT is divided by time at PSB packets, and by CPU or thread; nothing else is known of it.
#[test]
fn aux_data_is_divided_by_time() {
    let traced = recordings::all().into_iter().filter(|recording| {
        !recording.is_damaged() && {
            let reader = perfdata_core::open(&recording.path);
            let has_aux = |reader: &perfdata_core::read::RecordingReader| {
                let features = &reader.recording().features;
                features.contains_key(&FeatureId::AUXTRACE)
            };
            reader.is_ok_and(|reader| has_aux(&reader))
        }
    });
    let traced: Vec<_> = traced
        .filter(|traced| samples(&traced.path).len() > 1)
        .collect();
    if traced.is_empty() {
        perfdata_tests::skipped::note("recordings with AUX data");
    }
    recordings::check_all(&traced, |recording| {
        check_slices(recording)?;
        match Parts::of(&recording.path, Split::new(By::Comm)) {
            Err(error) if error.to_string().contains("AUX data") => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Err("AUX data was divided by comm".into()),
        }
    });
}

/// AUX data is in the part of its CPU, even if there are no samples.
#[test]
fn aux_data_is_divided_by_cpu() {
    let traces = |path: &Path| {
        let mut all = Vec::new();
        let mut reader = perfdata_core::open(path).expect("a recording");
        while let Some((chunk, _)) = reader.next_chunk().expect("it can be read") {
            match chunk {
                Chunk::Records(batch) => {
                    let traces = batch.iter().filter(|raw| raw.kind == RecordType::AUXTRACE);
                    all.extend(traces.map(|raw| (raw.bytes.to_vec(), Vec::new())));
                }
                Chunk::Payload(bytes) => {
                    if let Some((_, payload)) = all.last_mut() {
                        payload.extend_from_slice(bytes);
                    }
                }
                Chunk::Unreadable(_) => panic!("it is whole"),
            }
        }
        all
    };
    for big in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("aux.data");
        fs::write(&path, synth::pipe::with_aux(big)).expect("it can be written");
        let expected = traces(&path);
        assert!(!expected.is_empty());
        let parts = Parts::of(&path, Split::new(By::Cpu)).expect("it can be divided");
        assert_eq!(parts.index()["parts"][0]["cpu"], 3);
        let error = Parts::of(&path, Split::new(By::Tid))
            .err()
            .expect("it is refused");
        let expected_error = "the recording has AUX data of CPUs, which cannot be divided by tid: \
                              choose time or cpu";
        assert_eq!(error.to_string(), expected_error);
        let found: Vec<_> = parts.paths().iter().flat_map(|path| traces(path)).collect();
        assert_eq!(found, expected);
    }
}
