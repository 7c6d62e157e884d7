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

/// The releases of perf whose modifiers the name of an event has that the recording does not name.
/// They disagree about those for guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Modifiers {
    /// Those that all releases show: `cycles:u`, `cycles:uH`.
    #[default]
    All,
    /// Before 6.13, guests were excluded by default: `cycles`, and `cycles:HG` if they are not.
    Before6_13,
    /// Since 6.13, they are not: `cycles:H`, and `cycles`.
    Since6_13,
}

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
    /// Names in the section of simpleperf, by type and `config`.
    simpleperf: HashMap<(u32, u64), Vec<u8>>,
    modifiers: Modifiers,
    /// Numbers of events, and of names by `config`, that the last update processed.
    known: (usize, usize),
    /// Whether EVENT_DESC and PMU_MAPPINGS were read and have not changed since.
    has_descs: bool,
    has_pmus: bool,
}

impl EventNames {
    /// Returns the names in `recording`.
    pub fn of(recording: &Recording) -> Self {
        let mut names = EventNames::default();
        names.update(recording);
        names
    }

    /// Returns names that are composed with other modifiers.
    #[must_use]
    pub fn with_modifiers(self, modifiers: Modifiers) -> Self {
        EventNames { modifiers, ..self }
    }

    /// Returns whether records of this type may change the names: metadata and EVENT_UPDATE.
    #[inline]
    pub fn reads(kind: RecordType) -> bool {
        kind.is_metadata() || kind == RecordType::EVENT_UPDATE
    }

    /// Reads names from a record. They take effect with the next [`update`](Self::update), which is
    /// only necessary if the record may have changed names: then this method returns true.
    #[inline]
    pub fn see(&mut self, record: &RawRecord<'_>) -> bool {
        match record.kind {
            RecordType::HEADER_FEATURE => {
                let id = record.feature();
                self.has_descs &= id != Some(FeatureId::EVENT_DESC) && id != Some(META_INFO);
                self.has_pmus &= id != Some(FeatureId::PMU_MAPPINGS);
            }
            RecordType::EVENT_UPDATE if self.fresh_bytes < NamesById::MOST => {
                self.fresh_bytes = self.fresh_bytes.saturating_add(record.bytes.len());
                self.fresh.extend(name_in(record));
            }
            _ => {}
        }
        Self::reads(record.kind)
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
            self.simpleperf = simpleperf_names(recording);
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
        let simpleperf = || self.simpleperf.get(&(attr.kind.0, attr.config));
        let told = told.or_else(simpleperf);
        Some(told.map_or_else(
            || made_up(attr, self.pmus.get(&attr.kind.0), self.modifiers),
            |name| Cow::Borrowed(name),
        ))
    }
}

/// The feature in which simpleperf describes its events (system/extras/simpleperf/record_file.h,
/// `FEAT_META_INFO`): keys and values that end with NUL.
const META_INFO: FeatureId = FeatureId(129);

/// Returns the names of events in a recording of simpleperf: lines of name, type and `config`.
fn simpleperf_names(recording: &Recording) -> HashMap<(u32, u64), Vec<u8>> {
    let section = recording.features.get(&META_INFO);
    let mut texts = section
        .map_or(&[][..], |section| section.as_slice())
        .split(|&byte| byte == 0);
    let value = loop {
        match (texts.next(), texts.next()) {
            (Some(b"event_type_info"), value) => break value,
            (Some(_), Some(_)) => {}
            _ => break None,
        }
    };
    let name_of = |line: &[u8]| {
        let mut fields = std::str::from_utf8(line).ok()?.rsplitn(3, ',');
        let config = fields.next()?.parse().ok()?;
        let kind = fields.next()?.parse().ok()?;
        Some(((kind, config), fields.next()?.as_bytes().to_vec()))
    };
    let lines = value.unwrap_or_default().split(|&byte| byte == b'\n');
    lines.filter_map(name_of).collect()
}

