//! Threads, their processes, and their names (tools/perf/util/thread.c and machine.c).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use perfdata_core::record::{Task, Tid};

use crate::dso::Machine;
use crate::ids::{CommId, ThreadId};

/// A thread.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Thread {
    /// The machine that it runs on.
    pub machine: Machine,
    /// Its process ID; `u32::MAX` if it is not known.
    pub pid: u32,
    /// Its thread ID; `u32::MAX` if it is not known.
    pub tid: u32,
    /// The thread that created it, if a FORK record shows it.
    pub parent: Option<ThreadId>,
    /// Its start, in nanoseconds on the recording's clock; `None` for threads that existed before
    /// the recording.
    pub start: Option<u64>,
    /// Its end, in nanoseconds on the recording's clock.
    pub end: Option<u64>,
    /// Its current name: from a COMM record, otherwise its parent's name, otherwise a colon and the
    /// thread ID, as in perf.
    pub comm: CommId,
    /// Whether the name comes from a COMM record for this thread or an ancestor.
    pub is_named: bool,
    /// Whether perf has forgotten the name (since 6.8): the thread has ended, and no later record
    /// names it.
    pub has_lost_name: bool,
}

/// The threads of all machines, and their names at one moment.
///
/// This is the part of a [`Session`](crate::Session) for threads, for programs that need only
/// these. Changes must be passed in time order.
#[derive(Debug)]
pub struct Threads {
    list: Vec<Thread>,
    by_tid: HashMap<(Machine, u32), ThreadId, RandomState>,
    comms: Comms,
}

/// The name of the idle threads, for which there are no records. It is entry 0 of all names.
const IDLE: &[u8] = b"swapper";

impl Default for Threads {
    fn default() -> Self {
        let mut threads = Threads {
            list: Vec::new(),
            by_tid: HashMap::default(),
            comms: Comms::default(),
        };
        threads.add_idle();
        threads
    }
}

impl Threads {
    /// Returns threads whose names use about `most` bytes in total. Threads with further names are
    /// all called [`Comms::others`].
    pub fn with_names(most: usize) -> Self {
        let mut threads = Threads::default();
        // No record contains this name.
        let others = threads.comms.intern(b"\0");
        threads.comms.room = Some((most, others));
        threads
    }

    fn add_idle(&mut self) {
        let comm = self.comms.intern(IDLE);
        let idle = self.add(Machine::HOST, &Tid { pid: 0, tid: 0 }, comm);
        self.name(idle, comm);
    }

    /// Returns all threads. Entry 0 is the idle thread of the host.
    pub fn list(&self) -> &[Thread] {
        &self.list
    }

    /// Returns a thread.
    #[inline]
    pub fn get(&self, id: ThreadId) -> Option<&Thread> {
        self.list.get(id.index())
    }

    /// Returns all names of threads so far.
    pub fn comms(&self) -> &Comms {
        &self.comms
    }

    /// Returns the names of threads, for adding names.
    pub fn comms_mut(&mut self) -> &mut Comms {
        &mut self.comms
    }

    /// Returns the approximate size of the threads and their names in bytes.
    pub fn held(&self) -> usize {
        let each = size_of::<Thread>().saturating_add(48);
        self.list
            .len()
            .saturating_mul(each)
            .saturating_add(self.comms.held())
    }

    /// Returns the thread that currently has the thread ID; `None` if it was not added. If its
    /// process was not known before, it is set from `pid`.
    #[inline]
    pub fn find(&mut self, machine: Machine, &Tid { pid, tid }: &Tid) -> Option<ThreadId> {
        let &id = self.by_tid.get(&(machine, tid))?;
        if pid != u32::MAX
            && let Some(thread) = self.list.get_mut(id.index())
            && thread.pid == u32::MAX
        {
            thread.pid = pid;
        }
        Some(id)
    }

    /// Returns the thread that currently has the thread ID. Adds it if it is new.
    #[inline]
    pub fn find_or_add(&mut self, machine: Machine, tid: &Tid) -> ThreadId {
        match self.find(machine, tid) {
            Some(id) => id,
            None => {
                let comm = self.unnamed(tid.tid);
                self.add(machine, tid, comm)
            }
        }
    }

    /// Sets the name of a thread (COMM).
    pub fn name(&mut self, id: ThreadId, comm: CommId) {
        if let Some(thread) = self.list.get_mut(id.index()) {
            (thread.comm, thread.is_named) = (comm, true);
            thread.has_lost_name = false;
        }
    }

