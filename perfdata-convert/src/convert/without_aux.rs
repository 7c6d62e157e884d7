//! A recording without its AUX data.

use perfdata_core::arrangement::Arrangement;
use perfdata_core::attr::SampleType;
use perfdata_core::feature::FeatureId;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_core::{Events, Recording};

use super::decompress::Decompress;
use super::{Link, Stage};
use crate::error::Result;

/// Leaves out AUXTRACE records with what follows them and the index of them, and empties the AUX part of samples. All
/// other records stay, those about AUX data, too: what happened beside the trace is still told in full.
#[derive(Debug, Default)]
pub struct WithoutAux {
    events: Events,
    /// Whether the last record was left out.
    left_out: bool,
    bytes: Vec<u8>,
}

impl WithoutAux {
    /// The stages that leave the AUX data of `recording` out. Compressed records are opened where samples in them may
    /// have some.
    pub fn stages(recording: &Recording) -> Vec<Box<dyn Stage>> {
        let sampled = recording.events.iter().any(|event| event.attr.sample_type.has(SampleType::AUX));
        let compressed = recording.features.contains_key(&FeatureId::COMPRESSED.0);
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        if sampled && compressed {
            stages.push(Box::new(Decompress::default()));
        }
        stages.push(Box::new(WithoutAux::default()));
        stages
    }
}

impl Stage for WithoutAux {
    fn needs_events(&self) -> bool {
        true
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn late_events(&mut self, events: &Events) {
        self.events = events.clone();
    }

    fn begin(&mut self, recording: &mut Recording, _: &mut Arrangement) -> Result<()> {
        recording.features.remove(&FeatureId::AUXTRACE.0);
        if !recording.events.is_empty() {
            self.events = recording.events.clone();
        }
        Ok(())
    }

    fn record(&mut self, record: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        self.left_out = record.kind == RecordType::AUXTRACE;
        if self.left_out {
            return Ok(());
        }
        let layout = self.events.layout_of(record);
        if record.kind != RecordType::SAMPLE || !layout.sample_type.has(SampleType::AUX) {
            return next.record(record);
        }
        let mut sample = Record::decode(record, &layout)?;
        if let Body::Sample(sample) = &mut sample.body {
            sample.aux = sample.aux.as_ref().map(|_| Vec::new().into());
        }
        self.bytes.clear();
        sample.encode_into(&mut self.bytes, record.endian)?;
        next.record(&RawRecord::first(&self.bytes, record.endian, record.offset)?)
    }

    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        if self.left_out { Ok(()) } else { next.payload(bytes) }
    }
}
