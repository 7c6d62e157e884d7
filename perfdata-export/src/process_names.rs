//! The names of processes.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_session::Sample;

/// The process ID of samples without one, and of threads that have ended.
pub(crate) const NO_PID: u32 = u32::MAX;

/// The last name of each process: that of the main thread, otherwise that of another thread.
#[derive(Debug, Default)]
pub(crate) struct ProcessNames(HashMap<u32, (Box<[u8]>, bool), RandomState>);

impl ProcessNames {
    /// Sees the name of a sample's thread.
    pub fn see(&mut self, sample: &Sample<'_>) {
        let tid = sample.tid();
        let pid = tid.map_or(NO_PID, |tid| tid.pid);
        let is_main = tid.is_some_and(|tid| tid.pid == tid.tid);
        self.add(pid, sample.comm(), is_main);
    }

    fn add(&mut self, pid: u32, comm: &[u8], is_main: bool) {
        match self.0.get_mut(&pid) {
            Some((name, is_final)) => {
                if (is_main || !*is_final) && **name != *comm {
                    *name = comm.into();
                }
                *is_final |= is_main;
            }
            None => {
                self.0.insert(pid, (comm.into(), is_main));
            }
        }
    }

    /// Adds the names in later samples.
    pub fn join(&mut self, later: &ProcessNames) {
        for (&pid, (name, is_main)) in &later.0 {
            self.add(pid, name, *is_main);
        }
    }

    /// Returns the name of a process.
    pub fn get(&self, pid: u32) -> Option<&[u8]> {
        self.0.get(&pid).map(|(name, _)| &**name)
    }
}
