//! Records in layouts of their own, as the kernel of RHEL 7 and simpleperf write them: read as
//! they are meant, copied as they are, and converted to the usual layout.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::io::Input;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_sanitize::{Audience, Key, Policy, Sanitize};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::perf;
use perfdata_tests::recordings::Endian;
use perfdata_tests::skipped;
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::File;
use perfdata_tests::synth::kernel::{self, Object};
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::synth::tracing::{self, Version};
use perfdata_tests::synth::{kind, user_cases};
use tempfile::TempDir;

const TASK: (u32, u32) = (7, 7);
const MMAP_DATA: u16 = 1 << 13;
const RHEL_7: &str = "3.10.0-123.6.3.el7.x86_64";

/// Names that the kernel writes, and whether the mappings are executable.
const NAMES: [(&str, bool); 6] = [
    ("/usr/lib64/ld-2.17.so", true),
    ("[vdso]", true),
    ("[stack]", false),
    ("//anon", false),
    ("anon_inode:[perf_event]", false),
    ("/a", true),
];

/// Name, protection and flags of a mapping.
type Mapping = (String, Option<u32>, Option<u32>);

fn write(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    fs::write(&path, bytes).expect("a file");
    (folder, path)
}

/// Returns a recording of these records.
fn file(big: bool, release: Option<&str>, attr: Attr, data: Vec<u8>) -> File {
    let buf = || Buf::new(big);
    let event = Event {
        name: "event".into(),
        attr,
        ids: vec![],
    };
    let mut file = File::new(big, vec![event]);
    file.data = data;
    file.set_feature(3, buf().str("host").bytes);
    if let Some(release) = release {
        file.set_feature(4, buf().str(release).bytes);
    }
    file.set_feature(6, buf().str("x86_64").bytes);
    let described = feature_events::event_desc(buf(), &file.events).bytes;
    file.set_feature(feature_events::EVENT_DESC, described);
    file
}

/// Returns a recording of RHEL 7: mappings of the kernel without protection, and one of perf.
fn rhel_7(big: bool, release: Option<&str>) -> Vec<u8> {
    let parts = sample_type::IP | sample_type::TID | sample_type::TIME;
    let attr = Attr {
        kind: 1,
        sample_period: 1,
        size: 112,
        ..Attr::new(parts, "sample_id_all mmap mmap2 comm")
    };
    let mut scribe = Scribe::new(big, attr.clone(), Stamp::SOME);
    let s = &mut scribe;
    s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, TASK, "true"));
    s.kernel("MMAP2", kind::MMAP2, misc::USER, |b| {
        let object = Object::Inode(8, 1, 2, 3);
        kernel::mmap2(b, TASK, [0x1000, 0x1000, 0], object, [5, 2], "/bin/of_perf")
    });
    for (at, (name, is_code)) in NAMES.into_iter().enumerate() {
        let misc = misc::USER | if is_code { 0 } else { MMAP_DATA };
        let place = [0x7f00_0000_0000 + at as u64 * 0x1_0000, 0x1000, 0];
        s.kernel("MMAP2", kind::MMAP2, misc, |b| {
            kernel::mmap2_of_rhel7(b, TASK, place, name)
        });
    }
    s.sample("SAMPLE", |sample| sample.ip = 0x7f00_0000_0010);
    file(big, release, attr, stream(&scribe.cases)).bytes()
}

fn mappings(path: &Path) -> Vec<Mapping> {
    let whole = Whole::read_file(path).expect("a recording");
    let records = whole.records_with_payloads();
    let mapping = |(kind, bytes)| {
        let raw = RawRecord::first(bytes, whole.recording.endian, 0).expect("a record");
        let layout = whole.recording.events.layout_of(&raw);
        let record = (kind == RecordType::MMAP2).then(|| Record::decode(&raw, &layout))?;
        match record.expect("a mapping").body {
            Body::Mmap2(map) => Some((map.filename.to_string(), map.prot, map.flags)),
            _ => None,
        }
    };
    records.filter_map(mapping).collect()
}

fn as_recorded() -> Vec<Mapping> {
    let of_kernel = NAMES.map(|(name, _)| (name.to_owned(), None, None));
    [("/bin/of_perf".to_owned(), Some(5), Some(2))]
        .into_iter()
        .chain(of_kernel)
        .collect()
}

fn standard() -> Vec<Mapping> {
    let of_kernel = NAMES.map(|(name, is_code)| {
        let prot = if is_code { 4 } else { 0 };
        (name.to_owned(), Some(prot), Some(0))
    });
    [("/bin/of_perf".to_owned(), Some(5), Some(2))]
        .into_iter()
        .chain(of_kernel)
        .collect()
}

