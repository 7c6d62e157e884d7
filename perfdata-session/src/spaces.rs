//! The address spaces of all kernels and processes, and their changes (tools/perf/util/machine.c
//! and maps.c).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;

use foldhash::fast::RandomState;

use crate::change::{Change, Owner};
use crate::dso::Machine;
use crate::space::{Pieces, Space};

/// Number of ended processes whose mappings are kept: records of one CPU may arrive slightly later
/// than those of another.
const EXITED: usize = 1024;

/// Maximum number of mappings of the kernel that one mapping is divided by.
const MOST_GAPS: usize = 1024;

/// Identifies a process. If another process reuses its slot, that process has another ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessId {
    place: usize,
    generation: u64,
}

impl ProcessId {
    /// The process of a thread whose process is not known.
    pub(crate) const UNKNOWN: ProcessId = ProcessId {
        place: usize::MAX,
        generation: 0,
    };
}

/// A process, or a free slot.
#[derive(Debug)]
struct Process<T> {
    generation: u64,
    owner: Option<(Machine, u32)>,
    space: Space<T>,
    /// The mappings as perf sees them: new programs do not remove mappings. `None` if they are the
    /// same as `space`, or if they are not needed.
    overlaid: Option<Box<Space<T>>>,
    /// Number of threads that have not ended, if threads are counted.
    threads: usize,
}

/// The address spaces of all kernels and processes at one moment. `T` represents a mapping.
///
/// This is the part of a [`Session`](crate::Session) for mappings, for programs that need only
/// these. Such programs store the data that they need in `T`, and pass changes and samples in time
/// order.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// use perfdata_core::record::CpuMode;
/// use perfdata_session::{AddressSpaces, Change, Dsos, Owner};
///
/// let (mut dsos, mut spaces, mut hits) = (Dsos::default(), AddressSpaces::default(), 0);
/// let mut records = perfdata_core::open(path)?.by_time();
/// while let Some(record) = records.next()? {
///     if let Some(sample) = record.sample_view() {
///         let pid = sample.tid().map_or(0, |tid| tid.pid);
///         let space = Owner::of(CpuMode::of(record.misc), pid).and_then(|owner| spaces.space(owner));
///         hits += u64::from(space.and_then(|space| space.find(sample.ip()?)).is_some());
///     } else if let Some(change) = Change::of(&record.decode()?) {
///         spaces.apply(change.with(|mapped| dsos.intern(&mapped.dso)));
///     }
/// }
/// assert!(hits > 100);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AddressSpaces<T> {
    host: Space<T>,
    guests: HashMap<Machine, Space<T>, RandomState>,
    processes: Vec<Process<T>>,
    /// Free slots of `processes`.
    free: Vec<usize>,
    by_pid: HashMap<(Machine, u32), ProcessId, RandomState>,
    exited: VecDeque<ProcessId>,
    /// First addresses of the code that the host's kernel generated.
    symbols: HashSet<u64, RandomState>,
    /// The mappings of the host's kernel, from their first addresses to the addresses after them.
    in_kernel: BTreeMap<u64, u64>,
    pieces: Pieces,
    keeps_overlaid: bool,
}

impl<T> Default for AddressSpaces<T> {
    fn default() -> Self {
        AddressSpaces {
            host: Space::default(),
            guests: HashMap::default(),
            processes: Vec::new(),
            free: Vec::new(),
            by_pid: HashMap::default(),
            exited: VecDeque::new(),
            symbols: HashSet::default(),
            in_kernel: BTreeMap::new(),
            pieces: Pieces::default(),
            keeps_overlaid: false,
        }
    }
}

impl<T: Copy> AddressSpaces<T> {
    /// Returns address spaces that also keep perf's view of the mappings: perf adds the mappings of
    /// a new program to the old ones.
    pub(crate) fn keeping_overlaid() -> Self {
        AddressSpaces {
            keeps_overlaid: true,
            ..AddressSpaces::default()
        }
    }

    /// Returns the approximate memory use in bytes.
    #[inline]
    pub fn held(&self) -> usize {
        let process = size_of::<Process<T>>().saturating_add(64);
        let others = self.guests.len().saturating_add(self.symbols.len());
        let others = others.saturating_add(self.in_kernel.len());
        self.processes
            .len()
            .saturating_mul(process)
            .saturating_add(self.pieces.held())
            .saturating_add(others.saturating_mul(64))
    }

