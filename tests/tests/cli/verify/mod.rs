//! `perfconv verify` finds all errors, and reports no others.

mod damage;
mod odd_recordings;

use std::fs;

use perfdata_convert::io::Input;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::{
    container_layout::{ContainerLayout, FileLayout, Part},
    feature::FeatureId,
    read::RecordingReader,
};
use perfdata_tests::{
    convert::convert,
    is_thorough,
    recordings::{self, Container, Form, Recording},
};

/// The findings for a damaged recording: the start of the description of each error and warning, in
/// order.
type Damage = (&'static str, &'static [&'static str]);

const UNFINISHED: &[&str] = &[
    "the recording is unfinished: the size of the records in the header is 0",
    "the header declares feature sections, but the feature table is missing",
];
const CUT: &[&str] = &["SAMPLE record: "];
const OVERWRITTEN: &[&str] = &["feature BUILD_ID and the IDs of event 0 share bytes"];
const NO_ATTRIBUTE: &[&str] = &["not read: "];

/// The damaged recordings, and the reasons.
const DAMAGED: &[Damage] = &[
    // perf was killed.
    ("6.1-s390x-file-crashed", UNFINISHED),
    ("6.1-x86_64-file-crashed", UNFINISHED),
    (
        "6.12-x86_64-file-crashed-tp",
        &[
            UNFINISHED[0],
            UNFINISHED[1],
            "tracepoints without tracing data: perf refuses the whole file",
        ],
    ),
    ("7.2-x86_64-file-crashed", UNFINISHED),
    // Truncated with dd.
    ("6.1-x86_64-pipe-cut", CUT),
    ("7.2-x86_64-pipe-cut", CUT),
    // perf inject overwrote the first section with IDs and attributes.
    ("6.12-x86_64-pipe-injected", OVERWRITTEN),
    ("7.2-x86_64-pipe-injected", OVERWRITTEN),
    // perf stat without counters reserved space for records, but wrote none.
    ("6.1-x86_64-hw-stat", &["0 record, field size: found 0"]),
    // One of the group's two events could not be opened.
    (
        "7.2-x86_64-hw-group",
        &["GROUP_DESC: a group ends at event 2, but the recording has 1 event"],
    ),
    // Damaged by the publishers: a test of their reader, and perf's messages after the stream.
    (
        "quipper/piped.corrupted.zero_size_sample-3.2",
        &["SAMPLE record, field size: found 0"],
    ),
    (
        "linux-perf-data/sleep.compressed2.pipe",
        &["143 bytes from here on: messages of perf record"],
    ),
    // Results of a fuzzer: a file with impossible attributes is not a recording.
    ("crashers/crasher-2", NO_ATTRIBUTE),
    (
        "crashers/crasher-4",
        &["MMAP record, field addr", "the recording has no attributes"],
    ),
    (
        "crashers/crasher-6",
        &[
            "0 record: its size is not a multiple of 8",
            "2459079314 record: 37522 bytes needed",
        ],
    ),
    (
        "crashers/crasher-8",
        &[
            "HEADER_FEATURE record, field feat_id: 8 bytes needed",
            "5242880 record: 4096 bytes needed",
        ],
    ),
    (
        "crashers/crasher-10",
        &[
            "EXIT record: its size",
            "EXIT record: 58 bytes",
            "0 record, field size: found 1",
            "the recording has no attributes",
        ],
    ),
    (
        "crashers/crasher-12",
        &["268435470 record, field size: found 0"],
    ),
    (
        "crashers/crasher-14",
        &["1166016512 record: 61952 bytes needed"],
    ),
    (
        "crashers/crasher-16",
        &["1166016512 record, field size: found 0"],
    ),
    ("crashers/crasher-18", NO_ATTRIBUTE),
    ("crashers/crasher-20", NO_ATTRIBUTE),
    (
        "crashers/crasher-22",
        &[
            "NAMESPACES record: its size",
            "NAMESPACES record, field namespaces: 10528927563350826796 bytes needed",
            "2009271333 record, field size: found 0",
            "the recording has no attributes",
        ],
    ),
    (
        "crashers/crasher-24",
        &[
            "HEADER_ATTR record, field attr.size: found 52",
            "HEADER_ATTR record, field size: found 0",
        ],
    ),
    ("crashers/crasher-26", NO_ATTRIBUTE),
    ("crashers/crasher-28", NO_ATTRIBUTE),
];

fn open(recording: &Recording) -> Result<Input, String> {
    Input::open(&recording.main_file()).map_err(|error| error.to_string())
}

/// Returns the known damage of a recording.
fn damage_of(recording: &Recording) -> &'static [&'static str] {
    DAMAGED
        .iter()
        .find(|(name, _)| *name == recording.name)
        .map_or(&[], |(_, damage)| damage)
}

fn is_same(found: &[String], expected: &[&str]) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(is, start)| is.starts_with(start))
}

fn bad(report: &Report) -> Vec<String> {
    let bad = report
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note);
    bad.map(|finding| finding.meaning.clone()).collect()
}

