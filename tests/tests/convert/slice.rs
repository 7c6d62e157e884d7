//! Properties of slices that hold without perf.

use std::fs::File;
use std::path::Path;

use perfdata_convert::error::Error;
use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RecordType, is_known_time};
use perfdata_edit::slice::{Patterns, Select, Slice};
use perfdata_edit::sort::Sort;
use perfdata_inject::build_ids::{BuildIds, KnownBuildIds, Resolver, Storage, Sysroot};
use perfdata_inject::merge_deferred::MergeDeferred;
use perfdata_tests::convert::{Converted, convert};
use perfdata_tests::generate::{Generator, Mix};
use perfdata_tests::recordings::{self, Recording};

/// Returns the conditions that `set` sets.
fn select(set: impl FnOnce(&mut Select)) -> Select {
    let mut select = Select::default();
    set(&mut select);
    select
}

fn slice(path: &Path, select: Select) -> Result<Converted, Error> {
    convert(path, None, vec![Box::new(Slice::new(select))])
}

/// Returns time, process ID and bytes of all samples, in the order of time, including those in
/// compressed records.
fn samples(path: &Path) -> Vec<(u64, u32, Vec<u8>)> {
    let mut all = Vec::new();
    let Ok(reader) = perfdata_core::open(path) else {
        return all;
    };
    let mut records = reader.by_time();
    while let Ok(Some(record)) = records.next() {
        if record.kind == RecordType::SAMPLE {
            let view = record.sample_view();
            let time = view.as_ref().and_then(|view| view.time()).unwrap_or(0);
            let pid = view.and_then(|view| view.tid()).map_or(0, |tid| tid.pid);
            all.push((time, pid, record.bytes.to_vec()));
        }
    }
    all
}

/// Returns the samples with counter values of 0, which a slice changes.
fn without_counters(path: &Path, samples: Vec<(u64, u32, Vec<u8>)>) -> Vec<(u64, u32, Vec<u8>)> {
    let has_counters = perfdata_core::open(path).is_ok_and(|reader| {
        let mut events = reader.recording().events.iter();
        events.any(|event| {
            event
                .attr
                .sample_type
                .has(perfdata_core::attr::SampleType::READ)
        })
    });
    let hide = |(time, pid, bytes): (u64, u32, Vec<u8>)| match has_counters {
        true => (time, pid, vec![0; bytes.len()]),
        false => (time, pid, bytes),
    };
    samples.into_iter().map(hide).collect()
}

fn seconds(time: u64) -> String {
    format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}

/// Returns the range between two samples of the recording, and the ID of a process.
fn middle(samples: &[(u64, u32, Vec<u8>)]) -> Option<(String, u32)> {
    let timed: Vec<_> = samples
        .iter()
        .filter(|(time, ..)| is_known_time(*time))
        .collect();
    let (first, last) = (timed.get(timed.len() / 3)?, timed.get(timed.len() * 2 / 3)?);
    Some((format!("{},{}", seconds(first.0), seconds(last.0)), first.1))
}

/// Recordings that a slice accepts, with their samples.
fn sliceable(recording: &Recording) -> Option<Vec<(u64, u32, Vec<u8>)>> {
    let samples = samples(&recording.path);
    let is_whole = || {
        slice(
            &recording.path,
            select(|select| select.times = ",".parse().ok()),
        )
        .is_ok()
    };
    (!recording.is_damaged() && samples.len() > 1 && is_whole()).then_some(samples)
}

fn check_everything(recording: &Recording) -> Result<(), String> {
    if sliceable(recording).is_none() {
        return Ok(());
    }
    let everything = [
        select(|select| select.times = ",".parse().ok()),
        select(|select| select.comms = Some(Patterns::between_commas("*"))),
        select(|select| select.last = Some(u64::MAX)),
    ];
    let original = std::fs::read(recording.main_file()).map_err(|error| error.to_string())?;
    for select in everything {
        // A slice without samples that are left out may still leave out records about tasks.
        let is_time = select.times.is_some();
        let sliced = slice(&recording.path, select).map_err(|error| error.to_string())?;
        if is_time && recording.path.is_file() && sliced.bytes() != original {
            return Err("a slice of everything is not the recording".into());
        }
        let found = samples(&sliced.path());
        if found != samples(&recording.path) {
            return Err("a slice of everything has other samples".into());
        }
    }
    Ok(())
}

