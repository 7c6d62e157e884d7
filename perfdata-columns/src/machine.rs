//! The facts about a recording and its machine in the feature sections with one value.

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_export::push_text;

use crate::clock::WallClock;
use crate::schema::{SCHEMA_KEY, SCHEMA_VERSION};

/// The facts about a recording and its machine, as far as the recording contains them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordingFacts {
    pub host: Option<String>,
    pub osrelease: Option<String>,
    pub arch: Option<String>,
    pub version: Option<String>,
    pub cpudesc: Option<String>,
    pub cpuid: Option<String>,
    pub cpus_online: Option<u32>,
    pub cpus_available: Option<u32>,
    pub total_mem: Option<u64>,
    pub cmdline: Option<Vec<String>>,
    pub clock_name: Option<String>,
    pub clock_resolution: Option<u64>,
    pub clock: Option<WallClock>,
}

/// Returns the metadata for files and streams, as keys and values in a fixed order: the versions of
/// the schema and of this library, and what `recording` contains about its machine, perf and clock.
/// Values that the recording does not contain, or that were not read yet, are absent. `id` is the
/// ID of the recording, and `symbols` says whether names were searched.
pub fn metadata(recording: &Recording, id: Option<&str>, symbols: bool) -> Vec<(String, String)> {
    RecordingFacts::of(recording).metadata(id, symbols)
}

/// Returns bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    push_text(&mut text, bytes);
    text
}

impl RecordingFacts {
    /// Reads the feature sections of `recording`. Corrupt ones are skipped.
    pub fn of(recording: &Recording) -> Self {
        let mut machine = RecordingFacts {
            clock: WallClock::of(recording),
            ..RecordingFacts::default()
        };
        let read = [
            FeatureId::HOSTNAME,
            FeatureId::OSRELEASE,
            FeatureId::VERSION,
            FeatureId::ARCH,
            FeatureId::NRCPUS,
            FeatureId::CPUDESC,
            FeatureId::CPUID,
            FeatureId::TOTAL_MEM,
            FeatureId::CMDLINE,
            FeatureId::CLOCKID,
            FeatureId::CLOCK_DATA,
        ];
        for id in read {
            let Some(Ok(Section { value, .. })) = recording.feature(id) else {
                continue;
            };
            match value {
                Feature::Hostname(name) => machine.host = Some(text(name.text())),
                Feature::OsRelease(name) => machine.osrelease = Some(text(name.text())),
                Feature::Version(name) => machine.version = Some(text(name.text())),
                Feature::Arch(name) => machine.arch = Some(text(name.text())),
                Feature::CpuDesc(name) => machine.cpudesc = Some(text(name.text())),
                Feature::CpuId(name) => machine.cpuid = Some(text(name.text())),
                Feature::NrCpus(cpus) => {
                    machine.cpus_online = Some(cpus.online);
                    machine.cpus_available = Some(cpus.available);
                }
                Feature::TotalMem(size) => machine.total_mem = Some(size),
                Feature::CmdLine(words) => {
                    let words = words.iter().map(|word| text(word.text()));
                    machine.cmdline = Some(words.collect());
                }
                Feature::ClockResolution(resolution) => {
                    machine.clock_resolution = Some(resolution);
                }
                Feature::ClockData(data) => {
                    let name = data.clock.name().map(str::to_owned);
                    machine.clock_name = name.or_else(|| Some(data.clock.0.to_string()));
                }
                _ => {}
            }
        }
        machine
    }

    /// Returns the metadata of files and streams, with keys in their order.
    pub fn metadata(&self, recording: Option<&str>, symbols: bool) -> Vec<(String, String)> {
        let pair = |clock: WallClock| format!("{} {}", clock.clock, clock.wall);
        let all = [
            (SCHEMA_KEY, Some(SCHEMA_VERSION.to_owned())),
            ("perfconv.version", Some(exporter())),
            ("perfconv.recording", recording.map(str::to_owned)),
            ("perfconv.symbols", Some(symbols_text(symbols).to_owned())),
            ("perf.hostname", self.host.clone()),
            ("perf.osrelease", self.osrelease.clone()),
            ("perf.version", self.version.clone()),
            ("perf.arch", self.arch.clone()),
            ("perf.nrcpus", self.cpus_online.map(|cpus| cpus.to_string())),
            ("perf.cpudesc", self.cpudesc.clone()),
            (
                "perf.cmdline",
                self.cmdline.as_ref().map(|words| words.join(" ")),
            ),
            ("perf.clockid", self.clock_name.clone()),
            ("perf.clock_data", self.clock.map(pair)),
        ];
        let known = all
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        known.collect()
    }
}

/// Returns the version of this library.
pub(crate) fn exporter() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Returns how names were searched.
pub(crate) fn symbols_text(symbols: bool) -> &'static str {
    match symbols {
        true => "perf-rules",
        false => "none",
    }
}
