//! Times of day.

use perfdata_core::Recording;
use perfdata_core::feature::{ClockData, Feature, FeatureId, Section};

/// Converts times on the clock of a recording to times of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// A moment in nanoseconds on the clock of the recording.
    pub clock: u64,
    /// The same moment in nanoseconds since 1970 (UTC).
    pub wall: u64,
}

/// Nanoseconds in a microsecond.
const MICROSECOND: i128 = 1000;

impl WallClock {
    /// Returns the clock of a recording, if it contains CLOCK_DATA.
    pub fn of(recording: &Recording) -> Option<Self> {
        match recording.feature(FeatureId::CLOCK_DATA) {
            Some(Ok(Section {
                value:
                    Feature::ClockData(ClockData {
                        wall_clock,
                        clock_time,
                        ..
                    }),
                ..
            })) => Some(WallClock {
                clock: clock_time,
                wall: wall_clock,
            }),
            _ => None,
        }
    }

    /// Returns the time of day at `time`, in nanoseconds on the clock of the recording:
    /// microseconds since 1970 (UTC), rounded down. `None` if they do not fit in 64 bits.
    pub fn micros(self, time: u64) -> Option<i64> {
        // Three numbers of 64 bits do not overflow 128.
        let wall = i128::from(time)
            .saturating_sub(i128::from(self.clock))
            .saturating_add(i128::from(self.wall));
        i64::try_from(wall.div_euclid(MICROSECOND)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted() {
        let clock = WallClock {
            clock: 5_000,
            wall: 1_700_000_000_000_000_999,
        };
        assert_eq!(clock.micros(5_000), Some(1_700_000_000_000_000));
        assert_eq!(clock.micros(5_001), Some(1_700_000_000_000_001));
        assert_eq!(clock.micros(0), Some(1_699_999_999_999_995));
        let first = WallClock {
            clock: u64::MAX,
            wall: 0,
        };
        assert_eq!(first.micros(0), Some(-18_446_744_073_709_552));
    }
}
