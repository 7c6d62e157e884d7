//! The merged records: the next one in time of all inputs, in blocks.

use perfdata_core::container_layout::{ContainerLayout, PipeLayout, Slot, SlotContent};
use perfdata_core::read::{Chunk, Limits, RecordBatch, RecordSource, Tail};
use perfdata_core::record::{RawRecord, RecordHeader, RecordType};
use perfdata_core::spool::Heads;
use perfdata_core::wire::Wire;
use perfdata_core::{Error, Recording, Result};

use super::counters::Counters;
use super::lane::{Lane, LanePlan};
use super::sideband::{Opening, Sideband};
use super::spans::{is_gap, is_synthesized};

/// Number of bytes of records that are merged at once.
const BLOCK: usize = 256 << 10;

/// Number of bytes of records between two FINISHED_ROUND records, after which readers return what
/// they have sorted.
const ROUND: usize = 4 << 20;

/// Maximum number of records of one time that are compared with those of other inputs.
const SAME_TIME: usize = 64;

/// Several recordings as one.
pub(super) struct MergedRecords {
    recording: Recording,
    container_layout: ContainerLayout,
    lanes: Vec<Lane>,
    /// The time of the next record of each input that has one.
    next: Heads<u64>,
    sideband: Sideband,
    /// What else existed before the recording that starts first.
    more: Option<Opening>,
    /// The counters in samples, if there are any.
    counters: Option<Counters>,
    block: Vec<u8>,
    /// Number of bytes of the block that are already returned.
    taken: usize,
    /// Offset of the block in the merged records.
    offset: u64,
    since_round: usize,
    /// The input whose AUX data are read now, and whether a payload follows.
    aux_of: Option<usize>,
    has_payload: bool,
    /// The records other than samples of the time `now`, if several inputs have records then.
    now: u64,
    same_time: Vec<SameTime>,
    /// The records so far about what existed before an input of an input: the input, and their
    /// time.
    inner: Option<(usize, u64, Opening)>,
}

/// A record other than a sample, and the inputs that contain it.
struct SameTime {
    inputs: Vec<usize>,
    record: Vec<u8>,
}

impl MergedRecords {
    /// Merges `lanes`, which are in the order in which they start. `more` comes before the first one.
    pub(super) fn new(
        recording: Recording,
        mut lanes: Vec<Lane>,
        sideband: Sideband,
        more: Opening,
    ) -> Result<Self> {
        let mut next = Heads::default();
        for (at, lane) in lanes.iter_mut().enumerate() {
            lane.load()?;
            // An input without further records still has an opening.
            next.push(lane.time_of_next(), at);
        }
        let attrs = (0..recording.events.len()).map(SlotContent::Attr);
        let slots = attrs.map(Slot::new).collect();
        Ok(MergedRecords {
            counters: Counters::of(&recording.events),
            recording,
            container_layout: ContainerLayout::Pipe(PipeLayout { slots }),
            lanes,
            next,
            sideband,
            more: Some(more),
            block: Vec::with_capacity(BLOCK.saturating_mul(2)),
            taken: 0,
            offset: 0,
            since_round: 0,
            aux_of: None,
            has_payload: false,
            now: 0,
            same_time: Vec::new(),
            inner: None,
        })
    }

    /// Fills the block; leaves it empty at the end.
    fn fill(&mut self) -> Result<()> {
        while self.block.len() < BLOCK && self.aux_of.is_none() {
            let Some((_, at)) = self.next.pop() else {
                self.begin_inner()?;
                self.finish_round()?;
                break;
            };
            self.run(at)?;
        }
        Ok(())
    }

    /// Adds records of one input to the block, up to one that is later than one of another input.
    fn run(&mut self, at: usize) -> Result<()> {
        loop {
            let Some(lane) = self.lanes.get_mut(at) else {
                return Ok(());
            };
            if !std::mem::replace(&mut lane.begun, true) {
                let (time, plan) = (lane.time, lane.plan.clone());
                self.begin(at, &plan)?;
                // Others may begin before its first record.
                self.next.push(time, at);
                return Ok(());
            }
            // AUX data come before all records with a time, but after the description of the trace.
            if lane.aux.is_some() && (lane.has_time || lane.kind().is_none()) {
                self.aux_of = Some(at);
                self.next.push(lane.time, at);
                return Ok(());
            }
            let Some(kind) = lane.kind() else {
                return Ok(());
            };
            if kind == RecordType::SAMPLE {
                self.begin_inner()?;
                self.add_samples(at)?;
            } else {
                self.add(at, kind)?;
            }
            let Some(lane) = self.lanes.get_mut(at) else {
                return Ok(());
            };
            lane.load()?;
            let time = lane.time;
            let other = self.next.first();
            let is_next = other.is_none_or(|other| (&time, at) < other);
            if !is_next || self.block.len() >= BLOCK {
                self.next.push(time, at);
                return Ok(());
            }
        }
    }

