//! Notes about what was removed.

use std::collections::BTreeMap;

use perfdata_core::attr::SampleType;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::RecordType;
use perfdata_core::{Event, Events};

use super::policy::{Kept, Policy};
use perfdata_convert::count::number_of;

/// What was removed.
#[derive(Debug, Default)]
pub(super) struct Removals {
    parts: u64,
    records: BTreeMap<RecordType, u64>,
    sections: Vec<FeatureId>,
    unreadable: u64,
}

impl Removals {
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

    /// Returns the notes; `unknown` fields were removed, too, and `policy` was applied.
    pub(super) fn notes(&self, unknown: u64, policy: &Policy) -> Vec<String> {
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
        notes.push(summary(policy));
        notes
    }
}

/// Returns what was replaced, and what others still see.
fn summary(policy: &Policy) -> String {
    let keeps_names = policy.keeps(Kept::Comms) && policy.keeps(Kept::Paths);
    let (pseudonyms, also) = match (keeps_names, policy.keeps(Kept::Pids)) {
        (false, false) => (Some("names and IDs are pseudonyms"), ""),
        (false, true) => (Some("names are pseudonyms"), "process IDs, "),
        (true, false) => (Some("process IDs are pseudonyms"), "names, "),
        (true, true) => (None, "names, process IDs, "),
    };
    let moved = (!policy.keeps(Kept::Addresses)).then_some("addresses moved");
    let replaced: Vec<&str> = [pseudonyms, moved].into_iter().flatten().collect();
    let replaced = match replaced.join(", and ") {
        replaced if replaced.is_empty() => replaced,
        replaced => replaced + "; ",
    };
    format!("{replaced}{also}sizes, offsets in files, time differences and rates remain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_is_kept() {
        let remain = "sizes, offsets in files, time differences and rates remain";
        let all = Policy::default();
        assert_eq!(
            summary(&all),
            format!("names and IDs are pseudonyms, and addresses moved; {remain}")
        );
        let names = all.keep(Kept::Comms).keep(Kept::Paths);
        assert_eq!(
            summary(&names),
            format!("process IDs are pseudonyms, and addresses moved; names, {remain}")
        );
        let only_addresses = names.keep(Kept::Pids);
        assert_eq!(
            summary(&only_addresses),
            format!("addresses moved; names, process IDs, {remain}")
        );
        let nothing = only_addresses.keep(Kept::Addresses);
        assert_eq!(summary(&nothing), format!("names, process IDs, {remain}"));
    }
}
