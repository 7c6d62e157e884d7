//! Missing feature sections of another recording of the same machine, or of this machine:
//! `--features-from`.
//!
//! A killed recording has no sections, and a stream may have none. Most of them describe the machine,
//! and another recording of it has them: the formats of tracepoints, the PMUs, the topology. Nothing
//! is taken that contradicts what the recording says.

mod evidence;
mod system;

use std::path::Path;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::{EventDescs, Feature, FeatureId};
use perfdata_core::names::name_in;
use perfdata_core::read::Limits;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::wire::HeaderString;
use perfdata_core::{Endian, Recording};
use perfdata_tracepoint::{Formats, Like};

use super::tracepoint_formats::{has_only_common_formats, is_made_name};
use crate::error::Result;
use crate::io::{Input, InputSource};
use crate::pipeline::opened;
use crate::pipeline::{CompressedRecords, Link, ReadsAhead, Requirements, Stage};
use crate::verify::lacks_tracing_data;
use evidence::{Evidence, Tracepoint, refused};

/// The sections that describe a machine, and are the same in all recordings of it.
const OF_MACHINE: [FeatureId; 16] = [
    FeatureId::HOSTNAME,
    FeatureId::OSRELEASE,
    FeatureId::ARCH,
    FeatureId::NRCPUS,
    FeatureId::CPUDESC,
    FeatureId::CPUID,
    FeatureId::TOTAL_MEM,
    FeatureId::CPU_TOPOLOGY,
    FeatureId::NUMA_TOPOLOGY,
    FeatureId::PMU_MAPPINGS,
    FeatureId::CACHE,
    FeatureId::MEM_TOPOLOGY,
    FeatureId::CPU_PMU_CAPS,
    FeatureId::HYBRID_TOPOLOGY,
    FeatureId::PMU_CAPS,
    FeatureId::CPU_DOMAIN_INFO,
];

/// Where sections are taken from.
enum Donor {
    /// A recording, with its name.
    Recording(String, Box<Recording>, Box<Evidence>),
    /// This machine.
    System,
}

/// Adds missing sections.
pub struct FeaturesFrom {
    donor: Donor,
    /// The sections to add, and EVENT_DESC with new names.
    sections: Vec<(FeatureId, Feature)>,
    added: Vec<FeatureId>,
}

impl FeaturesFrom {
    /// Returns a stage that takes sections from the recording `path`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn recording(path: &Path, limits: Limits) -> Result<Self> {
        let (source, recording) = opened(Input::open(path)?.limited_by(limits))?;
        let evidence = Evidence::of(&source, &recording)?;
        Ok(FeaturesFrom::of(Donor::Recording(
            path.display().to_string(),
            Box::new(recording),
            Box::new(evidence),
        )))
    }

    /// Returns a stage that takes sections from this machine.
    pub fn system() -> Self {
        FeaturesFrom::of(Donor::System)
    }

    fn of(donor: Donor) -> Self {
        FeaturesFrom {
            donor,
            sections: Vec::new(),
            added: Vec::new(),
        }
    }

    fn name(&self) -> &str {
        match &self.donor {
            Donor::Recording(name, ..) => name,
            Donor::System => "this machine",
        }
    }

    /// Decides what is added to `recording`, whose records say `evidence`.
    fn plan(&mut self, recording: &Recording, evidence: &Evidence) -> Result<()> {
        let name = self.name().to_owned();
        let tracepoints = match lacks_formats(recording) {
            true => evidence.tracepoints(recording),
            false => Vec::new(),
        };
        let of_system;
        let (donor, of_donor) = match &self.donor {
            Donor::Recording(_, donor, evidence) => (&**donor, &**evidence),
            Donor::System => {
                of_system = system::recording(&tracepoints)?;
                (&of_system.0, &of_system.1)
            }
        };
        if donor.endian != recording.endian {
            let order = |endian| match endian {
                Endian::Little => "little-endian",
                Endian::Big => "big-endian",
            };
            let (own, others) = (order(recording.endian), order(donor.endian));
            return Err(refused(
                &name,
                &format!("it is {others}, and the recording {own}"),
            ));
        }
        for id in OF_MACHINE {
            evidence::check_equal(&name, id, recording, donor)?;
        }
        evidence.check(recording, &name, donor, of_donor)?;
        if matches!(self.donor, Donor::System)
            && !evidence.is_same_kernel(recording, donor, of_donor)
        {
            return Err(refused(
                &name,
                "nothing in the recording tells that this kernel made it: use another recording \
                 of the machine that made it",
            ));
        }
        let mut sections = Vec::new();
        for id in OF_MACHINE
            .into_iter()
            .filter(|id| is_missing(recording, *id))
        {
            if let Some(section) = donor.feature(id) {
                sections.push((id, section?.value));
            }
        }
        if !tracepoints.is_empty() {
            let formats = Formats::of(donor, Like::default());
            let formats = formats.ok_or_else(|| {
                let what = "it has no TRACING_DATA, which the tracepoints of the recording need";
                refused(&name, what)
            })?;
            if lacks_formats(donor) {
                let what = "its formats have only the common fields of tracepoints";
                return Err(refused(&name, what));
            }
            evidence::check_formats(&name, &formats, &tracepoints)?;
            if let Some(section) = donor.feature(FeatureId::TRACING_DATA) {
                sections.push((FeatureId::TRACING_DATA, section?.value));
            }
            let descs = renamed(recording, &formats);
            sections.extend(descs.map(|descs| (FeatureId::EVENT_DESC, Feature::EventDescs(descs))));
        }
        self.sections = sections;
        Ok(())
    }
}

