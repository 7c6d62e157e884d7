//! Conversions of Linux `perf.data` recordings, and the check of what is in them.
//!
//! ```text
//!     Input ──► RecordingReader ──► Stage ──► Stage ──► FileWriter or PipeWriter ──► Output
//!               file or pipe        one conversion each                               appears when complete
//! ```
//!
//! A [`Conversion`](pipeline::Conversion) consists of stages and the container to write. A custom
//! conversion implements [`Stage`](pipeline::Stage): it receives the model before the first record,
//! then each record, and the model again at the end, and forwards unchanged records. The driver
//! decompresses records before the stage and compresses them again after it, drops the payload of a
//! dropped record, and updates the AUXTRACE index and the sample times.
//!
//! ```
//! use perfdata_convert::pipeline::{Conversion, Link, Stage};
//! use perfdata_convert::io::Output;
//! use perfdata_core::record::{RawRecord, RecordType};
//! use std::path::Path;
//!
//! /// Drops the records of one type.
//! struct Without(RecordType);
//!
//! impl Stage for Without {
//!     fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> perfdata_convert::Result<()> {
//!         if record.kind == self.0 { Ok(()) } else { next.record(record) }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let output = folder.path().join("without.data");
//! # let input = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-default.data");
//! let input = Path::new(input);
//! let stages: Vec<Box<dyn Stage>> = vec![Box::new(Without(RecordType::COMM))];
//! Conversion::new(stages).run(input, Output::create(&output, input, false)?)?;
//! # assert!(std::fs::metadata(&output)?.len() < std::fs::metadata(input)?.len());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::arithmetic_side_effects,
    reason = "sums of sizes and counts that are smaller than the recording"
)]

pub mod error;
pub mod io;
pub mod leftover;
pub mod pipeline;
pub mod recover;
pub mod stages;
pub mod verify;
pub mod walk;

// What only the other crates of this workspace use: it may change in any release.
#[doc(hidden)]
pub mod count;
#[doc(hidden)]
pub mod foreign;
#[doc(hidden)]
pub mod interrupt;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod support;

pub use error::{Error, Result};
