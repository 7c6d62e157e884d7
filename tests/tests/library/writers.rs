//! The writers reject records that a reader would not understand, and invalid streams.

use std::io::Cursor;

use perfdata_core::attr::{Attr, AttrFlags, SampleType};
use perfdata_core::record::{
    Auxtrace, Body, Comm, RawRecord, Record, RecordType, Sample, SampleId, Task, Throttle, Tid,
};
use perfdata_core::wire::{Text, Wire};
use perfdata_core::{DecodeContext, Endian, Event, Events, Recording};
use perfdata_tests::convert::Whole;
use perfdata_tests::recordings;
use perfdata_tests::synth::record::cases;
use perfdata_write::{FilePlan, FileWriter, PipePlan, PipeWriter, RecordSink};

const ORDERS: [Endian; 2] = [Endian::Little, Endian::Big];

/// Returns an event whose samples have an address, a thread and a time, and whose other records
/// have a trailer.
fn event(id: u64, more: SampleType) -> Event {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME | more;
    let flags = AttrFlags::default()
        .with("sample_id_all", 1)
        .expect("a flag");
    Event {
        attr: Attr {
            sample_type,
            flags,
            size: Attr::MIN_SIZE,
            ..Attr::default()
        },
        ids: vec![id],
    }
}

fn recording(events: impl IntoIterator<Item = Event>) -> Recording {
    let mut recording = Recording::new(Endian::Little);
    recording.events = events.into_iter().collect();
    recording
}

fn record(kind: RecordType, body: Body, sample_id: Option<SampleId>) -> Record {
    Record {
        kind,
        misc: 0,
        body,
        tail: Vec::new(),
        sample_id,
    }
}

fn sample() -> Sample {
    Sample {
        ip: Some(1),
        tid: Some(Tid { pid: 2, tid: 3 }),
        time: Some(4),
        ..Sample::default()
    }
}

fn trailer() -> SampleId {
    let tid = Some(Tid { pid: 2, tid: 3 });
    SampleId {
        tid,
        time: Some(4),
        id: None,
        stream_id: None,
        cpu: None,
        identifier: None,
    }
}

fn comm() -> Body {
    Body::Comm(Comm {
        pid: 2,
        tid: 3,
        comm: Text::padded(b"comm", 8),
    })
}

/// Returns the error with which the writers of a file and a pipe reject `record`; `None` if they
/// accept it.
fn refusal(recording: &Recording, record: &Record) -> Option<String> {
    let gaps: Vec<u8> = Vec::new();
    let out = Cursor::new(Vec::new());
    let mut file =
        FileWriter::begin(out, FilePlan::standard(), recording, &gaps).expect("a file begins");
    let mut pipe = PipeWriter::begin(
        Vec::new(),
        PipePlan::standard(recording, PipePlan::END),
        recording,
    )
    .expect("a pipe begins");
    let why = file.write(record).err().map(|error| error.to_string());
    assert_eq!(why, pipe.write(record).err().map(|error| error.to_string()));
    if why.is_none() {
        for bytes in [
            file.finish(recording).expect("a file").into_inner(),
            pipe.finish().expect("a pipe"),
        ] {
            let whole = Whole::read(bytes).expect("a recording");
            let raw = RawRecord::first(&whole.stream, recording.endian, 0).expect("a record");
            let read =
                Record::decode(&raw, &whole.recording.events.layout_of(&raw)).expect("a record");
            assert_eq!(read, *record);
        }
    }
    why
}

#[test]
fn samples_have_the_parts_of_their_event() {
    let one = recording([event(1, SampleType::default())]);
    let refused = |record| refusal(&one, &record).unwrap_or_default();
    let of = |sample| record(RecordType::SAMPLE, Body::Sample(sample), None);
    assert_eq!(refused(of(sample())), "");
    assert_eq!(
        refused(of(Sample {
            time: None,
            ..sample()
        })),
        "SAMPLE record, field time: found nothing, expected a value: sample_type of its event has TIME"
    );
    assert_eq!(
        refused(of(Sample {
            period: Some(1),
            ..sample()
        })),
        "SAMPLE record, field period: found a value, expected nothing: sample_type of its event has no PERIOD"
    );
    let trailed = Record {
        sample_id: Some(trailer()),
        ..of(sample())
    };
    assert!(refused(trailed).contains("sample_id"));
}

