//! Deferred callchains are merged into the samples for a reader.

use std::collections::HashSet;
use std::path::Path;
use std::process::Stdio;

use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{
    Body, CallchainContext, CallchainDeferred, CpuMode, Mmap, RawRecord, Record, RecordType,
    Sample, SampleId, Tid,
};
use perfdata_core::wire::Text;
use perfdata_core::{Endian as Order, Event, Recording as Model};
use perfdata_inject::merge_deferred::MergeDeferred;
use perfdata_tests::convert::{Whole, convert, perfconv};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{self, Endian, PerfVersion};
use perfdata_tests::skipped;
use perfdata_write::{FilePlan, FileWriter};

const KERNEL: u64 = CallchainContext::KERNEL.0;
const USER: u64 = CallchainContext::USER.0;
const DEFERRED: u64 = CallchainContext::USER_DEFERRED.0;

/// More return addresses than fit into a record in addition to the kernel's part.
const MANY: usize = 8_185;

/// A sample of a thread, or the record that it waits for, or a mapping of the process.
enum Told {
    Sample(u32, CpuMode, Vec<u64>),
    Deferred(u32, u64, Vec<u64>),
    Map(u64, u64, &'static str),
}

/// Returns a recording with these records.
fn made(folder: &Path, order: Order, told: &[Told]) -> std::path::PathBuf {
    let flags = ["sample_id_all", "defer_callchain", "defer_output"];
    let flags = flags
        .iter()
        .try_fold(AttrFlags::default(), |flags, name| flags.with(name, 1))
        .expect("flags");
    let parts = SampleType::IP.0 | SampleType::TID.0 | SampleType::TIME.0 | SampleType::CALLCHAIN.0;
    let attr = Attr {
        kind: EventType::SOFTWARE,
        flags,
        sample_type: SampleType(parts),
        size: Attr::MIN_SIZE,
        ..Attr::default()
    };
    let mut recording = Model::new(order);
    recording.events.push(Event { attr, ids: vec![7] });
    let path = folder.join("deferred.data");
    let file = std::fs::File::create(&path).expect("a file");
    let gaps: Vec<u8> = Vec::new();
    let mut writer =
        FileWriter::begin(file, FilePlan::standard(), &recording, &gaps).expect("a writer");
    for (time, told) in (1_000..).zip(told) {
        let (tid, kind, misc, body) = match told {
            Told::Sample(tid, mode, chain) => {
                let sample = Sample {
                    ip: Some(0x1234),
                    tid: Some(Tid { pid: 1, tid: *tid }),
                    time: Some(time),
                    callchain: Some(chain.clone().into()),
                    ..Sample::default()
                };
                (*tid, RecordType::SAMPLE, mode.0, Body::Sample(sample))
            }
            Told::Deferred(tid, cookie, chain) => {
                let body = CallchainDeferred {
                    cookie: *cookie,
                    callchain: chain.clone().into(),
                };
                (
                    *tid,
                    RecordType::CALLCHAIN_DEFERRED,
                    CpuMode::USER.0,
                    Body::CallchainDeferred(body),
                )
            }
            Told::Map(addr, len, name) => {
                let body = Mmap {
                    pid: 1,
                    tid: 5,
                    addr: *addr,
                    len: *len,
                    pgoff: 0,
                    filename: Text::padded(name.as_bytes(), 8),
                };
                (5, RecordType::MMAP, CpuMode::USER.0, Body::Mmap(body))
            }
        };
        let trailer = SampleId {
            tid: Some(Tid { pid: 1, tid }),
            time: Some(time),
            ..no_parts()
        };
        let sample_id = (kind != RecordType::SAMPLE).then_some(trailer);
        writer
            .write(&Record {
                kind,
                misc,
                body,
                tail: Vec::new(),
                sample_id,
            })
            .expect("it is written");
    }
    writer.finish(&recording).expect("a file");
    path
}

fn no_parts() -> SampleId {
    SampleId {
        tid: None,
        time: None,
        id: None,
        stream_id: None,
        cpu: None,
        identifier: None,
    }
}

fn records(path: &Path) -> (Model, Vec<Record>) {
    let whole = Whole::read_file(path).expect("a recording");
    let decode = |(at, _): &(usize, RecordType)| {
        let raw =
            RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).expect("a record");
        Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record")
    };
    let records = whole.records.iter().map(decode).collect();
    (whole.recording, records)
}

