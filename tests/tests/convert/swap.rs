//! Converting to the other byte order twice results in the input, and recordings of the independent
//! writer are converted to their twins.

use std::{fs, path::Path};

use perfdata_convert::error;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::{
    feature::FeatureId,
    read::{Decompressor, Limits},
    record::{RawRecord, RecordType},
};
use perfdata_tests::{
    convert::{Converted, Whole, convert, differences, perfconv},
    recordings::{self, Recording},
    synth::{
        self,
        feature::{self, FeatureCase},
        feature_events::Event,
        file::{self, File},
        forms, kind,
        pipe::Pipe,
        record, sink,
    },
};

fn swap(path: &Path, unknown: Unknown) -> error::Result<Converted> {
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Swap::new(Target::Other, unknown))];
    convert(path, None, stages)
}

/// The feature HOSTNAME.
const HOSTNAME: u32 = FeatureId::HOSTNAME.0;

mod twice {
    perfdata_tests::per_fixture!(super::twice_gives_it_back);
}

#[test]
fn twice_gives_back_recordings_outside() {
    recordings::check_all(&recordings::shared(), twice_gives_it_back);
}

#[test]
fn twice_gives_back_published_recordings() {
    recordings::check_all(&recordings::corpus(), |recording| {
        if recording.is_damaged() {
            // Damaged recordings are refused, or are converted back correctly.
            return if swap(&recording.path, Unknown::Error).is_err() {
                Ok(())
            } else {
                twice_gives_it_back(recording)
            };
        }
        twice_gives_it_back(recording)
    });
}

fn twice_gives_it_back(recording: &Recording) -> Result<(), String> {
    let path = recording.main_file();
    let once = match swap(&path, Unknown::Error) {
        // perf inject overwrote the section with attributes.
        Err(error)
            if error.to_string().contains("cannot be read") && is_injected_pipe(recording) =>
        {
            return Ok(());
        }
        other => other.map_err(|error| error.to_string())?,
    };
    let twice = swap(&once.path(), Unknown::Error).map_err(|error| format!("back: {error}"))?;
    let original = fs::read(&path).map_err(|error| error.to_string())?;
    if has_new_host(&path, &twice.path()) {
        return Ok(());
    }
    same(&original, &twice.bytes())
        .or_else(|difference| same_inside(original, twice.bytes()).ok_or(difference)?)
}

/// Returns whether the only difference is an empty HOSTNAME, which the other byte order needs.
fn has_new_host(before: &Path, after: &Path) -> bool {
    let found = differences(before, after);
    found.is_ok_and(|found| found == ["feature HOSTNAME: only in B: \"\""])
}

/// Returns whether perf 6.12 or 7.2 made this file from a pipe with `inject -b`.
fn is_injected_pipe(recording: &Recording) -> bool {
    recording.name.ends_with("-pipe-injected")
}

fn same(expected: &[u8], found: &[u8]) -> Result<(), String> {
    let at = (0..expected.len().max(found.len())).find(|&at| expected.get(at) != found.get(at));
    at.map_or(Ok(()), |at| {
        Err(format!(
            "byte {at} differs, of {} and {} bytes",
            expected.len(),
            found.len()
        ))
    })
}

/// Compares the contents of compressed records, because another version of zstd may produce other
/// bytes for the same records. Returns `None` if the recording is not compressed.
fn same_inside(expected: Vec<u8>, found: Vec<u8>) -> Option<Result<(), String>> {
    let [expected, found] = [expected, found].map(|bytes| Whole::read(bytes).ok());
    let (expected, found) = (expected?, found?);
    if !expected
        .records
        .iter()
        .any(|record| record.1.is_compressed())
    {
        return None;
    }
    let features = |whole: &Whole| {
        let mut features = whole.recording.features.clone();
        // The compression ratio may differ.
        features.remove(&FeatureId::COMPRESSED);
        features
    };
    if expected.recording.events[..] != found.recording.events[..]
        || features(&expected) != features(&found)
    {
        return Some(Err("the metadata differ".into()));
    }
    Some(open_all(&expected).and_then(|expected| same(&expected, &open_all(&found)?)))
}