#[test]
fn only_what_is_damaged_is_found() {
    recordings::check_all(&recordings::all(), |recording| {
        let found = match Report::of(open(recording)?) {
            Ok(report) => {
                serde_json::from_str::<serde_json::Value>(&report.json())
                    .map_err(|error| error.to_string())?;
                bad(&report)
            }
            Err(error) => vec![format!("not read: {error}")],
        };
        if is_same(&found, damage_of(recording)) {
            Ok(())
        } else {
            Err(format!("{found:#?}"))
        }
    });
}

/// The same in the other byte order: an intact recording is intact after the conversion.
/// Directories are checked both as `data` and as a whole.
#[test]
fn the_other_byte_order_is_as_sound() {
    let all = if is_thorough() {
        recordings::all()
    } else {
        recordings::fixtures()
    };
    recordings::check_all(&all, |recording| {
        if !damage_of(recording).is_empty() {
            return Ok(());
        }
        let is_directory = matches!(
            recording.form,
            Some(Form {
                container: Container::Directory,
                ..
            })
        );
        let mut paths = vec![recording.main_file()];
        paths.extend(is_directory.then(|| recording.path.clone()));
        for path in paths {
            let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
            let swapped = convert(&path, None, vec![swap]).map_err(|error| error.to_string())?;
            let report =
                Report::of(Input::open(&swapped.path()).map_err(|error| error.to_string())?);
            let found = bad(&report.map_err(|error| error.to_string())?);
            if !found.is_empty() {
                return Err(format!("{}: {found:#?}", path.display()));
            }
        }
        Ok(())
    });
}

/// Returns an intact file and its layout.
fn sound() -> (Vec<u8>, FileLayout) {
    let bytes = fs::read(recordings::fixture("7.2-x86_64-file-g").path).expect("a fixture");
    let ContainerLayout::File(file) = RecordingReader::open(bytes.clone())
        .expect("it is read")
        .container_layout()
        .clone()
    else {
        panic!("not a file");
    };
    (bytes, file)
}

/// Returns the findings after a change of the byte `at` in a part.
fn found_after(part: Part, at: usize, change: impl Fn(&mut [u8])) -> Vec<String> {
    let (mut bytes, file) = sound();
    let place = file.place(part).expect("the part is there");
    change(&mut bytes[usize::try_from(place.offset).expect("a small file") + at..]);
    let damaged = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(damaged.path(), bytes).expect("it can be written");
    bad(
        &Report::of(Input::open(damaged.path()).expect("it is there"))
            .expect("it is still a recording"),
    )
}

#[test]
fn every_kind_of_damage_is_found() {
    let number =
        |value: u64| move |bytes: &mut [u8]| bytes[..8].copy_from_slice(&value.to_le_bytes());
    let find = |found: Vec<String>, expected: &str| {
        assert!(
            found.iter().any(|meaning| meaning.contains(expected)),
            "{expected}: {found:#?}"
        );
    };
    let nrcpus = Part::Feature(FeatureId::NRCPUS);
    assert_eq!(found_after(Part::Header, 0, |_| {}), [""; 0]);
    find(
        found_after(Part::Header, 48, number(1 << 40)),
        "exceeds the file",
    );
    find(found_after(Part::Header, 48, number(0)), "is unfinished");
    find(
        found_after(Part::FeatureTable, 16, number(1 << 40)),
        "are not inside the file",
    );
    find(
        found_after(Part::FeatureTable, 32, number(0x100)),
        "share bytes",
    );
    find(
        found_after(Part::Ids(0), 0, number(1 << 40)),
        "no event has the ID",
    );
    find(
        found_after(Part::Ids(0), 0, number(1 << 40)),
        "other IDs than its attribute",
    );
    find(found_after(Part::Attrs, 8, number(77)), "another attribute");
    find(
        found_after(Part::Attrs, 4, |bytes| bytes[0] = 136),
        "attribute: size 136, but",
    );
    find(
        found_after(nrcpus, 4, |bytes| bytes[0] = 200),
        "200 CPUs are online, 2 available",
    );
    find(
        found_after(nrcpus, 0, |bytes| bytes[0] = 1),
        "contains CPU 1, but NRCPUS has 1",
    );
    find(
        found_after(Part::Feature(FeatureId::SAMPLE_TIME), 0, number(u64::MAX)),
        "samples from 18446744073709551615",
    );
    find(
        found_after(Part::Data, 6, |bytes| bytes[0] = 7),
        "field size: found 7",
    );
}

#[test]
fn what_cannot_be_decompressed_is_found() {
    let original = recordings::fixture("7.2-x86_64-file-z").path;
    let mut bytes = fs::read(original).expect("a fixture");
    let magic = bytes
        .windows(4)
        .position(|window| window == [0x28, 0xb5, 0x2f, 0xfd])
        .expect("zstd's magic");
    bytes[magic] ^= 1;
    let damaged = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(damaged.path(), bytes).expect("it can be written");
    let report = Report::of(Input::open(damaged.path()).expect("it is there"))
        .expect("it is still a recording");
    assert!(!report.is_clean());
    assert!(
        matches!(&bad(&report)[..], [only] if only.starts_with("COMPRESSED2 record: zstd: ")),
        "{:#?}",
        bad(&report)
    );
    assert!(report.text().starts_with("error   0x"), "{}", report.text());
}
