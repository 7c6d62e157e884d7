//! MMAP2 records that contain an inode, although their `misc` announces a build ID: the kernel
//! writes them while another recorder requests build IDs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use perfdata_convert::io::{Input, Output};
use perfdata_convert::pipeline::Stage;
use perfdata_convert::recover::Recover;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, MISC_MMAP_BUILD_ID, RawRecord, Record, RecordType};
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::recordings::{Endian, fixtures_dir};
use perfdata_tests::synth::attr::{Attr, Stamp, sample_type};
use perfdata_tests::synth::buf::Buf;
use perfdata_tests::synth::feature_events::{self, Event};
use perfdata_tests::synth::file::{File, Magic};
use perfdata_tests::synth::kind;
use perfdata_tests::synth::pipe::{Pipe, TERMINATOR};
use perfdata_tests::synth::record::{Scribe, misc, stream};
use perfdata_tests::{perf, skipped};

/// The number of the COMPRESSED feature.
const COMPRESSED: u32 = 27;

/// What an MMAP2 record contains: an inode (major and minor number, inode), or a build ID.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    Inode(u32, u32, u64),
    BuildId(Vec<u8>),
}

use Identity::{BuildId, Inode};

/// Returns the flag and the identity in each MMAP2 record of user space.
fn mappings(path: &Path) -> Vec<(bool, Identity)> {
    let whole = Whole::read_file(path).expect("a recording");
    let records = whole.records_with_payloads();
    let mapping = |(kind, bytes)| {
        let raw = RawRecord::first(bytes, whole.recording.endian, 0).expect("a record");
        if kind != RecordType::MMAP2 || raw.misc & 7 != misc::USER {
            return None;
        }
        let layout = whole.recording.events.layout_of(&raw);
        let record = Record::decode(&raw, &layout).expect("a mapping");
        let Body::Mmap2(map) = record.body else {
            panic!("no mapping");
        };
        let identity = match (map.inode, map.build_id) {
            (Some(inode), None) => Inode(inode.maj, inode.min, inode.ino),
            (None, Some(id)) => BuildId(id.build_id[..id.build_id_size.into()].to_vec()),
            other => panic!("{other:?}"),
        };
        Some((raw.misc & MISC_MMAP_BUILD_ID != 0, identity))
    };
    records.filter_map(mapping).collect()
}

fn report(path: &Path) -> Report {
    Report::of(Input::open(path).expect("it opens")).expect("it is read")
}

/// Returns how many findings are about these records.
fn reported(path: &Path) -> usize {
    let report = report(path);
    let found = report.findings.iter();
    found
        .filter(|finding| finding.meaning.contains("announces a build ID"))
        .inspect(|finding| assert_eq!(finding.severity, Severity::Warning))
        .count()
}

fn swap() -> Vec<Box<dyn Stage>> {
    vec![Box::new(Swap::new(Target::Other, Unknown::Error))]
}

/// The identities that records announce as build IDs, and whether each is one without a request.
fn announced() -> Vec<(Identity, bool)> {
    vec![
        // A virtual disk, whose major number would be the size of a build ID, if it were smaller.
        (Inode(254, 2, 0x03c5), false),
        (Inode(8, 1, 0x1234_5678), false),
        (Inode(259, 7, 12), false),
        (Inode(0, 33, 77), false),
        (BuildId((1..=20).collect()), true),
        (BuildId((1..=16).collect()), true),
        (BuildId((1..=8).collect()), true),
    ]
}

/// Returns a recording with these mappings: of an event that requests no build IDs, and of one that
/// does, if there is one.
fn recording(big: bool, mappings: &[(u64, Identity)], requests: bool) -> File {
    let parts = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::IDENTIFIER;
    let attr = |flags: &str| Attr {
        kind: 1,
        size: 112,
        ..Attr::new(parts, &format!("sample_id_all comm {flags}"))
    };
    let mut attrs = vec![attr("mmap mmap2")];
    attrs.extend(requests.then(|| attr("mmap mmap2 build_id")));
    let mut scribe = Scribe::new(big, attrs[0].clone(), Stamp::SOME);
    for (at, (id, identity)) in mappings.iter().enumerate() {
        scribe.stamp.id = *id;
        scribe.kernel("MMAP2", kind::MMAP2, misc::USER | MISC_MMAP_BUILD_ID, |b| {
            let b = b
                .u32(7)
                .u32(7)
                .u64(0x10_0000 * at as u64)
                .u64(0x1000)
                .u64(0);
            let b = match identity {
                Inode(maj, min, ino) => b.u32(*maj).u32(*min).u64(*ino).u64(0),
                BuildId(id) => b.u8(id.len() as u8).u8(0).u16(0).room(id, 20),
            };
            b.u32(5).u32(2).text("/bin/true")
        });
    }
    scribe.stamp.id = 1;
    scribe.sample("SAMPLE", |sample| sample.ip = 0x10);
    let events = attrs.into_iter().zip(1..).map(|(attr, id)| Event {
        name: format!("event{id}"),
        attr,
        ids: vec![id],
    });
    let mut file = File::new(big, events.collect());
    file.data = stream(&scribe.cases);
    let buf = || Buf::new(big);
    file.set_feature(3, buf().str("host").bytes);
    file.set_feature(4, buf().str("6.18.0").bytes);
    file.set_feature(6, buf().str("x86_64").bytes);
    let described = feature_events::event_desc(buf(), &file.events).bytes;
    file.set_feature(feature_events::EVENT_DESC, described);
    file
}

