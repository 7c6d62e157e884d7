//! Feature sections and attributes.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::content::{Content, Rewrite};
use perfdata_core::feature::{
    BuildIdEntry, BuildIds, EventDesc, EventDescs, Feature, FeatureId, Section, TracingData,
};
use perfdata_core::record::CpuMode;
use perfdata_core::record::MISC_BUILD_ID_SIZE;
use perfdata_core::wire::Bounded;
use perfdata_core::{DecodeContext, Endian, Event, Recording};

use super::policy::{Action, Kept};
use super::state::State;

/// Learns the names of PMUs.
pub(super) fn learn_pmus(recording: &Recording, pmus: &mut HashMap<u32, Vec<u8>, RandomState>) {
    if let Some(Ok(Section {
        value: Feature::PmuMappings(mappings),
        ..
    })) = recording.feature(FeatureId::PMU_MAPPINGS)
    {
        let mappings = mappings.iter();
        pmus.extend(mappings.map(|mapping| (mapping.kind, mapping.name.text().to_vec())));
    }
}

impl State {
    /// Returns an event with its new attribute and IDs.
    ///
    /// # Errors
    /// The names exceed the limits of the reader.
    pub(super) fn event(&mut self, event: &Event) -> perfdata_core::Result<Event> {
        let attr = self.attr(&event.attr);
        let mut ids = event.ids.clone();
        ids.rewrite("ids", Content::Id, self);
        self.failed()?;
        Ok(Event { attr, ids })
    }

    /// Returns the section of a feature with new values; nothing if no rule allows it, or it cannot
    /// be read.
    ///
    /// # Errors
    /// The names exceed the limits of the reader.
    pub(super) fn section(
        &mut self,
        id: FeatureId,
        bytes: &[u8],
        endian: Endian,
        recording: &Recording,
    ) -> perfdata_core::Result<Option<Vec<u8>>> {
        let content = id.info().map_or(Content::Unknown, |info| info.content);
        if self.policy.action(content) == Action::Remove
            || (id == FeatureId::BRANCH_STACK && self.removes_branches())
        {
            return Ok(None);
        }
        let cpus = match id {
            FeatureId::NRCPUS => 0,
            _ => recording.nr_cpus_available(),
        };
        let layout = DecodeContext::default().with_nr_cpus_available(cpus);
        let Ok(section) = Section::decode(id, bytes, endian, &layout) else {
            return Ok(None);
        };
        let mut value = match section.value {
            Feature::Unknown(_) => return Ok(None),
            Feature::EventDescs(descs) => {
                // Of other attributes, it is not known what their numbers mean.
                let is_known = |desc: &EventDesc| {
                    let mut events = recording.events.iter();
                    recording.events.is_empty() || events.any(|event| event.attr == desc.attr.0)
                };
                if !descs.events.iter().all(is_known) {
                    return Ok(None);
                }
                Feature::EventDescs(self.descs(descs)?)
            }
            Feature::BuildIds(ids) => Feature::BuildIds(self.build_ids(ids)?),
            Feature::TracingData(data) => Feature::TracingData(self.tracing(data)?),
            value => value,
        };
        if let Feature::PmuMappings(mappings) = &mut value
            && !self.policy.keeps(Kept::Cpu)
        {
            // The others show the devices of the machine.
            let events = &recording.events;
            let is_used =
                |kind: u32| kind <= 5 || events.iter().any(|event| event.attr.kind.0 == kind);
            mappings.retain(|mapping| is_used(mapping.kind));
        }
        if !matches!(
            value,
            Feature::EventDescs(_) | Feature::BuildIds(_) | Feature::TracingData(_)
        ) {
            value.rewrite("", content, self);
        }
        self.failed()?;
        let tail = Vec::new();
        Section { id, value, tail }.encode(endian).map(Some)
    }

    /// Returns whether samples no longer have branches.
    fn removes_branches(&self) -> bool {
        self.removed_parts()
            .has(perfdata_core::attr::SampleType::BRANCH_STACK)
    }

    fn descs(&mut self, mut descs: EventDescs) -> perfdata_core::Result<EventDescs> {
        for desc in &mut descs.events.0 {
            desc.attr = Bounded(self.attr(&desc.attr));
            desc.name.rewrite("name", Content::EventName, self);
            desc.ids.rewrite("ids", Content::Id, self);
        }
        self.failed()?;
        Ok(descs)
    }

    fn build_ids(&mut self, ids: BuildIds) -> perfdata_core::Result<BuildIds> {
        let mut new = Vec::with_capacity(ids.0.len());
        for entry in ids.0 {
            let mut build_id = entry.build_id.0;
            build_id.rewrite("", Content::Fields, self);
            self.failed()?;
            let misc = entry.header.misc & (CpuMode::MASK | MISC_BUILD_ID_SIZE);
            new.extend(BuildIdEntry::new(misc, build_id));
        }
        Ok(BuildIds(new))
    }

    /// Returns tracing data with the formats of the kernel's tracepoints, and without the tables of
    /// the kernel.
    ///
    /// # Errors
    /// The names exceed the limits of the reader.
    pub(super) fn tracing(&mut self, mut data: TracingData) -> perfdata_core::Result<TracingData> {
        data.rewrite("", Content::Fields, self);
        self.failed()?;
        Ok(data)
    }
}
