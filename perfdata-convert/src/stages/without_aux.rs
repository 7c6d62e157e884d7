//! Removes the AUX data of a recording.

use perfdata_core::Recording;
use perfdata_core::attr::SampleType;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};

use super::decompress::{forget_compression, is_section};
use crate::error::Result;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// Drops AUXTRACE records with their payload and their index, and empties the AUX field of samples.
/// All other records remain, including those about AUX data: the sideband remains complete.
#[derive(Debug, Default)]
pub struct WithoutAux {
    /// Whether samples have AUX data.
    has_samples: bool,
}

impl Stage for WithoutAux {
    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            may_refuse: true,
            ..Requirements::none()
        }
    }

    /// Decompresses compressed records if samples in them may have AUX data.
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        if self.has_samples {
            CompressedRecords::Plain
        } else {
            CompressedRecords::AsTheyAre
        }
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        recording.features.remove(&FeatureId::AUXTRACE);
        self.has_samples = recording
            .events
            .iter()
            .any(|event| event.attr.sample_type.has(SampleType::AUX));
        if self.has_samples {
            forget_compression(recording, container_layout)
        } else {
            Ok(())
        }
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if record.kind == RecordType::AUXTRACE || self.has_samples && is_section(record) {
            return Ok(());
        }
        let layout = next.recording().events.layout_of(record);
        if record.kind != RecordType::SAMPLE || !layout.sample_type.has(SampleType::AUX) {
            return next.record(record);
        }
        let mut sample = Record::decode(record, &layout)?;
        if let Body::Sample(sample) = &mut sample.body {
            sample.aux = sample.aux.as_ref().map(|_| Vec::new().into());
        }
        next.write(&sample)
    }
}
