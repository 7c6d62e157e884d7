//! The memory of processes, as samples of the tracepoint `kmem:rss_stat` tell it
//! (`include/trace/events/kmem.h`).

use std::collections::BTreeMap;

use perfdata_session::Sample;
use perfdata_tracepoint::{Field, Format, Formats, Like};

use crate::error::Result;
use crate::spool::Spool;

/// The event.
const EVENT: &[u8] = b"kmem:rss_stat";

/// The kinds of memory that are resident, by `enum` in `include/linux/mm_types_task.h`: pages of
/// files, anonymous and shared ones. Number 2 are swap entries.
const RESIDENT: [u64; 3] = [0, 1, 3];

/// What a sample tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryChange {
    /// A hash of the address of the memory's description; 0 before Linux 5.3.
    mm: u64,
    /// Whether the memory is that of the current process.
    is_own: bool,
    kind: u64,
    /// New size in bytes.
    size: u64,
}

/// The fields of the tracepoint.
#[derive(Debug)]
struct Fields {
    mm: Option<Field>,
    curr: Option<Field>,
    member: Field,
    size: Field,
}

impl Fields {
    fn of(format: &Format) -> Option<Self> {
        let field = |name: &[u8]| format.field(name).cloned();
        Some(Fields {
            mm: field(b"mm_id"),
            curr: field(b"curr"),
            member: field(b"member")?,
            size: field(b"size")?,
        })
    }

    fn change(&self, raw: &[u8]) -> Option<MemoryChange> {
        let number = |field: &Option<Field>| field.as_ref().map(|field| field.number(raw));
        Some(MemoryChange {
            mm: number(&self.mm).unwrap_or(Some(0))?,
            is_own: number(&self.curr).unwrap_or(Some(1))? != 0,
            kind: self.member.number(raw)?,
            // A sum over all CPUs can be negative for a moment.
            size: self.size.signed(raw)?.max(0).cast_unsigned(),
        })
    }
}

/// The changes of memory in samples.
#[derive(Debug, Default)]
pub(super) struct MemoryChanges {
    /// The fields, since the first sample of the event. `None` if they are not known.
    fields: Option<Option<Fields>>,
}

impl MemoryChanges {
    /// Returns the change that a sample tells, with its process and time.
    pub fn of(&mut self, sample: &Sample<'_>) -> Option<(u32, u64, MemoryChange)> {
        if sample.event_name() != EVENT {
            return None;
        }
        let id = sample.attr().map(|attr| attr.config);
        let fields = self.fields.get_or_insert_with(|| {
            let formats = Formats::of(sample.recording(), Like::default())?;
            Fields::of(formats.by_id(id?)?)
        });
        let change = fields.as_ref()?.change(sample.sample_view().raw()?)?;
        Some((sample.tid()?.pid, sample.time()?, change))
    }
}

/// The memory of a process.
#[derive(Debug)]
pub(super) struct Process {
    mm: u64,
    sizes: [u64; RESIDENT.len()],
    /// Its stream of changes, and their number.
    stream: usize,
    pub count: u64,
}

/// The memory of all processes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The processes by process ID.
    pub processes: BTreeMap<u32, Process>,
    /// The processes by the hash of their memory.
    owners: BTreeMap<u64, u32>,
    spool: Spool,
}

impl Memory {
    /// Sees a change that a process made.
    pub fn change(&mut self, pid: u32, time: u64, change: MemoryChange) -> Result<()> {
        let Some(kind) = RESIDENT.iter().position(|&kind| kind == change.kind) else {
            return Ok(());
        };
        let pid = match self.owners.get(&change.mm) {
            // Another process can free memory, and a child of `vfork` uses that of its parent.
            Some(&owner) => owner,
            None if change.is_own => pid,
            None => return Ok(()),
        };
        let spool = &mut self.spool;
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            mm: change.mm,
            sizes: Default::default(),
            stream: spool.add(),
            count: 0,
        });
        let before = process.resident();
        if process.mm != change.mm {
            // The process has started another program, or is another one with the same ID.
            self.owners.remove(&process.mm);
            process.mm = change.mm;
            process.sizes = Default::default();
        }
        self.owners.insert(change.mm, pid);
        if let Some(size) = process.sizes.get_mut(kind) {
            *size = change.size;
        }
        let delta = process.resident().wrapping_sub(before);
        process.count = process.count.saturating_add(1);
        let [time, delta] = [time, delta].map(u64::to_le_bytes);
        self.spool.write(process.stream, &[time, delta].concat())
    }

    /// Sees the end of a process. The hash of its memory can be that of another process later.
    pub fn exit(&mut self, pid: u32) {
        if let Some(process) = self.processes.get(&pid)
            && self.owners.get(&process.mm) == Some(&pid)
        {
            self.owners.remove(&process.mm);
        }
    }

    /// Passes the times and changes in bytes of a process to `read`.
    pub fn changes(
        &self,
        process: &Process,
        mut read: impl FnMut(u64, i64) -> Result<()>,
    ) -> Result<()> {
        self.spool.read(process.stream, &mut |bytes| {
            for change in bytes.chunks_exact(16) {
                if let Some((time, delta)) = change.split_first_chunk()
                    && let Some(delta) = delta.first_chunk()
                {
                    read(u64::from_le_bytes(*time), i64::from_le_bytes(*delta))?;
                }
            }
            Ok(())
        })
    }
}

impl Process {
    fn resident(&self) -> u64 {
        self.sizes
            .iter()
            .fold(0, |sum, size| sum.saturating_add(*size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_memory_of_its_last_program() {
        let mut memory = Memory::default();
        let mut see = |pid, time, mm, is_own, kind, size| {
            let change = MemoryChange {
                mm,
                is_own,
                kind,
                size,
            };
            memory.change(pid, time, change).unwrap();
        };
        see(7, 1, 100, true, 1, 4096);
        see(7, 2, 100, true, 0, 8192);
        // Swap entries are not resident; and nobody knows whose memory 300 is.
        see(7, 3, 100, true, 2, 1 << 30);
        see(7, 3, 300, false, 1, 1 << 30);
        // Another process frees memory.
        see(9, 4, 100, false, 1, 0);
        // A new program, while the memory of the old one is freed.
        // A child of vfork, until it starts its own program.
        see(8, 5, 100, true, 1, 4096);
        see(8, 5, 400, true, 3, 100);
        see(7, 6, 200, true, 1, 4096);
        see(7, 7, 100, false, 0, 0);
        // Another process has the same hash.
        memory.exit(8);
        memory.exit(1);
        let change = MemoryChange {
            mm: 400,
            is_own: true,
            kind: 1,
            size: 50,
        };
        memory.change(11, 8, change).unwrap();
        let changes = |pid: u32| {
            let mut list = Vec::new();
            let process = &memory.processes[&pid];
            let read = memory.changes(process, |time, delta| {
                list.push((time, delta));
                Ok(())
            });
            read.unwrap();
            assert_eq!(list.len() as u64, process.count);
            list
        };
        assert_eq!(
            changes(7),
            [(1, 4096), (2, 8192), (4, -4096), (5, 4096), (6, -8192)]
        );
        assert_eq!(changes(8), [(5, 100)]);
        assert_eq!(changes(11), [(8, 50)]);
        assert_eq!(memory.processes.len(), 3);
    }
}
