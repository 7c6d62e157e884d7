//! The conversion of the cycle counter of a CPU to the time of perf's clock.

use perfdata_core::record::TimeConv;

/// The parameters of the conversion, which the kernel publishes (`struct perf_event_mmap_page`,
/// include/uapi/linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleClock {
    /// `time_shift`.
    pub shift: u64,
    /// `time_mult`.
    pub mult: u64,
    /// `time_zero`: nanoseconds at which the counter was 0.
    pub zero: u64,
}

impl CycleClock {
    /// Returns the parameters in a TIME_CONV record.
    pub fn of(conv: &TimeConv) -> Self {
        CycleClock {
            shift: conv.time_shift,
            mult: conv.time_mult,
            zero: conv.time_zero,
        }
    }

    /// Returns whether the parameters are those of a clock.
    pub fn is_usable(self) -> bool {
        self.mult != 0 && self.shift < u64::from(u64::BITS)
    }

    /// Returns the value of the counter at a time in nanoseconds (tools/perf/util/tsc.c,
    /// `perf_time_to_tsc`); 0 if the parameters are invalid.
    pub fn counter(self, time: u64) -> u64 {
        let since = time.wrapping_sub(self.zero);
        let shift = u32::try_from(self.shift).unwrap_or(u32::MAX);
        let shifted = |number: u64| number.checked_shl(shift).unwrap_or(0);
        let (Some(high), Some(low)) = (since.checked_div(self.mult), since.checked_rem(self.mult))
        else {
            return 0;
        };
        let low = shifted(low).checked_div(self.mult).unwrap_or(0);
        shifted(high).wrapping_add(low)
    }

    /// Returns the time in nanoseconds at which the counter had this value (tools/perf/util/tsc.c,
    /// `tsc_to_perf_time`). Wraps at 64 bits, as the kernel does.
    pub fn time(self, counter: u64) -> u64 {
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

/// Returns the time in nanoseconds of a value of the cycle counter, which may have fewer bits than
/// its values.
pub fn nanoseconds(conv: &TimeConv, counter: u64) -> u64 {
    let counter = match &conv.short {
        Some(short) if short.cap_user_time_short != 0 => {
            let since = counter.wrapping_sub(short.time_cycles) & short.time_mask;
            short.time_cycles.wrapping_add(since)
        }
        _ => counter,
    };
    CycleClock::of(conv).time(counter)
}
