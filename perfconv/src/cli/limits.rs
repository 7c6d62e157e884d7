//! Limits for the resources that a recording may require.

use std::num::NonZeroUsize;

use clap::Args;
use perfdata_core::read::Limits;

/// Limits, for all commands that read.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Maximum decompressed size of one record [default: the recording's value, or 64M]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, hide_short_help = true)]
    pub max_decompressed: Option<u64>,
    /// Maximum window of compressed data, 2^LOG bytes of memory [default: 27]
    #[arg(long, global = true, value_name = "LOG", hide_short_help = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=31))]
    pub max_window_log: Option<u32>,
    /// Maximum memory for attributes, IDs, names, feature sections and mappings [default: 256M]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size, hide_short_help = true)]
    pub max_metadata: Option<u64>,
    /// Maximum number of threads that process records; with 1, there is only one thread. The output
    /// does not depend on it [default: number of CPUs]
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub threads: Option<NonZeroUsize>,
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        let default = Limits::default();
        default
            .with_max_decompressed(args.max_decompressed)
            .with_max_window_log(args.max_window_log.unwrap_or(default.max_window_log))
            .with_max_metadata(args.max_metadata.unwrap_or(default.max_metadata))
            .with_max_threads(args.threads.map(NonZeroUsize::get))
    }
}

/// The units of sizes. Each is 1024 times the previous one.
const UNITS: [char; 3] = ['K', 'M', 'G'];
const FACTORS: [u64; 3] = [1 << 10, 1 << 20, 1 << 30];

/// Parses a number of bytes, such as 65536, 64K, 64M or 1G.
fn size(text: &str) -> Result<u64, String> {
    let unit = UNITS
        .iter()
        .position(|&unit| text.ends_with([unit, unit.to_ascii_lowercase()]));
    let number = if unit.is_some() {
        text.get(..text.len().saturating_sub(1))
    } else {
        Some(text)
    };
    let number: Option<u64> = number.and_then(|number| number.parse().ok());
    let factor = unit.map_or(1, |unit| FACTORS.get(unit).copied().unwrap_or(1));
    let bytes = number.and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "not a number of bytes, such as 65536, 64M or 1G".to_owned())
}

/// Returns a larger value for the limit called `name`, which was `limit`; `found` is the required
/// value, if it is known.
pub fn beyond(name: &str, limit: u64, found: Option<u64>) -> u64 {
    match name {
        // The files of a directory share it: only the maximum suffices in any case.
        "max-window-log" => 31,
        _ => limit.max(1 << 10).saturating_mul(4).max(found.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("65536"), Ok(65536));
        assert_eq!(
            ["1K", "1k", "64M", "3G"].map(|text| size(text).ok()),
            [Some(1 << 10), Some(1 << 10), Some(64 << 20), Some(3 << 30)]
        );
        for wrong in ["", "K", "1T", "-1", "1.5G", "18446744073709551615G", "€"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
