//! User-defined conversions: a stage that does not handle payloads, compressed records and sections
//! works correctly.

use std::fs;
use std::path::Path;

use perfdata_convert::error::Result;
use perfdata_convert::io::Input;
use perfdata_convert::pipeline::{CompressedRecords, Link, Requirements, Stage};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::verify::Report;
use perfdata_core::Recording as Model;
use perfdata_core::feature::{Compression, Feature, FeatureId, SampleTime, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::wire::HeaderString;
use perfdata_tests::convert::{Converted, Whole, convert};
use perfdata_tests::recordings::{self, Container, Form, Recording};
use perfdata_tests::synth;

/// Discards the records of one type, except for one of every `keep`.
struct Without {
    kind: RecordType,
    keep: Option<usize>,
    seen: usize,
}

impl Stage for Without {
    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        assert!(!record.kind.is_compressed(), "it gets plain records");
        self.seen += usize::from(record.kind == self.kind);
        let kept = self.keep.is_some_and(|keep| self.seen.is_multiple_of(keep));
        if record.kind == self.kind && !kept {
            Ok(())
        } else {
            next.record(record)
        }
    }
}

fn without(kind: RecordType) -> Box<dyn Stage> {
    Box::new(Without {
        kind,
        keep: None,
        seen: 0,
    })
}

fn without_most(kind: RecordType, keep: usize) -> Box<dyn Stage> {
    Box::new(Without {
        kind,
        keep: Some(keep),
        seen: 0,
    })
}

/// Forwards all items unchanged.
struct Nothing;

impl Stage for Nothing {}

fn made(
    input: &Path,
    to: Option<ContainerKind>,
    stages: Vec<Box<dyn Stage>>,
) -> (Converted, Whole) {
    let made =
        convert(input, to, stages).unwrap_or_else(|error| panic!("{}: {error}", input.display()));
    let whole = Whole::read(made.bytes()).expect("the output is a recording");
    (made, whole)
}

fn plain(input: &Path) -> Whole {
    made(input, None, vec![Box::new(Decompress::default())]).1
}

fn check_clean(made: &Converted, name: &str) {
    let report = Input::open(&made.path())
        .and_then(Report::of)
        .expect("it can be verified");
    assert!(report.is_clean(), "{name}: {}", report.text());
}

fn is_clean(recording: &Recording) -> bool {
    Input::open(&recording.path)
        .and_then(Report::of)
        .is_ok_and(|report| report.is_clean())
}

fn count(whole: &Whole, kind: RecordType) -> usize {
    whole
        .records
        .iter()
        .filter(|(_, other)| *other == kind)
        .count()
}

/// Returns the bytes of the records with their payloads, except for those of one type.
fn others(whole: &Whole, but: RecordType) -> Vec<u8> {
    let records = whole.records_with_payloads();
    let kept = records.filter(|(kind, _)| *kind != but);
    kept.flat_map(|(_, bytes)| bytes.to_vec()).collect()
}

fn singles(want: impl Fn(&Whole) -> bool) -> Vec<(Recording, Whole)> {
    let mut all = recordings::fixtures();
    all.extend(recordings::corpus());
    let is_single = |form| {
        matches!(
            form,
            Some(Form {
                container: Container::File | Container::Pipe,
                ..
            })
        )
    };
    all.retain(|recording| is_single(recording.form) && !recording.is_damaged());
    let read = |recording: Recording| Some((Whole::read_file(&recording.path).ok()?, recording));
    all.into_iter()
        .filter_map(read)
        .filter(|(whole, _)| want(whole))
        .map(|(whole, name)| (name, whole))
        .collect()
}

fn compression(model: &Model) -> Option<Compression> {
    match model.feature(FeatureId::COMPRESSED) {
        Some(Ok(Section {
            value: Feature::Compressed(params),
            ..
        })) => Some(params),
        _ => None,
    }
}

/// The stage on the front page of the library, with the records that have a payload.
#[test]
fn a_payload_goes_with_its_record() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for big in [false, true] {
        let path = folder.path().join(format!("pipe-{big}"));
        fs::write(&path, synth::pipe::with_aux(big)).expect("a temporary file");
        let (file, _) = made(&path, Some(ContainerKind::File), vec![]);
        for path in [path, file.path()] {
            check_payloads(&path, &Whole::read_file(&path).expect("a recording"));
        }
    }
    for (recording, whole) in singles(|whole| count(whole, RecordType::AUXTRACE) > 0) {
        if is_clean(&recording) {
            check_payloads(&recording.path, &whole);
        }
    }
}

