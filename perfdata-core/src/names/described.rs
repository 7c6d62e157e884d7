//! The names in EVENT_DESC, and the EVENT_UPDATE records that say the same in a pipe.
//!
//! A record says by an id whose name it has. An only event may have none: perf takes 0 for the first event then
//! (tools/perf/util/evlist.c, evlist__id2evsel).

use std::collections::HashMap;

use super::{ids_of, name_in};
use crate::feature::{Feature, FeatureId, Section};
use crate::record::{Body, EventUpdate, EventUpdateType, EventUpdateValue, RawRecord, Record, RecordType};
use crate::recording::Recording;
use crate::wire::Text;

/// The names that EVENT_DESC gives to the events.
#[derive(Debug, Clone, Default)]
pub struct DescribedNames {
    /// Each with an id of its event.
    list: Vec<(u64, Vec<u8>)>,
    by_id: HashMap<u64, usize>,
}

impl DescribedNames {
    /// The names in the EVENT_DESC section of `recording`.
    pub fn of(recording: &Recording) -> Self {
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
    pub fn get(&self, id: u64) -> Option<&[u8]> {
        let (_, name) = self.list.get(*self.by_id.get(&id)?)?;
        Some(name)
    }

    /// Whether a record says a name that EVENT_DESC says.
    pub fn has(&self, record: &RawRecord<'_>) -> bool {
        name_in(record).is_some_and(|(id, name)| self.get(id) == Some(&name))
    }

    /// The EVENT_UPDATE records that say the same, in the form of perf. There is none for a name that is too long.
    pub fn records(&self, recording: &Recording) -> Vec<Vec<u8>> {
        /// perf gives a name the room of the largest other content, and its own behind that.
        const EXTRA: usize = 16;
        let record = |(id, name): &(u64, Vec<u8>)| {
            let Text(mut room) = Text::padded(name, 8);
            room.resize(room.len().saturating_add(EXTRA), 0);
            let update = EventUpdateValue::Name(Text(room));
            let body = Body::EventUpdate(EventUpdate { kind: EventUpdateType::NAME, id: *id, update });
            let kind = RecordType::EVENT_UPDATE;
            Record { kind, misc: 0, body, tail: Vec::new(), sample_id: None }.encode(recording.endian).ok()
        };
        self.list.iter().filter_map(record).collect()
    }
}
