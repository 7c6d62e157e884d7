//! Names of events: the name in the recording, otherwise the name that perf would use.
//!
//! A file contains the names in its EVENT_DESC section. A pipe also has EVENT_UPDATE records. perf
//! uses a name from the section only for an event that does not have a name yet.

mod described;

pub use described::{DescribedNames, name_records};

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::attr::{Attr, EventType, HardwareEvent, SoftwareEvent};
use crate::decode_context::DecodeContext;
use crate::feature::{EventDescs, Feature, FeatureId, Section};
use crate::record::{Body, EventUpdate, EventUpdateValue, RawRecord, Record, RecordType};
use crate::recording::{Event, Recording};

/// The names of a recording's events, indexed by their position in the list.
///
/// Supports a recording that grows: the cost of an update depends only on the new items, and a name
/// is composed only on request.
#[derive(Debug, Clone, Default)]
pub struct EventNames {
    /// The EVENT_DESC section, and the indexes of its entries by their first IDs.
    descs: Option<Arc<(EventDescs, HashMap<u64, usize>)>>,
    /// Names from EVENT_DESC (`described`) and from EVENT_UPDATE records (`updated`), by event
    /// index.
    described: HashMap<usize, Vec<u8>>,
    updated: HashMap<usize, Vec<u8>>,
    /// Names from EVENT_UPDATE records whose event is not known yet, by event ID.
    early: NamesById,
    /// Names from records since the last update, and their size in bytes, which is limited.
    fresh: Vec<(u64, Vec<u8>)>,
    fresh_bytes: usize,
    /// Names by `config`; `None` if several names have the same `config`.
    types: HashMap<u64, Option<Vec<u8>>>,
    /// Names of PMUs by their number.
    pmus: HashMap<u32, String>,
    /// Numbers of events, and of names by `config`, that the last update processed.
    known: (usize, usize),
    /// Whether EVENT_DESC and PMU_MAPPINGS were read and have not changed since.
    has_descs: bool,
    has_pmus: bool,
}

impl EventNames {
    /// Returns whether [`see`](Self::see) reads records of this type.
    #[inline]
    pub fn reads(kind: RecordType) -> bool {
        matches!(kind, RecordType::HEADER_FEATURE | RecordType::EVENT_UPDATE)
    }

    /// Reads names from a record. They take effect with the next [`update`](Self::update).
    #[inline]
    pub fn see(&mut self, record: &RawRecord<'_>) {
        match record.kind {
            RecordType::HEADER_FEATURE => {
                let id = record.feature();
                self.has_descs &= id != Some(FeatureId::EVENT_DESC);
                self.has_pmus &= id != Some(FeatureId::PMU_MAPPINGS);
            }
            RecordType::EVENT_UPDATE if self.fresh_bytes < NamesById::MOST => {
                self.fresh_bytes = self.fresh_bytes.saturating_add(record.bytes.len());
                self.fresh.extend(name_in(record));
            }
            _ => {}
        }
    }

    /// Updates the names from `recording`.
    pub fn update(&mut self, recording: &Recording) {
        let Recording {
            events,
            event_types,
            ..
        } = recording;
        if !std::mem::replace(&mut self.has_pmus, true) {
            self.pmus.clear();
            if let Some(Ok(Section {
                value: Feature::PmuMappings(pmus),
                ..
            })) = recording.feature(FeatureId::PMU_MAPPINGS)
            {
                for pmu in pmus.into_inner() {
                    self.pmus
                        .entry(pmu.kind)
                        .or_insert_with(|| pmu.name.to_string());
                }
            }
        }
        let has_descs = std::mem::replace(&mut self.has_descs, true);
        if !has_descs {
            self.described.clear();
            self.descs = match recording.feature(FeatureId::EVENT_DESC) {
                Some(Ok(Section {
                    value: Feature::EventDescs(descs),
                    ..
                })) => {
                    let by_first_id = descs.by_first_id();
                    Some(Arc::new((descs, by_first_id)))
                }
                _ => None,
            };
        }
        if let Some((descs, by_first_id)) = self.descs.as_deref() {
            for at in if has_descs { self.known.0 } else { 0 }..events.len() {
                let desc = descs.of_event(by_first_id, events, at);
                self.described
                    .extend(desc.map(|desc| (at, desc.name.text().to_vec())));
            }
        }
        if !self.early.is_empty() {
            for (at, event) in events.iter().enumerate().skip(self.known.0) {
                let early = ids_of(at, event)
                    .filter_map(|id| self.early.remove(id))
                    .last();
                self.updated.extend(early.map(|name| (at, name)));
            }
        }
        self.fresh_bytes = 0;
        for (id, name) in self.fresh.drain(..) {
            match events.of_id(id) {
                Some(at) => drop(self.updated.insert(at, name)),
                None => self.early.insert(id, name),
            }
        }
        for known in event_types.iter().skip(self.known.1) {
            let name = self.types.entry(known.event_id);
            name.and_modify(|name| *name = None)
                .or_insert_with(|| Some(known.name.text().to_vec()));
        }
        self.known = (events.len(), event_types.len());
    }

