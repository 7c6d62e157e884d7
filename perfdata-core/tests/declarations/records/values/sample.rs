//! SAMPLE records written by real kernels.

use perfdata_core::DecodeContext;
use perfdata_core::attr::{ReadFormat as R, SampleType as T};
use perfdata_core::record::*;
use perfdata_core::wire::{ContextList, List};

use super::{Case, bytes, cases, sample};

cases! {
    /// s390x-6.1/file_default.data.
    fn sample_plain() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 2,
            body: Body::Sample(Sample {
                ip: Some(0x3ff_bef6_ac14),
                tid: Some(Tid { pid: 142, tid: 142 }),
                time: Some(8_848_444_173),
                period: Some(2_004_008),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD).with_read_format(R::ID | R::LOST),
        "09000000 0200 2800 14acf6beff030000 8e000000 8e000000 0d8b680f02000000 28941e0000000000",
        "00000009 0002 0028 000003ffbef6ac14 0000008e 0000008e 000000020f688b0d 00000000001e9428",
    }

    /// s390x-6.1/file_g.data.
    fn sample_callchain() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 1,
            body: Body::Sample(Sample {
                ip: Some(0x1a_8252),
                tid: Some(Tid { pid: 166, tid: 166 }),
                time: Some(13_334_128_427),
                period: Some(5_025_125),
                callchain: Some(vec![
                    0xffff_ffff_ffff_ff80, 0x1a_8252, 0x1a_8210, 0x1d_466a, 0x1d_4de0, 0x15_0c2a, 0x15_14f8,
                    0xa2_289c, 0xa3_32b6, 0xffff_ffff_ffff_fe00,
                ].into()),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::CALLCHAIN | T::PERIOD).with_read_format(R::ID | R::LOST),
        "09000000 0100 8000 52821a0000000000 a6000000 a6000000 2ba7c61a03000000 65ad4c0000000000
         0a00000000000000 80ffffffffffffff 52821a0000000000 10821a0000000000 6a461d0000000000 e04d1d0000000000
         2a0c150000000000 f814150000000000 9c28a20000000000 b632a30000000000 00feffffffffffff",
        "00000009 0001 0080 00000000001a8252 000000a6 000000a6 000000031ac6a72b 00000000004cad65
         000000000000000a ffffffffffffff80 00000000001a8252 00000000001a8210 00000000001d466a 00000000001d4de0
         0000000000150c2a 00000000001514f8 0000000000a2289c 0000000000a332b6 fffffffffffffe00",
    }

    /// x86_64-6.1/file_group_S.data.
    fn sample_group_read() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 1,
            body: Body::Sample(Sample {
                ip: Some(0xffff_ffff_8924_f129),
                tid: Some(Tid { pid: 227, tid: 227 }),
                time: Some(33_849_576_462),
                id: Some(201),
                period: Some(5_025_125),
                read: Some(ReadValue {
                    value: None,
                    nr: Some(2),
                    time_enabled: None,
                    time_running: None,
                    id: None,
                    lost: None,
                    values: ContextList(vec![
                        GroupValue { value: 7_025_665, id: Some(201), lost: Some(0) },
                        GroupValue { value: 7_232_646, id: Some(203), lost: Some(0) },
                    ]),
                }),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::READ | T::ID | T::PERIOD).with_read_format(R::ID | R::GROUP | R::LOST),
        "09000000 0100 6800 29f12489ffffffff e3000000 e3000000 0e8c97e107000000 c900000000000000
         65ad4c0000000000 0200000000000000 01346b0000000000 c900000000000000 0000000000000000 865c6e0000000000
         cb00000000000000 0000000000000000",
        "00000009 0001 0068 ffffffff8924f129 000000e3 000000e3 00000007e1978c0e 00000000000000c9
         00000000004cad65 0000000000000002 00000000006b3401 00000000000000c9 0000000000000000 00000000006e5c86
         00000000000000cb 0000000000000000",
    }

    /// x86_64-7.2/file_running_time.data.
    fn sample_read() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 2,
            body: Body::Sample(Sample {
                ip: Some(0x7f1d_e5e7_9f67),
                tid: Some(Tid { pid: 970, tid: 970 }),
                time: Some(219_374_204_571),
                id: Some(864),
                period: Some(5_025_125),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::PERIOD).with_read_format(R::TOTAL_TIME_ENABLED | R::TOTAL_TIME_RUNNING | R::ID | R::LOST),
        "09000000 0200 3000 679fe7e51d7f0000 ca030000 ca030000 9bb6b81333000000 6003000000000000
         65ad4c0000000000",
        "00000009 0002 0030 00007f1de5e79f67 000003ca 000003ca 0000003313b8b69b 0000000000000360
         00000000004cad65",
    }

    /// s390x-6.1/file_tp.data.
    fn sample_raw() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 1,
            body: Body::Sample(Sample {
                ip: Some(0x1e_0ee8),
                tid: Some(Tid { pid: 270, tid: 270 }),
                time: Some(33_876_930_195),
                id: Some(197),
                cpu: Some(Cpu { cpu: 0, reserved: 0 }),
                period: Some(1),
                raw: Some(bytes("011000000000010e000000000000002d0000000000000000000003ffb94ac3500000000000000002000003ffb94abea0000003ffb94ad018000000000000000000000000").into()),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ID | T::CPU | T::PERIOD | T::RAW).with_read_format(R::ID | R::LOST),
        "09000000 0100 8000 e80e1e0000000000 0e010000 0e010000 93ee38e307000000 c500000000000000 00000000
         00000000 0100000000000000 44000000 011000000000010e000000000000002d 0000000000000000000003ffb94ac350
         0000000000000002000003ffb94abea0 000003ffb94ad0180000000000000000 00000000",
        "00000009 0001 0080 00000000001e0ee8 0000010e 0000010e 00000007e338ee93 00000000000000c5 00000000
         00000000 0000000000000001 00000044 011000000000010e000000000000002d 0000000000000000000003ffb94ac350
         0000000000000002000003ffb94abea0 000003ffb94ad0180000000000000000 00000000",
    }

    /// s390x-6.1/file_data.data.
    fn sample_address() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 1,
            body: Body::Sample(Sample {
                ip: Some(0x18_a9b2),
                tid: Some(Tid { pid: 246, tid: 246 }),
                time: Some(29_111_499_406),
                addr: Some(0x3ff_bddf_7000),
                data_src: Some(DataSource(0x508_0021)),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ADDR | T::DATA_SRC).with_read_format(R::ID | R::LOST),
        "09000000 0100 3000 b2a9180000000000 f6000000 f6000000 8e3a2ec706000000 0070dfbdff030000
         2100080500000000",
        "00000009 0001 0030 000000000018a9b2 000000f6 000000f6 00000006c72e3a8e 000003ffbddf7000
         0000000005080021",
    }

    /// s390x-7.2/file_intr_regs_sel.data.
    fn sample_regs_intr() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 1,
            body: Body::Sample(Sample {
                ip: Some(0x3ff_fe9a_d81c),
                tid: Some(Tid { pid: 683, tid: 683 }),
                time: Some(178_295_846_438),
                period: Some(10_101_010),
                regs_intr: Some(Regs {
                    abi: RegsAbi::BITS_64,
                    regs: List(vec![0x3ff_0000_0000, 0x37f_fe78_3de8, 0xbf80_fd28, 0x3ff_fe9a_d81c]),
                }),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD | T::REGS_INTR).with_read_format(R::ID | R::LOST).with_sample_regs_intr(0x20000800c),
        "09000000 0100 5000 1cd89afeff030000 ab020000 ab020000 26b6428329000000 12219a0000000000
         0200000000000000 00000000ff030000 e83d78fe7f030000 28fd80bf00000000 1cd89afeff030000",
        "00000009 0001 0050 000003fffe9ad81c 000002ab 000002ab 000000298342b626 00000000009a2112
         0000000000000002 000003ff00000000 0000037ffe783de8 00000000bf80fd28 000003fffe9ad81c",
    }

    /// s390x-7.2/file_user_regs.data.
    fn sample_regs_user() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 2,
            body: Body::Sample(Sample {
                ip: Some(0x2aa_2688_0eea),
                tid: Some(Tid { pid: 709, tid: 709 }),
                time: Some(247_847_981_240),
                period: Some(10_101_010),
                regs_user: Some(Regs {
                    abi: RegsAbi::BITS_64,
                    regs: List(vec![0x3ff_b107_3000, 0xffff_ffff_0000_0000, 0x3ff_f7af_9648, 0x2aa_2688_0eea]),
                }),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::PERIOD | T::REGS_USER).with_read_format(R::ID | R::LOST).with_sample_regs_user(0x20000800c),
        "09000000 0200 5000 ea0e8826aa020000 c5020000 c5020000 b810e4b439000000 12219a0000000000
         0200000000000000 003007b1ff030000 00000000ffffffff 4896aff7ff030000 ea0e8826aa020000",
        "00000009 0002 0050 000002aa26880eea 000002c5 000002c5 00000039b4e410b8 00000000009a2112
         0000000000000002 000003ffb1073000 ffffffff00000000 000003fff7af9648 000002aa26880eea",
    }

    /// x86_64-6.1/file_data_pgsz.data.
    fn sample_page_sizes() {
        Record {
            kind: RecordType::SAMPLE,
            misc: 1,
            body: Body::Sample(Sample {
                ip: Some(0xffff_ffff_891e_f152),
                tid: Some(Tid { pid: 355, tid: 355 }),
                time: Some(70_736_833_276),
                addr: Some(0x7f0e_871d_1068),
                data_src: Some(DataSource(0x508_0021)),
                data_page_size: Some(4096),
                code_page_size: Some(2_097_152),
                ..sample()
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default().with_sample_type(T::IP | T::TID | T::TIME | T::ADDR | T::DATA_SRC | T::DATA_PAGE_SIZE | T::CODE_PAGE_SIZE).with_read_format(R::ID | R::LOST),
        "09000000 0100 4000 52f11e89ffffffff 63010000 63010000 fc6a3e7810000000 68101d870e7f0000
         2100080500000000 0010000000000000 0000200000000000",
        "00000009 0001 0040 ffffffff891ef152 00000163 00000163 00000010783e6afc 00007f0e871d1068
         0000000005080021 0000000000001000 0000000000200000",
    }
}
