//! The stage that drops data that contradict the records.

use perfdata_core::container_layout::{ContainerLayout, SlotContent};
use perfdata_core::feature::FeatureId;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Recording};

use crate::error::Result;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// Drops data that contradict the records.
pub(super) struct Without {
    /// Whether to drop the IDs of the events.
    pub(super) ids: bool,
    pub(super) sections: Vec<FeatureId>,
}

impl Without {
    fn is_without(&self, record: &RawRecord<'_>) -> bool {
        let said = match record.kind {
            RecordType::HEADER_TRACING_DATA => Some(FeatureId::TRACING_DATA),
            _ => record.feature(),
        };
        said.is_some_and(|id| self.sections.contains(&id))
    }
}

impl Stage for Without {
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
        let is_without = |id: FeatureId| self.sections.contains(&id);
        recording.features.retain(|&id, _| !is_without(id));
        if self.ids {
            recording.events = std::mem::take(&mut recording.events).without_ids();
        }
        if let ContainerLayout::Pipe(head) = container_layout {
            let endian = recording.endian;
            head.slots.retain(|slot| match &slot.content {
                SlotContent::Verbatim(bytes) => {
                    RawRecord::first(bytes, endian, 0).is_ok_and(|record| !self.is_without(&record))
                }
                _ => slot.feature().is_none_or(|id| !is_without(id)),
            });
        }
        Ok(())
    }

    fn wants(&self, kind: RecordType) -> bool {
        kind.is_metadata()
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if self.is_without(record) {
            return Ok(());
        }
        if !self.ids || record.kind != RecordType::HEADER_ATTR {
            return next.record(record);
        }
        let mut attr = Record::decode(record, &DecodeContext::default())?;
        if let Body::HeaderAttr(attr) = &mut attr.body {
            attr.ids.0.clear();
        }
        let bytes = attr.encode(record.endian)?;
        next.record(&RawRecord {
            bytes: &bytes,
            ..*record
        })
    }
}
