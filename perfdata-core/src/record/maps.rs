//! Records that say what ids, threads and CPUs belong together (tools/lib/perf/include/perf/event.h).

use crate::codes::codes;
use crate::record::choice::choice;
use crate::wire::{Chars, Counted, List, Rest, Text, ToEnd, elements, wire};

wire! {
    /// One event id: which CPU and thread its event was opened for.
    pub struct IdIndexEntry {
        /// Event id.
        pub id: u64 as Id,
        /// Index of the ring buffer.
        pub idx: u64,
        /// CPU, or -1.
        pub cpu: u64 as Pid,
        /// Thread id, or -1.
        pub tid: u64 as Pid,
    }
}
elements!(IdIndexEntry);

wire! {
    /// The guest machine that an event id belongs to.
    pub struct IdIndexGuest {
        /// Process id of the guest machine; 0 for the host.
        pub machine_pid: u64 as Pid,
        /// CPU of the guest machine, or -1.
        pub vcpu: u64 as Pid,
    }
}
elements!(IdIndexGuest);

wire! {
    /// The CPUs and threads of event ids (3.19).
    pub struct IdIndex(layout) {
        /// The ids.
        pub entries: Counted<u64, IdIndexEntry>,
        /// Their guest machines, for each or for none (6.0).
        #[br(args(if layout.len >= (entries.len() as u64).saturating_mul(48).saturating_add(8) { entries.len() as u64 } else { 0 }))]
        pub guests: List<IdIndexGuest>,
    }
}

wire! {
    /// A thread.
    pub struct ThreadMapEntry {
        /// Thread id, or -1.
        pub pid: u64 as Pid,
        /// Its name; not always terminated.
        pub comm: Chars<16>,
    }
}
elements!(ThreadMapEntry);

wire! {
    /// The threads that `perf stat` counted (4.5).
    pub struct ThreadMap {
        /// The threads.
        pub threads: Counted<u64, ThreadMapEntry>,
    }
}

codes! {
    /// Form of a set of CPUs.
    pub struct CpuMapType: u16 {
        0 CPUS "cpus",
        1 MASK "mask",
        2 RANGE "range",
    }
}

wire! {
    /// A set of CPUs (4.5). Also the content of an EVENT_UPDATE.
    pub struct CpuMap(layout) {
        /// Form of the set.
        pub kind: CpuMapType,
        /// The set.
        #[br(args_raw = (kind, layout))]
        pub cpus: CpuSet,
    }
}

choice! {
    /// A set of CPUs in one of its forms.
    pub enum CpuSet(kind: CpuMapType, layout) {
        /// Their numbers; 0xffff stands for any CPU.
        CpuMapType::CPUS => Cpus(Counted<u16, u16> as Pid),
        /// Their bits.
        CpuMapType::MASK => Mask(CpuMask) with layout,
        /// A range.
        CpuMapType::RANGE => Range(CpuRange),
        /// A form that this version does not know.
        _ => Unknown(Rest as Opaque),
    }
}

wire! {
    /// CPUs as bits of words, which stand at no natural boundary.
    pub struct CpuMask(layout) {
        /// Number of words.
        pub nr: u16,
        /// Bytes of a word: 4, or 8 from 64-bit machines before 6.0.
        pub long_size: u16,
        /// Filling before words of 8 bytes.
        #[br(if(long_size == 8))]
        pub pad: Option<[u8; 4]> as Pad,
        /// The words.
        #[br(args_raw = ((long_size, nr), layout))]
        pub words: CpuMaskWords,
        /// Words that `nr` does not count: perf since 6.0 counts one too few where the highest CPU is a multiple of 32,
        /// and puts its bit behind the others.
        #[br(if(long_size == 4), args_raw = (4,))]
        pub uncounted: Option<ToEnd<u32>> as Hex,
    }
}

choice! {
    /// The words of a CPU mask, by their size and number.
    pub enum CpuMaskWords(form: (u16, u16), layout) {
        /// Words of 4 bytes.
        (4, nr) => Words32(List<u32> as Hex) with (u64::from(nr),),
        /// Words of 8 bytes.
        (8, nr) => Words64(List<u64> as Hex) with (u64::from(nr),),
        /// Words of a size that this version does not know.
        _ => Unknown(Rest as Opaque),
    }
}

wire! {
    /// A range of CPUs (6.0).
    pub struct CpuRange {
        /// Whether "any CPU" is in the set, too.
        pub any_cpu: u8,
        /// Reserved.
        pub pad: u8 as Pad,
        /// First CPU.
        pub start_cpu: u16,
        /// Last CPU.
        pub end_cpu: u16,
    }
}

codes! {
    /// What an EVENT_UPDATE is about.
    pub struct EventUpdateType: u64 {
        0 UNIT "unit",
        1 SCALE "scale",
        2 NAME "name",
        3 CPUS "cpus",
    }
}

wire! {
    /// What perf knows of an event beside its attribute (4.5).
    pub struct EventUpdate(layout) {
        /// What this is about.
        pub kind: EventUpdateType,
        /// The event's first id.
        pub id: u64 as Id,
        /// The news.
        #[br(args_raw = (kind, layout))]
        pub update: EventUpdateValue,
    }
}

choice! {
    /// The content of an EVENT_UPDATE, by its type.
    pub enum EventUpdateValue(kind: EventUpdateType, layout) {
        /// Unit of the counts.
        EventUpdateType::UNIT => Unit(Text),
        /// Factor from counts to units.
        EventUpdateType::SCALE => Scale(f64),
        /// Name of the event.
        EventUpdateType::NAME => Name(Text),
        /// CPUs of the event.
        EventUpdateType::CPUS => Cpus(CpuMap) with layout,
        /// Something that this version does not know.
        _ => Unknown(Rest as Opaque),
    }
}
