//! Records about tasks and their mappings.

use perfdata_core::read::RecordRef;
use perfdata_core::record::{Body, CpuMode, Tid};
use perfdata_session::Machine;

use super::Survey;
use crate::slice::processes::TaskOfRecord;
use perfdata_convert::error::Result;

impl Survey<'_> {
    /// Processes a record about a task.
    pub(super) fn task(
        &mut self,
        number: u64,
        record: &RecordRef<'_>,
        time: Option<u64>,
    ) -> Result<()> {
        let decoded = record.decode()?;
        self.tasks.see(self.select, &decoded, time);
        if self.is_after(time) {
            self.decisions.dropped.insert(number);
            return Ok(());
        }
        let number = match &self.parts {
            Some(parts) => parts.ordinal(number),
            None => number,
        };
        let Some(Tid { pid, tid }) = decoded.body.tid() else {
            return Ok(());
        };
        let machine = Machine::of(CpuMode::of(decoded.misc));
        let task = TaskOfRecord { machine, pid, tid };
        let name = match &decoded.body {
            Body::Mmap(map) => Some(map.filename.text()),
            Body::Mmap2(map) => Some(map.filename.text()),
            _ => None,
        };
        if is_permanent(task.pid) {
            return Ok(());
        }
        match &decoded.body {
            Body::Fork(fork) => self.processes.fork(task, fork.ppid, number),
            Body::Exit(_) => {
                let number = (!self.has_switches).then_some(number);
                self.processes.exit(task, time.unwrap_or(0), number);
            }
            _ => self.processes.record(task, number, name),
        }
        self.processes.weigh(task, record.bytes.len() as u64);
        self.check(record.offset)
    }
}

/// Returns whether records with this process ID are always kept: those of the kernel and of idle
/// threads.
fn is_permanent(pid: u32) -> bool {
    pid == u32::MAX || pid == 0
}
