//! Changing feature sections: `--set`, `--set-raw` and `--drop`.

use std::collections::BTreeMap;

use perfdata_core::container_layout::{ContainerLayout, Slot, SlotContent};
use perfdata_core::describe::Leaf;
use perfdata_core::feature::{FeatureId, Section, TABLE};
use perfdata_core::header::FeatureBitmap;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::values::Values;
use perfdata_core::{DecodeContext, Endian, Recording};
use serde_json::Value;

use super::from_json;
use crate::error::{Error, Result, Step};
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};
use crate::support::suggest;

/// A change of a section.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Sets this value: text, a number, or JSON.
    Set(String),
    /// Sets these bytes.
    Raw(Vec<u8>),
    /// Removes the section.
    Drop,
}

/// Changes feature sections, in the model and in metadata records anywhere in the stream.
#[derive(Debug)]
pub struct Edit {
    changes: BTreeMap<FeatureId, Change>,
}

impl Edit {
    /// Returns a stage that makes the changes. Each is identified by a feature's name or number.
    ///
    /// # Errors
    /// No feature has this name, or a feature appears twice.
    pub fn new(changes: impl IntoIterator<Item = (String, Change)>) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (name, change) in changes {
            let id = feature_called(&name)?;
            if all.insert(id, change).is_some() {
                return Err(Error::Usage(format!("feature {id} is changed twice")));
            }
        }
        Ok(Edit { changes: all })
    }

    fn apply(&self, recording: &mut Recording) -> Result<()> {
        for (&id, change) in &self.changes {
            let bytes = match change {
                Change::Set(value) => section(id, value, recording)?,
                Change::Raw(bytes) => bytes.clone(),
                Change::Drop => {
                    recording.features.remove(&id);
                    continue;
                }
            };
            recording.features.insert(id, bytes);
        }
        Ok(())
    }

    /// Returns whether the record contains the content of a changed section.
    fn concerns(&self, record: &RawRecord<'_>) -> bool {
        let id = match record.kind {
            RecordType::HEADER_TRACING_DATA => Some(FeatureId::TRACING_DATA),
            RecordType::HEADER_BUILD_ID => Some(FeatureId::BUILD_ID),
            // Without a section, it marks the end of the features.
            _ if record.body().len() > 8 => record.feature(),
            _ => None,
        };
        id.is_some_and(|id| self.changes.contains_key(&id))
    }

    /// Returns whether a record at the head of a pipe is removed: the writer creates the records
    /// for the model again.
    fn replaces(&self, slot: &Slot, endian: Endian) -> bool {
        match &slot.content {
            SlotContent::Verbatim(bytes) => {
                RawRecord::first(bytes, endian, 0).is_ok_and(|raw| self.concerns(&raw))
            }
            _ => slot
                .feature()
                .is_some_and(|id| self.changes.contains_key(&id)),
        }
    }
}

impl Stage for Edit {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            after_container: true,
            ..Requirements::none()
        }
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        match container_layout {
            ContainerLayout::Pipe(head) => head
                .slots
                .retain(|slot| !self.replaces(slot, recording.endian)),
            // An unreadable section has an entry, but is not in the model.
            ContainerLayout::File(file) => file.table.retain(|(id, _)| {
                self.changes
                    .get(id)
                    .is_none_or(|change| *change != Change::Drop)
            }),
        }
        self.apply(recording)
    }

    fn wants(&self, kind: RecordType) -> bool {
        kind.is_metadata() || kind == RecordType::HEADER_BUILD_ID
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.concerns(record) {
            Ok(())
        } else {
            next.record(record)
        }
    }

    fn finish(&mut self, recording: &mut Recording, _: &mut Link<'_>) -> Result<()> {
        self.apply(recording)
    }
}

/// Returns the feature with the given name or number.
fn feature_called(name: &str) -> Result<FeatureId> {
    let number = || {
        name.parse()
            .ok()
            .filter(|number| (1..FeatureBitmap::BITS).contains(number))
            .map(FeatureId)
    };
    FeatureId::by_name(name).or_else(number).ok_or_else(|| {
        Error::Usage(
            match suggest::nearest(name, TABLE.iter().map(|info| info.name)) {
                Some(near) => format!("no feature is called {name}; did you mean {near}?"),
                None => format!(
                    "no feature is called {name}: expected a name, or a number from 1 to 255"
                ),
            },
        )
    })
}

