//! The columns of a row group.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;

use super::file::Out;
use super::properties::properties;
use crate::error::{Error, Result, require_little_endian_host};

/// Maximum number of rows in a row group.
const MOST_ROWS: usize = 1 << 20;

/// Size in bytes of the encoded columns after which a row group is written.
const MOST_MEMORY: usize = 24 << 20;

/// Encodes record batches and writes row groups.
pub(super) struct Encoder {
    file: SerializedFileWriter<Out>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// The columns of the row group.
    columns: Vec<Mutex<ArrowColumnWriter>>,
    groups: usize,
    rows: usize,
    threads: usize,
}

impl Encoder {
    /// Starts a file. `threads` encode columns at the same time.
    pub fn new(out: Out, schema: SchemaRef, threads: usize) -> Result<Self> {
        require_little_endian_host()?;
        let properties = properties(&schema)?;
        let parquet = ArrowSchemaConverter::new().convert(&schema)?;
        let file = SerializedFileWriter::new(out, parquet.root_schema_ptr(), properties)?;
        let factory = ArrowRowGroupWriterFactory::new(&file, schema.clone());
        Ok(Encoder {
            file,
            factory,
            schema,
            columns: Vec::new(),
            groups: 0,
            rows: 0,
            threads,
        })
    }

    /// Encodes rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if self.columns.is_empty() {
            let columns = self.factory.create_column_writers(self.groups)?;
            self.columns = columns.into_iter().map(Mutex::new).collect();
        }
        self.encode(batch)?;
        self.rows = self.rows.saturating_add(batch.num_rows());
        if self.rows >= MOST_ROWS || self.memory() >= MOST_MEMORY {
            self.flush()?;
        }
        Ok(())
    }

    /// Encodes the columns of a batch. Each thread takes the next one.
    fn encode(&self, batch: &RecordBatch) -> Result<()> {
        let (columns, schema) = (&self.columns, &self.schema);
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                // The largest columns are the last ones.
                let Some(at) = columns.len().checked_sub(at.saturating_add(1)) else {
                    return Ok(());
                };
                if let Some(column) = columns.get(at) {
                    let mut column = column.lock().unwrap_or_else(PoisonError::into_inner);
                    encode_column(&mut column, schema, batch, at)?;
                }
            }
        };
        thread::scope(|scope| {
            let mut others = Vec::new();
            for _ in 1..self.threads {
                // If no thread can be started, this one does the work.
                others.extend(thread::Builder::new().spawn_scoped(scope, work).ok());
            }
            let mut result = work();
            for other in others {
                // The compressor panics if memory is lacking: that is no error of the recording.
                let joined = other.join();
                result = result.and(joined.unwrap_or_else(|panic| resume_unwind(panic)));
            }
            result
        })
    }

    /// Returns the size of the row group in memory in bytes.
    pub fn memory(&self) -> usize {
        let sizes = self.columns.iter().map(|column| {
            let column = column.lock().unwrap_or_else(PoisonError::into_inner);
            column.memory_size()
        });
        sizes.fold(0, usize::saturating_add)
    }

    /// Writes the row group.
    pub fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = std::mem::take(&mut self.columns);
        let mut group = self.file.next_row_group()?;
        for column in columns {
            let column = column.into_inner().unwrap_or_else(PoisonError::into_inner);
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.groups = self.groups.saturating_add(1);
        Ok(())
    }

    /// Writes the last row group and the end of the file.
    pub fn finish(mut self, metadata: &[(String, String)]) -> Result<()> {
        self.flush()?;
        for (key, value) in metadata {
            let pair = KeyValue::new(key.clone(), value.clone());
            self.file.append_key_value_metadata(pair);
        }
        let mut out = self.file.into_inner()?;
        out.flush().map_err(Error::Output)
    }
}

/// Encodes a column. Each field of the schema is one column.
fn encode_column(
    column: &mut ArrowColumnWriter,
    schema: &SchemaRef,
    batch: &RecordBatch,
    at: usize,
) -> Result<()> {
    let Some(field) = schema.fields().get(at) else {
        return Ok(());
    };
    for leaf in compute_leaves(field, batch.column(at))? {
        column.write(&leaf)?;
    }
    Ok(())
}