    /// Returns the address space of `owner`, if it is known. For an unknown guest kernel, this is
    /// the one of the default guest.
    #[inline]
    pub fn space(&self, owner: Owner) -> Option<&Space<T>> {
        match owner {
            Owner::Kernel(Machine::HOST) => Some(&self.host),
            Owner::Kernel(machine) => self
                .guests
                .get(&machine)
                .or_else(|| self.guests.get(&Machine::DEFAULT_GUEST)),
            Owner::Process(machine, pid) => {
                Some(&self.process_at(*self.by_pid.get(&(machine, pid))?)?.space)
            }
        }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: Change<T>) {
        match change {
            Change::Map {
                owner,
                range: (start, end),
                what,
            } => self.map(owner, start..end, what),
            Change::Symbol {
                range: (start, end),
                what,
            } => {
                self.pieces.map(&mut self.host, start..end, what);
                self.symbols.insert(start);
            }
            Change::NoSymbol(start) => {
                if self.symbols.remove(&start) {
                    self.pieces.unmap(&mut self.host, start);
                }
            }
            Change::Fork { child, parent } => self.fork(child, parent),
            Change::Exec(owner) => self.exec(owner),
            Change::Exit(Owner::Process(machine, pid)) => {
                if let Some(&id) = self.by_pid.get(&(machine, pid)) {
                    self.exit(id);
                }
            }
            Change::Exit(Owner::Kernel(_)) => {}
        }
    }

    fn map(&mut self, owner: Owner, range: Range<u64>, what: T) {
        let (machine, pid) = match owner {
            Owner::Kernel(Machine::HOST) => {
                self.symbols.remove(&range.start);
                return self.map_kernel(range, what);
            }
            Owner::Kernel(machine) => {
                return self
                    .pieces
                    .map(self.guests.entry(machine).or_default(), range, what);
            }
            Owner::Process(machine, pid) => (machine, pid),
        };
        let id = self.process(machine, pid);
        let Some(process) = self.processes.get_mut(id.place) else {
            return;
        };
        if let Some(overlaid) = &mut process.overlaid {
            self.pieces.map(overlaid, range.clone(), what);
        }
        self.pieces.map(&mut process.space, range, what);
    }

    /// Maps a part of the host's kernel. At each address, the mapping that starts last before it
    /// wins: the recorded sizes of modules contain more than their code, so that it overlaps the
    /// next module; and where addresses are hidden, modules start at 0.
    fn map_kernel(&mut self, range: Range<u64>, what: T) {
        let Range { mut start, end } = range;
        if start < end {
            self.in_kernel.insert(start, end);
        }
        let first = start.saturating_add(1);
        let others = self.in_kernel.range(first..end.max(first));
        for (&other, &others_end) in others.take(MOST_GAPS) {
            self.pieces.map(&mut self.host, start..other, what);
            start = start.max(others_end);
        }
        self.pieces.map(&mut self.host, start..end, what);
    }

    fn fork(&mut self, child: Owner, parent: Option<Owner>) {
        let Owner::Process(machine, pid) = child else {
            return;
        };
        let parent = match parent {
            Some(Owner::Process(machine, pid)) => self.by_pid.get(&(machine, pid)).copied(),
            _ => None,
        };
        let parent = parent.and_then(|parent| self.process_at(parent));
        let copy = parent.map(|parent| (parent.space.clone(), parent.overlaid.clone()));
        if let Some(old) = self.by_pid.remove(&(machine, pid)) {
            match self.process_at(old).is_some_and(|old| old.threads > 0) {
                true => self.exit(old),
                false => self.forget(old),
            }
        }
        let Some((space, overlaid)) = copy else {
            return;
        };
        let id = self.process(machine, pid);
        if let Some(process) = self.processes.get_mut(id.place) {
            (process.space, process.overlaid) = (space, overlaid);
        }
    }

    fn exec(&mut self, owner: Owner) {
        let Owner::Process(machine, pid) = owner else {
            return;
        };
        let Some(&id) = self.by_pid.get(&(machine, pid)) else {
            return;
        };
        let Some(process) = self.processes.get_mut(id.place) else {
            return;
        };
        let before = std::mem::take(&mut process.space);
        if self.keeps_overlaid && process.overlaid.is_none() && !before.is_empty() {
            process.overlaid = Some(Box::new(before));
        }
    }

    /// Ends a process. Its mappings are discarded some time later.
    fn exit(&mut self, id: ProcessId) {
        self.exited.push_back(id);
        if self.exited.len() > EXITED
            && let Some(oldest) = self.exited.pop_front()
            && let Some(Process { owner, threads, .. }) = self.process_at(oldest)
        {
            // Another process may have the same process ID by now.
            let is_current = owner.is_some_and(|owner| self.by_pid.get(&owner) == Some(&oldest));
            if *threads == 0 || !is_current {
                self.forget(oldest);
            }
        }
    }

