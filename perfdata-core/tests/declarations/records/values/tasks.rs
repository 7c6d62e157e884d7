//! Records of the kernel about tasks, their mappings and their counts.

use perfdata_core::DecodeContext;
use perfdata_core::attr::{ReadFormat as R, SampleType as T};
use perfdata_core::record::*;
use perfdata_core::wire::{ContextList, Text};

use super::{Case, array, cases, sample_id};

cases! {
    /// s390x-6.1/file_default.data.
    fn mmap() {
        Record {
            kind: RecordType::MMAP,
            misc: 1,
            body: Body::Mmap(Mmap {
                pid: u32::MAX,
                tid: 0,
                addr: 0x10_0000,
                len: 0x9e_1000,
                pgoff: 0x10_0000,
                filename: Text(b"[kernel.kallsyms]_text\0\0".to_vec()),
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 0, tid: 0 }), time: Some(0), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD).with_sample_id_all(true),
        "01000000 0100 5000 ffffffff 00000000 0000100000000000 00109e0000000000 0000100000000000
         5b6b65726e656c2e6b616c6c73796d73 5d5f746578740000 00000000 00000000 0000000000000000",
        "00000001 0001 0050 ffffffff 00000000 0000000000100000 00000000009e1000 0000000000100000
         5b6b65726e656c2e6b616c6c73796d73 5d5f746578740000 00000000 00000000 0000000000000000",
    }

    /// s390x-6.1/file_default.data.
    fn comm_of_an_exec() {
        Record {
            kind: RecordType::COMM,
            misc: 0x2000,
            body: Body::Comm(Comm { pid: 140, tid: 140, comm: Text(b"work-s390x\0\0\0\0\0\0".to_vec()) }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 140, tid: 140 }), time: Some(8_806_638_109), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD).with_sample_id_all(true),
        "03000000 0020 3000 8c000000 8c000000 776f726b2d7333393078000000000000 8c000000 8c000000
         1da2ea0c02000000",
        "00000003 2000 0030 0000008c 0000008c 776f726b2d7333393078000000000000 0000008c 0000008c
         000000020ceaa21d",
    }

    /// s390x-7.2/file_default.data.
    fn exit() {
        Record {
            kind: RecordType::EXIT,
            misc: 0,
            body: Body::Exit(Task { pid: 196, ppid: 194, tid: 196, ptid: 194, time: 59_496_942_002 }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 196, tid: 196 }), time: Some(59_496_937_821), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD).with_sample_id_all(true),
        "04000000 0000 3000 c4000000 c2000000 c4000000 c2000000 b2494bda0d000000 c4000000 c4000000
         5d394bda0d000000",
        "00000004 0000 0030 000000c4 000000c2 000000c4 000000c2 0000000dda4b49b2 000000c4 000000c4
         0000000dda4b395d",
    }

    /// x86_64-7.2/file_default.data.
    fn fork() {
        Record {
            kind: RecordType::FORK,
            misc: 0,
            body: Body::Fork(Task { pid: 165, ppid: 163, tid: 165, ptid: 163, time: 7_237_972_562 }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 163, tid: 163 }), time: Some(7_237_896_608), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD).with_sample_id_all(true),
        "07000000 0000 3000 a5000000 a3000000 a5000000 a3000000 52b26aaf01000000 a3000000 a3000000
         a08969af01000000",
        "00000007 0000 0030 000000a5 000000a3 000000a5 000000a3 00000001af6ab252 000000a3 000000a3
         00000001af6989a0",
    }

    /// x86_64-7.2/file_readstat.data.
    fn read() {
        Record {
            kind: RecordType::READ,
            misc: 0,
            body: Body::Read(Read {
                pid: 900,
                tid: 903,
                values: ReadValue {
                    value: Some(111_854_874),
                    nr: None,
                    time_enabled: Some(183_082_436),
                    time_running: Some(112_399_122),
                    id: Some(808),
                    lost: Some(0),
                    values: ContextList(vec![]),
                },
            }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 900, tid: 903 }),
                time: Some(195_997_706_395),
                id: Some(808),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::PERIOD).with_read_format(R::TOTAL_TIME_ENABLED | R::TOTAL_TIME_RUNNING | R::ID | R::LOST).with_sample_id_all(true),
        "08000000 0000 5000 84030000 87030000 1ac5aa0600000000 c49de90a00000000 1213b30600000000
         2803000000000000 0000000000000000 84030000 87030000 9ba85fa22d000000 2803000000000000",
        "00000008 0000 0050 00000384 00000387 0000000006aac51a 000000000ae99dc4 0000000006b31312
         0000000000000328 0000000000000000 00000384 00000387 0000002da25fa89b 0000000000000328",
    }

    /// s390x-6.1/file_data.data.
    fn mmap2() {
        Record {
            kind: RecordType::MMAP2,
            misc: 2,
            body: Body::Mmap2(Mmap2 {
                pid: 244,
                tid: 244,
                addr: 0x2aa_2ed0_0000,
                len: 0x4000,
                pgoff: 0,
                inode: Some(Inode { maj: 254, min: 16, ino: 201, ino_generation: 0 }),
                build_id: None,
                prot: Some(5),
                flags: Some(2),
                filename: Text(b"/lab/work-s390x\0".to_vec()),
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 244, tid: 244 }), time: Some(29_057_419_809), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ADDR | T::DATA_SRC).with_sample_id_all(true),
        "0a000000 0200 6800 f4000000 f4000000 0000d02eaa020000 0040000000000000 0000000000000000 fe000000
         10000000 c900000000000000 0000000000000000 05000000 02000000 2f6c61622f776f726b2d733339307800 f4000000
         f4000000 210af5c306000000",
        "0000000a 0002 0068 000000f4 000000f4 000002aa2ed00000 0000000000004000 0000000000000000 000000fe
         00000010 00000000000000c9 0000000000000000 00000005 00000002 2f6c61622f776f726b2d733339307800 000000f4
         000000f4 00000006c3f50a21",
    }

    /// Layout of the kernel 3.10.0-123 of RHEL 7.
    fn mmap2_without_protection() {
        Record {
            kind: RecordType::MMAP2,
            misc: 2,
            body: Body::Mmap2(Mmap2 {
                pid: 7,
                tid: 8,
                addr: 0x20_0000,
                len: 0x6000,
                pgoff: 0,
                inode: Some(Inode { maj: 253, min: 1, ino: 0x1234_5678, ino_generation: 3 }),
                build_id: None,
                prot: None,
                flags: None,
                filename: Text(b"/usr/bin/true\0\0\0".to_vec()),
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(1), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "0a000000 0200 6000 07000000 08000000 0000200000000000 0060000000000000 0000000000000000 fd000000
         01000000 7856341200000000 0300000000000000 2f7573722f62696e 2f74727565000000 07000000 08000000
         0100000000000000",
        "0000000a 0002 0060 00000007 00000008 0000000000200000 0000000000006000 0000000000000000 000000fd
         00000001 0000000012345678 0000000000000003 2f7573722f62696e 2f74727565000000 00000007 00000008
         0000000000000001",
    }

    /// s390x-6.1/file_buildid_mmap.data.
    fn mmap2_with_build_id() {
        Record {
            kind: RecordType::MMAP2,
            misc: 0x4001,
            body: Body::Mmap2(Mmap2 {
                pid: u32::MAX,
                tid: 0,
                addr: 0x10_0000,
                len: 0x9e_1000,
                pgoff: 0x10_0000,
                inode: None,
                build_id: Some(MappedBuildId {
                    build_id_size: 20,
                    reserved_1: 0,
                    reserved_2: 0,
                    build_id: array("64191809e7272da77af306133aa6c566be0be242"),
                }),
                prot: Some(0),
                flags: Some(0),
                filename: Text(b"[kernel.kallsyms]_text\0\0".to_vec()),
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 0, tid: 0 }), time: Some(0), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD).with_sample_id_all(true),
        "0a000000 0140 7000 ffffffff 00000000 0000100000000000 00109e0000000000 0000100000000000 14 00 0000
         64191809e7272da77af306133aa6c566 be0be242 00000000 00000000 5b6b65726e656c2e6b616c6c73796d73
         5d5f746578740000 00000000 00000000 0000000000000000",
        "0000000a 4001 0070 ffffffff 00000000 0000000000100000 00000000009e1000 0000000000100000 14 00 0000
         64191809e7272da77af306133aa6c566 be0be242 00000000 00000000 5b6b65726e656c2e6b616c6c73796d73
         5d5f746578740000 00000000 00000000 0000000000000000",
    }

    /// s390x-6.1/file_switch_ns_cg.data.
    fn namespaces() {
        Record {
            kind: RecordType::NAMESPACES,
            misc: 0,
            body: Body::Namespaces(Namespaces {
                pid: 321,
                tid: 321,
                namespaces: vec![
                    Namespace { dev: 4, ino: 4_026_531_840 },
                    Namespace { dev: 4, ino: 4_026_531_838 },
                    Namespace { dev: 4, ino: 4_026_531_839 },
                    Namespace { dev: 4, ino: 4_026_531_836 },
                    Namespace { dev: 4, ino: 4_026_531_837 },
                    Namespace { dev: 4, ino: 4_026_531_841 },
                    Namespace { dev: 4, ino: 4_026_531_835 },
                ].into(),
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 0, tid: 0 }), time: Some(0), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD | T::CGROUP).with_sample_id_all(true),
        "10000000 0000 9800 41010000 41010000 0700000000000000 0400000000000000 000000f000000000
         0400000000000000 feffffef00000000 0400000000000000 ffffffef00000000 0400000000000000 fcffffef00000000
         0400000000000000 fdffffef00000000 0400000000000000 010000f000000000 0400000000000000 fbffffef00000000
         00000000 00000000 0000000000000000",
        "00000010 0000 0098 00000141 00000141 0000000000000007 0000000000000004 00000000f0000000
         0000000000000004 00000000effffffe 0000000000000004 00000000efffffff 0000000000000004 00000000effffffc
         0000000000000004 00000000effffffd 0000000000000004 00000000f0000001 0000000000000004 00000000effffffb
         00000000 00000000 0000000000000000",
    }

    /// s390x-6.1/file_switch_ns_cg.data.
    fn cgroup() {
        Record {
            kind: RecordType::CGROUP,
            misc: 0,
            body: Body::Cgroup(Cgroup { id: 1, path: Text(b"/\0\0\0\0\0\0\0".to_vec()) }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 0, tid: 0 }), time: Some(0), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD | T::CGROUP).with_sample_id_all(true),
        "13000000 0000 2800 0100000000000000 2f00000000000000 00000000 00000000 0000000000000000",
        "00000013 0000 0028 0000000000000001 2f00000000000000 00000000 00000000 0000000000000000",
    }

    /// x86_64-7.2/file_defer.data.
    fn callchain_deferred() {
        Record {
            kind: RecordType::CALLCHAIN_DEFERRED,
            misc: 2,
            body: Body::CallchainDeferred(CallchainDeferred {
                cookie: 0x3_0000_0001,
                callchain: vec![
                    0x7fa5_19b4_bd77, 0x55b8_5cbc_6517, 0x55b8_5cbc_6798, 0x7fa5_19a6_5fba, 0x7fff_ace7_6e71,
                ].into(),
            }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 1613, tid: 1613 }),
                time: Some(447_544_910_150),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::CALLCHAIN | T::PERIOD).with_sample_id_all(true),
        "16000000 0200 5000 0100000003000000 0500000000000000 77bdb419a57f0000 1765bc5cb8550000
         9867bc5cb8550000 ba5fa619a57f0000 716ee7acff7f0000 4d060000 4d060000 4661c13368000000",
        "00000016 0002 0050 0000000300000001 0000000000000005 00007fa519b4bd77 000055b85cbc6517
         000055b85cbc6798 00007fa519a65fba 00007ffface76e71 0000064d 0000064d 0000006833c16146",
    }

    /// Kernel layout: all counters of a group.
    fn read_group() {
        Record {
            kind: RecordType::READ,
            misc: 0,
            body: Body::Read(Read {
                pid: 7,
                tid: 8,
                values: ReadValue {
                    value: None,
                    nr: Some(2),
                    time_enabled: Some(1000),
                    time_running: Some(500),
                    id: None,
                    lost: None,
                    values: ContextList(vec![
                        GroupValue { value: 11, id: Some(21), lost: Some(0) },
                        GroupValue { value: 12, id: Some(22), lost: Some(1) },
                    ]),
                },
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(4_294_967_298), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_read_format(R::TOTAL_TIME_ENABLED | R::TOTAL_TIME_RUNNING | R::ID | R::GROUP | R::LOST).with_sample_id_all(true),
        "08000000 0000 6800 07000000 08000000 0200000000000000 e803000000000000 f401000000000000
         0b00000000000000 1500000000000000 0000000000000000 0c00000000000000 1600000000000000 0100000000000000
         07000000 08000000 0200000001000000",
        "00000008 0000 0068 00000007 00000008 0000000000000002 00000000000003e8 00000000000001f4
         000000000000000b 0000000000000015 0000000000000000 000000000000000c 0000000000000016 0000000000000001
         00000007 00000008 0000000100000002",
    }

    /// Kernel layout: only the count.
    fn read_plain() {
        Record {
            kind: RecordType::READ,
            misc: 0,
            body: Body::Read(Read {
                pid: 7,
                tid: 8,
                values: ReadValue {
                    value: Some(11),
                    nr: None,
                    time_enabled: None,
                    time_running: None,
                    id: None,
                    lost: None,
                    values: ContextList(vec![]),
                },
            }),
            tail: vec![],
            sample_id: Some(SampleId { tid: Some(Tid { pid: 7, tid: 8 }), time: Some(4_294_967_298), ..sample_id() }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME).with_sample_id_all(true),
        "08000000 0000 2800 07000000 08000000 0b00000000000000 07000000 08000000 0200000001000000",
        "00000008 0000 0028 00000007 00000008 000000000000000b 00000007 00000008 0000000100000002",
    }
}
