//! AUX data of a slice.
//!
//! AUX data is decoded by perf, so the samples in it are not known. Data of a CPU or of a thread
//! that is not selected are left out. [`AuxCuts`](super::aux_cuts::AuxCuts) cuts the rest by time.

use perfdata_core::read::RecordRef;
use perfdata_core::record::{Body, Tid};

use super::numbers::Bits;
use super::select::Select;
use super::tasks::Tasks;
use crate::error::Result;

/// The AUXTRACE records so far.
#[derive(Debug, Default)]
pub(super) struct AuxData {
    /// Number, thread and CPU.
    records: Vec<(u64, u32, u32)>,
}

impl AuxData {
    /// Adds an AUXTRACE record.
    pub(super) fn see(&mut self, number: u64, record: &RecordRef<'_>) -> Result<()> {
        if let Body::Auxtrace(trace) = record.decode()?.body {
            self.records.push((number, trace.tid, trace.cpu));
        }
        Ok(())
    }

    /// Returns the memory use in bytes.
    pub(super) fn held(&self) -> usize {
        self.records
            .len()
            .saturating_mul(size_of::<(u64, u32, u32)>())
    }

    /// Adds the records that are not selected to `dropped`. Returns the number of the others. A
    /// trace of a thread has the CPU -1.
    pub(super) fn finish(self, select: &Select, tasks: &mut Tasks, dropped: &mut Bits) -> u64 {
        let mut kept = 0u64;
        for (number, tid, cpu) in self.records {
            let is_of_thread = cpu == u32::MAX && tid != u32::MAX;
            let is_selected = if is_of_thread {
                let has_ids = select.pids.is_some() || select.tids.is_some();
                let tid = Tid { pid: u32::MAX, tid };
                (has_ids && select.comms.is_none()).then(|| tasks.matches(select, &tid))
            } else {
                select.cpus.as_ref().map(|cpus| cpus.contains(cpu))
            };
            if is_selected.is_none_or(|is_selected| is_selected != select.invert) {
                kept = kept.saturating_add(1);
            } else {
                dropped.insert(number);
            }
        }
        kept
    }
}