fn swap() -> Box<dyn Stage> {
    Box::new(Swap::new(Target::Other, Unknown::Error))
}

/// The names are whole, a copy is exact, and conversions write the usual layout, also if nothing
/// says which kernel it was.
#[test]
fn mappings_of_rhel_7_get_their_protection() {
    for (big, release) in [
        (false, Some(RHEL_7)),
        (true, Some(RHEL_7)),
        (false, None),
        (true, None),
    ] {
        let original = rhel_7(big, release);
        let (_folder, path) = write(&original);
        assert_eq!(mappings(&path), as_recorded());
        let report = Report::of(Input::open(&path).expect("it opens")).expect("it is read");
        let notes = report.text();
        assert!(report.is_clean(), "{notes}");
        assert_eq!(notes.matches("in place of prot and flags").count(), 1);

        let copy = convert(&path, None, vec![]).expect("it is copied");
        assert_eq!(copy.bytes(), original);
        let pipe = Some(ContainerKind::Pipe);
        for (to, swaps) in [(pipe, false), (None, true), (pipe, true)] {
            let stages = if swaps { vec![swap()] } else { vec![] };
            let made = convert(&path, to, stages).expect("it is converted");
            assert_eq!(mappings(&made.path()), standard());
            assert!(
                made.summary
                    .notes
                    .iter()
                    .any(|note| note.starts_with("6 MMAP2 records")),
                "{:?}",
                made.summary.notes
            );
            let report = Report::of(Input::open(&made.path()).expect("it opens"));
            assert!(!report.expect("it is read").text().contains("prot"));
        }
    }
}

/// perf shows the whole names after the conversion.
#[test]
fn perf_reads_the_names_of_rhel_7() {
    let (_folder, path) = write(&rhel_7(false, Some(RHEL_7)));
    let made = convert(&path, Some(ContainerKind::Pipe), vec![]).expect("it is converted");
    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little)
    {
        let names = |path: &Path| -> Vec<String> {
            let mut command = perf.command();
            command
                .args(["script", "--show-mmap-events", "-i"])
                .arg(path);
            let said = perf::run(command).expect("perf runs");
            assert!(said.success(), "{perf}: {}", said.stderr);
            let lines = said.stdout.lines();
            let maps = lines.filter(|line| line.contains("PERF_RECORD_MMAP2 7/7"));
            let name = |line: &str| line.rsplit(' ').next().map(str::to_owned);
            maps.filter_map(name).collect()
        };
        let expected: Vec<_> = standard().into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names(&made.path()), expected, "{perf}");
        assert_ne!(names(&path), expected, "{perf} reads the layout of RHEL 7");
    }
}

/// A protection is not mistaken for a name, and the other way round.
#[test]
fn protections_are_no_names() {
    let parts = sample_type::IP | sample_type::TID | sample_type::TIME;
    let attr = Attr::new(parts, "sample_id_all mmap mmap2 comm");
    for big in [false, true] {
        let mut scribe = Scribe::new(big, attr.clone(), Stamp::SOME);
        let accesses = [
            [0, 0],
            [7, 0x4_3802],
            // Parts of pointers.
            [0x2f41_5b20, 0x7f12],
            [u32::MAX, u32::MAX],
            [0x2f2f_2f2f, 0x0a0a_0a0a],
        ];
        for access in accesses {
            scribe.kernel("MMAP2", kind::MMAP2, misc::USER, |b| {
                let object = Object::Inode(8, 1, 2, 3);
                kernel::mmap2(b, TASK, [0x1000, 0x1000, 0], object, access, "/bin/true")
            });
        }
        let bytes = file(big, None, attr.clone(), stream(&scribe.cases)).bytes();
        let (_folder, path) = write(&bytes);
        let expected = accesses.map(|[prot, flags]| ("/bin/true".into(), Some(prot), Some(flags)));
        assert_eq!(mappings(&path), expected);

        // What is no protection is not published.
        for audience in [Audience::Public, Audience::Vendor] {
            let key = Key::of_secret(b"a secret of some length").expect("a key");
            let sanitize: Box<dyn Stage> = Box::new(Sanitize::new(Policy::new(audience), key));
            let made = convert(&path, None, vec![sanitize]).expect("it is sanitized");
            let access = mappings(&made.path()).into_iter();
            let access: Vec<_> = access.map(|(_, prot, flags)| (prot, flags)).collect();
            let zero = (Some(0), Some(0));
            assert_eq!(access, [zero, (Some(7), Some(0x4_3802)), zero, zero, zero]);
        }
    }
}