/// Returns whether a section is missing, or says nothing: [`FileFeatures`](super::file_features)
/// writes an empty HOSTNAME.
fn is_missing(recording: &Recording, id: FeatureId) -> bool {
    match recording.feature(id) {
        None => true,
        Some(Ok(section)) => {
            matches!(section.value, Feature::Hostname(host) if host.text().is_empty())
        }
        Some(Err(_)) => false,
    }
}

/// Returns whether the true formats of tracepoints are missing.
fn lacks_formats(recording: &Recording) -> bool {
    lacks_tracing_data(recording)
        || match recording.feature(FeatureId::TRACING_DATA) {
            Some(Ok(section)) => match &section.value {
                Feature::TracingData(data) => has_only_common_formats(data),
                _ => false,
            },
            _ => false,
        }
}

/// Returns the descriptions of the events with the names of tracepoints in `formats`, if one has a
/// name that was made of its number.
fn renamed(recording: &Recording, formats: &Formats) -> Option<EventDescs> {
    let Feature::EventDescs(descs) = recording.feature(FeatureId::EVENT_DESC)?.ok()?.value else {
        return None;
    };
    let mut is_changed = false;
    let entries = descs.events.0.iter().map(|desc| {
        let mut name = desc.name.clone();
        let is_made = Tracepoint::split(name.text()).is_none();
        if let Some(format) = formats.of_event(&desc.attr).filter(|_| is_made) {
            name = HeaderString::new(&format.event_name());
            is_changed = true;
        }
        (desc.attr.0.clone(), name, desc.ids.to_vec())
    });
    let entries = entries.collect();
    EventDescs::new(entries).filter(|_| is_changed)
}

impl Stage for FeaturesFrom {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            reads_ahead: ReadsAhead::Always,
            ..Requirements::none()
        }
    }

    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn look_ahead(&mut self, source: &InputSource, recording: &Recording) -> Result<()> {
        let evidence = Evidence::of(source, recording)?;
        self.plan(recording, &evidence)
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut ContainerLayout) -> Result<()> {
        for (id, section) in std::mem::take(&mut self.sections) {
            recording.set_feature(id, section)?;
            self.added.push(id);
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        kind == RecordType::EVENT_UPDATE && self.added.contains(&FeatureId::TRACING_DATA)
    }

    /// Drops names that were made of the number of a tracepoint: readers take those of the formats.
    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        match name_in(raw) {
            Some((_, name)) if is_made_name(&name) => Ok(()),
            _ => next.record(raw),
        }
    }

    fn notes(&self) -> Vec<String> {
        let name = self.name();
        if self.added.is_empty() {
            return vec![format!("{name} has no section that the recording lacks")];
        }
        let ids: Vec<String> = self.added.iter().map(ToString::to_string).collect();
        vec![format!("took {} from {name}", ids.join(", "))]
    }
}
