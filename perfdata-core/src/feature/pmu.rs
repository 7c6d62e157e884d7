//! PMUs: the sources of events.

use crate::wire::{Counted, HeaderString, elements, wire};

wire! {
    /// Name of an event type.
    pub struct PmuMapping {
        /// Event type, as in attributes.
        pub kind: u32 => Number,
        /// PMU name in /sys/bus/event_source/devices.
        pub name: HeaderString => PmuName,
    }
}

wire! {
    /// A capability of a PMU: a file in its `caps` directory in sysfs.
    pub struct PmuCap {
        /// File name.
        pub name: HeaderString => Processor,
        /// File content.
        pub value: HeaderString => Processor,
    }
}

wire! {
    /// The capabilities of one PMU (`__write_pmu_caps`).
    pub struct PmuCaps {
        /// The capabilities.
        pub caps: Counted<u32, PmuCap>,
        /// PMU name.
        pub pmu: HeaderString => PmuName,
    }
}

wire! {
    /// A core PMU of a hybrid processor.
    pub struct HybridPmu {
        /// PMU name: `cpu_core`, `cpu_atom`.
        pub pmu: HeaderString => PmuName,
        /// CPUs as a list: `0-15`.
        pub cpus: HeaderString => Topology,
    }
}

elements!(PmuMapping, PmuCap, PmuCaps, HybridPmu);
