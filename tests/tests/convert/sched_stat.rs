//! sched_stat samples get the stacks of sched_switch samples: which records remain, with which
//! period and time.

use std::fs::File;
use std::path::Path;

use perfdata_convert::error::Error;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType};
use perfdata_core::feature::tracing::TracingData;
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample, Tid};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian, Event, Recording as Model};
use perfdata_edit::sort::Sort;
use perfdata_inject::sched_stat::SchedStat;
use perfdata_tests::convert::{Converted, Whole, convert};
use perfdata_tests::synth::tracing::{Tracepoint, Version, data_of};
use perfdata_write::{FilePlan, FileWriter};
use tempfile::TempDir;

/// The parts of every sample.
const PARTS: u64 = SampleType::IP.0
    | SampleType::TID.0
    | SampleType::TIME.0
    | SampleType::ID.0
    | SampleType::PERIOD.0
    | SampleType::RAW.0;

/// The tracepoints: the last one passes.
const NAMES: [&str; 4] = [
    "sched_switch",
    "sched_process_exit",
    "sched_stat_sleep",
    "sched_wakeup",
];
const SWITCH: usize = 0;
const EXIT: usize = 1;
const STAT: usize = 2;
const WAKEUP: usize = 3;

/// The number of the first tracepoint.
const FIRST: u16 = 300;

/// A sample: time, event, thread, address, the number in the raw data, and the period.
type Told = (u64, usize, u32, u64, u32, u64);

const TOLD: [Told; 10] = [
    (10, SWITCH, 1, 0xa, 0, 1),
    (20, SWITCH, 2, 0xb, 0, 1),
    (30, STAT, 9, 0xc, 1, 500),
    (40, STAT, 9, 0xc, 1, 7),
    (45, WAKEUP, 9, 0xd, 1, 1),
    (50, EXIT, 1, 0xe, 1, 1),
    (60, STAT, 9, 0xc, 1, 9),
    (70, SWITCH, 2, 0xf, 0, 1),
    (80, STAT, 2, 0xc, 2, u64::MAX),
    (90, STAT, 9, 0xc, 3, 9),
];

const EXPECTED: [&str; 4] = [
    "30 id 5 tid 1 ip 0xa period 500",
    "40 id 5 tid 1 ip 0xa period 7",
    "45 id 8 tid 9 ip 0xd period 1",
    "80 id 5 tid 2 ip 0xf period 18446744073709551615",
];

/// Returns tracing data in which each tracepoint has a field `pid`.
fn tracing(endian: Endian) -> TracingData {
    let big = endian == Endian::Big;
    let tracepoints = [0, 1, 2, 3].map(|at| Tracepoint {
        system: "sched",
        name: NAMES[at],
        id: FIRST + at as u16,
        value: "pid_t",
    });
    let bytes = data_of(Version::V0_6, big, &tracepoints);
    let decoded = TracingData::decode(&bytes, endian, DecodeContext::default());
    let mut data = decoded.expect("tracing data").0;
    (0..tracepoints.len()).for_each(|at| rename(&mut data, at, "value;", "pid;"));
    data
}

/// Replaces a part of the format of a tracepoint.
fn rename(data: &mut TracingData, at: usize, from: &str, to: &str) {
    let file = &mut data.body.systems[at].formats[0].0;
    let text = String::from_utf8(file.to_vec()).expect("text");
    assert!(text.contains(from), "{text}");
    *file = text.replace(from, to).into_bytes().into();
}

/// Writes a recording with these samples; `change` changes the model before.
fn made(path: &Path, endian: Endian, told: &[Told], change: impl FnOnce(&mut Model)) {
    let mut recording = Model::new(endian);
    for at in 0..NAMES.len() {
        let attr = Attr {
            kind: EventType::TRACEPOINT,
            config: u64::from(FIRST) + at as u64,
            flags: AttrFlags::default().with_sample_id_all(true),
            sample_type: SampleType(PARTS),
            size: 64,
            ..Attr::default()
        };
        let ids = vec![5 + at as u64];
        recording.events.push(Event { attr, ids });
    }
    let data = Feature::TracingData(tracing(endian));
    recording
        .set_feature(FeatureId::TRACING_DATA, data)
        .expect("tracing data");
    change(&mut recording);
    let file = File::create(path).expect("a file");
    let gaps: Vec<u8> = Vec::new();
    let mut writer =
        FileWriter::begin(file, FilePlan::standard(), &recording, &gaps).expect("a writer");
    for &(time, event, tid, ip, pid, period) in told {
        let number = match endian {
            Endian::Little => pid.to_le_bytes(),
            Endian::Big => pid.to_be_bytes(),
        };
        let raw = [&[0; 8], &number[..]].concat();
        let parts = recording
            .events
            .get(event)
            .expect("an event")
            .attr
            .sample_type;
        let body = Sample {
            ip: Some(ip),
            stream_id: parts.has(SampleType::STREAM_ID).then_some(0),
            tid: Some(Tid { pid: tid, tid }),
            time: Some(time),
            id: Some(5 + event as u64),
            period: parts.has(SampleType::PERIOD).then_some(period),
            raw: Some(raw.into()),
            ..Sample::default()
        };
        writer
            .write(&Record::new(Body::Sample(body)))
            .expect("it is written");
    }
    writer.finish(&recording).expect("a file");
}

