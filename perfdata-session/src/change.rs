//! Changes of the address spaces by records, and the owners of these spaces.

use perfdata_core::record::{
    Body, Comm, CpuMode, KsymbolFlags, KsymbolType, MISC_COMM_EXEC, MISC_FORK_EXEC, RawRecord,
    Record, RecordType, Task,
};
use perfdata_core::{DecodeContext, Events};

use crate::dso::Machine;
use crate::mapping::Mapped;

/// The owner of an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The kernel of a machine.
    Kernel(Machine),
    /// A process of a machine, by its process ID. For processes of guests, the recording does not
    /// show which guest they belong to.
    Process(Machine, u32),
}

impl Owner {
    /// Returns the owner of the address space in which process `pid` runs code in `mode`; `None`
    /// for a hypervisor, or if `mode` is unknown.
    #[inline]
    pub fn of(mode: CpuMode, pid: u32) -> Option<Owner> {
        match mode {
            CpuMode::KERNEL => Some(Owner::Kernel(Machine::HOST)),
            CpuMode::USER => Some(Owner::Process(Machine::HOST, pid)),
            CpuMode::GUEST_KERNEL => Some(Owner::Kernel(Machine::guest(pid))),
            CpuMode::GUEST_USER => Some(Owner::Process(Machine::DEFAULT_GUEST, pid)),
            _ => None,
        }
    }
}

/// A change of the address spaces by a record. `T` represents a mapping: [`of`](Change::of) returns
/// the complete description in the record, and [`with`](Change::with) replaces it with the data to
/// keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<T> {
    /// A new mapping, which replaces older ones at its addresses.
    Map {
        /// The owner of the address space.
        owner: Owner,
        /// First address, and the address after the last one.
        range: (u64, u64),
        /// The mapping.
        what: T,
    },
    /// Code that the host's kernel generated, for example a BPF program. It may be removed later.
    Symbol {
        /// First address, and the address after the last one.
        range: (u64, u64),
        /// The mapping.
        what: T,
    },
    /// The host's kernel removes the generated code at this address.
    NoSymbol(u64),
    /// A process starts with the mappings of its parent.
    Fork {
        /// The new process.
        child: Owner,
        /// Its parent; `None` if perf synthesized the record for a process that existed before the
        /// recording: records for all its mappings follow.
        parent: Option<Owner>,
    },
    /// A process starts a new program, without mappings.
    Exec(Owner),
    /// The first thread of a process ends, and usually the process.
    Exit(Owner),
}

impl<'a> Change<Mapped<'a>> {
    /// Returns whether records of this type can change the address space of a process.
    #[inline]
    pub fn affects_processes(kind: RecordType) -> bool {
        matches!(
            kind,
            RecordType::MMAP
                | RecordType::MMAP2
                | RecordType::COMM
                | RecordType::FORK
                | RecordType::EXIT
        )
    }

    /// Returns the change by `record`, if any.
    pub fn of(record: &'a Record) -> Option<Self> {
        let mode = CpuMode::of(record.misc);
        match &record.body {
            Body::Mmap(map) => Some(Self::map(mode, map.pid, Mapped::of_mmap(map, record.misc))),
            Body::Mmap2(map) => Some(Self::map(mode, map.pid, Mapped::of_mmap2(map, record.misc))),
            Body::Comm(comm) => Self::comm(record.misc, comm.pid),
            &Body::Fork(Task { pid, ppid, .. }) => Self::fork(record.misc, pid, ppid),
            &Body::Exit(Task { pid, tid, .. }) => Self::exit(record.misc, pid, tid),
            Body::Ksymbol(symbol) if symbol.flags.has(KsymbolFlags::UNREGISTER) => {
                Some(Change::NoSymbol(symbol.addr))
            }
            Body::Ksymbol(symbol)
                if matches!(
                    symbol.ksym_type,
                    KsymbolType::BPF | KsymbolType::OUT_OF_LINE
                ) =>
            {
                let what = Mapped::of_symbol(symbol);
                Some(Change::Symbol {
                    range: (what.start, what.end),
                    what,
                })
            }
            _ => None,
        }
    }

    /// Returns the change by a record that is not decoded: `None` if it must be decoded, because
    /// its type or its form is not one of those that
    /// [`FixedRecord`](perfdata_core::record::FixedRecord) describes; `Some(None)` if the record
    /// changes nothing.
    pub fn in_place(record: &RawRecord<'a>, events: &Events) -> Option<Option<Self>> {
        let fixed = events.fixed_record(record)?;
        let misc = record.misc;
        let layout = DecodeContext::default();
        Some(match record.kind {
            RecordType::MMAP | RecordType::MMAP2 => {
                let map = fixed.mapping()?;
                let mapped = Mapped::of_view(&map, misc);
                Some(Self::map(CpuMode::of(misc), map.pid, mapped))
            }
            RecordType::COMM if misc & MISC_COMM_EXEC == 0 => None,
            RecordType::COMM => Self::comm(misc, record.decode_body::<Comm>(layout).ok()?.pid),
            RecordType::FORK | RecordType::EXIT => {
                let Task { pid, ppid, tid, .. } = record.decode_body(layout).ok()?;
                match record.kind {
                    RecordType::FORK => Self::fork(misc, pid, ppid),
                    _ => Self::exit(misc, pid, tid),
                }
            }
            _ => return None,
        })
    }

