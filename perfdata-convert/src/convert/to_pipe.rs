//! File to pipe: the parts of a file that its header points at become metadata records.
//!
//! The writer makes the records from the model; here is what else a pipe cannot do.

use perfdata_core::Recording;
use perfdata_core::arrangement::{Arrangement, Slot};
use perfdata_core::feature::FeatureId;
use perfdata_core::record::RecordType;

use super::{Link, Stage};
use crate::error::{Error, Result};

/// Sections that a file has again when it is made from the pipe: two flags that the attributes and records tell, and
/// the places of records in the file.
const FOUND_AGAIN: [FeatureId; 3] = [FeatureId::BRANCH_STACK, FeatureId::STAT, FeatureId::AUXTRACE];

/// Says what the pipe will not hold.
#[derive(Default)]
pub(super) struct ToPipe {
    notes: Vec<String>,
}

impl Stage for ToPipe {
    fn begin(&mut self, recording: &mut Recording, _: &mut Arrangement) -> Result<()> {
        for (&id, section) in &recording.features {
            let id = FeatureId(id);
            if Slot::of_feature(id, section).is_none() && !FOUND_AGAIN.contains(&id) {
                let why = if section.is_empty() { "its section is empty" } else { "no perf takes it from a pipe" };
                self.notes.push(format!("feature {id} is left out: {why}"));
            }
        }
        Ok(())
    }

    fn wants(&self, _: RecordType) -> bool {
        false
    }

    /// A reader of a pipe cannot tell where the records end: what is none is left out.
    fn unreadable(&mut self, _bytes: &[u8], _next: &mut Link<'_>) -> Result<()> {
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// A section that a pipe cannot hold can be left out: says so.
pub(super) fn with_way_out(error: perfdata_write::Error) -> Error {
    match error {
        perfdata_write::Error::TooLarge { ref name, .. } | perfdata_write::Error::Section { ref name, .. } => {
            Error::Refused(format!("{error}; --drop {name} leaves the section out"))
        }
        other => other.into(),
    }
}
