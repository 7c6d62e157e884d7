//! Samples of Linux `perf.data` recordings with the names of functions, in the formats of other
//! profilers.
//!
//! [`export`] reads the samples of a recording once, in time order, resolves each frame to a
//! function and a module, and passes the result to a [`Sink`]. Each format is a sink:
//!
//! - [`Folded`]: folded stacks, for other tools that draw flame graphs;
//! - [`BranchProfile`]: counted branches for BOLT, llvm-profgen and AutoFDO;
//! - [`FlameGraph`]: flame graphs, also of the differences between two recordings;
//! - [`Firefox`]: profiles for the Firefox Profiler;
//! - [`Otlp`]: profiles of OpenTelemetry;
//! - [`PerfScript`]: the text of `perf script`, for the tools that read it;
//! - [`Pprof`]: compressed profiles for pprof;
//! - [`Speedscope`]: JSON for speedscope.
//!
//! A custom format implements [`Sink`]:
//!
//! ```
//! use perfdata_export::{ResolvedSample, Result, Sink, Sources, Symbolizer, export};
//!
//! /// Counts the samples of each function that was running.
//! #[derive(Default)]
//! struct Top(std::collections::BTreeMap<Vec<u8>, u64>);
//!
//! impl Sink for Top {
//!     fn sample(&mut self, sample: &ResolvedSample<'_>) -> Result<()> {
//!         let name = sample.frames.first().and_then(|frame| sample.tables.name(frame));
//!         *self.0.entry(name.unwrap_or(b"[unknown]").to_vec()).or_default() += 1;
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
//! let mut top = Top::default();
//! let mut samples = perfdata_session::open(path)?;
//! let report = export(&mut samples, Some(Symbolizer::new(Sources::default())), &mut top)?;
//! assert_eq!(report.samples, top.0.values().sum::<u64>());
//! # Ok(())
//! # }
//! ```
//!
//! [`export_in_parts`] does the same in several threads, if the sink has [parts](Sink::part), and
//! [`ResolvedSamples`] returns one sample after the other.
//!
//! # Memory
//!
//! Samples are not kept. The names of functions and modules are, within the limits of the
//! recording; a sink says what else it keeps.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod blocks;
mod branch_profile;
mod counters;
mod counts;
mod error;
mod events;
mod firefox;
mod flame_graph;
mod folded;
mod hash_index;
mod json;
mod locations;
mod machine;
mod message;
mod named_weight;
mod otlp;
mod parts;
mod places;
mod positions;
mod pprof;
mod process_names;
mod profile;
mod profile_parts;
mod resolve;
mod resolver;
mod script;
mod shared_symbols;
mod shown;
mod speedscope;
mod spool;
mod stack_list;
mod table_entries;
mod tables;
mod text;
mod tracepoints;
mod tree;

pub use branch_profile::{Binary, BranchCounts, BranchProfile, ProfileForm, ProfileSummary};
pub use error::{Error, Result};
pub use firefox::Firefox;
pub use flame_graph::{FlameGraph, FlameGraphForm};
pub use folded::{Count, Folded, Root};
pub use named_weight::NamedWeight;
pub use otlp::Otlp;
pub use parts::{ExportThreads, Made, SinkPart, export_in_parts};
pub use perfdata_symbols::{
    BundleFolder, Evidence, FetchAhead, HidingSetting, ObjectFetcher, Reason, SearchedSources,
    Sources, Spelling, Symbolizer, Unresolved, Verified, WithoutDebugInfo, fetch_objects,
};
pub use perfdata_tracepoint::Like;
pub use pprof::Pprof;
pub use profile::Label;
pub use resolve::{Needs, Report, ResolvedFrame, ResolvedSample, ResolvedSamples, Sink, export};
pub use script::{Fields, FieldsError, PerfScript};
pub use speedscope::Speedscope;
pub use tables::{Function, FunctionId, Module, ModuleId, Tables};
pub use text::push_text;
