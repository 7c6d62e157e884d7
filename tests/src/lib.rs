//! Shared parts of the tests of several crates: the real recordings, perf as a judge, and
//! comparison of texts.
//!
//! The suites are in `tests/tests/`. A suite that checks recordings defines the check as a
//! `fn(&Recording) -> Result<(), String>`. It runs the check with [`per_fixture!`] on the project's
//! recordings and with [`recordings::check_all`] on other recordings.

pub mod allowed;
pub mod code_folder;
pub mod convert;
pub mod debuginfod_server;
pub mod fuzz;
pub mod generate;
pub mod golden;
pub mod judge;
pub mod manifest;
pub mod measure;
pub mod model;
pub mod mutate;
pub mod off_cpu;
pub mod perf;
pub mod recordings;
pub mod script;
pub mod skipped;
pub mod snapshot;
pub mod synth;
pub mod told;
pub mod traces;

/// Returns whether everything is tested, which takes minutes, instead of a selection.
pub fn is_thorough() -> bool {
    std::env::var_os("PERFCONV_TEST_ALL").is_some()
}

include!(concat!(env!("OUT_DIR"), "/fixtures.rs"));

/// The examples of the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../docs/library.md")]
    struct Library;
    #[doc = include_str!("../../perfdata-core/README.md")]
    struct Core;
    #[doc = include_str!("../../perfdata-session/README.md")]
    struct Session;
    #[doc = include_str!("../../perfdata-demangle/README.md")]
    #[doc = include_str!("../../perfdata-intel-pt/README.md")]
    #[doc = include_str!("../../perfdata-symbols/README.md")]
    struct Symbols;
    #[doc = include_str!("../../perfdata-tracepoint/README.md")]
    struct Tracepoint;
    #[doc = include_str!("../../perfdata-export/README.md")]
    struct Export;
    #[doc = include_str!("../../perfdata-write/README.md")]
    struct Write;
    #[doc = include_str!("../../perfdata-convert/README.md")]
    struct Convert;
    #[doc = include_str!("../../perfdata-inject/README.md")]
    struct Inject;
    #[doc = include_str!("../../perfdata-edit/README.md")]
    struct Edit;
    #[doc = include_str!("../../perfdata-sanitize/README.md")]
    struct Sanitize;
    #[doc = include_str!("../../perfdata-report/README.md")]
    struct Report;
}
