//! Threads that have ended. perf forgets their names and mappings (tools/perf/util/event.c,
//! `perf_event__process_exit`, since 6.8).

use std::collections::HashSet;

use foldhash::fast::RandomState;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{Body, RecordType};
use perfdata_session::Sample;

use crate::error::Result;

/// The threads that have ended and were not created again, by their IDs.
#[derive(Debug, Default)]
pub(super) struct EndedThreads {
    /// Threads without a name.
    unnamed: HashSet<u32, RandomState>,
    /// Processes without mappings.
    unmapped: HashSet<u32, RandomState>,
}

impl EndedThreads {
    /// Follows the records that start and end threads, and give them names and mappings.
    pub fn see(&mut self, record: &RecordRef<'_>) -> Result<()> {
        match record.kind {
            RecordType::EXIT | RecordType::FORK | RecordType::COMM => {}
            RecordType::MMAP | RecordType::MMAP2 if !self.unmapped.is_empty() => {}
            _ => return Ok(()),
        }
        match record.decode()?.body {
            Body::Exit(task) => {
                self.unnamed.insert(task.tid);
                self.unmapped.insert(task.tid);
            }
            Body::Fork(task) => {
                self.unnamed.remove(&task.tid);
                self.unmapped.remove(&task.tid);
            }
            Body::Comm(comm) => {
                self.unnamed.remove(&comm.tid);
            }
            Body::Mmap(mmap) => {
                self.unmapped.remove(&mmap.pid);
            }
            Body::Mmap2(mmap) => {
                self.unmapped.remove(&mmap.pid);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a thread has no name any more.
    pub fn is_unnamed(&self, tid: u32) -> bool {
        self.unnamed.contains(&tid)
    }

    /// Returns whether the process of a sample has no mappings any more.
    pub fn is_unmapped_in(&self, sample: &Sample<'_>) -> bool {
        let pid = sample.tid().filter(|_| !self.unmapped.is_empty());
        pid.is_some_and(|tid| self.unmapped.contains(&tid.pid))
    }
}
