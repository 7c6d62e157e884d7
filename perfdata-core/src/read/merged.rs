//! Merging several streams of records into one.

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::error::{Error, Result};
use crate::recording::Recording;
use crate::spool::Heads;

/// A stream of records that is merged with others.
pub trait Lane {
    /// Reads the next record; returns false at the end. `recording` is the model of the merged
    /// stream.
    ///
    /// # Errors
    /// The input cannot be read, or is corrupt here: nothing more is read from it.
    fn advance(&mut self, recording: &Recording) -> Result<bool>;

    /// Returns the record that was read last.
    fn record(&self) -> &[u8];

    /// Returns the time by which this record is merged. A record without a time has that of the
    /// preceding record of its stream.
    fn time(&self) -> u64;
}

/// The records of several streams as one, by time; records of one stream keep their order.
///
/// For a corrupt stream, the records before the corrupt part are returned; after the records of all
/// streams, reading fails once for each such stream. Memory is bounded: a block of each stream, and
/// the memory of zstd.
#[derive(Debug)]
pub struct Merged<L> {
    lanes: Vec<L>,
    recording: Recording,
    /// The time of the next record of each stream that has one.
    next: Heads<u64>,
    block: Vec<u8>,
    /// Number of bytes of the block that are already returned.
    taken: usize,
    /// Errors that ended streams early and are not yet reported.
    damage: VecDeque<Error>,
}

/// Number of bytes of records merged at once.
const BLOCK: usize = 64 << 10;

impl<L: Lane> Merged<L> {
    pub(super) fn new(recording: Recording, lanes: Vec<L>) -> Result<Self> {
        let mut merged = Merged {
            next: Heads::default(),
            lanes,
            recording,
            block: Vec::new(),
            taken: 0,
            damage: VecDeque::new(),
        };
        (0..merged.lanes.len()).try_for_each(|at| merged.advance(at))?;
        Ok(merged)
    }

    /// Reads the next record of the stream with index `at`.
    fn advance(&mut self, at: usize) -> Result<()> {
        let Some(lane) = self.lanes.get_mut(at) else {
            return Ok(());
        };
        match lane.advance(&self.recording) {
            Ok(true) => {
                let time = lane.time();
                self.next.push(time, at);
            }
            Ok(false) => {}
            Err(error) if error.is_io() => return Err(error),
            Err(damage) => self.damage.push_back(damage),
        }
        Ok(())
    }

    /// Fills the block; leaves it empty at the end.
    fn fill(&mut self) -> Result<()> {
        self.block.clear();
        self.taken = 0;
        while self.block.len() < BLOCK {
            let Some((_, at)) = self.next.pop() else {
                break;
            };
            self.block
                .extend_from_slice(self.lanes.get(at).map(Lane::record).unwrap_or_default());
            self.advance(at)?;
        }
        Ok(())
    }
}

impl<L: Lane> Read for Merged<L> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.block.len() {
            self.fill().map_err(io::Error::other)?;
            if self.block.is_empty()
                && let Some(damage) = self.damage.pop_front()
            {
                return Err(io::Error::other(damage));
            }
        }
        let got = self.block.get(self.taken..).unwrap_or_default().read(buf)?;
        self.taken = self.taken.saturating_add(got);
        Ok(got)
    }
}
