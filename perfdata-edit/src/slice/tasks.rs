//! Threads and their names at one moment, and which of them a slice selects.

use std::collections::HashSet;

use perfdata_core::record::{Body, CpuMode, Record, Tid};
use perfdata_session::{CommId, Machine, ThreadId, Threads};

use super::select::Select;

/// The threads of a recording. Records must be passed in time order.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: Threads,
    /// Threads with selected ancestors.
    descendants: HashSet<ThreadId>,
    /// The threads that existed before the recording, each with its parent: their ancestors are
    /// known when all are described.
    early: Vec<(ThreadId, u32)>,
}

impl Tasks {
    /// Applies a COMM, FORK or EXIT record.
    pub(super) fn see(&mut self, select: &Select, record: &Record, time: Option<u64>) {
        let machine = Machine::of(CpuMode::of(record.misc));
        match &record.body {
            Body::Comm(comm) => {
                let name = self.threads.comms_mut().intern(comm.comm.text());
                let tid = Tid {
                    pid: comm.pid,
                    tid: comm.tid,
                };
                let id = self.threads.find_or_add(machine, &tid);
                self.threads.name(id, name);
            }
            Body::Fork(task) => {
                let child = self.threads.fork(machine, task, time);
                if !select.descendants {
                    return;
                }
                match (time, self.threads.get(child).and_then(|child| child.parent)) {
                    (Some(_), Some(parent)) => {
                        self.settle(select);
                        if self.is_selected(select, parent) {
                            self.descendants.insert(child);
                        }
                    }
                    _ => self.early.push((child, task.ptid)),
                }
            }
            Body::Exit(task) => {
                let tid = Tid {
                    pid: task.pid,
                    tid: task.tid,
                };
                if let Some(id) = self.threads.find(machine, &tid) {
                    self.threads.end(id, time);
                }
            }
            _ => {}
        }
    }

    /// Returns whether the thread with this ID meets the conditions for threads.
    pub(super) fn matches(&mut self, select: &Select, tid: &Tid) -> bool {
        self.settle(select);
        let id = self.threads.find_or_add(Machine::HOST, tid);
        self.is_selected(select, id)
    }

    /// Returns whether a thread that a tracepoint names meets the conditions for threads.
    pub(super) fn names(&mut self, select: &Select, tid: u32) -> bool {
        self.settle(select);
        let known = Tid { pid: u32::MAX, tid };
        match self.threads.find(Machine::HOST, &known) {
            Some(id) => self.is_selected(select, id),
            // Nothing is known of it but its ID, which may be that of a process.
            None => {
                let has = |ids: &Option<super::lists::Ids>| {
                    ids.as_ref().is_none_or(|ids| ids.contains(tid))
                };
                select.comms.is_none() && has(&select.pids) && has(&select.tids)
            }
        }
    }

    /// Returns the process and the name of a thread that a tracepoint names; `None` if nothing is known
    /// of it but its ID.
    pub(super) fn named(&mut self, tid: u32) -> Option<(u32, CommId)> {
        let known = Tid { pid: u32::MAX, tid };
        let id = self.threads.find(Machine::HOST, &known)?;
        let thread = self.threads.get(id)?;
        Some((thread.pid, thread.comm))
    }

    /// Returns the process of a thread: that of its COMM or FORK record, otherwise that of its
    /// first sample.
    pub(super) fn pid_of(&mut self, tid: &Tid) -> u32 {
        let id = self.threads.find_or_add(Machine::HOST, tid);
        self.threads.get(id).map_or(tid.pid, |thread| thread.pid)
    }

    /// Returns the name of a thread at this moment.
    pub(super) fn comm_of(&mut self, tid: &Tid) -> Option<CommId> {
        let id = self.threads.find_or_add(Machine::HOST, tid);
        Some(self.threads.get(id)?.comm)
    }

    /// Returns the text of a name.
    pub(super) fn name(&self, comm: CommId) -> &[u8] {
        self.threads.comms().get(comm)
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.threads
            .held()
            .saturating_add(self.descendants.len().saturating_mul(16))
            .saturating_add(self.early.len().saturating_mul(16))
    }

    fn is_selected(&self, select: &Select, id: ThreadId) -> bool {
        if self.descendants.contains(&id) {
            return true;
        }
        let Some(thread) = self.threads.get(id) else {
            return false;
        };
        let has =
            |ids: &Option<super::lists::Ids>, id| ids.as_ref().is_none_or(|ids| ids.contains(id));
        has(&select.pids, thread.pid)
            && has(&select.tids, thread.tid)
            && select
                .comms
                .as_ref()
                .is_none_or(|comms| comms.contains(self.threads.comms().get(thread.comm)))
    }

    /// Selects the descendants among the threads that existed before the recording.
    fn settle(&mut self, select: &Select) {
        let mut early = std::mem::take(&mut self.early);
        loop {
            let before = early.len();
            let mut rest = Vec::new();
            for (child, ptid) in early {
                let parent = Tid {
                    pid: u32::MAX,
                    tid: ptid,
                };
                let parent = self.threads.find(Machine::HOST, &parent);
                if parent.is_some_and(|parent| self.is_selected(select, parent)) {
                    self.descendants.insert(child);
                } else {
                    rest.push((child, ptid));
                }
            }
            if rest.len() == before {
                return;
            }
            early = rest;
        }
    }
}
