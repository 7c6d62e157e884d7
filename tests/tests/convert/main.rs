//! The conversions, as functions of the library and as commands, with real and synthetic
//! recordings.

mod build_ids;
mod compat;
mod compat_values;
mod compressed;
mod damaged_records;
mod directories;
mod edits;
mod extract_aux;
mod file2pipe;
mod fuzz;
mod jit;
mod merge;
mod merge_deferred;
mod overlaps;
mod patched;
mod pipe2file;
mod recover;
mod shared_bytes;
mod slice;
mod sort;
mod sources;
mod split;
mod stages;
mod swap;
mod thin;
