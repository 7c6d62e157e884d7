//! Collects everything about build IDs in one pass over a recording.

use std::collections::HashSet;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::{Chunk, Collector, Limits};
use perfdata_core::record::{Body, BuildId, CpuMode, RawRecord, Record, RecordType};
use perfdata_core::{Events, Recording};
use perfdata_session::{Dso, DsoKind, Machine};

use super::hits::{Hits, Select};
use super::objects::is_kernel;
use perfdata_convert::error::Result;

/// Reads a recording in a single pass.
#[derive(Debug)]
pub struct BuildIdWatch {
    hits: Hits,
    /// The model, with the metadata so far.
    model: Recording,
    /// Whether the container is a pipe, which contains metadata as records.
    is_pipe: bool,
    collector: Option<Collector>,
    told: HashSet<(Machine, bool, Vec<u8>)>,
}

/// The result of the pass.
#[derive(Debug)]
pub struct SeenObjects {
    objects: Vec<Dso>,
    told: HashSet<(Machine, bool, Vec<u8>)>,
}

impl BuildIdWatch {
    /// Returns a pass over `recording`, in the container `container_layout`, that searches the
    /// objects in `select`.
    ///
    /// # Errors
    /// The BUILD_ID section cannot be read.
    pub fn new(
        select: Select,
        recording: &Recording,
        container_layout: &ContainerLayout,
    ) -> Result<Self> {
        let mut told = HashSet::new();
        if let Some(section) = recording.feature(FeatureId::BUILD_ID)
            && let Section {
                value: Feature::BuildIds(ids),
                ..
            } = section?
        {
            told.extend(
                ids.0
                    .iter()
                    .map(|entry| told_by(entry.header.misc, &entry.build_id)),
            );
        }
        Ok(BuildIdWatch {
            hits: Hits::new(select),
            model: recording.clone(),
            is_pipe: matches!(container_layout, ContainerLayout::Pipe(_)),
            collector: None,
            told,
        })
    }

    /// Processes a chunk of the stream. The pass stays within `limits`.
    ///
    /// # Errors
    /// A required record cannot be read.
    pub fn chunk(&mut self, chunk: &Chunk<'_>, limits: Limits) -> Result<()> {
        if self.is_pipe {
            self.collector
                .get_or_insert_with(|| Collector::behind_head(limits))
                .chunk(&mut self.model, chunk)?;
        }
        let Chunk::Records(batch) = chunk else {
            return Ok(());
        };
        let events = &self.model.events;
        for record in batch.iter() {
            if record.kind == RecordType::HEADER_BUILD_ID {
                self.told.extend(told_by_record(&record, events)?);
            }
            self.hits.see(&record, &self.model, events, limits)?;
        }
        Ok(())
    }

    /// Returns the events of the records.
    pub fn events(&self) -> &Events {
        &self.model.events
    }

    /// Returns the model of the recording so far.
    pub fn model(&self) -> &Recording {
        &self.model
    }

    /// Ends the pass.
    ///
    /// # Errors
    /// The mappings exceed the limits.
    pub fn finish(self, limits: Limits) -> Result<SeenObjects> {
        Ok(SeenObjects {
            objects: self.hits.finish(limits)?,
            told: self.told,
        })
    }
}

impl SeenObjects {
    /// Returns the wanted objects without an entry in the recording's BUILD_ID section, the kernels
    /// first.
    pub fn wanted(&self) -> Vec<&Dso> {
        let is_told = |dso: &Dso| {
            self.told
                .contains(&(dso.machine, is_kernel(dso.kind), dso.name.to_vec()))
        };
        let mut wanted: Vec<_> = self.objects.iter().filter(|dso| !is_told(dso)).collect();
        let rank = |kind| match kind {
            DsoKind::Kernel => 0,
            DsoKind::Module => 1,
            _ => 2,
        };
        wanted.sort_by_key(|dso| (dso.machine, rank(dso.kind)));
        wanted
    }

    /// Returns the names of the wanted objects.
    pub fn names(&self) -> HashSet<(Machine, Vec<u8>)> {
        self.objects
            .iter()
            .map(|dso| (dso.machine, dso.name.to_vec()))
            .collect()
    }
}

/// Returns the object of an entry.
fn told_by(misc: u16, entry: &BuildId) -> (Machine, bool, Vec<u8>) {
    let kernel = matches!(CpuMode::of(misc), CpuMode::KERNEL | CpuMode::GUEST_KERNEL);
    (
        Machine::of_build_id(entry, misc),
        kernel,
        entry.filename.text().to_vec(),
    )
}

fn told_by_record(
    record: &RawRecord<'_>,
    events: &Events,
) -> Result<Option<(Machine, bool, Vec<u8>)>> {
    let decoded = Record::decode(record, &events.layout_of(record))?;
    Ok(match decoded.body {
        Body::HeaderBuildId(entry) => Some(told_by(decoded.misc, &entry)),
        _ => None,
    })
}
