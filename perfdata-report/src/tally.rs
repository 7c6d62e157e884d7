//! Counts the records in the output by type, for verbose messages.

use perfdata_core::record::{RawRecord, RecordType};

use crate::show::tallies::Tallies;
use perfdata_convert::error::Result;
use perfdata_convert::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// Counts the records, without changes.
#[derive(Debug, Default)]
pub struct Tally {
    tallies: Tallies,
}

impl Stage for Tally {
    fn requirements(&self) -> Requirements {
        Requirements {
            is_neutral: true,
            ..Requirements::none()
        }
    }

    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.tallies.add(record.kind, record.bytes.len());
        next.record(record)
    }

    fn notes(&self) -> Vec<String> {
        vec![format!("written: {}", self.tallies.line())]
    }
}