    /// Adds samples of an input to the block, up to one that is later than a record of another
    /// input.
    fn add_samples(&mut self, at: usize) -> Result<()> {
        let Some(lane) = self.lanes.get_mut(at) else {
            return Ok(());
        };
        let room = BLOCK.saturating_sub(self.block.len());
        let room = room.min(ROUND.saturating_sub(self.since_round));
        let is_timed = lane.plan.is_timed;
        let other = self.next.first().map(|(time, other)| (*time, other));
        let samples = lane.take_samples(room, |time| other.is_none_or(|other| (time, at) < other));
        let len = samples.len();
        let start = self.block.len();
        self.block.extend_from_slice(samples);
        if let Some(counters) = &mut self.counters
            && let Some(samples) = self.block.get_mut(start..)
        {
            let (events, endian) = (&self.recording.events, self.recording.endian);
            counters.continue_in(at, samples, events, endian, &self.sideband.limits())?;
        }
        self.end_round(len, is_timed)
    }

    /// Counts `len` bytes of records, and adds FINISHED_ROUND if it is due.
    fn end_round(&mut self, len: usize, is_timed: bool) -> Result<()> {
        if !is_timed {
            return Ok(());
        }
        self.since_round = self.since_round.saturating_add(len);
        if self.since_round >= ROUND {
            self.finish_round()?;
        }
        Ok(())
    }

    /// Adds FINISHED_ROUND if records with a time came after the last one.
    fn finish_round(&mut self) -> Result<()> {
        if std::mem::take(&mut self.since_round) == 0 {
            return Ok(());
        }
        let header = RecordHeader {
            kind: RecordType::FINISHED_ROUND,
            misc: 0,
            size: RecordHeader::SIZE as u16,
        };
        header.encode_into(&mut self.block, self.recording.endian)
    }

    /// Adds what comes before the records of an input.
    fn begin(&mut self, at: usize, plan: &LanePlan) -> Result<()> {
        let Some(time) = plan.opening else {
            if plan.is_timed {
                self.sideband.begin(at, &self.recording.events);
            }
            return match self.more.take() {
                Some(more) => {
                    let at = self.sideband.add(more)?;
                    self.open(at)
                }
                None => Ok(()),
            };
        };
        self.begin_inner()?;
        if plan.comes_after {
            self.end_all(time)?;
        }
        self.open(at)
    }

    /// Adds the EXIT records of all threads.
    fn end_all(&mut self, time: u64) -> Result<()> {
        let exits = self.sideband.end_all(time, &self.recording.events)?;
        exits
            .iter()
            .for_each(|record| self.block.extend_from_slice(record));
        Ok(())
    }

    /// Adds the records of an opening.
    fn open(&mut self, opening: usize) -> Result<()> {
        let (events, endian) = (&self.recording.events, self.recording.endian);
        for record in self.sideband.begin(opening, events) {
            self.sideband
                .see(&RawRecord::first(&record, endian, 0)?, events, false)?;
            self.block.extend_from_slice(&record);
        }
        Ok(())
    }

    /// Adds the records about what existed before an input of an input.
    fn begin_inner(&mut self) -> Result<()> {
        match self.inner.take() {
            Some((.., opening)) => {
                let at = self.sideband.add(opening)?;
                self.open(at)
            }
            None => Ok(()),
        }
    }

    /// Adds the current record of an input, which is not a sample but of type `kind`, to the block.
    fn add(&mut self, at: usize, kind: RecordType) -> Result<()> {
        if self.inner.is_some() && !self.is_of_inner(at) {
            self.begin_inner()?;
        }
        let Some(lane) = self.lanes.get_mut(at) else {
            return Ok(());
        };
        let start = self.block.len();
        if let Some(record) = lane.current(self.recording.endian) {
            self.block.extend_from_slice(record.bytes);
        }
        lane.skip();
        let is_timed = lane.plan.is_timed;
        if kind.is_kernel() && is_timed && !self.is_new(at, start)? {
            return Ok(());
        }
        self.end_round(self.block.len().saturating_sub(start), is_timed)
    }

    /// Returns whether the current record of an input is one more of `inner`.
    fn is_of_inner(&self, at: usize) -> bool {
        let Some((lane, (of, time, _))) = self.lanes.get(at).zip(self.inner.as_ref()) else {
            return false;
        };
        let raw = lane.current(self.recording.endian);
        (*of, *time, true) == (at, lane.time, lane.has_time)
            && raw.is_some_and(|raw| is_synthesized(&raw, &self.recording.events))
    }

