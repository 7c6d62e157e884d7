//! `pipe2file` converts every part of a pipe to the correct part of a file.

use std::collections::BTreeMap;

use perfdata_core::{
    Recording as Model,
    attr::{BranchSampleType, SampleType},
    container_layout::{ContainerLayout, FileLayout, Part},
    feature::{Feature, FeatureId},
    header::ContainerKind,
    record::RecordType,
};
use perfdata_tests::{
    convert::{Converted, Whole, convert, perfconv},
    per_fixture,
    perf::{self, Question},
    recordings::{self, Container, Form, Recording},
    synth::{self, file::Magic, pipe::Pipe},
};

per_fixture!(nothing_is_lost);

#[test]
fn nothing_is_lost_outside() {
    recordings::check_all(&recordings::shared(), nothing_is_lost);
}

#[test]
fn nothing_is_lost_of_published_recordings() {
    recordings::check_all(&recordings::corpus(), |recording| {
        if recording.is_damaged() {
            return to_file(recording).map(drop).or(Ok(()));
        }
        nothing_is_lost(recording)
    });
}

/// Every record type and every feature that a pipe can contain.
#[test]
fn nothing_is_lost_of_any_kind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for big in [false, true] {
        for (name, bytes) in [
            ("everything", synth::pipe::kitchen_sink(big)),
            (
                "compressed",
                synth::sink::compressed_pipe(big, synth::kind::COMPRESSED).bytes,
            ),
            (
                "compressed 2",
                synth::sink::compressed_pipe(big, synth::kind::COMPRESSED2).bytes,
            ),
            ("events last", events_last(big)),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("a temporary file");
            nothing_is_lost(&Recording::at(&path))
                .unwrap_or_else(|message| panic!("{name}: {message}"));
        }
    }
}

/// `perf record --tail-synthesize`: the information about the recording follows the samples.
fn events_last(big: bool) -> Vec<u8> {
    let basic = synth::file::basic(big);
    let mut pipe =
        Pipe::new(big, Magic::V2).records(&synth::file::basic_records(big, &basic.events[0]));
    pipe = pipe.event(&basic.events[0]);
    for (bit, section) in &basic.features {
        pipe = pipe.feature(*bit, section);
    }
    pipe.terminator(synth::pipe::TERMINATOR).bytes
}

fn to_file(recording: &Recording) -> Result<Converted, String> {
    convert(&recording.path, Some(ContainerKind::File), Vec::new())
        .map_err(|error| error.to_string())
}

fn nothing_is_lost(recording: &Recording) -> Result<(), String> {
    if !matches!(
        recording.form,
        Some(Form {
            container: Container::Pipe,
            ..
        })
    ) {
        return Ok(());
    }
    let pipe = Whole::read_file(&recording.path)?;
    let file = Whole::read(to_file(recording)?.bytes()).map_err(|error| error.to_string())?;
    let ContainerLayout::File(places) = &file.container_layout else {
        return Err("the output is no file".into());
    };

    events_are_the_same(&pipe.recording, &file.recording)?;
    features_are_the_same(&pipe, &file.recording)?;
    parts_stand_as_perf_writes_them(places, file.recording.events.len())?;
    records_are_the_same(&pipe, &file)?;
    index_names_the_aux_data(places, &file)?;
    times_are_those_that_perf_showed(recording, &pipe.recording, &file.recording)
}

fn events_are_the_same(pipe: &Model, file: &Model) -> Result<(), String> {
    let expected = |what: &str| Err(format!("{what}: not those of the pipe"));
    // Without the padding: each has 64 bytes in a file.
    fn names(model: &Model) -> impl Iterator<Item = (u64, &[u8])> {
        model
            .event_types
            .iter()
            .map(|entry| (entry.event_id, entry.name.text()))
    }
    match () {
        _ if (pipe.endian, pipe.magic) != (file.endian, file.magic) => {
            expected("byte order or version")
        }
        _ if pipe.events.len() != file.events.len() => expected("number of events"),
        _ if pipe
            .events
            .iter()
            .zip(file.events.iter())
            .any(|(pipe, file)| pipe.ids != file.ids) =>
        {
            expected("ids")
        }
        // In a file, all attributes have the same size; in these recordings they also had it
        // before.
        _ if pipe.events[..] != file.events[..] => expected("attributes"),
        _ if !names(pipe).eq(names(file)) => expected("event types"),
        _ => Ok(()),
    }
}

