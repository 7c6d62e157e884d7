//! Compression of the recording's data.

use crate::codes::codes;
use crate::wire::wire;

codes! {
    /// Compression algorithm, `enum perf_compress_type` of tools/perf/util/env.h.
    pub struct CompressionType: u32 {
        0 NONE "none",
        1 ZSTD "zstd",
    }
}

wire! {
    /// Parameters of the COMPRESSED and COMPRESSED2 records. perf stat also writes this section,
    /// filled with zeros.
    pub struct Compression {
        /// Version of the section: 0.
        pub version: u32 => Number,
        /// Compression algorithm.
        pub kind: CompressionType,
        /// Compression level given to `record -z`, or 1.
        pub level: u32 => Number,
        /// Size before compression divided by size after it, rounded to an integer.
        pub ratio: u32 => Number,
        /// Size of a ring buffer in bytes, the maximum uncompressed size of a compressed record.
        pub mmap_len: u32 => Number,
    }
}
