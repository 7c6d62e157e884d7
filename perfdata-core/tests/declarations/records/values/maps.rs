//! Records about the relations of event IDs, threads and CPUs.

use perfdata_core::DecodeContext;
use perfdata_core::record::*;
use perfdata_core::wire::{List, Rest, Text, ToEnd};

use super::{Case, bytes, cases, chars};

cases! {
    /// s390x-6.1/file_multi.data.
    fn id_index() {
        Record {
            kind: RecordType::ID_INDEX,
            misc: 0,
            body: Body::IdIndex(IdIndex {
                entries: vec![
                    IdIndexEntry { id: 140, idx: 0, cpu: 0, tid: 192 },
                    IdIndexEntry { id: 141, idx: 1, cpu: 1, tid: 192 },
                    IdIndexEntry { id: 142, idx: 0, cpu: 0, tid: 192 },
                    IdIndexEntry { id: 143, idx: 1, cpu: 1, tid: 192 },
                    IdIndexEntry { id: 144, idx: 0, cpu: 0, tid: 192 },
                    IdIndexEntry { id: 145, idx: 1, cpu: 1, tid: 192 },
                    IdIndexEntry { id: 146, idx: 0, cpu: 0, tid: 192 },
                    IdIndexEntry { id: 147, idx: 1, cpu: 1, tid: 192 },
                ].into(),
                guests: List(vec![]),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "45000000 0000 1001 0800000000000000 8c00000000000000 0000000000000000 0000000000000000
         c000000000000000 8d00000000000000 0100000000000000 0100000000000000 c000000000000000 8e00000000000000
         0000000000000000 0000000000000000 c000000000000000 8f00000000000000 0100000000000000 0100000000000000
         c000000000000000 9000000000000000 0000000000000000 0000000000000000 c000000000000000 9100000000000000
         0100000000000000 0100000000000000 c000000000000000 9200000000000000 0000000000000000 0000000000000000
         c000000000000000 9300000000000000 0100000000000000 0100000000000000 c000000000000000",
        "00000045 0000 0110 0000000000000008 000000000000008c 0000000000000000 0000000000000000
         00000000000000c0 000000000000008d 0000000000000001 0000000000000001 00000000000000c0 000000000000008e
         0000000000000000 0000000000000000 00000000000000c0 000000000000008f 0000000000000001 0000000000000001
         00000000000000c0 0000000000000090 0000000000000000 0000000000000000 00000000000000c0 0000000000000091
         0000000000000001 0000000000000001 00000000000000c0 0000000000000092 0000000000000000 0000000000000000
         00000000000000c0 0000000000000093 0000000000000001 0000000000000001 00000000000000c0",
    }

    /// perf layout since 6.0.
    fn id_index_of_guests() {
        Record {
            kind: RecordType::ID_INDEX,
            misc: 0,
            body: Body::IdIndex(IdIndex {
                entries: vec![
                    IdIndexEntry { id: 1, idx: 0, cpu: 0, tid: u64::MAX },
                    IdIndexEntry { id: 2, idx: 1, cpu: 1, tid: u64::MAX },
                ].into(),
                guests: List(vec![
                    IdIndexGuest { machine_pid: 77, vcpu: 0 },
                    IdIndexGuest { machine_pid: 77, vcpu: u64::MAX },
                ]),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "45000000 0000 7000 0200000000000000 0100000000000000 0000000000000000 0000000000000000
         ffffffffffffffff 0200000000000000 0100000000000000 0100000000000000 ffffffffffffffff 4d00000000000000
         0000000000000000 4d00000000000000 ffffffffffffffff",
        "00000045 0000 0070 0000000000000002 0000000000000001 0000000000000000 0000000000000000
         ffffffffffffffff 0000000000000002 0000000000000001 0000000000000001 ffffffffffffffff 000000000000004d
         0000000000000000 000000000000004d ffffffffffffffff",
    }

    /// s390x-6.1/stat_record.data.
    fn thread_map() {
        Record {
            kind: RecordType::THREAD_MAP,
            misc: 0,
            body: Body::ThreadMap(ThreadMap { threads: vec![ThreadMapEntry { pid: 835, comm: chars(b"") }].into() }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "49000000 0000 2800 0100000000000000 4303000000000000 00000000000000000000000000000000",
        "00000049 0000 0028 0000000000000001 0000000000000343 00000000000000000000000000000000",
    }

    /// s390x-6.1/file_default.data.
    fn cpu_map_range() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap {
                kind: CpuMapType::RANGE,
                cpus: CpuSet::Range(CpuRange { any_cpu: 0, pad: 0, start_cpu: 0, end_cpu: 1 }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1000 0200 00 00 0000 0100",
        "0000004a 0000 0010 0002 00 00 0000 0001",
    }

    /// x86_64-6.1/stat_record.data.
    fn cpu_map_any() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap { kind: CpuMapType::CPUS, cpus: CpuSet::Cpus(vec![u16::MAX].into()) }),
            tail: bytes("00*2"),
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1000 0000 0100 ffff 0000",
        "0000004a 0000 0010 0000 0001 ffff 0000",
    }

    /// perf layout of 4.16, without an aligned size.
    fn cpu_map_cpus() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap { kind: CpuMapType::CPUS, cpus: CpuSet::Cpus(vec![0, 2, 5, u16::MAX].into()) }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1400 0000 0400 0000 0200 0500 ffff",
        "0000004a 0000 0014 0000 0004 0000 0002 0005 ffff",
    }

    /// perf layout since 6.0: the bit of CPU 64 is after the counted words.
    fn cpu_map_mask_32() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap {
                kind: CpuMapType::MASK,
                cpus: CpuSet::Mask(CpuMask {
                    nr: 2,
                    long_size: 4,
                    pad: None,
                    words: CpuMaskWords::Words32(List(vec![0x8000_0001, 0xffff])),
                    uncounted: Some(ToEnd(vec![])),
                }),
            }),
            tail: bytes("00*2"),
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1800 0100 0200 0400 01000080 ffff0000 0000",
        "0000004a 0000 0018 0001 0002 0004 80000001 0000ffff 0000",
    }

    /// perf layout since 6.0: the bit of CPU 32 is after the counted word.
    fn cpu_map_mask_32_uncounted() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap {
                kind: CpuMapType::MASK,
                cpus: CpuSet::Mask(CpuMask {
                    nr: 1,
                    long_size: 4,
                    pad: None,
                    words: CpuMaskWords::Words32(List(vec![0x1234_5678])),
                    uncounted: Some(ToEnd(vec![1])),
                }),
            }),
            tail: bytes("00*2"),
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1800 0100 0100 0400 78563412 01000000 0000",
        "0000004a 0000 0018 0001 0001 0004 12345678 00000001 0000",
    }

    /// perf layout before 6.0.
    fn cpu_map_mask_64() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap {
                kind: CpuMapType::MASK,
                cpus: CpuSet::Mask(CpuMask {
                    nr: 2,
                    long_size: 8,
                    pad: Some([0; 4]),
                    words: CpuMaskWords::Words64(List(vec![0x8000_0000_0000_0001, 0xffff])),
                    uncounted: None,
                }),
            }),
            tail: bytes("00*6"),
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 2800 0100 0200 0800 00000000 0100000000000080 ffff000000000000 000000000000",
        "0000004a 0000 0028 0001 0002 0008 00000000 8000000000000001 000000000000ffff 000000000000",
    }

    /// Words of an unknown size.
    fn cpu_map_mask_of_the_future() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap {
                kind: CpuMapType::MASK,
                cpus: CpuSet::Mask(CpuMask {
                    nr: 1,
                    long_size: 16,
                    pad: None,
                    words: CpuMaskWords::Unknown(Rest(bytes("00010203040506070809"))),
                    uncounted: None,
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1800 0100 0100 1000 00010203040506070809",
        "0000004a 0000 0018 0001 0001 0010 00010203040506070809",
    }

    /// An unknown representation.
    fn cpu_map_of_the_future() {
        Record {
            kind: RecordType::CPU_MAP,
            misc: 0,
            body: Body::CpuMap(CpuMap { kind: CpuMapType(3), cpus: CpuSet::Unknown(Rest(bytes("000102030405"))) }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4a000000 0000 1000 0300 000102030405",
        "0000004a 0000 0010 0003 000102030405",
    }

    /// x86_64-6.1/stat_record.data.
    fn event_update_unit() {
        Record {
            kind: RecordType::EVENT_UPDATE,
            misc: 0,
            body: Body::EventUpdate(EventUpdate {
                kind: EventUpdateType::UNIT,
                id: 1429,
                update: EventUpdateValue::Unit(Text(b"msec\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec())),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4e000000 0000 3000 0000000000000000 9505000000000000 6d736563000000000000000000000000 0000000000000000",
        "0000004e 0000 0030 0000000000000000 0000000000000595 6d736563000000000000000000000000 0000000000000000",
    }

    /// x86_64-6.1/stat_record.data.
    fn event_update_scale() {
        Record {
            kind: RecordType::EVENT_UPDATE,
            misc: 0,
            body: Body::EventUpdate(EventUpdate {
                kind: EventUpdateType::SCALE,
                id: 1429,
                update: EventUpdateValue::Scale(1e-06),
            }),
            tail: bytes("00*16"),
            sample_id: None,
        },
        DecodeContext::default(),
        "4e000000 0000 3000 0100000000000000 9505000000000000 8dedb5a0f7c6b03e 00000000000000000000000000000000",
        "0000004e 0000 0030 0000000000000001 0000000000000595 3eb0c6f7a0b5ed8d 00000000000000000000000000000000",
    }

    /// s390x-6.1/pipe_default.data.
    fn event_update_name() {
        Record {
            kind: RecordType::EVENT_UPDATE,
            misc: 0,
            body: Body::EventUpdate(EventUpdate {
                kind: EventUpdateType::NAME,
                id: 575,
                update: EventUpdateValue::Name(Text(b"cpu-clock\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec())),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4e000000 0000 3800 0200000000000000 3f02000000000000 6370752d636c6f636b00000000000000
         00000000000000000000000000000000",
        "0000004e 0000 0038 0000000000000002 000000000000023f 6370752d636c6f636b00000000000000
         00000000000000000000000000000000",
    }

    /// s390x-7.2/pipe_default.data.
    fn event_update_cpus() {
        Record {
            kind: RecordType::EVENT_UPDATE,
            misc: 0,
            body: Body::EventUpdate(EventUpdate {
                kind: EventUpdateType::CPUS,
                id: 1267,
                update: EventUpdateValue::Cpus(CpuMap {
                    kind: CpuMapType::RANGE,
                    cpus: CpuSet::Range(CpuRange { any_cpu: 0, pad: 0, start_cpu: 0, end_cpu: 1 }),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4e000000 0000 2000 0300000000000000 f304000000000000 0200 00 00 0000 0100",
        "0000004e 0000 0020 0000000000000003 00000000000004f3 0002 00 00 0000 0001",
    }

    /// perf layout before 6.0.
    fn event_update_mask() {
        Record {
            kind: RecordType::EVENT_UPDATE,
            misc: 0,
            body: Body::EventUpdate(EventUpdate {
                kind: EventUpdateType::CPUS,
                id: 4,
                update: EventUpdateValue::Cpus(CpuMap {
                    kind: CpuMapType::MASK,
                    cpus: CpuSet::Mask(CpuMask {
                        nr: 1,
                        long_size: 8,
                        pad: Some([0; 4]),
                        words: CpuMaskWords::Words64(List(vec![5])),
                        uncounted: None,
                    }),
                }),
            }),
            tail: bytes("00*6"),
            sample_id: None,
        },
        DecodeContext::default(),
        "4e000000 0000 3000 0300000000000000 0400000000000000 0100 0100 0800 00000000 0500000000000000
         000000000000",
        "0000004e 0000 0030 0000000000000003 0000000000000004 0001 0001 0008 00000000 0000000000000005
         000000000000",
    }

    /// An unknown property.
    fn event_update_of_the_future() {
        Record {
            kind: RecordType::EVENT_UPDATE,
            misc: 0,
            body: Body::EventUpdate(EventUpdate {
                kind: EventUpdateType(4),
                id: 4,
                update: EventUpdateValue::Unknown(Rest(bytes("0001020304050607"))),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4e000000 0000 2000 0400000000000000 0400000000000000 0001020304050607",
        "0000004e 0000 0020 0000000000000004 0000000000000004 0001020304050607",
    }
}
