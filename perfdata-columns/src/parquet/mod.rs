//! Parquet files.

mod encoder;
mod file;
mod properties;
mod tables;

pub use file::ParquetFile;
pub use tables::ParquetTables;
