//! Records in time order: complete and sorted.

use std::io::Cursor;

use perfdata_core::read::{ByTime, Decompressor, RecordingReader, StreamItem};
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Events};
use perfdata_tests::generate::{Generator, Mix};
use perfdata_tests::recordings::Recording;
use perfdata_tests::{convert, recordings};

mod every_record {
    perfdata_tests::per_fixture!(super::check);
}

/// A record's time, or 0 for a record that is not sorted, and its bytes.
type Timed = (u64, Vec<u8>);

fn timed(record: &RawRecord<'_>, events: &Events) -> Timed {
    (
        events
            .time(record)
            .filter(|&time| time != u64::MAX)
            .unwrap_or(0),
        record.bytes.to_vec(),
    )
}

/// Returns the records in input order, including those in compressed records.
fn in_order(bytes: &[u8]) -> perfdata_core::Result<Vec<Timed>> {
    let mut reader = RecordingReader::open(bytes)?;
    let mut inner = Decompressor::of(reader.recording(), reader.limits())?;
    let mut records = Vec::new();
    while let Some(item) = reader.next()? {
        let StreamItem::Record(record) = item else {
            continue;
        };
        let recording = record.recording();
        if record.kind.is_compressed() {
            inner.push(&record)?;
            while let Some(record) = inner.next()? {
                records.push(timed(&record, &recording.events));
            }
        } else {
            records.push(timed(&record, &recording.events));
        }
    }
    Ok(records)
}

fn by_time(bytes: &[u8]) -> perfdata_core::Result<Vec<Timed>> {
    let mut reader = RecordingReader::open(bytes)?.by_time();
    let mut records = Vec::new();
    // Damage or truncation of a recording is reported after its records.
    while let Ok(Some(record)) = reader.next() {
        records.push(timed(&record, &record.recording().events));
    }
    assert!(reader.next()?.is_none());
    Ok(records)
}

fn times(records: &[Timed]) -> Vec<u64> {
    records
        .iter()
        .map(|record| record.0)
        .filter(|&time| time != 0)
        .collect()
}

/// Checks that no record is lost or added, and that records are sorted if the recorder wrote
/// correct rounds.
fn check(recording: &Recording) -> Result<(), String> {
    let bytes = std::fs::read(recording.main_file()).map_err(|e| e.to_string())?;
    let (Ok(mut before), Ok(after)) = (in_order(&bytes), by_time(&bytes)) else {
        return Ok(());
    };
    let (mut all, times) = (after.clone(), times(&after));
    before.sort();
    all.sort();
    if before != all {
        return Err(format!(
            "{} records became {}, or others",
            before.len(),
            after.len()
        ));
    }
    match times.is_sorted() {
        true => Ok(()),
        false => Err("the records are not in the order of time".into()),
    }
}

/// The result is the same as a stable sort by time of all timed records at once, for every mix.
#[test]
fn rounds_are_enough() {
    for mix in Mix::ALL {
        for endian in [Endian::Little, Endian::Big] {
            let generator = Generator {
                endian,
                ..Generator::new(mix, 3_000_000)
            };
            let bytes = generator
                .file(Cursor::new(Vec::new()))
                .expect("memory takes everything")
                .into_inner();
            let (mut before, after) = (
                in_order(&bytes).expect("a recording"),
                by_time(&bytes).expect("a recording"),
            );
            assert!(!times(&before).is_sorted(), "{mix:?} is in order already");
            before.retain(|record| record.0 != 0);
            before.sort_by_key(|record| record.0);
            let after: Vec<_> = after.into_iter().filter(|record| record.0 != 0).collect();
            assert!(before == after, "{mix:?}");
        }
    }
}

/// More records than the buffer holds, without ends of rounds: no record is lost, and close records
/// are sorted.
#[test]
fn a_stream_without_rounds_is_not_kept_whole() {
    let generator = Generator::new(Mix::Tracepoints, 3 * ByTime::<RecordingReader>::MOST as u64);
    let pipe = generator.pipe(Vec::new()).expect("memory takes everything");
    let whole = convert::Whole::read(pipe.clone()).expect("a recording");
    let mut without = pipe[..pipe.len() - whole.stream.len()].to_vec();
    let ends = whole
        .records
        .iter()
        .skip(1)
        .map(|record| record.0)
        .chain([whole.stream.len()]);
    for (&(start, kind), end) in whole.records.iter().zip(ends) {
        if kind != RecordType::FINISHED_ROUND {
            without.extend_from_slice(&whole.stream[start..end]);
        }
    }
    let (mut before, after) = (
        in_order(&without).expect("a recording"),
        by_time(&without).expect("a recording"),
    );
    assert_eq!(before.len(), after.len());
    assert!(times(&after).is_sorted());
    before.retain(|record| record.0 != 0);
    before.sort_by_key(|record| record.0);
    assert!(
        before
            .iter()
            .eq(after.iter().filter(|record| record.0 != 0))
    );
}

/// Missing data at the end of a recording is an error after the last record, reported once.
#[test]
fn a_cut_recording_is_told_at_its_end() {
    for name in [
        "6.1-x86_64-file-default",
        "6.1-x86_64-pipe-default",
        "6.1-x86_64-pipe-z",
    ] {
        let bytes = std::fs::read(recordings::fixture(name).main_file()).expect("a fixture");
        let whole = convert::Whole::read(bytes.clone()).expect("a recording");
        let (last, _) = whole.records[whole.records.len() - 1];
        let first = bytes.len() - whole.stream.len();
        // In a file, feature sections follow the records: a truncated record would include them.
        let cut = match name.contains("pipe") {
            true => bytes[..first + last + 5].to_vec(),
            false => {
                let start = usize::try_from(u64::from_le_bytes(
                    bytes[40..48].try_into().expect("a word"),
                ))
                .expect("it");
                let size = u64::try_from(last + 5).expect("a size").to_le_bytes();
                [&bytes[..48], &size, &bytes[56..start], &bytes[start..]].concat()
            }
        };
        let mut reader = RecordingReader::open(cut).expect("a recording").by_time();
        let mut count = 0;
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => count += 1,
                Ok(None) => panic!("{name}: the cut is not told"),
                Err(error) => break error,
            }
        };
        assert!(
            count > 0 && error.to_string().contains("bytes needed"),
            "{name}: {error}"
        );
        assert!(reader.next().expect("it is told once").is_none(), "{name}");
    }
}

#[test]
fn recordings_elsewhere() {
    recordings::check_all(&recordings::shared(), check);
}

/// A file is read block by block.
#[test]
fn from_a_file() {
    let path = recordings::fixture("6.1-x86_64-file-default").main_file();
    let mut reader = perfdata_core::open(path).expect("a recording").by_time();
    let mut count = 0;
    while reader.next().expect("records").is_some() {
        count += 1;
    }
    assert!(count > 100);
}