/// Returns the record stream with compressed records replaced by their contents.
fn open_all(whole: &Whole) -> Result<Vec<u8>, String> {
    let mut decompressor =
        Decompressor::of(&whole.recording, Limits::default()).map_err(|error| error.to_string())?;
    let mut plain = Vec::new();
    for (at, &(start, kind)) in whole.records.iter().enumerate() {
        let end = whole
            .records
            .get(at + 1)
            .map_or(whole.stream.len(), |next| next.0);
        let bytes = &whole.stream[start..end];
        if !kind.is_compressed() {
            plain.extend_from_slice(bytes);
            continue;
        }
        let raw = RawRecord::first(bytes, whole.recording.endian, start as u64)
            .map_err(|error| error.to_string())?;
        decompressor.push(&raw).map_err(|error| error.to_string())?;
        while let Some(record) = decompressor.next().map_err(|error| error.to_string())? {
            plain.extend_from_slice(record.bytes);
        }
    }
    plain.extend(decompressor.take_pending());
    Ok(plain)
}

/// Swaps each of two twins, and expects the other one if `swaps` is true. Otherwise, the conversion
/// is refused, with the reason and the deciding option, or preserves unknown data.
fn check_twins(name: &str, little: &[u8], big: &[u8], swaps: bool) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("twin.data");
    for (from, to) in [(little, big), (big, little)] {
        fs::write(&path, from).expect("a temporary file");
        match swap(&path, Unknown::Error) {
            Ok(swapped) if swaps => {
                same(to, &swapped.bytes()).map_err(|message| format!("{name}: {message}"))?
            }
            Ok(_) => return Err(format!("{name}: converted, though nobody knows how")),
            Err(error) if swaps => return Err(format!("{name}: {error}")),
            Err(error) => {
                if !matches!(error.step(), Some(error::Step::Decide(_))) || !error.is_refusal() {
                    return Err(format!("{name}: {error}"));
                }
                let kept =
                    swap(&path, Unknown::Keep).map_err(|error| format!("{name}, kept: {error}"))?;
                let back = swap(&kept.path(), Unknown::Keep)
                    .map_err(|error| format!("{name}, back: {error}"))?;
                same(from, &back.bytes())
                    .map_err(|message| format!("{name}, kept twice: {message}"))?;
            }
        }
    }
    Ok(())
}

