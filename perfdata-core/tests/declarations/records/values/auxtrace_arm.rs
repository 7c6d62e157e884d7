//! AUXTRACE_INFO of Arm traces.

use perfdata_core::DecodeContext;
use perfdata_core::record::*;
use perfdata_core::wire::{ContextList, List, ToEnd};

use super::{Case, cases};

cases! {
    /// perf layout before 5.10.
    fn cs_etm_0() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::CS_ETM,
                reserved: 0,
                private: AuxtracePrivate::CsEtm(CsEtm {
                    version: 0,
                    content: CsEtmContent::V0(CsEtm0 {
                        pmu: CsEtmPmu(0x8_0000_0002),
                        snapshot: 0,
                        units: ContextList(vec![
                            TraceUnit0 {
                                magic: TraceUnitMagic::ETMV3,
                                cpu: 0,
                                params: TraceUnitParams0::Etm3(Etm3 {
                                    etmcr: 0x1000,
                                    traceidr: 0x10,
                                    ccer: 0x8d2,
                                    idr: 0x411c_f300,
                                    more: List(vec![]),
                                }),
                            },
                            TraceUnit0 {
                                magic: TraceUnitMagic::ETMV4,
                                cpu: 1,
                                params: TraceUnitParams0::Etm4(Etm4 {
                                    trcconfigr: 1,
                                    trctraceidr: 0x12,
                                    trcidr0: 0x2800_0ea1,
                                    trcidr1: 0x4100_f403,
                                    trcidr2: 0x488,
                                    trcidr8: 0,
                                    trcauthstatus: 0xcc,
                                    ts_source: None,
                                    more: List(vec![]),
                                }),
                            },
                        ]),
                    }),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 a000 03000000 00000000 0000000000000000 0200000008000000 0000000000000000
         3030303030303030 0000000000000000 0010000000000000 1000000000000000 d208000000000000 00f31c4100000000
         4040404040404040 0100000000000000 0100000000000000 1200000000000000 a10e002800000000 03f4004100000000
         8804000000000000 0000000000000000 cc00000000000000",
        "00000046 0000 00a0 00000003 00000000 0000000000000000 0000000800000002 0000000000000000
         3030303030303030 0000000000000000 0000000000001000 0000000000000010 00000000000008d2 00000000411cf300
         4040404040404040 0000000000000001 0000000000000001 0000000000000012 0000000028000ea1 000000004100f403
         0000000000000488 0000000000000000 00000000000000cc",
    }

    /// An unknown unit contains all words that follow.
    fn cs_etm_0_unknown() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::CS_ETM,
                reserved: 0,
                private: AuxtracePrivate::CsEtm(CsEtm {
                    version: 0,
                    content: CsEtmContent::V0(CsEtm0 {
                        pmu: CsEtmPmu(0x8_0000_0001),
                        snapshot: 0,
                        units: ContextList(vec![
                            TraceUnit0 {
                                magic: TraceUnitMagic(6_944_656_592_455_360_608),
                                cpu: 0,
                                params: TraceUnitParams0::Unknown(ToEnd(vec![1, 2])),
                            },
                        ]),
                    }),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 4800 03000000 00000000 0000000000000000 0100000008000000 0000000000000000
         6060606060606060 0000000000000000 0100000000000000 0200000000000000",
        "00000046 0000 0048 00000003 00000000 0000000000000000 0000000800000001 0000000000000000
         6060606060606060 0000000000000000 0000000000000001 0000000000000002",
    }

    /// perf layout since 5.10: every type of unit.
    fn cs_etm_1() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::CS_ETM,
                reserved: 0,
                private: AuxtracePrivate::CsEtm(CsEtm {
                    version: 1,
                    content: CsEtmContent::V1(CsEtm1 {
                        pmu: CsEtmPmu(0x8_0000_0005),
                        snapshot: 1,
                        units: ContextList(vec![
                            TraceUnit {
                                magic: TraceUnitMagic::ETMV3,
                                cpu: 0,
                                nr_params: 4,
                                params: TraceUnitParams::Etm3(Etm3 {
                                    etmcr: 0x1000,
                                    traceidr: 0x10,
                                    ccer: 0x8d2,
                                    idr: 0x411c_f300,
                                    more: List(vec![]),
                                }),
                            },
                            TraceUnit {
                                magic: TraceUnitMagic::ETMV4,
                                cpu: 1,
                                nr_params: 7,
                                params: TraceUnitParams::Etm4(Etm4 {
                                    trcconfigr: 1,
                                    trctraceidr: 0x12,
                                    trcidr0: 0x2800_0ea1,
                                    trcidr1: 0x4100_f403,
                                    trcidr2: 0x488,
                                    trcidr8: 0,
                                    trcauthstatus: 0xcc,
                                    ts_source: None,
                                    more: List(vec![]),
                                }),
                            },
                            TraceUnit {
                                magic: TraceUnitMagic::ETMV4,
                                cpu: 2,
                                nr_params: 9,
                                params: TraceUnitParams::Etm4(Etm4 {
                                    trcconfigr: 1,
                                    trctraceidr: 0x12,
                                    trcidr0: 0x2800_0ea1,
                                    trcidr1: 0x4100_f403,
                                    trcidr2: 0x488,
                                    trcidr8: 0,
                                    trcauthstatus: 0xcc,
                                    ts_source: Some(u64::MAX),
                                    more: List(vec![0x99]),
                                }),
                            },
                            TraceUnit {
                                magic: TraceUnitMagic::ETE,
                                cpu: 3,
                                nr_params: 9,
                                params: TraceUnitParams::Ete(Ete {
                                    trcconfigr: 1,
                                    trctraceidr: 0x14,
                                    trcidr0: 0x2800_0ea1,
                                    trcidr1: 0x4100_fff3,
                                    trcidr2: 0x488,
                                    trcidr8: 0,
                                    trcauthstatus: 0xcc,
                                    trcdevarch: 0x4770_5a13,
                                    ts_source: Some(1),
                                    more: List(vec![]),
                                }),
                            },
                            TraceUnit {
                                magic: TraceUnitMagic(6_944_656_592_455_360_608),
                                cpu: 4,
                                nr_params: 2,
                                params: TraceUnitParams::Words(List(vec![1, 2])),
                            },
                        ]),
                    }),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 9801 03000000 00000000 0100000000000000 0500000008000000 0100000000000000
         3030303030303030 0000000000000000 0400000000000000 0010000000000000 1000000000000000 d208000000000000
         00f31c4100000000 4040404040404040 0100000000000000 0700000000000000 0100000000000000 1200000000000000
         a10e002800000000 03f4004100000000 8804000000000000 0000000000000000 cc00000000000000 4040404040404040
         0200000000000000 0900000000000000 0100000000000000 1200000000000000 a10e002800000000 03f4004100000000
         8804000000000000 0000000000000000 cc00000000000000 ffffffffffffffff 9900000000000000 5050505050505050
         0300000000000000 0900000000000000 0100000000000000 1400000000000000 a10e002800000000 f3ff004100000000
         8804000000000000 0000000000000000 cc00000000000000 135a704700000000 0100000000000000 6060606060606060
         0400000000000000 0200000000000000 0100000000000000 0200000000000000",
        "00000046 0000 0198 00000003 00000000 0000000000000001 0000000800000005 0000000000000001
         3030303030303030 0000000000000000 0000000000000004 0000000000001000 0000000000000010 00000000000008d2
         00000000411cf300 4040404040404040 0000000000000001 0000000000000007 0000000000000001 0000000000000012
         0000000028000ea1 000000004100f403 0000000000000488 0000000000000000 00000000000000cc 4040404040404040
         0000000000000002 0000000000000009 0000000000000001 0000000000000012 0000000028000ea1 000000004100f403
         0000000000000488 0000000000000000 00000000000000cc ffffffffffffffff 0000000000000099 5050505050505050
         0000000000000003 0000000000000009 0000000000000001 0000000000000014 0000000028000ea1 000000004100fff3
         0000000000000488 0000000000000000 00000000000000cc 0000000047705a13 0000000000000001 6060606060606060
         0000000000000004 0000000000000002 0000000000000001 0000000000000002",
    }

    /// perf layout since 6.2.
    fn cs_etm_2() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::CS_ETM,
                reserved: 0,
                private: AuxtracePrivate::CsEtm(CsEtm {
                    version: 2,
                    content: CsEtmContent::V1(CsEtm1 {
                        pmu: CsEtmPmu(0x8_0000_0001),
                        snapshot: 0,
                        units: ContextList(vec![
                            TraceUnit {
                                magic: TraceUnitMagic::ETE,
                                cpu: 0,
                                nr_params: 8,
                                params: TraceUnitParams::Ete(Ete {
                                    trcconfigr: 1,
                                    trctraceidr: 0x14,
                                    trcidr0: 0x2800_0ea1,
                                    trcidr1: 0x4100_fff3,
                                    trcidr2: 0x488,
                                    trcidr8: 0,
                                    trcauthstatus: 0xcc,
                                    trcdevarch: 0x4770_5a13,
                                    ts_source: None,
                                    more: List(vec![]),
                                }),
                            },
                        ]),
                    }),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 8000 03000000 00000000 0200000000000000 0100000008000000 0000000000000000
         5050505050505050 0000000000000000 0800000000000000 0100000000000000 1400000000000000 a10e002800000000
         f3ff004100000000 8804000000000000 0000000000000000 cc00000000000000 135a704700000000",
        "00000046 0000 0080 00000003 00000000 0000000000000002 0000000800000001 0000000000000000
         5050505050505050 0000000000000000 0000000000000008 0000000000000001 0000000000000014 0000000028000ea1
         000000004100fff3 0000000000000488 0000000000000000 00000000000000cc 0000000047705a13",
    }

    /// An unknown version.
    fn cs_etm_of_the_future() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::CS_ETM,
                reserved: 0,
                private: AuxtracePrivate::CsEtm(CsEtm { version: 3, content: CsEtmContent::Unknown(ToEnd(vec![1, 2])) }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 2800 03000000 00000000 0300000000000000 0100000000000000 0200000000000000",
        "00000046 0000 0028 00000003 00000000 0000000000000003 0000000000000001 0000000000000002",
    }

    /// perf layout before 6.13.
    fn arm_spe_1() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::ARM_SPE,
                reserved: 0,
                private: AuxtracePrivate::ArmSpe1(ArmSpe1 { pmu_type: 8, per_cpu_mmaps: 1 }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 2000 04000000 00000000 0800000000000000 0100000000000000",
        "00000046 0000 0020 00000004 00000000 0000000000000008 0000000000000001",
    }

    /// perf layout since 6.13; the second unit as since 6.19, with one additional unknown word.
    fn arm_spe_2() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::ARM_SPE,
                reserved: 0,
                private: AuxtracePrivate::ArmSpe(ArmSpe {
                    version: 2,
                    content: ArmSpeContent::V2(ArmSpe2 {
                        header_words: 4,
                        pmu_type: 8,
                        nr_cpus: 2,
                        more: List(vec![]),
                        units: ContextList(vec![
                            TraceUnit {
                                magic: TraceUnitMagic::ARM_SPE,
                                cpu: 0,
                                nr_params: 3,
                                params: TraceUnitParams::ArmSpe(SpeUnit {
                                    midr: 0x410f_d0c1,
                                    pmu_type: u64::MAX,
                                    min_interval: 1024,
                                    event_filter: None,
                                    more: List(vec![]),
                                }),
                            },
                            TraceUnit {
                                magic: TraceUnitMagic::ARM_SPE,
                                cpu: 1,
                                nr_params: 5,
                                params: TraceUnitParams::ArmSpe(SpeUnit {
                                    midr: 0x410f_d0c1,
                                    pmu_type: u64::MAX,
                                    min_interval: 1024,
                                    event_filter: Some(0x1e),
                                    more: List(vec![0x99]),
                                }),
                            },
                        ]),
                    }),
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 a000 04000000 00000000 0200000000000000 0400000000000000 0800000000000000
         0200000000000000 1010101010101010 0000000000000000 0300000000000000 c1d00f4100000000 ffffffffffffffff
         0004000000000000 1010101010101010 0100000000000000 0500000000000000 c1d00f4100000000 ffffffffffffffff
         0004000000000000 1e00000000000000 9900000000000000",
        "00000046 0000 00a0 00000004 00000000 0000000000000002 0000000000000004 0000000000000008
         0000000000000002 1010101010101010 0000000000000000 0000000000000003 00000000410fd0c1 ffffffffffffffff
         0000000000000400 1010101010101010 0000000000000001 0000000000000005 00000000410fd0c1 ffffffffffffffff
         0000000000000400 000000000000001e 0000000000000099",
    }

    /// An unknown version.
    fn arm_spe_of_the_future() {
        Record {
            kind: RecordType::AUXTRACE_INFO,
            misc: 0,
            body: Body::AuxtraceInfo(AuxtraceInfo {
                kind: AuxtraceType::ARM_SPE,
                reserved: 0,
                private: AuxtracePrivate::ArmSpe(ArmSpe { version: 3, content: ArmSpeContent::Unknown(ToEnd(vec![1, 2])) }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "46000000 0000 2800 04000000 00000000 0300000000000000 0100000000000000 0200000000000000",
        "00000046 0000 0028 00000004 00000000 0000000000000003 0000000000000001 0000000000000002",
    }
}
