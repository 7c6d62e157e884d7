//! What perf forgets of threads that end. Since 6.8, it removes a thread with its EXIT record, and
//! adds a new one, without a name and without mappings, if a later record names it
//! (tools/perf/util/machine.c, `machine__process_exit_event` and `machine__findnew_thread`).
//!
//! A process has the mappings of its leader, and every other thread keeps those that the leader had
//! when the thread was added. So the threads of a process keep its mappings if the leader ends
//! first.

use std::collections::HashMap;
use std::num::NonZeroU32;

use foldhash::fast::RandomState;

use crate::dso::Machine;
use crate::ids::ThreadId;
use crate::thread::Thread;

/// Identifies mappings that threads share: an index of [`RemovedThreads::are_lost`], from 1.
type MapsId = NonZeroU32;

/// The leader of a process. Memory grows with every process: it has 4 bytes.
#[derive(Debug, Clone, Copy)]
enum Leader {
    Present(MapsId),
    Removed,
}

/// The mappings of threads, in regard to whether perf has forgotten them.
#[derive(Debug, Default)]
pub(crate) struct RemovedThreads {
    leaders: HashMap<(Machine, u32), Leader, RandomState>,
    /// The mappings of each thread; `None` if no record names it since its end.
    of_threads: Vec<Option<MapsId>>,
    /// Whether perf has forgotten mappings, and no record has added one since.
    are_lost: Vec<bool>,
}

impl RemovedThreads {
    /// Adds a thread that a record names, unless it is known.
    #[inline]
    pub(crate) fn add(&mut self, id: ThreadId, thread: &Thread) {
        if self.maps(id).is_none() {
            let leader = self.leader(thread);
            self.set(id, Some(leader));
        }
    }

    /// Removes a thread (EXIT).
    pub(crate) fn remove(&mut self, id: ThreadId, thread: &Thread) {
        if thread.tid == thread.pid {
            let key = (thread.machine, thread.pid);
            self.leaders.insert(key, Leader::Removed);
        }
        self.set(id, None);
    }

    /// Adds a new thread (FORK). That of a new process has the mappings of its parent.
    pub(crate) fn fork(&mut self, (id, thread): (ThreadId, &Thread), parent: (ThreadId, &Thread)) {
        if thread.pid == parent.1.pid {
            return self.add(id, thread);
        }
        self.add(parent.0, parent.1);
        let maps = self.new_maps(self.are_lost(parent.0));
        let key = (thread.machine, thread.pid);
        self.leaders.insert(key, Leader::Present(maps));
        self.set(id, Some(maps));
    }

    /// Adds a mapping to a process: to its leader, or to a thread.
    pub(crate) fn map(&mut self, thread: Option<(ThreadId, &Thread)>, machine: Machine, pid: u32) {
        let maps = match thread {
            Some((id, thread)) => {
                self.add(id, thread);
                self.maps(id)
            }
            None => match self.leaders.get(&(machine, pid)) {
                Some(Leader::Present(maps)) => Some(*maps),
                _ => None,
            },
        };
        if let Some(is_lost) = maps.and_then(|maps| self.are_lost.get_mut(index(maps))) {
            *is_lost = false;
        }
    }

    /// Returns whether perf has forgotten the mappings of a thread.
    #[inline]
    pub(crate) fn are_lost(&self, id: ThreadId) -> bool {
        let maps = self.maps(id);
        maps.and_then(|maps| self.are_lost.get(index(maps))) == Some(&true)
    }

    /// Returns the approximate memory use in bytes.
    pub(crate) fn held(&self) -> usize {
        let leader = size_of::<(Machine, u32, Leader)>().saturating_mul(2);
        let thread = size_of::<Option<MapsId>>();
        let leaders = self.leaders.len().saturating_mul(leader);
        leaders
            .saturating_add(self.of_threads.len().saturating_mul(thread))
            .saturating_add(self.are_lost.len())
    }

    #[inline]
    fn maps(&self, id: ThreadId) -> Option<MapsId> {
        self.of_threads.get(id.index()).copied().flatten()
    }

