//! Parquet files.

mod broken;
mod encoder;
mod field_columns;
mod file;
mod fold;
mod properties;
mod runs;
mod tables;

pub use broken::{BrokenRecording, FileStamp, is_known_broken};
pub use field_columns::{read_field_columns, write_field_columns};
pub use file::ParquetFile;
pub use fold::{Fold, RecordingOrder, RecordingOrders, read_recordings};
pub use tables::ParquetTables;