#[test]
fn other_records_have_their_trailer() {
    let one = recording([event(1, SampleType::default())]);
    let refused = |record| refusal(&one, &record).unwrap_or_default();
    let of = |sample_id| record(RecordType::COMM, comm(), sample_id);
    assert_eq!(refused(of(Some(trailer()))), "");
    let expected = "COMM record, field sample_id.tid: found nothing, expected a value: sample_type of its event has TID";
    assert_eq!(refused(of(None)), expected);
    let untimed = SampleId {
        time: None,
        ..trailer()
    };
    assert!(refused(of(Some(untimed))).contains("sample_id.time: found nothing"));
    let more = SampleId {
        id: Some(1),
        ..trailer()
    };
    assert!(refused(of(Some(more))).contains("sample_id.id: found a value"));
    // Without the flag, records have no trailer.
    let mut bare = event(1, SampleType::default());
    bare.attr.flags = AttrFlags::default();
    let bare = recording([bare]);
    assert_eq!(refusal(&bare, &of(None)), None);
    let expected = "COMM record, field sample_id: found a trailer, expected none: its event has no sample_id_all";
    assert_eq!(
        refusal(&bare, &of(Some(trailer()))).as_deref(),
        Some(expected)
    );
    // Records of the tool never have a trailer.
    let round = Body::FinishedRound(perfdata_core::record::NoBody {});
    assert_eq!(
        refused(record(RecordType::FINISHED_ROUND, round.clone(), None)),
        ""
    );
    assert!(
        refused(record(RecordType::FINISHED_ROUND, round, Some(trailer()))).contains("sample_id")
    );
}

#[test]
fn fields_are_those_of_the_type() {
    let one = recording([event(1, SampleType::default())]);
    let expected = "EXIT record: found the fields of COMM, expected the fields of its type";
    assert_eq!(
        refusal(&one, &record(RecordType::EXIT, comm(), Some(trailer()))).as_deref(),
        Some(expected)
    );
    let task = Task {
        pid: 1,
        ppid: 1,
        tid: 1,
        ptid: 1,
        time: 1,
    };
    assert!(
        refusal(
            &one,
            &record(RecordType::EXIT, Body::Fork(task), Some(trailer()))
        )
        .is_some()
    );
    let bytes = Body::Unknown(vec![0; 8]);
    assert!(
        refusal(
            &one,
            &record(RecordType::EXIT, bytes.clone(), Some(trailer()))
        )
        .is_some()
    );
    assert_eq!(refusal(&one, &record(RecordType(200), bytes, None)), None);
    // Data after a name is interpreted as a part of it.
    let tailed = Record {
        tail: vec![0; 8],
        ..record(RecordType::COMM, comm(), Some(trailer()))
    };
    assert!(refusal(&one, &tailed).is_some());
}

#[test]
fn events_that_differ_need_ids() {
    let (id, period) = (SampleType::IDENTIFIER, SampleType::PERIOD);
    let two = recording([event(1, id), event(2, id | period)]);
    let of = |identifier, period| {
        record(
            RecordType::SAMPLE,
            Body::Sample(Sample {
                identifier,
                period,
                ..sample()
            }),
            None,
        )
    };
    assert_eq!(refusal(&two, &of(Some(1), None)), None);
    assert_eq!(refusal(&two, &of(Some(2), Some(1))), None);
    assert!(refusal(&two, &of(Some(1), Some(1))).is_some_and(|why| why.contains("no PERIOD")));
    assert!(refusal(&two, &of(Some(2), None)).is_some_and(|why| why.contains("has PERIOD")));
    assert!(
        refusal(&two, &of(Some(3), None)).is_some_and(|why| why.contains("the ID of an event"))
    );
    assert!(refusal(&two, &of(None, None)).is_some());
    let throttle = Body::Throttle(Throttle {
        time: 1,
        id: 1,
        stream_id: 1,
    });
    let trailed = SampleId {
        identifier: Some(2),
        ..trailer()
    };
    assert_eq!(
        refusal(&two, &record(RecordType::THROTTLE, throttle, Some(trailed))),
        None
    );
}

