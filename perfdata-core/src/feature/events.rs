//! The events: their names, their groups, their AUX data.

use std::collections::HashMap;

use crate::attr::Attr;
use crate::describe::{Describe, Style, WireSize};
use crate::layout::Layout;
use crate::recording::Events;
use crate::wire::{LayoutList, List, Room, Str, elements, wire};

wire! {
    /// One event.
    pub struct EventDesc(layout) {
        /// Its attribute.
        #[br(args(u64::from(layout.attr_room), layout))]
        pub attr: Room<Attr>,
        /// Number of ids.
        pub nr_ids: u32,
        /// Its name, as on the command line.
        pub name: Str,
        /// Its ids, one for each CPU and task that it was opened for.
        #[br(args(u64::from(nr_ids)))]
        pub ids: List<u64> as Id,
    }
}

wire! {
    /// Events with names and ids, in the order of the recording's attributes.
    pub struct EventDescs {
        /// Number of events.
        pub nr: u32,
        /// Bytes of each attribute.
        pub attr_size: u32,
        /// The events.
        #[br(args(u64::from(nr), Layout { attr_room: attr_size, ..Layout::default() }))]
        pub events: LayoutList<EventDesc>,
    }
}

impl EventDescs {
    /// The entries of the events of a recording, by the events' places: that at the same place, unless its ids say
    /// otherwise, or that with an id of the event.
    pub fn by_event(&self, events: &Events) -> HashMap<usize, &EventDesc> {
        let mut found = HashMap::new();
        let owner = |desc: &EventDesc| events.with_id(*desc.ids.first()?);
        for (at, (desc, event)) in self.events.iter().zip(events.iter()).enumerate() {
            let is_same = desc.ids.first() == event.ids.first() || owner(desc) == Some(at);
            if is_same || desc.ids.is_empty() || event.ids.is_empty() {
                found.insert(at, desc);
            }
        }
        for desc in self.events.iter() {
            if let Some(at) = owner(desc) {
                found.entry(at).or_insert(desc);
            }
        }
        found
    }

    /// The section for events with these attributes, names and ids, or nothing if the attributes differ in size or
    /// there are too many.
    pub fn new(events: Vec<(Attr, Str, Vec<u64>)>) -> Option<Self> {
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
            same_size.then_some(EventDesc { attr: Room(attr), nr_ids, name, ids: List(ids) })
        });
        Some(EventDescs { nr, attr_size, events: LayoutList(events.collect::<Option<_>>()?) })
    }
}

wire! {
    /// A group of events. Its members are the leader and those that follow it.
    pub struct GroupDesc {
        /// Its name, or `{anon_group}`.
        pub name: Str,
        /// The leader's place among the recording's attributes, from 0.
        pub leader_idx: u32,
        /// Number of events with the leader.
        pub nr_members: u32,
    }
}

wire! {
    /// An AUXTRACE record in this file.
    pub struct AuxtraceIndexEntry {
        /// Offset of the record in the file in bytes.
        pub file_offset: u64 as Hex,
        /// Bytes of the record without the AUX data behind it: 48.
        pub size: u64,
    }
}

elements!(GroupDesc, AuxtraceIndexEntry);