/// Returns the section of feature `id` of `recording` with the given value: text, a number, or JSON
/// in the form of `perfconv info --json`.
///
/// # Errors
/// The value is not valid for this feature.
pub fn section(id: FeatureId, value: &str, recording: &Recording) -> Result<Vec<u8>> {
    let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
    let text = || Value::from(value);
    let json = match empty(id, &layout) {
        // A flag has no value.
        Some(Leaves { count: 0, .. }) if value.is_empty() => Value::Object(serde_json::Map::new()),
        Some(Leaves { is_text: true, .. }) => {
            serde_json::from_str(value).map_or_else(|_| text(), Value::String)
        }
        _ => serde_json::from_str(value).unwrap_or_else(|_| text()),
    };
    from_json::section(id, &json, recording.endian, &layout).map_err(|why| {
        let error = Error::Usage(format!("feature {id}: {why}"));
        // These features have no JSON form.
        let is_bytes = id == FeatureId::TRACING_DATA || id.info().is_none();
        if is_bytes {
            error.with_step(Step::SetBytes(id))
        } else {
            error
        }
    })
}

/// Returns the fields of the shortest section of feature `id`.
fn empty(id: FeatureId, layout: &DecodeContext) -> Option<Leaves> {
    let mut leaves = Leaves::default();
    Section::from_values(id, &mut leaves, layout).map(|_| leaves)
}

/// The number of values that a section requests, and whether text is the only one.
#[derive(Debug, Default)]
struct Leaves {
    count: usize,
    is_text: bool,
}

impl Leaves {
    fn add(&mut self, is_text: bool) {
        self.is_text = is_text && self.count == 0;
        self.count += 1;
    }
}

