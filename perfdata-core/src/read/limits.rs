//! How far a reader goes with what a recording asks for.
//!
//! Most bounds need no number: a length or a count is compared with the bytes that remain before anything is allocated
//! (`wire/list.rs`), structures do not nest in themselves, a record has 65,535 bytes at most, and records pass in
//! blocks. So memory is a small multiple of the largest record or section that is really there. What is left are the
//! numbers of compressed data, which may stand for any amount, and metadata, of which a recording may have any amount.

use crate::error::{Error, Problem, Result};

/// Bounds of what a recording may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that one compressed record may decode to. Without it, what the recording's COMPRESSED feature says, its
    /// `mmap_len`, the size of perf's ring buffers; where it says nothing, 64 MiB, more than those have by far. The
    /// bytes pass in blocks, so this bounds the time that a record takes, not the memory.
    pub max_decompressed: Option<u64>,
    /// Window of a zstd stream, as a power of two: the decoder's memory. perf can ask zstd for levels whose window is
    /// 2^27 bytes, and decodes no larger ones. The files of a directory, which are read together, have as much
    /// together, and 8 MiB each at least, what zstd's level 19 takes.
    pub max_window_log: u32,
    /// Bytes of attributes, ids, names and feature sections, which are held in memory together. Who follows what is
    /// mapped holds as many of that at most ([`check_metadata`](Limits::check_metadata)).
    pub max_metadata: u64,
}

impl Limits {
    /// Bytes that one compressed record may decode to, where nothing is said.
    pub(crate) const DECOMPRESSED: u64 = 64 << 20;

    /// Window that each of several streams may have, however many there are.
    const LEAST_WINDOW_LOG: u32 = 23;

    /// What is granted to each of `count` compressed streams that are read at once: a part of the window.
    #[must_use]
    pub fn of_each(self, count: usize) -> Self {
        let share = self.max_window_log.saturating_sub(count.next_power_of_two().ilog2());
        Limits { max_window_log: share.max(self.max_window_log.min(Self::LEAST_WINDOW_LOG)), ..self }
    }

    /// Counts `size` more bytes of metadata to those that are held.
    ///
    /// # Errors
    /// They are too many together, and not counted.
    pub(super) fn take(&self, held: &mut u64, size: u64) -> Result<()> {
        let more = held.saturating_add(size);
        self.check_metadata("metadata", more)?;
        *held = more;
        Ok(())
    }

    /// Grants that `held` bytes of `what` are held in memory.
    ///
    /// # Errors
    /// They are more than metadata may be.
    pub fn check_metadata(&self, what: &'static str, held: u64) -> Result<()> {
        if held <= self.max_metadata {
            return Ok(());
        }
        let problem = Problem::Limit { found: Some(held), name: "max-metadata", limit: self.max_metadata };
        Err(Error::new(what, problem))
    }
}

impl Default for Limits {
    /// A window of 128 MiB, and 256 MiB of metadata: recordings of large machines have a few.
    fn default() -> Self {
        Limits { max_decompressed: None, max_window_log: 27, max_metadata: 256 << 20 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_what_windows_may_take() {
        let share =
            |max_window_log, count| Limits { max_window_log, ..Limits::default() }.of_each(count).max_window_log;
        assert_eq!([0, 1, 2, 3, 16, 17, 1000].map(|count| share(27, count)), [27, 27, 26, 25, 23, 23, 23]);
        assert_eq!([share(20, 4), share(31, 16)], [20, 27]);
    }
}
