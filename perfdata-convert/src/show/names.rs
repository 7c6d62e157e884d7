//! Names of events: what a recording calls them, else what perf would.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::attr::{Attr, EventType, HardwareEvent, SoftwareEvent};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::is_metadata;
use perfdata_core::record::RawRecord;

use crate::convert::event_names::name_in;

/// The names of a recording's events, by their place in the list.
#[derive(Debug, Clone, Default)]
pub struct EventNames {
    names: Vec<Vec<u8>>,
    /// Names in EVENT_UPDATE records, by event id.
    updates: HashMap<u64, Vec<u8>>,
    known: bool,
}

impl EventNames {
    /// Learns what a record says of names.
    pub fn see(&mut self, record: &RawRecord<'_>) {
        if is_metadata(record.kind) {
            self.known = false;
        } else if let Some((id, name)) = name_in(record) {
            self.updates.insert(id, name);
            self.known = false;
        }
    }

    /// Brings the names up to date with `recording`.
    pub fn update(&mut self, recording: &Recording) {
        if !self.known || self.names.len() != recording.events.len() {
            self.learn(recording);
        }
    }

    /// The name of the event at `at` in the list, as of the last [`update`](Self::update).
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.names.get(at).map(Vec::as_slice)
    }

    fn learn(&mut self, recording: &Recording) {
        let descs = match recording.feature(FeatureId::EVENT_DESC) {
            Some(Ok(Section { value: Feature::EventDescs(descs), .. })) => Some(descs),
            _ => None,
        };
        let pmus = match recording.feature(FeatureId::PMU_MAPPINGS) {
            Some(Ok(Section { value: Feature::PmuMappings(pmus), .. })) => pmus.into_inner(),
            _ => Vec::new(),
        };
        let name = |at: usize, event: &perfdata_core::Event| {
            let described = descs.as_ref().and_then(|descs| descs.of_event(at, event));
            let described = described.map(|desc| desc.name.text().to_vec());
            let updated = || event.ids.iter().find_map(|id| self.updates.get(id).cloned());
            let typed = || {
                let types = recording.event_types.iter();
                let mut same = types.filter(|known| known.event_id == event.attr.config);
                same.next().map(|known| known.name.text().to_vec()).filter(|_| same.next().is_none())
            };
            let pmu = || pmus.iter().find(|pmu| pmu.kind == event.attr.kind.0).map(|pmu| pmu.name.to_string());
            described.or_else(updated).or_else(typed).unwrap_or_else(|| made_up(&event.attr, pmu()).into_bytes())
        };
        let names = recording.events.iter().enumerate().map(|(at, event)| name(at, event)).collect();
        self.names = names;
        self.known = true;
    }
}

/// A name for an event of which the recording says nothing: perf's for what the kernel counts itself, else what one
/// would write on perf's command line.
fn made_up(attr: &Attr, pmu: Option<String>) -> String {
    let known = match attr.kind {
        EventType::HARDWARE => HardwareEvent(attr.config).name(),
        EventType::SOFTWARE => SoftwareEvent(attr.config).name(),
        _ => None,
    };
    match (known, pmu) {
        (Some(name), _) => name.to_owned(),
        (None, Some(pmu)) => format!("{pmu}/config={:#x}/", attr.config),
        (None, None) => format!("{}:{:#x}", attr.kind, attr.config),
    }
}
