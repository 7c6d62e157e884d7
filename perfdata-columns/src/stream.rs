//! Arrow IPC streams.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Schema, SchemaRef};
use perfdata_core::Recording;

use crate::error::{Result, require_little_endian_host};
use crate::machine;

/// Writes record batches as an Arrow IPC stream, each as soon as it arrives.
///
/// The dictionaries of names differ between batches: a stream replaces them, but a file in the IPC
/// format could not.
pub struct ArrowStream<W: Write> {
    /// The output before the first batch, and the stream since then.
    out: Option<W>,
    writer: Option<StreamWriter<W>>,
    schema: SchemaRef,
    metadata: HashMap<String, String>,
}

impl<W: Write> std::fmt::Debug for ArrowStream<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrowStream").finish_non_exhaustive()
    }
}

impl<W: Write> ArrowStream<W> {
    /// Returns a stream of batches with this schema. Nothing is written yet.
    pub fn new(out: W, schema: SchemaRef) -> Self {
        ArrowStream {
            out: Some(out),
            writer: None,
            schema,
            metadata: HashMap::new(),
        }
    }

    /// Returns the stream with the [`metadata`](crate::metadata) of a recording. Has no effect
    /// after the first batch.
    #[must_use]
    pub fn with_metadata(self, recording: &Recording, id: Option<&str>, symbols: bool) -> Self {
        let metadata = machine::metadata(recording, id, symbols);
        ArrowStream {
            metadata: metadata.into_iter().collect(),
            ..self
        }
    }

    fn begun(&mut self) -> Result<Option<&mut StreamWriter<W>>> {
        if let Some(out) = self.out.take() {
            require_little_endian_host()?;
            let schema = Schema::new(self.schema.fields().clone());
            let schema = Arc::new(schema.with_metadata(std::mem::take(&mut self.metadata)));
            self.writer = Some(StreamWriter::try_new(out, &schema)?);
        }
        Ok(self.writer.as_mut())
    }

    /// Writes a batch.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if let Some(writer) = self.begun()? {
            writer.write(batch)?;
            writer.flush()?;
        }
        Ok(())
    }

    /// Ends the stream. A stream without batches consists of its schema.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if let Some(writer) = self.begun()? {
            writer.finish()?;
            writer.flush()?;
        }
        Ok(())
    }
}
