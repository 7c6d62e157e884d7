//! Blocks of a source, for access at varying offsets.

use std::io;

use super::LARGEST;

use crate::error::{Error, Result};
use crate::read::source::Source;

/// Number of bytes read at once.
pub(super) const BLOCK: u64 = 1 << 20;

/// A block with the next bytes of the stream, and one for access further ahead.
#[derive(Debug)]
pub(super) struct SalvageBlocks {
    pub(super) near: Block,
    pub(super) far: Block,
}

impl SalvageBlocks {
    pub(super) fn new() -> Self {
        SalvageBlocks {
            near: Block::new(BLOCK),
            far: Block::new(BLOCK),
        }
    }

    /// Returns the bytes from `at` on, at least those of a record. `here` is the next byte of the
    /// stream; later calls return to `floor`.
    pub(super) fn ahead(
        &mut self,
        source: &impl Source,
        at: u64,
        here: u64,
        floor: u64,
        end: u64,
    ) -> Result<&[u8]> {
        let is_within =
            |from: u64| at >= from && at.saturating_sub(from) <= BLOCK.saturating_sub(LARGEST);
        if is_within(here) {
            return self.near.get(source, at, LARGEST, here, end);
        }
        self.far.get(
            source,
            at,
            LARGEST,
            if is_within(floor) { floor } else { at },
            end,
        )
    }
}

/// A block of a source.
#[derive(Debug)]
pub(super) struct Block {
    size: u64,
    /// Number of bytes read so far.
    pub(super) read: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Block {
    pub(super) fn new(size: u64) -> Self {
        Block {
            size,
            read: 0,
            at: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns the bytes from `at` on: at least `len` bytes, if that many precede `end`. If they
    /// are not in the block, it is filled from `from` on.
    pub(super) fn get(
        &mut self,
        source: &impl Source,
        at: u64,
        len: u64,
        from: u64,
        end: u64,
    ) -> Result<&[u8]> {
        let wanted = at.saturating_add(len).min(end);
        if at < self.at || wanted > self.at.saturating_add(self.bytes.len() as u64) {
            let size = end.saturating_sub(from).min(self.size);
            self.bytes
                .resize(usize::try_from(size).unwrap_or_default(), 0);
            self.at = from;
            let mut filled = 0;
            while let Some(room) = self.bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
                match source.read_at(room, from.saturating_add(filled as u64)) {
                    Ok(0) => break,
                    Ok(got) => filled = filled.saturating_add(got),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(Error::io("record stream", e).at(from)),
                }
            }
            self.bytes.truncate(filled);
            self.read = self.read.saturating_add(filled as u64);
        }
        let start = usize::try_from(at.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let before_end = usize::try_from(end.saturating_sub(self.at))
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        Ok(self.bytes.get(start..before_end).unwrap_or_default())
    }
}
