//! The conversions as [stages](crate::pipeline::Stage), one per file.

mod attributes;
pub mod build_ids;
pub mod callchains;
pub mod compat;
pub mod compress;
mod cycles;
pub mod decompress;
mod device;
pub mod edit;
pub mod expand_off_cpu;
pub(crate) mod from_directory;
mod from_json;
pub mod itrace;
pub mod jit;
pub mod merge_deferred;
mod notes;
pub mod perf_maps;
pub(crate) mod sample_times;
pub mod sched_stat;
pub mod slice;
pub mod sort;
pub mod swap;
pub mod tally;
pub mod thin;
pub(crate) mod to_file;
pub(crate) mod to_pipe;
pub mod without_aux;
