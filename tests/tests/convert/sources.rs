//! Inputs and outputs that are not files: memory, any reader and writer, and several recordings at
//! once.

use std::fs;
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use perfdata_convert::inspect::verify::{Report, Severity};
use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::{Conversion, Stage};
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::attr::Attr;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Foreknown, Options, Order, RecordSource, RecordingReader};
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::recordings::{Recording, fixture, fixtures, in_parallel};
use perfdata_tests::synth;

/// A writer into memory that the test can read afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread failed").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts into memory.
fn into_memory(
    input: Input,
    to: Option<ContainerKind>,
    stages: Vec<Box<dyn Stage>>,
) -> Result<Vec<u8>, String> {
    let written = Shared::default();
    Conversion::new(stages)
        .to(to)
        .run_on(input, Output::to_writer(written.clone()))
        .map_err(|error| error.to_string())?;
    Ok(std::mem::take(
        &mut *written.0.lock().expect("no thread failed"),
    ))
}

fn swap() -> Vec<Box<dyn Stage>> {
    vec![Box::new(Swap::new(Target::Other, Unknown::Keep))]
}

/// The output depends neither on the kind of the input nor on the kind of the output.
#[test]
fn memory_readers_and_files_give_the_same() {
    for name in [
        "6.1-x86_64-file-default",
        "6.1-x86_64-pipe-z",
        "6.12-s390x-file-tp-g",
        "7.2-x86_64-file-defer",
    ] {
        let path = fixture(name).path;
        let bytes = fs::read(&path).expect("a fixture");
        for to in [None, Some(ContainerKind::File), Some(ContainerKind::Pipe)] {
            let expected = convert(&path, to, swap()).expect("it converts").bytes();
            let memory = || Input::from_source(bytes.clone());
            let stream = || Input::from_reader(Cursor::new(bytes.clone())).expect("a recording");
            let open = RecordingReader::open_path(&path, Options::default()).expect("a recording");
            assert_eq!(
                into_memory(memory(), to, swap()),
                Ok(expected.clone()),
                "{name}, memory"
            );
            assert_eq!(
                into_memory(stream(), to, swap()),
                Ok(expected.clone()),
                "{name}, a reader"
            );
            // An open recording does not contain the bytes between the parts of a file.
            if open.container_layout().container() == ContainerKind::Pipe {
                assert_eq!(
                    into_memory(Input::from_records(open), to, swap()),
                    Ok(expected),
                    "{name}, open"
                );
            }
        }
    }
    let error = Input::from_reader(&b"not a recording"[..])
        .map(drop)
        .expect_err("it is none");
    assert!(error.is_refusal(), "{error}");
}

/// Returns the attribute of each sample, including compressed samples.
fn samples(bytes: Vec<u8>) -> Result<Vec<Attr>, String> {
    let plain = into_memory(
        Input::from_source(bytes),
        None,
        vec![Box::new(Decompress::default())],
    )?;
    let whole = Whole::read(plain).map_err(|error| error.to_string())?;
    if whole.records_end < whole.stream.len() {
        return Err("it is truncated".into());
    }
    let events = &whole.recording.events;
    let mut attrs = Vec::new();
    for &(at, kind) in &whole.records {
        assert!(!kind.is_compressed());
        if kind == RecordType::SAMPLE {
            let raw = RawRecord::first(&whole.stream[at..], whole.recording.endian, 0)
                .map_err(|error| error.to_string())?;
            let event = events.of_record(&raw).ok_or("a sample of no event")?;
            attrs.push(events[event].attr.clone());
        }
    }
    Ok(attrs)
}

fn merged(a: &Path, b: &Path, order: Order) -> Result<Vec<u8>, String> {
    let open = |path: &Path| Input::open(path).map_err(|error| error.to_string());
    into_memory(
        Input::several(vec![open(a)?, open(b)?], order),
        Some(ContainerKind::File),
        Vec::new(),
    )
}

