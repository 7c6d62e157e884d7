//! Limits on what a recording may request from a reader.
//!
//! Most bounds need no number: a length or a count is compared with the remaining bytes before
//! memory is allocated (`wire/element.rs`), structures are not recursive, a record has at most
//! 65,535 bytes, and records are processed in blocks. Memory use is therefore a small multiple of
//! the largest record or section that is really present. The exceptions are the sizes in compressed
//! data, which may be arbitrary, and metadata, of which a recording may contain any amount.

use std::thread::available_parallelism;

use crate::error::{Error, Problem, Result};
use crate::setters::setters;

/// Bounds on what a recording may request.
///
/// ```
/// use perfdata_core::read::Limits;
///
/// let small = Limits::default().with_max_metadata(1 << 20);
/// # assert_eq!(small.max_metadata, 1 << 20);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum decompressed size of one compressed record in bytes. `None` means the `mmap_len` of
    /// the recording's COMPRESSED feature, the size of perf's ring buffers; without that feature,
    /// 64 MiB, far more than these buffers have. The data is processed in blocks, so this bounds
    /// the time for a record, not the memory.
    pub max_decompressed: Option<u64>,
    /// Maximum window of a zstd stream, as a power of two: determines the memory of the decoder.
    /// perf can request zstd levels with a window of 2^27 bytes, and does not decode larger ones.
    /// The files of a directory, which are read at the same time, share this window, with at least
    /// 8 MiB per file, the window of zstd's level 19.
    pub max_window_log: u32,
    /// Maximum size in bytes of attributes, IDs, names and feature sections together, which are
    /// held in memory. Code that tracks mappings applies the same limit to them
    /// ([`check_metadata`](Limits::check_metadata)).
    pub max_metadata: u64,
    /// Maximum number of threads that process records at the same time; `None` means the number of
    /// CPUs. With 1, the calling thread does everything. Results do not depend on it.
    pub max_threads: Option<usize>,
}

setters! {
    Limits {
        max_decompressed: Option<u64> => with_max_decompressed,
        max_window_log: u32 => with_max_window_log,
        max_metadata: u64 => with_max_metadata,
        max_threads: Option<usize> => with_max_threads,
    }
}

impl Limits {
    /// Default maximum of the decompressed size of one compressed record, in bytes.
    pub(crate) const DECOMPRESSED: u64 = 64 << 20;

    /// Minimum window of each of several streams, regardless of their number.
    const LEAST_WINDOW_LOG: u32 = 23;

    /// Returns the limits for each of `count` compressed streams that are read at the same time: a
    /// share of the window.
    #[must_use]
    pub fn of_each(self, count: usize) -> Self {
        let share = self
            .max_window_log
            .saturating_sub(count.next_power_of_two().ilog2());
        Limits {
            max_window_log: share.max(self.max_window_log.min(Self::LEAST_WINDOW_LOG)),
            ..self
        }
    }

    /// Returns the number of threads that may process records at the same time: at least 1.
    pub fn threads(&self) -> usize {
        let cpus = || available_parallelism().map_or(1, usize::from);
        self.max_threads.unwrap_or_else(cpus).max(1)
    }

    /// Adds `size` bytes to the metadata that are held in memory.
    ///
    /// # Errors
    /// Fails if the total exceeds the limit; the bytes are then not added.
    pub(super) fn take(&self, held: &mut u64, size: u64) -> Result<()> {
        let more = held.saturating_add(size);
        self.check_metadata("metadata", more)?;
        *held = more;
        Ok(())
    }

    /// Checks that `held` bytes of `what` may be held in memory.
    ///
    /// # Errors
    /// Fails if they exceed the limit for metadata.
    pub fn check_metadata(&self, what: &'static str, held: u64) -> Result<()> {
        if held <= self.max_metadata {
            return Ok(());
        }
        let problem = Problem::Limit {
            found: Some(held),
            name: "max-metadata",
            limit: self.max_metadata,
        };
        Err(Error::new(what, problem))
    }
}

impl Default for Limits {
    /// A window of 128 MiB, 256 MiB of metadata (recordings of large machines have a few MiB), and
    /// a thread for each CPU.
    fn default() -> Self {
        Limits {
            max_decompressed: None,
            max_window_log: 27,
            max_metadata: 256 << 20,
            max_threads: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_what_windows_may_take() {
        let share = |max_window_log, count| {
            Limits {
                max_window_log,
                ..Limits::default()
            }
            .of_each(count)
            .max_window_log
        };
        assert_eq!(
            [0, 1, 2, 3, 16, 17, 1000].map(|count| share(27, count)),
            [27, 27, 26, 25, 23, 23, 23]
        );
        assert_eq!([share(20, 4), share(31, 16)], [20, 27]);
    }
}