    /// Returns whether the recording names the event at `at`, as of the last
    /// [`update`](Self::update).
    pub fn is_named(&self, recording: &Recording, at: usize) -> bool {
        let config = recording.events.get(at).map(|event| event.attr.config);
        self.updated.contains_key(&at)
            || self.described.contains_key(&at)
            || config.is_some_and(|config| matches!(self.types.get(&config), Some(Some(_))))
    }

    /// Returns the name of the event at `at` in the list of `recording`, as of the last
    /// [`update`](Self::update).
    pub fn get(&self, recording: &Recording, at: usize) -> Option<Cow<'_, [u8]>> {
        let Event { attr, .. } = recording.events.get(at)?;
        // perf always uses a name from a record, and a name from the section only if the event does
        // not have one.
        let told = self.updated.get(&at).or_else(|| self.described.get(&at));
        let told = told.or_else(|| self.types.get(&attr.config)?.as_ref());
        Some(told.map_or_else(
            || made_up(attr, self.pmus.get(&attr.kind.0)),
            |name| Cow::Borrowed(name),
        ))
    }
}

/// Returns a name for an event that the recording does not name: perf's name for hardware and
/// software events, otherwise the event in the syntax of perf's command line.
fn made_up(attr: &Attr, pmu: Option<&String>) -> Cow<'static, [u8]> {
    let known = match attr.kind {
        EventType::HARDWARE => HardwareEvent(attr.config).name(),
        EventType::SOFTWARE => SoftwareEvent(attr.config).name(),
        _ => None,
    };
    match (known, pmu) {
        (Some(name), _) => match modifiers(attr) {
            modifiers if modifiers.is_empty() => Cow::Borrowed(name.as_bytes()),
            modifiers => Cow::Owned(format!("{name}:{modifiers}").into_bytes()),
        },
        (None, Some(pmu)) => Cow::Owned(format!("{pmu}/config={:#x}/", attr.config).into_bytes()),
        (None, None) => Cow::Owned(format!("{}:{:#x}", attr.kind, attr.config).into_bytes()),
    }
}

/// Returns the modifiers that perf appends to the name of an event that the recording does not name
/// (tools/perf/util/evsel.c, `evsel__add_modifiers`). Without other modifiers, the releases of perf
/// disagree about those for guests: 6.12 shows `cycles:HG` where 7.2 shows `cycles`, and the other
/// way round `cycles` and `cycles:H`.
fn modifiers(attr: &Attr) -> String {
    let flags = attr.flags;
    let modes = [
        (flags.exclude_kernel(), 'k'),
        (flags.exclude_user(), 'u'),
        (flags.exclude_hv(), 'h'),
    ];
    let has_modes = modes.iter().any(|(excluded, _)| *excluded != 0);
    let precision = flags.precise_ip();
    let mut text = String::new();
    if has_modes {
        let included = modes.into_iter().filter(|(excluded, _)| *excluded == 0);
        text.extend(included.map(|(_, letter)| letter));
    }
    text.extend((0..precision).map(|_| 'p'));
    let excludes_guest = flags.exclude_guest() != 0;
    let has_others = has_modes || precision != 0;
    if flags.exclude_host() != 0 || (excludes_guest && has_others) {
        let machines = [(flags.exclude_host() != 0, 'H'), (excludes_guest, 'G')];
        let included = machines.into_iter().filter(|(excluded, _)| !excluded);
        text.extend(included.map(|(_, letter)| letter));
    }
    text
}

