//! The first pass over a recording: its mappings, and its first moment.

use std::sync::Arc;

use perfdata_core::Recording;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::Limits;
use perfdata_core::record::{Body, CpuMode, Ksymbol, RawRecord, Record, RecordType, is_moment};
use perfdata_core::wire::until_nul;
use perfdata_session::{DsoKind, Mapped};

use super::addresses::{Addresses, Identity, Space};
use super::key::{Domain, Key};
use super::names::Tracepoints;
use super::state::{State, space_of};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::{Extent, InputSource};

/// Reads an input to its end.
///
/// # Errors
/// The input cannot be read or decompressed, or only once; or its mappings exceed the limits.
pub(super) fn read(source: &InputSource, recording: &Recording, state: &mut State) -> Result<()> {
    let mut survey = Survey {
        limits: source.limits(),
        state,
        has_formats: false,
        known: None,
        time_place: None,
        first: None,
        addresses: Addresses::default(),
    };
    survey.learn(recording);
    let is_read = source.each_extent_of(recording, extent, |raw, now| survey.see(raw, now))?;
    if !is_read {
        let what = "an input that cannot be read twice cannot be sanitized";
        return Err(Error::Refused(what.into()));
    }
    let (first, mut addresses) = (survey.first, survey.addresses);
    addresses.settle(&state.names.key().clone());
    state.first = first;
    state.addresses = Arc::new(addresses);
    state.has_looked_ahead = true;
    Ok(())
}

/// Returns what the survey needs of the records of a type: of samples only the time, which is one
/// of the first words.
fn extent(kind: RecordType) -> Extent {
    match kind {
        RecordType::SAMPLE => Extent::Head,
        _ => Extent::Whole,
    }
}

/// What was seen so far.
struct Survey<'a> {
    limits: Limits,
    state: &'a mut State,
    has_formats: bool,
    /// Number of events and of features that are known.
    known: Option<(usize, usize)>,
    /// Where all samples have their time.
    time_place: Option<usize>,
    first: Option<u64>,
    addresses: Addresses,
}

impl Survey<'_> {
    /// Learns what `now` has in addition to what is known.
    fn learn(&mut self, now: &Recording) {
        let known = (now.events.len(), now.features.len());
        if self.known.replace(known) != Some(known) {
            self.has_formats = self.has_formats || learn_tracepoints(now, self.state);
            self.time_place = now.events.time_place();
        }
    }

    #[inline]
    fn see(&mut self, raw: &RawRecord<'_>, now: &Recording) -> Result<()> {
        if self.known != Some((now.events.len(), now.features.len())) {
            self.learn(now);
        }
        if raw.kind == RecordType::SAMPLE
            && let Some(place) = self.time_place
        {
            self.time(raw.word(place));
            return Ok(());
        }
        self.other(raw, now)
    }

    fn time(&mut self, time: Option<u64>) {
        if let Some(time) = time.filter(|&time| is_moment(time)) {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
        }
    }

    fn other(&mut self, raw: &RawRecord<'_>, now: &Recording) -> Result<()> {
        let time = match now.events.time(raw) {
            None => time_in_body(raw, now)?,
            time => time,
        };
        self.time(time);
        if matches!(
            raw.kind,
            RecordType::MMAP | RecordType::MMAP2 | RecordType::KSYMBOL
        ) {
            let record = Record::decode(raw, &now.events.layout_of(raw))?;
            add(&record, self.state.names.key(), &mut self.addresses);
            self.limits
                .check_metadata("mappings", self.addresses.held() as u64)
                .map_err(|error| error.at(raw.offset))?;
        }
        Ok(())
    }
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
fn add(record: &Record, key: &Key, addresses: &mut Addresses) {
    let mode = CpuMode::of(record.misc);
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
            return addresses.add(Space::Kernel, *addr..end, what);
        }
        _ => return,
    };
    let range = mapped.start..mapped.end;
    let kind = mapped.dso.kind;
    if kind == DsoKind::Kernel && mode == CpuMode::KERNEL {
        return addresses.add_image(range);
    }
    let what = || Identity {
        name: key.number_of(Domain::Mapping, mapped.dso.name),
        offset: match kind {
            // An address.
            DsoKind::Anonymous | DsoKind::Kernel => 0,
            _ => mapped.pgoff,
        },
    };
    addresses.add(space_of(mode), range, what);
}
