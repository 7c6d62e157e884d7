//! Stages and inputs that select, divide and combine the records of Linux `perf.data` recordings.
//!
//! - [`slice`](mod@slice): the samples that meet conditions, and what perf needs to show them;
//! - [`thin`]: smaller samples;
//! - [`split`]: a recording as several ones;
//! - [`merge`]: several recordings as one;
//! - [`sort`]: the records in the order of time.
//!
//! ```
//! use perfdata_convert::io::Output;
//! use perfdata_convert::pipeline::Conversion;
//! use perfdata_edit::slice::{Select, Slice};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-default.data");
//! # let output = folder.path().join("tenth.data");
//! let mut select = Select::default();
//! select.times = Some("10%/2".parse()?);
//! let output = Output::create(&output, input.as_ref(), false)?;
//! Conversion::new(vec![Box::new(Slice::new(select))]).run(input.as_ref(), output)?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

pub mod merge;
pub mod slice;
pub mod sort;
mod sorting;
pub mod split;
pub mod thin;
