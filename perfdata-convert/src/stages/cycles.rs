//! The conversion of the cycle counter of a CPU to the time of perf's clock.

/// The parameters of the conversion, which the kernel publishes (`struct perf_event_mmap_page`,
/// include/uapi/linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CycleClock {
    /// `time_shift`.
    pub(super) shift: u64,
    /// `time_mult`.
    pub(super) mult: u64,
    /// `time_zero`: nanoseconds at which the counter was 0.
    pub(super) zero: u64,
}

impl CycleClock {
    /// Returns the time in nanoseconds at which the counter had this value (tools/perf/util/tsc.c,
    /// `tsc_to_perf_time`). Wraps at 64 bits, as the kernel does.
    pub(super) fn time(self, counter: u64) -> u64 {
        let shift = u32::try_from(self.shift).unwrap_or(u32::MAX);
        let high = counter.checked_shr(shift).unwrap_or(0);
        let mask = 1_u64
            .checked_shl(shift)
            .map_or(u64::MAX, |bit| bit.wrapping_sub(1));
        let low = (counter & mask).wrapping_mul(self.mult);
        self.zero
            .wrapping_add(high.wrapping_mul(self.mult))
            .wrapping_add(low.checked_shr(shift).unwrap_or(0))
    }
}
