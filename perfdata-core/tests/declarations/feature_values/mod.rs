//! For each feature its value and its bytes in both byte orders. Unless stated otherwise, the bytes
//! of one byte order are those of a real recording, shortened where a list would be long.

use perfdata_core::attr::Attr;
use perfdata_core::describe::{Describe, Style, WireSize};
use perfdata_core::feature::*;
use perfdata_core::record::{Body, BuildId};
use perfdata_core::wire::{HeaderString, Text};
use perfdata_core::{DecodeContext, Endian};

use bpf::bpf;
use events::{build_ids, cpu_clock, events, tracing_data};
use machine::{clocks, pmus, system, topologies};

mod bpf;
mod events;
mod machine;

/// A value and its bytes.
pub struct Case {
    pub id: FeatureId,
    pub value: Feature,
    little: Vec<u8>,
    big: Vec<u8>,
}

/// Returns the bytes of a notation: hexadecimal digits, `'text'`, and `00*9` for nine times the
/// byte.
fn bytes(notation: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, part) in notation.split('\'').enumerate() {
        if i % 2 == 1 {
            out.extend(part.bytes());
            continue;
        }
        for word in part.split_whitespace() {
            let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
            let once: Vec<u8> = (0..digits.len())
                .step_by(2)
                .map(|at| {
                    u8::from_str_radix(&digits[at..at + 2], 16).expect("two hexadecimal digits")
                })
                .collect();
            out.extend(once.repeat(times.parse().expect("a number")));
        }
    }
    out
}

fn case(id: FeatureId, value: Feature, little: &str, big: &str) -> Case {
    Case {
        id,
        value,
        little: bytes(little),
        big: bytes(big),
    }
}

/// Returns a string padded only to a multiple of 4 bytes, including its NUL.
fn tight(text: &str) -> HeaderString {
    HeaderString(Text::padded(text.as_bytes(), 4).0)
}

/// The machine of the cases has two CPUs.
pub fn layout() -> DecodeContext {
    DecodeContext::default().with_nr_cpus_available(2)
}

