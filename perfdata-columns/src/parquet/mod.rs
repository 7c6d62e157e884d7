//! Parquet files.

mod broken;
mod encoder;
mod file;
mod properties;
mod tables;

pub use broken::{BrokenRecording, FileStamp, is_known_broken};
pub use file::ParquetFile;
pub use tables::ParquetTables;