/// Features in the pipe are unchanged; other features are added only if the records contain their
/// data.
fn features_are_the_same(pipe: &Whole, file: &Model) -> Result<(), String> {
    let has = |kind: RecordType| pipe.records.iter().any(|record| record.1 == kind);
    let mut sent = pipe.recording.features.clone();
    let mut found = file.features.clone();
    if sent
        .get(&FeatureId::SAMPLE_TIME)
        .is_some_and(|section| section.iter().all(|&byte| byte == 0))
    {
        sent.remove(&FeatureId::SAMPLE_TIME);
        found
            .remove(&FeatureId::SAMPLE_TIME)
            .ok_or("SAMPLE_TIME is lost")?;
    }
    for (id, section) in sent {
        let kept = found
            .remove(&id)
            .ok_or_else(|| format!("feature {id} is lost"))?;
        if kept != section {
            return Err(format!("feature {id} is changed"));
        }
    }
    let branches = file.events.iter().any(|event| {
        let kinds = event.attr.branch_sample_type.unwrap_or_default();
        // The branches of --call-graph lbr are callchains.
        let is_callchain = kinds.has(BranchSampleType::CALL_STACK)
            && event.attr.sample_type.has(SampleType::CALLCHAIN);
        kinds.0 != 0 && !is_callchain
    });
    let expected: BTreeMap<FeatureId, bool> = BTreeMap::from([
        (FeatureId::STAT, has(RecordType::STAT)),
        (FeatureId::BRANCH_STACK, branches),
        (FeatureId::BUILD_ID, has(RecordType::HEADER_BUILD_ID)),
        (FeatureId::AUXTRACE, has(RecordType::AUXTRACE)),
        // Readers of files rely on these.
        (FeatureId::EVENT_DESC, true),
        (FeatureId::HOSTNAME, true),
    ]);
    for id in found.into_keys() {
        // A mapped file may tell it.
        if expected.get(&id) != Some(&true) && id != FeatureId::ARCH {
            return Err(format!("feature {id} comes from nowhere"));
        }
    }
    let lost = expected
        .iter()
        .find(|(id, wanted)| **wanted && !file.features.contains_key(id));
    lost.map_or(Ok(()), |(id, _)| Err(format!("there is no feature {id}")))
}

/// Checks the order: header, IDs, attributes, records, feature table, sections in ascending order,
/// and nothing between them (tools/perf/util/header.c, perf_session__do_write_header). IDs and
/// attributes follow the records if they did in the pipe.
fn parts_stand_as_perf_writes_them(places: &FileLayout, events: usize) -> Result<(), String> {
    let parts: Vec<Part> = places.regions.iter().map(|region| region.part).collect();
    let rank = |part: &Part| match *part {
        Part::Header => Some((0, 0)),
        Part::Ids(event) => Some((1, event)),
        Part::Attrs => Some((2, 0)),
        Part::EventTypes => Some((3, 0)),
        Part::Data => Some((4, 0)),
        Part::FeatureTable => Some((5, 0)),
        Part::Feature(id) => Some((6, id.0 as usize)),
        Part::Gap => None,
    };
    let events_last = parts.iter().position(|&part| part == Part::Data)
        < parts.iter().position(|&part| part == Part::Attrs);
    let ranks: Option<Vec<_>> = parts.iter().map(rank).collect();
    let ranks = ranks.ok_or_else(|| format!("there are gaps: {parts:?}"))?;
    if !ranks.is_sorted() && !events_last {
        return Err(format!("not in perf's order: {parts:?}"));
    }
    if places.header.size != 104 || places.ids.len() != events {
        return Err("not a header of today".into());
    }
    Ok(())
}

fn records_are_the_same(pipe: &Whole, file: &Whole) -> Result<(), String> {
    let moved = [
        RecordType::HEADER_ATTR,
        RecordType::HEADER_EVENT_TYPE,
        RecordType::HEADER_TRACING_DATA,
        RecordType::HEADER_FEATURE,
        RecordType::HEADER_BUILD_ID,
    ];
    let mut kept = Vec::new();
    for (at, (start, kind)) in pipe.records.iter().enumerate() {
        // Including its payload.
        let end = pipe
            .records
            .get(at + 1)
            .map_or(pipe.records_end, |next| next.0);
        if !moved.contains(kind) {
            kept.extend_from_slice(&pipe.stream[*start..end]);
        }
    }
    if file.stream != kept {
        let at = file
            .stream
            .iter()
            .zip(&kept)
            .position(|(file, kept)| file != kept);
        return Err(format!(
            "byte {at:?} of the records differs, of {} and {} bytes",
            file.stream.len(),
            kept.len()
        ));
    }
    Ok(())
}

