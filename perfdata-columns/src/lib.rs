//! Samples and metadata of Linux `perf.data` recordings in columns, as Arrow record batches and
//! Parquet files.
//!
//! - [`SampleBatches`]: the samples as record batches, one after the other, with a choice of
//!   columns. It is a `RecordBatchReader`, and [`Send`] if its source is.
//! - [`export_tables`]: all tables of a recording, passed to a [`TableSink`].
//! - [`ArrowStream`]: an Arrow IPC stream of record batches.
//! - `ParquetFile` and `ParquetTables`, with the feature `parquet`: Parquet files.
//! - [`Table`] and [`Column`]: the schema, which has a [version](SCHEMA_VERSION).
//! - [`Partition`]: the paths of the files of many recordings.
//!
//! ```
//! use perfdata_columns::{Options, RecordBatch, Result, Table, TableSink, export_tables};
//!
//! /// Counts the rows of each table.
//! #[derive(Default)]
//! struct Count(std::collections::BTreeMap<Table, usize>);
//!
//! impl TableSink for Count {
//!     fn write(&mut self, table: &Table, batch: RecordBatch) -> Result<()> {
//!         *self.0.entry(table.clone()).or_default() += batch.num_rows();
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-tp.data");
//! let samples = perfdata_session::open(path)?;
//! let mut count = Count::default();
//! export_tables(samples, None, &Options::default(), &mut count)?;
//! assert_eq!(count.0[&Table::Recordings], 1);
//! assert!(count.0[&Table::Tracepoint("sched__sched_switch".into())] > 0);
//! # Ok(())
//! # }
//! ```
//!
//! All types of columns can be read by engines that know neither unsigned numbers nor nanoseconds:
//! addresses are signed, and times of day are in microseconds.
//!
//! # Features
//!
//! - `parquet` (off by default): Parquet files, compressed with zstd.
//!
//! # Memory
//!
//! A batch has at most 32,768 rows by default, about 32,768 frames, and so less than 5 MB. A
//! Parquet file holds one row group of about 24 MiB, and up to two batches that wait. The names of
//! functions and modules are kept, within the limits of the recording.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::arithmetic_side_effects, reason = "an overflow fails the test")
)]

mod batches;
mod clock;
mod date;
mod dictionary;
mod error;
mod frames;
mod id;
mod machine;
mod numbers;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod partition;
mod rows;
mod samples;
mod schema;
mod stream;
mod tables;
pub use arrow_array::RecordBatch;
pub use arrow_schema::SchemaRef;
pub use batches::SampleBatches;
pub use clock::WallClock;
pub use date::{DateSource, RecordedAt};
pub use error::{Error, Result};
pub use id::{RecordingId, recording_id};
pub use machine::metadata;
pub use options::Options;
#[cfg(feature = "parquet")]
pub use parquet::{
    BrokenRecording, FileStamp, Fold, ParquetFile, ParquetTables, RecordingOrder, RecordingOrders,
    is_known_broken, read_field_columns, read_recordings, write_field_columns,
};
pub use partition::{ENDING, Partition};
pub use schema::{Column, Kind, SCHEMA_KEY, SCHEMA_VERSION, SampleColumn, Table, sample_schema};
pub use stream::ArrowStream;
pub use tables::{FieldColumns, SharedColumns, Summary, TableSink, export_tables};
