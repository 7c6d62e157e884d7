//! The samples of a recording as record batches, one after the other.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use perfdata_core::read::{RecordSource, RecordingReader};
use perfdata_export::{Needs, Report, ResolvedSamples, Symbolizer};
use perfdata_session::Samples;

use crate::error::{Error, Result};
use crate::machine::RecordingFacts;
use crate::options::Options;
use crate::samples::SampleBuilder;

/// The samples of a recording as record batches of the table `samples`.
///
/// The recording is read as far as the batches are requested, and only one batch is in memory. It
/// is a [`RecordBatchReader`], the form of streams that the C interface of Arrow exports.
///
/// ```
/// use perfdata_columns::{Options, SampleBatches, SampleColumn};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// let samples = perfdata_session::open(path)?;
/// let options = Options::default().with_columns([SampleColumn::Time, SampleColumn::Comm]);
/// let mut rows = 0;
/// for batch in SampleBatches::new(samples, None, &options) {
///     rows += batch?.num_rows();
/// }
/// # assert!(rows > 100);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SampleBatches<S = RecordingReader> {
    samples: ResolvedSamples<S>,
    builder: SampleBuilder,
    has_begun: bool,
    is_finished: bool,
}

impl<S: RecordSource> SampleBatches<S> {
    /// Returns the batches of the samples that `samples` has not returned yet. Without `symbols`,
    /// no functions are searched.
    pub fn new(samples: Samples<S>, symbols: Option<Symbolizer>, options: &Options) -> Self {
        let builder = SampleBuilder::new(options, None, None, symbols.is_some());
        let needs = Needs::default().without_frames(!builder.needs_frames());
        SampleBatches {
            samples: ResolvedSamples::new(samples, symbols).with_needs(needs),
            builder,
            has_begun: false,
            is_finished: false,
        }
    }

    /// Returns the next batch; `None` at the end.
    ///
    /// # Errors
    /// The recording cannot be read, or exceeds its limits. The samples before the error are lost
    /// if they are not in an earlier batch.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while !self.is_finished && !self.builder.is_full() {
            match self.samples.next_with(|_| ()) {
                Ok(Some(sample)) => {
                    if !self.has_begun {
                        // The metadata of a stream arrive before its first sample.
                        let machine = RecordingFacts::of(sample.sample.recording());
                        self.builder.describe(machine.host, machine.clock);
                        self.has_begun = true;
                    }
                    self.builder
                        .push(&sample, |_, _| ())
                        .inspect_err(|_| self.is_finished = true)?;
                }
                Ok(None) => self.is_finished = true,
                Err(error) => {
                    self.is_finished = true;
                    return Err(error.into());
                }
            }
        }
        if self.builder.is_empty() {
            return Ok(None);
        }
        self.builder.finish().map(Some)
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.builder.schema()
    }

    /// Returns the source of the samples. Its recording contains what was read so far.
    pub fn samples(&self) -> &Samples<S> {
        self.samples.samples()
    }

    /// Returns the numbers of samples and frames so far, and the objects without names.
    pub fn finish(self) -> Report {
        self.samples.finish()
    }
}

impl<S: RecordSource> Iterator for SampleBatches<S> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch().transpose()?;
        Some(next.map_err(|error: Error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl<S: RecordSource> RecordBatchReader for SampleBatches<S> {
    fn schema(&self) -> SchemaRef {
        self.builder.schema()
    }
}
