//! The first pass over a recording: its mappings, and its first moment.

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{Body, CpuMode, Ksymbol, RawRecord, Record, RecordType, is_moment};
use perfdata_core::wire::until_nul;
use perfdata_session::{DsoKind, Mapped};

use super::addresses::{Identity, Space};
use super::key::Domain;
use super::names::Tracepoints;
use super::state::{State, space_of};
use crate::error::{Error, Result};
use crate::io::InputSource;

/// Reads an input to its end.
///
/// # Errors
/// The input cannot be read or decompressed, or only once; or its mappings exceed the limits.
pub(super) fn read(source: &InputSource, recording: &Recording, state: &mut State) -> Result<()> {
    let limits = source.limits();
    let mut has_formats = learn_tracepoints(recording, state);
    let mut first: Option<u64> = None;
    let is_read = source.each_record(recording, |raw, now| {
        if !has_formats {
            has_formats = learn_tracepoints(now, state);
        }
        let time = match now.events.time(raw) {
            None => time_in_body(raw, now)?,
            time => time,
        };
        if let Some(time) = time.filter(|&time| is_moment(time)) {
            first = Some(first.map_or(time, |first| first.min(time)));
        }
        if matches!(
            raw.kind,
            RecordType::MMAP | RecordType::MMAP2 | RecordType::KSYMBOL
        ) {
            let record = Record::decode(raw, &now.events.layout_of(raw))?;
            add(&record, state);
            limits
                .check_metadata("mappings", state.addresses.held() as u64)
                .map_err(|error| error.at(raw.offset))?;
        }
        Ok(())
    })?;
    if !is_read {
        let what = "an input that cannot be read twice cannot be sanitized";
        return Err(Error::Refused(what.into()));
    }
    state.first = first;
    state.has_looked_ahead = true;
    let key = state.names.key().clone();
    state.addresses.settle(&key);
    Ok(())
}

/// Learns which tracepoints the kernel has; returns whether the recording says it.
fn learn_tracepoints(recording: &Recording, state: &mut State) -> bool {
    if !recording.features.contains_key(&FeatureId::TRACING_DATA) {
        return false;
    }
    if let Some(Ok(Section {
        value: Feature::TracingData(data),
        ..
    })) = recording.feature(FeatureId::TRACING_DATA)
    {
        state.names.tracepoints = Tracepoints::of(&data);
    }
    true
}

/// Returns the time of a record that has no trailer.
fn time_in_body(raw: &RawRecord<'_>, now: &Recording) -> Result<Option<u64>> {
    Ok(match raw.kind {
        RecordType::FORK
        | RecordType::EXIT
        | RecordType::THROTTLE
        | RecordType::UNTHROTTLE
        | RecordType::STAT_ROUND => match Record::decode(raw, &now.events.layout_of(raw))?.body {
            Body::Fork(task) | Body::Exit(task) => Some(task.time),
            Body::Throttle(body) | Body::Unthrottle(body) => Some(body.time),
            Body::StatRound(round) => Some(round.time),
            _ => None,
        },
        _ => None,
    })
}

/// Adds the addresses that a record maps.
fn add(record: &Record, state: &mut State) {
    let mode = CpuMode::of(record.misc);
    let key = state.names.key().clone();
    let mapped = match &record.body {
        Body::Mmap(map) => Mapped::of_mmap(map, record.misc),
        Body::Mmap2(map) => Mapped::of_mmap2(map, record.misc),
        Body::Ksymbol(Ksymbol {
            addr, len, name, ..
        }) => {
            let end = addr.saturating_add(u64::from(*len));
            let what = || Identity {
                name: key.number_of(Domain::Mapping, until_nul(&name.0)),
                offset: 0,
            };
            return state.addresses.add(Space::Kernel, *addr..end, what);
        }
        _ => return,
    };
    let range = mapped.start..mapped.end;
    let kind = mapped.dso.kind;
    if kind == DsoKind::Kernel && mode == CpuMode::KERNEL {
        return state.addresses.add_image(range);
    }
    let what = || Identity {
        name: key.number_of(Domain::Mapping, mapped.dso.name),
        offset: match kind {
            // An address.
            DsoKind::Anonymous | DsoKind::Kernel => 0,
            _ => mapped.pgoff,
        },
    };
    state.addresses.add(space_of(mode), range, what);
}