fn index_names_the_aux_data(places: &FileLayout, file: &Whole) -> Result<(), String> {
    let data = places.place(Part::Data).map_or(0, |place| place.offset);
    let there: Vec<(u64, u64)> = file
        .records
        .iter()
        .filter(|record| record.1 == RecordType::AUXTRACE)
        .map(|record| (data + record.0 as u64, 48))
        .collect();
    let index = match file
        .recording
        .feature(FeatureId::AUXTRACE)
        .map(|section| section.map(|section| section.value))
    {
        None => Vec::new(),
        Some(Ok(Feature::AuxtraceIndex(index))) => index
            .iter()
            .map(|entry| (entry.file_offset, entry.size))
            .collect(),
        Some(other) => return Err(format!("the index is {other:?}")),
    };
    if index == there {
        Ok(())
    } else {
        Err(format!(
            "the index is {index:?}, the AUXTRACE records {there:?}"
        ))
    }
}

/// Checks the times of the first and the last sample that perf showed on the recording machine.
fn times_are_those_that_perf_showed(
    recording: &Recording,
    pipe: &Model,
    file: &Model,
) -> Result<(), String> {
    let was_empty = pipe
        .features
        .get(&FeatureId::SAMPLE_TIME)
        .is_some_and(|s| s.iter().all(|&byte| byte == 0));
    let Some(text) = recording
        .script_text()
        .filter(|text| was_empty && !text.is_empty())
    else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(&text);
    let times: Vec<u64> = text
        .lines()
        .filter(|line| !line.contains(": PERF_RECORD_"))
        .filter_map(time_of)
        .collect();
    let expected = times.iter().min().copied().zip(times.iter().max().copied());
    let found = match file
        .feature(FeatureId::SAMPLE_TIME)
        .map(|section| section.map(|section| section.value))
    {
        Some(Ok(Feature::SampleTime(times))) => (times.first, times.last),
        other => return Err(format!("SAMPLE_TIME is {other:?}")),
    };
    if Some(found) == expected.or(Some((0, 0))) {
        Ok(())
    } else {
        Err(format!("times {found:?}, perf showed {expected:?}"))
    }
}

/// Returns the time in a line of `perf script --ns`, in nanoseconds.
fn time_of(line: &str) -> Option<u64> {
    line.split_whitespace().find_map(|word| {
        let (seconds, nanoseconds) = word.strip_suffix(':')?.split_once('.')?;
        let nanoseconds = (nanoseconds.len() == 9).then(|| nanoseconds.parse::<u64>().ok())??;
        Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + nanoseconds)
    })
}

/// Returns the output of `perf record --switch-output -o -`: all metadata again, in the middle of
/// the records.
fn repeated(bytes: &[u8]) -> Vec<u8> {
    let Whole {
        stream, records, ..
    } = Whole::read(bytes.to_vec()).expect("a recording");
    let head = &bytes[16..bytes.len() - stream.len()];
    let (before, behind) = stream.split_at(records[records.len() / 2].0);
    [&bytes[..bytes.len() - stream.len()], before, head, behind].concat()
}

#[test]
fn metadata_may_be_repeated() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in [
        "6.1-x86_64-pipe-default",
        "7.2-x86_64-pipe-default",
        "6.1-s390x-pipe-default",
    ] {
        let once = recordings::fixture(name);
        let path = folder.path().join(name);
        std::fs::write(
            &path,
            repeated(&std::fs::read(&once.path).expect("a fixture")),
        )
        .expect("a temporary file");
        let expected =
            convert(&once.path, Some(ContainerKind::File), Vec::new()).expect("it is converted");
        let found =
            convert(&path, Some(ContainerKind::File), Vec::new()).expect("it is converted, too");
        assert!(
            expected.bytes() == found.bytes(),
            "{name}: the repetition shows"
        );
        // The pipe still contains it.
        let copy = convert(&path, None, Vec::new()).expect("it is copied");
        assert!(
            copy.bytes() == std::fs::read(&path).expect("it is there"),
            "{name}: the copy has other bytes"
        );
        let report =
            perfdata_convert::io::Input::open(&path).and_then(perfdata_convert::verify::Report::of);
        let report = report.expect("it is read");
        assert!(report.is_clean(), "{name}: {}", report.text());
    }
}

