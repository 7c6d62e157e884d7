//! The options that make a recording fit for sharing.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use perfdata_convert::error::Result;
use perfdata_convert::io::read_at_most;
use perfdata_recipe::Sanitizing;
use perfdata_sanitize::{Audience, Key, Policy};

/// Heading of these options.
const SHARING: &str = "Sharing";

/// What others may learn from the recording.
#[derive(Debug, Clone, Args)]
pub struct SanitizeArgs {
    /// Replace names, IDs and addresses, and remove memory and unknown content
    ///
    /// public (default): for everybody. vendor: keeps build IDs, file names and releases, so that
    /// a reader with the programs finds the same symbols. A stream is stored until it ends.
    #[arg(
        long,
        value_name = "FOR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "public",
        help_heading = SHARING
    )]
    pub sanitize: Option<For>,
    /// Keep this nevertheless (repeatable): host, comms, paths, pids …
    ///
    /// Words: host, cmdline, release, cpu, comms, paths, basenames, cgroups, symbols, events, pids,
    /// addresses, build-ids, times, raw, stack; or EVENT:FIELD for a field of a tracepoint, such as
    /// sched:sched_switch:prev_state.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', requires = "sanitize", help_heading = SHARING)]
    pub keep: Vec<String>,
    /// Use the same pseudonyms in all recordings with the secret in FILE [default: a random secret]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "sanitize", hide_short_help = true, help_heading = SHARING)]
    pub key: Option<PathBuf>,
}

/// The words of [`Audience`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Everybody
    Public,
    /// A reader who has the programs
    Vendor,
}

impl From<For> for Audience {
    fn from(audience: For) -> Self {
        match audience {
            For::Public => Audience::Public,
            For::Vendor => Audience::Vendor,
        }
    }
}

/// Maximum size of a secret in bytes.
const MOST: u64 = 1 << 20;

impl SanitizeArgs {
    /// Returns what is requested.
    ///
    /// # Errors
    /// A word is unknown, or the file with the secret cannot be read or is too short.
    pub fn sanitizing(&self) -> Result<Option<Sanitizing>> {
        let Some(audience) = self.sanitize else {
            return Ok(None);
        };
        let mut policy = Policy::new(audience.into());
        for word in &self.keep {
            policy = policy.keep_named(word)?;
        }
        Ok(Some(Sanitizing::By(policy, self.key()?)))
    }

    fn key(&self) -> Result<Key> {
        match &self.key {
            None => Key::random(),
            Some(file) => Key::of_secret(&read_at_most(MOST, file)?),
        }
    }
}
