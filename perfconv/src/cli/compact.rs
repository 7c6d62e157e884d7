//! The options of `perfconv compact`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Arguments of `compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Directory of perfconv export --append-to
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Remove the days before DATE (UTC), such as 2026-11-27
    ///
    /// Their rows remain in the table recordings, so that --append-to does not add the recordings
    /// again.
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub drop_before: Option<String>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not wait until the output is on the disk; a system crash may lose it
    #[arg(long, hide_short_help = true)]
    pub no_sync: bool,
}

/// Returns a date in the form of the names of the folders.
fn date(text: &str) -> Result<String, String> {
    let date = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    match date.map(|date| date.format("%Y-%m-%d").to_string()) {
        Some(date) if date == text => Ok(date),
        _ => Err("expected a date such as 2026-11-27".into()),
    }
}