#[test]
fn a_slice_of_everything_is_the_recording() {
    recordings::check_all(&recordings::fixtures(), check_everything);
}

fn check_parts(recording: &Recording) -> Result<(), String> {
    let Some(all) = sliceable(recording) else {
        return Ok(());
    };
    let parts = (1..=5).map(|part| format!("20%/{part}"));
    let mut found = Vec::new();
    for part in parts {
        let select = select(|select| {
            select.times = part.parse().ok();
            select.allow_empty = true;
        });
        let sliced = slice(&recording.path, select).map_err(|error| error.to_string())?;
        // A sample without a time is in all parts, as in perf.
        let timed = samples(&sliced.path())
            .into_iter()
            .filter(|sample| is_known_time(sample.0));
        found.extend(timed);
        check_sound(&recording.path, &sliced)?;
    }
    let expected: Vec<_> = all
        .iter()
        .filter(|sample| is_known_time(sample.0))
        .cloned()
        .collect();
    let (mut expected, mut found) = (
        without_counters(&recording.path, expected),
        without_counters(&recording.path, found),
    );
    expected.sort();
    found.sort();
    match expected == found {
        true => Ok(()),
        false => Err(format!(
            "{} samples, but {} in all parts",
            expected.len(),
            found.len()
        )),
    }
}

/// Checks that `verify` finds nothing in a conversion of a recording in which it finds nothing.
fn check_sound(original: &Path, converted: &Converted) -> Result<(), String> {
    let verify = |path: &Path| {
        let input = Input::open(path).map_err(|error| error.to_string())?;
        Report::of(input).map_err(|error| error.to_string())
    };
    let verified = verify(&converted.path())?;
    match verified.is_clean() || !verify(original)?.is_clean() {
        true => Ok(()),
        false => Err(verified.text()),
    }
}

#[test]
fn parts_hold_each_sample_once() {
    recordings::check_all(&recordings::fixtures(), check_parts);
}

fn check_order(recording: &Recording) -> Result<(), String> {
    let Some((range, pid)) = sliceable(recording).as_deref().and_then(middle) else {
        return Ok(());
    };
    let of_time = || select(|select| select.times = range.parse().ok());
    let of_pid = || select(|select| select.pids = pid.cast_signed().to_string().parse().ok());
    let both = select(|select| {
        select.times = range.parse().ok();
        select.pids = pid.cast_signed().to_string().parse().ok();
    });
    let error = |error: Error| error.to_string();
    let (Ok(both), Ok(by_time), Ok(by_pid)) = (
        slice(&recording.path, both),
        slice(&recording.path, of_time()),
        slice(&recording.path, of_pid()),
    ) else {
        // The samples have no process ID, or the process has none there.
        return Ok(());
    };
    check_sound(&recording.path, &by_time)?;
    check_sound(&recording.path, &by_pid)?;
    check_sound(&recording.path, &both)?;
    let one = slice(&by_time.path(), of_pid()).map_err(error)?;
    let other = slice(&by_pid.path(), of_time()).map_err(error)?;
    if recording.path.is_file() && one.bytes() != both.bytes() {
        return Err("time, then process, is not both".into());
    }
    if samples(&other.path()) != samples(&both.path()) {
        return Err("process, then time, has other samples than both".into());
    }
    Ok(())
}

#[test]
fn a_slice_of_a_slice_is_the_intersection() {
    recordings::check_all(&recordings::fixtures(), check_order);
}

fn check_inversion(recording: &Recording) -> Result<(), String> {
    let Some(all) = sliceable(recording) else {
        return Ok(());
    };
    let Some((range, _)) = middle(&all) else {
        return Ok(());
    };
    let conditions: [&dyn Fn(&mut Select); 3] = [
        &|select| select.times = range.parse().ok(),
        &|select| (select.first, select.last) = (Some(3), Some(4)),
        &|select| select.every = std::num::NonZeroU64::new(3),
    ];
    for condition in conditions {
        let mut found = Vec::new();
        for invert in [false, true] {
            let select = select(|select| {
                condition(select);
                select.invert = invert;
                select.allow_empty = true;
            });
            let sliced = slice(&recording.path, select).map_err(|error| error.to_string())?;
            check_sound(&recording.path, &sliced)?;
            found.extend(samples(&sliced.path()));
        }
        let mut expected = without_counters(&recording.path, all.clone());
        let mut found = without_counters(&recording.path, found);
        expected.sort();
        found.sort();
        if expected != found {
            return Err("a slice and its inversion are not the whole".into());
        }
    }
    Ok(())
}

