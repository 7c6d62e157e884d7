//! What is mapped where: the address spaces of the kernels and of all processes, as they are at one moment.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use perfdata_core::record::CpuMode;
use rpds::RedBlackTreeMapSync;

use super::objects::{Machine, ObjectId};

/// Processes that are remembered after their end: records of one CPU may come a little behind those of another.
const EXITED: usize = 1024;

/// Something that changes what is mapped.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// A new mapping, in place of what was there.
    Map {
        /// In whose address space.
        owner: Owner,
        /// First address and the one behind the last.
        range: (u64, u64),
        /// What is mapped, if it is an object.
        object: Option<ObjectId>,
    },
    /// A process begins with the mappings of its parent.
    Fork {
        /// The new process.
        child: Owner,
        /// Its parent.
        parent: Owner,
    },
    /// A process begins a new program, without mappings.
    Exec(Owner),
    /// A process ends.
    Exit(Owner),
}

/// Whose an address space is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The kernel of a machine.
    Kernel(Machine),
    /// A process of the host.
    Process(u32),
    /// A process of a guest.
    GuestProcess(u32),
}

impl Owner {
    /// In whose address space code of process `pid` runs in `mode`; `None` in a hypervisor, or where it is not known.
    pub fn of(mode: CpuMode, pid: u32) -> Option<Owner> {
        match mode {
            CpuMode::KERNEL => Some(Owner::Kernel(Machine::HOST)),
            CpuMode::USER => Some(Owner::Process(pid)),
            CpuMode::GUEST_KERNEL => Some(Owner::Kernel(Machine(pid.cast_signed().max(0)))),
            CpuMode::GUEST_USER => Some(Owner::GuestProcess(pid)),
            _ => None,
        }
    }
}

/// One address space. A process has its parent's until one of them changes; after that they still share what is alike,
/// so that processes without end that map something of their own take little.
#[derive(Debug, Clone, Default)]
pub struct Space {
    /// By first address.
    mappings: RedBlackTreeMapSync<u64, Mapped>,
    version: u64,
}

/// One mapping.
#[derive(Debug, Clone)]
struct Mapped {
    /// The address behind the last one.
    end: u64,
    object: Option<ObjectId>,
    /// Is there as often as there are mappings.
    _counted: Arc<()>,
}

impl Space {
    /// A number that no other state of an address space has.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Number of mappings.
    pub fn len(&self) -> usize {
        self.mappings.size()
    }

    /// First address, the one behind the last, and object of each mapping, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, Option<ObjectId>)> {
        self.mappings.iter().map(|(&start, mapped)| (start, mapped.end, mapped.object))
    }

    /// The mapping at `address`.
    pub fn find(&self, address: u64) -> Option<(Range<u64>, Option<ObjectId>)> {
        let (&start, mapped) = self.mappings.range(..=address).next_back()?;
        (address < mapped.end).then_some((start..mapped.end, mapped.object))
    }

    fn insert(&mut self, (start, end): (u64, u64), object: Option<ObjectId>, counted: &Arc<()>) {
        let mapped = |end, object| Mapped { end, object, _counted: Arc::clone(counted) };
        let overlapping = self.mappings.range(..end).rev().take_while(|(_, old)| old.end > start);
        let overlapping: Vec<_> = overlapping.map(|(&start, old)| (start, old.end, old.object)).collect();
        for (old_start, old_end, old) in overlapping {
            self.mappings.remove_mut(&old_start);
            if old_start < start {
                self.mappings.insert_mut(old_start, mapped(start, old));
            }
            if old_end > end {
                self.mappings.insert_mut(end, mapped(old_end, old));
            }
        }
        self.mappings.insert_mut(start, mapped(end, object));
    }
}

/// All address spaces.
#[derive(Debug, Default)]
pub struct Maps {
    spaces: HashMap<Owner, Space, RandomState>,
    exited: VecDeque<Owner>,
    changes: u64,
    counted: Arc<()>,
}

/// Bytes that a mapping takes, and an address space: two pieces of memory of 64 bytes for what shares nothing.
const EACH: usize = 128;

impl Maps {
    /// Bytes of what is mapped, about.
    #[inline]
    pub fn held(&self) -> usize {
        (Arc::strong_count(&self.counted) + self.spaces.len()).saturating_mul(EACH)
    }

