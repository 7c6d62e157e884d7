//! What is known about the order of all records before the first one is forwarded.

use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Events, Recording};

use super::delivered::{Delivered, queued_time};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{InputSource, each_record};

/// The order of the records of an input that was read to its end.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Whether the records with a known time are in the order of time.
    pub(super) is_sorted: bool,
    /// Whether every byte of the input belongs to a complete record.
    pub(super) is_intact: bool,
    /// Type of the first compressed record.
    pub(super) compressed: Option<RecordType>,
    /// Whether no record is older than the records that perf has delivered before it.
    are_rounds_true: bool,
    /// Offset of the last record without a known time, except FINISHED_ROUND.
    last_untimed: Option<u64>,
    /// The oldest times from each offset on.
    blocks: BlockTimes,
}

impl Ahead {
    /// Reads an input to its end. `recording` is the model before the first record. If all
    /// attributes of a stream come later, it has their events nevertheless.
    ///
    /// # Errors
    /// The input cannot be read or decompressed, or only once.
    pub(super) fn read(source: &InputSource, recording: &Recording) -> Result<Self> {
        let Some(mut reader) = source.reopen()? else {
            let what = "a stream cannot be sorted, because it can be read only once: write it to a file first";
            return Err(Error::Refused(what.into()));
        };
        let mut pass = Pass {
            ahead: Ahead {
                is_sorted: true,
                are_rounds_true: true,
                ..Ahead::default()
            },
            delivered: Delivered::default(),
            last: 0,
        };
        let are_late = reader.recording().events.is_empty();
        let ending = each_record(&mut *reader, |raw, now| {
            pass.see(
                raw,
                if are_late {
                    &recording.events
                } else {
                    &now.events
                },
            );
            Ok(())
        })?;
        let mut ahead = pass.ahead;
        ahead.is_intact = ending.unreadable == 0 && ending.pending == 0;
        ahead.compressed = ending.compressed;
        ahead.blocks.close();
        Ok(ahead)
    }

    /// Returns the time, in nanoseconds, up to which all records are known when the record at
    /// `offset` arrives: later records are not older. `delivered` is the state at this record.
    ///
    /// A record without a known time is forwarded when it arrives. So that it stays where perf
    /// delivers it, no younger record than [`Delivered::until`] must precede it.
    pub(super) fn complete_at(&mut self, offset: u64, delivered: &Delivered) -> u64 {
        let mut floor = self.blocks.oldest_from(offset);
        if self.are_rounds_true {
            floor = floor.max(delivered.until());
        }
        match self.last_untimed {
            Some(last) if offset <= last => floor.min(delivered.until()),
            _ => floor,
        }
    }
}

/// Reading ahead.
struct Pass {
    ahead: Ahead,
    delivered: Delivered,
    /// Time of the last record with a known time.
    last: u64,
}

impl Pass {
    #[inline]
    fn see(&mut self, raw: &RawRecord<'_>, events: &Events) {
        if let Some(time) = queued_time(raw, events) {
            self.ahead.is_sorted &= time >= self.last;
            self.ahead.are_rounds_true &= time >= self.delivered.until();
            self.last = time;
            self.delivered.see(time);
            self.ahead.blocks.see(raw.offset, time);
        } else if raw.kind == RecordType::FINISHED_ROUND {
            self.delivered.end_round();
        } else {
            self.ahead.last_untimed = Some(raw.offset);
        }
    }
}

/// The oldest times of the blocks of an input. The number of blocks is bounded.
#[derive(Debug)]
struct BlockTimes {
    /// Offset of the first record, and oldest time in the block; after [`close`](Self::close), in
    /// the block and all later ones.
    list: Vec<(u64, u64)>,
    /// Minimum size of a block in bytes.
    span: u64,
    /// Index of the current block.
    at: usize,
}

impl BlockTimes {
    /// Maximum number of blocks; twice as large blocks follow.
    const MOST: usize = 1 << 15;

    fn see(&mut self, offset: u64, time: u64) {
        match self.list.last_mut() {
            Some((start, oldest)) if offset.saturating_sub(*start) < self.span => {
                *oldest = time.min(*oldest);
            }
            _ => {
                if self.list.len() >= Self::MOST {
                    self.join();
                }
                self.list.push((offset, time));
            }
        }
    }

    /// Joins every two blocks.
    fn join(&mut self) {
        let joined = self.list.chunks(2).filter_map(|pair| {
            let oldest = pair.iter().map(|block| block.1).min()?;
            Some((pair.first()?.0, oldest))
        });
        self.list = joined.collect();
        self.span = self.span.saturating_mul(2);
    }

    fn close(&mut self) {
        let mut oldest = u64::MAX;
        for block in self.list.iter_mut().rev() {
            oldest = oldest.min(block.1);
            block.1 = oldest;
        }
    }

    /// Returns the oldest time of the block with the record at `offset`, and of all later blocks.
    /// Offsets must ascend from call to call.
    fn oldest_from(&mut self, offset: u64) -> u64 {
        while let Some(next) = self.at.checked_add(1)
            && self
                .list
                .get(next)
                .is_some_and(|&(start, _)| start <= offset)
        {
            self.at = next;
        }
        self.list.get(self.at).map_or(u64::MAX, |block| block.1)
    }
}

impl Default for BlockTimes {
    fn default() -> Self {
        BlockTimes {
            list: Vec::new(),
            span: 64 << 10,
            at: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_know_the_oldest_time_from_an_offset_on() {
        let mut blocks = BlockTimes {
            span: 10,
            ..BlockTimes::default()
        };
        for (offset, time) in [(100, 5), (105, 3), (110, 9), (119, 8), (120, 7), (140, 20)] {
            blocks.see(offset, time);
        }
        blocks.close();
        let oldest: Vec<u64> = [100, 109, 110, 119, 125, 140, 500]
            .into_iter()
            .map(|offset| blocks.oldest_from(offset))
            .collect();
        assert_eq!(oldest, [3, 3, 7, 7, 7, 20, 20]);
    }

    #[test]
    fn the_number_of_blocks_is_bounded() {
        let mut blocks = BlockTimes {
            span: 1,
            ..BlockTimes::default()
        };
        for at in 0..5 * BlockTimes::MOST as u64 {
            blocks.see(at, at + 1);
        }
        blocks.close();
        assert!(blocks.list.len() <= BlockTimes::MOST);
        for at in 0..5 * BlockTimes::MOST as u64 {
            let oldest = blocks.oldest_from(at);
            assert!(oldest <= at + 1 && oldest + 2 * blocks.span > at);
        }
    }
}
