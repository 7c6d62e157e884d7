//! What is read at a known place is what decoding gives: for every choice of the parts of one word,
//! alone and before every other part.

use perfdata_core::attr::{Attr, AttrFlags, SampleType};
use perfdata_core::record::{Body, RawRecord, Record, RecordHeader, RecordType, SampleId};
use perfdata_core::wire::{Wire, encode_words};
use perfdata_core::{DecodeContext, Endian, Event, Events};

/// The parts of a SAMPLE that are one word, in no special order.
const WORDS: [SampleType; 9] = [
    SampleType::IP,
    SampleType::TID,
    SampleType::TIME,
    SampleType::ADDR,
    SampleType::ID,
    SampleType::CPU,
    SampleType::PERIOD,
    SampleType::STREAM_ID,
    SampleType::IDENTIFIER,
];

/// Every choice of words, alone and with every other part.
fn choices() -> impl Iterator<Item = SampleType> {
    let is_word = |bit: &u64| WORDS.iter().any(|word| word.0 == *bit);
    let others = SampleType::FIELDS
        .iter()
        .map(|field| 1 << field.bit)
        .filter(move |bit| !is_word(bit));
    let others: Vec<u64> = [0].into_iter().chain(others).collect();
    assert_eq!(WORDS.len() + others.len(), SampleType::FIELDS.len() + 1);
    (0..1_u32 << WORDS.len()).flat_map(move |choice| {
        let chosen = WORDS
            .iter()
            .enumerate()
            .filter(|(at, _)| choice >> at & 1 == 1);
        let words = chosen.fold(0, |all, (_, word)| all | word.0);
        others
            .clone()
            .into_iter()
            .map(move |other| SampleType(words | other))
    })
}

/// The one event of a recording.
fn events(sample_type: SampleType) -> Events {
    let flags = AttrFlags::default().with_sample_id_all(true);
    let attr = Attr {
        sample_type,
        flags,
        ..Attr::default()
    };
    [Event { attr, ids: vec![] }].into_iter().collect()
}

/// A record with words that all differ, each half of them, too.
fn record(kind: RecordType, words: usize, zeros: usize, endian: Endian) -> Vec<u8> {
    let size = u16::try_from(RecordHeader::SIZE + 8 * words + zeros).expect("a short record");
    let mut bytes = RecordHeader {
        kind,
        misc: 0,
        size,
    }
    .encode(endian)
    .expect("a header");
    let words: Vec<u64> = (1..=words as u64)
        .map(|number| number * 0x0101_0202_0303_0404)
        .collect();
    bytes.extend(encode_words(&words, endian));
    bytes.resize(usize::from(size), 0);
    bytes
}

fn decode(raw: &RawRecord<'_>, events: &Events) -> Record {
    Record::decode(raw, &DecodeContext::of_attr(&events[0].attr)).expect("all parts are there")
}

#[test]
fn samples() {
    for sample_type in choices() {
        let events = events(sample_type);
        for endian in [Endian::Little, Endian::Big] {
            let words = WORDS.iter().filter(|&&word| sample_type.has(word)).count();
            // Zeros are counts of 0, and whatever else a part of another kind has.
            let bytes = record(RecordType::SAMPLE, words, 64, endian);
            let raw = RawRecord::first(&bytes, endian, 0).expect("a record");
            let Body::Sample(sample) = decode(&raw, &events).body else {
                panic!("a SAMPLE")
            };
            let view = events.sample_view(&raw).expect("there is one event");
            let name: Vec<_> = sample_type.names().collect();
            assert_eq!(
                events.id_of(&raw),
                sample.identifier.or(sample.id),
                "{name:?}"
            );
            assert_eq!(
                (events.time(&raw), events.sample_time(&raw)),
                (sample.time, sample.time),
                "{name:?}"
            );
            let seen = [
                view.identifier(),
                view.ip(),
                view.time(),
                view.addr(),
                view.id(),
                view.stream_id(),
            ];
            let decoded = [
                sample.identifier,
                sample.ip,
                sample.time,
                sample.addr,
                sample.id,
                sample.stream_id,
            ];
            assert_eq!((seen, view.period()), (decoded, sample.period), "{name:?}");
            assert_eq!(view.tid(), sample.tid, "{name:?}");
            assert_eq!(view.cpu(), sample.cpu.map(|cpu| cpu.cpu), "{name:?}");
        }
    }
}

#[test]
fn trailers() {
    for sample_type in choices() {
        let events = events(sample_type);
        for endian in [Endian::Little, Endian::Big] {
            let trailer = SampleId::len(sample_type) / 8;
            let bytes = record(RecordType::LOST, 2 + trailer, 0, endian);
            let raw = RawRecord::first(&bytes, endian, 0).expect("a record");
            let sample_id = decode(&raw, &events).sample_id;
            let parts = sample_id.as_ref();
            let name: Vec<_> = sample_type.names().collect();
            assert_eq!(
                events.id_of(&raw),
                parts.and_then(|parts| parts.identifier.or(parts.id)),
                "{name:?}"
            );
            assert_eq!(
                events.time(&raw),
                parts.and_then(|parts| parts.time),
                "{name:?}"
            );
            let len = parts.map_or(0, |parts| parts.encode(endian).expect("words").len());
            assert_eq!(len, SampleId::len(sample_type), "{name:?}");
        }
    }
}

#[test]
fn headers() {
    let mut number = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1000 {
        number = number.wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(17);
        let bytes = number.to_le_bytes();
        for endian in [Endian::Little, Endian::Big] {
            let (declared, _) =
                RecordHeader::decode(&bytes, endian, DecodeContext::default()).expect("8 bytes");
            assert_eq!(RecordHeader::parse(&bytes, endian), Some(declared));
        }
    }
}
