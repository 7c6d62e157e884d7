//! The tables `mappings`, `lost` and `switches`.

use perfdata_core::read::RecordRef;
use perfdata_core::record::{
    Body, CpuMode, MISC_LOST_SAMPLES_BPF, MISC_SWITCH_OUT, MISC_SWITCH_OUT_PREEMPT, Record,
    RecordType,
};
use perfdata_session::names::EventNames;
use perfdata_session::{Change, MappedDso, Mapping};

use super::SideTables;
use crate::clock::WallClock;
use crate::error::Result;
use crate::rows::Cell;
use crate::samples::mode_text;
use crate::schema::Table;

/// Adds records that are not samples to the tables.
#[derive(Debug, Default)]
pub(super) struct RecordTables {
    names: EventNames,
    /// Number of lost records.
    pub lost_records: u64,
    /// Number of lost samples.
    pub lost_samples: u64,
}

impl RecordTables {
    /// Adds a record.
    ///
    /// # Errors
    /// The record is corrupt.
    pub fn see(
        &mut self,
        record: &RecordRef<'_>,
        clock: Option<WallClock>,
        side: &mut SideTables,
    ) -> Result<()> {
        self.names.see(record);
        match record.kind {
            RecordType::MMAP | RecordType::MMAP2 | RecordType::KSYMBOL => {
                push_mapping(record, &record.decode()?, side);
            }
            RecordType::LOST | RecordType::LOST_SAMPLES => {
                self.push_lost(record, &record.decode()?, side);
            }
            RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE => {
                push_switch(record, &record.decode()?, clock, side);
            }
            _ => {}
        }
        Ok(())
    }

    fn push_lost(&mut self, record: &RecordRef<'_>, decoded: &Record, side: &mut SideTables) {
        let (kind, id, lost) = match &decoded.body {
            Body::Lost(body) => {
                self.lost_records = self.lost_records.saturating_add(body.lost);
                ("LOST", Some(body.id), body.lost)
            }
            Body::LostSamples(body) => {
                self.lost_samples = self.lost_samples.saturating_add(body.lost);
                ("LOST_SAMPLES", None, body.lost)
            }
            _ => return,
        };
        let recording = record.recording();
        self.names.update(recording);
        let event = match id {
            Some(id) => recording.events.of_id(id),
            None => recording.events.of_record(&record.raw()),
        };
        let name = event.and_then(|event| self.names.get(recording, event));
        let cpu = decoded.sample_id.as_ref().and_then(|id| id.cpu);
        let is_sample = record.kind == RecordType::LOST_SAMPLES;
        let by_bpf = record.misc & MISC_LOST_SAMPLES_BPF != 0;
        side.push(
            &Table::Lost,
            &[
                record.time().into(),
                Cell::Text(kind),
                name.as_deref().map_or(Cell::Null, Cell::Name),
                lost.into(),
                cpu.map(|cpu| cpu.cpu).into(),
                if is_sample {
                    Cell::Bool(by_bpf)
                } else {
                    Cell::Null
                },
            ],
        );
    }
}

fn push_mapping(record: &RecordRef<'_>, decoded: &Record, side: &mut SideTables) {
    let (pid, tid) = match &decoded.body {
        Body::Mmap(map) => (map.pid, map.tid),
        Body::Mmap2(map) => (map.pid, map.tid),
        // Code of the kernel, as in the mappings of its image.
        _ => (u32::MAX, 0),
    };
    let (Some(Change::Map { what, .. }) | Some(Change::Symbol { what, .. })) = Change::of(decoded)
    else {
        return;
    };
    let Mapping {
        dso: MappedDso { name, build_id, .. },
        start,
        end,
        pgoff,
        prot,
        flags,
        is_executable,
        ..
    } = what;
    let build_id = build_id.map(|id| id.to_string());
    let mode = match record.kind {
        RecordType::KSYMBOL => CpuMode::KERNEL,
        _ => CpuMode::of(record.misc),
    };
    side.push(
        &Table::Mappings,
        &[
            record.time().into(),
            pid.into(),
            tid.into(),
            start.into(),
            end.into(),
            pgoff.into(),
            Cell::Name(name),
            build_id.as_deref().into(),
            prot.into(),
            flags.into(),
            Cell::Bool(is_executable),
            Cell::Text(mode_text(mode)),
        ],
    );
}

fn push_switch(
    record: &RecordRef<'_>,
    decoded: &Record,
    clock: Option<WallClock>,
    side: &mut SideTables,
) {
    let other = match &decoded.body {
        Body::SwitchCpuWide(body) => Some((body.next_prev_pid, body.next_prev_tid)),
        _ => None,
    };
    let time = record.time();
    let wall = time.and_then(|time| clock?.micros(time));
    let id = decoded.sample_id.as_ref();
    let tid = id.and_then(|id| id.tid);
    let is_out = record.misc & MISC_SWITCH_OUT != 0;
    let is_preempted = record.misc & MISC_SWITCH_OUT_PREEMPT != 0;
    side.push(
        &Table::Switches,
        &[
            time.into(),
            wall.into(),
            id.and_then(|id| id.cpu).map(|cpu| cpu.cpu).into(),
            tid.map(|tid| tid.pid).into(),
            tid.map(|tid| tid.tid).into(),
            Cell::Bool(is_out),
            if is_out {
                Cell::Bool(is_preempted)
            } else {
                Cell::Null
            },
            other.map(|(pid, _)| pid).into(),
            other.map(|(_, tid)| tid).into(),
        ],
    );
}
