//! Reports about Linux `perf.data` recordings: what is in them, and how they differ.
//!
//! - [`show`]: the contents of a recording ([`Overview`](show::overview::Overview)) and its records
//!   ([`Dump`](show::dump::Dump)), as text, JSON, bytes and charts;
//! - [`show::aux_packets`]: the packets of hardware traces;
//! - [`pull`]: the same records, for programs that request one after the other;
//! - [`diff`]: the differences between two recordings;
//! - [`aux_data`]: the AUX data of hardware traces as files;
//! - [`tally`]: a stage that counts the records of an output.
//!
//! The check of a recording is [`perfdata_convert::verify`]: recovery and conversions use it, too.
//!
//! ```
//! use perfdata_convert::io::Input;
//! use perfdata_report::show::overview::Overview;
//!
//! # fn main() -> perfdata_convert::Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-default.data");
//! # let path = std::path::Path::new(path);
//! let overview = Overview::of(Input::open(path)?)?;
//! # assert!(overview.counts().records > 0);
//! println!("{}", overview.counts());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::arithmetic_side_effects,
    reason = "sums of sizes and counts that are smaller than the recording"
)]

pub mod aux_data;
pub mod diff;
#[doc(hidden)]
pub mod pull;
pub mod show;
pub mod tally;
