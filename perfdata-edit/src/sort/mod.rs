//! Puts the records in the order of time.

mod ahead;
mod delivered;
mod rounds;

use perfdata_core::Recording;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::read::Chunk;
use perfdata_core::record::{RawRecord, RecordType};

use crate::sorting::{Runs, Waiting};
use ahead::Ahead;
use delivered::{Delivered, queued_time};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::InputSource;
use perfdata_convert::pipeline::{
    CompressedRecords, Link, ReadsAhead, Requirements, Stage, each_part,
};
use rounds::Rounds;

/// Forwards the records in the order of time; those with equal times keep their order.
///
/// perf never queues records without a known time (its own records, and its records about the time
/// before the recording): it delivers them when it reads them. They keep their order, and come
/// after the records that perf has delivered before them, and before those that it has queued. New
/// FINISHED_ROUND records replace those of the input. Thus perf delivers all records in the same
/// order as before, except those that were older than a FINISHED_ROUND permits, which are in order
/// now.
///
/// The stage reads the input ahead, so a later record is never older than those forwarded before
/// it. If the input is in order, it remains unchanged.
///
/// The memory is bounded. Records that do not fit are moved to temporary files, in sorted runs that
/// are merged.
///
/// Previous stages may drop records, but not change times.
#[derive(Debug)]
pub struct Sort {
    memory: usize,
    /// Whether a note says that there was nothing to sort.
    has_note: bool,
    ahead: Option<Ahead>,
    /// `None` if the records are in order.
    sorting: Option<Sorting>,
}

impl Sort {
    /// Default maximum size in bytes of the records in memory.
    pub const MEMORY: usize = 24 << 20;

    /// Returns a stage with the default [`MEMORY`](Self::MEMORY).
    pub fn new() -> Self {
        Sort::with_memory(Self::MEMORY)
    }

    /// Returns a stage that keeps up to `memory` bytes of records in memory, and a few buffers.
    pub fn with_memory(memory: usize) -> Self {
        Sort {
            memory,
            has_note: true,
            ahead: None,
            sorting: None,
        }
    }

    /// Returns the stage for what needs the order of time, without a note about an input in order.
    #[must_use]
    pub fn without_note(self) -> Self {
        let has_note = false;
        Sort { has_note, ..self }
    }

    /// Returns whether the records of the input are in order.
    fn is_sorted(&self) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.is_sorted)
    }

    /// Returns whether the input is in order, and every byte of it belongs to a record.
    fn is_sorted_and_intact(&self) -> bool {
        self.is_sorted() && self.ahead.as_ref().is_some_and(|ahead| ahead.is_intact)
    }
}

impl Default for Sort {
    fn default() -> Self {
        Sort::new()
    }
}

impl Stage for Sort {
    fn requirements(&self) -> Requirements {
        let compressed = self.ahead.as_ref().and_then(|ahead| ahead.compressed);
        Requirements {
            events_first: true,
            all_records: true,
            may_refuse: true,
            is_neutral: self.is_sorted_and_intact(),
            reads_ahead: ReadsAhead::Always,
            compresses_again: compressed.filter(|_| !self.is_sorted()),
            ..Requirements::none()
        }
    }

    fn compressed(&self, kind: RecordType) -> CompressedRecords {
        if self.is_sorted_and_intact() {
            CompressedRecords::AsTheyAre
        } else if self.is_sorted() {
            CompressedRecords::Opened(kind)
        } else {
            CompressedRecords::Plain
        }
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        self.ahead = Some(Ahead::read(source, recording)?);
        Ok(())
    }

    fn begin(&mut self, _: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        if !self.is_sorted() {
            self.sorting = Some(Sorting::new(self.memory));
        }
        Ok(())
    }

    fn wants(&self, _: RecordType) -> bool {
        self.sorting.is_some()
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        match (&mut self.sorting, &mut self.ahead) {
            (Some(sorting), Some(ahead)) => sorting.record(record, ahead, next),
            _ => next.record(record),
        }
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => return each_part(self, batch, next),
            Chunk::Payload(_) => {}
            Chunk::Unreadable(_) => {
                if let Some(sorting) = &mut self.sorting {
                    sorting.release(u64::MAX, next)?;
                }
            }
        }
        next.chunk(chunk)
    }

    fn finish(&mut self, _: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        match &mut self.sorting {
            Some(sorting) => {
                sorting.release(u64::MAX, next)?;
                sorting.rounds.finish(next)
            }
            None => Ok(()),
        }
    }

    fn notes(&self) -> Vec<String> {
        let note = "the records are in the order of time already";
        (self.has_note && self.is_sorted())
            .then(|| note.to_owned())
            .into_iter()
            .collect()
    }
}

/// Records that are not in order.
#[derive(Debug)]
struct Sorting {
    memory: usize,
    delivered: Delivered,
    waiting: Waiting,
    runs: Runs,
    rounds: Rounds,
    /// The time up to which records were forwarded.
    released: u64,
}

impl Sorting {
    fn new(memory: usize) -> Self {
        let part = (memory / 8).clamp(1 << 10, 256 << 10);
        Sorting {
            memory,
            delivered: Delivered::default(),
            waiting: Waiting::new(part),
            runs: Runs::default(),
            rounds: Rounds::default(),
            released: 0,
        }
    }

    fn record(
        &mut self,
        record: &RawRecord<'_>,
        ahead: &mut Ahead,
        next: &mut Link<'_>,
    ) -> Result<()> {
        if record.kind == RecordType::FINISHED_ROUND {
            self.delivered.end_round();
            return Ok(());
        }
        let complete = ahead.complete_at(record.offset, &self.delivered);
        let Some(time) = queued_time(record, &next.recording().events) else {
            self.release(complete, next)?;
            self.rounds.before_unqueued(next)?;
            return next.record(record);
        };
        if time < self.released {
            let what = format!(
                "the {} record at offset {:#x} is older than a previous one that was sorted: its time was changed",
                record.kind, record.offset
            );
            return Err(Error::Refused(what));
        }
        self.delivered.see(time);
        self.waiting.push(time, record);
        if self.waiting.weight() > self.memory {
            self.release(complete, next)?;
            if self.waiting.weight() > self.memory / 2 {
                self.waiting.move_to(&mut self.runs)?;
            }
        } else if self.waiting.is_due() {
            self.release(complete, next)?;
        }
        Ok(())
    }

    /// Forwards the records up to and including the time `until`.
    fn release(&mut self, until: u64, next: &mut Link<'_>) -> Result<()> {
        let oldest = self.waiting.oldest().into_iter().chain(self.runs.oldest());
        if oldest.min().is_none_or(|oldest| oldest > until) {
            return Ok(());
        }
        self.released = self.released.max(until);
        self.waiting.sort();
        let rounds = &mut self.rounds;
        self.runs.release(until, &mut self.waiting, |record| {
            rounds.before_queued(record.bytes.len(), next)?;
            next.record(record)
        })
    }
}