#[test]
fn a_slice_and_its_inversion_hold_each_sample_once() {
    recordings::check_all(&recordings::fixtures(), check_inversion);
}

/// A form of a recording: its name, container, and the stages that convert to it.
type Form = (&'static str, Option<ContainerKind>, Vec<Box<dyn Stage>>);

fn check_forms(recording: &Recording) -> Result<(), String> {
    let Some((range, pid)) = sliceable(recording).as_deref().and_then(middle) else {
        return Ok(());
    };
    let conditions = || {
        select(|select| {
            select.times = range.parse().ok();
            select.pids = pid.cast_signed().to_string().parse().ok();
        })
    };
    let Ok(expected) = slice(&recording.path, conditions()) else {
        return Ok(());
    };
    let expected: Vec<_> = times(&expected);
    let forms: [Form; 5] = [
        ("file", Some(ContainerKind::File), vec![]),
        ("pipe", Some(ContainerKind::Pipe), vec![]),
        (
            "swapped",
            None,
            vec![Box::new(Swap::new(Target::Other, Unknown::Keep))],
        ),
        ("plain", None, vec![Box::new(Decompress::default())]),
        (
            "compressed",
            None,
            vec![
                Box::new(Decompress::default()),
                Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
            ],
        ),
    ];
    for (name, to, stages) in forms {
        // Some recordings cannot be converted to some forms.
        let Ok(form) = convert(&recording.path, to, stages) else {
            continue;
        };
        let after =
            slice(&form.path(), conditions()).map_err(|error| format!("{name}: {error}"))?;
        if times(&after) != expected {
            return Err(format!("{name}: other samples"));
        }
    }
    Ok(())
}

fn times(converted: &Converted) -> Vec<(u64, u32)> {
    let samples = samples(&converted.path());
    samples
        .into_iter()
        .map(|(time, pid, _)| (time, pid))
        .collect()
}

#[test]
fn the_form_of_a_recording_does_not_matter() {
    recordings::check_all(&recordings::fixtures(), check_forms);
}

#[test]
fn what_cannot_be_selected_is_refused() {
    let fixture = |name| recordings::fixture(name).path;
    let default = fixture("6.1-x86_64-file-default");
    let refused = |path: &Path, set: &dyn Fn(&mut Select)| match slice(path, select(set)) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let pid = |select: &mut Select| select.pids = "4194304".parse().ok();
    assert_eq!(refused(&default, &pid), "no sample meets the conditions");
    let event = |select: &mut Select| select.events = Some(Patterns::between_commas("cpu-clok"));
    assert_eq!(
        refused(&default, &event),
        "no event is called cpu-clok; the events are cpu-clock; did you mean cpu-clock?"
    );
    let cpu = |select: &mut Select| select.cpus = "0".parse().ok();
    assert_eq!(
        refused(&default, &cpu),
        "the samples of event cpu-clock do not contain their CPU"
    );
    let time = |select: &mut Select| select.times = "1,".parse().ok();
    let stat = fixture("6.1-i386-stat-record-I");
    assert_eq!(
        refused(&stat, &time),
        "a recording of perf stat contains no samples: its counters cannot be cut by time"
    );
}

#[test]
fn an_empty_slice_may_be_wanted() {
    let path = recordings::fixture("6.1-x86_64-file-default").path;
    let select = select(|select| {
        select.pids = "4194304".parse().ok();
        select.allow_empty = true;
    });
    let sliced = slice(&path, select).expect("it is wanted");
    assert!(samples(&sliced.path()).is_empty());
    check_sound(&path, &sliced).expect("it is sound");
}

/// Parts of a file without selected samples are not read again. Compressed records are.
#[test]
fn a_slice_of_a_large_file_is_that_of_its_compressed_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for mix in [Mix::Callchains, Mix::Events, Mix::System] {
        let path = folder.path().join(mix.name());
        let file = File::create(&path).expect("a file");
        Generator::new(mix, 6 << 20)
            .file(file)
            .expect("it is written");
        let compress = Compress::new(RecordType::COMPRESSED2, 1);
        let compressed = convert(&path, None, vec![Box::new(compress)]).expect("it is compressed");
        let all = samples(&path);
        let middle = all[all.len() / 2].0;
        let ranges = format!(
            "{},{}",
            seconds(middle),
            seconds(all[all.len() / 2 + all.len() / 50].0)
        );
        let selections: [&dyn Fn(&mut Select); 6] = [
            &|select| select.times = ranges.parse().ok(),
            &|select| select.times = format!(",{} {ranges}", seconds(all[9].0)).parse().ok(),
            &|select| select.times = format!("{},", seconds(all[all.len() - 9].0)).parse().ok(),
            &|select| select.first = Some(7),
            &|select| (select.last, select.cpus) = (Some(7), "0-2".parse().ok()),
            &|select| {
                select.times = ranges.parse().ok();
                select.invert = true;
            },
        ];
        for (number, set) in selections.into_iter().enumerate() {
            let name = format!("selection {number} of {}", mix.name());
            let skipped = slice(&path, select(set)).expect(&name);
            let stages: Vec<Box<dyn Stage>> = vec![
                Box::new(Slice::new(select(set))),
                Box::new(Decompress::default()),
            ];
            let read = convert(&compressed.path(), None, stages).expect(&name);
            assert!(skipped.bytes() == read.bytes(), "{name}");
            assert_eq!(
                skipped.summary.counts.records,
                number_of_records(&path),
                "{name}"
            );
        }
    }
}