    /// Frees the slot of a process.
    fn forget(&mut self, id: ProcessId) {
        let Some(process) = self.process_mut(id) else {
            return;
        };
        let owner = process.owner.take();
        process.generation = process.generation.wrapping_add(1);
        (process.space, process.overlaid, process.threads) = (Space::default(), None, 0);
        self.free.push(id.place);
        if let Some(owner) = owner
            && self.by_pid.get(&owner) == Some(&id)
        {
            self.by_pid.remove(&owner);
        }
    }

    /// Returns the process, unless its slot was freed.
    fn process_mut(&mut self, id: ProcessId) -> Option<&mut Process<T>> {
        self.processes
            .get_mut(id.place)
            .filter(|process| process.generation == id.generation)
    }

    fn process_at(&self, id: ProcessId) -> Option<&Process<T>> {
        self.processes
            .get(id.place)
            .filter(|process| process.generation == id.generation)
    }

    /// Returns the process that currently has the process ID `pid`. Adds it if it is new.
    pub(crate) fn process(&mut self, machine: Machine, pid: u32) -> ProcessId {
        if let Some(&id) = self.by_pid.get(&(machine, pid)) {
            return id;
        }
        let owner = Some((machine, pid));
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                let (space, overlaid) = (Space::default(), None);
                self.processes.push(Process {
                    generation: 0,
                    owner,
                    space,
                    overlaid,
                    threads: 0,
                });
                self.processes.len().saturating_sub(1)
            }
        };
        let mut id = ProcessId {
            place,
            generation: 0,
        };
        if let Some(process) = self.processes.get_mut(place) {
            process.owner = owner;
            id.generation = process.generation;
        }
        self.by_pid.insert((machine, pid), id);
        id
    }

    /// Returns the mappings of `process`, and perf's view of them if it differs.
    #[inline]
    pub(crate) fn of_process(&self, process: ProcessId) -> (Option<&Space<T>>, Option<&Space<T>>) {
        let process = self.process_at(process);
        (
            process.map(|process| &process.space),
            process.and_then(|process| process.overlaid.as_deref()),
        )
    }

    /// Adds a thread to a process.
    pub(crate) fn begin_thread(&mut self, process: ProcessId) {
        if let Some(process) = self.processes.get_mut(process.place) {
            process.threads = process.threads.saturating_add(1);
        }
    }

    /// Ends a thread of a process. The process ends with its last thread.
    pub(crate) fn end_thread(&mut self, id: ProcessId) {
        let Some(process) = self.process_mut(id) else {
            return;
        };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            self.exit(id);
        }
    }

    /// Returns the mappings of the host's kernel.
    pub(crate) fn kernel(&self) -> &Space<T> {
        &self.host
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::made::{fork, map, process};
    use perfdata_core::record::CpuMode;

    const HOST: Machine = Machine::HOST;

    fn at(spaces: &AddressSpaces<u32>, owner: Owner, address: u64) -> Option<u32> {
        Some(spaces.space(owner)?.find(address)?.1)
    }

    #[test]
    fn a_child_has_the_mappings_of_its_parent_at_the_fork() {
        let mut spaces = AddressSpaces::default();
        [map(1, 1, 7), fork(2, 1), map(1, 1, 8)]
            .into_iter()
            .for_each(|change| spaces.apply(change));
        assert_eq!(
            [1, 2].map(|pid| at(&spaces, process(pid), 0x1000)),
            [Some(8), Some(7)]
        );
        spaces.apply(Change::Exec(process(2)));
        assert_eq!(
            [1, 2].map(|pid| at(&spaces, process(pid), 0x1000)),
            [Some(8), None]
        );
    }

    #[test]
    fn the_mapping_of_the_kernel_that_starts_last_wins() {
        let kernel = Owner::Kernel(HOST);
        let mappings = [
            (0x5000, 0x9000, 1),
            // A module whose size contains more than its code.
            (0x2000, 0x6000, 2),
            // Modules whose addresses are hidden.
            (0, u64::MAX, 3),
            (0, u64::MAX, 4),
            (0x8000, 0xa000, 5),
        ];
        let mut spaces = AddressSpaces::default();
        for (start, end, what) in mappings {
            spaces.apply(Change::Map {
                owner: kernel,
                range: (start, end),
                what,
            });
        }
        let at = |address| at(&spaces, kernel, address);
        let found = [0, 0x2000, 0x4fff, 0x5000, 0x7fff, 0x8000, 0x9fff, 0xa000].map(at);
        let expected = [4, 2, 2, 1, 1, 5, 5, 4].map(Some);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_new_process_does_not_inherit_from_the_last_one_of_its_number() {
        let mut spaces = AddressSpaces::default();
        [map(3, 0, 7), Change::Exit(process(3))]
            .into_iter()
            .for_each(|change| spaces.apply(change));
        assert_eq!(
            at(&spaces, process(3), 0),
            Some(7),
            "records may come a little late"
        );
        spaces.apply(fork(3, 4));
        assert_eq!(at(&spaces, process(3), 0), None);
        [
            map(3, 0, 8),
            Change::Fork {
                child: process(3),
                parent: None,
            },
        ]
        .into_iter()
        .for_each(|change| spaces.apply(change));
        assert_eq!(
            at(&spaces, process(3), 0),
            None,
            "perf tells of its mappings behind this"
        );
    }

    #[test]
    fn what_processes_share_is_held_once_and_what_ends_goes() {
        let mut spaces = AddressSpaces::default();
        (0..1000).for_each(|at| spaces.apply(map(1, at, 0)));
        let alone = spaces.held();
        for pid in 2..5 * EXITED as u32 {
            [
                fork(pid, 1),
                map(pid, 2000, pid),
                Change::Exit(process(pid)),
            ]
            .into_iter()
            .for_each(|change| spaces.apply(change));
            assert_eq!(at(&spaces, process(pid), 2000 << 12), Some(pid));
            assert!(spaces.processes.len() <= EXITED + 3);
        }
        assert!(
            spaces.held() - alone < (EXITED + 1) * 1500,
            "{} for each",
            (spaces.held() - alone) / EXITED
        );
        assert_eq!(spaces.by_pid.len(), EXITED + 1);
    }

    /// A slot is used again, but an old ID does not refer to the new process.
    #[test]
    fn a_place_is_not_a_process() {
        let mut spaces = AddressSpaces::default();
        let old = spaces.process(HOST, 5);
        spaces.begin_thread(old);
        [map(5, 1, 7), map(6, 1, 8), fork(5, 6)]
            .into_iter()
            .for_each(|change| spaces.apply(change));
        let found =
            |spaces: &AddressSpaces<u32>, id| Some(spaces.of_process(id).0?.find(0x1000)?.1);
        let new = spaces.process(HOST, 5);
        assert_eq!([old, new].map(|id| found(&spaces, id)), [Some(7), Some(8)]);
        for pid in 10..20 + EXITED as u32 {
            [map(pid, 1, 9), Change::Exit(process(pid))]
                .into_iter()
                .for_each(|change| spaces.apply(change));
        }
        assert_eq!([old, new].map(|id| found(&spaces, id)), [None, Some(8)]);
    }

    #[test]
    fn code_of_the_kernel_goes_unless_it_was_replaced() {
        let mut spaces = AddressSpaces::default();
        let kernel = Owner::Kernel(HOST);
        let whole = Change::Map {
            owner: kernel,
            range: (0x1000, 0x9000),
            what: 1,
        };
        let symbol = Change::Symbol {
            range: (0x2000, 0x3000),
            what: 2,
        };
        [whole, Change::NoSymbol(0x1000), symbol]
            .into_iter()
            .for_each(|change| spaces.apply(change));
        assert_eq!(
            [0x1000, 0x2000].map(|address| at(&spaces, kernel, address)),
            [Some(1), Some(2)]
        );
        spaces.apply(Change::NoSymbol(0x2000));
        assert_eq!(at(&spaces, kernel, 0x2000), None);
        let module = Change::Map {
            owner: kernel,
            range: (0x2000, 0x3000),
            what: 3,
        };
        [symbol, module, Change::NoSymbol(0x2000)]
            .into_iter()
            .for_each(|change| spaces.apply(change));
        assert_eq!(at(&spaces, kernel, 0x2000), Some(3));
    }

    #[test]
    fn unknown_guests_are_the_default_one() {
        let mut spaces = AddressSpaces::default();
        let default = Owner::Kernel(Machine::DEFAULT_GUEST);
        spaces.apply(Change::Map {
            owner: default,
            range: (0, 0x1000),
            what: 1,
        });
        assert_eq!(at(&spaces, Owner::Kernel(Machine(77)), 0), Some(1));
        assert_eq!(Owner::of(CpuMode::GUEST_KERNEL, u32::MAX), Some(default));
        assert_eq!(Owner::of(CpuMode::HYPERVISOR, 1), None);
    }
}
