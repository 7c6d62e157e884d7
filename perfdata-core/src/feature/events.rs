//! Events: names, groups, AUX data.

use std::collections::HashMap;

use crate::attr::Attr;
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Style, WireSize};
use crate::recording::Events;
use crate::wire::{Bounded, ContextList, HeaderString, List, elements, wire};

wire! {
    /// One event.
    pub struct EventDesc(layout) {
        /// Attribute.
        #[br(args(u64::from(layout.attr_room), layout))]
        pub attr: Bounded<Attr>,
        /// Number of IDs.
        pub nr_ids: u32 => Number,
        /// Name, as on the command line.
        pub name: HeaderString => EventName,
        /// IDs, one for each CPU and task for which the event was opened.
        #[br(args(u64::from(nr_ids)))]
        pub ids: List<u64> as Id,
    }
}

wire! {
    /// Events with names and IDs, in the order of the recording's attributes.
    pub struct EventDescs {
        /// Number of events.
        pub nr: u32 => Number,
        /// Size of each attribute in bytes.
        pub attr_size: u32 => Number,
        /// The events.
        #[br(args(u64::from(nr), DecodeContext { attr_room: attr_size, ..DecodeContext::default() }))]
        pub events: ContextList<EventDesc>,
    }
}

impl EventDescs {
    /// Returns the index of each entry, keyed by the first ID of the entry.
    pub fn by_first_id(&self) -> HashMap<u64, usize> {
        let mut places = HashMap::new();
        for (at, desc) in self.events.iter().enumerate() {
            if let Some(&id) = desc.ids.first() {
                places.entry(id).or_insert(at);
            }
        }
        places
    }

    /// Returns the entry of the event at index `at` of a recording: the entry at the same index,
    /// unless its IDs belong to another event; otherwise the first entry whose first ID is an ID of
    /// the event. [`by_first_id`](Self::by_first_id) returns the map for this search.
    pub fn of_event(
        &self,
        by_first_id: &HashMap<u64, usize>,
        events: &Events,
        at: usize,
    ) -> Option<&EventDesc> {
        let event = events.get(at)?;
        let is_owner = |id: &u64| events.of_id_strict(*id) == Some(at);
        let is_its = |desc: &&EventDesc| match (desc.ids.first(), event.ids.first()) {
            (Some(id), Some(first)) => id == first || is_owner(id),
            _ => true,
        };
        self.events.get(at).filter(is_its).or_else(|| {
            let places = event
                .ids
                .iter()
                .filter(|&id| is_owner(id))
                .filter_map(|id| by_first_id.get(id));
            self.events.get(*places.min()?)
        })
    }

    /// Returns the section for events with these attributes, names and IDs; `None` if the
    /// attributes differ in size or there are too many.
    pub fn new(events: Vec<(Attr, HeaderString, Vec<u64>)>) -> Option<Self> {
        let size = |attr: &Attr| {
            let mut size = WireSize::default();
            attr.describe("", Style::Plain, &mut size);
            u32::try_from(size.0).ok()
        };
        let attr_size = events.first().map_or(Some(0), |(attr, ..)| size(attr))?;
        let nr = u32::try_from(events.len()).ok()?;
        let events = events.into_iter().map(|(attr, name, ids)| {
            let same_size = size(&attr) == Some(attr_size);
            let nr_ids = u32::try_from(ids.len()).ok()?;
            same_size.then_some(EventDesc {
                attr: Bounded(attr),
                nr_ids,
                name,
                ids: List(ids),
            })
        });
        Some(EventDescs {
            nr,
            attr_size,
            events: ContextList(events.collect::<Option<_>>()?),
        })
    }
}

wire! {
    /// A group of events: the leader and the events that follow it.
    pub struct GroupDesc {
        /// Name, or `{anon_group}`.
        pub name: HeaderString => EventName,
        /// Index of the leader in the recording's attributes, from 0.
        pub leader_idx: u32 => Number,
        /// Number of events including the leader.
        pub nr_members: u32 => Number,
    }
}

wire! {
    /// An AUXTRACE record in this file.
    pub struct AuxtraceIndexEntry {
        /// Offset of the record in the file, in bytes.
        pub file_offset: u64 as Hex => Number,
        /// Size of the record in bytes, without the AUX data that follows it: 48.
        pub size: u64 => Number,
    }
}

elements!(GroupDesc, AuxtraceIndexEntry);