/// Returns perf's modifiers of an event, with the colon before them (tools/perf/util/evsel.c,
/// `evsel__add_modifiers`).
fn modifiers(attr: &Attr, like: Modifiers) -> String {
    let flags = &attr.flags;
    let [kernel, user, hv] = [
        flags.exclude_kernel(),
        flags.exclude_user(),
        flags.exclude_hv(),
    ]
    .map(|excludes| excludes == 1);
    let [host, guest] = [flags.exclude_host(), flags.exclude_guest()].map(|excludes| excludes == 1);
    let mut letters = String::new();
    if kernel || user || hv {
        let modes = [(kernel, 'k'), (user, 'u'), (hv, 'h')];
        letters.extend(
            modes
                .iter()
                .filter(|(is_out, _)| !is_out)
                .map(|(_, letter)| letter),
        );
    }
    let precise = usize::try_from(flags.precise_ip()).unwrap_or(0);
    letters.push_str("ppp".get(..precise).unwrap_or_default());
    let has_others = kernel || user || hv || precise > 0;
    let are_shown = match like {
        Modifiers::All => host || guest && has_others,
        Modifiers::Before6_13 => host || guest == has_others,
        Modifiers::Since6_13 => host || guest,
    };
    if are_shown {
        let machines = [(host, 'H'), (guest, 'G')];
        letters.extend(
            machines
                .iter()
                .filter(|(is_out, _)| !is_out)
                .map(|(_, letter)| letter),
        );
    }
    match letters.is_empty() {
        true => letters,
        false => format!(":{letters}"),
    }
}

/// Returns a name for an event that the recording does not name: perf's name for hardware and
/// software events, with its modifiers, otherwise the event in the syntax of perf's command line.
fn made_up(attr: &Attr, pmu: Option<&String>, like: Modifiers) -> Cow<'static, [u8]> {
    let known = match attr.kind {
        EventType::HARDWARE => HardwareEvent(attr.config).name(),
        EventType::SOFTWARE => SoftwareEvent(attr.config).name(),
        _ => None,
    };
    match (known, pmu) {
        (Some(name), _) => match modifiers(attr, like) {
            none if none.is_empty() => Cow::Borrowed(name.as_bytes()),
            modifiers => Cow::Owned(format!("{name}{modifiers}").into_bytes()),
        },
        (None, Some(pmu)) => Cow::Owned(format!("{pmu}/config={:#x}/", attr.config).into_bytes()),
        (None, None) => Cow::Owned(format!("{}:{:#x}", attr.kind, attr.config).into_bytes()),
    }
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
        let mut names = EventNames::of(&recording);
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

    /// The names that perf 7.2 and 6.12 show for killed recordings, which have no EVENT_DESC.
    #[test]
    fn composed_names_have_modifiers() {
        type Change = fn(crate::attr::AttrFlags) -> crate::attr::AttrFlags;
        let cases: [(Change, &str, &str, &str); 5] = [
            (|flags| flags, "cycles", "cycles", "cycles:HG"),
            (
                |flags| flags.with_exclude_guest(true),
                "cycles",
                "cycles:H",
                "cycles",
            ),
            (
                |flags| flags.with_exclude_kernel(true).with_exclude_hv(true),
                "cycles:u",
                "cycles:u",
                "cycles:u",
            ),
            (
                |flags| {
                    let flags = flags.with_exclude_kernel(true).with_exclude_hv(true);
                    flags.with_exclude_guest(true)
                },
                "cycles:uH",
                "cycles:uH",
                "cycles:uH",
            ),
            (
                |flags| flags.with_precise_ip(2),
                "cycles:pp",
                "cycles:pp",
                "cycles:pp",
            ),
        ];
        for (change, all, newest, older) in cases {
            let mut recording = Recording::new(Endian::Little);
            let mut attr = Attr::default();
            attr.flags = change(attr.flags);
            recording.events = [Event { attr, ids: vec![] }].into_iter().collect();
            for (like, expected) in [
                (Modifiers::All, all),
                (Modifiers::Since6_13, newest),
                (Modifiers::Before6_13, older),
            ] {
                let mut names = EventNames::default().with_modifiers(like);
                names.update(&recording);
                let name = names.get(&recording, 0).expect("an event");
                assert_eq!(String::from_utf8_lossy(&name), expected);
            }
        }
    }

    #[test]
    fn simpleperf_names_its_events() {
        let mut recording = Recording::new(Endian::Little);
        let attr = Attr::default();
        recording.events = [Event { attr, ids: vec![] }].into_iter().collect();
        for (section, expected) in [
            (
                &b"a\0b\0event_type_info\0cpu-cycles,0,0\nx,0\n\0c\0"[..],
                "cpu-cycles",
            ),
            (b"event_type_info\0instructions,0,1\0", "cycles:HG"),
            (b"event_type_info", "cycles:HG"),
            (b"a\0event_type_info\0cpu-cycles,0,0\0", "cycles:HG"),
        ] {
            recording.features.insert(META_INFO, section.to_vec());
            let mut names = EventNames::default().with_modifiers(Modifiers::Before6_13);
            names.update(&recording);
            let name = names.get(&recording, 0).expect("an event");
            assert_eq!(String::from_utf8_lossy(&name), expected);
        }
    }
}
