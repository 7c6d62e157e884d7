//! Threads, their processes, and their names (tools/perf/util/thread.c and machine.c).

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use perfdata_core::record::Tid;

use crate::dso::Machine;
use crate::ids::{CommId, ThreadId};
use crate::space::Space;

/// Processes whose mappings are kept after their last thread ended: records of one CPU may come a little behind those of
/// another.
const EXITED: usize = 1024;

/// A thread.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Thread {
    /// Where it runs.
    pub machine: Machine,
    /// Its process; `u32::MAX` where that is not known.
    pub pid: u32,
    /// Its number; `u32::MAX` where that is not known.
    pub tid: u32,
    /// The thread that made it, where a FORK record says it.
    pub parent: Option<ThreadId>,
    /// When it was made, in nanoseconds on the recording's clock; `None` for those that were there before.
    pub start: Option<u64>,
    /// When it ended.
    pub end: Option<u64>,
    /// Its name at present: that of a COMM record, else its parent's, else a colon and the thread ID, as in perf.
    pub comm: CommId,
    /// Whether a COMM record gave it or one of its ancestors the name.
    pub is_named: bool,
    /// The place of its process among all.
    pub(crate) process: usize,
}

/// What the threads of a process share.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) space: Space,
    /// What would be mapped if programs that the process began took nothing away, as perf sees it; `None` where that is
    /// the same.
    pub(crate) overlaid: Option<Box<Space>>,
    /// Threads that have not ended.
    threads: usize,
}

/// The threads of all machines.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    list: Vec<Thread>,
    by_tid: HashMap<(Machine, u32), ThreadId, RandomState>,
    pub(crate) processes: Vec<Process>,
    by_pid: HashMap<(Machine, u32), usize, RandomState>,
    exited: VecDeque<usize>,
}

impl Threads {
    pub(crate) fn list(&self) -> &[Thread] {
        &self.list
    }

    pub(crate) fn get(&self, id: ThreadId) -> Option<&Thread> {
        self.list.get(id.index())
    }

    pub(crate) fn get_mut(&mut self, id: ThreadId) -> Option<&mut Thread> {
        self.list.get_mut(id.index())
    }

    /// Bytes of them, about.
    pub(crate) fn held(&self) -> usize {
        let threads = self.list.len().saturating_mul(size_of::<Thread>().saturating_add(32));
        threads.saturating_add(self.processes.len().saturating_mul(size_of::<Process>().saturating_add(32)))
    }

    /// The thread that has the number now.
    #[inline]
    pub(crate) fn find(&mut self, machine: Machine, Tid { pid, tid }: &Tid) -> Option<ThreadId> {
        let &id = self.by_tid.get(&(machine, *tid))?;
        if *pid != u32::MAX && self.list.get(id.index()).is_some_and(|thread| thread.pid == u32::MAX) {
            let process = self.process(machine, *pid);
            if let Some(thread) = self.list.get_mut(id.index()) {
                (thread.pid, thread.process) = (*pid, process);
            }
        }
        Some(id)
    }

    /// Adds a thread called `comm` to process `tid.pid`, in place of one that had the number before.
    pub(crate) fn add(&mut self, machine: Machine, Tid { pid, tid }: &Tid, comm: CommId) -> ThreadId {
        let process = self.process(machine, *pid);
        if let Some(process) = self.processes.get_mut(process) {
            process.threads = process.threads.saturating_add(1);
        }
        let id = ThreadId::of(self.list.len());
        self.list.push(Thread {
            machine,
            pid: *pid,
            tid: *tid,
            parent: None,
            start: None,
            end: None,
            comm,
            is_named: false,
            process,
        });
        self.by_tid.insert((machine, *tid), id);
        id
    }

    /// The process that has the number now.
    pub(crate) fn process(&mut self, machine: Machine, pid: u32) -> usize {
        let next = self.processes.len();
        let process = *self.by_pid.entry((machine, pid)).or_insert(next);
        if process == next {
            self.processes.push(Process::default());
        }
        process
    }

    /// The process that has the number, if there is one.
    pub(crate) fn known_process(&self, machine: Machine, pid: u32) -> Option<&Process> {
        self.processes.get(*self.by_pid.get(&(machine, pid))?)
    }

    /// Begins a process with what is mapped in `parent`, if that is said, in place of one that had the number before.
    pub(crate) fn begin(&mut self, machine: Machine, pid: u32, parent: Option<usize>) {
        let parent = parent.and_then(|parent| self.processes.get(parent));
        let process = parent.map_or_else(Process::default, |parent| Process {
            space: parent.space.clone(),
            overlaid: parent.overlaid.clone(),
            threads: 0,
        });
        self.by_pid.insert((machine, pid), self.processes.len());
        self.processes.push(process);
    }

    /// A thread ends. What its process has mapped is forgotten some time after the last one.
    pub(crate) fn end(&mut self, id: ThreadId, time: Option<u64>) {
        let Some(thread) = self.list.get_mut(id.index()) else { return };
        if thread.end.is_some() {
            return;
        }
        thread.end = Some(time.unwrap_or(0));
        let number = thread.process;
        let Some(process) = self.processes.get_mut(number) else { return };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            self.exited.push_back(number);
        }
        if self.exited.len() > EXITED
            && let Some(oldest) = self.exited.pop_front()
            && let Some(process) = self.processes.get_mut(oldest).filter(|process| process.threads == 0)
        {
            process.space = Space::default();
            process.overlaid = None;
        }
    }
}

/// Names of threads.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    list: Vec<Box<[u8]>>,
    by_name: HashMap<Box<[u8]>, CommId, RandomState>,
    bytes: usize,
}

impl Comms {
    /// The ID of `name`, which is entered if it is new.
    pub(crate) fn intern(&mut self, name: &[u8]) -> CommId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = CommId::of(self.list.len());
        self.bytes = self.bytes.saturating_add(name.len());
        self.list.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }

    pub(crate) fn list(&self) -> &[Box<[u8]>] {
        &self.list
    }

    /// Bytes of them, about.
    pub(crate) fn held(&self) -> usize {
        self.list.len().saturating_mul(64).saturating_add(self.bytes.saturating_mul(2))
    }
}
