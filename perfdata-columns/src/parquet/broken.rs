//! The list of recordings that could not be exported.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::TimestampMicrosecondArray;
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::file::{Out, ParquetFile};
use crate::error::Result;
use crate::machine::exporter;
use crate::schema::{SCHEMA_KEY, SCHEMA_VERSION, Table, schema_of};

/// The keys of the metadata that identify the state of the file.
const STATE_KEYS: [&str; 3] = ["perfconv.size", "perfconv.mtime", "perfconv.version"];

/// The state of a file when it was read, by which a later change is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Nanoseconds between 1970 (UTC) and the last change.
    pub mtime: Option<i128>,
}

impl FileStamp {
    fn values(self) -> [String; 3] {
        let mtime = self.mtime.map(|mtime| mtime.to_string());
        [self.size.to_string(), mtime.unwrap_or_default(), exporter()]
    }
}

/// A recording that could not be exported: the row of the table `broken`.
#[derive(Debug, Clone)]
pub struct BrokenRecording<'a> {
    /// The absolute path.
    pub path: &'a [u8],
    /// The state of the file.
    pub stamp: FileStamp,
    /// The text of the error.
    pub error: &'a str,
    /// The exit status of the error.
    pub status: u8,
    /// Whether another attempt may succeed although the file has not changed.
    pub retry: bool,
    /// Microseconds between 1970 (UTC) and the attempt.
    pub tried: Option<i64>,
}

impl BrokenRecording<'_> {
    /// Writes a Parquet file with this row.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&self, out: Out) -> Result<()> {
        let columns = Table::Broken.columns().iter();
        let schema = schema_of(columns.map(|column| (column.name, column.kind)));
        let micros = |time: Option<i64>| -> ArrayRef {
            Arc::new(TimestampMicrosecondArray::from(vec![time]).with_timezone("UTC"))
        };
        let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let mtime = self.stamp.mtime;
        let mtime = mtime.and_then(|mtime| i64::try_from(mtime.div_euclid(1000)).ok());
        let arrays: Vec<ArrayRef> = vec![
            text(&crate::machine::text(self.path)),
            Arc::new(Int64Array::from(vec![self.stamp.size.cast_signed()])),
            micros(mtime),
            text(&crate::machine::text(self.error.as_bytes())),
            Arc::new(Int32Array::from(vec![i32::from(self.status)])),
            Arc::new(BooleanArray::from(vec![self.retry])),
            micros(self.tried),
            text(&exporter()),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let mut file = ParquetFile::new(out, schema, 0)?;
        file.write(batch)?;
        let mut metadata = vec![(SCHEMA_KEY.to_owned(), SCHEMA_VERSION.to_owned())];
        if !self.retry {
            let keys = STATE_KEYS.map(str::to_owned);
            metadata.extend(keys.into_iter().zip(self.stamp.values()));
        }
        file.finish(&metadata)
    }
}

/// Returns whether `path`, a file of the table `broken`, is about this state of the recording and
/// this version of the library, and another attempt would fail again. Without such a file, or with
/// a corrupt one, it is not.
pub fn is_known_broken(path: &Path, stamp: FileStamp) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let Ok(reader) = SerializedFileReader::new(file) else {
        return false;
    };
    let metadata = reader.metadata().file_metadata();
    let Some(pairs) = metadata.key_value_metadata() else {
        return false;
    };
    let value_of = |key: &str| pairs.iter().find(|pair| pair.key == key)?.value.as_deref();
    let expected = stamp.values();
    let mut expected = STATE_KEYS.iter().zip(&expected);
    expected.all(|(key, expected)| value_of(key) == Some(expected))
}
