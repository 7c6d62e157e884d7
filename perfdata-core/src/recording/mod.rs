//! The model: the content of a recording, independent of its container.

mod events;

pub use events::{Event, Events};

use std::collections::BTreeMap;

use binrw::Endian;

use crate::decode_context::DecodeContext;
use crate::error::Result;
use crate::feature::{BuildIdEntry, BuildIds, Feature, FeatureId, Section};
use crate::header::Magic;
use crate::record::EventTypeName;

/// All metadata of a recording: everything except the records of events.
///
/// [`Recording::new`] makes one without content; its fields can then be set.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recording {
    /// Byte order of every number.
    pub endian: Endian,
    /// Version of the format.
    pub magic: Magic,
    /// The events, in the recorder's order.
    pub events: Events,
    /// Event names (before 3.12).
    pub event_types: Vec<EventTypeName>,
    /// Feature sections: their bytes in the recording's byte order. A map suffices, because a file
    /// orders them by number.
    pub features: BTreeMap<FeatureId, Vec<u8>>,
}

impl Recording {
    /// Returns a recording without events and features.
    pub fn new(endian: Endian) -> Self {
        Recording {
            endian,
            magic: Magic::default(),
            events: Events::default(),
            event_types: Vec::new(),
            features: BTreeMap::new(),
        }
    }

    /// Returns NRCPUS.available, which determines the form of CPU_TOPOLOGY; 0 if unknown.
    pub fn nr_cpus_available(&self) -> u32 {
        match self.feature(FeatureId::NRCPUS) {
            Some(Ok(Section {
                value: Feature::NrCpus(cpus),
                ..
            })) => cpus.available,
            _ => 0,
        }
    }

    /// Decodes the section of a feature; returns `None` if the recording does not have it.
    ///
    /// # Errors
    /// Fails if the section is corrupt. Offsets are relative to the section.
    pub fn feature(&self, id: FeatureId) -> Option<Result<Section>> {
        let bytes = self.features.get(&id)?;
        let nr_cpus_available = if id == FeatureId::NRCPUS {
            0
        } else {
            self.nr_cpus_available()
        };
        Some(Section::decode(
            id,
            bytes,
            self.endian,
            &DecodeContext {
                nr_cpus_available,
                ..DecodeContext::default()
            },
        ))
    }

    /// Adds entries to the BUILD_ID section, after those that readers find in it: the bytes after
    /// these remain, and are no entries.
    ///
    /// # Errors
    /// Fails if an entry cannot be encoded.
    pub fn add_build_ids(&mut self, entries: impl IntoIterator<Item = BuildIdEntry>) -> Result<()> {
        let mut section = match self.feature(FeatureId::BUILD_ID) {
            Some(section) => section?,
            None => Section {
                id: FeatureId::BUILD_ID,
                value: Feature::BuildIds(BuildIds::default()),
                tail: Vec::new(),
            },
        };
        if let Feature::BuildIds(BuildIds(known)) = &mut section.value {
            known.extend(entries);
        }
        let bytes = section.encode(self.endian)?;
        self.features.insert(FeatureId::BUILD_ID, bytes);
        Ok(())
    }

    /// Replaces or adds the section of a feature.
    ///
    /// # Errors
    /// Fails if the value cannot be encoded.
    pub fn set_feature(&mut self, id: FeatureId, value: Feature) -> Result<()> {
        let bytes = Section {
            id,
            value,
            tail: Vec::new(),
        }
        .encode(self.endian)?;
        self.features.insert(id, bytes);
        Ok(())
    }
}