    fn set(&mut self, id: ThreadId, maps: Option<MapsId>) {
        if self.of_threads.len() <= id.index() {
            let len = id.index().saturating_add(1);
            self.of_threads.resize(len, None);
        }
        if let Some(of_thread) = self.of_threads.get_mut(id.index()) {
            *of_thread = maps;
        }
    }

    /// Returns the mappings of a thread's leader, which is added if it was removed or is not known.
    fn leader(&mut self, thread: &Thread) -> MapsId {
        let key = (thread.machine, thread.pid);
        let known = self.leaders.get(&key).copied();
        if let Some(Leader::Present(maps)) = known {
            return maps;
        }
        let maps = self.new_maps(known.is_some());
        self.leaders.insert(key, Leader::Present(maps));
        maps
    }

    fn new_maps(&mut self, are_lost: bool) -> MapsId {
        self.are_lost.push(are_lost);
        let number = u32::try_from(self.are_lost.len()).ok();
        number.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX)
    }
}

/// Returns the index of mappings.
fn index(maps: MapsId) -> usize {
    usize::try_from(maps.get().saturating_sub(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use perfdata_core::record::{Task, Tid};

    use super::*;
    use crate::thread::Threads;

    /// Threads and what perf knows of them.
    #[derive(Default)]
    struct Both(Threads, RemovedThreads);

    impl Both {
        fn fork(&mut self, (pid, tid): (u32, u32), (ppid, ptid): (u32, u32)) {
            let time = 0;
            let task = Task {
                pid,
                ppid,
                tid,
                ptid,
                time,
            };
            let id = self.0.fork(Machine::HOST, &task, None);
            let thread = self.0.get(id).unwrap();
            let parent = thread.parent.unwrap();
            let parent = (parent, self.0.get(parent).unwrap());
            self.1.fork((id, thread), parent);
        }

        fn id(&mut self, pid: u32, tid: u32) -> ThreadId {
            self.0.find_or_add(Machine::HOST, &Tid { pid, tid })
        }

        fn exit(&mut self, pid: u32, tid: u32) {
            let id = self.id(pid, tid);
            self.1.remove(id, self.0.get(id).unwrap());
        }

        fn map(&mut self, pid: u32, tid: u32) {
            let id = self.id(pid, tid);
            let thread = (id, self.0.get(id).unwrap());
            self.1.map(Some(thread), Machine::HOST, pid);
        }

        /// Returns whether a sample of the thread has lost its mappings.
        fn has_lost(&mut self, pid: u32, tid: u32) -> bool {
            let id = self.id(pid, tid);
            self.1.add(id, self.0.get(id).unwrap());
            self.1.are_lost(id)
        }
    }

    #[test]
    fn threads_keep_the_mappings_of_a_leader_that_ends_first() {
        let mut both = Both::default();
        both.map(10, 10);
        both.fork((10, 11), (10, 10));
        both.exit(10, 10);
        assert!(!both.has_lost(10, 11));
        // A thread that is created now has those of a new leader: none.
        both.fork((10, 12), (10, 11));
        assert!(both.has_lost(10, 12) && both.has_lost(10, 10));
        assert!(!both.has_lost(10, 11));
        // What a thread maps is not for others.
        both.map(10, 11);
        assert!(both.has_lost(10, 12));
        both.map(10, 12);
        assert!(!both.has_lost(10, 12));
    }

    #[test]
    fn a_thread_that_has_ended_has_the_mappings_of_its_leader() {
        let mut both = Both::default();
        both.fork((10, 11), (10, 10));
        both.exit(10, 11);
        assert!(!both.has_lost(10, 11));
        both.exit(10, 11);
        both.exit(10, 10);
        assert!(both.has_lost(10, 11));
    }

    #[test]
    fn new_processes_have_the_mappings_of_their_parents() {
        let mut both = Both::default();
        both.fork((20, 20), (10, 10));
        both.exit(10, 10);
        both.fork((30, 30), (20, 20));
        assert!(!both.has_lost(20, 20) && !both.has_lost(30, 30));
        both.fork((40, 40), (10, 10));
        assert!(both.has_lost(40, 40));
        // The ID of a process is used again.
        both.exit(20, 20);
        both.fork((20, 20), (30, 30));
        assert!(!both.has_lost(20, 20));
    }
}
