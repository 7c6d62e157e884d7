//! How the recording's data is compressed.

use crate::codes::codes;
use crate::wire::wire;

codes! {
    /// Method of compression, `enum perf_compress_type` of tools/perf/util/env.h.
    pub struct CompressionType: u32 {
        0 NONE "none",
        1 ZSTD "zstd",
    }
}

wire! {
    /// Parameters of the COMPRESSED and COMPRESSED2 records. perf stat writes the section, too, all zeros.
    pub struct Compression {
        /// Form of the section: 0.
        pub version: u32,
        /// Method.
        pub kind: CompressionType,
        /// Level that `record -z` was given, or 1.
        pub level: u32,
        /// Size before divided by size after compression, rounded to a whole number.
        pub ratio: u32,
        /// Bytes of a ring buffer: a compressed record never holds more.
        pub mmap_len: u32,
    }
}