#[track_caller]
fn no_faults(faults: Vec<String>) {
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn whole_recordings_become_their_twins() {
    type Write = fn(bool) -> Vec<u8>;
    let recordings: [(&str, Write); 5] = [
        ("file", file::kitchen_sink),
        ("pipe", synth::pipe::kitchen_sink),
        ("basic file", |big| file::basic(big).bytes()),
        ("data of a directory", |big| {
            synth::dir::files(big, false).remove(0).1
        }),
        ("file, V1", |big| {
            File {
                magic: file::Magic::V1,
                ..file::basic(big)
            }
            .bytes()
        }),
    ];
    no_faults(
        recordings
            .iter()
            .filter_map(|(name, write)| check_twins(name, &write(false), &write(true), true).err())
            .collect(),
    );
}

/// The compressed records and those around them.
#[test]
fn compressed_recordings_hold_their_twins() {
    type Write = fn(bool, u32) -> Vec<u8>;
    let recordings: [(&str, Write); 2] = [
        ("file", |big, kind| sink::compressed_file(big, kind).bytes()),
        ("pipe", |big, kind| sink::compressed_pipe(big, kind).bytes),
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("compressed.data");
    for (name, write) in recordings {
        for kind in [kind::COMPRESSED, kind::COMPRESSED2] {
            for big in [false, true] {
                fs::write(&path, write(big, kind)).expect("a temporary file");
                let swapped = swap(&path, Unknown::Error)
                    .unwrap_or_else(|error| panic!("{name} of {kind}: {error}"));
                // zstd compresses the data; the writer only stores it.
                let [expected, found] = [write(!big, kind), swapped.bytes()]
                    .map(|bytes| Whole::read(bytes).expect("a recording"));
                let same =
                    open_all(&expected).and_then(|expected| same(&expected, &open_all(&found)?));
                same.unwrap_or_else(|message| panic!("{name} of {kind}: {message}"));
                assert!(
                    found.records.iter().any(|record| record.1.0 == kind),
                    "{name} of {kind} is not compressed"
                );
                assert_eq!(expected.recording.events[..], found.recording.events[..]);
            }
        }
    }
}

#[test]
fn odd_forms_become_their_twins() {
    let check = |((name, little), (_, big)): ((String, File), (String, File))| {
        // Some of its bytes have no name; a bitmap of 32-bit words becomes one of 64-bit words.
        let swaps =
            name != format!("attributes of {}", forms::FUTURE_SIZE) && name != "unknown features";
        if name == "bitmap of 32-bit words" {
            return None;
        }
        let checked = check_twins(&name, &little.bytes(), &big.bytes(), swaps);
        let has_host = little.features.iter().any(|(bit, _)| *bit == HOSTNAME);
        match checked {
            Err(_) if !has_host => twin_gets_host(&name, &little.bytes()).err(),
            checked => checked.err(),
        }
    };
    no_faults(
        forms::forms(false)
            .into_iter()
            .zip(forms::forms(true))
            .filter_map(check)
            .collect(),
    );
}

/// In files of a 32-bit big-endian machine, the bits have other positions: these are recognized,
/// but not with certainty.
#[test]
fn bitmaps_of_32_bit_words_need_a_decision() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("words.data");
    fs::write(
        &path,
        File {
            word: 4,
            ..file::basic(true)
        }
        .bytes(),
    )
    .expect("a temporary file");
    let error = swap(&path, Unknown::Error).expect_err("not without a decision");
    assert!(error.to_string().contains("bitmap"), "{error}");
    assert_eq!(error.step(), Some(&error::Step::Decide(Unknown::Keep)));
    let swapped = swap(&path, Unknown::Keep).expect("decided");
    same(&file::basic(false).bytes(), &swapped.bytes())
        .unwrap_or_else(|message| panic!("{message}"));
}

/// Checks that a file without HOSTNAME is the same after two conversions, except for an empty one.
fn twin_gets_host(name: &str, bytes: &[u8]) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("twin.data");
    fs::write(&path, bytes).expect("a temporary file");
    let swapped = |path: &Path| swap(path, Unknown::Error).map_err(|error| error.to_string());
    let twice = swapped(&swapped(&path)?.path())?;
    match has_new_host(&path, &twice.path()) {
        true => Ok(()),
        false => Err(format!("{name}: more than HOSTNAME differs")),
    }
}

/// Each record in a separate file.
#[test]
fn every_record_becomes_its_twin() {
    let holding = |case: &record::Case, big: bool| {
        let events = vec![Event {
            name: "event".into(),
            attr: case.attr.clone(),
            ids: vec![1001, 1002],
        }];
        let mut file = File::new(big, events);
        file.data = record::stream(std::slice::from_ref(case));
        let (available, online) = feature::CPUS;
        file.set_feature(7, synth::Buf::new(big).u32(available).u32(online).bytes);
        file.set_feature(HOSTNAME, synth::Buf::new(big).str("recorder").bytes);
        file.bytes()
    };
    let all = |big: bool| {
        record::cases(big)
            .into_iter()
            .chain(record::unknown_cases(big))
    };
    let check = |(little, big): (record::Case, record::Case)| {
        // A part of a stream whose rest is missing.
        if RecordType(little.kind).is_compressed() {
            return None;
        }
        // It contains no data with a byte order.
        let swaps = little.swaps || little.record.len() == 8;
        check_twins(
            &little.name,
            &holding(&little, false),
            &holding(&big, true),
            swaps,
        )
        .err()
    };
    no_faults(all(false).zip(all(true)).filter_map(check).collect());
}