fn chains(path: &Path) -> Vec<Vec<u64>> {
    let chain = |record: Record| match record.body {
        Body::Sample(sample) => sample.callchain.map(|chain| chain.to_vec()),
        _ => None,
    };
    records(path).1.into_iter().filter_map(chain).collect()
}

/// All cases for a sample, in all containers and both byte orders, and in compressed records.
#[test]
fn samples_get_their_callchains() {
    let many: Vec<u64> = (1..=MANY as u64).collect();
    let waits = |cookie| vec![KERNEL, 0xf000, DEFERRED, cookie];
    let told = [
        Told::Deferred(5, 40, vec![0x10, 0x20]),
        Told::Sample(5, CpuMode::KERNEL, waits(40)),
        Told::Sample(5, CpuMode::KERNEL, waits(42)),
        Told::Sample(6, CpuMode::KERNEL, waits(42)),
        Told::Sample(5, CpuMode::KERNEL, waits(42)),
        Told::Deferred(6, 42, vec![0x60]),
        Told::Deferred(5, 42, vec![0x50]),
        Told::Deferred(5, 42, vec![0x51]),
        Told::Sample(5, CpuMode::KERNEL, waits(99)),
        Told::Sample(5, CpuMode::USER, vec![DEFERRED, 98]),
        Told::Sample(5, CpuMode::KERNEL, vec![KERNEL, 0xf000]),
        Told::Sample(5, CpuMode::KERNEL, waits(44)),
        Told::Deferred(5, 44, many.clone()),
        Told::Deferred(5, 1000, vec![1]),
    ];
    let whole = |user: &[u64]| [&[KERNEL, 0xf000, USER], user].concat();
    let mut expected = vec![
        whole(&[0x10, 0x20]),
        whole(&[0x50]),
        whole(&[0x60]),
        whole(&[0x50]),
        vec![KERNEL, 0xf000],
        vec![USER, 0x1234],
        vec![KERNEL, 0xf000],
    ];
    // 8 bytes of header, IP, TID, TIME, and the number of words.
    let room = (65_528 - 40) / 8 - 3;
    assert!(many.len() > room);
    expected.push(whole(&many[..room]));

    let folder = tempfile::tempdir().expect("a folder");
    for order in [Order::Little, Order::Big] {
        let path = made(folder.path(), order, &told);
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let same = convert(&path, Some(to), Vec::new()).expect("it is converted");
            let packed = vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1)) as _];
            let packed = convert(&path, Some(to), packed).expect("it is compressed");
            for input in [same.path(), packed.path()] {
                let merged = convert(&input, None, vec![Box::new(MergeDeferred::new())])
                    .expect("it is merged");
                let plain = convert(&merged.path(), None, vec![Box::new(Decompress::default())])
                    .expect("it is opened");
                assert_eq!(chains(&plain.path()), expected, "{order:?} {to}");
                let (recording, records) = records(&plain.path());
                let flags = recording.events[0].attr.flags;
                assert_eq!(
                    (
                        flags.defer_callchain(),
                        flags.defer_output(),
                        flags.sample_id_all()
                    ),
                    (0, 0, 1)
                );
                assert!(
                    records
                        .iter()
                        .all(|record| record.kind != RecordType::CALLCHAIN_DEFERRED)
                );
                let stages: Vec<Box<dyn perfdata_convert::pipeline::Stage>> = vec![
                    Box::new(MergeDeferred::new()),
                    Box::new(Decompress::default()),
                    Box::new(Swap::new(Target::Other, Unknown::Error)),
                ];
                let swapped = convert(&input, None, stages).expect("it is converted");
                assert_eq!(chains(&swapped.path()), expected, "{order:?} {to}");
            }
        }
    }
}

