//! Changes of the address spaces by records, and the owners of these spaces.

use perfdata_core::record::{
    Body, CpuMode, KsymbolFlags, KsymbolType, MISC_COMM_EXEC, MISC_FORK_EXEC, Record, RecordType,
    Task,
};

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
        let machine = Machine::of(mode);
        let process = |pid: u32| Owner::Process(machine, pid);
        let has = |flag| record.misc & flag != 0;
        match &record.body {
            Body::Mmap(map) => Some(Self::map(mode, map.pid, Mapped::of_mmap(map, record.misc))),
            Body::Mmap2(map) => Some(Self::map(mode, map.pid, Mapped::of_mmap2(map, record.misc))),
            Body::Comm(comm) if has(MISC_COMM_EXEC) => Some(Change::Exec(process(comm.pid))),
            // Threads share the address space of their process.
            &Body::Fork(Task { pid, ppid, .. }) if pid != ppid => Some(Change::Fork {
                child: process(pid),
                parent: (!has(MISC_FORK_EXEC)).then_some(process(ppid)),
            }),
            &Body::Exit(Task { pid, tid, .. }) if pid == tid => Some(Change::Exit(process(pid))),
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
