//! Raw data of tracepoints of which only some fields stay.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use perfdata_core::Recording;
use perfdata_core::attr::EventType;
use perfdata_tracepoint::{Field, Format, Formats, Like};

use super::policy::KeptField;
use perfdata_convert::error::{Error, Result};

/// The fields that stay, by the `config` of the tracepoint.
#[derive(Debug, Default)]
pub(super) struct RawFields {
    fields: HashMap<u64, Vec<Field>, RandomState>,
}

impl RawFields {
    /// Finds the `wanted` fields in the formats of `recording`.
    ///
    /// # Errors
    /// No event of the recording is such a tracepoint, or it has no such field.
    pub(super) fn of(recording: &Recording, wanted: &[KeptField]) -> Result<Self> {
        let mut fields = RawFields::default();
        if wanted.is_empty() {
            return Ok(fields);
        }
        let formats = Formats::of(recording, Like::default());
        for KeptField { event, field } in wanted {
            let is_recorded = |format: &&Format| {
                let mut events = recording.events.iter();
                events.any(|event| {
                    event.attr.kind == EventType::TRACEPOINT && event.attr.config == format.id()
                })
            };
            let (system, name) = event.split_once(':').unwrap_or((event, ""));
            let format = formats.as_ref();
            let format =
                format.and_then(|formats| formats.by_name(system.as_bytes(), name.as_bytes()));
            let Some(format) = format.filter(is_recorded) else {
                return Err(Error::Refused(format!(
                    "the field {field} of {event} cannot be kept: the recording has no such tracepoint, or not its format"
                )));
            };
            let Some(found) = format.field(field.as_bytes()) else {
                let names = format
                    .fields()
                    .iter()
                    .map(|field| String::from_utf8_lossy(field.name()).into_owned());
                return Err(Error::Refused(format!(
                    "{event} has no field {field}; its fields are: {}",
                    names.collect::<Vec<_>>().join(", ")
                )));
            };
            fields
                .fields
                .entry(format.id())
                .or_default()
                .push(found.clone());
        }
        Ok(fields)
    }

    /// Returns whether fields of the tracepoint with this `config` stay.
    pub(super) fn has(&self, config: u64) -> bool {
        self.fields.contains_key(&config)
    }

    /// Replaces all other bytes of the raw data of a sample with zeros. The number of the
    /// tracepoint at the start stays.
    pub(super) fn clear_others(&self, config: u64, raw: &mut [u8]) {
        /// Size of `common_type` in bytes.
        const NUMBER: usize = 2;
        let old = raw.to_vec();
        raw.fill(0);
        let mut keep = |range: std::ops::Range<usize>| {
            if let (Some(to), Some(from)) = (raw.get_mut(range.clone()), old.get(range)) {
                to.copy_from_slice(from);
            }
        };
        keep(0..NUMBER);
        for field in self.fields.get(&config).into_iter().flatten() {
            // Of a dynamic field, the number that contains the place of its data.
            keep(field.offset()..field.offset().saturating_add(field.size()));
            if let Some(range) = field.range(&old) {
                keep(range);
            }
        }
    }
}
