//! The changes to the records of one input, so that they fit to those of the others.

use std::collections::BTreeMap;

use perfdata_core::describe::Style;
use perfdata_core::record::{
    Body, CpuMode, RawRecord, Record, RecordHeader, RecordType, is_moment,
};
use perfdata_core::wire::Text;
use perfdata_core::{Endian, Error, Events, Result};

use super::survey::KERNEL;

/// Addresses that move: mappings of the kernel and of its modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// The modules, by start.
    modules: BTreeMap<u64, Move>,
    /// The kernel, whose mapping may extend over those of the modules.
    kernel: Option<(u64, Move)>,
}

/// A range of addresses that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    end: u64,
    /// What is added to each address, modulo 2^64.
    by: u64,
}

impl Move {
    fn new(start: u64, end: u64, to: u64) -> Self {
        let by = to.wrapping_sub(start);
        Move { end, by }
    }
}

impl Moves {
    /// Moves the module from `start` up to `end` to the address `to`.
    pub(super) fn add_module(&mut self, start: u64, end: u64, to: u64) {
        self.modules.insert(start, Move::new(start, end, to));
    }

    /// Moves the kernel.
    pub(super) fn set_kernel(&mut self, start: u64, end: u64, to: u64) {
        self.kernel = Some((start, Move::new(start, end, to)));
    }

    /// Returns the new address.
    pub(super) fn of(&self, addr: u64) -> u64 {
        let module = self.modules.range(..=addr).next_back();
        let module = module
            .map(|(_, found)| found)
            .filter(|found| addr < found.end);
        let kernel = self.kernel.as_ref();
        let kernel = kernel.filter(|(start, found)| (*start..found.end).contains(&addr));
        let found = module.or(kernel.map(|(_, found)| found));
        found.map_or(addr, |found| addr.wrapping_add(found.by))
    }
}

/// How the records of an input change.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    /// Added to every event ID except 0.
    pub(super) ids: u64,
    /// The ID for all IDs of a recording whose only event has no IDs.
    pub(super) only_id: Option<u64>,
    /// The ID of the only event, if its records contain none.
    pub(super) record_id: Option<u64>,
    /// The event ID for records that have the ID 0, if their trailer differs from that of the
    /// first event of the result, whose trailer readers expect in this case.
    pub(super) id_for_zero: Option<u64>,
    /// Whether IDENTIFIER is added to all records.
    pub(super) adds_identifier: bool,
    /// Added to process and thread IDs, except 0 and -1.
    pub(super) pids: u32,
    /// Added to CPU numbers, except -1.
    pub(super) cpus: u32,
    /// Added to cgroup IDs.
    pub(super) cgroups: u64,
    /// Added to IDs of BPF programs and of BTF.
    pub(super) bpf: u32,
    /// Added to times.
    pub(super) time: i128,
    /// Addresses in the kernel.
    pub(super) moves: Moves,
    /// Whether PMUs have other event types in the result.
    pub(super) has_other_types: bool,
}

impl Changes {
    /// Returns whether records without a time to set remain the same.
    pub(super) fn is_neutral(&self) -> bool {
        !self.has_numbers() && !self.adds_identifier
    }

    fn has_numbers(&self) -> bool {
        self.ids != 0
            || self.only_id.is_some()
            || self.id_for_zero.is_some()
            || self.pids != 0
            || self.cpus != 0
            || self.cgroups != 0
            || self.bpf != 0
            || self.time != 0
            || self.moves != Moves::default()
    }

    /// Returns the new time; a moment never becomes 0, which would mean "no time".
    pub(super) fn time_of(&self, time: u64) -> u64 {
        if self.time == 0 || !is_moment(time) {
            return time;
        }
        let moved = i128::from(time).saturating_add(self.time).max(1);
        u64::try_from(moved).unwrap_or(u64::MAX)
    }

    /// Returns the new event ID.
    pub(super) fn id_of(&self, id: u64) -> u64 {
        match (id, self.only_id) {
            (0, _) => self.id_for_zero.unwrap_or(0),
            (_, Some(only)) => only,
            (id, None) => id.wrapping_add(self.ids),
        }
    }

    /// Returns the new process or thread ID in a field of `size` bytes.
    pub(super) fn pid_of(&self, pid: u64, size: usize) -> u64 {
        match pid {
            0 => 0,
            none if is_none(none, size) => none,
            pid => pid.wrapping_add(self.pids.into()),
        }
    }

    fn cpu_of(&self, cpu: u64, size: usize) -> u64 {
        if is_none(cpu, size) {
            cpu
        } else {
            cpu.wrapping_add(self.cpus.into())
        }
    }

