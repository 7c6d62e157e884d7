//! Blocks of a source, for those who look at it here and there.

use std::io;

use crate::error::{Error, Result};
use crate::read::source::Source;

/// A block of a source.
#[derive(Debug)]
pub(super) struct Block {
    size: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Block {
    pub(super) fn new(size: u64) -> Self {
        Block { size, at: 0, bytes: Vec::new() }
    }

    /// The bytes from `at` on: `len` of them, if there are as many before `end`, or more. If they are not in the block,
    /// it is filled from `from` on.
    pub(super) fn get(&mut self, source: &impl Source, at: u64, len: u64, from: u64, end: u64) -> Result<&[u8]> {
        let wanted = at.saturating_add(len).min(end);
        if at < self.at || wanted > self.at.saturating_add(self.bytes.len() as u64) {
            let size = end.saturating_sub(from).min(self.size);
            self.bytes.resize(usize::try_from(size).unwrap_or_default(), 0);
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
        }
        let start = usize::try_from(at.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let before_end = usize::try_from(end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(self.bytes.len());
        Ok(self.bytes.get(start..before_end).unwrap_or_default())
    }
}
