//! Small recordings of processes: their mappings, and samples.

use std::fs::File;
use std::path::Path;

use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType};
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::record::{
    self, Body, CpuMode, Inode, MISC_MMAP_DATA, Mmap, Mmap2, NoBody, RawRecord, Record, RecordType,
    SampleId, Tid, TimeConv,
};
use perfdata_core::wire::{HeaderString, Text};
use perfdata_core::{Endian as Order, Event, Recording as Model};
use perfdata_symbols::{Sources, Symbolizer};
use perfdata_write::{FilePlan, FileWriter};

use crate::convert::Whole;
use Told::{Conv, Data, Map, OldMap, Part, Round, Sample};

/// A record of a recording.
#[derive(Debug, Clone)]
pub enum Told<'a> {
    /// An executable mapping: process, address, size, and name.
    Map(u32, u64, u64, &'a str),
    /// The same of an offset in the file, which comes before the name.
    Part(u32, u64, u64, u64, &'a str),
    /// The same from the start of the file, without its protection, as an MMAP record.
    OldMap(u32, u64, u64, &'a str),
    /// A mapping that is not executable.
    Data(u32, u64, u64, &'a str),
    /// A sample: process and address.
    Sample(u32, u64),
    /// The end of a round.
    Round,
    /// The conversion of the cycle counter.
    Conv(TimeConv),
}

/// `CLOCK_MONOTONIC`.
pub const MONOTONIC: Option<i32> = Some(1);

/// Writes a recording of `clock` with these records, each with its time.
pub fn made(path: &Path, order: Order, clock: Option<i32>, told: &[(u64, Told<'_>)]) {
    let flags = AttrFlags::default()
        .with_sample_id_all(true)
        .with_mmap2(true)
        .with_use_clockid(clock.is_some());
    let attr = Attr {
        kind: EventType::SOFTWARE,
        flags,
        sample_type: SampleType(
            SampleType::IP.0 | SampleType::TID.0 | SampleType::TIME.0 | SampleType::ID.0,
        ),
        size: 96,
        config2: Some(0),
        branch_sample_type: Some(Default::default()),
        sample_regs_user: Some(0),
        sample_stack_user: Some(0),
        clockid: Some(clock.unwrap_or(0)),
        ..Attr::default()
    };
    let recording = model(order, attr, vec![7, 8]);
    let record = |(time, told): &(u64, Told<'_>)| {
        let task = |pid| Some(Tid { pid, tid: pid });
        let trailer = |pid, time| SampleId {
            tid: task(pid),
            time: Some(time),
            id: Some(8),
            ..SampleId::default()
        };
        match told {
            OldMap(pid, addr, len, name) => Record::new(Body::Mmap(Mmap {
                pid: *pid,
                tid: *pid,
                addr: *addr,
                len: *len,
                pgoff: 0,
                filename: Text::padded(name.as_bytes(), 8),
            }))
            .with_misc(CpuMode::USER.0)
            .with_sample_id(trailer(*pid, *time)),
            Part(pid, addr, len, pgoff, name) => {
                let map = Mmap2 {
                    pgoff: *pgoff,
                    ..mapping(*pid, *addr, *len, name)
                };
                Record::new(Body::Mmap2(map))
                    .with_misc(CpuMode::USER.0)
                    .with_sample_id(trailer(*pid, *time))
            }
            Map(pid, addr, len, name) | Data(pid, addr, len, name) => {
                let mut map = mapping(*pid, *addr, *len, name);
                let mut misc = CpuMode::USER.0;
                if matches!(told, Data(..)) {
                    map.prot = Some(3);
                    misc |= MISC_MMAP_DATA;
                }
                Record::new(Body::Mmap2(map))
                    .with_misc(misc)
                    .with_sample_id(trailer(*pid, *time))
            }
            Sample(pid, ip) => {
                let body = record::Sample {
                    ip: Some(*ip),
                    tid: task(*pid),
                    time: Some(*time),
                    id: Some(7),
                    ..record::Sample::default()
                };
                Record::new(Body::Sample(body)).with_misc(CpuMode::USER.0)
            }
            Round => end_of_round(),
            Conv(conv) => Record::new(Body::TimeConv(conv.clone())),
        }
    };
    write(path, &recording, told.iter().map(record));
}

/// Returns an executable mapping of a file.
pub fn mapping(pid: u32, addr: u64, len: u64, name: &str) -> Mmap2 {
    Mmap2 {
        pid,
        tid: pid,
        addr,
        len,
        pgoff: 0,
        inode: Some(Inode {
            maj: 8,
            min: 1,
            ino: 99,
            ino_generation: 0,
        }),
        build_id: None,
        prot: Some(5),
        flags: Some(2),
        filename: Text::padded(name.as_bytes(), 8),
    }
}

/// Returns the record at the end of a round.
pub fn end_of_round() -> Record {
    Record {
        kind: RecordType::FINISHED_ROUND,
        ..Record::new(Body::FinishedRound(NoBody {}))
    }
}

/// Returns the model of a recording of x86-64 with one event.
pub fn model(order: Order, attr: Attr, ids: Vec<u64>) -> Model {
    let mut recording = Model::new(order);
    recording.events.push(Event { attr, ids });
    let arch = Feature::Arch(HeaderString::new(b"x86_64"));
    recording
        .set_feature(FeatureId::ARCH, arch)
        .expect("a name");
    recording
}

/// Writes a recording with these records.
pub fn write(path: &Path, recording: &Model, records: impl IntoIterator<Item = Record>) {
    let file = File::create(path).expect("a file");
    let gaps: Vec<u8> = Vec::new();
    let mut writer =
        FileWriter::begin(file, FilePlan::standard(), recording, &gaps).expect("a writer");
    for record in records {
        writer.write(&record).expect("it is written");
    }
    writer.finish(recording).expect("a file");
}

/// Returns the records of a recording as text, with the last part of file names.
pub fn shown(path: &Path) -> Vec<String> {
    let whole = Whole::read_file(path).expect("a recording");
    let events = &whole.recording.events;
    let show = |(at, kind): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0);
        let raw = raw.expect("a record");
        let record = Record::decode(&raw, &events.layout_of(&raw)).expect("a record");
        Some(match record.body {
            Body::Mmap2(map) => {
                let name = map.filename.to_string();
                let name = name.rsplit('/').next().unwrap_or_default();
                let id = record.sample_id.expect("it has one");
                let task = id.tid.expect("it has one");
                assert_eq!((map.pid, map.tid, Some(8)), (task.pid, task.tid, id.id));
                let (pid, tid, time) = (map.pid, map.tid, id.time.expect("it has one"));
                format!(
                    "{time} {pid}/{tid} {:#x}+{:#x} @{:#x} {name}",
                    map.addr, map.len, map.pgoff
                )
            }
            Body::Mmap(map) => {
                let name = map.filename.to_string();
                let name = name.rsplit('/').next().unwrap_or_default();
                let time = record.sample_id.and_then(|id| id.time).expect("a time");
                let (pid, tid) = (map.pid, map.tid);
                format!(
                    "{time} {pid}/{tid} {:#x}+{:#x} @{:#x} {name} (MMAP)",
                    map.addr, map.len, map.pgoff
                )
            }
            Body::Sample(sample) => {
                format!(
                    "{} sample {:#x}",
                    sample.time.expect("a time"),
                    sample.ip.expect("an address")
                )
            }
            _ if *kind == RecordType::FINISHED_ROUND => "round".into(),
            _ => return None,
        })
    };
    whole.records.iter().filter_map(show).collect()
}

/// Returns the address and the name of each sample, as `perfconv export` finds it.
pub fn names(path: &Path) -> Vec<(u64, String)> {
    let sources = Sources::default().with_unverified(true);
    let mut symbols = Symbolizer::new(sources);
    let mut samples = perfdata_session::open(path).expect("a recording");
    let mut names = Vec::new();
    while let Some(sample) = samples.next().expect("a sample") {
        for frame in sample.frames() {
            let name = symbols.resolve(&sample, &frame);
            let name = name.map(|symbol| String::from_utf8_lossy(symbol.name).into_owned());
            names.push((frame.address, name.unwrap_or_default()));
        }
    }
    names
}
