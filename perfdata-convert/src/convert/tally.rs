//! How many records of which type go into the output, for those who want to hear it.

use std::collections::BTreeMap;

use perfdata_core::record::{RawRecord, RecordType};

use super::{Link, Stage};
use crate::error::Result;

/// Counts the records, and changes nothing.
#[derive(Debug, Default)]
pub struct Tally {
    counts: BTreeMap<RecordType, u64>,
}

impl Stage for Tally {
    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let count = self.counts.entry(record.kind).or_default();
        *count = count.saturating_add(1);
        next.record(record)
    }

    fn notes(&self) -> Vec<String> {
        let counts = self.counts.iter().map(|(kind, count)| format!("{count} {kind}"));
        vec![format!("written: {}", counts.collect::<Vec<_>>().join(", "))]
    }
}
