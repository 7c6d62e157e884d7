//! Intact recordings stay as they are, and records are found without the header.

use std::fs;

use perfdata_convert::io::Input;
use perfdata_convert::recover::Recovery;
use perfdata_convert::verify::Report;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::record::RecordType;
use perfdata_tests::convert::open;
use perfdata_tests::perf::Question;
use perfdata_tests::recordings::{self, Container, Recording, fixture};
use perfdata_tests::{is_thorough, judge, skipped};

use super::{Bench, contents, items};

/// An intact recording is copied byte for byte, and nothing is reported.
fn stays_identical(recording: &Recording) -> Result<(), String> {
    if recording.path.is_dir() || recording.form.is_none() {
        return Ok(());
    }
    let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
    let bench = Bench::new();
    if !Input::open(&recording.path)
        .and_then(Report::of)
        .is_ok_and(|report| report.is_clean())
    {
        bench
            .recover(&whole, true)
            .map_err(|error| error.to_string())?;
        return bench.check_clean();
    }
    let Recovery {
        skipped, losses, ..
    } = bench
        .recover(&whole, true)
        .map_err(|error| error.to_string())?;
    if bench.recovered() != whole {
        return Err(format!("it changed: {skipped:?} {losses:?}"));
    }
    if !skipped.is_empty() || !losses.is_empty() {
        return Err(format!("something is said of it: {skipped:?} {losses:?}"));
    }
    Ok(())
}

/// Returns whether the recording lacked sections that recovery adds.
fn has_gained(recovery: &Recovery) -> bool {
    let mut notes = recovery.summary.notes.iter();
    notes.any(|note| note.starts_with("added "))
}

/// With a `data.size` of 0, or a `data.offset` outside of the file, and a feature table after the
/// records, everything is recovered.
fn finds_the_records_again(recording: &Recording) -> Result<(), String> {
    if recording.path.is_dir()
        || recording
            .form
            .is_none_or(|form| form.container != Container::File)
    {
        return Ok(());
    }
    let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
    let is_sound = Input::open(&recording.path)
        .and_then(Report::of)
        .is_ok_and(|report| report.is_clean());
    for (field, byte) in [(48..56, 0), (40..48, 0x11)] {
        let mut damaged = whole.clone();
        damaged[field].fill(byte);
        let bench = Bench::new();
        let recovery = bench
            .recover(&damaged, true)
            .map_err(|error| error.to_string())?;
        if !is_sound {
            bench.check_clean()?;
        } else if bench.recovered() != whole && !has_gained(&recovery) {
            return Err(format!(
                "with {byte}, it is another file: {:?} {:?}",
                recovery.skipped, recovery.losses
            ));
        }
    }
    Ok(())
}

#[test]
fn other_recordings() {
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
        return;
    }
    recordings::check_all(&recordings::shared(), stays_identical);
    recordings::check_all(&recordings::shared(), finds_the_records_again);
    let sound = |recording: &&Recording| {
        Input::open(&recording.path)
            .and_then(Report::of)
            .is_ok_and(|r| r.is_clean())
    };
    let corpus: Vec<Recording> = recordings::corpus().iter().filter(sound).cloned().collect();
    recordings::check_all(&corpus, stays_identical);
}

#[test]
fn killed_recordings_give_their_samples_back() {
    let mut killed = recordings::fixtures();
    killed.extend(recordings::shared());
    killed.retain(|recording| recording.name.contains("-file-crashed"));
    assert!(!killed.is_empty());
    recordings::check_all(&killed, |recording| {
        let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
        let bench = Bench::new();
        let recovery = bench
            .recover(&whole, true)
            .map_err(|error| error.to_string())?;
        bench.check_clean()?;
        let (was, is) = (items(&whole), items(&bench.recovered()));
        if contents(&was) != contents(&is) {
            return Err(format!("{} records are left of {}", is.len(), was.len()));
        }
        let says = |what: &str| recovery.losses.iter().any(|line| line.contains(what));
        if !says("the recording is unfinished") || !says("names of events") {
            return Err(format!("not said: {:?}", recovery.losses));
        }
        if recording.name.ends_with("-tp") {
            return if says("tracing data") {
                Ok(())
            } else {
                Err("the tracing data is not missed".into())
            };
        }
        let samples = is.iter().filter(|item| {
            let header = item.bytes.first_chunk::<4>().expect("a record");
            [u32::from_le_bytes(*header), u32::from_be_bytes(*header)]
                .contains(&RecordType::SAMPLE.0)
        });
        let Some(perf) = judge::native(recording) else {
            skipped::note("a perf of the recorder's release and byte order");
            return Ok(());
        };
        let script = perf
            .ask(Question::Script, &bench.output())
            .map_err(|error| error.to_string())?;
        let shown = script
            .stdout
            .lines()
            .filter(|line| line.contains("cpu-clock"))
            .count();
        if !script.success() || shown != samples.count() {
            return Err(format!("{perf} shows {shown} samples: {}", script.stderr));
        }
        Ok(())
    });
}

/// A file whose IDs and attributes follow the records, with a size of the records that includes
/// them, or exceeds the file.
#[test]
fn records_in_front_of_their_attributes_are_told_apart() {
    let bench = Bench::new();
    for name in [
        "6.12-x86_64-pipe-injected",
        "7.2-x86_64-pipe-injected",
        "6.1-s390x-pipe-injected",
    ] {
        let whole = fs::read(fixture(name).path).expect("a fixture");
        let attrs_are_last = match open(whole.clone()).expect("a recording").container_layout() {
            ContainerLayout::File(file) => file.header.attrs.offset > file.header.data.offset,
            ContainerLayout::Pipe(_) => false,
        };
        if !attrs_are_last {
            continue;
        }
        let is_big = name.contains("s390x");
        let word = |at: usize| {
            let bytes = whole[at..at + 8].try_into().expect("eight bytes");
            if is_big {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            }
        };
        let records = contents(&items(&whole)).len();
        for size in [
            50_000,
            word(48) + 16,
            word(48) + 40,
            word(48) + 200,
            whole.len() as u64 - word(40),
            0,
            u64::MAX,
        ] {
            let mut bytes = whole.clone();
            bytes[48..56].copy_from_slice(&if is_big {
                size.to_be_bytes()
            } else {
                size.to_le_bytes()
            });
            let recovery = bench
                .recover(&bytes, false)
                .unwrap_or_else(|error| panic!("{name}, {size}: {error}"));
            bench
                .check_clean()
                .unwrap_or_else(|report| panic!("{name}, {size}: {report}"));
            assert_eq!(
                contents(&items(&bench.recovered())).len(),
                records,
                "{name}, {size}"
            );
            assert!(
                !recovery.losses.is_empty(),
                "{name}, {size}: nothing is said"
            );
        }
    }
}

mod identity {
    perfdata_tests::per_fixture!(super::stays_identical);
}

mod records_lost {
    perfdata_tests::per_fixture!(super::finds_the_records_again);
}
