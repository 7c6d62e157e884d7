//! Conversions of Linux `perf.data` recordings, and the `perfconv` command.

pub mod cli;
pub mod cmd;
pub mod convert;
pub mod error;
pub mod interrupt;
pub mod io;
pub mod show;
pub mod walk;

pub use error::{Error, Result};
