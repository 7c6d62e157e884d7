//! Records about AUX traces.

use perfdata_core::DecodeContext;
use perfdata_core::record::*;
use perfdata_core::wire::{Rest, Text, ToEnd};

use super::{Case, bytes, cases, chars};

cases! {
    /// perf layout.
    fn auxtrace() {
        Record {
            kind: RecordType::AUXTRACE,
            misc: 0,
            body: Body::Auxtrace(Auxtrace {
                size: 4096,
                offset: 0x2000,
                reference: 0x1122_3344_5566_7788,
                idx: 1,
                tid: u32::MAX,
                cpu: 2,
                reserved: 0,
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "47000000 0000 3000 0010000000000000 0020000000000000 8877665544332211 01000000 ffffffff 02000000
         00000000",
        "00000047 0000 0030 0000000000001000 0000000000002000 1122334455667788 00000001 ffffffff 00000002
         00000000",
    }

    /// perf layout before 4.20.
    fn auxtrace_error() {
        Record {
            kind: RecordType::AUXTRACE_ERROR,
            misc: 0,
            body: Body::AuxtraceError(AuxtraceError {
                kind: AuxtraceErrorType::ITRACE,
                code: 5,
                cpu: 2,
                pid: 7,
                tid: 8,
                fmt: 0,
                ip: 0x40_1000,
                detail: AuxtraceErrorDetail::Message(Text(b"Lost trace data\0".to_vec())),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "48000000 0000 3800 01000000 05000000 02000000 07000000 08000000 00000000 0010400000000000
         4c6f7374207472616365206461746100",
        "00000048 0000 0038 00000001 00000005 00000002 00000007 00000008 00000000 0000000000401000
         4c6f7374207472616365206461746100",
    }

    /// perf layout since 4.20.
    fn auxtrace_error_timed() {
        Record {
            kind: RecordType::AUXTRACE_ERROR,
            misc: 0,
            body: Body::AuxtraceError(AuxtraceError {
                kind: AuxtraceErrorType::ITRACE,
                code: 5,
                cpu: 2,
                pid: 7,
                tid: 8,
                fmt: 1,
                ip: 0x40_1000,
                detail: AuxtraceErrorDetail::Timed(TimedMessage { time: 4_294_967_298, msg: Text(b"Overflow packet\0".to_vec()) }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "48000000 0000 4000 01000000 05000000 02000000 07000000 08000000 01000000 0010400000000000
         0200000001000000 4f766572666c6f77207061636b657400",
        "00000048 0000 0040 00000001 00000005 00000002 00000007 00000008 00000001 0000000000401000
         0000000100000002 4f766572666c6f77207061636b657400",
    }

    /// perf layout since 6.0.
    fn auxtrace_error_of_a_guest() {
        Record {
            kind: RecordType::AUXTRACE_ERROR,
            misc: 0,
            body: Body::AuxtraceError(AuxtraceError {
                kind: AuxtraceErrorType::ITRACE,
                code: 5,
                cpu: 2,
                pid: 7,
                tid: 8,
                fmt: 2,
                ip: 0x40_1000,
                detail: AuxtraceErrorDetail::Guest(GuestMessage {
                    time: 4_294_967_298,
                    msg: chars(b"Overflow packet"),
                    machine_pid: 77,
                    vcpu: 3,
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "48000000 0000 7800 01000000 05000000 02000000 07000000 08000000 02000000 0010400000000000
         0200000001000000 4f766572666c6f77207061636b657400 00*48 4d000000 03000000",
        "00000048 0000 0078 00000001 00000005 00000002 00000007 00000008 00000002 0000000000401000
         0000000100000002 4f766572666c6f77207061636b657400 00*48 0000004d 00000003",
    }

    /// Data in an unknown format remains bytes.
    fn auxtrace_error_of_the_future() {
        Record {
            kind: RecordType::AUXTRACE_ERROR,
            misc: 0,
            body: Body::AuxtraceError(AuxtraceError {
                kind: AuxtraceErrorType::ITRACE,
                code: 5,
                cpu: 2,
                pid: 7,
                tid: 8,
                fmt: 3,
                ip: 0x40_1000,
                detail: AuxtraceErrorDetail::Unknown(Rest(bytes("0001020304050607"))),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "48000000 0000 3000 01000000 05000000 02000000 07000000 08000000 03000000 0010400000000000
         0001020304050607",
        "00000048 0000 0030 00000001 00000005 00000002 00000007 00000008 00000003 0000000000401000
         0001020304050607",
    }

    /// perf layout since 5.17: the filter is text, not words.
    fn intel_pt() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::INTEL_PT,
                reserved: 0,
                private: AuxtracePrivate::IntelPt(IntelPt {
                    pmu_type: 8,
                    time_shift: 31,
                    time_mult: 725_372_254,
                    time_zero: 0xffff_fff0_1234_5678,
                    cap_user_time_zero: 1,
                    tsc_bit: 0x400,
                    noretcomp_bit: 0x800,
                    have_sched_switch: 3,
                    snapshot_mode: 0,
                    per_cpu_mmaps: 1,
                    mtc_bit: Some(0x200),
                    mtc_freq_bits: Some(0x3_c000),
                    tsc_ctc_n: Some(2),
                    tsc_ctc_d: Some(3),
                    cyc_bit: Some(2),
                    max_nonturbo_ratio: Some(24),
                    filter_str_len: Some(20),
                    filter: Rest(b"filter main @ /bin/a\0\0\0\0".to_vec()),
                    event_trace: Some(1),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 b800 01000000 00000000 0800000000000000 1f00000000000000 5e4d3c2b00000000
         78563412f0ffffff 0100000000000000 0004000000000000 0008000000000000 0300000000000000 0000000000000000
         0100000000000000 0002000000000000 00c0030000000000 0200000000000000 0300000000000000 0200000000000000
         1800000000000000 1400000000000000 66696c746572206d61696e2040202f62 696e2f6100000000 0100000000000000",
        "00000046 0000 00b8 00000001 00000000 0000000000000008 000000000000001f 000000002b3c4d5e
         fffffff012345678 0000000000000001 0000000000000400 0000000000000800 0000000000000003 0000000000000000
         0000000000000001 0000000000000200 000000000003c000 0000000000000002 0000000000000003 0000000000000002
         0000000000000018 0000000000000014 66696c746572206d61696e2040202f62 696e2f6100000000 0000000000000001",
    }

    /// perf layout since 4.14.
    fn intel_pt_without_filter() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::INTEL_PT,
                reserved: 0,
                private: AuxtracePrivate::IntelPt(IntelPt {
                    pmu_type: 8,
                    time_shift: 31,
                    time_mult: 725_372_254,
                    time_zero: 0xffff_fff0_1234_5678,
                    cap_user_time_zero: 1,
                    tsc_bit: 0x400,
                    noretcomp_bit: 0x800,
                    have_sched_switch: 3,
                    snapshot_mode: 0,
                    per_cpu_mmaps: 1,
                    mtc_bit: Some(0x200),
                    mtc_freq_bits: Some(0x3_c000),
                    tsc_ctc_n: Some(2),
                    tsc_ctc_d: Some(3),
                    cyc_bit: Some(2),
                    max_nonturbo_ratio: Some(24),
                    filter_str_len: Some(0),
                    filter: Rest(b"".to_vec()),
                    event_trace: None,
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 9800 01000000 00000000 0800000000000000 1f00000000000000 5e4d3c2b00000000
         78563412f0ffffff 0100000000000000 0004000000000000 0008000000000000 0300000000000000 0000000000000000
         0100000000000000 0002000000000000 00c0030000000000 0200000000000000 0300000000000000 0200000000000000
         1800000000000000 0000000000000000",
        "00000046 0000 0098 00000001 00000000 0000000000000008 000000000000001f 000000002b3c4d5e
         fffffff012345678 0000000000000001 0000000000000400 0000000000000800 0000000000000003 0000000000000000
         0000000000000001 0000000000000200 000000000003c000 0000000000000002 0000000000000003 0000000000000002
         0000000000000018 0000000000000000",
    }

    /// perf layout of 4.3.
    fn intel_pt_of_the_first_form() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::INTEL_PT,
                reserved: 0,
                private: AuxtracePrivate::IntelPt(IntelPt {
                    pmu_type: 8,
                    time_shift: 31,
                    time_mult: 725_372_254,
                    time_zero: 0xffff_fff0_1234_5678,
                    cap_user_time_zero: 1,
                    tsc_bit: 0x400,
                    noretcomp_bit: 0x800,
                    have_sched_switch: 3,
                    snapshot_mode: 0,
                    per_cpu_mmaps: 1,
                    mtc_bit: None,
                    mtc_freq_bits: None,
                    tsc_ctc_n: None,
                    tsc_ctc_d: None,
                    cyc_bit: None,
                    max_nonturbo_ratio: None,
                    filter_str_len: None,
                    filter: Rest(b"".to_vec()),
                    event_trace: None,
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 6000 01000000 00000000 0800000000000000 1f00000000000000 5e4d3c2b00000000
         78563412f0ffffff 0100000000000000 0004000000000000 0008000000000000 0300000000000000 0000000000000000
         0100000000000000",
        "00000046 0000 0060 00000001 00000000 0000000000000008 000000000000001f 000000002b3c4d5e
         fffffff012345678 0000000000000001 0000000000000400 0000000000000800 0000000000000003 0000000000000000
         0000000000000001",
    }

    /// perf layout.
    fn intel_bts() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::INTEL_BTS,
                reserved: 0,
                private: AuxtracePrivate::IntelBts(IntelBts {
                    pmu_type: 9,
                    time_shift: 31,
                    time_mult: 4660,
                    time_zero: 0xab_cdef,
                    cap_user_time_zero: 1,
                    snapshot_mode: 0,
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 4000 02000000 00000000 0900000000000000 1f00000000000000 3412000000000000
         efcdab0000000000 0100000000000000 0000000000000000",
        "00000046 0000 0040 00000002 00000000 0000000000000009 000000000000001f 0000000000001234
         0000000000abcdef 0000000000000001 0000000000000000",
    }

    /// perf layout.
    fn s390_cpumsf() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::S390_CPUMSF,
                reserved: 0,
                private: AuxtracePrivate::S390Cpumsf(NoBody {}),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 1000 05000000 00000000",
        "00000046 0000 0010 00000005 00000000",
    }

    /// perf layout.
    fn hisi_ptt() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::HISI_PTT,
                reserved: 0,
                private: AuxtracePrivate::HisiPtt(HisiPtt { pmu_type: 12 }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 1800 06000000 00000000 0c00000000000000",
        "00000046 0000 0018 00000006 00000000 000000000000000c",
    }

    /// perf layout.
    fn vpa_dtl() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::VPA_DTL,
                reserved: 0,
                private: AuxtracePrivate::VpaDtl(VpaDtl { reserved: 0 }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 1800 07000000 00000000 0000000000000000",
        "00000046 0000 0018 00000007 00000000 0000000000000000",
    }

    /// An unknown type, and half a word.
    fn auxtrace_info_of_the_future() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType(8),
                reserved: 0,
                private: AuxtracePrivate::Unknown(ToEnd(vec![1, 2])),
            }),
            tail: bytes("01020304"),
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 2400 08000000 00000000 0100000000000000 0200000000000000 01020304",
        "00000046 0000 0024 00000008 00000000 0000000000000001 0000000000000002 01020304",
    }
}
