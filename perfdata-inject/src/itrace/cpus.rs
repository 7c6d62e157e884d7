//! What AUXTRACE_INFO says of the CPUs of a trace of Arm SPE.

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{
    ArmSpeContent, AuxtraceInfo, AuxtracePrivate, AuxtraceType, SpeUnit, TraceUnitParams,
};

use super::data_source::{CpuSources, Encoding};
use super::tasks::NONE;
use perfdata_convert::error::{Error, Result};

/// What AUXTRACE_INFO says of the CPUs.
#[derive(Debug, Clone, Default)]
pub(super) enum Cpus {
    /// All CPUs are the same.
    Same(CpuSources),
    /// By number.
    Each(Vec<(u64, u64, CpuSources)>),
    #[default]
    Unknown,
}

/// Returns the type number of the PMU, and the CPUs, of a trace of Arm SPE.
///
/// # Errors
/// It is another trace.
pub(super) fn spe(info: &AuxtraceInfo, recording: &Recording) -> Result<(u64, Cpus)> {
    let other = |why: &str| {
        Err(Error::Refused(format!(
            "--itrace decodes Intel PT, Intel BTS and Arm SPE, and this is a trace of {}: {why}",
            info.kind
        )))
    };
    match &info.private {
        AuxtracePrivate::ArmSpe1(v1) => {
            let midr = match recording.feature(FeatureId::CPUID) {
                Some(Ok(Section {
                    value: Feature::CpuId(text),
                    ..
                })) => midr_of_cpuid(text.text()),
                _ => None,
            };
            let cpus = midr.map_or(Cpus::Unknown, |midr| {
                Cpus::Same(CpuSources {
                    encoding: Encoding::of_midr(midr),
                    reports_snoops: false,
                })
            });
            Ok((v1.pmu_type, cpus))
        }
        AuxtracePrivate::ArmSpe(spe) => match &spe.content {
            ArmSpeContent::V2(v2) => {
                let unit = |unit: &perfdata_core::record::TraceUnit| match &unit.params {
                    TraceUnitParams::ArmSpe(spe) => Some((unit.cpu, spe.midr, sources(spe))),
                    _ => None,
                };
                Ok((
                    v2.pmu_type,
                    Cpus::Each(v2.units.iter().filter_map(unit).collect()),
                ))
            }
            _ => other("its AUXTRACE_INFO record has an unknown version"),
        },
        _ => match info.kind {
            AuxtraceType::CS_ETM => {
                other("its decoder needs the code of all recorded programs; use perf inject")
            }
            _ => other("use perf inject, or perfconv extract-aux for the raw data"),
        },
    }
}

fn sources(unit: &SpeUnit) -> CpuSources {
    let snooped = perfdata_core::arm_spe::SpeEvents::SNOOPED.0;
    CpuSources {
        encoding: Encoding::of_midr(unit.midr),
        reports_snoops: unit
            .event_filter
            .is_some_and(|events| events & snooped != 0),
    }
}

/// Returns the main ID register, which is the feature CPUID of arm64 in hexadecimal digits.
fn midr_of_cpuid(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, 16).ok()
}

impl Cpus {
    pub(super) fn sources(&self, cpu: u32) -> CpuSources {
        match self {
            Cpus::Same(sources) => *sources,
            Cpus::Each(units) if cpu == NONE => {
                // Without a CPU, all must be the same.
                let mut units = units.iter();
                let first = units.next();
                let is_same = |(_, midr, _): &(u64, u64, CpuSources)| {
                    first.is_some_and(|(_, first, _)| first == midr)
                };
                match first {
                    Some((.., sources)) if units.all(is_same) => *sources,
                    _ => CpuSources::default(),
                }
            }
            Cpus::Each(units) => units
                .iter()
                .find(|(number, ..)| *number == u64::from(cpu))
                .map_or(CpuSources::default(), |(.., sources)| *sources),
            Cpus::Unknown => CpuSources::default(),
        }
    }
}
