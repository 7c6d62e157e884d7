//! Records of `perf stat record`: counts instead of samples (tools/lib/perf/include/perf/event.h).

use crate::codes::codes;
use crate::wire::{Counted, elements, wire};

codes! {
    /// Type of a STAT_CONFIG setting.
    pub struct StatConfigTag: u64 {
        0 AGGR_MODE "aggr_mode",
        1 INTERVAL "interval",
        2 SCALE "scale",
        3 AGGR_LEVEL "aggr_level",
    }
}

wire! {
    /// A setting of `perf stat`.
    pub struct StatSetting {
        /// Type.
        pub tag: StatConfigTag,
        /// Value; the interval is in milliseconds.
        pub val: u64 => Number,
    }
}
elements!(StatSetting);

wire! {
    /// The settings of `perf stat` (4.5).
    pub struct StatConfig {
        /// Three settings, four since 6.5.
        pub settings: Counted<u64, StatSetting>,
    }
}

wire! {
    /// One event's count on one CPU or in one thread (4.5).
    pub struct Stat {
        /// Event ID.
        pub id: u64 as Id,
        /// Index of the CPU in the event's map, or -1.
        pub cpu: u32 as Cpu,
        /// Index of the thread in the thread map.
        pub thread: u32 as Optional => Number,
        /// The count.
        pub val: u64 => Number,
        /// Time in nanoseconds during which the event was enabled.
        pub ena: u64 => Number,
        /// Time in nanoseconds during which the event was on the PMU.
        pub run: u64 => Number,
    }
}

codes! {
    /// Reason for the end of a round of counts.
    pub struct StatRoundType: u64 {
        0 INTERVAL "interval",
        1 FINAL "final",
    }
}

wire! {
    /// The end of a round of counts (4.5).
    pub struct StatRound {
        /// Reason.
        pub kind: StatRoundType,
        /// Nanoseconds since the start.
        pub time: u64 as Time,
    }
}
