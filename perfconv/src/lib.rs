//! The `perfconv` command: options, subcommands, messages, progress bar, manual pages and
//! completions.
//!
//! This library exists for the binary and its tests, and has no stable interface. Programs use
//! [`perfdata_convert`], which contains the conversions and reports.

#![deny(unsafe_code)]

pub mod cli;
pub mod cmd;
pub mod messages;
pub mod process;
pub mod progress;
mod suggestions;
