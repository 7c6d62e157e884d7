//! What the tests of several crates share: the real recordings, perf as a judge, and comparing texts.
//!
//! The suites are in `tests/tests/`. A suite that has something to say about a recording says it as a
//! `fn(&Recording) -> Result<(), String>` and runs it with [`per_fixture!`] on the project's recordings and
//! with [`recordings::check_all`] on those that lie outside of it.

pub mod allowed;
pub mod convert;
pub mod fuzz;
pub mod generate;
pub mod golden;
pub mod judge;
pub mod manifest;
pub mod measure;
pub mod perf;
pub mod recordings;
pub mod script;
pub mod skipped;
pub mod snapshot;
pub mod synth;

/// Whether everything is to be tried, which takes minutes, not a part of it.
pub fn is_thorough() -> bool {
    std::env::var_os("PERFCONV_TEST_ALL").is_some()
}

include!(concat!(env!("OUT_DIR"), "/fixtures.rs"));

/// The example in README.md.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
