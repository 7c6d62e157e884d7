//! Everything about build ids that one walk over a recording tells.

use std::collections::HashSet;

use perfdata_core::arrangement::Arrangement;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::read::{Collector, Stretch};
use perfdata_core::record::{Body, BuildId, CpuMode, RawRecord, Record, RecordType};
use perfdata_core::{Events, Recording};

use super::hits::{Hits, Select};
use super::objects::{Kind, Machine, Object};
use crate::error::Result;

/// Watches a recording go by.
#[derive(Debug)]
pub struct Watch {
    hits: Hits,
    /// The model, with the metadata that came so far.
    model: Recording,
    /// In a pipe metadata are records.
    collector: Option<Collector>,
    told: HashSet<(Machine, bool, Vec<u8>)>,
}

/// What the walk told.
#[derive(Debug)]
pub struct Seen {
    objects: Vec<Object>,
    told: HashSet<(Machine, bool, Vec<u8>)>,
}

impl Watch {
    /// A walk over `recording`, in the container that `arrangement` tells, which looks for the objects that `select`
    /// says.
    ///
    /// # Errors
    /// A BUILD_ID section that cannot be read.
    pub fn new(select: Select, recording: &Recording, arrangement: &Arrangement) -> Result<Self> {
        let mut told = HashSet::new();
        if let Some(section) = recording.feature(FeatureId::BUILD_ID)
            && let Section { value: Feature::BuildIds(ids), .. } = section?
        {
            told.extend(ids.0.iter().map(|entry| told_by(entry.header.misc, &entry.build_id)));
        }
        let collector = matches!(arrangement, Arrangement::Pipe(_)).then(Collector::behind_head);
        Ok(Watch { hits: Hits::new(select, recording.limits), model: recording.clone(), collector, told })
    }

    /// Looks at a stretch of the stream.
    ///
    /// # Errors
    /// A record that cannot be read, though it must be.
    pub fn stretch(&mut self, stretch: &Stretch<'_>) -> Result<()> {
        if let Some(collector) = &mut self.collector {
            collector.stretch(&mut self.model, stretch)?;
        }
        let Stretch::Records(run) = stretch else { return Ok(()) };
        let events = &self.model.events;
        for record in run.iter() {
            if record.kind == RecordType::HEADER_BUILD_ID {
                self.told.extend(told_by_record(&record, events)?);
            }
            self.hits.see(&record, &self.model, events)?;
        }
        Ok(())
    }

    /// The events whose records these are.
    pub fn events(&self) -> &Events {
        &self.model.events
    }

    /// The recording as far as it went by.
    pub fn model(&self) -> &Recording {
        &self.model
    }

    /// The end of the walk.
    ///
    /// # Errors
    /// More is mapped than the limits grant.
    pub fn finish(self) -> Result<Seen> {
        Ok(Seen { objects: self.hits.finish()?, told: self.told })
    }
}

impl Seen {
    /// The objects that were asked for and have no build id in the recording's table, the kernels first.
    pub fn wanted(&self) -> Vec<&Object> {
        let is_told =
            |object: &Object| self.told.contains(&(object.machine, is_kernel(object.cpu_mode()), object.name.clone()));
        let mut wanted: Vec<_> = self.objects.iter().filter(|object| object.wanted && !is_told(object)).collect();
        wanted.sort_by_key(|object| (object.machine, object.kind.min(Kind::Vdso)));
        wanted
    }

    /// The names of the objects that were asked for.
    pub fn names(&self) -> HashSet<(Machine, Vec<u8>)> {
        let wanted = self.objects.iter().filter(|object| object.wanted);
        wanted.map(|object| (object.machine, object.name.clone())).collect()
    }
}

fn is_kernel(mode: CpuMode) -> bool {
    matches!(mode, CpuMode::KERNEL | CpuMode::GUEST_KERNEL)
}

/// What an entry names. Before 2.6.35 entries did not say of which machine, but the mode does.
fn told_by(misc: u16, entry: &BuildId) -> (Machine, bool, Vec<u8>) {
    let mode = CpuMode::of(misc);
    let is_guest = matches!(mode, CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER);
    let machine = match entry.pid {
        Some(pid) => Machine(pid),
        None if is_guest => Machine::DEFAULT_GUEST,
        None => Machine::HOST,
    };
    (machine, is_kernel(mode), entry.filename.text().to_vec())
}

fn told_by_record(record: &RawRecord<'_>, events: &Events) -> Result<Option<(Machine, bool, Vec<u8>)>> {
    let decoded = Record::decode(record, &events.layout_of(record))?;
    Ok(match decoded.body {
        Body::HeaderBuildId(entry) => Some(told_by(decoded.misc, &entry)),
        _ => None,
    })
}
