//! Times and clocks.

use crate::codes::codes;
use crate::wire::wire;

wire! {
    /// Times of the first and the last sample. Both are 0 in a recorded pipe, because perf writes
    /// the section before any sample.
    pub struct SampleTime {
        /// Nanoseconds on the recording's clock.
        pub first: u64 as Time,
        /// Nanoseconds on the recording's clock.
        pub last: u64 as Time,
    }
}

codes! {
    /// A clock of the kernel (include/uapi/linux/time.h).
    pub struct ClockId: u32 {
        0 REALTIME "realtime",
        1 MONOTONIC "monotonic",
        2 PROCESS_CPUTIME "process_cputime",
        3 THREAD_CPUTIME "thread_cputime",
        4 MONOTONIC_RAW "monotonic_raw",
        5 REALTIME_COARSE "realtime_coarse",
        6 MONOTONIC_COARSE "monotonic_coarse",
        7 BOOTTIME "boottime",
        11 TAI "tai",
    }
}

wire! {
    /// One moment on two clocks, for conversion of the recording's times to times of day.
    pub struct ClockData {
        /// Version of the section: 1.
        pub version: u32 => Number,
        /// The recording's clock.
        pub clock: ClockId,
        /// Time of day in nanoseconds since 1970 (UTC).
        pub wall_clock: u64 as Time,
        /// The same moment in nanoseconds on the recording's clock.
        pub clock_time: u64 as Time,
    }
}
