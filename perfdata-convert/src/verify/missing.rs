//! The feature sections that readers need, and that are missing.

use perfdata_core::attr::{EventType, SampleType};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::{ContainerKind, FileHeader};
use perfdata_core::{Event, Recording};

use super::{Report, Severity};

/// The offset of the feature bitmap in the header of a file: behind the old header.
const FEATURE_BITMAP: u64 = FileHeader::OLD_SIZE;

/// Reports missing tracing data. `sample` is the offset of the first sample.
pub(super) fn check(
    report: &mut Report,
    recording: &Recording,
    container: ContainerKind,
    sample: Option<u64>,
) {
    let is_file = container == ContainerKind::File;
    if lacks_tracing_data(recording) {
        let meaning = match is_file {
            true => "tracepoints without tracing data: perf refuses the whole file",
            false => "samples of tracepoints without tracing data: perf does not show them",
        };
        let is_refused = is_file && has_raw_data(recording);
        let at = sample.or(is_refused.then_some(FEATURE_BITMAP));
        at.into_iter()
            .for_each(|at| report.add(Severity::Warning, at, meaning));
    }
}

/// Notes which reader of a file needs a section that is missing. `sample` is the offset of the first
/// sample.
pub(super) fn note(report: &mut Report, recording: &Recording, sample: Option<u64>) {
    let has = |id| recording.features.contains_key(&id);
    let mut note = |meaning: &str| report.add(Severity::Note, FEATURE_BITMAP, meaning);
    if !has(FeatureId::HOSTNAME) {
        note("no HOSTNAME: a perf of the other byte order cannot read the feature sections");
    }
    if !has(FeatureId::EVENT_DESC) && sample.is_some() {
        note("no EVENT_DESC: hotspot shows no events");
    }
    if has(FeatureId::STAT) && has(FeatureId::EVENT_DESC) && !has(FeatureId::ARCH) {
        note("EVENT_DESC without ARCH, in counts of perf stat: hotspot does not end");
    }
}

/// Returns whether there are tracepoint events without tracing data: perf refuses such a file, and
/// does not show the samples in such a pipe.
pub(crate) fn lacks_tracing_data(recording: &Recording) -> bool {
    !recording.features.contains_key(&FeatureId::TRACING_DATA)
        && recording.events.iter().any(is_tracepoint)
}

/// Returns whether samples of tracepoints contain data that formats describe: counts of `perf stat`
/// have none, and it writes no formats.
pub(crate) fn has_raw_data(recording: &Recording) -> bool {
    let mut events = recording.events.iter();
    events.any(|event| is_tracepoint(event) && event.attr.sample_type.has(SampleType::RAW))
}

fn is_tracepoint(event: &Event) -> bool {
    event.attr.kind == EventType::TRACEPOINT
}