fn stages() -> Vec<Box<dyn Stage>> {
    vec![Box::new(Sort::new()), Box::new(SchedStat::new())]
}

/// Returns the samples as text.
fn shown(path: &Path) -> Vec<String> {
    let whole = Whole::read_file(path).expect("a recording");
    let events = &whole.recording.events;
    let show = |(at, _): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).ok()?;
        let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a record");
        let Body::Sample(sample) = record.body else {
            return None;
        };
        Some(format!(
            "{} id {} tid {} ip {:#x} period {}",
            sample.time?, sample.id?, sample.tid?.tid, sample.ip?, sample.period?
        ))
    };
    whole.records.iter().filter_map(show).collect()
}

/// From files, streams and compressed records of both byte orders. The tracing data contain the
/// names of the events.
#[test]
fn stacks_of_switches_have_the_durations() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    for endian in [Endian::Little, Endian::Big] {
        made(&input, endian, &TOLD, |_| ());
        let result = convert(&input, None, stages()).expect("it is converted");
        assert_eq!(shown(&result.path()), EXPECTED, "{endian:?}");
        assert_eq!(
            result.summary.notes.last().expect("a note"),
            "3 sched_stat samples with the stack of sched:sched_switch; 2 samples without one dropped"
        );
        let packed: Vec<Box<dyn Stage>> = vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1))];
        for (stages_before, kind) in [
            (Vec::new(), ContainerKind::Pipe),
            (packed, ContainerKind::File),
        ] {
            let from = convert(&input, Some(kind), stages_before).expect("it is converted");
            let result = convert(&from.path(), None, stages()).expect("it is converted");
            let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
            let plain = convert(&result.path(), None, plain).expect("plain records");
            assert_eq!(shown(&plain.path()), EXPECTED, "{endian:?} {kind}");
        }
    }
}

/// Samples of unordered streams meet in the order of time.
#[test]
fn records_are_sorted_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let mut told = TOLD;
    told.swap(0, 2);
    told.swap(5, 6);
    made(&input, Endian::Little, &told, |_| ());
    let result = convert(&input, None, stages()).expect("it is converted");
    assert_eq!(shown(&result.path()), EXPECTED);
}

fn refused(change: impl FnOnce(&mut Model)) -> String {
    let folder: TempDir = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    made(&input, Endian::Little, &TOLD, change);
    let result: Result<Converted, Error> = convert(&input, None, stages());
    result.map(|_| ()).expect_err("a refusal").to_string()
}

#[test]
fn incomplete_recordings_are_refused() {
    let without = |at: usize| {
        move |recording: &mut Model| {
            let mut events = std::mem::take(&mut recording.events).into_vec();
            events[at].attr.sample_type.0 &= !SampleType::PERIOD.0;
            events
                .into_iter()
                .for_each(|event| recording.events.push(event));
        }
    };
    assert_eq!(
        refused(without(STAT)),
        "samples of sched:sched_stat_sleep lack PERIOD, so that sched_stat events cannot be merged"
    );
    assert!(refused(without(SWITCH)).starts_with("samples of sched:sched_switch lack PERIOD"));
    let error = refused(|recording| {
        let mut events = std::mem::take(&mut recording.events).into_vec();
        events[STAT].attr.sample_type.0 |= SampleType::STREAM_ID.0;
        events
            .into_iter()
            .for_each(|event| recording.events.push(event));
    });
    assert!(error.contains("different sample types"), "{error}");
    let error = refused(|recording| {
        let mut data = tracing(Endian::Little);
        rename(&mut data, STAT, "pid_t pid;", "pid_t other;");
        recording
            .set_feature(FeatureId::TRACING_DATA, Feature::TracingData(data))
            .expect("tracing data");
    });
    assert!(error.contains("with a field pid"), "{error}");
}