/// Returns the IDs that identify the event at `at` in the list.
pub fn ids_of(at: usize, event: &Event) -> impl Iterator<Item = u64> {
    event.ids.iter().copied().chain((at == 0).then_some(0))
}

/// Names by event IDs. Their total size is limited, because a stream may name events that it does
/// not contain.
#[derive(Debug, Clone, Default)]
pub struct NamesById {
    names: HashMap<u64, Vec<u8>>,
    bytes: usize,
}

/// Approximate overhead of an entry of the map, in bytes.
const ENTRY: usize = 64;

impl NamesById {
    /// Maximum size of the names in bytes. perf sends at most one name for each event.
    pub const MOST: usize = 8 << 20;

    /// Inserts a name, which replaces an earlier one.
    pub fn insert(&mut self, id: u64, name: Vec<u8>) {
        self.remove(id);
        let bytes = self.bytes.saturating_add(name.len()).saturating_add(ENTRY);
        if bytes <= Self::MOST {
            self.bytes = bytes;
            self.names.insert(id, name);
        }
    }

    /// Returns the name for the ID.
    pub fn get(&self, id: u64) -> Option<&Vec<u8>> {
        self.names.get(&id)
    }

    /// Removes and returns the name for the ID.
    pub fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        let name = self.names.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(name.len().saturating_add(ENTRY));
        Some(name)
    }

    /// Returns whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Returns the event ID and the name in an EVENT_UPDATE record.
pub fn name_in(record: &RawRecord<'_>) -> Option<(u64, Vec<u8>)> {
    if record.kind != RecordType::EVENT_UPDATE {
        return None;
    }
    match Record::decode(record, &DecodeContext::default()).ok()?.body {
        Body::EventUpdate(EventUpdate {
            id,
            update: EventUpdateValue::Name(name),
            ..
        }) => Some((id, name.text().to_vec())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endian;
    use crate::record::EventUpdateType;
    use crate::wire::{HeaderString, Text, Wire};

    /// Returns a recording with one event, which EVENT_DESC calls `name`.
    fn described(name: &[u8]) -> Recording {
        let mut recording = Recording::new(Endian::Little);
        let descs = EventDescs::new(vec![(Attr::default(), HeaderString::new(name), vec![7])])
            .expect("one event");
        let section = descs.encode(Endian::Little).expect("it can be written");
        recording.features.insert(FeatureId::EVENT_DESC, section);
        recording.events = [Event {
            attr: Attr::default(),
            ids: vec![7],
        }]
        .into_iter()
        .collect();
        recording
    }

    #[test]
    fn the_name_in_a_record_counts_more_than_the_sections() {
        let recording = described(b"cycles");
        let mut names = EventNames::default();
        names.update(&recording);
        assert_eq!(names.get(&recording, 0).as_deref(), Some(&b"cycles"[..]));
        let update = EventUpdateValue::Name(Text::padded(b"cycles of mine", 8));
        let body = Body::EventUpdate(EventUpdate {
            kind: EventUpdateType::NAME,
            id: 7,
            update,
        });
        let update = Record::new(body).encode(Endian::Little);
        names.see(
            &RawRecord::first(&update.expect("it can be written"), Endian::Little, 0)
                .expect("a record"),
        );
        names.update(&recording);
        assert_eq!(
            names.get(&recording, 0).as_deref(),
            Some(&b"cycles of mine"[..])
        );
    }

    #[test]
    fn names_of_events_that_come_later_are_found() {
        let attr = Attr::default();
        let entry = |name: &str, id| (attr.clone(), HeaderString::new(name.as_bytes()), vec![id]);
        let descs =
            EventDescs::new(vec![entry("a", 1), entry("b", 3), entry("c", 2)]).expect("alike");
        let mut recording = Recording::new(Endian::Little);
        recording.features.insert(
            FeatureId::EVENT_DESC,
            descs.encode(Endian::Little).expect("it can be written"),
        );
        let mut names = EventNames::default();
        for id in 1..=3 {
            names.update(&recording);
            recording.events.push(Event {
                attr: attr.clone(),
                ids: vec![id],
            });
        }
        names.update(&recording);
        let found: Vec<_> = (0..3).filter_map(|at| names.get(&recording, at)).collect();
        assert_eq!(found, [&b"a"[..], b"c", b"b"]);
    }
}
