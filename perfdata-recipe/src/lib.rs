//! Conversions and exports of `perf.data` recordings as data.
//!
//! A [`Recipe`] contains what to do with a recording; it knows in which order the stages of the
//! other crates process a record, and which exclude each other. `perfconv` builds its commands from
//! recipes, so that a program gets the same output, notes and errors.
//!
//! ```
//! use perfdata_convert::io::{Input, Output};
//! use perfdata_convert::stages::swap::Target;
//! use perfdata_recipe::Recipe;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/7.2-x86_64-pipe-g.data");
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("perf.data");
//! let mut recipe = Recipe::default();
//! recipe.sort = true;
//! recipe.byte_order = Some(Target::Other);
//! recipe.compress = Some(1);
//! let output = Output::create(&path, input.as_ref(), false)?;
//! let summary = recipe.convert(Input::open(input.as_ref())?, output)?;
//! assert!(summary.bytes_out > 0);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod conflict;
mod export;
mod recipe;
mod steps;

pub use conflict::{Conflict, Part};
pub use export::{Ending, Export, Exported, OpenExport, failed, not_unwound};
pub use recipe::Recipe;
pub use steps::{
    AddBuildIds, Dumps, FeatureSource, GeneratedCode, Sanitizing, Thinning, Traces, Unwinding,
    UserStacks, check_debug_dirs, check_readable, sources_in, with_objects_of,
};