/// Pairs of adjacent fixtures: their events differ or are equal, their IDs collide or do not.
#[test]
fn merged_recordings_keep_every_sample_with_its_event() {
    let all = fixtures();
    let mut pairs: Vec<(&Recording, &Recording)> =
        all.windows(2).map(|pair| (&pair[0], &pair[1])).collect();
    pairs.extend(all.iter().map(|recording| (recording, recording)));
    pairs.retain(|(a, b)| {
        [a, b]
            .iter()
            .all(|recording| recording.path.is_file() && !recording.is_damaged())
    });
    let (done, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let faults = Mutex::new(Vec::new());
    in_parallel(&pairs, |(a, b)| {
        let expected =
            [a, b].map(|recording| samples(fs::read(&recording.path).expect("a fixture")));
        let [Ok(first), Ok(second)] = expected else {
            return;
        };
        let mut expected = first;
        expected.extend(second);
        let check = || -> Result<bool, String> {
            let bytes = match merged(&a.path, &b.path, Order::Input) {
                Err(why) if why.starts_with("recording") => return Ok(false),
                bytes => bytes?,
            };
            let report =
                Report::of(Input::from_source(bytes.clone())).map_err(|error| error.to_string())?;
            let error = report
                .findings
                .iter()
                .find(|finding| finding.severity == Severity::Error);
            if let Some(error) = error {
                return Err(format!("at {:#x}: {}", error.offset, error.meaning));
            }
            if samples(bytes)? != expected {
                return Err("other samples, or of other events".into());
            }
            let mut by_time = samples(merged(&a.path, &b.path, Order::Time)?)?;
            for attr in &expected {
                let at = by_time
                    .iter()
                    .position(|other| other == attr)
                    .ok_or("by time a sample is missing")?;
                by_time.swap_remove(at);
            }
            if by_time.is_empty() {
                Ok(true)
            } else {
                Err("by time there are more samples".into())
            }
        };
        match check() {
            Ok(true) => done.fetch_add(1, Ordering::Relaxed),
            Ok(false) => refused.fetch_add(1, Ordering::Relaxed),
            Err(why) => {
                faults
                    .lock()
                    .expect("no thread failed")
                    .push(format!("{} and {}: {why}", a.name, b.name));
                0
            }
        };
    });
    let (done, refused) = (done.into_inner(), refused.into_inner());
    let faults = faults.into_inner().expect("no thread failed");
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(
        done > 100 && refused > 0,
        "{done} merged, {refused} refused"
    );
}

/// Different events have the same IDs, as after a restart of the machine. Samples of groups contain
/// the IDs of all events.
#[test]
fn ids_that_collide_are_replaced_everywhere() {
    let bytes = fs::read(fixture("6.1-x86_64-file-group-S").path).expect("a fixture");
    let whole = Whole::read(bytes.clone()).expect("a recording");
    let count = whole.recording.events.len();
    // The sampling period of the first event: the third word of its attribute.
    let mut other = bytes.clone();
    let attrs = u64::from_le_bytes(bytes[24..32].try_into().expect("8 bytes")) as usize;
    other[attrs + 16] ^= 1;
    let inputs = vec![Input::from_source(bytes), Input::from_source(other)];
    let both = into_memory(Input::several(inputs, Order::Input), None, Vec::new())
        .expect("they can be merged");
    let both = Whole::read(both).expect("a recording");
    let events = &both.recording.events;
    assert_eq!(events.len(), count + 1);
    assert_eq!(events[..count], whole.recording.events[..]);
    assert_eq!(events[count].ids.len(), events[0].ids.len());
    assert!(
        events[count]
            .ids
            .iter()
            .all(|&id| whole.recording.events.of_id_strict(id).is_none())
    );
    let records = |whole: &Whole| -> Vec<(usize, Record)> {
        let samples = whole
            .records
            .iter()
            .filter(|(_, kind)| *kind == RecordType::SAMPLE);
        let decode = |&(at, _): &(usize, RecordType)| {
            let raw =
                RawRecord::first(&whole.stream[at..], whole.recording.endian, 0).expect("a record");
            let event = whole.recording.events.of_record(&raw).expect("its event");
            (
                event,
                Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a sample"),
            )
        };
        samples.map(decode).collect()
    };
    let (before, after) = (records(&whole), records(&both));
    assert_eq!(after.len(), 2 * before.len());
    assert_eq!(after[..before.len()], before[..]);
    for ((was, before), (is, after)) in before.iter().zip(&after[before.len()..]) {
        assert_eq!(*is, if *was == 0 { count } else { *was });
        // The second event keeps its ID, the first receives a new one; every sample contains both.
        let ids = after.event_ids(events);
        assert!(ids.known && ids.unknown.is_none());
        assert_ne!(before, after);
    }
}

/// AUX data stay with their records.
#[test]
fn payloads_are_merged_with_their_records() {
    let pipe = synth::pipe::with_aux(false);
    let one = Whole::read(pipe.clone()).expect("a recording");
    let inputs = vec![Input::from_source(pipe.clone()), Input::from_source(pipe)];
    let both = into_memory(Input::several(inputs, Order::Input), None, Vec::new())
        .expect("they can be merged");
    let both = Whole::read(both).expect("a recording");
    assert!(
        one.records
            .iter()
            .any(|(_, kind)| *kind == RecordType::AUXTRACE)
    );
    // Records with the data after them.
    let aux = |whole: &Whole| -> Vec<u8> {
        let ends = whole
            .records
            .iter()
            .skip(1)
            .map(|next| next.0)
            .chain([whole.records_end]);
        let all = whole
            .records
            .iter()
            .zip(ends)
            .filter(|((_, kind), _)| *kind == RecordType::AUXTRACE);
        all.flat_map(|(&(start, _), end)| whole.stream[start..end].to_vec())
            .collect()
    };
    assert_eq!(aux(&both), aux(&one).repeat(2));
}

/// A corrupt recording is read in the same way when it is opened again.
#[test]
fn a_salvaged_input_is_salvaged_again() {
    let mut bytes = fs::read(fixture("6.1-x86_64-file-default").path).expect("a fixture");
    let whole = Whole::read(bytes.clone()).expect("a recording");
    let data = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
    // The size of the second record.
    let second = data + whole.records[1].0;
    bytes[second + 6] = 3;
    bytes[second + 7] = 0;
    let input = Input::from_source(bytes);
    let surveys = input.survey().expect("it can be surveyed");
    let foreknown: Vec<Foreknown> = surveys.iter().map(|(_, survey)| survey.foreknown).collect();
    let (mut first, source) = input
        .salvaged(foreknown)
        .expect("it is a file")
        .reader()
        .expect("a recording");
    let mut second = source
        .reopen()
        .expect("it can be opened")
        .expect("it can be read twice");
    let count = |reader: &mut dyn RecordSource| {
        let mut records = 0;
        while let Some((chunk, _)) = reader.next_chunk().expect("it can be read") {
            match chunk {
                Chunk::Records(batch) => records += batch.iter().count(),
                other => assert!(!matches!(other, Chunk::Unreadable(_))),
            }
        }
        records
    };
    let records = count(&mut first);
    assert_eq!(records, whole.records.len() - 1);
    assert_eq!(count(&mut second), records);
}
