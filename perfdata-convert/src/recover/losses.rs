//! The report about losses other than records.

use perfdata_core::Recording;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::ContainerKind;
use perfdata_core::read::Losses;

use crate::count::number_of;
use crate::verify::lacks_tracing_data;

/// Reports losses other than records: missing data, and `wrong` sections.
pub(super) fn tell_losses(
    lines: &mut Vec<String>,
    lost: &Losses,
    wrong_end: Option<String>,
    wrong: &[FeatureId],
    recording: &Recording,
) {
    if lost.end_of_records {
        let unknown = || "the header does not contain the end of the records".into();
        lines.push(wrong_end.unwrap_or_else(unknown));
    }
    if lost.attrs > 0 {
        let left = recording.events.len();
        lines.push(format!(
            "{} lost, {left} left",
            number_of(lost.attrs, "attribute")
        ));
    }
    if lost.shared {
        lines.push("feature sections share bytes: they are written separately".into());
    }
    for event in &lost.ids {
        lines.push(format!("the IDs of event {event} are lost"));
    }
    if lost.event_types {
        lines.push("the names of events are lost".into());
    }
    let names = |ids: &[FeatureId]| {
        ids.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !lost.features.is_empty() {
        lines.push(format!(
            "feature sections are lost: {}",
            names(&lost.features)
        ));
    }
    if !wrong.is_empty() {
        lines.push(format!(
            "dropped inconsistent feature sections: {}",
            names(wrong)
        ));
    }
}

/// Reports missing data that perf requires.
pub(super) fn tell_missing(
    lines: &mut Vec<String>,
    recording: &Recording,
    container: ContainerKind,
) {
    if lacks_tracing_data(recording) {
        lines.push(
            "the tracing data is missing: perf shows only the common fields of tracepoints".into(),
        );
    }
    if container == ContainerKind::File && !recording.features.contains_key(&FeatureId::EVENT_DESC)
    {
        lines.push("the names of events are missing: perf derives them from the attributes".into());
    }
}
