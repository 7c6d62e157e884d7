//! How far a reader goes with what a recording asks for.
//!
//! Most bounds need no number: a length or a count is compared with the bytes that remain before anything is allocated
//! (`wire/list.rs`), structures do not nest in themselves, a record has 65,535 bytes at most, and records pass in
//! blocks. So memory is a small multiple of the largest record or section that is really there. What is left are the
//! numbers of compressed data, which may stand for any amount.

/// Bounds of what compressed records may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that one compressed record may decode to. A recording with a COMPRESSED feature gives the number itself,
    /// its `mmap_len`, the size of perf's ring buffers; this stands where it gives none. The bytes pass in blocks, so
    /// this bounds the time that a record takes, not the memory.
    pub decompressed: u64,
    /// Window of a zstd stream, as a power of two: the decoder's memory. perf can ask zstd for levels whose window is
    /// 2^27 bytes, and decodes no larger ones.
    pub window_log: u32,
}

impl Default for Limits {
    /// 64 MiB, more than perf's ring buffers have by far, and a window of 128 MiB.
    fn default() -> Self {
        Limits { decompressed: 64 << 20, window_log: 27 }
    }
}