/// Every name of a mapping is replaced from its first byte on.
#[test]
fn names_of_rhel_7_are_sanitized() {
    let (_folder, path) = write(&rhel_7(false, Some(RHEL_7)));
    let key = Key::of_secret(b"a secret of some length").expect("a key");
    let sanitize: Box<dyn Stage> = Box::new(Sanitize::new(Policy::new(Audience::Public), key));
    let made = convert(&path, None, vec![sanitize]).expect("it is sanitized");
    let names: Vec<_> = mappings(&made.path());
    assert_eq!(names.len(), NAMES.len() + 1);
    let bytes = made.bytes();
    let is_there = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    // The names of libraries of every system stay.
    assert!(!is_there(b"of_perf") && is_there(b"/usr/lib64/ld-2.17.so"));
    assert!(names.iter().all(|(_, prot, _)| prot.is_some()), "{names:?}");
}

/// Returns a recording with samples of a tracepoint whose tracing data is inside of the record, as
/// simpleperf writes it.
fn simpleperf() -> Vec<u8> {
    let parts = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::RAW;
    let attr = Attr {
        kind: 2,
        config: tracing::EVENT_ID.into(),
        sample_period: 1,
        size: 112,
        ..Attr::new(parts, "sample_id_all mmap comm")
    };
    let mut scribe = Scribe::new(false, attr.clone(), Stamp::SOME);
    let s = &mut scribe;
    let data = tracing::data(Version::V0_5, false);
    let contained = user_cases::contained_tracing_data(false, &data);
    s.user("HEADER_TRACING_DATA", kind::HEADER_TRACING_DATA, 0, |b| {
        b.bytes(&contained)
    });
    s.kernel("COMM", kind::COMM, 0, |b| kernel::comm(b, TASK, "app"));
    for value in [41_u32, 42] {
        s.sample("SAMPLE", |sample| {
            let b = Buf::new(false).u16(tracing::EVENT_ID).u16(0).u32(7);
            sample.raw = b.u32(value).bytes;
        });
    }
    file(false, Some("4.4.88"), attr, stream(&scribe.cases)).bytes()
}

/// Tracing data in its record is read, and becomes a section of a file and a usual record of a
/// pipe.
#[test]
fn tracing_data_in_its_record_is_read() {
    let original = simpleperf();
    let (_folder, path) = write(&original);
    let report = Report::of(Input::open(&path).expect("it opens")).expect("it is read");
    assert_eq!(report.text().lines().count(), 1, "{}", report.text());
    let expected = tracing::data(Version::V0_5, false);
    let tracing = |path: &Path| {
        let whole = Whole::read_file(path).expect("a recording");
        let data = whole.recording.features.get(&FeatureId::TRACING_DATA);
        data.cloned()
    };
    assert_eq!(tracing(&path), Some(expected.clone()));
    let copy = convert(&path, None, vec![]).expect("it is copied");
    assert_eq!(copy.bytes(), original);

    let pipe = convert(&path, Some(ContainerKind::Pipe), vec![]).expect("it is converted");
    let whole = Whole::read_file(&pipe.path()).expect("a recording");
    assert_eq!(tracing(&pipe.path()), Some(expected.clone()));
    let is_tracing = |(_, kind): &&(usize, RecordType)| *kind == RecordType::HEADER_TRACING_DATA;
    assert_eq!(
        whole.records.iter().filter(is_tracing).count(),
        0,
        "in the head"
    );
    let file = convert(&pipe.path(), Some(ContainerKind::File), vec![]).expect("it is converted");
    assert_eq!(tracing(&file.path()), Some(expected.clone()));
    let swapped = convert(&path, None, vec![swap()]).expect("it is converted");
    let whole = Whole::read_file(&swapped.path()).expect("a recording");
    assert_eq!(
        whole.records.iter().filter(is_tracing).count(),
        0,
        "a section"
    );

    if perf::all().is_empty() {
        return skipped::note("perf");
    }
    for perf in perf::all()
        .iter()
        .filter(|perf| perf.endian == Endian::Little)
    {
        for path in [pipe.path(), file.path()] {
            let mut command = perf.command();
            command
                .args(["script", "-F", "event,trace", "-i"])
                .arg(path);
            let said = perf::run(command).expect("perf runs");
            let values: Vec<_> = said.stdout.lines().map(str::trim).collect();
            assert_eq!(
                values,
                ["event: value=41", "event: value=42"],
                "{perf}: {}",
                said.stderr
            );
        }
    }
}
