//! Samples.

use perfdata_tests::synth::attr::sample_type::*;
use perfdata_tests::synth::record::misc;
use perfdata_tests::synth::sample::{Read, ReadValue, Regs, Sample, Stack, context};
use perfdata_tests::synth::{Attr, kind};

use super::{BIG, LITTLE, fixture, user_record};

#[test]
fn samples() {
    #[track_caller]
    fn check(name: &str, at: usize, big: bool, misc: u16, attr: &Attr, sample: &Sample) {
        user_record((name, at), big, kind::SAMPLE, misc, |b| sample.put(b, attr));
    }
    let usual = IP | TID | TIME | PERIOD;
    let attr = Attr::new(usual | ID, "");
    let little = Sample {
        ip: 0x55e7_afa6_a3f8,
        pid: 0x742,
        tid: 0x742,
        time: 0x73_805a_f534,
        id: 0x665,
        period: 2_004_008,
        ..Sample::default()
    };
    check(
        "7.2-x86_64-pipe-default",
        0x1158,
        LITTLE,
        misc::USER,
        &attr,
        &little,
    );
    let big = Sample {
        ip: 0x3ff_feb6_9348,
        pid: 0x7b0,
        tid: 0x7b0,
        time: 0x82_38e3_8af7,
        id: 0x4f3,
        period: 2_004_008,
        ..Sample::default()
    };
    check(
        "7.2-s390x-pipe-default",
        0xe18,
        BIG,
        misc::KERNEL,
        &attr,
        &big,
    );

    let chain = Sample {
        ip: 0xffff_ffff_984c_61e7,
        pid: 0x753,
        tid: 0x756,
        time: 0x74_d856_4b8a,
        id: 0x672,
        period: 0x4c_ad65,
        callchain: vec![
            context::KERNEL,
            0xffff_ffff_984c_61e7,
            0xffff_ffff_992a_5b41,
            0xffff_ffff_9800_012f,
            context::USER,
            0x7f61_2f39_7efe,
            0x5581_cc69_55dd,
            0x7f61_2f38_fdb8,
        ],
        ..Sample::default()
    };
    check(
        "7.2-x86_64-pipe-g",
        0x13c8,
        LITTLE,
        misc::KERNEL,
        &Attr::new(usual | ID | CALLCHAIN, ""),
        &chain,
    );

    let attr = Attr::new(usual | ID | CPU | RAW, "");
    let raw = |name, at: usize| fixture(name)[at + 60..at + 128].to_vec();
    let little = Sample {
        ip: 0xffff_ffff_984a_070d,
        pid: 0x78c,
        tid: 0x78c,
        time: 0x78_d2e3_9f8a,
        id: 0x6b9,
        period: 1,
        raw: raw("7.2-x86_64-pipe-tp", 0x36a8),
        ..Sample::default()
    };
    check(
        "7.2-x86_64-pipe-tp",
        0x36a8,
        LITTLE,
        misc::KERNEL,
        &attr,
        &little,
    );
    let big = Sample {
        ip: 0x3ff_fe9f_0470,
        pid: 0x81c,
        tid: 0x81e,
        time: 0x89_0976_aa1b,
        id: 0x547,
        period: 1,
        raw: raw("7.2-s390x-pipe-tp", 0x2510),
        ..Sample::default()
    };
    check("7.2-s390x-pipe-tp", 0x2510, BIG, misc::KERNEL, &attr, &big);

    let group = Sample {
        ip: 0x3ff_bdb1_b214,
        pid: 0xda,
        tid: 0xda,
        time: 0x5_420c_97ba,
        id: 0xab,
        period: 0x4c_ad65,
        read: Read {
            values: vec![
                ReadValue {
                    value: 0x4d_ebb0,
                    id: 0xab,
                    lost: 0,
                },
                ReadValue {
                    value: 0x51_16de,
                    id: 0xad,
                    lost: 0,
                },
            ],
            ..Read::default()
        },
        ..Sample::default()
    };
    let attr = Attr {
        read_format: 0x1c,
        ..Attr::new(usual | ID | READ, "")
    };
    check(
        "6.1-s390x-file-group-S",
        0x8b0,
        BIG,
        misc::USER,
        &attr,
        &group,
    );
}

/// Registers and a copy of the user stack, which is compared as bytes.
#[test]
fn sample_with_stack() {
    let (name, at) = ("6.12-s390x-file-dwarf-u", 0x44b0);
    let attr = Attr {
        sample_regs_user: 0x3_ffff_ffff,
        ..Attr::new(
            IP | TID | TIME | ADDR | CALLCHAIN | PERIOD | REGS_USER | STACK_USER | DATA_SRC,
            "",
        )
    };
    #[rustfmt::skip]
    let registers = [
        0x2aa_2328_0238, 1, 0x3ff_a23a_f560, 0x3ff_a23a_cb10, 0x2aa_2328_1380, 0x6474_e550, 0, 0,
        0, 0x3ff_a23a_e000, 0x3ff_a23a_f560, 0x3ff_a23f_9000, 0x2aa_0f54_1690, 0x3ff_a23a_29d8, 0x3ff_a238_48f0,
        0x3ff_cda7_9fc8,
        0x3ff_fbb7_4798, 0x3ff_8e20_224c, 0x2aa_0f47_521a, 1, 0x3ff_0000_0000, 0x3ff_8e3e_ae20, 0x2aa_0000_0050,
        0x3ff_8dfc_46b0, 0x3ff_fbb7_a9e0, 0x120_cef0, 4, 0, 0x2aa_0132_5560, 0, 0x2aa_3c0a_f910, 0,
        0x705_0001_8000_0000, 0x3ff_a238_4320,
    ];
    let stack = &fixture(name)[at + 872 - 16 - 512..][..512];
    let sample = Sample {
        ip: 0x3ff_a238_4320,
        pid: 0xf7,
        tid: 0xf7,
        time: 0x4_fad0_78b4,
        period: 0x137_6763,
        regs_user: Regs {
            abi: 2,
            values: registers.to_vec(),
        },
        stack_user: Stack {
            data: stack.to_vec(),
            dyn_size: 512,
        },
        data_src: 0x1e_0508_0021,
        ..Sample::default()
    };
    user_record((name, at), BIG, kind::SAMPLE, misc::USER, |b| {
        sample.put(b, &attr)
    });
}