    /// Appends the changed record to `out`. `opening` is the time for a record that has none;
    /// `events` are those of the input.
    ///
    /// # Errors
    /// The record cannot be decoded, or becomes too large.
    pub(super) fn apply(
        &self,
        raw: &RawRecord<'_>,
        events: &Events,
        opening: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        out.extend_from_slice(raw.bytes);
        if opening.is_some() || self.has_numbers() {
            let layout = events.layout_of(raw);
            let bytes = out.get_mut(start..).unwrap_or_default();
            raw.replace_numbers(&layout, bytes, &mut |number, style, size| match style {
                Style::Id => self.id_of(number),
                Style::StreamId if number != 0 => number.wrapping_add(self.ids),
                Style::Pid => self.pid_of(number, size),
                Style::Cpu => self.cpu_of(number, size),
                Style::CgroupId => number.wrapping_add(self.cgroups),
                Style::BpfId => number.wrapping_add(self.bpf.into()),
                Style::Time => match opening {
                    Some(time) if !is_moment(number) => time,
                    _ => self.time_of(number),
                },
                Style::Address | Style::Callchain => self.moves.of(number),
                _ => number,
            })?;
            if matches!(raw.kind, RecordType::MMAP | RecordType::MMAP2) {
                self.change_mapping(raw, events, start, out)?;
            }
        }
        if self.adds_identifier {
            self.add_identifier(raw, events, start, out)?;
        }
        Ok(())
    }

    /// Changes what the style of a field does not tell: the offset of the kernel's mapping, which
    /// is an address, and process IDs in file names.
    fn change_mapping(
        &self,
        raw: &RawRecord<'_>,
        events: &Events,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let layout = events.layout_of(raw);
        let is_kernel = CpuMode::of(raw.misc) == CpuMode::KERNEL;
        if !is_kernel && self.pids == 0 {
            return Ok(());
        }
        let new = RawRecord::first(out.get(start..).unwrap_or_default(), raw.endian, raw.offset)?;
        let mut record = Record::decode(&new, &layout)?;
        let (pgoff, filename) = match &mut record.body {
            Body::Mmap(map) => (&mut map.pgoff, &mut map.filename),
            Body::Mmap2(map) => (&mut map.pgoff, &mut map.filename),
            _ => return Ok(()),
        };
        let new_pgoff = if is_kernel && filename.text().starts_with(KERNEL) {
            self.moves.of(*pgoff)
        } else {
            *pgoff
        };
        let new_name = (self.pids != 0)
            .then(|| self.name_of(filename.text()))
            .flatten();
        if new_pgoff == *pgoff && new_name.is_none() {
            return Ok(());
        }
        *pgoff = new_pgoff;
        if let Some(name) = new_name {
            *filename = Text::padded(&name, 8);
        }
        out.truncate(start);
        record.encode_into(out, raw.endian)
    }

    /// Returns the new name of a file that has the process ID in its name, by which perf finds it:
    /// `/tmp/perf-PID.map` and `jit-PID.dump` (tools/perf/util/map.c, util/jitdump.c).
    fn name_of(&self, name: &[u8]) -> Option<Vec<u8>> {
        let at = name
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |at| at.saturating_add(1));
        let (folder, file) = name.split_at_checked(at)?;
        [("perf-", ".map"), ("jit-", ".dump")]
            .into_iter()
            .find_map(|(before, after)| {
                let pid = file
                    .strip_prefix(before.as_bytes())?
                    .strip_suffix(after.as_bytes())?;
                let pid: u32 = std::str::from_utf8(pid).ok()?.parse().ok()?;
                let new = self.pid_of(pid.into(), size_of::<u32>());
                Some([folder, format!("{before}{new}{after}").as_bytes()].concat())
            })
    }

    /// Inserts IDENTIFIER: the first word of a SAMPLE, and the last word of a trailer.
    fn add_identifier(
        &self,
        raw: &RawRecord<'_>,
        events: &Events,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let is_sample = raw.kind == RecordType::SAMPLE;
        let has_trailer = || raw.kind.is_kernel() && events.layout_of(raw).sample_id_all;
        if !is_sample && !has_trailer() {
            return Ok(());
        }
        let id = match (events.id_of(raw), self.record_id) {
            (Some(id), _) => self.id_of(id),
            // A record without a time is one of those about the time before the recording.
            (None, Some(only)) if is_sample || events.time(raw).is_some_and(is_moment) => only,
            (None, _) => self.id_for_zero.unwrap_or(0),
        };
        let word = match raw.endian {
            Endian::Little => id.to_le_bytes(),
            Endian::Big => id.to_be_bytes(),
        };
        if is_sample {
            let at = start.saturating_add(RecordHeader::SIZE).min(out.len());
            out.splice(at..at, word);
        } else {
            out.extend_from_slice(&word);
        }
        let len = out.len().saturating_sub(start);
        let size = u16::try_from(len).map_err(|_| {
            Error::invalid(
                format!("{} record", raw.kind),
                "size",
                len.to_string(),
                "at most 65535 with the event ID that merging adds",
            )
            .at(raw.offset)
        })?;
        RecordHeader::put_size(out.get_mut(start..).unwrap_or_default(), size, raw.endian);
        Ok(())
    }
}

/// Returns whether all bits of a field of `size` bytes are set.
fn is_none(number: u64, size: usize) -> bool {
    let unused =
        u32::try_from(size.saturating_mul(8)).map_or(0, |bits| 64_u32.saturating_sub(bits));
    number == u64::MAX.checked_shr(unused).unwrap_or(0)
}
