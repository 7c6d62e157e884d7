//! Each check of `perfconv verify` with a recording that is intact except for one error: the error
//! is reported with its severity at its offset.
//!
//! Values that are encoded differently than they were read cannot be constructed: those findings
//! ("reading and writing changes byte …") would be errors of the library.

use std::{io::Write, path::Path};

use perfdata_convert::io::Input;
use perfdata_convert::verify::{Finding, Report, Severity};
use perfdata_core::{
    container_layout::{ContainerLayout, FileLayout, Part},
    feature::FeatureId,
    read::RecordingReader,
};
use perfdata_tests::synth::{
    attr::{Attr, Stamp, sample_type},
    buf::Buf,
    feature_events,
    file::{File, Magic},
    forms::FUTURE_SIZE,
    kernel, kind,
    pipe::Pipe,
    record::{Scribe, frame},
    sink,
};
use tempfile::NamedTempFile;

use Severity::{Error, Note, Warning};

/// Offsets in the file header.
const ATTRS_SIZE: usize = 32;
const DATA_SIZE: usize = 48;
const EVENT_TYPES: usize = 56;
const FEATURES: usize = 72;

/// An empty zstd frame.
const EMPTY_FRAME: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];

const COMPRESSED: u32 = 27;
const TRACING_DATA: u32 = 1;
const NRCPUS: u32 = 7;
const EVENT_DESC: u32 = 12;
const CPU_TOPOLOGY: u32 = 13;
const NUMA_TOPOLOGY: u32 = 14;
const GROUP_DESC: u32 = 17;
const AUXTRACE: u32 = 18;
const SAMPLE_TIME: u32 = 21;

fn report_of(bytes: &[u8]) -> Report {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("it can be written");
    report(file.path())
}

fn report(path: &Path) -> Report {
    Report::of(Input::open(path).expect("it is there")).expect("it is still a recording")
}

#[track_caller]
fn find(bytes: &[u8], severity: Severity, offset: u64, meaning: &str) {
    let report = report_of(bytes);
    let found = report.findings.iter().any(|finding| {
        (finding.severity, finding.offset) == (severity, offset)
            && finding.meaning.starts_with(meaning)
    });
    assert!(
        found,
        "{severity:?} {offset:#x} {meaning}: {:#x?}",
        report.findings
    );
}

fn container_layout(bytes: &[u8]) -> FileLayout {
    match RecordingReader::open(bytes.to_vec())
        .expect("it is a recording")
        .container_layout()
    {
        ContainerLayout::File(file) => file.clone(),
        ContainerLayout::Pipe(_) => panic!("a file"),
    }
}