/// The attribute of the event decides; without a request, only what is certainly a build ID counts.
/// Every conversion but a copy clears the flag of the other records.
#[test]
fn the_attribute_decides_about_build_ids() {
    for big in [false, true] {
        let all: Vec<_> = announced()
            .into_iter()
            .map(|(known, _)| (1, known))
            .collect();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.data");
        let original = recording(big, &all, false).bytes();
        fs::write(&path, &original).expect("a file");
        let identities = |path: &Path| -> Vec<_> {
            mappings(path).into_iter().map(|(_, known)| known).collect()
        };
        let expected: Vec<_> = announced().into_iter().map(|(known, _)| known).collect();
        assert_eq!(identities(&path), expected);
        assert_eq!(reported(&path), 1);
        let copy = convert(&path, None, vec![]).expect("it is copied");
        assert_eq!(copy.bytes(), original);

        let compress = Compress::new(RecordType::COMPRESSED, 3);
        let compressed = convert(&path, None, vec![Box::new(compress)]);
        let compressed = compressed.expect("it is compressed");
        let recovered = folder.path().join("recovered.data");
        let output = Output::create(&recovered, &path, false).expect("an output");
        let input = Input::open(&path).expect("it opens");
        let recovery = Recover::default().run(input, output.synced(false));
        let note = "4 MMAP2 records with an inode";
        let has_note = |notes: &[String]| notes.iter().any(|line| line.starts_with(note));
        assert!(has_note(&recovery.expect("it is recovered").summary.notes));
        let pipe = Some(ContainerKind::Pipe);
        let moved = convert(&path, pipe, vec![]).expect("it is converted");
        let swapped = convert(&path, None, swap()).expect("it is converted");
        assert!(
            [&compressed, &moved, &swapped]
                .iter()
                .all(|made| has_note(&made.summary.notes))
        );
        let opened = convert(
            &compressed.path(),
            None,
            vec![Box::new(Decompress::default())],
        );
        let opened = opened.expect("it is decompressed");
        for path in [recovered, moved.path(), swapped.path(), opened.path()] {
            assert_eq!(mappings(&path), {
                let as_written = |(known, is_build_id)| (is_build_id, known);
                announced().into_iter().map(as_written).collect::<Vec<_>>()
            });
            assert_eq!(reported(&path), 0);
        }
    }
}

/// Each record has an event; mappings that the tools synthesize have none.
#[test]
fn records_belong_to_events_with_and_without_build_ids() {
    let id = BuildId(vec![1, 0, 0, 0, 2, 0, 0, 0]);
    let device = Inode(8, 1, 2);
    for big in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.data");
        let all = [(0, id.clone()), (1, device.clone()), (2, id.clone())];
        fs::write(&path, recording(big, &all, true).bytes()).expect("a file");
        let expected = [
            (true, id.clone()),
            (true, device.clone()),
            (true, id.clone()),
        ];
        assert_eq!(mappings(&path), expected);
        let made = convert(&path, None, swap()).expect("it is converted");
        let expected = [
            (true, id.clone()),
            (false, device.clone()),
            (true, id.clone()),
        ];
        assert_eq!(mappings(&made.path()), expected);
    }
}

