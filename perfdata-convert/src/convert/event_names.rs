//! Names of events, which a file has in its EVENT_DESC section, and a pipe in EVENT_UPDATE records, too: perf takes
//! those of the section only for events that it has not yet given a name of its own.
//!
//! A record says by an id whose name it has. An only event may have none: perf takes 0 for the first event then
//! (tools/perf/util/evlist.c, evlist__id2evsel).

use std::collections::HashMap;

use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{Body, EventUpdate, EventUpdateType, EventUpdateValue, RawRecord, Record, RecordType};
use perfdata_core::wire::Text;
use perfdata_core::{Event, Layout, Recording};

/// The names that EVENT_DESC gives to the events.
#[derive(Debug, Clone, Default)]
pub(crate) struct DescribedNames {
    /// Each with an id of its event.
    list: Vec<(u64, Vec<u8>)>,
    by_id: HashMap<u64, usize>,
}

impl DescribedNames {
    /// Those of `recording`.
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut names = Self::default();
        let Some(Ok(Section { value: Feature::EventDescs(descs), .. })) = recording.feature(FeatureId::EVENT_DESC)
        else {
            return names;
        };
        let by_first_id = descs.by_first_id();
        for (at, event) in recording.events.iter().enumerate() {
            let desc = descs.of_event(&by_first_id, &recording.events, at);
            let name = desc.map(|desc| desc.name.text()).filter(|name| !name.is_empty());
            if let (Some(first), Some(name)) = (ids_of(at, event).next(), name) {
                names.by_id.extend(ids_of(at, event).map(|id| (id, names.list.len())));
                names.list.push((first, name.to_vec()));
            }
        }
        names
    }

    /// The name of the event that has the id.
    pub(crate) fn get(&self, id: u64) -> Option<&[u8]> {
        let (_, name) = self.list.get(*self.by_id.get(&id)?)?;
        Some(name)
    }

    /// Whether a record says a name that EVENT_DESC says.
    pub(crate) fn has(&self, record: &RawRecord<'_>) -> bool {
        name_in(record).is_some_and(|(id, name)| self.get(id) == Some(&name))
    }

    /// The EVENT_UPDATE records that say the same, in the form of perf. There is none for a name that is too long.
    pub(crate) fn records(&self, recording: &Recording) -> Vec<Vec<u8>> {
        /// perf gives a name the room of the largest other content, and its own behind that.
        const EXTRA: usize = 16;
        let record = |(id, name): &(u64, Vec<u8>)| {
            let Text(mut room) = Text::padded(name, 8);
            room.resize(room.len() + EXTRA, 0);
            let update = EventUpdateValue::Name(Text(room));
            let body = Body::EventUpdate(EventUpdate { kind: EventUpdateType::NAME, id: *id, update });
            let kind = RecordType::EVENT_UPDATE;
            Record { kind, misc: 0, body, tail: Vec::new(), sample_id: None }.encode(recording.endian).ok()
        };
        self.list.iter().filter_map(record).collect()
    }
}

/// The ids that mean the event at `at` of the list.
pub(crate) fn ids_of(at: usize, event: &Event) -> impl Iterator<Item = u64> {
    event.ids.iter().copied().chain((at == 0).then_some(0))
}

/// Names by the ids of events, as many as there is room for: a stream may name what it never has.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamesById {
    names: HashMap<u64, Vec<u8>>,
    bytes: usize,
}

/// About as much as an entry of the map takes.
const ENTRY: usize = 64;

impl NamesById {
    /// Bytes that are kept: perf sends no more than a name for each event.
    pub(crate) const MOST: usize = 8 << 20;

    /// Enters a name; the last one counts.
    pub(crate) fn insert(&mut self, id: u64, name: Vec<u8>) {
        self.remove(id);
        let bytes = self.bytes + name.len() + ENTRY;
        if bytes <= Self::MOST {
            self.bytes = bytes;
            self.names.insert(id, name);
        }
    }

    /// The name for the id.
    pub(crate) fn get(&self, id: u64) -> Option<&Vec<u8>> {
        self.names.get(&id)
    }

    /// Takes the name for the id out.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Vec<u8>> {
        let name = self.names.remove(&id)?;
        self.bytes -= name.len() + ENTRY;
        Some(name)
    }

    /// Whether there is no name.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The event id and the name in an EVENT_UPDATE record.
pub(crate) fn name_in(record: &RawRecord<'_>) -> Option<(u64, Vec<u8>)> {
    if record.kind != RecordType::EVENT_UPDATE {
        return None;
    }
    match Record::decode(record, &Layout::default()).ok()?.body {
        Body::EventUpdate(EventUpdate { id, update: EventUpdateValue::Name(name), .. }) => {
            Some((id, name.text().to_vec()))
        }
        _ => None,
    }
}
