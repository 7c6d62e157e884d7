//! What the crates of this workspace share with this one.
//!
//! Not part of the interface: may change in any release.

pub mod attributes;
pub mod background;
pub mod batch;
pub mod counted;
pub mod cycles;
pub mod deferred_chains;
pub mod digits;
pub mod dispatch;
pub mod files;
pub mod json_text;
pub mod os;
pub mod shell;
pub mod stopwatch;
pub mod suggest;
pub mod text;
pub mod user_stack;
pub mod values;

pub use crate::stages::sample_times::SampleTimes;
