//! Processes, and which of their records a slice needs.
//!
//! A record about a process determines the names and mappings of later samples: its own, and those
//! of processes that it forks, which inherit both. perf keeps the old mappings at exec, new ones
//! only replace their addresses (tools/perf/util/machine.c, Linux 7.2). So the records of a process
//! with samples are needed, and those of its ancestors up to the fork. A session knows what these
//! records say at a moment, but not which ones they are.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use perfdata_session::Machine;

use super::numbers::{Bits, Numbers};
use perfdata_convert::pipeline::to_parts::PartNumber;

/// The processes of a recording so far, and the numbers of their records. Records must be passed in
/// time order.
#[derive(Debug, Default)]
pub(super) struct Processes {
    list: Vec<Process>,
    /// The process that has a process ID now, and the process of each living thread.
    by_pid: HashMap<(Machine, u32), usize>,
    by_tid: HashMap<(Machine, u32), usize>,
    names: FileNames,
    /// Size of all records of processes that have not ended, in bytes.
    living: u64,
    /// Size of the lists of record numbers in bytes.
    held: usize,
}

/// One process, from its start to its end: a process ID may be used again.
#[derive(Debug, Default)]
struct Process {
    /// The process that forked it, and the number of that process's records at this time.
    parent: Option<(usize, usize)>,
    records: Numbers,
    /// Size of its records in bytes.
    size: u64,
    /// Number of living threads with records.
    threads: usize,
    /// Time of the EXIT record of the last thread.
    end: Option<u64>,
    /// The parts that contain its samples, in ascending order.
    parts: Vec<PartNumber>,
}

/// File names of mappings.
#[derive(Debug, Default)]
pub(super) struct FileNames {
    names: IndexSet<Box<[u8]>, RandomState>,
    bytes: usize,
}

/// Which processes a part needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// Those that have samples in the part.
    Sampled,
    /// Those, and all that lived at this time or later.
    LivingFrom(u64),
}

/// The records that a part does not need.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Their number.
    pub(super) records: u64,
    /// The [names](Names::find) that other records map.
    pub(super) mapped: Bits,
}

/// The task of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskOfRecord {
    pub(super) machine: Machine,
    pub(super) pid: u32,
    pub(super) tid: u32,
}

impl Processes {
    /// Adds a record of a task. `name` is the file of a mapping.
    pub(super) fn record(&mut self, task: TaskOfRecord, number: u64, name: Option<&[u8]>) {
        let at = self.thread(task);
        self.push(at, number, name);
    }

    /// Adds the size of a record of a task in bytes.
    pub(super) fn weigh(&mut self, task: TaskOfRecord, size: u64) {
        let at = self.process(task.machine, task.pid);
        if let Some(process) = self.list.get_mut(at) {
            process.size = process.size.saturating_add(size);
            if process.end.is_none() {
                self.living = self.living.saturating_add(size);
            }
        }
    }

    /// Returns the size of all records of processes that have not ended, in bytes.
    pub(super) fn living(&self) -> u64 {
        self.living
    }

    /// Adds a FORK record of a task.
    pub(super) fn fork(&mut self, task: TaskOfRecord, ppid: u32, number: u64) {
        let TaskOfRecord { machine, pid, tid } = task;
        if pid != ppid {
            let parent = self.process(machine, ppid);
            let records = self
                .list
                .get(parent)
                .map_or(0, |parent| parent.records.len());
            // perf may name the parent of a process before it describes the parent.
            let is_new = self
                .by_pid
                .get(&(machine, pid))
                .and_then(|&at| self.list.get(at))
                .is_none_or(|known| known.parent.is_some() || known.records.len() > 0);
            let at = match is_new {
                true => self.add(machine, pid),
                false => self.process(machine, pid),
            };
            if at != parent
                && let Some(process) = self.list.get_mut(at)
            {
                process.parent = Some((parent, records));
            }
        }
        self.by_tid.remove(&(machine, tid));
        let at = self.thread(task);
        self.push(at, number, None);
    }

