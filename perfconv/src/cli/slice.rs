//! The options that select samples: the words of `perf script`.

use std::num::NonZeroU64;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::read_at_most;
use perfdata_core::read::Limits;
use perfdata_edit::slice::{Cpus, Ids, Patterns, Select, Sideband, TimeRanges};

/// Heading of these options.
pub const SLICE: &str = "Samples to keep";

/// Which samples to keep.
#[derive(Debug, Clone, Args)]
pub struct SliceArgs {
    /// Keep these times: A,B in seconds, P%/N, or A%-B%
    ///
    /// As in perf script: both ends are included; either may be missing; several ranges are
    /// separated by blanks. 10%/2 is the second tenth of the recording, 0%-10%,30%-40% are two
    /// parts of it.
    #[arg(long, value_name = "RANGES", value_parser = parse::<TimeRanges>, help_heading = SLICE)]
    pub time: Option<TimeRanges>,
    /// Count the times of --time from the first sample
    #[arg(long, requires = "time", hide_short_help = true, help_heading = SLICE)]
    pub reltime: bool,
    /// Keep the samples of these processes
    #[arg(long, value_name = "PID,…", value_parser = parse::<Ids>, allow_hyphen_values = true)]
    #[arg(help_heading = SLICE)]
    pub pid: Option<Ids>,
    /// Keep the samples of these threads
    #[arg(long, value_name = "TID,…", value_parser = parse::<Ids>, allow_hyphen_values = true)]
    #[arg(help_heading = SLICE)]
    pub tid: Option<Ids>,
    /// Keep the samples of threads with these names (* and ? match)
    ///
    /// The name that the thread has at the time of the sample. * matches any letters, ? any one
    /// letter. file://PATH names a file with one name in each line.
    #[arg(long, alias = "comm", value_name = "COMM,…", help_heading = SLICE)]
    pub comms: Option<String>,
    /// Also keep the samples of what the selected threads fork
    #[arg(long, hide_short_help = true, help_heading = SLICE)]
    pub descendants: bool,
    /// Also keep tracepoints that name a selected thread: switches to it, and its wakeups
    ///
    /// The fields pid, tid, and those that end like this: next_pid, child_pid. Without these samples,
    /// perf sched, perf timechart and perf lock lack what others did to the selected threads.
    #[arg(long, hide_short_help = true, help_heading = SLICE)]
    pub related: bool,
    /// Keep the samples of these CPUs, such as 0-3,7
    #[arg(short = 'C', long, value_name = "CPU,…", value_parser = parse::<Cpus>, help_heading = SLICE)]
    pub cpu: Option<Cpus>,
    /// Keep the samples of these events (* and ? match)
    ///
    /// Names as in perf evlist, with modifiers. All events keep their attributes.
    #[arg(short = 'e', long, value_name = "EVENT,…", help_heading = SLICE)]
    pub event: Option<String>,
    /// Keep the first N of these samples
    #[arg(long, value_name = "N", help_heading = SLICE)]
    pub first: Option<u64>,
    /// Keep the last N of these samples
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = SLICE)]
    pub last: Option<u64>,
    /// Keep one of each N of these samples
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = SLICE)]
    pub every: Option<NonZeroU64>,
    /// Keep all other samples instead
    #[arg(long, hide_short_help = true, help_heading = SLICE)]
    pub invert: bool,
    /// Which records about processes to keep
    #[arg(long, value_name = "WHICH", default_value = "used", hide_short_help = true, help_heading = SLICE)]
    pub sideband: SidebandArg,
    /// Write OUTPUT even if no sample is left
    #[arg(long, hide_short_help = true, help_heading = SLICE)]
    pub allow_empty: bool,
}

/// Which records about processes to keep: the words of [`Sideband`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SidebandArg {
    /// Those that the kept samples need
    Used,
    /// All
    All,
}

impl From<SidebandArg> for Sideband {
    fn from(which: SidebandArg) -> Self {
        match which {
            SidebandArg::Used => Sideband::Used,
            SidebandArg::All => Sideband::All,
        }
    }
}

impl SliceArgs {
    /// Returns the conditions; `None` if there are none.
    ///
    /// # Errors
    /// A file with names cannot be read, or an option needs another one.
    pub fn select(&self, limits: Limits) -> Result<Option<Select>> {
        let (select, is_given) = self.conditions(limits, false)?;
        let modifiers = [
            ("--invert", self.invert),
            ("--allow-empty", self.allow_empty),
            ("--sideband all", self.sideband == SidebandArg::All),
        ];
        match modifiers.iter().find(|(_, given)| *given && !is_given) {
            Some((option, _)) => Err(Error::Usage(format!(
                "{option} requires an option that selects samples, such as --time"
            ))),
            None => Ok(is_given.then_some(select)),
        }
    }

    /// Returns the conditions, and whether there are any. The samples may also be divided by threads.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn conditions(&self, limits: Limits, are_divided: bool) -> Result<(Select, bool)> {
        let mut select = Select::default();
        select.times.clone_from(&self.time);
        select.relative = self.reltime;
        select.pids.clone_from(&self.pid);
        select.tids.clone_from(&self.tid);
        select.comms = self
            .comms
            .as_deref()
            .map(|list| comms(list, limits))
            .transpose()?;
        (select.descendants, select.related) = (self.descendants, self.related);
        select.cpus.clone_from(&self.cpu);
        select.events = self.event.as_deref().map(Patterns::between_commas);
        (select.first, select.last, select.every) = (self.first, self.last, self.every);
        select.invert = self.invert;
        select.sideband = self.sideband.into();
        select.allow_empty = self.allow_empty;
        let has_threads = self.pid.is_some() || self.tid.is_some() || self.comms.is_some();
        let is_given = has_threads
            || self.time.is_some()
            || self.cpu.is_some()
            || self.event.is_some()
            || self.first.or(self.last).is_some()
            || self.every.is_some();
        let of_threads = [
            ("--descendants", self.descendants),
            ("--related", self.related && !are_divided),
        ];
        if let Some((option, _)) = of_threads.iter().find(|(_, given)| *given && !has_threads) {
            return Err(Error::Usage(format!(
                "{option} requires --pid, --tid or --comms"
            )));
        }
        Ok((select, is_given))
    }
}

/// Returns the names in `list`, or in the file that it names.
fn comms(list: &str, limits: Limits) -> Result<Patterns> {
    Ok(match list.strip_prefix("file://") {
        Some(path) => Patterns::lines(&read_at_most(limits.max_metadata, path.as_ref())?),
        None => Patterns::between_commas(list),
    })
}

pub(super) fn parse<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: Error| error.to_string())
}