/// A mapping between a sample and its callchain is known at the time of the sample, if a frame
/// needs it.
#[test]
fn deferred_frames_are_mapped_at_the_time_of_their_sample() {
    let waits = |cookie| vec![KERNEL, 0xf000, DEFERRED, cookie];
    let told = [
        Told::Map(0x1000, 0x1000, "/bin/before"),
        Told::Sample(5, CpuMode::KERNEL, waits(40)),
        Told::Sample(6, CpuMode::KERNEL, waits(41)),
        Told::Map(0x2000, 0x1000, "/bin/needed"),
        Told::Map(0x3000, 0x1000, "/bin/other"),
        Told::Sample(5, CpuMode::KERNEL, waits(40)),
        Told::Deferred(5, 40, vec![0x2010, 0x1010]),
        Told::Deferred(6, 41, vec![0x1020]),
        Told::Sample(5, CpuMode::KERNEL, waits(42)),
        Told::Deferred(5, 42, vec![0x3010]),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for order in [Order::Little, Order::Big] {
        let path = made(folder.path(), order, &told);
        let merged = convert(&path, None, vec![Box::new(MergeDeferred::new())]);
        let merged = merged.expect("it is merged");
        let shown = |record: &Record| {
            let time = |id: &Option<SampleId>| id.as_ref().and_then(|id| id.time);
            match &record.body {
                Body::Mmap(map) => Some((time(&record.sample_id), map.filename.to_string())),
                Body::Sample(sample) => Some((sample.time, "sample".to_owned())),
                _ => None,
            }
        };
        let records: Vec<_> = records(&merged.path()).1.iter().filter_map(shown).collect();
        let expected = [
            (1_000, "/bin/before"),
            (1_001, "/bin/needed"),
            (1_001, "sample"),
            (1_002, "sample"),
            (1_003, "/bin/needed"),
            (1_004, "/bin/other"),
            (1_005, "sample"),
            (1_008, "sample"),
        ];
        assert_eq!(
            records,
            expected.map(|(time, name)| (Some(time), name.to_owned()))
        );
        let notes = merged.summary.notes.join("\n");
        assert!(
            notes.contains("1 mapping copied to before samples"),
            "{notes}"
        );
    }
}

/// The frames of each sample are in the same objects for perf 6.12 after the conversion as for
/// perf 7.2 before it. In this recording, the first sample after `exec` precedes the mappings.
#[test]
fn older_perfs_find_the_objects_of_deferred_frames() {
    let (Some(newer), Some(older)) = (little(7, 2), little(6, 12)) else {
        return;
    };
    let path = recordings::fixture("7.2-x86_64-file-defer-a").path;
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("old.data");
    let mut command = perfconv();
    command
        .args(["-q", "--compat", "6.12"])
        .arg(&path)
        .arg("-o")
        .arg(&output);
    let said = command.output().expect("perfconv runs");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    let objects = |perf: &Perf, path: &Path| {
        let mut command = perf.command();
        command
            .args([
                "script",
                "--no-inline",
                "--ns",
                "-F",
                "tid,time,ip,dso",
                "-i",
            ])
            .arg(path);
        let said = perf::run(command).expect("perf starts");
        let object = |line: &str| {
            line.trim()
                .split_once(' ')
                .map_or("", |(_, rest)| rest)
                .to_owned()
        };
        let samples = said.stdout.split("\n\n");
        let mut samples: Vec<Vec<String>> = samples
            .map(|text| text.lines().map(object).collect())
            .collect();
        samples.sort();
        samples
    };
    let (before, after) = (objects(newer, &path), objects(older, &output));
    assert!(before.len() > 100 && before == after);
}

/// Recordings without deferred callchains remain unchanged.
#[test]
fn other_recordings_stay_as_they_are() {
    for name in [
        "7.2-x86_64-file-g",
        "7.2-x86_64-pipe-default",
        "6.1-s390x-file-z",
    ] {
        let path = recordings::fixture(name).path;
        for stage in [MergeDeferred::new(), MergeDeferred::where_possible()] {
            let made = convert(&path, None, vec![Box::new(stage)]).expect("it is converted");
            assert!(
                made.bytes() == std::fs::read(&path).expect("a fixture"),
                "{name}"
            );
        }
    }
}

const FIXTURES: [&str; 3] = [
    "7.2-x86_64-file-defer",
    "7.2-x86_64-file-defer-a",
    "7.2-x86_64-file-defer-tp",
];

fn little(major: u16, minor: u16) -> Option<&'static Perf> {
    let wanted = PerfVersion { major, minor };
    let found = perf::all()
        .iter()
        .find(|perf| perf.version == wanted && perf.endian == Endian::Little);
    if found.is_none() {
        skipped::note(format_args!("perf {wanted}"));
    }
    found
}

/// Returns the samples as perf prints them, sorted, because perf delivers waiting samples in
/// another order.
fn printed(perf: &Perf, path: &Path) -> Vec<String> {
    let mut command = perf.command();
    command
        .args([
            "script",
            "--no-inline",
            "--ns",
            "-F",
            "tid,time,event,ip",
            "-i",
        ])
        .arg(path);
    let said = perf::run(command).expect("perf starts");
    assert!(said.success(), "{}", said.stderr);
    let mut samples: Vec<String> = said
        .stdout
        .split("\n\n")
        .map(|text| text.trim().to_owned())
        .collect();
    samples.retain(|sample| !sample.is_empty());
    samples.sort();
    samples
}

