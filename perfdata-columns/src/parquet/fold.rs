//! Many Parquet files of one table as one.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;

use super::file::{Out, ParquetFile};
use super::runs::{BATCH_ROWS, RecordingRuns, open, texts, times};
use crate::error::{Error, Result};
use crate::machine::exporter;
use crate::schema::{SCHEMA_KEY, SCHEMA_VERSION, Table};
use crate::tables::FieldColumns;

/// The recordings of a directory, by their IDs.
pub type RecordingOrders = HashMap<String, RecordingOrder>;

/// What the table `recordings` says about a recording, by which the rows of all tables are ordered.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordingOrder {
    /// The host name.
    pub host: Option<String>,
    /// When the recording was made, in microseconds since 1970 (UTC).
    pub recorded_at: Option<i64>,
}

/// Returns the recordings in a file of the table `recordings`.
///
/// # Errors
/// [`Error::InFile`]: the file cannot be read, or is not a Parquet file of this table.
pub fn read_recordings(path: &Path) -> Result<RecordingOrders> {
    let read = || -> Result<RecordingOrders> {
        let builder = open(path)?;
        let names = ["recording", "host", "recorded_at"];
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let builder = builder.with_projection(mask);
        let mut found = HashMap::new();
        for batch in builder.with_batch_size(BATCH_ROWS).build()? {
            let batch = batch?;
            let ids = texts(&batch, "recording")?.into_iter();
            let hosts = texts(&batch, "host")?.into_iter();
            let times = times(&batch, "recorded_at")?;
            for ((id, host), recorded_at) in ids.zip(hosts).zip(times) {
                let host = host.map(str::to_owned);
                found.extend(id.map(|id| (id.to_owned(), RecordingOrder { host, recorded_at })));
            }
        }
        Ok(found)
    };
    read().map_err(|error| Error::in_file(path, error))
}

/// Writes the rows of Parquet files of a table to one file.
///
/// The rows of a recording remain together and in their order. The recordings are in the order of
/// `orders` and, if that is equal, of their IDs.
#[derive(Debug)]
pub struct Fold<'a> {
    /// The table.
    pub table: &'a Table,
    /// Files with one recording each, by its ID.
    pub singles: &'a BTreeMap<String, PathBuf>,
    /// Files that an earlier fold made.
    pub folded: &'a [PathBuf],
    /// The recordings.
    pub orders: &'a RecordingOrders,
    /// The columns for fields and labels in the order that they have in this directory.
    pub fields: &'a FieldColumns,
    /// Whether another thread encodes the rows.
    pub has_thread: bool,
}

impl Fold<'_> {
    /// Writes the file to `out`, and returns the number of its rows. A file that lacks columns of
    /// the others has null in them.
    ///
    /// At any time, a row group is in memory, and up to 8,192 rows of each file in `folded` and of
    /// one in `singles`.
    ///
    /// # Errors
    /// - [`Error::InFile`]: a file cannot be read, has another version of the schema, or another type
    ///   of a column than the table or, for fields that are not in `fields`, than the files before.
    /// - The output cannot be written.
    pub fn write(&self, out: Out) -> Result<u64> {
        let schema = self.schema()?;
        let mut singles: Vec<_> = self.singles.iter().collect();
        singles.sort_by_cached_key(|(id, _)| {
            let order = self.orders.get(*id).cloned().unwrap_or_default();
            (order, *id)
        });
        let singles = singles.into_iter().map(|(_, path)| path.clone()).collect();
        let folded = self.folded.iter().map(|path| vec![path.clone()]);
        let mut inputs: Vec<RecordingRuns<'_>> = folded
            .chain([singles])
            .map(|files| RecordingRuns::new(files, self.orders))
            .collect();
        let mut file = ParquetFile::new(out, Arc::clone(&schema), self.has_thread.into())?;
        let mut rows = 0_u64;
        loop {
            let mut first = None;
            for (at, input) in inputs.iter_mut().enumerate() {
                if let Some(key) = input.key()?
                    && first.as_ref().is_none_or(|(other, _)| key < other)
                {
                    first = Some((key.clone(), at));
                }
            }
            let Some((key, at)) = first else { break };
            let Some(input) = inputs.get_mut(at) else {
                break;
            };
            while input.key()?.is_some_and(|next| *next == key) {
                let Some(batch) = input.take() else { break };
                rows = rows.saturating_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
                file.write(with_schema(&batch, &schema)?)?;
            }
        }
        file.finish(&[
            (SCHEMA_KEY.to_owned(), SCHEMA_VERSION.to_owned()),
            ("perfconv.version".to_owned(), exporter()),
        ])?;
        Ok(rows)
    }

    /// Returns the schema with the columns of all files: those of the table first, then the fields.
    fn schema(&self) -> Result<SchemaRef> {
        let common = self.table.columns().iter();
        let declared = common
            .map(|column| (column.name, column.kind.data_type()))
            .chain((self.fields.iter()).map(|(name, kind)| (name.as_str(), kind.data_type())));
        let declared: Vec<_> = declared.collect();
        let mut found: Vec<FieldRef> = Vec::new();
        for input in self.folded.iter().chain(self.singles.values()) {
            let builder = open(input).map_err(|error| Error::in_file(input, error))?;
            for field in builder.schema().fields() {
                let name = field.name();
                let known = found.iter().find(|known| known.name() == name);
                let in_table = declared.iter().find(|(known, _)| known == name);
                let expected = match (in_table, known) {
                    (Some((_, data_type)), _) => data_type,
                    (None, Some(known)) => known.data_type(),
                    (None, None) => field.data_type(),
                };
                if field.data_type() != expected {
                    let what = format!("column {name} is {}, not {expected}", field.data_type());
                    return Err(Error::in_file(input, Error::Encoding(what.into())));
                }
                if known.is_none() {
                    found.push(Arc::clone(field));
                }
            }
        }
        // The sort is stable: columns that are not known keep their order, after the others.
        found.sort_by_key(|field| {
            let at = declared.iter().position(|(name, _)| name == field.name());
            at.unwrap_or(usize::MAX)
        });
        Ok(Arc::new(Schema::new(found)))
    }
}

/// Returns the rows with the columns of `schema`; null for those that are not there.
fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        match batch.column_by_name(field.name()) {
            Some(column) => Arc::clone(column),
            None => new_null_array(field.data_type(), rows),
        }
    });
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect())?)
}
