//! Record type numbers, `PERF_RECORD_*`: 1 to 22 from include/uapi/linux/perf_event.h, 64 and up
//! from tools/lib/perf/include/perf/event.h.
#![allow(missing_docs, reason = "the kernel's names")]

pub const MMAP: u32 = 1;
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const THROTTLE: u32 = 5;
pub const UNTHROTTLE: u32 = 6;
pub const FORK: u32 = 7;
pub const READ: u32 = 8;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const AUX: u32 = 11;
pub const ITRACE_START: u32 = 12;
pub const LOST_SAMPLES: u32 = 13;
pub const SWITCH: u32 = 14;
pub const SWITCH_CPU_WIDE: u32 = 15;
pub const NAMESPACES: u32 = 16;
pub const KSYMBOL: u32 = 17;
pub const BPF_EVENT: u32 = 18;
pub const CGROUP: u32 = 19;
pub const TEXT_POKE: u32 = 20;
pub const AUX_OUTPUT_HW_ID: u32 = 21;
pub const CALLCHAIN_DEFERRED: u32 = 22;

pub const HEADER_ATTR: u32 = 64;
/// Not written since 3.12.
pub const HEADER_EVENT_TYPE: u32 = 65;
pub const HEADER_TRACING_DATA: u32 = 66;
pub const HEADER_BUILD_ID: u32 = 67;
pub const FINISHED_ROUND: u32 = 68;
pub const ID_INDEX: u32 = 69;
pub const AUXTRACE_INFO: u32 = 70;
pub const AUXTRACE: u32 = 71;
pub const AUXTRACE_ERROR: u32 = 72;
pub const THREAD_MAP: u32 = 73;
pub const CPU_MAP: u32 = 74;
pub const STAT_CONFIG: u32 = 75;
pub const STAT: u32 = 76;
pub const STAT_ROUND: u32 = 77;
pub const EVENT_UPDATE: u32 = 78;
pub const TIME_CONV: u32 = 79;
pub const HEADER_FEATURE: u32 = 80;
pub const COMPRESSED: u32 = 81;
pub const FINISHED_INIT: u32 = 82;
pub const COMPRESSED2: u32 = 83;
pub const BPF_METADATA: u32 = 84;
pub const SCHEDSTAT_CPU: u32 = 85;
pub const SCHEDSTAT_DOMAIN: u32 = 86;
