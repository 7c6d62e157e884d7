//! Records of the perf tool that contain metadata.

use perfdata_core::DecodeContext;
use perfdata_core::attr::{
    Attr, AttrFlags, AuxAction, BranchSampleType, EventType, ReadFormat as R, SampleType as T,
};
use perfdata_core::record::*;
use perfdata_core::wire::{Rest, Text, ToEnd};

use super::{Case, array, bytes, cases, chars, sample_id};

cases! {
    /// s390x-6.1/pipe_default.data.
    fn header_attr() {
        Record {
            kind: RecordType::HEADER_ATTR,
            misc: 0,
            body: Body::HeaderAttr(HeaderAttr {
                attr: Attr {
                    kind: EventType::SOFTWARE,
                    size: 128,
                    config: 0,
                    sample_period: 499,
                    sample_type: T::IP | T::TID | T::TIME | T::ID | T::PERIOD,
                    read_format: R::ID | R::LOST,
                    flags: AttrFlags(0x6194_3703),
                    wakeup: 0,
                    bp_type: 0,
                    config1: 0,
                    config2: Some(0),
                    branch_sample_type: Some(BranchSampleType(0)),
                    sample_regs_user: Some(0),
                    sample_stack_user: Some(0),
                    clockid: Some(0),
                    sample_regs_intr: Some(0),
                    aux_watermark: Some(0),
                    sample_max_stack: Some(0),
                    reserved_2: Some(0),
                    aux_sample_size: Some(0),
                    aux_action: Some(AuxAction(0)),
                    sig_data: Some(0),
                    config3: None,
                    config4: None,
                    tail: Rest(vec![]),
                },
                ids: ToEnd(vec![575, 576]),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "40000000 0000 9800 01000000 80000000 0000000000000000 f301000000000000 4701000000000000
         1400000000000000 0337946100000000 00000000 00000000 0000000000000000 0000000000000000 0000000000000000
         0000000000000000 00000000 00000000 0000000000000000 00000000 0000 0000 00000000 00000000
         0000000000000000 3f02000000000000 4002000000000000",
        "00000040 0000 0098 00000001 00000080 0000000000000000 00000000000001f3 0000000000000147
         0000000000000014 c0ec298600000000 00000000 00000000 0000000000000000 0000000000000000 0000000000000000
         0000000000000000 00000000 00000000 0000000000000000 00000000 0000 0000 00000000 00000000
         0000000000000000 000000000000023f 0000000000000240",
    }

    /// Kernel layout: a size of 0 means 64; flag 40 has no name.
    fn header_attr_of_the_first_form() {
        Record {
            kind: RecordType::HEADER_ATTR,
            misc: 0,
            body: Body::HeaderAttr(HeaderAttr {
                attr: Attr {
                    kind: EventType::TRACEPOINT,
                    size: 0,
                    config: 0x123,
                    sample_period: 1,
                    sample_type: T::IP | T::TID,
                    read_format: R::ID,
                    flags: AttrFlags(0x100_0001_c400),
                    wakeup: 4096,
                    bp_type: 2,
                    config1: 0x1122_3344_5566_7788,
                    config2: None,
                    branch_sample_type: None,
                    sample_regs_user: None,
                    sample_stack_user: None,
                    clockid: None,
                    sample_regs_intr: None,
                    aux_watermark: None,
                    sample_max_stack: None,
                    reserved_2: None,
                    aux_sample_size: None,
                    aux_action: None,
                    sig_data: None,
                    config3: None,
                    config4: None,
                    tail: Rest(vec![]),
                },
                ids: ToEnd(vec![3, 4]),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "40000000 0000 5800 02000000 00000000 2301000000000000 0100000000000000 0300000000000000
         0400000000000000 00c4010000010000 00100000 02000000 8877665544332211 0300000000000000 0400000000000000",
        "00000040 0000 0058 00000002 00000000 0000000000000123 0000000000000001 0000000000000003
         0000000000000004 0023800000800000 00001000 00000002 1122334455667788 0000000000000003 0000000000000004",
    }

    /// Kernel layout: 8 unknown additional bytes.
    fn header_attr_of_the_future() {
        Record {
            kind: RecordType::HEADER_ATTR,
            misc: 0,
            body: Body::HeaderAttr(HeaderAttr {
                attr: Attr {
                    kind: EventType::HARDWARE,
                    size: 152,
                    config: 1,
                    sample_period: 4000,
                    sample_type: T::IP,
                    read_format: R(0),
                    flags: AttrFlags(0x80_0000_8001),
                    wakeup: 1,
                    bp_type: 0,
                    config1: 1,
                    config2: Some(2),
                    branch_sample_type: Some(BranchSampleType(0x2_0001)),
                    sample_regs_user: Some(0xff),
                    sample_stack_user: Some(8192),
                    clockid: Some(-1),
                    sample_regs_intr: Some(0xff0),
                    aux_watermark: Some(3),
                    sample_max_stack: Some(127),
                    reserved_2: Some(0),
                    aux_sample_size: Some(4096),
                    aux_action: Some(AuxAction(3)),
                    sig_data: Some(0x1234),
                    config3: Some(0x33),
                    config4: Some(0x44),
                    tail: Rest(bytes("d0d1d2d3d4d5d6d7")),
                },
                ids: ToEnd(vec![3]),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "40000000 0000 a800 00000000 98000000 0100000000000000 a00f000000000000 0100000000000000
         0000000000000000 0180000080000000 01000000 00000000 0100000000000000 0200000000000000 0100020000000000
         ff00000000000000 00200000 ffffffff f00f000000000000 03000000 7f00 0000 00100000 03000000
         3412000000000000 3300000000000000 4400000000000000 d0d1d2d3d4d5d6d7 0300000000000000",
        "00000040 0000 00a8 00000000 00000098 0000000000000001 0000000000000fa0 0000000000000001
         0000000000000000 8000800001000000 00000001 00000000 0000000000000001 0000000000000002 0000000000020001
         00000000000000ff 00002000 ffffffff 0000000000000ff0 00000003 007f 0000 00001000 c0000000
         0000000000001234 0000000000000033 0000000000000044 d0d1d2d3d4d5d6d7 0000000000000003",
    }

    /// perf layout: the name is truncated to a multiple of 8.
    fn header_event_type() {
        Record {
            kind: RecordType::HEADER_EVENT_TYPE,
            misc: 0,
            body: Body::HeaderEventType(EventTypeName { event_id: 0x101, name: Text(b"cycles\0\0".to_vec()) }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "41000000 0000 1800 0101000000000000 6379636c65730000",
        "00000041 0000 0018 0000000000000101 6379636c65730000",
    }

    /// s390x-6.1/pipe_tp.data.
    fn header_tracing_data() {
        Record {
            kind: RecordType::HEADER_TRACING_DATA,
            misc: 0,
            body: Body::HeaderTracingData(HeaderTracingData { size: 4792, pad: Some(0), data: None }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "42000000 0000 1000 b8120000 00000000",
        "00000042 0000 0010 000012b8 00000000",
    }

    /// perf layout before 6.0.
    fn header_tracing_data_short() {
        Record {
            kind: RecordType::HEADER_TRACING_DATA,
            misc: 0,
            body: Body::HeaderTracingData(HeaderTracingData { size: 8184, pad: None, data: None }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "42000000 0000 0c00 f81f0000",
        "00000042 0000 000c 00001ff8",
    }

    /// Layout of simpleperf, shortened: the record contains the tracing data, with padding.
    fn header_tracing_data_contained() {
        Record {
            kind: RecordType::HEADER_TRACING_DATA,
            misc: 0,
            body: Body::HeaderTracingData(HeaderTracingData {
                size: 10,
                pad: None,
                data: Some(Rest(b"\x17\x08\x44tracing\0\0".to_vec())),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "42000000 0000 1800 0a000000 17084474726163696e67 0000",
        "00000042 0000 0018 0000000a 17084474726163696e67 0000",
    }

    /// s390x-6.1/pipe_injected.data.
    fn header_build_id() {
        Record {
            kind: RecordType::HEADER_BUILD_ID,
            misc: 2,
            body: Body::HeaderBuildId(BuildId {
                pid: Some(-1),
                build_id: array("2c81ab976e99052dffdcc8249ca37206dd6b99ac"),
                size: 0,
                reserved_1: 0,
                reserved_2: 0,
                filename: Text(b"/usr/lib/s390x-linux-gnu/ld64.so.1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "43000000 0200 6400 ffffffff 2c81ab976e99052dffdcc8249ca37206 dd6b99ac 00 00 0000
         2f7573722f6c69622f73333930782d6c 696e75782d676e752f6c6436342e736f 2e310000000000000000000000000000
         00000000000000000000000000000000",
        "00000043 0002 0064 ffffffff 2c81ab976e99052dffdcc8249ca37206 dd6b99ac 00 00 0000
         2f7573722f6c69622f73333930782d6c 696e75782d676e752f6c6436342e736f 2e310000000000000000000000000000
         00000000000000000000000000000000",
    }

    /// x86_64-6.12/pipe_injected.data.
    fn header_build_id_with_trailer() {
        Record {
            kind: RecordType::HEADER_BUILD_ID,
            misc: 0x8002,
            body: Body::HeaderBuildId(BuildId {
                pid: Some(-1),
                build_id: array("86f7eb4ff495ed3f2831c6d3d662e4321762a2a3"),
                size: 20,
                reserved_1: 0,
                reserved_2: 0,
                filename: Text(b"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2\0\0\0\0\0\0".to_vec()),
            }),
            tail: vec![],
            sample_id: Some(SampleId {
                tid: Some(Tid { pid: 2169, tid: 2169 }),
                time: Some(595_940_884_219),
                id: Some(1892),
                ..sample_id()
            }),
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::PERIOD),
        "43000000 0280 7000 ffffffff 86f7eb4ff495ed3f2831c6d3d662e432 1762a2a3 14 00 0000
         2f7573722f6c69622f7838365f36342d 6c696e75782d676e752f6c642d6c696e 75782d7838362d36342e736f2e320000
         00000000 79080000 79080000 fb3ed8c08a000000 6407000000000000",
        "00000043 8002 0070 ffffffff 86f7eb4ff495ed3f2831c6d3d662e432 1762a2a3 14 00 0000
         2f7573722f6c69622f7838365f36342d 6c696e75782d676e752f6c642d6c696e 75782d7838362d36342e736f2e320000
         00000000 00000879 00000879 0000008ac0d83efb 0000000000000764",
    }

    /// s390x-6.1/file_default.data.
    fn finished_round() {
        Record {
            kind: RecordType::FINISHED_ROUND,
            misc: 0,
            body: Body::FinishedRound(NoBody {}),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "44000000 0000 0800",
        "00000044 0000 0008",
    }

    /// s390x-6.1/file_default.data.
    fn finished_init() {
        Record {
            kind: RecordType::FINISHED_INIT,
            misc: 0,
            body: Body::FinishedInit(NoBody {}),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "52000000 0000 0800",
        "00000052 0000 0008",
    }

    /// s390x-6.1/pipe_default.data.
    fn header_feature() {
        Record {
            kind: RecordType::HEADER_FEATURE,
            misc: 0,
            body: Body::HeaderFeature(HeaderFeature { feat_id: 7, section: Rest(bytes("0000000200000002")) }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "50000000 0000 1800 0700000000000000 0000000200000002",
        "00000050 0000 0018 0000000000000007 0000000200000002",
    }

    /// perf layout.
    fn compressed() {
        Record {
            kind: RecordType::COMPRESSED,
            misc: 0,
            body: Body::Compressed(Compressed { data: Rest(bytes("28b52ffd0458")) }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "51000000 0000 0e00 28b52ffd0458",
        "00000051 0000 000e 28b52ffd0458",
    }

    /// perf layout: padded to a multiple of 8.
    fn compressed2() {
        Record {
            kind: RecordType::COMPRESSED2,
            misc: 0,
            body: Body::Compressed2(Compressed2 {
                data_size: 6,
                data: Rest(bytes("28b52ffd0458")),
                padding: Rest(bytes("0000")),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "53000000 0000 1800 0600000000000000 28b52ffd0458 0000",
        "00000053 0000 0018 0000000000000006 28b52ffd0458 0000",
    }

    /// x86_64-6.1/file_default.data.
    fn time_conv() {
        Record {
            kind: RecordType::TIME_CONV,
            misc: 0,
            body: Body::TimeConv(TimeConv {
                time_shift: 31,
                time_mult: 825_961_920,
                time_zero: 0xffff_fffe_fca6_0aa0,
                short: Some(TimeConvShort {
                    time_cycles: 0,
                    time_mask: 0,
                    cap_user_time_zero: 1,
                    cap_user_time_short: 0,
                    reserved: [0; 6],
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4f000000 0000 3800 1f00000000000000 c02d3b3100000000 a00aa6fcfeffffff 0000000000000000
         0000000000000000 01 00 000000000000",
        "0000004f 0000 0038 000000000000001f 00000000313b2dc0 fffffffefca60aa0 0000000000000000
         0000000000000000 01 00 000000000000",
    }

    /// perf layout.
    fn time_conv_before_5_11() {
        Record {
            kind: RecordType::TIME_CONV,
            misc: 0,
            body: Body::TimeConv(TimeConv {
                time_shift: 31,
                time_mult: 305_419_896,
                time_zero: 0xffff_ffff_0000_1111,
                short: None,
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4f000000 0000 2000 1f00000000000000 7856341200000000 11110000ffffffff",
        "0000004f 0000 0020 000000000000001f 0000000012345678 ffffffff00001111",
    }

    /// x86_64-7.2/file_bpfmeta.data.
    fn bpf_metadata() {
        Record {
            kind: RecordType::BPF_METADATA,
            misc: 0,
            body: Body::BpfMetadata(BpfMetadata {
                prog_name: chars(b"bpf_prog_0d6609391569ecf4_demo_meta"),
                entries: vec![
                    BpfMetadataEntry { key: chars(b"author"), value: chars(b"\"the recorder\"") },
                    BpfMetadataEntry { key: chars(b"purpose"), value: chars(b"\"demonstration\"") },
                    BpfMetadataEntry { key: chars(b"version"), value: chars(b"7") },
                    BpfMetadataEntry { key: chars(b"big"), value: chars(b"81985529216486895") },
                ].into(),
            }),
            tail: bytes("00*32"),
            sample_id: None,
        },
        DecodeContext::default(),
        "54000000 0000 3007 6270665f70726f675f30643636303933 3931353639656366345f64656d6f5f6d
         65746100000000000000000000000000 00*464 0400000000000000 617574686f7200000000000000000000 00*48
         22746865207265636f72646572220000 00*240 707572706f7365000000000000000000 00*48
         2264656d6f6e7374726174696f6e2200 00*240 76657273696f6e000000000000000000 00*48
         37000000000000000000000000000000 00*240 62696700000000000000000000000000 00*48
         38313938353532393231363438363839 35000000000000000000000000000000 00*256",
        "00000054 0000 0730 6270665f70726f675f30643636303933 3931353639656366345f64656d6f5f6d
         65746100000000000000000000000000 00*464 0000000000000004 617574686f7200000000000000000000 00*48
         22746865207265636f72646572220000 00*240 707572706f7365000000000000000000 00*48
         2264656d6f6e7374726174696f6e2200 00*240 76657273696f6e000000000000000000 00*48
         37000000000000000000000000000000 00*240 62696700000000000000000000000000 00*48
         38313938353532393231363438363839 35000000000000000000000000000000 00*256",
    }

    /// An unknown future type.
    fn unknown() {
        Record {
            kind: RecordType(99),
            misc: 0,
            body: Body::Unknown(bytes("000102030405060708090a0b")),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "63000000 0000 1400 000102030405060708090a0b",
        "00000063 0000 0014 000102030405060708090a0b",
    }
}