    /// Looks at the record of an input at `start` in the block, one other than a sample. Returns
    /// whether it stays there.
    fn is_new(&mut self, at: usize, start: usize) -> Result<bool> {
        let Some(lane) = self.lanes.get_mut(at) else {
            return Ok(true);
        };
        let (has_time, time) = (lane.has_time, lane.time);
        let (events, endian) = (&self.recording.events, self.recording.endian);
        let new = self.block.get(start..).unwrap_or_default();
        let raw = RawRecord::first(new, endian, self.offset)?;
        if has_time {
            if let Some(&is_gap_of_all) = lane.plan.gaps.get(&time)
                && is_gap(&raw, events)?
            {
                self.block.truncate(start);
                if lane.gap.replace(time) != Some(time) && is_gap_of_all {
                    self.end_all(time)?;
                }
                return Ok(false);
            }
            if lane.plan.openings.contains(&time) && is_synthesized(&raw, events) {
                let record = self.block.split_off(start);
                let (.., inner) = self
                    .inner
                    .get_or_insert_with(|| (at, time, Opening::default()));
                inner.push(record, endian, events)?;
                return Ok(false);
            }
            if self.is_repeated(at, start, time) {
                self.block.truncate(start);
                return Ok(false);
            }
        }
        let new = self.block.get(start..).unwrap_or_default();
        let raw = RawRecord::first(new, endian, self.offset)?;
        self.sideband.see(&raw, &self.recording.events, has_time)?;
        Ok(true)
    }

    /// Returns whether another input has the same record at the same time: parts of one recording
    /// share records.
    fn is_repeated(&mut self, at: usize, start: usize, time: u64) -> bool {
        if time != self.now {
            self.same_time.clear();
            self.now = time;
        }
        let has_others = self.next.first().is_some_and(|(next, _)| *next == time);
        if !has_others && self.same_time.is_empty() {
            return false;
        }
        let new = self.block.get(start..).unwrap_or_default();
        let same = self
            .same_time
            .iter_mut()
            .find(|same| !same.inputs.contains(&at) && same.record == new);
        match same {
            Some(same) => same.inputs.push(at),
            None => {
                if self.same_time.len() < SAME_TIME {
                    self.same_time.push(SameTime {
                        inputs: vec![at],
                        record: new.to_vec(),
                    });
                }
                return false;
            }
        }
        true
    }

    /// Replaces the block by the next records; returns true if it is a part of a payload.
    fn refill(&mut self) -> Result<bool> {
        self.offset = self.offset.saturating_add(self.block.len() as u64);
        self.block.clear();
        self.taken = 0;
        loop {
            if let Some(at) = self.aux_of {
                match self.fill_aux(at)? {
                    AuxPart::Record => return Ok(false),
                    AuxPart::Payload => return Ok(true),
                    AuxPart::End => self.aux_of = None,
                }
            }
            self.fill()?;
            if !self.block.is_empty() || self.aux_of.is_none() {
                return Ok(false);
            }
        }
    }

    /// Reads the next AUXTRACE record or part of its payload into the block.
    fn fill_aux(&mut self, at: usize) -> Result<AuxPart> {
        let Some(lane) = self.lanes.get_mut(at) else {
            return Ok(AuxPart::End);
        };
        let Some(aux) = &mut lane.aux else {
            return Ok(AuxPart::End);
        };
        let name = &lane.name;
        let error = |error: Error| error.inside(name);
        while let Some((chunk, recording)) = aux.next_chunk().map_err(error)? {
            match chunk {
                Chunk::Records(batch) => {
                    let last = batch.iter().last();
                    let last = last.filter(|record| record.kind == RecordType::AUXTRACE);
                    self.has_payload = last.is_some();
                    if let Some(record) = last {
                        lane.plan
                            .changes
                            .apply(&record, &recording.events, None, &mut self.block)
                            .map_err(error)?;
                        return Ok(AuxPart::Record);
                    }
                }
                Chunk::Payload(bytes) if self.has_payload => {
                    self.block.extend_from_slice(bytes);
                    return Ok(AuxPart::Payload);
                }
                _ => {}
            }
        }
        lane.aux = None;
        Ok(AuxPart::End)
    }
}

/// What was read of AUX data.
enum AuxPart {
    Record,
    Payload,
    End,
}

impl RecordSource for MergedRecords {
    fn recording(&self) -> &Recording {
        &self.recording
    }

    fn container_layout(&self) -> &ContainerLayout {
        &self.container_layout
    }

    fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        if self.taken >= self.block.len() && self.refill()? {
            self.taken = self.block.len();
            return Ok(Some((Chunk::Payload(&self.block), &self.recording)));
        }
        let rest = self.block.get(self.taken..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let offset = self.offset.saturating_add(self.taken as u64);
        let batch = RecordBatch::first(rest, self.recording.endian, offset);
        self.taken = self.taken.saturating_add(batch.bytes().len().max(1));
        Ok(Some((Chunk::Records(batch), &self.recording)))
    }

    fn limits(&self) -> Limits {
        self.sideband.limits()
    }

    fn damage(&self) -> Option<&Error> {
        None
    }

    fn take_damage(&mut self) -> Option<Error> {
        None
    }

    fn tail(&self) -> Option<Tail> {
        None
    }
}
