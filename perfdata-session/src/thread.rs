//! Threads, their processes, and their names (tools/perf/util/thread.c and machine.c).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::record::{Task, Tid};

use crate::dso::Machine;
use crate::ids::{CommId, ThreadId};

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
}

/// The threads of all machines, and their names at one moment.
///
/// This is the part of a [`Session`](crate::Session) that says who runs, for programs that want to know only that. It
/// must be told what happens in the order of time.
#[derive(Debug)]
pub struct Threads {
    list: Vec<Thread>,
    by_tid: HashMap<(Machine, u32), ThreadId, RandomState>,
    comms: Comms,
}

/// The name of the idle threads, which are never announced: entry 0 of all names.
const IDLE: &[u8] = b"swapper";

impl Default for Threads {
    fn default() -> Self {
        let mut threads = Threads { list: Vec::new(), by_tid: HashMap::default(), comms: Comms::default() };
        threads.add_idle();
        threads
    }
}

impl Threads {
    /// Threads whose names take about `most` bytes together: those for which there is no room are all called
    /// [`Comms::others`].
    pub fn with_names(most: usize) -> Self {
        let mut threads = Threads::default();
        // No record has such a name.
        let others = threads.comms.intern(b"\0");
        threads.comms.room = Some((most, others));
        threads
    }

    fn add_idle(&mut self) {
        let comm = self.comms.intern(IDLE);
        let idle = self.add(Machine::HOST, &Tid { pid: 0, tid: 0 }, comm);
        self.name(idle, comm);
    }

    /// All threads: entry 0 is the idle thread of the host.
    pub fn list(&self) -> &[Thread] {
        &self.list
    }

    /// A thread.
    #[inline]
    pub fn get(&self, id: ThreadId) -> Option<&Thread> {
        self.list.get(id.index())
    }

    /// All names that threads ever had.
    pub fn comms(&self) -> &Comms {
        &self.comms
    }

    /// The same, for entering names.
    pub fn comms_mut(&mut self) -> &mut Comms {
        &mut self.comms
    }

    /// Bytes of them and their names, about.
    pub fn held(&self) -> usize {
        let each = size_of::<Thread>().saturating_add(48);
        self.list.len().saturating_mul(each).saturating_add(self.comms.held())
    }

    /// The thread that has the number now. Where only now its process is told, the thread learns of it.
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

    /// The thread that has the number now, which is entered if it is new.
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

    /// Gives a thread a name (COMM).
    pub fn name(&mut self, id: ThreadId, comm: CommId) {
        if let Some(thread) = self.list.get_mut(id.index()) {
            (thread.comm, thread.is_named) = (comm, true);
        }
    }

    /// Adds a new thread, which has its parent's name (FORK).
    pub fn fork(&mut self, machine: Machine, task: &Task, time: Option<u64>) -> ThreadId {
        let parent = self.find_or_add(machine, &Tid { pid: task.ppid, tid: task.ptid });
        let name = self.get(parent).filter(|parent| parent.is_named).map(|parent| parent.comm);
        let comm = name.unwrap_or_else(|| self.unnamed(task.tid));
        let id = self.add(machine, &Tid { pid: task.pid, tid: task.tid }, comm);
        if let Some(thread) = self.list.get_mut(id.index()) {
            (thread.parent, thread.start, thread.is_named) = (Some(parent), time, name.is_some());
        }
        id
    }

    /// A thread ends (EXIT). False where it had ended before.
    pub fn end(&mut self, id: ThreadId, time: Option<u64>) -> bool {
        let Some(thread) = self.list.get_mut(id.index()).filter(|thread| thread.end.is_none()) else { return false };
        thread.end = Some(time.unwrap_or(0));
        true
    }

    /// Forgets all threads that have ended, and those whose numbers others have now. All IDs of threads are void then,
    /// those of names stay.
    pub fn forget_ended(&mut self) {
        let list = std::mem::take(&mut self.list);
        let is_current = |at: usize, thread: &Thread| {
            thread.end.is_none() && self.by_tid.get(&(thread.machine, thread.tid)) == Some(&ThreadId::of(at))
        };
        self.list = list
            .into_iter()
            .enumerate()
            .filter(|(at, thread)| is_current(*at, thread))
            .map(|(_, thread)| Thread { parent: None, ..thread })
            .collect();
        let ids = self.list.iter().enumerate();
        self.by_tid = ids.map(|(at, thread)| ((thread.machine, thread.tid), ThreadId::of(at))).collect();
    }

    /// Forgets all threads but the idle one, as [`forget_ended`](Self::forget_ended) does.
    pub fn forget_all(&mut self) {
        self.list.clear();
        self.by_tid.clear();
        self.add_idle();
    }

    /// Adds a thread called `comm`, in place of one that had the number before.
    fn add(&mut self, machine: Machine, &Tid { pid, tid }: &Tid, comm: CommId) -> ThreadId {
        let id = ThreadId::of(self.list.len());
        let (parent, start, end, is_named) = (None, None, None, false);
        self.list.push(Thread { machine, pid, tid, parent, start, end, comm, is_named });
        self.by_tid.insert((machine, tid), id);
        id
    }

    /// What perf calls a thread that nothing has named.
    fn unnamed(&mut self, tid: u32) -> CommId {
        self.comms.intern(format!(":{}", tid.cast_signed()).as_bytes())
    }
}

/// Names of threads.
#[derive(Debug, Default)]
pub struct Comms {
    list: Vec<Box<[u8]>>,
    by_name: HashMap<Box<[u8]>, CommId, RandomState>,
    bytes: usize,
    /// Bytes that there is room for, and the name of all others.
    room: Option<(usize, CommId)>,
}

impl Comms {
    /// The ID of `name`, which is entered if it is new.
    pub fn intern(&mut self, name: &[u8]) -> CommId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        if let Some((most, others)) = self.room
            && self.held().saturating_add(name.len()) > most
        {
            return others;
        }
        let id = CommId::of(self.list.len());
        self.bytes = self.bytes.saturating_add(name.len());
        self.list.push(name.into());
        self.by_name.insert(name.into(), id);
        id
    }

    /// The name of threads for whose names there was no room: see [`Threads::with_names`].
    pub fn others(&self) -> Option<CommId> {
        self.room.map(|(_, others)| others)
    }

    /// A name: any bytes but NUL, without an encoding.
    pub fn get(&self, id: CommId) -> &[u8] {
        self.list.get(id.index()).map(|name| &**name).unwrap_or_default()
    }

    /// All names, by their IDs.
    pub fn list(&self) -> &[Box<[u8]>] {
        &self.list
    }

    /// Bytes of them, about.
    pub fn held(&self) -> usize {
        self.list.len().saturating_mul(64).saturating_add(self.bytes.saturating_mul(2))
    }
}
