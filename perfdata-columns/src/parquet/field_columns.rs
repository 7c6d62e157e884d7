//! The columns for fields and labels that a table has in a directory of many recordings: the schema
//! of a Parquet file without rows.

use std::fs::File;
use std::path::Path;

use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::file::{Out, ParquetFile};
use crate::error::{Error, Result};
use crate::schema::{Kind, SCHEMA_KEY, SCHEMA_VERSION, Table, schema_of};
use crate::tables::FieldColumns;

/// The types of fields.
const KINDS: [Kind; 3] = [Kind::Int64, Kind::Text, Kind::Bytes];

/// Returns the columns of fields and labels in the Parquet file `path` of `table`. Columns whose
/// type is no type of a field are left out.
///
/// # Errors
/// The file cannot be read, or is no Parquet file.
pub fn read_field_columns(path: &Path, table: &Table) -> Result<FieldColumns> {
    let reader = SerializedFileReader::new(File::open(path).map_err(Error::Output)?)?;
    let metadata = reader.metadata().file_metadata();
    let schema = parquet_to_arrow_schema(metadata.schema_descr(), metadata.key_value_metadata())?;
    let is_common = |name: &str| table.columns().iter().any(|column| column.name == name);
    let fields = schema.fields().iter();
    let fields = fields.filter(|field| !is_common(field.name()));
    let columns = fields.filter_map(|field| {
        let mut kinds = KINDS.into_iter();
        let kind = kinds.find(|kind| kind.data_type() == *field.data_type())?;
        Some((field.name().clone(), kind))
    });
    Ok(columns.collect())
}

/// Writes a Parquet file without rows, whose schema is that of the files of `table` in directories
/// of many recordings, with these columns for fields and labels.
///
/// # Errors
/// The output cannot be written, or the host is big-endian.
pub fn write_field_columns(out: Out, table: &Table, columns: &[(String, Kind)]) -> Result<()> {
    let common = table.columns().iter();
    let common = common.map(|column| (column.name, column.kind));
    let columns = columns.iter().map(|(name, kind)| (name.as_str(), *kind));
    let file = ParquetFile::new(out, schema_of(common.chain(columns)), 0)?;
    file.finish(&[(SCHEMA_KEY.to_owned(), SCHEMA_VERSION.to_owned())])
}