pub fn cases() -> Vec<Case> {
    [
        system(),
        clocks(),
        pmus(),
        topologies(),
        events(),
        build_ids(),
        bpf(),
        tracing_data(),
        vec![
            case(FeatureId::CPUDESC, Feature::Empty, "", ""),
            case(
                FeatureId(200),
                Feature::Unknown(vec![1, 2, 3]),
                "010203",
                "010203",
            ),
        ],
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_value_has_its_bytes() {
    for Case {
        id,
        value,
        little,
        big,
    } in cases()
    {
        for (bytes, endian) in [(little, Endian::Little), (big, Endian::Big)] {
            let section = Section {
                id,
                value: value.clone(),
                tail: vec![],
            };
            assert_eq!(section.encode(endian).unwrap(), bytes, "{id}, {endian:?}");
            assert_eq!(
                Section::decode(id, &bytes, endian, &layout()).unwrap(),
                section,
                "{id}, {endian:?}"
            );
            let mut size = WireSize::default();
            section.describe("", Style::Plain, &mut size);
            assert_eq!(size.0, bytes.len(), "{id}: all bytes are described");
        }
    }
}

#[test]
fn every_line_of_the_table_has_a_case() {
    let cases = cases();
    let missing: Vec<_> = TABLE
        .iter()
        .filter(|info| cases.iter().all(|case| case.id != info.id))
        .collect();
    assert_eq!(missing, Vec::<&FeatureInfo>::new());
}

#[test]
fn the_table_ascends_without_gaps() {
    let ids: Vec<u32> = TABLE.iter().map(|info| info.id.0).collect();
    assert_eq!(ids, (1..FeatureId::END.0).collect::<Vec<_>>());
    for info in TABLE {
        assert_eq!(info.id.info(), Some(info));
        assert_eq!(info.id.name(), Some(info.name));
        assert_eq!(FeatureId::by_name(&info.name.to_lowercase()), Some(info.id));
    }
    assert_eq!(
        (FeatureId::END.info(), FeatureId::by_name("HOST")),
        (None, None)
    );
}

#[test]
fn padding_is_told_from_content() {
    for Case {
        id,
        value,
        mut little,
        ..
    } in cases()
        .into_iter()
        .filter(|case| case.value != Feature::Empty)
    {
        let len = little.len();
        let known = !matches!(value, Feature::Unknown(_));
        let own = (known && id != FeatureId::BUILD_ID).then_some(len);
        let exact_len = |bytes: &[u8]| id.exact_len(bytes, Endian::Little, &layout());
        assert_eq!(exact_len(&little), own, "{id}");
        little.resize(len + 4, 0);
        assert_eq!(exact_len(&little), own, "{id} with 4 zeros");
        let padded = Section::decode(id, &little, Endian::Little, &layout()).unwrap();
        assert_eq!(
            padded.value == value && padded.tail == [0; 4],
            known,
            "{id} with 4 zeros"
        );
        little[len] = 1;
        assert_eq!(exact_len(&little), None, "{id} with more than padding");
    }
}

#[test]
fn tracing_data_tells_its_length() {
    for Case { little, .. } in tracing_data() {
        let mut bytes = little.clone();
        bytes.extend(b"whatever comes next");
        assert_eq!(tracing::len(&bytes).unwrap(), little.len());
        for cut in 0..little.len() {
            assert!(
                tracing::len(&little[..cut]).is_err(),
                "cut after {cut} bytes"
            );
        }
    }
}

#[test]
fn an_error_names_place_and_field() {
    let error = |id, notation: &str| {
        Section::decode(id, &bytes(notation), Endian::Little, &layout())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(FeatureId::HOSTNAME, "40000000 'short' 00*3"),
        "at offset 0x4: HOSTNAME: 64 bytes needed, 8 available"
    );
    assert_eq!(
        error(
            FeatureId::PMU_MAPPINGS,
            "01000000 01000000 40000000 'software'"
        ),
        "at offset 0xc: PMU_MAPPINGS, field name: 64 bytes needed, 8 available"
    );
    // A size of 40 is too small for the fixed part of an attribute; the first attribute starts at
    // offset 8.
    assert_eq!(
        error(
            FeatureId::EVENT_DESC,
            "01000000 28000000 01000000 28000000 00*64"
        ),
        "at offset 0x30: EVENT_DESC, field flags: 41 bytes needed, 40 available"
    );
    assert_eq!(
        error(FeatureId::TRACING_DATA, "170844 'tracked0.6' 00 00*20"),
        "at offset 0x0: TRACING_DATA, field magic: found `\\x17\\x08Dtracked`, expected `\\x17\\x08Dtracing`"
    );
    assert_eq!(
        error(
            FeatureId::TRACING_DATA,
            "170844 'tracing0.6' 00 02 08 00*20"
        ),
        "at offset 0xe: TRACING_DATA: found byte order 2, expected 0 or 1"
    );
}

#[test]
fn events_of_one_section_have_attributes_of_one_size() {
    let longer = Attr {
        size: 144,
        config4: Some(0),
        ..cpu_clock()
    };
    let event = |attr| (attr, HeaderString::new(b"cycles"), vec![]);
    assert_eq!(
        EventDescs::new(vec![event(cpu_clock()), event(longer)]),
        None
    );
    assert_eq!(
        EventDescs::new(vec![]).map(|descs| (descs.nr, descs.attr_size)),
        Some((0, 0))
    );
}

#[test]
fn a_build_id_entry_takes_its_size_from_the_name() {
    let build_id = |filename: &[u8]| BuildId {
        pid: Some(-1),
        build_id: [7; 20],
        size: 20,
        reserved_1: 0,
        reserved_2: 0,
        filename: Text(filename.to_vec()),
    };
    let size =
        |filename: &[u8]| BuildIdEntry::new(0, build_id(filename)).map(|entry| entry.header.size);
    assert_eq!(size(b"/bin/ls"), Some(44));
    assert_eq!(size(b"/bin/ls\0stale bytes"), Some(44));
    assert_eq!(size(b"/bin/cat"), Some(52));
    assert_eq!(size(&[b'x'; 70_000]), None);

    // In a record the name has 4 more bytes, so that the size is a multiple of 8; the converted
    // entry has its own size again.
    for name in [
        &b"/bin/ls"[..],
        b"/bin/cat",
        b"/lib/x86_64-linux-gnu/libc.so.6",
    ] {
        let entry = BuildIdEntry::new(0, build_id(name)).expect("a short name");
        let record = entry.to_record();
        let bytes = record.encode(Endian::Little).expect("a short name");
        assert_eq!(bytes.len(), usize::from(entry.header.size) + 4);
        let Body::HeaderBuildId(found) = record.body else {
            panic!("another record: {:?}", record.body)
        };
        assert_eq!(BuildIdEntry::of_record(record.misc, found), Some(entry));
    }
}