/// Every record of the independent writer and of the recordings can be read, so it can be encoded.
#[test]
fn what_is_read_is_encoded() {
    for endian in ORDERS {
        for case in cases(endian == Endian::Big) {
            let bytes = case.attr.bytes(endian == Endian::Big);
            let attr = Attr::decode(&bytes, endian, DecodeContext::default())
                .expect("an attribute")
                .0;
            let events: Events = [Event { attr, ids: vec![1] }].into_iter().collect();
            let raw = RawRecord::first(&case.record, endian, 0).expect("a record");
            let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a record");
            let encoded = record
                .encode_for(&events, endian)
                .unwrap_or_else(|why| panic!("{}: {why}", case.name));
            assert_eq!(encoded, case.record, "{}", case.name);
        }
    }
    let mut encoded = 0;
    for recording in recordings::fixtures() {
        let Ok(whole) = Whole::read_file(&recording.path) else {
            continue;
        };
        let events = &whole.recording.events;
        for (at, kind) in &whole.records {
            let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
                .expect("a record");
            let Ok(record) = Record::decode(&raw, &events.layout_of(&raw)) else {
                continue;
            };
            let bytes = record.encode_for(events, raw.endian);
            let bytes =
                bytes.unwrap_or_else(|why| panic!("{}, {kind} at {at}: {why}", recording.name));
            assert_eq!(bytes, raw.bytes, "{}, {kind} at {at}", recording.name);
            encoded += 1;
        }
    }
    assert!(encoded > 1000, "{encoded} records");
}

#[test]
fn records_of_the_other_order_are_refused() {
    let one = recording([event(1, SampleType::default())]);
    let gaps: Vec<u8> = Vec::new();
    let bytes = record(RecordType::COMM, comm(), Some(trailer()))
        .encode(Endian::Big)
        .expect("a record");
    let raw = RawRecord::first(&bytes, Endian::Big, 0).expect("a record");
    let expected = "a big-endian record in a little-endian recording";
    let mut file = FileWriter::begin(Cursor::new(Vec::new()), FilePlan::standard(), &one, &gaps)
        .expect("it begins");
    assert_eq!(
        file.record(&raw).expect_err("another order").to_string(),
        expected
    );
    let mut pipe = PipeWriter::begin(Vec::new(), PipePlan::standard(&one, PipePlan::END), &one)
        .expect("it begins");
    assert_eq!(
        pipe.record(&raw).expect_err("another order").to_string(),
        expected
    );
}

#[test]
fn payloads_come_with_their_records() {
    let one = recording([event(1, SampleType::default())]);
    let gaps: Vec<u8> = Vec::new();
    let body = Auxtrace {
        size: 16,
        offset: 0,
        reference: 0,
        idx: 0,
        tid: 0,
        cpu: 0,
        reserved: 0,
    };
    let aux = record(RecordType::AUXTRACE, Body::Auxtrace(body), None);
    let plain = record(RecordType::COMM, comm(), Some(trailer()));
    let file = || {
        FileWriter::begin(Cursor::new(Vec::new()), FilePlan::standard(), &one, &gaps)
            .expect("it begins")
    };
    let pipe = || {
        PipeWriter::begin(Vec::new(), PipePlan::standard(&one, PipePlan::END), &one)
            .expect("it begins")
    };

    let missing = "the payload of the AUXTRACE record is 8 bytes too short";
    let (mut writer, mut stream) = (file(), pipe());
    writer
        .write(&aux)
        .and_then(|()| writer.payload(&[0; 8]))
        .expect("a part of it");
    stream
        .write(&aux)
        .and_then(|()| stream.payload(&[0; 8]))
        .expect("a part of it");
    assert_eq!(
        writer
            .write(&plain)
            .expect_err("a part is missing")
            .to_string(),
        missing
    );
    assert_eq!(
        stream
            .write(&plain)
            .expect_err("a part is missing")
            .to_string(),
        missing
    );
    assert_eq!(
        writer
            .finish(&one)
            .expect_err("a part is missing")
            .to_string(),
        missing
    );
    assert_eq!(
        stream.finish().expect_err("a part is missing").to_string(),
        missing
    );

    let (mut writer, mut stream) = (file(), pipe());
    assert!(writer.payload(&[0; 8]).is_err() && stream.payload(&[0; 8]).is_err());
    writer
        .write(&aux)
        .and_then(|()| writer.payload(&[0; 16]))
        .expect("all of it");
    stream
        .write(&aux)
        .and_then(|()| stream.payload(&[0; 16]))
        .expect("all of it");
    assert!(writer.payload(&[0; 8]).is_err() && stream.payload(&[0; 8]).is_err());
    writer.write(&plain).expect("a record");
    stream.write(&plain).expect("a record");
    assert!(writer.finish(&one).is_ok() && stream.finish().is_ok());
}
