//! The records of one input as they are in the result, in blocks.

use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Endian, Events, Result};

use super::ahead::Ahead;
use super::lane::LanePlan;
use super::sorted::Sorted;

/// Size in bytes of the records that are read at once.
const SIZE: usize = 128 << 10;

/// Some records of an input in the order of time, as they are in the result.
#[derive(Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    records: Vec<RecordPlace>,
    /// Index of the current record, and the offset of its first byte.
    at: usize,
    start: usize,
}

/// A record in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordPlace {
    pub(super) kind: RecordType,
    /// Whether the record has a time.
    pub(super) has_time: bool,
    /// Its time in the result, or that of the last record with a time.
    pub(super) time: u64,
    /// Its size in bytes.
    size: usize,
    /// Its offset in the input.
    offset: u64,
}

impl Block {
    /// Returns whether the block contains no record.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        (self.at, self.start) = (0, 0);
    }

    /// Returns the current record's place; `None` after the last record.
    #[inline]
    pub(super) fn place(&self) -> Option<&RecordPlace> {
        self.records.get(self.at)
    }

    /// Returns the current record.
    pub(super) fn current(&self, endian: Endian) -> Option<RawRecord<'_>> {
        let place = self.place()?;
        let bytes = self.bytes.get(self.start..)?.get(..place.size)?;
        RawRecord::first(bytes, endian, place.offset).ok()
    }

    /// Moves over the current record.
    pub(super) fn skip(&mut self) {
        let size = self.place().map_or(0, |place| place.size);
        self.start = self.start.saturating_add(size);
        self.at = self.at.saturating_add(1);
    }

    /// Moves over the current record, and over the samples after it for which `is_next` is true of
    /// their time, up to the one with which they have `size` bytes. Returns their bytes.
    #[inline]
    pub(super) fn take_samples(&mut self, size: usize, is_next: impl Fn(u64) -> bool) -> &[u8] {
        let start = self.start;
        let enough = start.saturating_add(size);
        self.skip();
        let rest = self.records.get(self.at..).unwrap_or_default();
        let mut end = self.start;
        let mut count = 0_usize;
        for place in rest {
            if end >= enough || place.kind != RecordType::SAMPLE || !is_next(place.time) {
                break;
            }
            end = end.saturating_add(place.size);
            count = count.saturating_add(1);
        }
        self.start = end;
        self.at = self.at.saturating_add(count);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// The blocks of an input.
pub(super) enum Blocks {
    /// Read when they are needed.
    Here(Box<Changed>),
    /// Read by a thread.
    Ahead(Ahead),
}

impl Blocks {
    /// Returns the blocks of `input`. `is_ahead` says whether a thread reads them, if the system
    /// starts one.
    pub(super) fn new(input: Changed, is_ahead: bool) -> Blocks {
        if !is_ahead {
            return Blocks::Here(Box::new(input));
        }
        match Ahead::start(input) {
            Ok(ahead) => Blocks::Ahead(ahead),
            Err(input) => Blocks::Here(input),
        }
    }

    /// Replaces `block` by the next one, which is empty at the end.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt, or a record cannot be changed.
    pub(super) fn next(&mut self, block: &mut Block) -> Result<()> {
        match self {
            Blocks::Here(input) => input.next(block),
            Blocks::Ahead(ahead) => ahead.next(block),
        }
    }
}

/// The records of an input in the order of time, with the changes that make them fit.
pub(super) struct Changed {
    name: String,
    records: Sorted,
    events: Events,
    plan: LanePlan,
    /// Whether records remain the same.
    is_neutral: bool,
    /// The time of the last record with a time, in the result.
    time: u64,
    has_time: bool,
    error: Option<perfdata_core::Error>,
}

impl Changed {
    /// Returns the records of `records`, whose events are `events`, with the changes of `plan`.
    /// `name` is that of the input.
    pub(super) fn new(name: String, records: Sorted, events: Events, plan: LanePlan) -> Self {
        Changed {
            name,
            records,
            events,
            is_neutral: plan.changes.is_neutral(),
            time: plan.start(),
            plan,
            has_time: false,
            error: None,
        }
    }

    /// Replaces the records of `block` by the next ones; leaves it empty at the end.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt, or a record cannot be changed.
    pub(super) fn next(&mut self, block: &mut Block) -> Result<()> {
        block.clear();
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if let Err(error) = self.fill(block) {
            let error = error.inside(&self.name);
            if block.is_empty() {
                return Err(error);
            }
            // The records before it come first.
            self.error = Some(error);
        }
        Ok(())
    }

    fn fill(&mut self, block: &mut Block) -> Result<()> {
        while block.bytes.len() < SIZE && self.records.advance()? {
            let Some(record) = self.records.current() else {
                continue;
            };
            if record.kind.is_kernel() {
                let time = self.records.time();
                self.has_time = time.is_some();
                if let Some(time) = time {
                    self.time = self.plan.changes.time_of(time).max(self.time);
                }
            }
            if record.kind != RecordType::SAMPLE && !self.plan.keeps(record.kind, self.has_time) {
                continue;
            }
            let start = block.bytes.len();
            if self.is_neutral {
                block.bytes.extend_from_slice(record.bytes);
            } else {
                let changes = &self.plan.changes;
                if let Err(error) = changes.apply(&record, &self.events, None, &mut block.bytes) {
                    block.bytes.truncate(start);
                    return Err(error);
                }
            }
            block.records.push(RecordPlace {
                kind: record.kind,
                has_time: self.has_time,
                time: self.time,
                size: block.bytes.len().saturating_sub(start),
                offset: record.offset,
            });
        }
        Ok(())
    }
}