    /// Adds a new thread, which inherits its parent's name (FORK).
    pub fn fork(&mut self, machine: Machine, task: &Task, time: Option<u64>) -> ThreadId {
        let parent = self.find_or_add(
            machine,
            &Tid {
                pid: task.ppid,
                tid: task.ptid,
            },
        );
        let has_lost_name = self.get(parent).is_some_and(|parent| parent.has_lost_name);
        let name = self
            .get(parent)
            .filter(|parent| parent.is_named)
            .map(|parent| parent.comm);
        let comm = name.unwrap_or_else(|| self.unnamed(task.tid));
        let id = self.add(
            machine,
            &Tid {
                pid: task.pid,
                tid: task.tid,
            },
            comm,
        );
        if let Some(thread) = self.list.get_mut(id.index()) {
            (thread.parent, thread.start, thread.is_named) = (Some(parent), time, name.is_some());
            thread.has_lost_name = has_lost_name;
        }
        id
    }

    /// Ends a thread (EXIT). Returns false if it had already ended.
    pub fn end(&mut self, id: ThreadId, time: Option<u64>) -> bool {
        let Some(thread) = self.list.get_mut(id.index()) else {
            return false;
        };
        thread.has_lost_name = true;
        if thread.end.is_some() {
            return false;
        }
        thread.end = Some(time.unwrap_or(0));
        true
    }

    /// Discards all threads that have ended, and those whose thread IDs other threads now have.
    /// This invalidates all IDs of threads, but not those of names.
    pub fn forget_ended(&mut self) {
        let list = std::mem::take(&mut self.list);
        let is_current = |at: usize, thread: &Thread| {
            thread.end.is_none()
                && self.by_tid.get(&(thread.machine, thread.tid)) == Some(&ThreadId::of(at))
        };
        self.list = list
            .into_iter()
            .enumerate()
            .filter(|(at, thread)| is_current(*at, thread))
            .map(|(_, thread)| Thread {
                parent: None,
                ..thread
            })
            .collect();
        let ids = self.list.iter().enumerate();
        self.by_tid = ids
            .map(|(at, thread)| ((thread.machine, thread.tid), ThreadId::of(at)))
            .collect();
    }

    /// Discards all threads except the idle one, as [`forget_ended`](Self::forget_ended) does.
    pub fn forget_all(&mut self) {
        self.list.clear();
        self.by_tid.clear();
        self.add_idle();
    }

    /// Adds a thread called `comm`, which replaces an earlier thread with the same thread ID.
    fn add(&mut self, machine: Machine, &Tid { pid, tid }: &Tid, comm: CommId) -> ThreadId {
        let id = ThreadId::of(self.list.len());
        let (parent, start, end, is_named) = (None, None, None, false);
        self.list.push(Thread {
            machine,
            pid,
            tid,
            parent,
            start,
            end,
            comm,
            is_named,
            has_lost_name: false,
        });
        self.by_tid.insert((machine, tid), id);
        id
    }

    /// Returns perf's name for a thread without a name.
    fn unnamed(&mut self, tid: u32) -> CommId {
        self.comms
            .intern(format!(":{}", tid.cast_signed()).as_bytes())
    }
}

/// Names of threads.
#[derive(Debug, Default)]
pub struct Comms {
    names: IndexSet<Box<[u8]>, RandomState>,
    bytes: usize,
    /// The maximum size in bytes, and the name that replaces all further names.
    room: Option<(usize, CommId)>,
}

impl Comms {
    /// Returns the ID of `name`. Adds the name if it is new; if it exceeds the maximum size,
    /// returns [`others`](Self::others).
    pub fn intern(&mut self, name: &[u8]) -> CommId {
        if let Some(at) = self.names.get_index_of(name) {
            return CommId::of(at);
        }
        if let Some((most, others)) = self.room
            && self.held().saturating_add(name.len()) > most
        {
            return others;
        }
        self.bytes = self.bytes.saturating_add(name.len());
        CommId::of(self.names.insert_full(name.into()).0)
    }

    /// Returns the name of threads whose names exceeded the maximum size: see
    /// [`Threads::with_names`].
    pub fn others(&self) -> Option<CommId> {
        self.room.map(|(_, others)| others)
    }

    /// Returns a name: any bytes except NUL, without a defined encoding. Empty for an unknown ID.
    pub fn get(&self, id: CommId) -> &[u8] {
        let name = self.names.get_index(id.index());
        name.map(|name| &**name).unwrap_or_default()
    }

    /// Returns all names, in the order of their IDs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }

    /// Returns the approximate size of the names in bytes.
    pub fn held(&self) -> usize {
        let entries = self.names.len().saturating_mul(64);
        entries.saturating_add(self.bytes.saturating_mul(2))
    }
}