    /// Ends a thread. Adds the EXIT record if it has a `number`.
    pub(super) fn exit(&mut self, task: TaskOfRecord, time: u64, number: Option<u64>) {
        let at = self.thread(task);
        self.by_tid.remove(&(task.machine, task.tid));
        if let Some(process) = self.list.get_mut(at) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 && process.end.replace(time).is_none() {
                self.living = self.living.saturating_sub(process.size);
            }
        }
        if let Some(number) = number {
            self.push(at, number, None);
        }
    }

    /// Notes that `part` contains a sample of a process.
    pub(super) fn sample(&mut self, machine: Machine, pid: u32, part: PartNumber) {
        let at = self.process(machine, pid);
        if let Some(Process { parts, .. }) = self.list.get_mut(at)
            && parts.last() != Some(&part)
            && let Err(place) = parts.binary_search(&part)
        {
            parts.insert(place, part);
            self.held = self.held.saturating_add(size_of::<PartNumber>());
        }
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        let process = size_of::<Process>().saturating_add(64);
        let threads = self.by_tid.len().saturating_mul(64);
        self.list
            .len()
            .saturating_mul(process)
            .saturating_add(threads)
            .saturating_add(self.names.bytes)
            .saturating_add(self.held)
    }

    /// Passes the numbers of all records that `part` does not need to `drop`.
    pub(super) fn leave_out(
        &self,
        part: PartNumber,
        needed: Needed,
        mut drop: impl FnMut(u64),
    ) -> LeftOut {
        let kept = self.kept(part, needed);
        let mut left_out = LeftOut::default();
        for (process, kept) in self.list.iter().zip(&kept) {
            for (at, (number, name)) in process.records.iter().enumerate() {
                if at >= *kept {
                    drop(number);
                    left_out.records = left_out.records.saturating_add(1);
                } else if let Some(name) = name {
                    left_out.mapped.insert(name as u64);
                }
            }
        }
        left_out
    }

    /// Returns the names of all mappings.
    pub(super) fn into_names(self) -> FileNames {
        self.names
    }

    /// Replaces the numbers of all parts by the elements of `new` at these indexes.
    pub(super) fn renumber(&mut self, new: &[PartNumber]) {
        for Process { parts, .. } in &mut self.list {
            for part in parts.iter_mut() {
                *part = new.get(usize::from(*part)).copied().unwrap_or(*part);
            }
            parts.sort_unstable();
            parts.dedup();
        }
    }

    /// Returns how many records of each process `part` needs, counted from the first one.
    fn kept(&self, part: PartNumber, needed: Needed) -> Vec<usize> {
        let mut kept: Vec<Option<usize>> = vec![None; self.list.len()];
        let is_needed = |process: &Process| {
            process.parts.binary_search(&part).is_ok()
                || match needed {
                    Needed::Sampled => false,
                    Needed::LivingFrom(start) => process.end.is_none_or(|end| end >= start),
                }
        };
        let list = self.list.iter().enumerate();
        let mut waiting: Vec<(usize, usize)> = list
            .filter(|(_, process)| is_needed(process))
            .map(|(at, process)| (at, process.records.len()))
            .collect();
        while let Some((at, count)) = waiting.pop() {
            let (Some(process), Some(known)) = (self.list.get(at), kept.get_mut(at)) else {
                continue;
            };
            if known.is_none() {
                waiting.extend(process.parent);
            }
            *known = Some(known.unwrap_or(0).max(count));
        }
        kept.into_iter().map(|count| count.unwrap_or(0)).collect()
    }

    /// Returns the process with a process ID. Adds it if there is none.
    fn process(&mut self, machine: Machine, pid: u32) -> usize {
        match self.by_pid.get(&(machine, pid)) {
            Some(&at) => at,
            None => self.add(machine, pid),
        }
    }

    fn add(&mut self, machine: Machine, pid: u32) -> usize {
        let at = self.list.len();
        self.list.push(Process::default());
        self.by_pid.insert((machine, pid), at);
        at
    }

    /// Returns the process of a record, whose thread lives.
    fn thread(&mut self, TaskOfRecord { machine, pid, tid }: TaskOfRecord) -> usize {
        let at = self.process(machine, pid);
        if self.by_tid.insert((machine, tid), at) != Some(at)
            && let Some(process) = self.list.get_mut(at)
        {
            process.threads = process.threads.saturating_add(1);
            if process.end.take().is_some() {
                self.living = self.living.saturating_add(process.size);
            }
        }
        at
    }

    fn push(&mut self, at: usize, number: u64, name: Option<&[u8]>) {
        let name = name.map(|name| self.names.intern(name));
        if let Some(Process { records, .. }) = self.list.get_mut(at) {
            let before = records.held();
            records.push(number, name);
            self.held = self
                .held
                .saturating_sub(before)
                .saturating_add(records.held());
        }
    }
}

