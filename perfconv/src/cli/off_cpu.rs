//! The options for samples of threads that wait.

use clap::Args;
use perfdata_inject::off_cpu::OffCpuOptions;

use super::convert::CONVERSIONS;

/// Samples of threads that were off the CPU.
#[derive(Debug, Clone, Args)]
pub struct OffCpuArgs {
    /// Add samples of where threads wait, for how long, and why
    ///
    /// The event offcpu-time: the stack with which a thread stopped, with the reason as its last
    /// frame, and the nanoseconds as period. Made of sched:sched_switch (`perf record
    /// --switch-events -e sched:sched_switch -e sched:sched_waking -g -a`), SWITCH records,
    /// sched:sched_stat_* or `perf record --off-cpu`. The records are sorted. A stream is stored
    /// until it ends. Conditions for samples apply afterwards.
    #[arg(long, help_heading = CONVERSIONS)]
    pub off_cpu: bool,
    /// Show who ended the waiting, above the reason
    ///
    /// The callchain of the thread that woke up the other one, from its end: its frames in the
    /// kernel; in the same process, all frames.
    #[arg(long, requires = "off_cpu", hide_short_help = true, help_heading = CONVERSIONS)]
    pub wakers: bool,
}

impl OffCpuArgs {
    /// Returns the options of the conversion, if it is wanted. `drop_sources` says whether the
    /// samples that the new ones are made of are dropped.
    pub fn options(&self, drop_sources: bool) -> Option<OffCpuOptions> {
        self.off_cpu.then_some(OffCpuOptions {
            drop_sources,
            wakers: self.wakers,
        })
    }
}
