//! Records of `perf stat record` and `perf sched stats`.

use perfdata_core::DecodeContext;
use perfdata_core::record::*;
use perfdata_core::wire::ToEnd;

use super::{Case, bytes, cases};

cases! {
    /// s390x-6.1/stat_record.data.
    fn stat_config() {
        Record {
            kind: RecordType::STAT_CONFIG,
            misc: 0,
            body: Body::StatConfig(StatConfig {
                settings: vec![
                    StatSetting { tag: StatConfigTag::AGGR_MODE, val: 1 },
                    StatSetting { tag: StatConfigTag::INTERVAL, val: 0 },
                    StatSetting { tag: StatConfigTag::SCALE, val: 1 },
                ].into(),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4b000000 0000 4000 0300000000000000 0000000000000000 0100000000000000 0100000000000000
         0000000000000000 0200000000000000 0100000000000000",
        "0000004b 0000 0040 0000000000000003 0000000000000000 0000000000000001 0000000000000001
         0000000000000000 0000000000000002 0000000000000001",
    }

    /// s390x-7.2/stat_record.data.
    fn stat_config_since_6_5() {
        Record {
            kind: RecordType::STAT_CONFIG,
            misc: 0,
            body: Body::StatConfig(StatConfig {
                settings: vec![
                    StatSetting { tag: StatConfigTag::AGGR_MODE, val: 1 },
                    StatSetting { tag: StatConfigTag::INTERVAL, val: 0 },
                    StatSetting { tag: StatConfigTag::SCALE, val: 1 },
                    StatSetting { tag: StatConfigTag::AGGR_LEVEL, val: 5 },
                ].into(),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4b000000 0000 5000 0400000000000000 0000000000000000 0100000000000000 0100000000000000
         0000000000000000 0200000000000000 0100000000000000 0300000000000000 0500000000000000",
        "0000004b 0000 0050 0000000000000004 0000000000000000 0000000000000001 0000000000000001
         0000000000000000 0000000000000002 0000000000000001 0000000000000003 0000000000000005",
    }

    /// s390x-6.1/stat_record.data.
    fn stat() {
        Record {
            kind: RecordType::STAT,
            misc: 0,
            body: Body::Stat(Stat {
                id: 555,
                cpu: u32::MAX,
                thread: 0,
                val: 586_102_194,
                ena: 588_641_300,
                run: 588_641_300,
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4c000000 0000 3000 2b02000000000000 ffffffff 00000000 b235ef2200000000 14f4152300000000
         14f4152300000000",
        "0000004c 0000 0030 000000000000022b ffffffff 00000000 0000000022ef35b2 000000002315f414
         000000002315f414",
    }

    /// s390x-6.1/stat_record.data.
    fn stat_round() {
        Record {
            kind: RecordType::STAT_ROUND,
            misc: 0,
            body: Body::StatRound(StatRound { kind: StatRoundType::FINAL, time: 436_762_267 }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "4d000000 0000 1800 0100000000000000 9b76081a00000000",
        "0000004d 0000 0018 0000000000000001 000000001a08769b",
    }

    /// s390x-7.2/tool_schedstats.data.
    fn schedstat_cpu() {
        Record {
            kind: RecordType::SCHEDSTAT_CPU,
            misc: 0,
            body: Body::SchedstatCpu(SchedstatCpu {
                timestamp: 4_295_029_933,
                cpu: 0,
                version: 16,
                pad: [0; 2],
                counters: CpuCounters::V15(CpuCounters15 {
                    yld_count: 0,
                    array_exp: 0,
                    sched_count: 0,
                    sched_goidle: 0,
                    ttwu_count: 0,
                    ttwu_local: 0,
                    rq_cpu_time: 358_232_102_736,
                    run_delay: 260_197_688_095,
                    pcount: 36_003,
                }),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "55000000 0000 4800 adf4000001000000 00000000 1000 0000 00000000 00000000 00000000 00000000 00000000
         00000000 50174c6853000000 1fa3fd943c000000 a38c000000000000",
        "00000055 0000 0048 000000010000f4ad 00000000 0010 0000 00000000 00000000 00000000 00000000 00000000
         00000000 00000053684c1750 0000003c94fda31f 0000000000008ca3",
    }

    /// An unknown version.
    fn schedstat_cpu_of_the_future() {
        Record {
            kind: RecordType::SCHEDSTAT_CPU,
            misc: 0,
            body: Body::SchedstatCpu(SchedstatCpu {
                timestamp: 1,
                cpu: 2,
                version: 18,
                pad: [0; 2],
                counters: CpuCounters::Unknown(ToEnd(vec![3, 4])),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "55000000 0000 2000 0100000000000000 02000000 1200 0000 03000000 04000000",
        "00000055 0000 0020 0000000000000001 00000002 0012 0000 00000003 00000004",
    }

    /// x86_64-7.2/tool_schedstats.data.
    fn schedstat_domain() {
        Record {
            kind: RecordType::SCHEDSTAT_DOMAIN,
            misc: 0,
            body: Body::SchedstatDomain(SchedstatDomain {
                timestamp: 4_295_045_960,
                cpu: 0,
                version: 17,
                domain: 0,
                counters: DomainCounters::V17(DomainCounters17 {
                    busy: LoadBalance17 {
                        count: 1,
                        balanced: 1,
                        failed: 0,
                        imbalance_load: 0,
                        imbalance_util: 0,
                        imbalance_task: 0,
                        imbalance_misfit: 0,
                        gained: 0,
                        hot_gained: 0,
                        nobusyq: 0,
                        nobusyg: 1,
                    },
                    idle: LoadBalance17 {
                        count: 16,
                        balanced: 16,
                        failed: 0,
                        imbalance_load: 0,
                        imbalance_util: 0,
                        imbalance_task: 0,
                        imbalance_misfit: 0,
                        gained: 0,
                        hot_gained: 0,
                        nobusyq: 0,
                        nobusyg: 16,
                    },
                    newidle: LoadBalance17 {
                        count: 1,
                        balanced: 1,
                        failed: 0,
                        imbalance_load: 0,
                        imbalance_util: 0,
                        imbalance_task: 0,
                        imbalance_misfit: 0,
                        gained: 0,
                        hot_gained: 0,
                        nobusyq: 0,
                        nobusyg: 1,
                    },
                    other: DomainCountersEnd {
                        active: ActiveBalance { count: 0, failed: 0, pushed: 0 },
                        exec: StartBalance { count: 0, balanced: 0, pushed: 0 },
                        fork: StartBalance { count: 0, balanced: 0, pushed: 0 },
                        ttwu_wake_remote: 2,
                        ttwu_move_affine: 2,
                        ttwu_move_balance: 0,
                    },
                }),
            }),
            tail: bytes("00*4"),
            sample_id: None,
        },
        DecodeContext::default(),
        "56000000 0000 d000 4833010001000000 00000000 1100 0000 01000000 01000000 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000000 01000000 10000000 10000000 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000000 10000000 01000000 01000000 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000000 01000000 00000000 00000000 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 02000000 02000000 00000000 00000000",
        "00000056 0000 00d0 0000000100013348 00000000 0011 0000 00000001 00000001 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000000 00000001 00000010 00000010 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000000 00000010 00000001 00000001 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000
         00000000 00000000 00000000 00000000 00000002 00000002 00000000 00000000",
    }

    /// perf layout, version 15.
    fn schedstat_domain_15() {
        Record {
            kind: RecordType::SCHEDSTAT_DOMAIN,
            misc: 0,
            body: Body::SchedstatDomain(SchedstatDomain {
                timestamp: 1000,
                cpu: 1001,
                version: 15,
                domain: 1,
                counters: DomainCounters::V15(DomainCounters15 {
                    idle: LoadBalance {
                        count: 1004,
                        balanced: 1005,
                        failed: 1006,
                        imbalance: 1007,
                        gained: 1008,
                        hot_gained: 1009,
                        nobusyq: 1010,
                        nobusyg: 1011,
                    },
                    busy: LoadBalance {
                        count: 1012,
                        balanced: 1013,
                        failed: 1014,
                        imbalance: 1015,
                        gained: 1016,
                        hot_gained: 1017,
                        nobusyq: 1018,
                        nobusyg: 1019,
                    },
                    newidle: LoadBalance {
                        count: 1020,
                        balanced: 1021,
                        failed: 1022,
                        imbalance: 1023,
                        gained: 1024,
                        hot_gained: 1025,
                        nobusyq: 1026,
                        nobusyg: 1027,
                    },
                    other: DomainCountersEnd {
                        active: ActiveBalance { count: 1028, failed: 1029, pushed: 1030 },
                        exec: StartBalance { count: 1031, balanced: 1032, pushed: 1033 },
                        fork: StartBalance { count: 1034, balanced: 1035, pushed: 1036 },
                        ttwu_wake_remote: 1037,
                        ttwu_move_affine: 1038,
                        ttwu_move_balance: 1039,
                    },
                }),
            }),
            tail: bytes("00*40"),
            sample_id: None,
        },
        DecodeContext::default(),
        "56000000 0000 d000 e803000000000000 e9030000 0f00 0100 ec030000 ed030000 ee030000 ef030000 f0030000
         f1030000 f2030000 f3030000 f4030000 f5030000 f6030000 f7030000 f8030000 f9030000 fa030000 fb030000
         fc030000 fd030000 fe030000 ff030000 00040000 01040000 02040000 03040000 04040000 05040000 06040000
         07040000 08040000 09040000 0a040000 0b040000 0c040000 0d040000 0e040000 0f040000 00*40",
        "00000056 0000 00d0 00000000000003e8 000003e9 000f 0001 000003ec 000003ed 000003ee 000003ef 000003f0
         000003f1 000003f2 000003f3 000003f4 000003f5 000003f6 000003f7 000003f8 000003f9 000003fa 000003fb
         000003fc 000003fd 000003fe 000003ff 00000400 00000401 00000402 00000403 00000404 00000405 00000406
         00000407 00000408 00000409 0000040a 0000040b 0000040c 0000040d 0000040e 0000040f 00*40",
    }

    /// perf layout, version 16.
    fn schedstat_domain_16() {
        Record {
            kind: RecordType::SCHEDSTAT_DOMAIN,
            misc: 0,
            body: Body::SchedstatDomain(SchedstatDomain {
                timestamp: 1000,
                cpu: 1001,
                version: 16,
                domain: 1,
                counters: DomainCounters::V16(DomainCounters16 {
                    busy: LoadBalance {
                        count: 1004,
                        balanced: 1005,
                        failed: 1006,
                        imbalance: 1007,
                        gained: 1008,
                        hot_gained: 1009,
                        nobusyq: 1010,
                        nobusyg: 1011,
                    },
                    idle: LoadBalance {
                        count: 1012,
                        balanced: 1013,
                        failed: 1014,
                        imbalance: 1015,
                        gained: 1016,
                        hot_gained: 1017,
                        nobusyq: 1018,
                        nobusyg: 1019,
                    },
                    newidle: LoadBalance {
                        count: 1020,
                        balanced: 1021,
                        failed: 1022,
                        imbalance: 1023,
                        gained: 1024,
                        hot_gained: 1025,
                        nobusyq: 1026,
                        nobusyg: 1027,
                    },
                    other: DomainCountersEnd {
                        active: ActiveBalance { count: 1028, failed: 1029, pushed: 1030 },
                        exec: StartBalance { count: 1031, balanced: 1032, pushed: 1033 },
                        fork: StartBalance { count: 1034, balanced: 1035, pushed: 1036 },
                        ttwu_wake_remote: 1037,
                        ttwu_move_affine: 1038,
                        ttwu_move_balance: 1039,
                    },
                }),
            }),
            tail: bytes("00*40"),
            sample_id: None,
        },
        DecodeContext::default(),
        "56000000 0000 d000 e803000000000000 e9030000 1000 0100 ec030000 ed030000 ee030000 ef030000 f0030000
         f1030000 f2030000 f3030000 f4030000 f5030000 f6030000 f7030000 f8030000 f9030000 fa030000 fb030000
         fc030000 fd030000 fe030000 ff030000 00040000 01040000 02040000 03040000 04040000 05040000 06040000
         07040000 08040000 09040000 0a040000 0b040000 0c040000 0d040000 0e040000 0f040000 00*40",
        "00000056 0000 00d0 00000000000003e8 000003e9 0010 0001 000003ec 000003ed 000003ee 000003ef 000003f0
         000003f1 000003f2 000003f3 000003f4 000003f5 000003f6 000003f7 000003f8 000003f9 000003fa 000003fb
         000003fc 000003fd 000003fe 000003ff 00000400 00000401 00000402 00000403 00000404 00000405 00000406
         00000407 00000408 00000409 0000040a 0000040b 0000040c 0000040d 0000040e 0000040f 00*40",
    }

    /// perf layout, version 17.
    fn schedstat_domain_17() {
        Record {
            kind: RecordType::SCHEDSTAT_DOMAIN,
            misc: 0,
            body: Body::SchedstatDomain(SchedstatDomain {
                timestamp: 1000,
                cpu: 1001,
                version: 17,
                domain: 1,
                counters: DomainCounters::V17(DomainCounters17 {
                    busy: LoadBalance17 {
                        count: 1004,
                        balanced: 1005,
                        failed: 1006,
                        imbalance_load: 1007,
                        imbalance_util: 1008,
                        imbalance_task: 1009,
                        imbalance_misfit: 1010,
                        gained: 1011,
                        hot_gained: 1012,
                        nobusyq: 1013,
                        nobusyg: 1014,
                    },
                    idle: LoadBalance17 {
                        count: 1015,
                        balanced: 1016,
                        failed: 1017,
                        imbalance_load: 1018,
                        imbalance_util: 1019,
                        imbalance_task: 1020,
                        imbalance_misfit: 1021,
                        gained: 1022,
                        hot_gained: 1023,
                        nobusyq: 1024,
                        nobusyg: 1025,
                    },
                    newidle: LoadBalance17 {
                        count: 1026,
                        balanced: 1027,
                        failed: 1028,
                        imbalance_load: 1029,
                        imbalance_util: 1030,
                        imbalance_task: 1031,
                        imbalance_misfit: 1032,
                        gained: 1033,
                        hot_gained: 1034,
                        nobusyq: 1035,
                        nobusyg: 1036,
                    },
                    other: DomainCountersEnd {
                        active: ActiveBalance { count: 1037, failed: 1038, pushed: 1039 },
                        exec: StartBalance { count: 1040, balanced: 1041, pushed: 1042 },
                        fork: StartBalance { count: 1043, balanced: 1044, pushed: 1045 },
                        ttwu_wake_remote: 1046,
                        ttwu_move_affine: 1047,
                        ttwu_move_balance: 1048,
                    },
                }),
            }),
            tail: bytes("00*4"),
            sample_id: None,
        },
        DecodeContext::default(),
        "56000000 0000 d000 e803000000000000 e9030000 1100 0100 ec030000 ed030000 ee030000 ef030000 f0030000
         f1030000 f2030000 f3030000 f4030000 f5030000 f6030000 f7030000 f8030000 f9030000 fa030000 fb030000
         fc030000 fd030000 fe030000 ff030000 00040000 01040000 02040000 03040000 04040000 05040000 06040000
         07040000 08040000 09040000 0a040000 0b040000 0c040000 0d040000 0e040000 0f040000 10040000 11040000
         12040000 13040000 14040000 15040000 16040000 17040000 18040000 00000000",
        "00000056 0000 00d0 00000000000003e8 000003e9 0011 0001 000003ec 000003ed 000003ee 000003ef 000003f0
         000003f1 000003f2 000003f3 000003f4 000003f5 000003f6 000003f7 000003f8 000003f9 000003fa 000003fb
         000003fc 000003fd 000003fe 000003ff 00000400 00000401 00000402 00000403 00000404 00000405 00000406
         00000407 00000408 00000409 0000040a 0000040b 0000040c 0000040d 0000040e 0000040f 00000410 00000411
         00000412 00000413 00000414 00000415 00000416 00000417 00000418 00000000",
    }

    /// An unknown version.
    fn schedstat_domain_of_the_future() {
        Record {
            kind: RecordType::SCHEDSTAT_DOMAIN,
            misc: 0,
            body: Body::SchedstatDomain(SchedstatDomain {
                timestamp: 1,
                cpu: 2,
                version: 18,
                domain: 0,
                counters: DomainCounters::Unknown(ToEnd(vec![3, 4])),
            }),
            tail: vec![],
            sample_id: None,
        },
        DecodeContext::default(),
        "56000000 0000 2000 0100000000000000 02000000 1200 0000 03000000 04000000",
        "00000056 0000 0020 0000000000000001 00000002 0012 0000 00000003 00000004",
    }
}
