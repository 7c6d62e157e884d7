//! What `perf inject` adds to a recording, and what other data of the machine can add: each a
//! [`Stage`](perfdata_convert::pipeline::Stage) of a conversion.
//!
//! - [`build_ids`]: the build IDs of the files that were mapped;
//! - [`jit`] and [`perf_maps`]: code that was generated at run time;
//! - [`huge_pages`]: the files of code that was copied to huge pages;
//! - [`callchains`]: callchains from user stacks;
//! - [`merge_deferred`]: the user parts of callchains that the kernel recorded later;
//! - [`itrace`]: samples of hardware traces;
//! - [`off_cpu`], [`sched_stat`] and [`expand_off_cpu`]: samples of threads that were off the CPU.

#![forbid(unsafe_code)]
#![allow(
    clippy::arithmetic_side_effects,
    reason = "sums of sizes and counts that are smaller than the recording"
)]

pub mod build_ids;
pub mod callchains;
mod device;
pub mod expand_off_cpu;
pub mod huge_pages;
pub mod itrace;
pub mod jit;
mod memory;
pub mod merge_deferred;
mod new_events;
mod notes;
pub mod off_cpu;
pub mod perf_maps;
pub mod sched_stat;
