//! Recordings with off-CPU samples in the form of perf since 6.16.

use std::fs::File;
use std::path::Path;

use perfdata_core::attr::{Attr, AttrFlags, EventType, SampleType, SoftwareEvent};
use perfdata_core::feature::{EventDescs, Feature, FeatureId};
use perfdata_core::record::{Body, Comm, CpuMode, Mmap, Record, Sample, Tid};
use perfdata_core::wire::{HeaderString, Text};
use perfdata_core::{Endian, Event, Recording};
use perfdata_write::{FilePlan, FileWriter};

/// The ID of the off-CPU event, and of the other one.
pub const IDS: [u64; 2] = [6, 5];

/// A sample: time, process, thread, period, callchain, and cgroup.
pub type OffCpu = (u64, u32, u32, u64, &'static [u64], u64);

/// The marker of user space in callchains.
pub const USER: u64 = 0xffff_ffff_ffff_fe00;

/// Two samples of the time of recording, and one that perf wrote at the end.
pub const SAMPLES: [OffCpu; 3] = [
    (1000, 10, 11, 600_000_000, &[USER, 0x40_0010, 0x40_0020], 7),
    (2000, 10, 10, 700_000_000, &[USER, 0x40_0030], 8),
    (
        0xffff_ffff_0000_0000,
        10,
        11,
        5000,
        &[USER, 0x40_0040, 0x40_0050, 0x40_0060],
        9,
    ),
];

/// Returns the RAW data of a sample.
pub fn raw(endian: Endian, (_, pid, tid, period, chain, cgroup): OffCpu) -> Vec<u8> {
    let task = u64::from(tid) << 32 | u64::from(pid);
    let mut words = vec![task, period, chain.len() as u64];
    words.extend_from_slice(chain);
    words.push(cgroup);
    let bytes = words.iter().flat_map(|word| match endian {
        Endian::Little => word.to_le_bytes(),
        Endian::Big => word.to_be_bytes(),
    });
    // Filling, so that the size of the data and of its length is a multiple of 8.
    bytes.chain([0; 4]).collect()
}

/// Writes a recording with the samples; `raw` returns the RAW data of each.
pub fn made(path: &Path, endian: Endian, raw: impl Fn(OffCpu) -> Vec<u8>) {
    let parts = |more: &[SampleType]| {
        let parts = [
            SampleType::IDENTIFIER,
            SampleType::IP,
            SampleType::TID,
            SampleType::TIME,
            SampleType::CPU,
            SampleType::PERIOD,
        ];
        let all = parts.iter().chain(more);
        SampleType(all.fold(0, |bits, part| bits | part.0))
    };
    let attr = |config: SoftwareEvent, sample_type| Attr {
        kind: EventType::SOFTWARE,
        config: config.0,
        sample_period: 1,
        flags: AttrFlags::default()
            .with_sample_id_all(true)
            .with_mmap(true)
            .with_comm(true),
        sample_type,
        size: 64,
        ..Attr::default()
    };
    let mut recording = Recording::new(endian);
    let events = [
        attr(SoftwareEvent::CPU_CLOCK, parts(&[])),
        attr(
            SoftwareEvent::BPF_OUTPUT,
            parts(&[SampleType::RAW, SampleType::CGROUP]),
        ),
    ];
    for (attr, id) in events.into_iter().zip([IDS[1], IDS[0]]) {
        let ids = vec![id];
        recording.events.push(Event { attr, ids });
    }
    let names = [&b"cpu-clock"[..], b"offcpu-time"];
    let described = recording.events.iter().zip(names);
    let described = described.map(|(event, name)| {
        let name = HeaderString::new(name);
        (event.attr.clone(), name, event.ids.clone())
    });
    let descs = EventDescs::new(described.collect()).expect("of one size");
    recording
        .set_feature(FeatureId::EVENT_DESC, Feature::EventDescs(descs))
        .expect("names");
    let file = File::create(path).expect("a file");
    let gaps: Vec<u8> = Vec::new();
    let mut writer =
        FileWriter::begin(file, FilePlan::standard(), &recording, &gaps).expect("a writer");
    let task = |pid, tid| Some(Tid { pid, tid });
    let trailer = |record: Record| {
        record.with_sample_id(perfdata_core::record::SampleId {
            tid: task(10, 10),
            time: Some(1),
            cpu: Some(Default::default()),
            identifier: Some(IDS[1]),
            ..Default::default()
        })
    };
    let comm = Comm {
        pid: 10,
        tid: 10,
        comm: Text::padded(b"sleeper", 8),
    };
    let map = Mmap {
        pid: 10,
        tid: 10,
        addr: 0x40_0000,
        len: 0x1000,
        pgoff: 0,
        filename: Text::padded(b"/nowhere/sleeper", 8),
    };
    for body in [Body::Comm(comm), Body::Mmap(map)] {
        let record = Record::new(body).with_misc(CpuMode::USER.0);
        writer.write(&trailer(record)).expect("it is written");
    }
    let sample = |id, time| Sample {
        identifier: Some(id),
        ip: Some(0),
        tid: task(0, 0),
        time: Some(time),
        cpu: Some(Default::default()),
        period: Some(0),
        ..Sample::default()
    };
    let own = Sample {
        ip: Some(0x40_0001),
        tid: task(10, 10),
        period: Some(1),
        ..sample(IDS[1], 500)
    };
    let off_cpu = SAMPLES.map(|told| Sample {
        raw: Some(raw(told).into()),
        cgroup: Some(0),
        ..sample(IDS[0], told.0)
    });
    for sample in [own].into_iter().chain(off_cpu) {
        let record = Record::new(Body::Sample(sample)).with_misc(CpuMode::USER.0);
        writer.write(&record).expect("it is written");
    }
    writer.finish(&recording).expect("a file");
}
