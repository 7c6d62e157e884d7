//! File to pipe: the parts of a file that its header points at become metadata records.
//!
//! The writer makes the records from the model; here is what else a pipe has, and what it cannot hold.

use perfdata_core::container_layout::{ContainerLayout, Slot};
use perfdata_core::feature::FeatureId;
use perfdata_core::names::DescribedNames;
use perfdata_core::read::is_metadata;
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_core::{Endian, Layout, Recording};

use super::to_file::check_ids;
use super::{CompressedRecords, Link, Requirements, Stage};
use crate::error::{Error, Result, Step};

/// Sections that a file has again when it is made from the pipe: two flags that the attributes and records tell, and
/// the places of records in the file.
const FOUND_AGAIN: [FeatureId; 3] = [FeatureId::BRANCH_STACK, FeatureId::STAT, FeatureId::AUXTRACE];

/// Puts the names of events into records, as perf does in pipes, and says what the pipe will not hold.
#[derive(Default)]
pub(super) struct ToPipe {
    /// What stands before the first record.
    first: Vec<Vec<u8>>,
    notes: Vec<String>,
    /// Sections that cannot be read.
    lost: Vec<FeatureId>,
}

impl ToPipe {
    fn send_first(&mut self, endian: Endian, next: &mut Link<'_>) -> Result<()> {
        let first = std::mem::take(&mut self.first);
        first.iter().try_for_each(|bytes| next.record(&RawRecord::first(bytes, endian, 0)?))
    }
}

impl Stage for ToPipe {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(&mut self, recording: &mut Recording, container_layout: &mut ContainerLayout) -> Result<()> {
        if let ContainerLayout::File(file) = container_layout {
            self.lost = file.lost_sections().map(|(id, _)| FeatureId(id)).collect();
        }
        for (&id, section) in &recording.features {
            let id = FeatureId(id);
            if Slot::of_feature(id, section).is_none() && !FOUND_AGAIN.contains(&id) {
                let why = if section.is_empty() { "its section is empty" } else { "no perf takes it from a pipe" };
                self.notes.push(format!("feature {id} is left out: {why}"));
            }
        }
        check_ids(&recording.events)?;
        self.first = DescribedNames::of(recording).records(recording);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        !self.first.is_empty() || is_metadata(kind)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        // In a file a record like any other, in a pipe what it cannot be read without.
        if is_metadata(record.kind) {
            Record::decode(record, &Layout::default())?;
        }
        self.send_first(record.endian, next)?;
        next.record(record)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        let lost = self.lost.iter().filter(|id| !recording.features.contains_key(&id.0));
        self.notes.extend(lost.map(|id| format!("feature {id} is left out: its section cannot be read")));
        self.send_first(recording.endian, next)
    }

    /// A reader of a pipe cannot tell where the records end: what is none is left out.
    fn unreadable(&mut self, _bytes: &[u8], _next: &mut Link<'_>) -> Result<()> {
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// A section that a pipe cannot hold can be dropped: adds this to the error.
pub(super) fn with_way_out(error: perfdata_write::Error) -> Error {
    match error {
        perfdata_write::Error::TooLarge { ref name, .. } | perfdata_write::Error::Section { ref name, .. } => {
            match FeatureId::by_name(name).or_else(|| name.parse().ok().map(FeatureId)) {
                Some(id) => Error::from(error).with_step(Step::DropFeature(id)),
                None => error.into(),
            }
        }
        other => other.into(),
    }
}