fn place(bytes: &[u8], part: Part) -> usize {
    let place = container_layout(bytes)
        .place(part)
        .unwrap_or_else(|| panic!("no {part:?}"));
    usize::try_from(place.offset).expect("a small file")
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn set(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// Returns the intact file, changed before it is written.
fn file(change: impl FnOnce(&mut File)) -> Vec<u8> {
    let mut file = sink::file(false);
    change(&mut file);
    file.bytes()
}

/// Returns the intact file with a replaced feature, and its offset.
fn feature(bit: u32, section: Buf) -> (Vec<u8>, u64) {
    let bytes = file(|file| file.set_feature(bit, section.bytes));
    let at = place(&bytes, Part::Feature(FeatureId(bit)));
    (bytes, at as u64)
}

/// Returns the intact file with one more record, and its offset.
fn record(kind: u32, body: Buf) -> (Vec<u8>, u64) {
    let mut at = 0;
    let bytes = file(|file| {
        at = file.data_offset() + file.data.len() as u64;
        file.data.extend(frame(false, kind, 0, &body.bytes));
    });
    (bytes, at)
}

fn le() -> Buf {
    Buf::new(false)
}

#[test]
fn the_recordings_are_sound() {
    for big in [false, true] {
        for bytes in [
            sink::file(big).bytes(),
            sink::pipe(big).bytes,
            sink::compressed_file(big, kind::COMPRESSED).bytes(),
        ] {
            assert_eq!(report_of(&bytes).findings, []);
        }
    }
}

#[test]
fn attributes_and_ids() {
    let mut bytes = file(|_| ());
    let attrs = place(&bytes, Part::Attrs);
    let entry = usize::try_from(number(&bytes, 16)).expect("a small file");
    let size = number(&bytes, ATTRS_SIZE);
    set(&mut bytes, ATTRS_SIZE, size - 1);
    find(&bytes, Error, attrs as u64, "attrs section: ");

    let mut bytes = file(|_| ());
    bytes[attrs + entry + 4] = 136;
    find(
        &bytes,
        Warning,
        (attrs + entry) as u64,
        "attribute: size 136, but 144 bytes according to the header",
    );

    let bytes = file(|file| {
        file.events
            .iter_mut()
            .for_each(|event| event.attr = Attr::rich(FUTURE_SIZE))
    });
    find(
        &bytes,
        Note,
        place(&bytes, Part::Attrs) as u64,
        "attribute: has newer fields",
    );

    let bytes = file(|file| file.events[2].ids[1] = file.events[0].ids[0]);
    find(
        &bytes,
        Error,
        place(&bytes, Part::Ids(2)) as u64,
        "event ID 1001 belongs to two events",
    );
}

#[test]
fn places() {
    let sound = file(|_| ());
    let with = |at: usize, number: u64| {
        let mut bytes = sound.clone();
        set(&mut bytes, at, number);
        bytes
    };
    find(
        &with(DATA_SIZE, 0),
        Error,
        DATA_SIZE as u64,
        "the recording is unfinished",
    );
    find(
        &with(DATA_SIZE, 1 << 40),
        Error,
        DATA_SIZE as u64,
        "the size of the records in the header (1099511627776 bytes)",
    );
    let killed = file(|file| file.crashed = true);
    find(
        &killed,
        Error,
        FEATURES as u64,
        "the header declares feature sections",
    );
    let mut lost = file(|file| file.event_types = vec![(1, "cpu-clock".into())]);
    set(&mut lost, EVENT_TYPES, 1 << 40);
    find(
        &lost,
        Error,
        EVENT_TYPES as u64,
        "the names of events are not at the offset in the header",
    );

    // The second event's IDs start with those of the first.
    let attrs = place(&sound, Part::Attrs);
    let entry = usize::try_from(number(&sound, 16)).expect("a small file");
    let first = number(&sound, attrs + entry - 16);
    let overlapping = with(attrs + 2 * entry - 16, first + 8);
    find(
        &overlapping,
        Error,
        first + 8,
        "the IDs of event 0 and the IDs of event 1 share bytes",
    );

    let table = place(&sound, Part::FeatureTable);
    let second = table + 16;
    find(
        &with(second, attrs as u64),
        Error,
        attrs as u64,
        "feature BUILD_ID and the attributes share bytes",
    );
    // Without any data after it.
    let table = container_layout(&sound).table;
    let (last, place_of_last) = table.last().expect("there are features");
    let size = second + 16 * (table.len() - 2) + 8;
    let meaning = format!(
        "feature {}: its 1099511627776 bytes are not inside the file",
        last
    );
    find(&with(size, 1 << 40), Error, place_of_last.offset, &meaning);

    let gap = file(|file| file.gap = vec![0xa5; 32]);
    find(
        &gap,
        Note,
        place(&gap, Part::Gap) as u64,
        "32 unreferenced bytes",
    );
}

#[test]
fn features_by_themselves() {
    let (bytes, at) = feature(NRCPUS, le().u32(4));
    find(&bytes, Error, at + 4, "NRCPUS, field online: ");
    let (bytes, at) = feature(NRCPUS, le().u32(4).u32(4).u32(7));
    find(
        &bytes,
        Note,
        at,
        "NRCPUS: 4 bytes after the last known field",
    );
    let (bytes, at) = feature(60, le().u32(1));
    find(&bytes, Note, at, "feature 60 is not known");
}

#[test]
fn features_against_the_rest() {
    let (bytes, at) = feature(NRCPUS, le().u32(3).u32(4));
    find(&bytes, Error, at, "NRCPUS: 4 CPUs are online, 3 available");
    let (bytes, _) = feature(NRCPUS, le().u32(1).u32(1));
    for (bit, name) in [
        (CPU_TOPOLOGY, "CPU_TOPOLOGY"),
        (NUMA_TOPOLOGY, "NUMA_TOPOLOGY"),
    ] {
        find(
            &bytes,
            Error,
            place(&bytes, Part::Feature(FeatureId(bit))) as u64,
            &format!("{name}: contains CPU "),
        );
    }

    let events = sink::events();
    let (bytes, at) = feature(EVENT_DESC, feature_events::event_desc(le(), &events[1..]));
    find(
        &bytes,
        Error,
        at,
        "EVENT_DESC: describes 4 events, but the recording has 5",
    );
    let changed = |change: fn(&mut feature_events::Event)| {
        let mut events = sink::events();
        change(&mut events[3]);
        feature(EVENT_DESC, feature_events::event_desc(le(), &events))
    };
    let (bytes, at) = changed(|event| event.ids[0] += 1);
    find(
        &bytes,
        Error,
        at,
        "EVENT_DESC: event 3 has other IDs than its attribute",
    );
    let (bytes, at) = changed(|event| event.attr.config += 1);
    find(
        &bytes,
        Error,
        at,
        "EVENT_DESC: event 3 has another attribute",
    );
    for count in [5, u32::MAX] {
        let (bytes, at) = feature(
            GROUP_DESC,
            feature_events::group_desc(le(), &[("group", 1, count)]),
        );
        let end = 1 + u64::from(count);
        find(
            &bytes,
            Warning,
            at,
            &format!("GROUP_DESC: a group ends at event {end}, but the recording has 5 events"),
        );
    }
    let (bytes, at) = feature(SAMPLE_TIME, le().u64(1).u64(2));
    find(
        &bytes,
        Error,
        at,
        "SAMPLE_TIME: samples from 1 to 2 ns, but the recording has samples from 1000171007 to 1000182007",
    );
    let (bytes, at) = feature(SAMPLE_TIME, le().u64(1_000_180_000).u64(1_000_182_007));
    find(
        &bytes,
        Warning,
        at,
        "SAMPLE_TIME: samples from 1000180000 to 1000182007 ns, but the recording has samples from 1000171007",
    );
}

/// Sections that perf needs in addition to the records, and that `--drop` removes.
#[test]
fn sections_that_are_missed() {
    let bytes = file(|file| file.features.retain(|(bit, _)| *bit != TRACING_DATA));
    let at = place(&bytes, Part::Data) as u64;
    let report = report_of(&bytes);
    let is_it = |meaning: &str| meaning.starts_with("tracepoints without tracing data");
    let found = report
        .findings
        .iter()
        .find(|finding| is_it(&finding.meaning))
        .expect("a finding");
    assert!(found.severity == Warning && found.offset > at);
    assert!(
        !report_of(&file(|_| ()))
            .findings
            .iter()
            .any(|finding| is_it(&finding.meaning))
    );
    let bytes = file(|file| {
        file.features.retain(|(bit, _)| *bit != COMPRESSED);
        file.data
            .extend(frame(false, kind::COMPRESSED, 0, &EMPTY_FRAME));
    });
    let found = |finding: &Finding| {
        finding
            .meaning
            .starts_with("compressed records without the feature COMPRESSED")
    };
    assert!(report_of(&bytes).findings.iter().any(found));
}

/// `perf record --overwrite -o -` writes attributes after all records.
#[test]
fn records_in_front_of_the_attributes() {
    let event = &sink::events()[0];
    let exit = [
        kernel::fork(le(), (1, 1), (1, 1), 7).bytes,
        event.attr.trailer(false, &Stamp::SOME),
    ]
    .concat();
    let exit = |pipe: Pipe| {
        pipe.record(
            kind::EXIT,
            0,
            Buf {
                big: false,
                bytes: exit.clone(),
            },
        )
    };
    let start = || Pipe::new(false, Magic::V2);
    let bytes = exit(exit(start()).event(event)).bytes;
    find(
        &bytes,
        Warning,
        0x10,
        "EXIT record: 48 bytes that require an attribute, but no attribute precedes the record",
    );
    assert_eq!(report_of(&bytes).findings.len(), 1);
}

/// perf uses the largest number as the time of a sample without a time, and stores this value.
#[test]
fn times_of_samples_without_a_time() {
    let says = |is_timeless: bool| {
        let bytes = file(|file| {
            let mut event = file.events[0].clone();
            event.ids = vec![77];
            if is_timeless {
                event.attr.sample_type &= !sample_type::TIME;
            }
            file.events.push(event);
            file.set_feature(SAMPLE_TIME, le().u64(u64::MAX).u64(2_000_000_000).bytes);
        });
        report_of(&bytes)
            .findings
            .iter()
            .any(|finding| finding.meaning.starts_with("SAMPLE_TIME"))
    };
    assert!(says(false));
    assert!(!says(true));
}

/// The number of entries is followed by their offsets and sizes.
#[test]
fn the_index_of_aux_data() {
    let sound = file(|_| ());
    let section = place(&sound, Part::Feature(FeatureId(AUXTRACE)));
    let at = section as u64;
    let first = number(&sound, section + 8);

    let mut bytes = sound.clone();
    set(&mut bytes, section + 8, first + 8);
    find(
        &bytes,
        Error,
        at,
        &format!("AUXTRACE: no AUXTRACE record is at {:#x}", first + 8),
    );
    let mut bytes = sound.clone();
    set(&mut bytes, section + 16, 56);
    find(
        &bytes,
        Error,
        at,
        &format!("AUXTRACE: the AUXTRACE record at {first:#x} has 48 bytes, not 56"),
    );

    let (bytes, at) = feature(AUXTRACE, feature_events::auxtrace_index(le(), &[first]));
    find(
        &bytes,
        Error,
        at,
        "AUXTRACE: the number of entries is 1, but the recording has 2 AUXTRACE records",
    );
}

#[test]
fn features_in_a_pipe() {
    let events = sink::events();
    let pipe = Pipe::new(false, Magic::V2).event(&events[0]);
    let at = pipe.bytes.len() as u64 + 16;
    let pipe = pipe.feature(NRCPUS, &le().u32(3).u32(4).bytes);
    find(
        &pipe.bytes,
        Error,
        at,
        "NRCPUS: 4 CPUs are online, 3 available",
    );
}

#[test]
fn records_by_themselves() {
    let (bytes, at) = record(kind::TIME_CONV, le().u64(1));
    find(&bytes, Error, at + 16, "TIME_CONV record");
    let (bytes, at) = record(kind::STAT_ROUND, le().u64(1).u64(2).u64(3));
    find(
        &bytes,
        Note,
        at,
        "STAT_ROUND record: 8 bytes after the last known field",
    );
    let (bytes, at) = record(99, le().u64(1));
    find(
        &bytes,
        Note,
        at,
        "type 99: records of a type that is not known",
    );
    let (bytes, at) = record(40, le().zeros(52));
    find(
        &bytes,
        Warning,
        at,
        "40 record: its size is not a multiple of 8",
    );
    let (bytes, at) = record(kind::STAT, le().u64(77).zeros(32));
    find(&bytes, Error, at, "STAT record: no event has the ID 77");
    let (mut bytes, at) = record(kind::STAT, le().u64(1001).zeros(32));
    bytes[usize::try_from(at).expect("a small file") + 6] = 7;
    find(&bytes, Error, at, "STAT record, field size: found 7");
}

#[test]
fn samples_without_time() {
    let event = &sink::events()[4];
    let stamp = Stamp {
        id: event.ids[0],
        time: 0,
        ..Stamp::SOME
    };
    let mut scribe = Scribe::new(false, event.attr.clone(), stamp);
    scribe.sample("", |_| ());
    let mut at = 0;
    let bytes = file(|file| {
        at = file.data_offset() + file.data.len() as u64;
        file.data.extend(&scribe.cases[0].record);
    });
    find(&bytes, Warning, at, "SAMPLE record: has no time");
}

#[test]
fn records_without_attributes() {
    let mut file = File::new(false, Vec::new());
    let lost = kernel::lost(le(), 1, 2);
    file.data = frame(false, kind::LOST, 0, &lost.bytes);
    let at = file.data_offset();
    find(&file.bytes(), Error, at, "the recording has no attributes");
}

#[test]
fn compressed_records() {
    let sound = sink::compressed_file(false, kind::COMPRESSED2);
    let bytes = sound.bytes();
    let places: Vec<_> = records_of(&bytes)
        .into_iter()
        .filter(|(_, kind, _)| *kind == kind::COMPRESSED2)
        .collect();
    // The last two are followed by other records, which remain at their offsets: their type is
    // changed to one that is skipped.
    let [.., (before, ..), (last, ..)] = places[..] else {
        panic!("there are several")
    };
    let mut cut = bytes.clone();
    cut[last..last + 4].copy_from_slice(&99_u32.to_le_bytes());
    let report = report_of(&cut);
    let rest = report.findings.iter().find(|finding| {
        finding
            .meaning
            .contains("at the end of the compressed data")
    });
    let rest = rest.unwrap_or_else(|| panic!("{:#x?}", report.findings));
    assert_eq!((rest.severity, rest.offset), (Error, before as u64));

    let mut damaged = bytes.clone();
    let magic = damaged
        .windows(4)
        .position(|window| window == [0x28, 0xb5, 0x2f, 0xfd])
        .expect("zstd's magic");
    damaged[magic] ^= 1;
    let (first, ..) = places[0];
    find(&damaged, Error, first as u64, "COMPRESSED2 record: zstd: ");
}

/// Returns offset, type and size of the records of a file.
fn records_of(bytes: &[u8]) -> Vec<(usize, u32, usize)> {
    let (mut at, mut found) = (place(bytes, Part::Data), Vec::new());
    let end = at + usize::try_from(number(bytes, DATA_SIZE)).expect("a small file");
    while at < end {
        let word = number(bytes, at);
        let (kind, size) = (word as u32, (word >> 48) as usize);
        found.push((at, kind, size));
        // AUX data follows its record.
        let payload = if kind == kind::AUXTRACE {
            number(bytes, at + 8)
        } else {
            0
        };
        at += size + usize::try_from(payload).expect("a small file");
    }
    found
}
