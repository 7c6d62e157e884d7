//! What must be the same in all recordings.

use perfdata_core::attr::Attr;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{CpuMode, RecordType};
use perfdata_core::{Events, Recording};

use super::changes::{Changes, Moves};
use super::kernel::hex;
use super::survey::Survey;
use super::{Align, Merge};
use perfdata_convert::error::{Error, Result, Step};
use perfdata_convert::support::text::escaped;

/// One of the recordings.
pub(super) struct CheckedInput<'a> {
    pub(super) name: &'a str,
    pub(super) recording: &'a Recording,
    pub(super) survey: &'a Survey,
}

/// Returns the error for recordings that cannot be merged.
pub(super) fn refused(what: impl Into<String>) -> Error {
    Error::Refused(what.into())
}

/// Returns the error for two recordings that differ in `what`.
pub(super) fn differ(what: &str, a: (&str, &str), b: (&str, &str)) -> Error {
    refused(format!(
        "{what} differs: {} in {}, {} in {}",
        escaped(a.1.as_bytes()),
        a.0,
        escaped(b.1.as_bytes()),
        b.0
    ))
}

/// Checks what does not depend on times and kernels.
///
/// # Errors
/// The recordings cannot be merged.
pub(super) fn check(merge: &Merge, parts: &[CheckedInput<'_>]) -> Result<()> {
    for part in parts {
        if part.recording.events.is_empty() {
            return Err(refused(format!("{}: there are no events", part.name)));
        }
        let stat = part.recording.features.contains_key(&FeatureId::STAT);
        if let Some(kind) = part.survey.counts.or(stat.then_some(RecordType::STAT)) {
            return Err(refused(format!(
                "{}: {kind} records contain counts by the numbers of threads and CPUs in this recording, which cannot be merged",
                part.name
            )));
        }
    }
    same(parts, "sample_id_all", |part| {
        // All events of a recording agree, as perf requires.
        let attr = &part.recording.events.first()?.attr;
        Some(attr.flags.sample_id_all().to_string())
    })?;
    same(parts, "the time in records", |part| {
        Some(
            if is_timed(&part.recording.events) {
                "present"
            } else {
                "absent"
            }
            .to_owned(),
        )
    })?;
    let lacks_trailers = parts.iter().any(|part| {
        let events = &part.recording.events;
        is_timed(events)
            && events
                .first()
                .is_some_and(|event| event.attr.flags.sample_id_all() == 0)
    });
    if lacks_trailers {
        return Err(refused(
            "records other than samples have no time (sample_id_all is 0): the order of the records is not known",
        ));
    }
    same(parts, "the architecture", |part| {
        text(part.recording, FeatureId::ARCH)
    })?;
    if !merge.machines {
        same(parts, "the kernel release", |part| {
            text(part.recording, FeatureId::OSRELEASE)
        })?;
    }
    if merge.align == Align::Boot {
        same(parts, "the clock", |part| {
            Some(clock(&part.recording.events))
        })?;
    }
    check_aux_clock(merge, parts)
}

/// Checks that at most one recording has AUX data, whose decoders know only one machine and clock.
fn check_aux_clock(merge: &Merge, parts: &[CheckedInput<'_>]) -> Result<()> {
    let mut with = parts.iter().filter(|part| part.survey.has_aux);
    let Some(first) = with.next() else {
        return Ok(());
    };
    if let Some(second) = with.next() {
        return Err(refused(format!(
            "{} and {} both have AUX data: the queues of their traces cannot be told apart",
            first.name, second.name
        )));
    }
    if merge.machines || merge.align != Align::Boot {
        return Err(refused(format!(
            "{} has AUX data, whose processes, CPUs and times cannot be changed",
            first.name
        )));
    }
    same(
        parts,
        "TIME_CONV, by which AUX data are placed in time,",
        |part| part.survey.time_conv.as_deref().map(hex),
    )
}

/// Checks that nothing changes that AUX data or their description contain: the addresses of the
/// kernel, and the type of the event of the traces.
pub(super) fn check_aux(
    parts: &[CheckedInput<'_>],
    changes: &[Changes],
    moves: &[Moves],
) -> Result<()> {
    for ((part, changes), moves) in parts.iter().zip(changes).zip(moves) {
        if !part.survey.has_aux {
            continue;
        }
        if *moves != Moves::default() {
            return Err(refused(format!(
                "{} has AUX data with addresses of the kernel, which cannot be moved: name it first",
                part.name
            )));
        }
        if changes.has_other_types {
            return Err(refused(format!(
                "{} has AUX data of a PMU that has another type in {}: name it first",
                part.name,
                parts.first().map_or("", |first| first.name)
            )));
        }
    }
    Ok(())
}

/// Returns whether records have times.
pub(super) fn is_timed(events: &Events) -> bool {
    use perfdata_core::attr::SampleType;
    events
        .iter()
        .any(|event| event.attr.sample_type.has(SampleType::TIME))
}

/// Checks that a value is the same in all recordings that have it.
fn same(
    parts: &[CheckedInput<'_>],
    what: &str,
    value: impl Fn(&CheckedInput<'_>) -> Option<String>,
) -> Result<()> {
    let mut first: Option<(&str, String)> = None;
    for part in parts {
        let Some(value) = value(part) else {
            continue;
        };
        match &first {
            None => first = Some((part.name, value)),
            Some((_, known)) if *known == value => {}
            Some((name, known)) => {
                return Err(differ(what, (name, known), (part.name, &value)));
            }
        }
    }
    Ok(())
}

/// Returns the text of a feature.
pub(super) fn text(recording: &Recording, id: FeatureId) -> Option<String> {
    match recording.feature(id)?.ok()?.value {
        Feature::Arch(text) | Feature::OsRelease(text) | Feature::Hostname(text) => {
            Some(text.to_string())
        }
        _ => None,
    }
}

/// Returns a description of the clock that the times of the events are of.
pub(super) fn clock(events: &Events) -> String {
    let of = |attr: &Attr| match attr.flags.use_clockid() {
        0 => "perf's own".to_owned(),
        _ => {
            let id = attr.clockid.unwrap_or(0);
            let name = u32::try_from(id)
                .ok()
                .and_then(|id| perfdata_core::feature::ClockId(id).name());
            name.map_or_else(|| id.to_string(), str::to_owned)
        }
    };
    let mut all: Vec<String> = events.iter().map(|event| of(&event.attr)).collect();
    all.dedup();
    all.join(" and ")
}

/// Returns the offset of the wall clock from the recording's clock in nanoseconds.
///
/// # Errors
/// The recording has no CLOCK_DATA, or only zeros, as `perf stat record` writes them.
pub(super) fn wall_offset(part: &CheckedInput<'_>) -> Result<i128> {
    match part.recording.feature(FeatureId::CLOCK_DATA) {
        Some(Ok(Section {
            value: Feature::ClockData(data),
            ..
        })) if (data.wall_clock, data.clock_time) != (0, 0) => Ok(i128::from(data.wall_clock).saturating_sub(data.clock_time.into())),
        _ => Err(refused(format!(
            "{}: there is no CLOCK_DATA, which perf record writes only for a selected clock (-k): the time of day is not known",
            part.name
        ))
        .with_step(Step::InOrder)),
    }
}

/// Returns whether the times of the events are the time of day, which is the same on all machines.
pub(super) fn is_wall_clock(events: &Events) -> bool {
    events.iter().all(|event| {
        event.attr.flags.use_clockid() != 0 && matches!(event.attr.clockid, Some(0 | 11))
    })
}

/// Returns the name of an object with a CPU mode that the kernel or its modules have.
pub(super) fn is_of_kernel(misc: u16) -> bool {
    CpuMode::of(misc) == CpuMode::KERNEL
}