impl Values for Leaves {
    fn begin(&mut self, _: &'static str) {}

    fn begin_list(&mut self, _: &'static str) -> usize {
        self.add(false);
        0
    }

    fn end(&mut self) {}

    fn has(&mut self, _: &'static str) -> bool {
        false
    }

    fn number(&mut self, _: &'static str, _: usize, _: Leaf<'static>) -> u64 {
        self.add(false);
        0
    }

    fn text(&mut self, _: &'static str, _: usize) -> Vec<u8> {
        self.add(true);
        Vec::new()
    }

    fn bytes(&mut self, _: &'static str, _: Option<usize>) -> Vec<u8> {
        self.add(false);
        Vec::new()
    }

    fn refuse(&mut self, _: String) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(id: FeatureId, value: &str, endian: Endian) -> String {
        match section(id, value, &Recording::new(endian)) {
            Ok(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Err(error) => error.to_string(),
        }
    }

    fn step(id: FeatureId, value: &str) -> Option<Step> {
        section(id, value, &Recording::new(Endian::Little))
            .err()
            .and_then(|error| error.step().cloned())
    }

    #[test]
    fn values_become_sections() {
        let little = |id, value| bytes(id, value, Endian::Little);
        assert_eq!(little(FeatureId::TOTAL_MEM, "258"), "0201000000000000");
        assert_eq!(
            bytes(FeatureId::DIR_FORMAT, "1", Endian::Big),
            "0000000000000001"
        );
        assert_eq!(bytes(FeatureId::CLN_SIZE, "0x40", Endian::Big), "00000040");
        assert_eq!(
            little(FeatureId::NRCPUS, r#"{"online": 2, "available": 4}"#),
            "0400000002000000"
        );
        let data = r#"{"version": 1, "clock": "monotonic", "wall_clock": 2, "clock_time": 3}"#;
        assert_eq!(
            bytes(FeatureId::CLOCK_DATA, data, Endian::Big),
            "000000010000000100000000000000020000000000000003"
        );
        assert_eq!(
            little(
                FeatureId::E_MACHINE,
                r#"{"e_machine": "s390", "e_flags": "0x10"}"#
            ),
            "1600000010000000"
        );
        assert_eq!(little(FeatureId::STAT, ""), "");
        assert_eq!(
            little(FeatureId::HOSTNAME, "box"),
            format!("40000000626f78{}", "00".repeat(61))
        );
        assert_eq!(
            little(FeatureId::HOSTNAME, "\"b\u{fffd}ff\""),
            format!("4000000062ff{}", "00".repeat(62))
        );
        assert_eq!(
            little(FeatureId::CMDLINE, r#"["perf"]"#),
            format!("010000004000000070657266{}", "00".repeat(60))
        );
    }

    #[test]
    fn lists_in_lists_and_forms_become_sections() {
        let little = |id, value| bytes(id, value, Endian::Little);
        let text = |digits: &str| format!("40000000{digits}{}", "00".repeat(64 - digits.len() / 2));
        let caps =
            r#"[{"caps": [{"name": "a", "value": "b"}, {"name": "c", "value": "d"}], "pmu": "e"}]"#;
        let expected = [
            "0100000002000000".to_owned(),
            text("61"),
            text("62"),
            text("63"),
            text("64"),
            text("65"),
        ];
        assert_eq!(little(FeatureId::PMU_CAPS, caps), expected.concat());

        let domains = |version, nr, name| {
            let domain = format!(r#"{{"domain": 1, {name} "cpu_mask": "f", "cpu_list": "0-3"}}"#);
            let cpu = format!(r#"{{"cpu": 2, "nr_domains": {nr}, "domains": [{domain}]}}"#);
            let info =
                format!(r#"{{"schedstat_version": {version}, "max_domains": 3, "cpus": [{cpu}]}}"#);
            bytes(FeatureId::CPU_DOMAIN_INFO, &info, Endian::Little)
        };
        let (mask, list) = (text("66"), text("302d33"));
        let old = format!("0f00000003000000020000000100000001000000{mask}{list}");
        assert_eq!(domains(15, 1, ""), old);
        let new = format!(
            "1100000003000000020000000100000001000000{}{mask}{list}",
            text("534d54")
        );
        assert_eq!(domains(17, 1, r#""name": "SMT","#), new);
        assert_eq!(
            domains(15, 1, r#""name": "SMT","#),
            "feature CPU_DOMAIN_INFO: it has no field name"
        );
        assert_eq!(
            domains(17, 1, ""),
            "feature CPU_DOMAIN_INFO: name is missing"
        );
        assert_eq!(
            domains(15, 2, ""),
            "feature CPU_DOMAIN_INFO: a list has too few elements"
        );
        assert_eq!(
            domains(15, 0, ""),
            "feature CPU_DOMAIN_INFO: a list has too many elements"
        );

        // A program with an unknown structure.
        let program =
            r#"[{"info_len": 4, "data_len": 2, "arrays": [], "info": "01020304", "data": "0506"}]"#;
        let expected = "0100000004000000020000000000000000000000010203040506";
        assert_eq!(little(FeatureId::BPF_PROG_INFO, program), expected);
    }

    #[test]
    fn what_is_no_value_is_named() {
        let why = |id, value| bytes(id, value, Endian::Little);
        assert_eq!(
            why(FeatureId::CLN_SIZE, "0x100000000"),
            "feature CLN_SIZE: 0x100000000 is not a 32-bit number"
        );
        assert_eq!(
            why(FeatureId::NRCPUS, r#"{"online": 2}"#),
            "feature NRCPUS: available is missing"
        );
        assert_eq!(
            why(FeatureId::NRCPUS, r#"{"cpus": 2}"#),
            "feature NRCPUS: it has no field cpus"
        );
        assert_eq!(
            why(FeatureId::CMDLINE, "perf"),
            "feature CMDLINE: expected a list"
        );
        assert_eq!(
            why(FeatureId::CPU_TOPOLOGY, "[]"),
            "feature CPU_TOPOLOGY: expected an object"
        );
        assert_eq!(
            why(
                FeatureId::CLOCK_DATA,
                r#"{"version": 1, "clock": "sundial"}"#
            ),
            "feature CLOCK_DATA: sundial is not a valid value of clock"
        );
        let node = r#"[{"node": 0, "mem_total": 1, "mem_free": 1, "cpus": "0", "dogs": 1}]"#;
        assert_eq!(
            why(FeatureId::NUMA_TOPOLOGY, node),
            "feature NUMA_TOPOLOGY: it has no field dogs"
        );
        let no_list = "feature BUILD_ID: expected a list of build IDs";
        assert_eq!(why(FeatureId::BUILD_ID, "x"), no_list);
        assert_eq!(
            why(FeatureId::BUILD_ID, r#"["x"]"#),
            "feature BUILD_ID: build ID 0 has no header with a size"
        );
        let short = r#"[{"header": {"size": 7}}]"#;
        assert_eq!(
            why(FeatureId::BUILD_ID, short),
            "feature BUILD_ID: build ID 0: invalid record size 7"
        );
        assert_eq!(
            step(FeatureId::TRACING_DATA, "{}"),
            Some(Step::SetBytes(FeatureId::TRACING_DATA))
        );
        assert_eq!(
            step(FeatureId(60), "1"),
            Some(Step::SetBytes(FeatureId(60)))
        );
        assert!(Edit::new([("HOST".to_owned(), Change::Drop)]).is_err());
        assert!(
            Edit::new([
                ("hostname".to_owned(), Change::Drop),
                ("3".to_owned(), Change::Drop)
            ])
            .is_err()
        );
    }
}
