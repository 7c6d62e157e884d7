//! Records about the relations of event IDs, threads and CPUs
//! (tools/lib/perf/include/perf/event.h).

use crate::codes::codes;
use crate::record::choice::choice;
use crate::wire::{Chars, Counted, List, Rest, Text, ToEnd, elements, wire};

wire! {
    /// One event ID, with the CPU and the thread for which its event was opened.
    pub struct IdIndexEntry {
        /// Event ID.
        pub id: u64 as Id,
        /// Index of the ring buffer.
        pub idx: u64 => Number,
        /// CPU, or -1.
        pub cpu: u64 as Cpu,
        /// Thread ID, or -1.
        pub tid: u64 as Pid,
    }
}
elements!(IdIndexEntry);

wire! {
    /// The guest machine that an event ID belongs to.
    pub struct IdIndexGuest {
        /// Process ID of the guest machine; 0 for the host.
        pub machine_pid: u64 as Pid,
        /// CPU of the guest machine, or -1.
        pub vcpu: u64 as Optional => Number,
    }
}
elements!(IdIndexGuest);

wire! {
    /// The CPUs and threads of event IDs (3.19).
    pub struct IdIndex(layout) {
        /// Event IDs.
        pub entries: Counted<u64, IdIndexEntry>,
        /// Guest machines of all IDs, or empty (6.0).
        #[br(args(if layout.len >= (entries.len() as u64).saturating_mul(48).saturating_add(8) { entries.len() as u64 } else { 0 }))]
        pub guests: List<IdIndexGuest>,
    }
}

wire! {
    /// A thread.
    pub struct ThreadMapEntry {
        /// Thread ID, or -1.
        pub pid: u64 as Pid,
        /// Name; not always NUL-terminated.
        pub comm: Chars<16> => Comm,
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
    /// Representation of a set of CPUs.
    pub struct CpuMapType: u16 {
        0 CPUS "cpus",
        1 MASK "mask",
        2 RANGE "range",
    }
}

wire! {
    /// A set of CPUs (4.5). Also the content of an EVENT_UPDATE.
    pub struct CpuMap(layout) {
        /// Representation of the set.
        pub kind: CpuMapType,
        /// The set.
        #[br(args_raw = (kind, layout))]
        pub cpus: CpuSet,
    }
}

choice! {
    /// A set of CPUs in one of its representations.
    pub enum CpuSet(kind: CpuMapType, layout) {
        /// CPU numbers; 0xffff means any CPU.
        CpuMapType::CPUS => Cpus(Counted<u16, u16> as Cpu),
        /// Bit mask.
        CpuMapType::MASK => Mask(CpuMask) with layout,
        /// A range.
        CpuMapType::RANGE => Range(CpuRange),
        /// A representation that this version of the library does not know.
        _ => Unknown(Rest as Opaque),
    }
}

impl CpuMap {
    /// Any CPU in a set of CPU numbers.
    const ANY: u16 = u16::MAX;

    /// Returns the CPUs in the set, -1 for any CPU; none if the representation is unknown.
    pub fn cpus(&self) -> Vec<i64> {
        let number = |cpu: u16| if cpu == Self::ANY { -1 } else { i64::from(cpu) };
        let bits = |word: u64, at: usize, bits: u32| {
            let first = u64::try_from(at)
                .unwrap_or_default()
                .saturating_mul(u64::from(bits));
            (0..bits)
                .filter(move |bit| word >> bit & 1 == 1)
                .filter_map(move |bit| i64::try_from(first.saturating_add(bit.into())).ok())
        };
        match &self.cpus {
            CpuSet::Cpus(cpus) => cpus.iter().map(|&cpu| number(cpu)).collect(),
            CpuSet::Range(range) => {
                let any = (range.any_cpu != 0).then_some(-1);
                let cpus = range.start_cpu..=range.end_cpu;
                any.into_iter().chain(cpus.map(i64::from)).collect()
            }
            CpuSet::Mask(mask) => {
                let more = mask.uncounted.iter().flat_map(|words| words.0.iter());
                match &mask.words {
                    CpuMaskWords::Words32(words) => {
                        let words = words.iter().chain(more).enumerate();
                        words
                            .flat_map(|(at, &word)| bits(word.into(), at, u32::BITS))
                            .collect()
                    }
                    CpuMaskWords::Words64(words) => {
                        let words = words.iter().enumerate();
                        words
                            .flat_map(|(at, &word)| bits(word, at, u64::BITS))
                            .collect()
                    }
                    CpuMaskWords::Unknown(_) => Vec::new(),
                }
            }
            CpuSet::Unknown(_) => Vec::new(),
        }
    }
}

wire! {
    /// CPUs as bits of words, which are not naturally aligned.
    pub struct CpuMask(layout) {
        /// Number of words.
        pub nr: u16 => Number,
        /// Size of a word in bytes: 4, or 8 from 64-bit machines before 6.0.
        pub long_size: u16 => Number,
        /// Padding before words of 8 bytes.
        #[br(if(long_size == 8))]
        pub pad: Option<[u8; 4]> as Pad,
        /// The words.
        #[br(args_raw = ((long_size, nr), layout))]
        pub words: CpuMaskWords,
        /// Words in excess of `nr`: perf since 6.0 counts one word too few if the highest CPU is a
        /// multiple of 32, and writes its bit after the other words.
        #[br(if(long_size == 4), args_raw = (4,))]
        pub uncounted: Option<ToEnd<u32>> as Hex => Number,
    }
}

choice! {
    /// The words of a CPU mask, by their size and number.
    pub enum CpuMaskWords(form: (u16, u16), layout) {
        /// Words of 4 bytes.
        (4, nr) => Words32(List<u32> as Hex => Number) with (u64::from(nr),),
        /// Words of 8 bytes.
        (8, nr) => Words64(List<u64> as Hex => Number) with (u64::from(nr),),
        /// Words of a size that this version of the library does not know.
        _ => Unknown(Rest as Opaque),
    }
}

wire! {
    /// A range of CPUs (6.0).
    pub struct CpuRange {
        /// Whether the set also contains "any CPU".
        pub any_cpu: u8 => Number,
        /// Reserved.
        pub pad: u8 as Pad,
        /// First CPU.
        pub start_cpu: u16 => Number,
        /// Last CPU.
        pub end_cpu: u16 => Number,
    }
}

codes! {
    /// Type of an EVENT_UPDATE.
    pub struct EventUpdateType: u64 {
        0 UNIT "unit",
        1 SCALE "scale",
        2 NAME "name",
        3 CPUS "cpus",
    }
}

wire! {
    /// A property of an event that is not in its attribute (4.5).
    pub struct EventUpdate(layout) {
        /// Type of the property.
        pub kind: EventUpdateType,
        /// First ID of the event.
        pub id: u64 as Id,
        /// Value of the property.
        #[br(args_raw = (kind, layout))]
        pub update: EventUpdateValue,
    }
}

choice! {
    /// The content of an EVENT_UPDATE, by its type.
    pub enum EventUpdateValue(kind: EventUpdateType, layout) {
        /// Unit of the counts.
        EventUpdateType::UNIT => Unit(Text => EventName),
        /// Factor from counts to units.
        EventUpdateType::SCALE => Scale(f64 => Number),
        /// Name of the event.
        EventUpdateType::NAME => Name(Text => EventName),
        /// CPUs of the event.
        EventUpdateType::CPUS => Cpus(CpuMap) with layout,
        /// A property that this version of the library does not know.
        _ => Unknown(Rest as Opaque),
    }
}