fn check_payloads(path: &Path, whole: &Whole) {
    let name = path.display().to_string();
    let before = count(whole, RecordType::AUXTRACE);
    assert!(before > 0, "{name}");
    for to in [ContainerKind::File, ContainerKind::Pipe] {
        let (made, none) = made(path, Some(to), vec![without(RecordType::AUXTRACE)]);
        check_clean(&made, &name);
        assert_eq!(count(&none, RecordType::AUXTRACE), 0, "{name}");
        if whole.container_layout.container() == to {
            assert!(others(whole, RecordType::AUXTRACE) == none.stream, "{name}");
        }
        let (made, some) = self::made(path, Some(to), vec![without_most(RecordType::AUXTRACE, 2)]);
        check_clean(&made, &name);
        assert_eq!(count(&some, RecordType::AUXTRACE), before / 2, "{name}");
        let index = some
            .recording
            .feature(FeatureId::AUXTRACE)
            .map(|section| section.expect("an index").value);
        if let (ContainerKind::File, Some(Feature::AuxtraceIndex(index))) = (to, index) {
            assert_eq!(index.len(), before / 2, "{name}");
        }
    }
}

#[test]
fn compressed_records_are_opened_and_compressed_again() {
    let mut tested = 0;
    for (recording, whole) in
        singles(|whole| whole.records.iter().any(|(_, kind)| kind.is_compressed()))
    {
        let name = &recording.name;
        let before = plain(&recording.path);
        // A stage that changes nothing results in a copy.
        let (made, after) = made(&recording.path, None, vec![Box::new(Nothing)]);
        assert!(
            after.records.iter().any(|(_, kind)| kind.is_compressed()),
            "{name}"
        );
        assert!(plain(&made.path()).stream == before.stream, "{name}");
        let kind = |whole: &Whole| {
            whole
                .records
                .iter()
                .find(|(_, kind)| kind.is_compressed())
                .map(|(_, kind)| *kind)
        };
        assert_eq!(kind(&whole), kind(&after), "{name}");
        // Samples are discarded in all records, by one stage or by several.
        let stages = vec![
            without(RecordType::SAMPLE),
            Box::new(Nothing) as Box<dyn Stage>,
            without(RecordType::COMM),
        ];
        let (made, after) = self::made(&recording.path, None, stages);
        let after_plain = plain(&made.path());
        assert!(count(&before, RecordType::SAMPLE) > 0, "{name}");
        assert_eq!(
            count(&after_plain, RecordType::SAMPLE) + count(&after_plain, RecordType::COMM),
            0,
            "{name}"
        );
        let rest = others(&before, RecordType::SAMPLE);
        assert!(rest.len() > after_plain.stream.len(), "{name}");
        if let (Some(old), Some(new)) =
            (compression(&whole.recording), compression(&after.recording))
        {
            assert_eq!(
                (old.kind, old.level, old.mmap_len),
                (new.kind, new.level, new.mmap_len),
                "{name}"
            );
            assert_eq!(old.ratio == 0, new.ratio == 0, "{name}");
        }
        // The same as for uncompressed records.
        let decompress: Box<dyn Stage> = Box::new(Decompress::default());
        let stages = vec![
            decompress,
            without(RecordType::SAMPLE),
            without(RecordType::COMM),
        ];
        assert!(
            self::made(&recording.path, None, stages).1.stream == after_plain.stream,
            "{name}"
        );
        // With a stage that compresses, they are compressed once.
        let compress: Box<dyn Stage> = Box::new(Compress::new(RecordType::COMPRESSED2, 3));
        let (made, _) = self::made(
            &recording.path,
            None,
            vec![without(RecordType::SAMPLE), compress],
        );
        let again = plain(&made.path());
        assert!(
            again.stream == others(&before, RecordType::SAMPLE),
            "{name}"
        );
        tested += 1;
    }
    assert!(tested >= 10, "{tested} compressed recordings");
}

#[test]
fn the_ratio_is_true() {
    let recording = recordings::fixture("7.2-x86_64-file-z");
    let (_, after) = made(
        &recording.path,
        None,
        vec![without_most(RecordType::SAMPLE, 3)],
    );
    let ends = after
        .records
        .iter()
        .skip(1)
        .map(|(at, _)| *at)
        .chain([after.stream.len()]);
    let sizes = after
        .records
        .iter()
        .zip(ends)
        .filter(|((_, kind), _)| kind.is_compressed());
    let compressed: usize = sizes.map(|((at, _), end)| end - at).sum();
    let opened = made(
        &recording.path,
        None,
        vec![
            Box::new(Decompress::default()),
            without_most(RecordType::SAMPLE, 3),
        ],
    )
    .1;
    let inside = opened.stream.len() + compressed - after.stream.len();
    let ratio = compression(&after.recording)
        .expect("a COMPRESSED section")
        .ratio;
    assert_eq!(ratio as usize, (inside + compressed / 2) / compressed);
}