    fn process(misc: u16, pid: u32) -> Owner {
        Owner::Process(Machine::of(CpuMode::of(misc)), pid)
    }

    fn comm(misc: u16, pid: u32) -> Option<Self> {
        (misc & MISC_COMM_EXEC != 0).then(|| Change::Exec(Self::process(misc, pid)))
    }

    /// Threads share the address space of their process.
    fn fork(misc: u16, pid: u32, ppid: u32) -> Option<Self> {
        let has_parent = misc & MISC_FORK_EXEC == 0;
        (pid != ppid).then(|| Change::Fork {
            child: Self::process(misc, pid),
            parent: has_parent.then(|| Self::process(misc, ppid)),
        })
    }

    fn exit(misc: u16, pid: u32, tid: u32) -> Option<Self> {
        (pid == tid).then(|| Change::Exit(Self::process(misc, pid)))
    }

    fn map(mode: CpuMode, pid: u32, what: Mapped<'a>) -> Self {
        let owner = match mode {
            CpuMode::KERNEL | CpuMode::GUEST_KERNEL => Owner::Kernel(what.dso.machine),
            _ => Owner::Process(what.dso.machine, pid),
        };
        Change::Map {
            owner,
            range: (what.start, what.end),
            what,
        }
    }
}

impl<T> Change<T> {
    /// Returns the same change with the mapping converted by `f`.
    pub fn with<U>(self, f: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Change::Map { owner, range, what } => Change::Map {
                owner,
                range,
                what: f(what),
            },
            Change::Symbol { range, what } => Change::Symbol {
                range,
                what: f(what),
            },
            Change::NoSymbol(start) => Change::NoSymbol(start),
            Change::Fork { child, parent } => Change::Fork { child, parent },
            Change::Exec(owner) => Change::Exec(owner),
            Change::Exit(owner) => Change::Exit(owner),
        }
    }
}

/// Changes for tests.
#[cfg(test)]
pub(crate) mod made {
    use super::*;

    /// Returns the process `pid` of the host.
    pub(crate) fn process(pid: u32) -> Owner {
        Owner::Process(Machine::HOST, pid)
    }

    /// Returns the mapping of page `at`.
    pub(crate) fn map(pid: u32, at: u64, what: u32) -> Change<u32> {
        Change::Map {
            owner: process(pid),
            range: (at << 12, (at + 1) << 12),
            what,
        }
    }

    /// Returns the start of a process.
    pub(crate) fn fork(child: u32, parent: u32) -> Change<u32> {
        Change::Fork {
            child: process(child),
            parent: Some(process(parent)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::attr::{Attr, AttrFlags, SampleType};
    use perfdata_core::record::RecordHeader;
    use perfdata_core::wire::Wire;
    use perfdata_core::{Endian, Event};

    /// A change in place, and its time, are those of the decoded record, for any bytes.
    #[test]
    fn changes_in_place_are_those_of_decoded_records() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let kinds = [
            RecordType::MMAP,
            RecordType::MMAP2,
            RecordType::COMM,
            RecordType::FORK,
            RecordType::EXIT,
        ];
        let (mut compared, mut changes) = ([0; 5], [0; 5]);
        for _ in 0..20_000 {
            let attr = Attr {
                sample_type: SampleType::TID | SampleType::TIME,
                flags: AttrFlags::default().with_sample_id_all(random() % 2 == 0),
                ..Attr::default()
            };
            let layout = DecodeContext::of_attr(&attr);
            let events: Events = [Event { attr, ids: vec![] }].into_iter().collect();
            let endian = [Endian::Little, Endian::Big][random() as usize % 2];
            let at = random() as usize % kinds.len();
            let size = 8 + (random() as u16 % 24) * 8;
            let size = if at > 2 { 32 + size % 48 } else { size };
            let header = RecordHeader {
                kind: kinds[at],
                misc: (random() as u16 & 0x6007) ^ (random() as u16 & 0x10),
                size,
            };
            let mut bytes = Vec::new();
            header.encode_into(&mut bytes, endian).expect("a header");
            // Few values, so that numbers are equal and texts short.
            bytes.resize_with(usize::from(size), || (random() >> 32) as u8 % 2 * 0x2f);
            let raw = RawRecord::first(&bytes, endian, 0).expect("a record");
            let Some(change) = Change::in_place(&raw, &events) else {
                continue;
            };
            let record = Record::decode(&raw, &layout).expect("its form is known");
            assert_eq!(change, Change::of(&record), "{bytes:x?}");
            let time = record.sample_id.as_ref().and_then(|id| id.time);
            assert_eq!(events.time(&raw), time, "{bytes:x?}");
            compared[at] += 1;
            changes[at] += usize::from(change.is_some());
        }
        assert!(compared.iter().all(|&count| count > 50), "{compared:?}");
        assert!(changes.iter().all(|&count| count > 0), "{changes:?}");
    }
}
