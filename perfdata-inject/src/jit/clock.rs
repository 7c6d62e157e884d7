//! The clock of a dump, and that of the recording.

use perfdata_core::Events;
use perfdata_core::jitdump::JitHeader;
use perfdata_core::record::TimeConv;

use perfdata_convert::support::cycles::nanoseconds;

/// `CLOCK_MONOTONIC` (include/uapi/linux/time.h).
const CLOCK_MONOTONIC: i32 = 1;

/// The clock of the times in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JitClock {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    Monotonic,
    /// The cycle counter of the CPU, such as the TSC.
    Cycles,
}

/// Converts times of dumps to the clock of the recording.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// Nanoseconds to add to all times. If they are given, the clocks are not compared.
    offset: Option<i64>,
    /// The clock of all dumps, whatever their headers say.
    of_dumps: Option<JitClock>,
    /// Whether all times of the recording are those of `CLOCK_MONOTONIC`.
    is_monotonic: bool,
    /// The relation of the cycle counter to the clock of the recording, if it contains it.
    cycles: Option<TimeConv>,
}

/// How to convert the times of a dump.
#[derive(Debug, Clone)]
pub struct Times {
    offset: i64,
    /// The times are values of the cycle counter.
    cycles: Option<TimeConv>,
}

impl Clock {
    /// Sets the number of nanoseconds to add to all times.
    pub fn set_offset(&mut self, offset: i64) {
        self.offset = Some(offset);
    }

    /// Sets the clock of all dumps.
    pub fn set_clock_of_dumps(&mut self, clock: JitClock) {
        self.of_dumps = Some(clock);
    }

    /// Receives the events of the recording.
    pub fn learn(&mut self, events: &Events) {
        self.is_monotonic = !events.is_empty()
            && events.iter().all(|event| {
                event.attr.flags.use_clockid() == 1 && event.attr.clockid == Some(CLOCK_MONOTONIC)
            });
    }

    /// Receives a TIME_CONV record.
    pub fn convert_with(&mut self, cycles: TimeConv) {
        let is_usable = |cycles: &TimeConv| {
            cycles.time_mult != 0
                && cycles
                    .short
                    .as_ref()
                    .is_none_or(|short| short.cap_user_time_zero != 0)
        };
        self.cycles = Some(cycles).filter(is_usable);
    }

    /// Returns whether the clock of the recording suits dumps with times in nanoseconds.
    pub fn suits_nanoseconds(&self) -> bool {
        self.is_monotonic || self.offset.is_some()
    }

    fn is_in_cycles(&self, header: &JitHeader) -> bool {
        let clock = self.of_dumps.map(|clock| clock == JitClock::Cycles);
        clock.unwrap_or_else(|| header.has_arch_timestamps())
    }

    /// Returns how to convert the times of the dump with this header.
    ///
    /// # Errors
    /// The reason why they cannot be converted.
    pub fn times(&self, header: &JitHeader) -> Result<Times, &'static str> {
        let offset = self.offset.unwrap_or(0);
        if self.is_in_cycles(header) {
            let cycles = self.cycles.clone().ok_or(
                "its times are those of the CPU's cycle counter, and the recording has no usable TIME_CONV record to convert them",
            )?;
            return Ok(Times {
                offset,
                cycles: Some(cycles),
            });
        }
        if !self.suits_nanoseconds() {
            return Err(
                "its times are those of CLOCK_MONOTONIC, and those of the recording are not: record with perf record -k mono",
            );
        }
        Ok(Times {
            offset,
            cycles: None,
        })
    }
}

impl Times {
    /// Returns the time of the recording for a time of the dump.
    pub fn time(&self, timestamp: u64) -> u64 {
        self.cycles
            .as_ref()
            .map_or(timestamp, |cycles| nanoseconds(cycles, timestamp))
            .saturating_add_signed(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use perfdata_core::record::TimeConvShort;

    use super::*;

    /// The parameters of a counter of 2 GHz.
    const CONV: TimeConv = TimeConv {
        time_shift: 10,
        time_mult: 512,
        time_zero: 1000,
        short: None,
    };

    #[test]
    fn cycles_become_nanoseconds() {
        assert_eq!(nanoseconds(&CONV, 0), 1000);
        assert_eq!(nanoseconds(&CONV, 2_000_000), 1_001_000);
        assert_eq!(nanoseconds(&CONV, 3), 1001);
        let short = TimeConvShort {
            time_cycles: 0x1_0000,
            time_mask: 0xffff,
            cap_user_time_zero: 1,
            cap_user_time_short: 1,
            reserved: [0; 6],
        };
        let short = TimeConv {
            short: Some(short),
            ..CONV
        };
        // A counter of 16 bits, after its overflow.
        assert_eq!(nanoseconds(&short, 0x10), nanoseconds(&CONV, 0x1_0010));
    }

    #[test]
    fn parameters_may_have_any_value() {
        for time_shift in [0, 63, 64, u64::MAX] {
            for word in [0, 1, u64::MAX] {
                let conv = TimeConv {
                    time_shift,
                    time_mult: word,
                    time_zero: word,
                    short: None,
                };
                nanoseconds(&conv, u64::MAX);
            }
        }
    }
}
