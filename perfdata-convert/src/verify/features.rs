//! The feature sections, and whether they are consistent with each other, with the attributes and
//! with the records.

use crate::count::number_of;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{BuildIds, Feature, FeatureId, SampleTime, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::{Event, Recording};

use super::records::{RecordChecks, SeenData};
use super::{Report, Severity, difference};

/// Checks all sections.
pub(super) fn check(
    report: &mut Report,
    recording: &Recording,
    container_layout: &ContainerLayout,
    records: &RecordChecks,
) {
    for (&id, bytes) in &recording.features {
        let in_pipe = || records.sections.get(&id).copied();
        let offset = container_layout.section_offset(id).or_else(in_pipe);
        let offset = offset.unwrap_or(0);
        let section = match recording.feature(id) {
            Some(Ok(section)) => section,
            Some(Err(error)) => {
                report.blame(&error, offset);
                continue;
            }
            None => continue,
        };
        faults(
            &section,
            bytes,
            recording,
            &records.seen,
            container_layout.container(),
            &mut |fault| match fault {
                Fault::Encoding(error) => report.blame(&error, offset),
                Fault::Bytes(meaning) => {
                    report.add(Severity::Error, offset, format!("{id}: {meaning}"))
                }
                Fault::Content(severity, meaning) => {
                    report.add(severity, offset, format!("{id}: {meaning}"))
                }
            },
        );
        if let Some(meaning) = unread_build_ids(&section) {
            report.add(Severity::Warning, offset, meaning);
        } else if !section.tail.is_empty() {
            let meaning = format!(
                "{id}: {} after the last known field",
                number_of(section.tail.len() as u64, "byte")
            );
            report.add(Severity::Note, offset, meaning);
        }
        if let Feature::Unknown(_) = section.value {
            report.add(Severity::Note, offset, format!("feature {id} is not known"));
        }
    }
}

/// Returns a note about the bytes after the entries of a BUILD_ID section, if there are any: perf
/// 6.12.0 wrote zeros after each entry, and readers stop there.
pub(crate) fn unread_build_ids(section: &Section) -> Option<String> {
    let Feature::BuildIds(BuildIds(entries)) = &section.value else {
        return None;
    };
    section.stops_early().then(|| {
        format!(
            "BUILD_ID: the last {}, after {}, are no entry: perf stops reading there, too",
            number_of(section.tail.len() as u64, "byte"),
            number_of(entries.len() as u64, "build ID")
        )
    })
}

/// Returns the sections that cannot be read, or are inconsistent with the rest of a recording in
/// this container.
pub(crate) fn wrong_sections(
    recording: &Recording,
    seen: &SeenData,
    container: ContainerKind,
) -> Vec<FeatureId> {
    let is_wrong = |(&id, bytes): (&FeatureId, &Vec<u8>)| {
        let Some(Ok(section)) = recording.feature(id) else {
            return Some(id);
        };
        let mut is_wrong = false;
        faults(&section, bytes, recording, seen, container, &mut |fault| {
            is_wrong |= !matches!(fault, Fault::Content(Severity::Warning, _));
        });
        is_wrong.then_some(id)
    };
    recording.features.iter().filter_map(is_wrong).collect()
}

/// An error in a section that can be read.
enum Fault {
    /// The section cannot be written.
    Encoding(perfdata_core::Error),
    /// The section is written with different bytes.
    Bytes(String),
    /// The section is inconsistent with the rest of the recording. This is only a warning if perf
    /// itself writes such sections.
    Content(Severity, String),
}

/// Reports all errors of a section, which consists of `bytes`, to `wrong`.
fn faults(
    section: &Section,
    bytes: &[u8],
    recording: &Recording,
    seen: &SeenData,
    container: ContainerKind,
    wrong: &mut dyn FnMut(Fault),
) {
    match section.encode(recording.endian) {
        Ok(again) => difference(bytes, &again)
            .into_iter()
            .for_each(|what| wrong(Fault::Bytes(what))),
        Err(error) => wrong(Fault::Encoding(error)),
    }
    content(
        section,
        recording,
        seen,
        container,
        &mut |severity, meaning| wrong(Fault::Content(severity, meaning)),
    );
}

/// Compares the content of a section with the rest of the recording.
fn content(
    section: &Section,
    recording: &Recording,
    seen: &SeenData,
    container: ContainerKind,
    wrong: &mut dyn FnMut(Severity, String),
) {
    use Severity::{Error, Warning};
    match &section.value {
        Feature::NrCpus(cpus) if cpus.online > cpus.available => {
            wrong(
                Error,
                format!(
                    "{} CPUs are online, {} available",
                    cpus.online, cpus.available
                ),
            );
        }
        Feature::CpuTopology(topology) => {
            let lists = topology
                .package_siblings
                .iter()
                .chain(topology.core_siblings.iter());
            check_cpus(
                lists.map(|list| list.text()),
                recording.nr_cpus_available(),
                wrong,
            );
        }
        Feature::NumaTopology(nodes) => {
            check_cpus(
                nodes.iter().map(|node| node.cpus.text()),
                recording.nr_cpus_available(),
                wrong,
            );
        }
        Feature::EventDescs(descs) => {
            let events = recording.events.len();
            if descs.events.len() != events {
                return wrong(
                    Error,
                    format!(
                        "describes {}, but the recording has {events}",
                        number_of(descs.events.len() as u64, "event")
                    ),
                );
            }
            for (at, (desc, event)) in descs.events.iter().zip(recording.events.iter()).enumerate()
            {
                if *desc.ids != event.ids {
                    wrong(
                        Error,
                        format!("event {at} has other IDs than its attribute"),
                    );
                }
                let key =
                    |attr: &perfdata_core::attr::Attr| (attr.kind, attr.config, attr.sample_type);
                if key(&desc.attr) != key(&event.attr) {
                    wrong(Error, format!("event {at} has another attribute"));
                }
            }
        }
        Feature::GroupDescs(groups) => {
            let events = recording.events.len() as u64;
            for group in groups.iter() {
                if u64::from(group.leader_idx) + u64::from(group.nr_members) > events {
                    let end = u64::from(group.leader_idx) + u64::from(group.nr_members);
                    let events = number_of(events, "event");
                    wrong(
                        Warning,
                        format!("a group ends at event {end}, but the recording has {events}"),
                    );
                }
            }
        }
        Feature::AuxtraceIndex(index) if container == ContainerKind::File => {
            if index.len() != seen.auxtrace.len() {
                wrong(
                    Error,
                    format!(
                        "the number of entries is {}, but the recording has {}",
                        index.len(),
                        number_of(seen.auxtrace.len() as u64, "AUXTRACE record")
                    ),
                );
            }
            for entry in index.iter() {
                let (offset, size) = (entry.file_offset, entry.size);
                let found = seen
                    .auxtrace
                    .binary_search_by_key(&offset, |record| record.offset)
                    .ok();
                match found
                    .and_then(|at| seen.auxtrace.get(at))
                    .map(|record| record.size)
                {
                    Some(found) if found == size => {}
                    Some(found) => wrong(
                        Error,
                        format!("the AUXTRACE record at {offset:#x} has {found} bytes, not {size}"),
                    ),
                    None => wrong(Error, format!("no AUXTRACE record is at {offset:#x}")),
                }
            }
        }
        Feature::SampleTime(said) if (said.first, said.last) != (0, 0) => {
            // For perf, a sample without a time has the largest possible time.
            let is_timeless = |event: &Event| !event.attr.sample_type.has(SampleType::TIME);
            let says_first = said.first != u64::MAX || !recording.events.iter().any(is_timeless);
            let Some(found) = &seen.times else { return };
            if (found.first < said.first && says_first) || found.last > said.last {
                // perf takes the times of the first and the last sample in the order in which it
                // read them. Buffers that are overwritten, or read late, come after the others.
                let severity = if found.first <= said.last && said.first <= found.last {
                    Warning
                } else {
                    Error
                };
                let SampleTime { first, last } = said;
                let others = format!(
                    "but the recording has samples from {} to {}",
                    found.first, found.last
                );
                wrong(
                    severity,
                    format!("samples from {first} to {last} ns, {others}"),
                );
            }
        }
        _ => {}
    }
}

/// Checks that lists of CPUs such as `0-3,8` only name CPUs that the machine can have.
fn check_cpus<'a>(
    lists: impl Iterator<Item = &'a [u8]>,
    available: u32,
    wrong: &mut dyn FnMut(Severity, String),
) {
    let numbers = lists
        .flat_map(|list| list.split(|byte| !byte.is_ascii_digit()))
        .filter_map(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            digits.parse::<u32>().ok()
        });
    if let Some(highest) = numbers.max()
        && available > 0
        && highest >= available
    {
        wrong(
            Severity::Error,
            format!("contains CPU {highest}, but NRCPUS has {available}"),
        );
    }
}