    /// The address space of `owner`. A guest that nothing is known of is taken for the default one.
    #[inline]
    pub fn space(&self, owner: Owner) -> Option<&Space> {
        self.spaces.get(&owner).or_else(|| match owner {
            Owner::Kernel(machine) if machine.is_guest() => self.spaces.get(&Owner::Kernel(Machine::DEFAULT_GUEST)),
            _ => None,
        })
    }

    /// Applies a change.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Map { owner, range, object } => {
                self.changes += 1;
                let space = self.spaces.entry(owner).or_default();
                space.insert(range, object, &self.counted);
                space.version = self.changes;
            }
            Change::Fork { child, parent } => {
                match self.spaces.get(&parent).cloned() {
                    Some(space) => self.spaces.insert(child, space),
                    None => self.spaces.remove(&child),
                };
                self.exited.retain(|&owner| owner != child);
            }
            Change::Exec(owner) => {
                self.spaces.remove(&owner);
            }
            Change::Exit(owner) => {
                self.exited.push_back(owner);
                if self.exited.len() > EXITED
                    && let Some(oldest) = self.exited.pop_front()
                {
                    self.spaces.remove(&oldest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::objects::{Kind, Object, Objects};
    use super::*;

    fn object(objects: &mut Objects, name: &str) -> Option<ObjectId> {
        let name = name.as_bytes().to_vec();
        let machine = Machine::HOST;
        Some(objects.intern(Object { machine, kind: Kind::File, name, id: None, inode: None, wanted: false }))
    }

    fn at(maps: &Maps, owner: Owner, address: u64) -> Option<ObjectId> {
        maps.space(owner)?.find(address)?.1
    }

    #[test]
    fn a_new_mapping_takes_its_range_from_older_ones() {
        let (mut objects, mut maps, owner) = (Objects::default(), Maps::default(), Owner::Process(7));
        let (a, b) = (object(&mut objects, "/a"), object(&mut objects, "/b"));
        maps.apply(Change::Map { owner, range: (0x1000, 0x9000), object: a });
        maps.apply(Change::Map { owner, range: (0x3000, 0x4000), object: b });
        maps.apply(Change::Map { owner, range: (0x8000, 0xa000), object: None });
        let found = [0xfff, 0x1000, 0x2fff, 0x3000, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xa000];
        assert_eq!(found.map(|address| at(&maps, owner, address)), [None, a, a, b, b, a, a, None, None]);
    }

    #[test]
    fn a_child_has_the_mappings_of_its_parent_at_the_fork() {
        let (mut objects, mut maps) = (Objects::default(), Maps::default());
        let (parent, child) = (Owner::Process(1), Owner::Process(2));
        let (a, b) = (object(&mut objects, "/a"), object(&mut objects, "/b"));
        maps.apply(Change::Map { owner: parent, range: (0x1000, 0x2000), object: a });
        maps.apply(Change::Fork { child, parent });
        maps.apply(Change::Map { owner: parent, range: (0x1000, 0x2000), object: b });
        assert_eq!((at(&maps, parent, 0x1000), at(&maps, child, 0x1000)), (b, a));
        maps.apply(Change::Exec(child));
        assert_eq!((at(&maps, parent, 0x1000), at(&maps, child, 0x1000)), (b, None));
    }

    #[test]
    fn what_processes_share_is_held_once() {
        let mut maps = Maps::default();
        let map =
            |pid, at: u64| Change::Map { owner: Owner::Process(pid), range: (at << 12, (at + 1) << 12), object: None };
        (0..1000).for_each(|at| maps.apply(map(1, at)));
        let alone = maps.held();
        for pid in 2..12 {
            maps.apply(Change::Fork { child: Owner::Process(pid), parent: Owner::Process(1) });
            maps.apply(map(pid, 2000));
        }
        assert_eq!(maps.held() - alone, 20 * EACH);
        (1..12).for_each(|pid| maps.apply(Change::Exec(Owner::Process(pid))));
        assert_eq!(maps.held(), EACH);
    }

    #[test]
    fn a_new_process_does_not_inherit_from_the_last_one_of_its_number() {
        let (mut objects, mut maps) = (Objects::default(), Maps::default());
        let owner = Owner::Process(3);
        let a = object(&mut objects, "/a");
        maps.apply(Change::Map { owner, range: (0, 0x1000), object: a });
        maps.apply(Change::Exit(owner));
        assert_eq!(at(&maps, owner, 0), a);
        maps.apply(Change::Fork { child: owner, parent: Owner::Process(4) });
        assert_eq!(at(&maps, owner, 0), None);
    }
}