#[test]
fn contradicting_attributes_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let basic = synth::file::basic(false);
    let records = synth::file::basic_records(false, &basic.events[0]);
    let path = folder.path().join("in.data");
    let start = Pipe::new(false, Magic::V2)
        .event(&basic.events[0])
        .records(&records);
    let at = start.bytes.len();
    let mut other = basic.events[0].clone();
    other.attr.config += 1;
    let mut new = other.clone();
    new.ids = vec![99_999];
    let first = basic.events[0].ids[0];
    for (event, what) in [
        (&other, format!("ID {first} also belongs to event 0")),
        (&new, "a new event".to_owned()),
    ] {
        std::fs::write(&path, start.clone().event(event).records(&records).bytes)
            .expect("a temporary file");
        let error = convert(&path, Some(ContainerKind::File), Vec::new())
            .expect_err("it contradicts itself");
        assert!(error.is_refusal());
        let said = error.to_string();
        assert!(
            said.contains(&format!("at offset {at:#x}: HEADER_ATTR record: {what}")),
            "{said}"
        );
    }
}

/// At the head of a stream, in a file that is converted to one, and after the records of a stream
/// without a head.
#[test]
fn an_id_belongs_to_one_event() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let basic = synth::file::basic(false);
    let records = synth::file::basic_records(false, &basic.events[0]);
    let path = folder.path().join("in.data");
    let mut other = basic.events[0].clone();
    other.attr.config += 1;
    let events = [basic.events[0].clone(), other];
    let pipe = || Pipe::new(false, Magic::V2);
    let head = events.iter().fold(pipe(), Pipe::event).records(&records);
    let end = events.iter().fold(pipe().records(&records), Pipe::event);
    let file = synth::file::File {
        events: events.to_vec(),
        features: Vec::new(),
        ..basic.clone()
    };
    let what = format!(
        "the attribute of event 1: ID {} also belongs to event 0",
        events[0].ids[0]
    );
    for (bytes, to) in [
        (head.bytes, ContainerKind::File),
        (end.bytes, ContainerKind::File),
        (file.bytes(), ContainerKind::Pipe),
    ] {
        std::fs::write(&path, bytes).expect("a temporary file");
        let error = convert(&path, Some(to), Vec::new()).expect_err("it contradicts itself");
        assert!(error.is_refusal());
        assert!(error.to_string().contains(&what), "{error}");
        let report =
            perfdata_convert::io::Input::open(&path).and_then(perfdata_convert::verify::Report::of);
        assert!(!report.expect("it is read").is_clean() || to == ContainerKind::File);
    }
}

/// A real recording. perf 6.1 fails after one or two switches; until then the stream is correct.
#[test]
fn switched_output_is_converted() {
    let Some(perf) = perf::all().iter().find(|perf| perf.name == "perf") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
    let mut command = perf.command();
    command.args([
        "record",
        "--switch-output=1s",
        "-e",
        "cpu-clock",
        "-o",
        "-",
        "--",
        "sh",
        "-c",
    ]);
    command
        .arg("i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done")
        .current_dir(folder.path());
    command
        .stdout(std::fs::File::create(&pipe).expect("a temporary file"))
        .stderr(std::process::Stdio::null());
    command.stdin(std::process::Stdio::null());
    let _ = command.status().expect("perf runs");
    let attributes = |whole: &Whole| {
        whole
            .records
            .iter()
            .filter(|record| record.1 == RecordType::HEADER_ATTR)
            .count()
    };
    let Ok(whole) = Whole::read_file(&pipe) else {
        return eprintln!("skipped: perf cannot record here");
    };
    if attributes(&whole) == 0 {
        return eprintln!("skipped: perf did not switch");
    }
    let converted = perfconv()
        .arg("pipe2file")
        .arg(&pipe)
        .arg("-o")
        .arg(&file)
        .output()
        .expect("perfconv runs");
    assert!(
        converted.status.success(),
        "{}",
        String::from_utf8_lossy(&converted.stderr)
    );
    let samples = |path: &std::path::Path| {
        let script = perf.ask(Question::Script, path).expect("perf runs");
        assert!(script.success(), "{}", script.stderr);
        script
            .stdout
            .lines()
            .filter(|line| line.contains("cpu-clock:"))
            .count()
    };
    assert!(samples(&file) > 100);
    let all = Whole::read_file(&file).expect("a recording").records;
    assert_eq!(
        samples(&file),
        all.iter()
            .filter(|record| record.1 == RecordType::SAMPLE)
            .count()
    );
}