/// perf 7.2 shows the same chains before and after the conversion, and perf 6.1 can show them only
/// after it.
#[test]
fn perf_shows_the_same_chains() {
    let Some(newer) = little(7, 2) else { return };
    for name in FIXTURES {
        let path = recordings::fixture(name).path;
        let merged =
            convert(&path, None, vec![Box::new(MergeDeferred::new())]).expect("it is merged");
        let (before, after) = (printed(newer, &path), printed(newer, &merged.path()));
        assert_eq!(before.len(), after.len(), "{name}");

        // perf interprets the cookie as an address if the record is missing.
        let (_, records) = records(&path);
        let key = |record: &Record| match &record.body {
            Body::CallchainDeferred(deferred) => {
                let tid = record
                    .sample_id
                    .as_ref()
                    .and_then(|trailer| trailer.tid.as_ref())?
                    .tid;
                Some((tid, deferred.cookie))
            }
            _ => None,
        };
        let there: HashSet<(u32, u64)> = records.iter().filter_map(key).collect();
        let waits = |record: &&Record| match &record.body {
            Body::Sample(sample) => match sample.callchain.as_deref().map(|chain| &chain[..]) {
                Some([.., DEFERRED, cookie]) => {
                    !there.contains(&(sample.tid.as_ref().expect("it has one").tid, *cookie))
                }
                _ => false,
            },
            _ => false,
        };
        let missing = records.iter().filter(waits).count();
        let kept: HashSet<&String> = after.iter().collect();
        let other = before
            .iter()
            .filter(|sample| !kept.contains(sample))
            .count();
        assert!(
            other <= missing,
            "{name}: {other} samples differ, {missing} have no user part"
        );

        let Some(older) = little(6, 1) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("old.data");
        let mut command = perfconv();
        command
            .args(["--compat", "6.1"])
            .arg(&path)
            .arg("-o")
            .arg(&output);
        let said = command.output().expect("perfconv runs");
        assert!(
            said.status.success(),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
        // perf 6.1 prints offsets in files: these are equal to the addresses modulo the page size.
        let frames = |samples: &[String]| {
            let place = |frame: &str| {
                frame
                    .get(frame.len().saturating_sub(3)..)
                    .map(str::to_owned)
            };
            let frames =
                |sample: &String| sample.lines().skip(1).filter_map(place).collect::<Vec<_>>();
            let mut frames: Vec<Vec<String>> = samples.iter().map(frames).collect();
            frames.sort();
            frames
        };
        assert!(frames(&printed(older, &output)) == frames(&after), "{name}");
    }
}

/// Merging requires storing a stream, which `--compat` does not do on its own.
#[test]
fn streams_are_stored_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |options: &[&str]| {
        let mut command = perfconv();
        command
            .args(["convert", "-q", "-", "-o", "out", "-f"])
            .args(options)
            .current_dir(folder.path());
        let (read, mut write) = std::io::pipe().expect("a pipe");
        let stream = convert(
            &recordings::fixture(FIXTURES[0]).path,
            Some(ContainerKind::Pipe),
            Vec::new(),
        );
        let stream = stream.expect("it is converted").bytes();
        let mut child = command
            .stdin(read)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("perfconv runs");
        drop(command);
        // A command that refuses the stream does not read all of it.
        let _ = std::io::Write::write_all(&mut write, &stream);
        drop(write);
        let mut said = String::new();
        let stderr = child.stderr.as_mut().expect("a pipe");
        std::io::Read::read_to_string(stderr, &mut said).expect("text");
        (child.wait().expect("it ends").code(), said)
    };
    let (status, said) = run(&["--compat", "6.1"]);
    assert!(
        status == Some(1)
            && said.contains("CALLCHAIN_DEFERRED")
            && said.contains("write it to a file"),
        "{said}"
    );
    assert!(!folder.path().join("out").exists());
    let (status, said) = run(&["--merge-deferred", "--compat", "6.1"]);
    assert_eq!(status, Some(0), "{said}");
    let out = folder.path().join("out");
    assert!(chains(&out).iter().all(|chain| !chain.contains(&DEFERRED)));
    assert!(chains(&out).iter().any(|chain| chain.contains(&USER)));
}