/// Compressed records are opened if there are such records in them, also in a stream.
#[test]
fn compressed_records_lose_the_flag() {
    let all = [(1, Inode(254, 2, 0x03c5))];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    let mut file = recording(false, &all, false);
    let packed = perfdata_tests::synth::zstd::Stream::default().pack(&file.data);
    file.data = perfdata_tests::synth::record::frame(false, kind::COMPRESSED, 0, &packed);
    // Version, type, level, ratio, size of the ring buffer.
    let feature = Buf::new(false).u32s(&[1, 1, 1, 2, 0x81000]).bytes;
    file.set_feature(COMPRESSED, feature.clone());
    fs::write(&path, file.bytes()).expect("a file");
    assert_eq!(reported(&path), 1);
    let is_compressed = |path: &Path| {
        let whole = Whole::read_file(path).expect("a recording");
        let mut kinds = whole.records.iter().map(|(_, kind)| *kind);
        kinds.any(RecordType::is_compressed)
    };
    let pipe = convert(&path, Some(ContainerKind::Pipe), vec![]).expect("it is converted");
    assert_eq!(reported(&pipe.path()), 0);
    assert!(is_compressed(&pipe.path()), "they stay compressed");

    let events = file.events.iter();
    let stream = events.fold(Pipe::new(false, Magic::V2), Pipe::event);
    let mut stream = stream.feature(COMPRESSED, &feature).terminator(TERMINATOR);
    stream.bytes.extend(&file.data);
    let written = folder.path().join("perf.pipe");
    fs::write(&written, &stream.bytes).expect("a file");
    assert_eq!(reported(&written), 1);
    for (options, stays) in [
        (&["pipe2file"][..], true),
        (&["--swap-endian"], true),
        (&["--decompress"], false),
        (&["--to", "pipe", "--endian", "big"], true),
    ] {
        let made = folder.path().join("made.data");
        let said = from_stdin(&written, options, &made);
        assert!(
            said.contains("1 MMAP2 record with an inode lost the flag"),
            "{options:?}: {said}"
        );
        assert_eq!(reported(&made), 0, "{options:?}");
        assert_eq!(is_compressed(&made), stays, "{options:?}");
        fs::remove_file(&made).expect("it is there");
    }
    let copied = folder.path().join("copied.data");
    from_stdin(&written, &["convert"], &copied);
    assert_eq!(fs::read(&copied).expect("a copy"), stream.bytes);
}

/// Returns what perfconv says when it reads `input` as a stream.
fn from_stdin(input: &Path, options: &[&str], output: &Path) -> String {
    let mut cat = Command::new("cat");
    let mut cat = cat.arg(input).stdout(Stdio::piped()).spawn().expect("cat");
    let mut command = perfconv();
    command.args(options).args(["--no-sync", "-", "-o"]);
    let stream = cat.stdout.take().expect("its output");
    let said = command.arg(output).stdin(stream).output().expect("it runs");
    cat.wait().expect("cat ends");
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{options:?}: {text}");
    text
}

/// Returns the lines about mappings of user space that a perf prints.
fn shown(perf: &perf::Perf, path: &Path) -> Vec<String> {
    let mut command = perf.command();
    command
        .args(["script", "--show-mmap-events", "-i"])
        .arg(path);
    let said = perf::run(command).expect("perf runs");
    assert!(said.success(), "{perf}: {}", said.stderr);
    let lines = said.stdout.lines();
    lines
        .filter(|line| line.contains("PERF_RECORD_MMAP2") && !line.contains(" -1/0:"))
        .map(|line| {
            line.split_once("PERF_RECORD")
                .map_or(line, |(_, rest)| rest)
        })
        .map(str::to_owned)
        .collect()
}

/// A recording of perf 6.12, which aborted when it read its own records, is recovered so that every
/// perf shows the devices and names of its mappings.
#[test]
fn perf_reads_the_recovered_mappings() {
    let path = fixtures_dir().join("defects/mmap2-inode-as-build-id.data");
    let bad = mappings(&path);
    // The vDSO has no build ID that the other recorder could request.
    let flags: Vec<_> = bad.iter().map(|(flag, _)| *flag).collect();
    assert_eq!(flags, [true, true, false, true]);
    assert!(
        bad.iter().all(|(_, known)| matches!(known, Inode(..))),
        "{bad:?}"
    );
    assert_eq!(reported(&path), 1);
    let folder = tempfile::tempdir().expect("a folder");
    let recovered = folder.path().join("recovered.data");
    let output = Output::create(&recovered, &path, false).expect("an output");
    let input = Input::open(&path).expect("it opens");
    let recovery = Recover::default().run(input, output.synced(false));
    recovery.expect("it is recovered");
    let good: Vec<_> = bad.into_iter().map(|(_, known)| (false, known)).collect();
    assert_eq!(mappings(&recovered), good);
    assert_eq!(reported(&recovered), 0);
    // Older perfs refuse the longer attributes of perf 6.12.
    let first = "6.12".parse().expect("a version");
    let is_judge = |perf: &&perf::Perf| perf.endian == Endian::Little && perf.version >= first;
    let perfs = || perf::all().iter().filter(is_judge);
    if perfs().count() == 0 {
        return skipped::note("perf");
    }
    for perf in perfs() {
        let lines = shown(perf, &recovered);
        assert_eq!(lines.len(), good.len(), "{perf}");
        for (line, (_, known)) in lines.iter().zip(&good) {
            let Inode(maj, min, ino) = known else {
                panic!("{known:?}");
            };
            let device = format!("{maj:02x}:{min:02x} {ino} ");
            assert!(line.contains(&device), "{perf}: {device}: {line}");
        }
    }
}