/// Returns the number of records of a recording without compressed records.
fn number_of_records(path: &Path) -> u64 {
    let mut records = perfdata_core::open(path).expect("a recording").by_time();
    while records.advance().expect("a record") {}
    records.count()
}

/// Stages that read ahead see the slice, not the whole recording: one pass does the same as two.
#[test]
fn later_conversions_see_only_the_slice() {
    let fixture = |name| recordings::fixture(name).path;
    let known = "0123456789abcdef0123456789abcdef01234567 /proc/self/exe";
    let build_ids = |place| {
        let known = KnownBuildIds::parse(known).expect("build IDs");
        let resolver = Resolver::new(known, Sysroot::new(None), None);
        Box::new(BuildIds::new(Default::default(), place, resolver)) as Box<dyn Stage>
    };
    type Stages<'a> = &'a dyn Fn() -> Vec<Box<dyn Stage>>;
    let later: [(&str, Stages<'_>); 4] = [
        ("build IDs", &|| vec![build_ids(Storage::Table)]),
        ("build IDs in records", &|| vec![build_ids(Storage::Mmap2)]),
        ("deferred", &|| vec![Box::new(MergeDeferred::new())]),
        ("sort", &|| vec![Box::new(Sort::new())]),
    ];
    for path in [
        fixture("7.2-x86_64-file-defer-a"),
        fixture("6.1-x86_64-file-dwarf-u"),
        fixture("6.12-x86_64-file-z-g"),
    ] {
        let all = samples(&path);
        let range = middle(&all).expect("samples").0;
        let slice = || {
            let select = select(|select| select.times = range.parse().ok());
            Box::new(Slice::new(select)) as Box<dyn Stage>
        };
        let sliced = convert(&path, None, vec![slice()]).expect("it can be sliced");
        for (name, later) in later {
            let mut stages = vec![slice()];
            stages.extend(later());
            let to = Some(ContainerKind::Pipe);
            let twice = convert(&sliced.path(), to, later());
            let once = convert(&path, to, stages);
            let (once, twice) = match (once, twice) {
                (Ok(once), Ok(twice)) => (once, twice),
                // Build IDs cannot be added to compressed records.
                (once, twice) => {
                    let (once, twice) = (once.map(drop), twice.map(drop));
                    assert_eq!(format!("{once:?}"), format!("{twice:?}"));
                    continue;
                }
            };
            // In one pass, SAMPLE_TIME of a pipe is unknown.
            let ids = |converted: &Converted| {
                let reader = perfdata_core::open(converted.path()).expect("a recording");
                reader
                    .recording()
                    .features
                    .get(&FeatureId::BUILD_ID)
                    .cloned()
            };
            assert_eq!(ids(&once), ids(&twice), "{name} of {}", path.display());
            assert_eq!(
                samples(&once.path()),
                samples(&twice.path()),
                "{name} of {}",
                path.display()
            );
        }
    }
}