/// SAMPLE_TIME contains the times of the remaining samples.
#[test]
fn times_are_those_of_the_samples() {
    let times = |whole: &Whole| match whole.recording.feature(FeatureId::SAMPLE_TIME) {
        Some(Ok(Section {
            value: Feature::SampleTime(times),
            ..
        })) => times,
        other => panic!("SAMPLE_TIME: {other:?}"),
    };
    let range = |whole: &Whole| {
        let records = whole
            .records
            .iter()
            .filter(|(_, kind)| *kind == RecordType::SAMPLE);
        let time = |(at, _): &(usize, RecordType)| {
            let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
                .expect("a record");
            whole.recording.events.sample_time(&raw).expect("a time")
        };
        let times: Vec<u64> = records.map(time).collect();
        SampleTime {
            first: *times.iter().min().expect("samples"),
            last: *times.iter().max().expect("samples"),
        }
    };
    for name in [
        "7.2-x86_64-file-z",
        "7.2-x86_64-file-default",
        "6.1-s390x-file-default",
    ] {
        let recording = recordings::fixture(name);
        let before = Whole::read_file(&recording.path).expect("a recording");
        let (made, some) = made(
            &recording.path,
            None,
            vec![without_most(RecordType::SAMPLE, 97)],
        );
        check_clean(&made, name);
        assert_eq!(times(&some), range(&plain(&made.path())), "{name}");
        assert_ne!(times(&some), times(&before), "{name}");
        let (made, none) = self::made(&recording.path, None, vec![without(RecordType::SAMPLE)]);
        check_clean(&made, name);
        assert_eq!(times(&none), SampleTime { first: 0, last: 0 }, "{name}");
        // A stage that discards no samples preserves it.
        let (_, all) = self::made(&recording.path, None, vec![without(RecordType::LOST)]);
        assert_eq!(times(&all), times(&before), "{name}");
        // A pipe contains the times before the samples.
        let stage = vec![without_most(RecordType::SAMPLE, 97)];
        let (piped, pipe) = self::made(&recording.path, Some(ContainerKind::Pipe), stage);
        check_clean(&piped, name);
        assert_eq!(times(&pipe), SampleTime { first: 0, last: 0 }, "{name}");
        let (_, back) = self::made(
            &piped.path(),
            Some(ContainerKind::File),
            vec![Box::new(Nothing)],
        );
        assert_eq!(times(&back), times(&some), "{name}");
    }
}

/// Changes the model at the start and at the end.
struct Rename {
    begin: &'static [u8],
    end: &'static [u8],
    is_behind: bool,
}

impl Stage for Rename {
    fn requirements(&self) -> Requirements {
        Requirements {
            after_container: self.is_behind,
            ..Requirements::default()
        }
    }

    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn begin(
        &mut self,
        recording: &mut Model,
        _: &mut perfdata_core::container_layout::ContainerLayout,
    ) -> Result<()> {
        recording.features.remove(&FeatureId::CPUDESC);
        Ok(recording.set_feature(
            FeatureId::OSRELEASE,
            Feature::OsRelease(HeaderString::new(self.begin)),
        )?)
    }

    fn finish(&mut self, recording: &mut Model, _: &mut Link<'_>) -> Result<()> {
        recording.features.remove(&FeatureId::CPUID);
        Ok(recording.set_feature(
            FeatureId::HOSTNAME,
            Feature::Hostname(HeaderString::new(self.end)),
        )?)
    }
}

/// With any stages, and with a change of container, every change of the model is in the file.
#[test]
fn changes_of_the_model_survive() {
    for name in ["7.2-x86_64-pipe-default", "7.2-x86_64-file-default"] {
        let recording = recordings::fixture(name);
        for is_behind in [false, true] {
            let stage: Box<dyn Stage> = Box::new(Rename {
                begin: b"first",
                end: b"last",
                is_behind,
            });
            let (made, whole) = made(&recording.path, Some(ContainerKind::File), vec![stage]);
            check_clean(&made, name);
            let has = |id: FeatureId| whole.recording.features.contains_key(&id);
            assert!(
                !has(FeatureId::CPUDESC) && !has(FeatureId::CPUID) && has(FeatureId::CMDLINE),
                "{name} {is_behind}"
            );
            let text = |id| match whole.recording.feature(id) {
                Some(Ok(Section {
                    value: Feature::OsRelease(text) | Feature::Hostname(text),
                    ..
                })) => String::from_utf8_lossy(text.text()).into_owned(),
                other => panic!("{other:?}"),
            };
            assert_eq!(
                (text(FeatureId::OSRELEASE), text(FeatureId::HOSTNAME)),
                ("first".into(), "last".into())
            );
        }
    }
}
