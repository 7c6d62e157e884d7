//! Notes about what was removed.

use std::collections::BTreeMap;

use perfdata_core::attr::SampleType;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::RecordType;
use perfdata_core::{Event, Events};

use crate::count::number_of;

/// What was removed.
#[derive(Debug, Default)]
pub(super) struct Report {
    parts: u64,
    records: BTreeMap<RecordType, u64>,
    sections: Vec<FeatureId>,
    unreadable: u64,
}

impl Report {
    /// Notes the parts of samples that the events no longer have.
    pub(super) fn parts(&mut self, from: &Events, to: &[Event]) {
        for (from, to) in from.iter().zip(to) {
            self.parts |= from.attr.sample_type.0 & !to.attr.sample_type.0;
        }
    }

    /// Notes a removed record.
    pub(super) fn record(&mut self, kind: RecordType) {
        let count = self.records.entry(kind).or_default();
        *count = count.saturating_add(1);
    }

    /// Notes a removed section.
    pub(super) fn section(&mut self, id: FeatureId) {
        if !self.sections.contains(&id) {
            self.sections.push(id);
        }
    }

    /// Notes removed bytes at the end.
    pub(super) fn unreadable(&mut self, bytes: usize) {
        self.unreadable = self.unreadable.saturating_add(bytes as u64);
    }

    /// Returns the notes; `unknown` fields were removed, too.
    pub(super) fn notes(&self, unknown: u64) -> Vec<String> {
        let mut notes = Vec::new();
        let list = |names: Vec<String>| names.join(", ");
        if self.parts != 0 {
            let mut names: Vec<String> =
                SampleType(self.parts).names().map(str::to_owned).collect();
            if SampleType(self.parts).unknown() != 0 {
                names.push("unknown parts".into());
            }
            notes.push(format!("removed from samples: {}", list(names)));
        }
        if !self.sections.is_empty() {
            let names = self.sections.iter().map(ToString::to_string).collect();
            notes.push(format!("removed features: {}", list(names)));
        }
        if !self.records.is_empty() {
            let records = self.records.iter();
            let names = records
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            notes.push(format!("removed records: {}", list(names)));
        }
        if unknown > 0 {
            notes.push(format!(
                "removed {} of unknown meaning",
                number_of(unknown, "field")
            ));
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "removed {} that are not records",
                number_of(self.unreadable, "byte")
            ));
        }
        notes.push(
            "names and IDs are pseudonyms, and addresses moved; sizes, offsets in files, time differences and rates remain"
                .into(),
        );
        notes
    }
}
