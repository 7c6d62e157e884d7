//! Records around AUX traces: Intel PT, BTS, CoreSight, SPE, … (tools/lib/perf/include/perf/event.h).

use crate::wire::wire;

wire! {
    /// Announces AUX data (4.1); the data follows the record.
    pub struct Auxtrace {
        /// Bytes behind the record.
        pub size: u64,
        /// Offset of the data in the AUX buffer.
        pub offset: u64 as Hex,
        /// Number that tells buffers apart.
        pub reference: u64 as Hex,
        /// Queue.
        pub idx: u32,
        /// Thread id, or -1.
        pub tid: u32 as Pid,
        /// CPU, or -1.
        pub cpu: u32 as Pid,
        /// Reserved.
        pub reserved: u32 as Pad,
    }
}