impl FileNames {
    /// Returns the number of a name, if there is a mapping with it.
    pub(super) fn find(&self, name: &[u8]) -> Option<u64> {
        self.names.get_index_of(name).map(|at| at as u64)
    }

    fn intern(&mut self, name: &[u8]) -> usize {
        if let Some(at) = self.names.get_index_of(name) {
            return at;
        }
        self.bytes = self.bytes.saturating_add(name.len()).saturating_add(64);
        self.names.insert_full(name.into()).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: PartNumber = 3;

    fn of(pid: u32, tid: u32) -> TaskOfRecord {
        TaskOfRecord {
            machine: Machine::HOST,
            pid,
            tid,
        }
    }

    /// 0–4: process 10, which forks 20 after record 2 and ends; 20 has the records 3 and 4, and
    /// ends at 50. Process 30 has the records 5 and 6 and lives.
    fn processes() -> Processes {
        let mut processes = Processes::default();
        processes.record(of(10, 10), 0, None);
        processes.record(of(10, 10), 1, Some(b"shell"));
        processes.fork(of(20, 20), 10, 2);
        processes.record(of(20, 20), 3, Some(b"tool"));
        processes.record(of(10, 10), 7, Some(b"late"));
        processes.exit(of(10, 10), 40, Some(8));
        processes.exit(of(20, 20), 50, Some(4));
        processes.record(of(30, 30), 5, Some(b"other"));
        processes.record(of(30, 31), 6, None);
        processes.exit(of(30, 30), 60, None);
        processes
    }

    /// Returns the numbers of the records that a part does not need, and the names that only they
    /// map.
    fn dropped(processes: Processes, needed: Needed) -> (Vec<u64>, Vec<&'static str>) {
        let mut numbers = Vec::new();
        let left_out = processes.leave_out(PART, needed, |number| numbers.push(number));
        numbers.sort_unstable();
        assert_eq!(left_out.records, numbers.len() as u64);
        let names = processes.into_names();
        let is_left_out = |name: &&str| {
            let name = names.find(name.as_bytes());
            name.is_some_and(|name| !left_out.mapped.contains(name))
        };
        let all = ["late", "other", "shell", "tool"].into_iter();
        (numbers, all.filter(is_left_out).collect())
    }

    #[test]
    fn ancestors_are_kept_up_to_the_fork() {
        let mut sampled = processes();
        sampled.sample(Machine::HOST, 20, PART);
        sampled.sample(Machine::HOST, 30, PART + 1);
        let expected = (vec![5, 6, 7, 8], vec!["late", "other"]);
        assert_eq!(dropped(sampled, Needed::Sampled), expected);
    }

    #[test]
    fn dead_processes_are_left_out() {
        let expected = vec![0, 1, 2, 3, 4, 7, 8];
        assert_eq!(dropped(processes(), Needed::LivingFrom(51)).0, expected);
        assert_eq!(dropped(processes(), Needed::LivingFrom(50)).0, [7, 8]);
        assert!(dropped(processes(), Needed::LivingFrom(0)).0.is_empty());
    }

    #[test]
    fn living_processes_have_a_size() {
        let mut processes = processes();
        processes.weigh(of(10, 10), 100);
        assert_eq!(processes.living(), 0);
        processes.record(of(10, 11), 9, None);
        processes.weigh(of(10, 11), 10);
        assert_eq!(processes.living(), 110);
        processes.exit(of(10, 11), 70, None);
        assert_eq!(processes.living(), 0);
    }

    #[test]
    fn a_process_id_may_be_used_again() {
        let mut processes = processes();
        processes.fork(of(10, 10), 30, 9);
        processes.sample(Machine::HOST, 10, PART);
        assert_eq!(dropped(processes, Needed::Sampled).0, [0, 1, 2, 3, 4, 7, 8]);
    }

    #[test]
    fn a_parent_may_be_described_after_its_child() {
        let mut processes = Processes::default();
        processes.fork(of(20, 20), 10, 0);
        processes.fork(of(10, 10), 1, 1);
        processes.record(of(10, 10), 2, None);
        processes.sample(Machine::HOST, 20, PART);
        assert_eq!(dropped(processes, Needed::Sampled).0, [1, 2]);
    }
}
