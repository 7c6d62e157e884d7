//! Checks that there is a case for every form of a record, and tests the forms that are too
//! numerous to be written as cases.

use std::collections::BTreeSet;

use perfdata_core::attr::{ReadFormat, SampleType, SampleType as T};
use perfdata_core::record::{
    AuxtraceType, Body, CpuMapType, EventUpdateType, GroupValue, Lost, Read, ReadValue, Record,
    RecordType, Sample, SampleId, StatConfigTag,
};
use perfdata_core::wire::ContextList;
use perfdata_core::{DecodeContext, Endian};

use super::{Case, cases, sample, sample_id};

cases! {
    /// The parts that perf requests for samples of several events.
    fn sample_of_several_events() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 2,
            body: Body::Sample(Sample {
                identifier: Some(0x0102_0304_0506_0708),
                ip: Some(0x1112_1314_1516_1718),
                stream_id: Some(0x2122_2324_2526_2728),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IDENTIFIER | T::IP | T::STREAM_ID),
        "09000000 0200 2000 0807060504030201 1817161514131211 2827262524232221",
        "00000009 0002 0020 0102030405060708 1112131415161718 2122232425262728",
    }

    /// A part that perf never requests.
    fn trailer_with_stream_id() {
        Record {
            kind: RecordType::LOST,
            misc: 0,
            body: Body::Lost(Lost { id: 0x0102_0304_0506_0708, lost: 0x11 }),
            tail: vec![],
            sample_id: Some(SampleId {
                time: Some(0x1112_1314_1516_1718),
                stream_id: Some(0x2122_2324_2526_2728),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::TIME | T::STREAM_ID).with_sample_id_all(true),
        "02000000 0000 2800 0807060504030201 1100000000000000 1817161514131211 2827262524232221",
        "00000002 0000 0028 0102030405060708 0000000000000011 1112131415161718 2122232425262728",
    }
}

/// Codes are small numbers.
const MOST: u64 = 64;

/// Adds the named codes for which `has` finds no case to `missing`.
fn check_codes(
    of: &str,
    missing: &mut Vec<String>,
    name: impl Fn(u64) -> Option<&'static str>,
    has: impl Fn(&Body, u64) -> bool,
) {
    let cases = super::all();
    for code in 0..MOST {
        if let Some(name) = name(code)
            && !cases.iter().any(|case| has(&case.record.body, code))
        {
            missing.push(format!("{of} {name}"));
        }
    }
}

#[test]
fn every_code_has_a_case() {
    let mut missing = Vec::new();
    check_codes(
        "AUXTRACE_INFO",
        &mut missing,
        |code| AuxtraceType(code as u32).name().filter(|_| code != 0),
        |body, code| matches!(body, Body::AuxtraceInfo(info) if u64::from(info.kind.0) == code),
    );
    check_codes(
        "CPU_MAP",
        &mut missing,
        |code| CpuMapType(code as u16).name(),
        |body, code| matches!(body, Body::CpuMap(map) if u64::from(map.kind.0) == code),
    );
    check_codes(
        "EVENT_UPDATE",
        &mut missing,
        |code| EventUpdateType(code).name(),
        |body, code| matches!(body, Body::EventUpdate(update) if update.kind.0 == code),
    );
    check_codes(
        "STAT_CONFIG",
        &mut missing,
        |code| StatConfigTag(code).name(),
        |body, code| matches!(body, Body::StatConfig(config) if config.settings.iter().any(|item| item.tag.0 == code)),
    );
    assert_eq!(missing, [""; 0]);
}

/// Tests the flags of `misc` that change the structure of a record.
#[test]
fn every_flag_that_changes_a_shape_has_a_case() {
    let cases = super::all();
    for (kind, bit) in [(RecordType::MMAP2, 14), (RecordType::HEADER_BUILD_ID, 15)] {
        let flags: BTreeSet<_> = cases
            .iter()
            .filter(|case| case.record.kind == kind)
            .map(|case| case.record.misc >> bit & 1)
            .collect();
        assert_eq!(flags, BTreeSet::from([0, 1]), "{kind}");
    }
}

#[test]
fn every_part_of_a_sample_has_a_case() {
    let cases = super::all();
    let samples = cases
        .iter()
        .filter(|case| case.record.kind == RecordType::SAMPLE);
    let sampled = samples.fold(0, |parts, case| parts | case.layout.sample_type.0);
    let trailers = cases.iter().filter(|case| case.record.sample_id.is_some());
    let trailing = trailers.fold(0, |parts, case| parts | case.layout.sample_type.0);
    let names = |parts: u64| SampleType(parts).names().collect::<Vec<_>>();
    assert_eq!(names(SampleType::KNOWN.0 & !sampled), [""; 0]);
    let in_trailer =
        [T::TID, T::TIME, T::ID, T::STREAM_ID, T::CPU, T::IDENTIFIER].map(|part| part.0);
    assert_eq!(
        names(in_trailer.iter().fold(0, |all, part| all | part) & !trailing),
        [""; 0]
    );
    assert_eq!(SampleType::KNOWN.0.count_ones(), 25);
}

/// Returns the words of read(2) in the order of `perf_event_read_one` and `perf_event_read_group`
/// of kernel/events/core.c.
fn words(format: ReadFormat) -> (ReadValue, Vec<u64>) {
    let has = |part| format.has(part);
    let when = |part, number: u64| has(part).then_some(number);
    let is_group = has(ReadFormat::GROUP);
    let alone = |part, number| when(part, number).filter(|_| !is_group);
    let time_enabled = when(ReadFormat::TOTAL_TIME_ENABLED, 0x1112_1314_1516_1718);
    let time_running = when(ReadFormat::TOTAL_TIME_RUNNING, 0x2122_2324_2526_2728);
    let counter = |n: u64| GroupValue {
        value: 0x3132_3334_3536_3700 + n,
        id: when(ReadFormat::ID, 0x4142_4344_4546_4700 + n),
        lost: when(ReadFormat::LOST, 0x5152_5354_5556_5700 + n),
    };
    let group: Vec<_> = if is_group {
        (0..3).map(counter).collect()
    } else {
        Vec::new()
    };
    let first = if is_group { 3 } else { 0x0102_0304_0506_0708 };
    let value = ReadValue {
        value: (!is_group).then_some(first),
        nr: is_group.then_some(first),
        time_enabled,
        time_running,
        id: alone(ReadFormat::ID, 0x6162_6364_6566_6768),
        lost: alone(ReadFormat::LOST, 0x7172_7374_7576_7778),
        values: ContextList(group.clone()),
    };
    let mut words = vec![first];
    words.extend(time_enabled);
    words.extend(time_running);
    words.extend(value.id);
    words.extend(value.lost);
    for counter in group {
        words.push(counter.value);
        words.extend(counter.id);
        words.extend(counter.lost);
    }
    (value, words)
}

#[test]
fn every_read_format() {
    assert_eq!(ReadFormat::KNOWN.0, 31);
    for format in (0..32).map(ReadFormat) {
        let (values, words) = words(format);
        let bytes = |endian: Endian| {
            let size = u16::try_from(16 + 8 * words.len()).expect("a short record");
            let mut bytes = match endian {
                Endian::Little => [&8_u32.to_le_bytes()[..], &[0, 0], &size.to_le_bytes()].concat(),
                Endian::Big => [&8_u32.to_be_bytes()[..], &[0, 0], &size.to_be_bytes()].concat(),
            };
            for task in [0x0a0b_0c0d_u32, 0x0e0f_1011] {
                bytes.extend(if endian == Endian::Little {
                    task.to_le_bytes()
                } else {
                    task.to_be_bytes()
                });
            }
            for word in &words {
                bytes.extend(if endian == Endian::Little {
                    word.to_le_bytes()
                } else {
                    word.to_be_bytes()
                });
            }
            bytes
        };
        let body = Body::Read(Read {
            pid: 0x0a0b_0c0d,
            tid: 0x0e0f_1011,
            values,
        });
        let record = Record {
            kind: RecordType::READ,
            misc: 0,
            body,
            tail: vec![],
            sample_id: None,
        };
        let layout = DecodeContext::default().with_read_format(format);
        Case {
            record,
            layout,
            little: bytes(Endian::Little),
            big: bytes(Endian::Big),
        }
        .check();
    }
}
