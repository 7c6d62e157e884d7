//! The feature sections of several recordings as one.

use std::collections::BTreeSet;

use perfdata_core::feature::{ClockData, Feature, FeatureId, NrCpus, SampleTime, Section};
use perfdata_core::wire::{Counted, HeaderString};
use perfdata_core::{Events, Recording};

use super::changes::Changes;
use super::checks::{CheckedInput, refused, text};
use super::events::{UnitedEvents, described};
use super::{Align, Merge, bpf, build_ids, pmus, tracing};
use perfdata_convert::error::Result;

/// The sections about the shape of one machine, which mean nothing for several.
const TOPOLOGY: [FeatureId; 6] = [
    FeatureId::CPU_TOPOLOGY,
    FeatureId::NUMA_TOPOLOGY,
    FeatureId::CACHE,
    FeatureId::MEM_TOPOLOGY,
    FeatureId::HYBRID_TOPOLOGY,
    FeatureId::CPU_DOMAIN_INFO,
];

/// The feature sections that were united, and notes for the user.
pub(super) struct United {
    pub(super) recording: Recording,
    pub(super) notes: Vec<String>,
}

/// Unites the feature sections; `changes` are those of each recording, except the IDs.
///
/// # Errors
/// Sections contradict each other, or cannot be encoded.
pub(super) fn unite(
    merge: &Merge,
    parts: &[CheckedInput<'_>],
    events: UnitedEvents,
    changes: &[Changes],
) -> Result<United> {
    let Some(first) = parts.first() else {
        return Err(refused("there is no recording to merge"));
    };
    let mut recording = first.recording.clone();
    recording.events = events.events;
    for part in parts {
        if recording.event_types.is_empty() {
            recording
                .event_types
                .clone_from(&part.recording.event_types);
        }
    }
    let mut notes = Vec::new();
    take_first(merge, parts, &mut recording, &mut notes);
    set_or_remove(
        &mut recording,
        FeatureId::GROUP_DESC,
        (!events.groups.is_empty()).then(|| Feature::GroupDescs(Counted::from(events.groups))),
    )?;
    let has_pmus = parts.iter().any(|part| {
        part.recording
            .features
            .contains_key(&FeatureId::PMU_MAPPINGS)
    });
    if has_pmus {
        set_unless_equal(
            &mut recording,
            FeatureId::PMU_MAPPINGS,
            pmus::mappings(events.pmus),
        )?;
    }
    let descs = described(&recording, events.names);
    set_or_remove(
        &mut recording,
        FeatureId::EVENT_DESC,
        descs.map(Feature::EventDescs),
    )?;
    unite_cpus(merge, parts, &mut recording)?;
    if merge.machines {
        let names: Vec<String> = parts
            .iter()
            .map(|part| {
                text(part.recording, FeatureId::HOSTNAME).unwrap_or_else(|| "unknown".to_owned())
            })
            .collect();
        let name = HeaderString::new(names.join(",").as_bytes());
        recording.set_feature(FeatureId::HOSTNAME, Feature::Hostname(name))?;
    }
    unite_times(merge, parts, changes, &mut recording, &mut notes)?;
    tracing::unite(parts, &mut recording, &mut notes)?;
    bpf::unite(parts, changes, &mut recording)?;
    build_ids::unite(parts, changes, &mut recording, &mut notes)?;
    Ok(United { recording, notes })
}

/// Takes each section of the first recording that has it, except those that are made from all.
fn take_first(
    merge: &Merge,
    parts: &[CheckedInput<'_>],
    recording: &mut Recording,
    notes: &mut Vec<String>,
) {
    let all: BTreeSet<FeatureId> = parts
        .iter()
        .flat_map(|part| part.recording.features.keys().copied())
        .collect();
    let mut of_first = Vec::new();
    for id in all {
        let mut sections = parts
            .iter()
            .filter_map(|part| part.recording.features.get(&id));
        let Some(section) = sections.next() else {
            continue;
        };
        let is_dropped = match id {
            // They describe the container, or are indexes of it.
            FeatureId::COMPRESSED | FeatureId::AUXTRACE | FeatureId::DIR_FORMAT => true,
            id => merge.machines && TOPOLOGY.contains(&id),
        };
        if is_dropped {
            recording.features.remove(&id);
            continue;
        }
        let is_made = matches!(
            id,
            FeatureId::EVENT_DESC
                | FeatureId::GROUP_DESC
                | FeatureId::PMU_MAPPINGS
                | FeatureId::SAMPLE_TIME
                | FeatureId::CLOCK_DATA
                | FeatureId::NRCPUS
                | FeatureId::TRACING_DATA
                | FeatureId::BUILD_ID
                | FeatureId::BPF_PROG_INFO
                | FeatureId::BPF_BTF
        ) || merge.machines && id == FeatureId::HOSTNAME;
        if !is_made && sections.any(|other| other != section) {
            of_first.push(id.to_string());
        }
        recording.features.insert(id, section.clone());
    }
    if !of_first.is_empty() {
        notes.push(format!(
            "these features differ, and are those of the first recording: {}",
            of_first.join(", ")
        ));
    }
}

/// Sets a section, or removes it.
fn set_or_remove(recording: &mut Recording, id: FeatureId, value: Option<Feature>) -> Result<()> {
    match value {
        Some(value) => set_unless_equal(recording, id, value),
        None => {
            recording.features.remove(&id);
            Ok(())
        }
    }
}

/// Sets a section. A section with this content keeps its bytes.
pub(super) fn set_unless_equal(
    recording: &mut Recording,
    id: FeatureId,
    value: Feature,
) -> Result<()> {
    let is_equal = matches!(recording.feature(id), Some(Ok(section)) if section.value == value);
    if !is_equal {
        recording.set_feature(id, value)?;
    }
    Ok(())
}

/// Returns the number of CPUs of a recording.
pub(super) fn cpus_of(recording: &Recording) -> Option<NrCpus> {
    match recording.feature(FeatureId::NRCPUS) {
        Some(Ok(Section {
            value: Feature::NrCpus(cpus),
            ..
        })) => Some(cpus),
        _ => None,
    }
}

/// Raises NRCPUS, so that perf accepts all CPU numbers.
fn unite_cpus(merge: &Merge, parts: &[CheckedInput<'_>], recording: &mut Recording) -> Result<()> {
    let mut all = parts.iter().filter_map(|part| cpus_of(part.recording));
    let Some(first) = all.next() else {
        return Ok(());
    };
    let before = first.available;
    let united = all.fold(first, |a, b| {
        if merge.machines {
            NrCpus {
                available: a.available.saturating_add(b.available),
                online: a.online.saturating_add(b.online),
            }
        } else {
            NrCpus {
                available: a.available.max(b.available),
                online: a.online.max(b.online),
            }
        }
    });
    // The form of the topology depends on this number.
    if united.available != before {
        recording.features.remove(&FeatureId::CPU_TOPOLOGY);
    }
    set_unless_equal(recording, FeatureId::NRCPUS, Feature::NrCpus(united))
}

/// Updates the sections with times.
fn unite_times(
    merge: &Merge,
    parts: &[CheckedInput<'_>],
    changes: &[Changes],
    recording: &mut Recording,
    notes: &mut Vec<String>,
) -> Result<()> {
    let ranges = parts.iter().zip(changes).filter_map(|(part, change)| {
        let (first, last) = part.survey.samples?;
        Some((change.time_of(first), change.time_of(last)))
    });
    let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let has_times = |part: &CheckedInput<'_>| {
        part.recording
            .features
            .contains_key(&FeatureId::SAMPLE_TIME)
    };
    if let Some((first, last)) = range.filter(|_| parts.iter().any(has_times)) {
        let times = Feature::SampleTime(SampleTime { first, last });
        set_unless_equal(recording, FeatureId::SAMPLE_TIME, times)?;
    }
    if merge.align == Align::After {
        if recording.features.remove(&FeatureId::CLOCK_DATA).is_some() {
            notes.push(
                "CLOCK_DATA is left out: the times of the second recording are no longer those of a clock"
                    .into(),
            );
        }
        return Ok(());
    }
    let moved = changes.first().map_or(0, |change| change.time);
    if let Some(Ok(Section {
        value: Feature::ClockData(data),
        ..
    })) = recording.feature(FeatureId::CLOCK_DATA)
        && moved != 0
    {
        let clock_time = i128::from(data.clock_time).saturating_add(moved).max(0);
        let data = ClockData {
            clock_time: u64::try_from(clock_time).unwrap_or(u64::MAX),
            ..data
        };
        recording.set_feature(FeatureId::CLOCK_DATA, Feature::ClockData(data))?;
    }
    Ok(())
}

/// Returns whether any event is a tracepoint or has raw data.
pub(super) fn has_raw(events: &Events) -> bool {
    events.iter().any(|event| {
        event
            .attr
            .sample_type
            .has(perfdata_core::attr::SampleType::RAW)
    })
}
