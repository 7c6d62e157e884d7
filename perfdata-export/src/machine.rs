//! What a recording says about the machine where it was made.

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};

/// What is known about the machine. Unknown texts are empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    pub host: Vec<u8>,
    pub release: Vec<u8>,
    pub arch: Vec<u8>,
    pub cpu: Vec<u8>,
    /// Number of CPUs that were online; 0 if it is not known.
    pub cpus: u32,
    /// The time of day, and the same moment on the recording's clock, in nanoseconds.
    clock: Option<(u64, u64)>,
}

impl Machine {
    /// Returns what the feature sections of a recording contain.
    pub fn of(recording: &Recording) -> Self {
        let mut machine = Machine::default();
        for id in [
            FeatureId::HOSTNAME,
            FeatureId::OSRELEASE,
            FeatureId::ARCH,
            FeatureId::CPUDESC,
            FeatureId::NRCPUS,
            FeatureId::CLOCK_DATA,
        ] {
            let Some(Ok(Section { value, .. })) = recording.feature(id) else {
                continue;
            };
            match value {
                Feature::Hostname(text) => machine.host = text.text().to_vec(),
                Feature::OsRelease(text) => machine.release = text.text().to_vec(),
                Feature::Arch(text) => machine.arch = text.text().to_vec(),
                Feature::CpuDesc(text) => machine.cpu = text.text().to_vec(),
                Feature::NrCpus(cpus) => machine.cpus = cpus.online,
                Feature::ClockData(clock) => {
                    machine.clock = Some((clock.wall_clock, clock.clock_time));
                }
                _ => {}
            }
        }
        machine
    }

    /// Returns the time of day of a time in the recording, in nanoseconds since 1970 (UTC). `None`
    /// if the recording does not contain it (`perf record -k`).
    pub fn time_of_day(&self, time: u64) -> Option<u64> {
        let (wall, clock) = self.clock?;
        let distance = i128::from(time).saturating_sub(i128::from(clock));
        u64::try_from(i128::from(wall).saturating_add(distance)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_the_clocks_were_read_have_a_time_of_day() {
        let machine = |wall, clock| Machine {
            clock: Some((wall, clock)),
            ..Machine::default()
        };
        assert_eq!(machine(1_000, 70).time_of_day(75), Some(1_005));
        assert_eq!(machine(1_000, 70).time_of_day(60), Some(990));
        assert_eq!(machine(5, 70).time_of_day(60), None);
        assert_eq!(machine(u64::MAX, 70).time_of_day(71), None);
        assert_eq!(Machine::default().time_of_day(60), None);
    }
}
