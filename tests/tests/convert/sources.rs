//! Inputs and outputs that are not files: memory, and any reader and writer.

use std::fs;
use std::io::Cursor;

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_core::read::{Chunk, Foreknown, Options, RecordSource, RecordingReader};
use perfdata_tests::convert::{Whole, convert, into_memory};
use perfdata_tests::recordings::fixture;

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
            let converted =
                |input| into_memory(input, to, swap()).map_err(|error| error.to_string());
            let open = RecordingReader::open_path(&path, Options::default()).expect("a recording");
            assert_eq!(converted(memory()), Ok(expected.clone()), "{name}, memory");
            assert_eq!(
                converted(stream()),
                Ok(expected.clone()),
                "{name}, a reader"
            );
            // An open recording does not contain the bytes between the parts of a file.
            if open.container_layout().container() == ContainerKind::Pipe {
                assert_eq!(
                    converted(Input::from_records(open)),
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
