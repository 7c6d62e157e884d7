//! A recording with everything that changes the layout of records.

use std::fs::File;
use std::path::{Path, PathBuf};

use perfdata_core::attr::{
    Attr, AttrFlags, AuxAction, BranchSampleType, EventType, ReadFormat, SampleType, SoftwareEvent,
};
use perfdata_core::feature::{EventDescs, Feature, FeatureId};
use perfdata_core::record::{
    self, Body, BranchEntry, BranchFlags, BranchStack, Comm, Cpu, CpuMapType, CpuSet, GroupValue,
    MISC_COMM_EXEC, Mmap2, ReadValue, Record, RecordType, Sample, SampleId, Tid, Weights,
};
use perfdata_core::wire::{ContextList, HeaderString, List, Text};
use perfdata_core::{Endian as Order, Event};
use perfdata_write::{FilePlan, FileWriter};

/// Returns a recording of two events in a group, with all features that change the layout of
/// records, for comparison with the output of perf 6.1.
pub(super) fn made(folder: &Path) -> PathBuf {
    let parts = [
        SampleType::IDENTIFIER,
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::CPU,
        SampleType::PERIOD,
        SampleType::READ,
        SampleType::BRANCH_STACK,
        SampleType::WEIGHT_STRUCT,
        SampleType::CGROUP,
    ];
    let flag = |flags: AttrFlags, name| flags.with(name, 1).expect("a flag");
    let names = [
        "sample_id_all",
        "comm",
        "mmap",
        "mmap2",
        "comm_exec",
        "inherit_thread",
    ];
    let attr = |branches: BranchSampleType| Attr {
        kind: EventType::SOFTWARE,
        size: Attr::KNOWN_SIZE,
        config: SoftwareEvent::CPU_CLOCK.0,
        sample_period: 1_000_000,
        sample_type: parts
            .into_iter()
            .fold(SampleType::default(), |all, part| all | part),
        read_format: ReadFormat::ID
            | ReadFormat::GROUP
            | ReadFormat::LOST
            | ReadFormat::TOTAL_TIME_ENABLED,
        flags: names.into_iter().fold(AttrFlags::default(), flag),
        config2: Some(0),
        branch_sample_type: Some(BranchSampleType::USER | BranchSampleType::ANY | branches),
        sample_regs_user: Some(0),
        sample_stack_user: Some(0),
        clockid: Some(0),
        sample_regs_intr: Some(0),
        aux_watermark: Some(0),
        sample_max_stack: Some(127),
        reserved_2: Some(0),
        aux_sample_size: Some(0),
        aux_action: Some(AuxAction::default()),
        sig_data: Some(0),
        config3: Some(0),
        config4: Some(0),
        ..Attr::default()
    };
    let mut recording = perfdata_core::Recording::new(Order::Little);
    recording.events.push(Event {
        attr: attr(BranchSampleType::COUNTERS | BranchSampleType::HW_INDEX),
        ids: vec![11],
    });
    recording.events.push(Event {
        attr: attr(BranchSampleType::HW_INDEX),
        ids: vec![12],
    });
    let described = recording.events.iter().zip([b"first", &b"other"[..]]);
    let described = described.map(|(event, name)| {
        (
            event.attr.clone(),
            HeaderString::new(name),
            event.ids.clone(),
        )
    });
    let section = Feature::EventDescs(EventDescs::new(described.collect()).expect("of one size"));
    recording
        .set_feature(FeatureId::EVENT_DESC, section)
        .expect("a section");
    recording
        .set_feature(FeatureId::ARCH, Feature::Arch(HeaderString::new(b"x86_64")))
        .expect("a section");

    let path = folder.join("made.data");
    let gaps: Vec<u8> = Vec::new();
    let out = File::create(&path).expect("a file");
    let mut writer =
        FileWriter::begin(out, FilePlan::standard(), &recording, &gaps).expect("it begins");
    let tid = Tid { pid: 42, tid: 42 };
    let trailer = |time| SampleId {
        tid: Some(tid),
        time: Some(time),
        id: None,
        stream_id: None,
        cpu: Some(Cpu {
            cpu: 1,
            reserved: 0,
        }),
        identifier: Some(11),
    };
    let mut write = |kind, misc, body, time: u64| {
        let sample_id = (kind != RecordType::SAMPLE).then(|| trailer(time));
        writer
            .write(&Record {
                kind,
                misc,
                body,
                tail: Vec::new(),
                sample_id,
            })
            .expect("it is written");
    };
    let comm = Comm {
        pid: 42,
        tid: 42,
        comm: Text::padded(b"example", 8),
    };
    write(RecordType::COMM, MISC_COMM_EXEC, Body::Comm(comm), 1);
    for (addr, prot, name) in [(0x1000, 5, &b"/bin/code"[..]), (0x8000, 3, b"/bin/data")] {
        let inode = Some(record::Inode {
            maj: 8,
            min: 1,
            ino: 5,
            ino_generation: 0,
        });
        let filename = Text::padded(name, 8);
        let map = Mmap2 {
            pid: 42,
            tid: 42,
            addr,
            len: 0x1000,
            pgoff: 0,
            inode,
            build_id: None,
            prot: Some(prot),
            flags: Some(2),
            filename,
        };
        write(RecordType::MMAP2, 2, Body::Mmap2(map), 2);
    }
    let value = |value, id| GroupValue {
        value,
        id: Some(id),
        lost: Some(7),
    };
    let read = |time| ReadValue {
        value: None,
        nr: Some(2),
        time_enabled: Some(time),
        time_running: None,
        id: None,
        lost: None,
        values: ContextList(vec![value(time, 11), value(time + 1, 12)]),
    };
    let branch = |from, to| {
        let flags = BranchFlags::default()
            .with("predicted", 1)
            .and_then(|flags| flags.with("privilege", 1));
        BranchEntry {
            from,
            to,
            flags: flags.expect("fields"),
        }
    };
    for time in 3..13 {
        let stack = BranchStack {
            nr: 2,
            hw_idx: Some(3),
            entries: List(vec![branch(0x1010, 0x1020), branch(0x1030, 0x1000)]),
            counters: List(if time % 2 == 1 {
                vec![0xaaaa, 0xbbbb]
            } else {
                Vec::new()
            }),
        };
        let weights = Weights::default()
            .with("var1_dw", 77)
            .and_then(|weights| weights.with("var2_w", 5));
        let sample = Sample {
            identifier: Some(11 + (time + 1) % 2),
            ip: Some(0x1000 + time),
            tid: Some(tid),
            time: Some(time * 1_000_000),
            cpu: Some(Cpu {
                cpu: 1,
                reserved: 0,
            }),
            period: Some(1_000_000),
            read: Some(read(time)),
            branch_stack: Some(stack),
            weight_struct: weights,
            cgroup: Some(5),
            ..Sample::default()
        };
        write(RecordType::SAMPLE, 2, Body::Sample(sample), time);
    }
    let task = record::Read {
        pid: 42,
        tid: 42,
        values: read(20),
    };
    write(RecordType::READ, 0, Body::Read(task), 20_000_000);
    let cpus = CpuSet::Range(record::CpuRange {
        any_cpu: 1,
        pad: 0,
        start_cpu: 2,
        end_cpu: 4,
    });
    let map = Body::CpuMap(record::CpuMap {
        kind: CpuMapType::RANGE,
        cpus,
    });
    let map = Record {
        kind: RecordType::CPU_MAP,
        misc: 0,
        body: map,
        tail: Vec::new(),
        sample_id: None,
    };
    writer.write(&map).expect("it is written");
    writer.finish(&recording).expect("a file");
    path
}