/// Each feature section in a separate file, and in a pipe if perf writes it there.
#[test]
fn every_feature_becomes_its_twin() {
    let file = |case: &FeatureCase, big: bool| {
        let mut file = file::basic(big);
        file.set_feature(
            7,
            synth::Buf::new(big).u32(case.cpus.0).u32(case.cpus.1).bytes,
        );
        file.set_feature(case.bit, case.section.clone());
        file.bytes()
    };
    let pipe = |case: &FeatureCase, big: bool| {
        let pipe = Pipe::new(big, file::Magic::V2).event(&file::basic(big).events[0]);
        let pipe = if case.bit > 7 {
            pipe.feature(
                7,
                &synth::Buf::new(big).u32(case.cpus.0).u32(case.cpus.1).bytes,
            )
        } else {
            pipe
        };
        pipe.feature(case.bit, &case.section).terminator(256).bytes
    };
    let all = |big: bool| {
        feature::cases(big)
            .into_iter()
            .chain(feature::unknown_cases(big))
    };
    let mut faults = Vec::new();
    for (little, big) in all(false).zip(all(true)) {
        let name = &little.name;
        faults.extend(
            check_twins(name, &file(&little, false), &file(&big, true), little.swaps).err(),
        );
        if little.pipe && !little.section.is_empty() {
            let name = format!("{name}, pipe");
            faults.extend(
                check_twins(
                    &name,
                    &pipe(&little, false),
                    &pipe(&big, true),
                    little.swaps,
                )
                .err(),
            );
        }
    }
    no_faults(faults);
}

/// Unknown data is dropped on request, and nothing else.
#[test]
fn unknown_things_can_be_dropped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("unknown.data");
    for big in [false, true] {
        let mut with = file::basic(big);
        // A type below 64 could consist only of a trailer, and a record without a body contains no
        // unknown data.
        let mut unknown = record::unknown_cases(big);
        unknown.retain(|case| case.kind >= 64 && case.record.len() > 8);
        assert_eq!(unknown.len(), 2);
        with.data = [record::stream(&unknown), with.data].concat();
        with.set_feature(60, vec![1, 2, 3]);
        fs::write(&path, with.bytes()).expect("a temporary file");
        let dropped = swap(&path, Unknown::Drop).expect("decided");
        same(&file::basic(!big).bytes(), &dropped.bytes())
            .unwrap_or_else(|message| panic!("{message}"));
    }
}

/// RAW data without a description does not show its byte order: a note reports this. Tracing data
/// describes it.
#[test]
fn raw_data_of_unknown_order_are_noted() {
    for (name, notes) in [
        ("7.2-x86_64-pipe-bpfoutput", 1),
        ("7.2-x86_64-pipe-tp", 0),
        ("7.2-x86_64-pipe-default", 0),
    ] {
        let swapped =
            swap(&recordings::fixture(name).path, Unknown::Error).expect("it can be converted");
        assert_eq!(
            swapped.summary.notes.len(),
            notes,
            "{name}: {:?}",
            swapped.summary.notes
        );
    }
}

/// The option selects a byte order, independent of the input's.
#[test]
fn the_command_takes_an_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, output) = (folder.path().join("input"), folder.path().join("output"));
    for big in [false, true] {
        fs::write(&input, file::basic(big).bytes()).expect("a temporary file");
        let run = |arguments: &[&str]| {
            let mut command = perfconv();
            let status = command
                .arg(&input)
                .args(arguments)
                .args(["-q", "-f", "-o"])
                .arg(&output)
                .status();
            assert!(status.is_ok_and(|status| status.success()), "{arguments:?}");
            fs::read(&output).expect("an output")
        };
        let is = |big: bool, bytes: Vec<u8>| {
            same(&file::basic(big).bytes(), &bytes).unwrap_or_else(|e| panic!("{e}"))
        };
        is(!big, run(&["--swap-endian"]));
        is(false, run(&["--endian", "little"]));
        is(true, run(&["--endian", "big"]));
        is(cfg!(target_endian = "big"), run(&["--endian", "native"]));
    }
}
