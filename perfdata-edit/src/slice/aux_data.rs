//! AUX data of a slice.
//!
//! AUX data is decoded by perf, so the samples in it are not known. Data of a CPU or of a thread
//! that is not selected are left out. [`AuxCuts`](super::aux_cuts::AuxCuts) cuts the rest by time.

use perfdata_core::read::RecordRef;
use perfdata_core::record::{Body, Tid};

use super::by::By;
use super::numbers::Bits;
use super::parts::{Key, Parts};
use super::select::Select;
use super::tasks::Tasks;
use perfdata_convert::error::{Error, Result};

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

    /// Adds the records that are not selected to `dropped`, and the others to their `parts`.
    /// Returns the number of the others. A trace of a thread has the CPU -1.
    pub(super) fn finish(
        self,
        select: &Select,
        tasks: &mut Tasks,
        dropped: &mut Bits,
        parts: Option<&mut Parts>,
    ) -> Result<u64> {
        let mut kept = Vec::new();
        for (number, tid, cpu) in self.records {
            let is_of_thread = cpu == u32::MAX && tid != u32::MAX;
            let tid = Tid { pid: u32::MAX, tid };
            let is_selected = if is_of_thread {
                let has_ids = select.pids.is_some() || select.tids.is_some();
                (has_ids && select.comms.is_none()).then(|| tasks.matches(select, &tid))
            } else {
                select.cpus.as_ref().map(|cpus| cpus.contains(cpu))
            };
            if is_selected.is_none_or(|is_selected| is_selected != select.invert) {
                kept.push((number, is_of_thread.then_some(tid), cpu));
            } else {
                dropped.insert(number);
            }
        }
        let count = kept.len() as u64;
        if let Some(parts) = parts {
            divide(kept, tasks, parts)?;
        }
        Ok(count)
    }
}

/// Adds AUXTRACE records to parts, by their threads or CPUs.
fn divide(
    records: Vec<(u64, Option<Tid>, u32)>,
    tasks: &mut Tasks,
    parts: &mut Parts,
) -> Result<()> {
    for (number, tid, cpu) in records {
        let key = match (parts.by(), tid) {
            // All parts keep the record, and cut its data by time.
            (By::Time(_), _) => continue,
            (By::Pid, Some(tid)) => Key::Pid(tasks.pid_of(&tid)),
            (By::Tid, Some(tid)) => Key::Tid(tid.tid),
            (By::Cpu, None) => Key::Cpu(cpu),
            (by, tid) => {
                let (of, better) = match tid {
                    Some(_) => ("threads", "time, pid or tid"),
                    None => ("CPUs", "time or cpu"),
                };
                return Err(Error::Refused(format!(
                    "the recording has AUX data of {of}, which cannot be divided by {}: choose \
                     {better}",
                    by.word()
                )));
            }
        };
        parts.part(key)?;
        parts.belongs_to(number, Some(key));
    }
    Ok(())
}
