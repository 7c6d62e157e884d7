//! The rows of Parquet files, by recording.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::vec;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampMicrosecondType};
use arrow_array::{PrimitiveArray, RecordBatch, StringArray, TypedDictionaryArray};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::fold::{RecordingOrder, RecordingOrders};
use crate::error::{Error, Result};
use crate::schema::{SCHEMA_KEY, SCHEMA_VERSION};

/// Maximum number of rows that are decoded at a time.
pub(super) const BATCH_ROWS: usize = 8192;

/// By what recordings are ordered: the last part is the ID.
pub(super) type RecordingKey = (RecordingOrder, String);

/// Reads files one after the other, whose recordings are in order.
pub(super) struct RecordingRuns<'a> {
    orders: &'a RecordingOrders,
    files: vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, ParquetRecordBatchReader)>,
    /// The next rows: those of one recording, and then the others of the batch.
    next: Option<(RecordingKey, RecordBatch)>,
    rest: Option<RecordBatch>,
}

impl<'a> RecordingRuns<'a> {
    pub fn new(files: Vec<PathBuf>, orders: &'a RecordingOrders) -> Self {
        RecordingRuns {
            orders,
            files: files.into_iter(),
            open: None,
            next: None,
            rest: None,
        }
    }

    /// Returns the recording of the next rows; `None` at the end.
    pub fn key(&mut self) -> Result<Option<&RecordingKey>> {
        if self.next.is_none() {
            self.next = self.advance()?;
        }
        Ok(self.next.as_ref().map(|(key, _)| key))
    }

    /// Returns the next rows, all of the recording that [`key`](Self::key) returned.
    pub fn take(&mut self) -> Option<RecordBatch> {
        self.next.take().map(|(_, rows)| rows)
    }

    fn advance(&mut self) -> Result<Option<(RecordingKey, RecordBatch)>> {
        loop {
            if let Some(batch) = self.rest.take()
                && batch.num_rows() > 0
            {
                let ids = texts(&batch, "recording").map_err(|error| self.failed(error))?;
                let mut ids = ids.into_iter().peekable();
                let first = ids.peek().copied().flatten();
                let count = ids.take_while(|id| *id == first).count();
                let id = first.unwrap_or_default().to_owned();
                let order = self.orders.get(&id).cloned().unwrap_or_default();
                let rest = batch.num_rows().saturating_sub(count);
                self.rest = Some(batch.slice(count, rest));
                return Ok(Some(((order, id), batch.slice(0, count))));
            }
            match &mut self.open {
                Some((path, reader)) => match reader.next() {
                    Some(batch) => {
                        let batch = batch.map_err(|error| Error::in_file(path, error.into()))?;
                        self.rest = Some(batch);
                    }
                    None => self.open = None,
                },
                None => {
                    let Some(path) = self.files.next() else {
                        return Ok(None);
                    };
                    let reader = open(&path)
                        .and_then(|builder| Ok(builder.with_batch_size(BATCH_ROWS).build()?));
                    let reader = reader.map_err(|error| Error::in_file(&path, error))?;
                    self.open = Some((path, reader));
                }
            }
        }
    }

    fn failed(&self, error: Error) -> Error {
        match &self.open {
            Some((path, _)) => Error::in_file(path, error),
            None => error,
        }
    }
}

/// Opens a file of this version of the schema.
pub(super) fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>> {
    let file = File::open(path).map_err(Error::Output)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let version = metadata
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == SCHEMA_KEY))
        .and_then(|pair| pair.value.as_deref());
    if version == Some(SCHEMA_VERSION) {
        return Ok(builder);
    }
    let found = version.unwrap_or("none");
    let what = format!("the version of the schema is {found}, not {SCHEMA_VERSION}");
    Err(Error::Encoding(what.into()))
}

/// Returns a column of names.
pub(super) fn texts<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<TypedDictionaryArray<'a, Int32Type, StringArray>> {
    batch
        .column_by_name(name)
        .and_then(|column| column.as_dictionary_opt::<Int32Type>())
        .and_then(|names| names.downcast_dict::<StringArray>())
        .ok_or_else(|| missing(name))
}

/// Returns a column of times.
pub(super) fn times<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<TimestampMicrosecondType>> {
    batch
        .column_by_name(name)
        .and_then(|times| times.as_primitive_opt())
        .ok_or_else(|| missing(name))
}

fn missing(column: &str) -> Error {
    Error::Encoding(format!("there is no column {column} of the right type").into())
}
