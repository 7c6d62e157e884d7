//! File to pipe: the sections that the file header refers to become metadata records.
//!
//! The writer makes these records from the model. This stage handles other content of a pipe, and
//! content that a pipe cannot have.

use perfdata_core::container_layout::{ContainerLayout, Slot};
use perfdata_core::feature::FeatureId;
use perfdata_core::names::DescribedNames;
use perfdata_core::read::Chunk;
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Endian, Recording};

use super::to_file::check_ids;
use crate::error::{Error, Result, Step};
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage, each_part};

/// Sections that are restored if the pipe is converted to a file: two flags that follow from the
/// attributes and records, and the index of offsets in the file.
const FOUND_AGAIN: [FeatureId; 3] = [
    FeatureId::BRANCH_STACK,
    FeatureId::STAT,
    FeatureId::AUXTRACE,
];

/// Inserts records with the names of events, like perf in pipes, and adds notes about content that
/// the pipe cannot have.
#[derive(Default)]
pub(crate) struct ToPipe {
    /// The records to insert before the first record.
    first: Vec<Vec<u8>>,
    notes: Vec<String>,
    /// Sections that cannot be read.
    lost: Vec<FeatureId>,
}

impl ToPipe {
    fn send_first(&mut self, endian: Endian, next: &mut Link<'_>) -> Result<()> {
        let first = std::mem::take(&mut self.first);
        first
            .iter()
            .try_for_each(|bytes| next.record(&RawRecord::first(bytes, endian, 0)?))
    }
}

impl Stage for ToPipe {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements::none()
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        if let ContainerLayout::File(file) = container_layout {
            self.lost = file.lost_sections().map(|(id, _)| id).collect();
        }
        for (&id, section) in &recording.features {
            if Slot::of_feature(id, section).is_none() && !FOUND_AGAIN.contains(&id) {
                let why = if section.is_empty() {
                    "its section is empty"
                } else {
                    "perf does not read it from a pipe"
                };
                self.notes.push(format!("dropped feature {id}: {why}"));
            }
        }
        check_ids(&recording.events)?;
        self.first = DescribedNames::of(recording).records(recording);
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        !self.first.is_empty() || kind.is_metadata()
    }

    /// Metadata records are in separate batches.
    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        let batch = match chunk {
            Chunk::Records(batch) => batch,
            Chunk::Payload(_) => return next.chunk(chunk),
            // A reader of a pipe cannot recognise the end of the records.
            Chunk::Unreadable(_) => return Ok(()),
        };
        if batch.len() > 1 && self.first.is_empty() {
            return next.records(batch);
        }
        each_part(self, batch, next)
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        // In a file, this is an ordinary record; a pipe cannot be read without it.
        if record.kind.is_metadata() {
            Record::decode(record, &DecodeContext::default())?;
        }
        self.send_first(record.endian, next)?;
        next.record(record)
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        let lost = self
            .lost
            .iter()
            .filter(|id| !recording.features.contains_key(id));
        self.notes
            .extend(lost.map(|id| format!("dropped feature {id}: its section cannot be read")));
        self.send_first(recording.endian, next)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// Adds a solution to the error if a section does not fit in a pipe: it can be dropped.
pub(crate) fn with_way_out(error: perfdata_write::Error) -> Error {
    match error {
        perfdata_write::Error::TooLarge { ref name, .. }
        | perfdata_write::Error::Section { ref name, .. } => {
            match FeatureId::by_name(name).or_else(|| name.parse().ok().map(FeatureId)) {
                Some(id) => Error::from(error).with_step(Step::DropFeature(id)),
                None => error.into(),
            }
        }
        other => other.into(),
    }
}
