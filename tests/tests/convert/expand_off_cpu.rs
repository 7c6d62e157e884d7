//! Off-CPU samples are expanded: every part of the RAW data becomes a part of the sample.

use std::path::Path;

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::Endian;
use perfdata_core::attr::SampleType;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType, Sample};
use perfdata_inject::expand_off_cpu::ExpandOffCpu;
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::off_cpu::{IDS, SAMPLES, made, raw};
use perfdata_tests::recordings::fixtures;

/// Returns the samples of the off-CPU event, and the parts of its samples in the attribute and in
/// EVENT_DESC.
fn read(path: &Path) -> (Vec<Sample>, SampleType, SampleType) {
    let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
    let plain = convert(path, Some(ContainerKind::File), plain).expect("plain records");
    let whole = Whole::read_file(&plain.path()).expect("a recording");
    let events = &whole.recording.events;
    let sample = |(at, _): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0).ok()?;
        let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a record");
        match record.body {
            Body::Sample(sample) if sample.identifier == Some(IDS[0]) => Some(sample),
            _ => None,
        }
    };
    let samples = whole.records.iter().filter_map(sample).collect();
    let parts = events.get(1).expect("an event").attr.sample_type;
    let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = whole.recording.feature(FeatureId::EVENT_DESC)
    else {
        panic!("no EVENT_DESC");
    };
    (samples, parts, descs.events[1].attr.0.sample_type)
}

fn check(path: &Path, what: &str) {
    let (samples, parts, described) = read(path);
    assert!(
        !parts.has(SampleType::RAW) && parts.has(SampleType::CALLCHAIN),
        "{what}"
    );
    assert_eq!(parts, described, "{what}");
    assert_eq!(samples.len(), SAMPLES.len(), "{what}");
    for (sample, (time, pid, tid, period, chain, cgroup)) in samples.iter().zip(SAMPLES) {
        let task = sample.tid.as_ref().map(|task| (task.pid, task.tid));
        assert_eq!(
            (sample.time, task),
            (Some(time), Some((pid, tid))),
            "{what}"
        );
        assert_eq!(
            (sample.period, sample.ip),
            (Some(period), Some(chain[1])),
            "{what}"
        );
        assert_eq!(
            sample.callchain.as_deref().map(Vec::as_slice),
            Some(chain),
            "{what}"
        );
        assert_eq!(
            (sample.cgroup, &sample.raw),
            (Some(cgroup), &None),
            "{what}"
        );
    }
}

/// From files, streams and compressed records; before and after the byte order changes.
#[test]
fn every_part_is_expanded() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    let expand = || Box::new(ExpandOffCpu::new()) as Box<dyn Stage>;
    for endian in [Endian::Little, Endian::Big] {
        made(&input, endian, |told| raw(endian, told));
        let packed: Vec<Box<dyn Stage>> = vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1))];
        for (before, kind) in [
            (Vec::new(), ContainerKind::File),
            (Vec::new(), ContainerKind::Pipe),
            (packed, ContainerKind::File),
        ] {
            let from = convert(&input, Some(kind), before).expect("it is converted");
            let what = format!("{endian:?} {kind}");
            let one = convert(&from.path(), None, vec![expand()]).expect("it is converted");
            check(&one.path(), &what);
            assert_eq!(one.summary.notes, ["3 off-CPU samples expanded"]);
            let swap = Box::new(Swap::new(Target::Other, Unknown::Error));
            let both = convert(&from.path(), None, vec![expand(), swap]);
            check(&both.expect("it is converted").path(), &what);
            // Nothing is left to expand.
            let again = convert(&one.path(), None, vec![expand()]).expect("it is converted");
            assert_eq!(again.bytes(), one.bytes(), "{what}");
        }
    }
}

/// The length of the callchain exceeds the data.
#[test]
fn damaged_samples_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.data");
    for len in [0, 20, 28, 36] {
        made(&input, Endian::Little, |told| {
            raw(Endian::Little, told)[..len].to_vec()
        });
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(ExpandOffCpu::new())];
        let error = convert(&input, None, stages)
            .map(|_| ())
            .expect_err("an error");
        assert!(error.to_string().contains("field raw"), "{error}");
    }
}

/// Other recordings stay the same, also those with other bpf-output events.
#[test]
fn other_events_do_not_change() {
    for recording in fixtures() {
        let is_file = recording
            .form
            .is_some_and(|form| form.container == perfdata_tests::recordings::Container::File);
        if !is_file {
            continue;
        }
        let stages: Vec<Box<dyn Stage>> = vec![Box::new(ExpandOffCpu::new())];
        let result = convert(&recording.path, None, stages).expect("it is converted");
        let bytes = std::fs::read(&recording.path).expect("a recording");
        assert!(result.bytes() == bytes, "{}", recording.path.display());
    }
}
