//! The names in EVENT_DESC, and the EVENT_UPDATE records with the same names in a pipe.
//!
//! A record refers to its event by an ID. If there is only one event, it may have no ID: perf then
//! uses ID 0 for the first event (tools/perf/util/evlist.c, evlist__id2evsel).

use std::collections::HashMap;

use binrw::Endian;

use super::{ids_of, name_in};
use crate::feature::{Feature, FeatureId, Section};
use crate::record::{Body, EventUpdate, EventUpdateType, EventUpdateValue, RawRecord, Record};
use crate::recording::Recording;
use crate::wire::Text;

/// The names of events in EVENT_DESC.
#[derive(Debug, Clone, Default)]
pub struct DescribedNames {
    /// Each name with an ID of its event.
    list: Vec<(u64, Vec<u8>)>,
    by_id: HashMap<u64, usize>,
}

impl DescribedNames {
    /// Returns the names in the EVENT_DESC section of `recording`.
    pub fn of(recording: &Recording) -> Self {
        let mut names = Self::default();
        let Some(Ok(Section {
            value: Feature::EventDescs(descs),
            ..
        })) = recording.feature(FeatureId::EVENT_DESC)
        else {
            return names;
        };
        let by_first_id = descs.by_first_id();
        for (at, event) in recording.events.iter().enumerate() {
            let desc = descs.of_event(&by_first_id, &recording.events, at);
            let name = desc
                .map(|desc| desc.name.text())
                .filter(|name| !name.is_empty());
            if let (Some(first), Some(name)) = (ids_of(at, event).next(), name) {
                names
                    .by_id
                    .extend(ids_of(at, event).map(|id| (id, names.list.len())));
                names.list.push((first, name.to_vec()));
            }
        }
        names
    }

    /// Returns the name of the event that has the ID.
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        let (_, name) = self.list.get(*self.by_id.get(&id)?)?;
        Some(name)
    }

    /// Returns whether a record contains the name of its event in EVENT_DESC.
    pub fn has(&self, record: &RawRecord<'_>) -> bool {
        name_in(record).is_some_and(|(id, name)| self.get(id) == Some(&name))
    }

    /// Returns EVENT_UPDATE records with these names: see [`name_records`].
    pub fn records(&self, recording: &Recording) -> Vec<Vec<u8>> {
        name_records(&self.list, recording.endian)
    }
}

/// Returns EVENT_UPDATE records with these IDs and names, in the form of perf. A name that is too
/// long has no record.
pub fn name_records(names: &[(u64, Vec<u8>)], endian: Endian) -> Vec<Vec<u8>> {
    /// perf reserves the size of the largest other content, plus the size of the name.
    const EXTRA: usize = 16;
    let record = |(id, name): &(u64, Vec<u8>)| {
        let Text(mut room) = Text::padded(name, 8);
        room.resize(room.len().saturating_add(EXTRA), 0);
        let update = EventUpdateValue::Name(Text(room));
        let body = Body::EventUpdate(EventUpdate {
            kind: EventUpdateType::NAME,
            id: *id,
            update,
        });
        Record::new(body).encode(endian).ok()
    };
    names.iter().filter_map(record).collect()
}
