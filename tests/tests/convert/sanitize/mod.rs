//! What a sanitized recording no longer contains, and what stays in it.

mod check;
mod conversions;
mod keep;
mod later_stages;
mod lengths;
mod orders;
mod pseudonyms;
mod samples;
mod secrets;
mod sink;

use std::collections::BTreeSet;

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample};
use perfdata_sanitize::{Audience, Key, Policy, Sanitize};
use perfdata_tests::convert::{Whole, into_memory};
use perfdata_tests::recordings;

const AUDIENCES: [Audience; 2] = [Audience::Public, Audience::Vendor];

fn key() -> Key {
    Key::of_secret(b"the secret of these tests").expect("long enough")
}

fn stages(policy: Policy) -> Vec<Box<dyn Stage>> {
    vec![Box::new(Sanitize::new(policy, key()))]
}

fn sanitized(input: Vec<u8>, policy: Policy) -> Vec<u8> {
    let input = Input::from_source(input);
    into_memory(input, None, stages(policy)).expect("it can be sanitized")
}

/// Returns the recording without compression.
fn plain(recording: Vec<u8>) -> Vec<u8> {
    let stages: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
    into_memory(Input::from_source(recording), None, stages).expect("it can be decompressed")
}

fn records(whole: &Whole) -> Vec<Record> {
    let decode = |(at, _): &(usize, RecordType)| {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record")
    };
    whole.records.iter().map(decode).collect()
}

fn samples(records: &[Record]) -> Vec<&Sample> {
    let sample = |record: &'_ Record| matches!(record.body, Body::Sample(_));
    let all = records.iter().filter(|record| sample(record));
    all.map(|record| match &record.body {
        Body::Sample(sample) => sample,
        _ => unreachable!("only samples were selected"),
    })
    .collect()
}

/// Returns the printable texts of at least `least` bytes.
fn texts(bytes: &[u8], least: usize) -> BTreeSet<String> {
    bytes
        .split(|byte| !(b' '..=b'~').contains(byte))
        .filter(|text| text.len() >= least)
        // The size of a text may be a letter.
        .map(|text| {
            String::from_utf8_lossy(text)
                .trim_start_matches(['@', '"', '('])
                .to_owned()
        })
        .collect()
}

fn fs_bytes(name: &str) -> Vec<u8> {
    std::fs::read(recordings::fixture(name).path).expect("a fixture")
}
