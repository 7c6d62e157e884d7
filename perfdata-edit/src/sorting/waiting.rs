//! Records in memory that wait for older ones.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "counts of what is in memory, and places in it"
)]

use std::collections::VecDeque;

use perfdata_core::Endian;
use perfdata_core::record::RawRecord;

use super::runs::Runs;
use perfdata_convert::error::Result;

/// Records in memory, released in the order of time. Records with equal times keep their order.
#[derive(Debug)]
pub(crate) struct Waiting {
    endian: Endian,
    /// The records, each after its offset in the input. The first part has the number `first`.
    parts: VecDeque<RecordBlock>,
    first: u32,
    /// The waiting records; those before `next` are released, and those before `sorted` are in
    /// order.
    order: Vec<WaitingRecord>,
    next: usize,
    sorted: usize,
    /// The oldest time of those that are not yet sorted.
    oldest: u64,
    /// Size of a part in bytes.
    size: usize,
    /// Number of bytes that the parts have reserved, and that were added since the last release.
    held: usize,
    fresh: usize,
    /// A part without records, to be used again.
    spare: Vec<u8>,
}

/// Several records.
#[derive(Debug, Default)]
struct RecordBlock {
    bytes: Vec<u8>,
    /// Number of records that are not released.
    live: usize,
}

/// A record: its time, number of its part, and its position there.
#[derive(Debug, Clone, Copy)]
struct WaitingRecord {
    time: u64,
    part: u32,
    at: u32,
}

/// Size of the offset before a record.
const OFFSET: usize = size_of::<u64>();

impl Waiting {
    /// Returns a buffer with parts of `size` bytes, at least one record each.
    pub(crate) fn new(size: usize) -> Self {
        Waiting {
            endian: Endian::NATIVE,
            parts: VecDeque::new(),
            first: 0,
            order: Vec::new(),
            next: 0,
            sorted: 0,
            oldest: u64::MAX,
            size,
            held: 0,
            fresh: 0,
            spare: Vec::new(),
        }
    }

    /// Adds a record with this time.
    pub(crate) fn push(&mut self, time: u64, record: &RawRecord<'_>) {
        let need = OFFSET + record.bytes.len();
        let has_room = self
            .parts
            .back()
            .is_some_and(|part| part.bytes.len() + need <= self.size);
        if !has_room {
            let mut bytes = std::mem::take(&mut self.spare);
            bytes.reserve_exact(self.size.max(need));
            self.held += bytes.capacity();
            self.parts.push_back(RecordBlock { bytes, live: 0 });
        }
        self.endian = record.endian;
        let number = self.first.wrapping_add((self.parts.len() - 1) as u32);
        let Some(part) = self.parts.back_mut() else {
            return;
        };
        let at = part.bytes.len() as u32;
        part.bytes.extend_from_slice(&record.offset.to_le_bytes());
        part.bytes.extend_from_slice(record.bytes);
        part.live += 1;
        self.order.push(WaitingRecord {
            time,
            part: number,
            at,
        });
        self.oldest = self.oldest.min(time);
        self.fresh += need;
    }

    /// Returns the memory use in bytes, including that of sorting.
    pub(crate) fn weight(&self) -> usize {
        self.held + self.order.capacity() * size_of::<WaitingRecord>() * 3 / 2
    }

    /// Returns whether a release is due: the records that were added since the last one are not
    /// few.
    pub(crate) fn is_due(&self) -> bool {
        self.fresh >= (4 * self.size).max(self.held / 2)
    }

    /// Returns the oldest time.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let sorted = self
            .order
            .get(self.next..self.sorted)
            .and_then(<[WaitingRecord]>::first)
            .map(|entry| entry.time);
        let fresh = (self.sorted < self.order.len()).then_some(self.oldest);
        sorted.into_iter().chain(fresh).min()
    }

    /// Sorts the records. Required before [`first`](Self::first) if records were added.
    pub(crate) fn sort(&mut self) {
        self.fresh = 0;
        if self.sorted == self.order.len() {
            return;
        }
        self.order.drain(..self.next);
        self.next = 0;
        self.order.sort_by_key(|entry| entry.time);
        self.sorted = self.order.len();
        self.oldest = u64::MAX;
    }

    /// Moves all records to a new run.
    pub(crate) fn move_to(&mut self, runs: &mut Runs) -> Result<()> {
        self.sort();
        runs.add(self)?;
        self.clear();
        Ok(())
    }

    /// Removes all records, and returns the memory.
    fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.parts.len() as u32);
        self.parts.clear();
        self.order = Vec::new();
        (self.next, self.sorted, self.held, self.fresh) = (0, 0, 0, 0);
        self.oldest = u64::MAX;
    }

    /// Returns the oldest record and its time.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, RawRecord<'_>)> {
        let &WaitingRecord { time, part, at } = self.order.get(self.next)?;
        let part = self.parts.get(part.wrapping_sub(self.first) as usize)?;
        let (offset, record) = part.bytes.get(at as usize..)?.split_first_chunk()?;
        let offset = u64::from_le_bytes(*offset);
        Some((time, RawRecord::first(record, self.endian, offset).ok()?))
    }

    /// Removes the oldest record.
    #[inline]
    pub(crate) fn remove_first(&mut self) {
        let Some(entry) = self.order.get(self.next) else {
            return;
        };
        self.next += 1;
        let at = entry.part.wrapping_sub(self.first) as usize;
        let is_last = at + 1 == self.parts.len();
        if let Some(part) = self.parts.get_mut(at) {
            part.live -= 1;
            if part.live == 0 && !is_last {
                self.held -= part.bytes.capacity();
                self.spare = std::mem::take(&mut part.bytes);
                self.spare.clear();
            }
        }
        while self.parts.len() > 1 && self.parts.front().is_some_and(|part| part.live == 0) {
            self.parts.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}
