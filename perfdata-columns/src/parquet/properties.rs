//! How columns are encoded.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use parquet::arrow::add_encoded_arrow_schema_to_metadata;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesPtr, WriterVersion,
};
use parquet::schema::types::ColumnPath;

use crate::error::Result;
use crate::schema::ELEMENT;

/// The level of zstd.
const LEVEL: i32 = 3;

/// Maximum size of a dictionary in bytes. Beyond it, names would be repeated in each row.
const DICTIONARY: usize = 16 << 20;

/// Columns that increase: differences are smaller than numbers.
const INCREASING: [&str; 3] = ["time", "start", "end"];

/// Columns of numbers that are too different for a dictionary.
const DIFFERENT: [&str; 3] = ["ip", "addr", "phys_addr"];

/// Returns the properties of files with this schema.
pub(super) fn properties(schema: &Schema) -> Result<WriterPropertiesPtr> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("perfconv ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_dictionary_page_size_limit(DICTIONARY)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        let name = field.name().as_str();
        let path = ColumnPath::from(name);
        match field.data_type() {
            DataType::List(element) => {
                let parts = [name, "list", ELEMENT].map(str::to_owned);
                let path = ColumnPath::new(parts.to_vec());
                // The smallest of all addresses says nothing about a row.
                builder =
                    builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
                if element.data_type() == &DataType::Int64 {
                    builder = builder.set_column_dictionary_enabled(path, false);
                }
            }
            DataType::Int64 | DataType::Timestamp(..) if is_increasing(name, field.data_type()) => {
                builder = builder
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            DataType::Int64 if DIFFERENT.contains(&name) => {
                builder = builder.set_column_dictionary_enabled(path, false);
            }
            _ => {}
        }
    }
    let mut properties = builder.build();
    add_encoded_arrow_schema_to_metadata(schema, &mut properties);
    Ok(Arc::new(properties))
}

fn is_increasing(name: &str, data_type: &DataType) -> bool {
    INCREASING.contains(&name) || matches!(data_type, DataType::Timestamp(..))
}
