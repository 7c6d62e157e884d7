//! The options for traces in AUX data.

use clap::{ArgGroup, Args};
use perfdata_convert::error::Result;
use perfdata_inject::itrace::ItraceOptions;
use perfdata_recipe::Traces;

use super::convert::CONVERSIONS;
use crate::cmd::objects;

/// The options for traces.
const TRACE: &str = "trace";

/// What becomes of traces, in a command that writes a recording.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new(TRACE).args(["itrace", "no_itrace"]))]
pub struct TraceArgs {
    /// Which samples are made of traces.
    #[command(flatten)]
    pub samples: ItraceArgs,
    /// With --itrace: drop all other samples
    #[arg(long, requires = TRACE, hide_short_help = true, help_heading = CONVERSIONS)]
    pub strip: bool,
}

/// Which samples are made of traces.
#[derive(Debug, Clone, Args)]
pub struct ItraceArgs {
    /// Replace the trace by samples. All: b branches, e errors. Intel PT and BTS: c calls,
    /// r returns. Intel PT: i instructions (i100us, i1000i), y cycles, g callchains, l branch
    /// stacks, x transactions, w PTWRITE, p power, I interrupts. Arm SPE: i1i operations, f and m
    /// caches, t TLB, a remote accesses, M memory
    ///
    /// Without letters: i100us (of Arm SPE: i1i) and all of bxwpIfmtaMe. The code of the programs
    /// must be here, with the recorded build IDs. Further letters of Intel PT: sN skips N samples,
    /// q only addresses in packets, qq only those after PSB packets, A cycles of about that moment,
    /// Z no times; and of Arm SPE: l branch stacks, iNi one operation of N.
    #[arg(long, value_name = "OPTS", num_args = 0..=1, require_equals = true)]
    #[arg(hide_short_help = true, help_heading = CONVERSIONS)]
    pub itrace: Option<Option<String>>,
    /// Remove traces without making samples of them
    #[arg(long, overrides_with = "itrace", hide_short_help = true, help_heading = CONVERSIONS)]
    pub no_itrace: bool,
}

impl ItraceArgs {
    /// Returns which samples are made, if `--itrace` says so. Without letters, they are those of
    /// `default`.
    ///
    /// # Errors
    /// A letter is not known.
    pub fn options(&self, default: ItraceOptions) -> Result<Option<ItraceOptions>> {
        match &self.itrace {
            _ if self.no_itrace => Ok(None),
            None => Ok(None),
            Some(None) => Ok(Some(default)),
            Some(Some(words)) => ItraceOptions::parse(words).map(Some),
        }
    }
}

impl TraceArgs {
    /// Returns what becomes of traces, if an option says so. `unverified`: code is also read from
    /// objects whose build IDs the recording does not contain.
    ///
    /// # Errors
    /// A letter is not known.
    pub fn traces(&self, unverified: bool) -> Result<Option<Traces>> {
        let samples = self.samples.options(ItraceOptions::all())?;
        let is_given = samples.is_some() || self.samples.no_itrace;
        let mut traces = Traces::new(samples);
        traces.strip = self.strip;
        traces.unverified = unverified;
        traces.help = Some(objects::help);
        Ok(is_given.then_some(traces))
    }
}
