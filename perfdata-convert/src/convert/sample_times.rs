//! Times of the first and the last sample of a stream, those in compressed records included.

use perfdata_core::feature::SampleTime;
use perfdata_core::read::Decompressor;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_core::{Error, Recording};

/// Watches the samples of a stream go by.
#[derive(Debug, Default)]
pub struct SampleTimes {
    range: Option<(u64, u64)>,
    decompressor: Option<Decompressor>,
}

impl SampleTimes {
    /// Looks at a record of `recording`, whatever it is.
    ///
    /// # Errors
    /// A compressed record that cannot be decompressed.
    pub fn see(&mut self, record: &RawRecord<'_>, recording: &Recording) -> Result<(), Error> {
        match record.kind {
            RecordType::SAMPLE => self.sample(record, recording),
            RecordType::COMPRESSED | RecordType::COMPRESSED2 => {
                let mut inner = match self.decompressor.take() {
                    Some(decompressor) => decompressor,
                    None => Decompressor::of(recording)?,
                };
                inner.push(record)?;
                while let Some(record) = inner.next()? {
                    if record.kind == RecordType::SAMPLE {
                        self.sample(&record, recording);
                    }
                }
                self.decompressor = Some(inner);
            }
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, record: &RawRecord<'_>, recording: &Recording) {
        if let Some(time) = recording.events.sample_time(record) {
            let (first, last) = self.range.unwrap_or((time, time));
            self.range = Some((first.min(time), last.max(time)));
        }
    }

    /// Earliest and latest time seen, in nanoseconds on the recording's clock.
    pub fn range(&self) -> Option<SampleTime> {
        self.range.map(|(first, last)| SampleTime { first, last })
    }
}
