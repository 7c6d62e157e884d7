//! The number of records of a recording, with one definition for all commands.
//!
//! Counts the records of the data section. In a pipe, metadata are records of the stream, too; a
//! file has them in separate sections. So metadata records are counted separately. Records inside
//! compressed records are also counted separately: a compressed record counts as one record of the
//! data section, regardless of its content.

use std::fmt;

use perfdata_core::read::RecordBatch;
use perfdata_core::record::RecordType;

use crate::json::Json;

/// The numbers of records of a recording, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Records of the data section; in a pipe, without metadata.
    pub records: u64,
    /// Records inside compressed records of the data section.
    pub compressed: u64,
    /// Metadata records (`HEADER_…`), whose content a file has outside of its data section.
    pub metadata: u64,
}

impl Counts {
    /// Counts a record of the stream.
    pub fn add(&mut self, kind: RecordType) {
        self.add_all(kind, 1, None);
    }

    /// Counts a record, which is inside a compressed record if it has an index there, and otherwise
    /// in the stream.
    pub fn add_at(&mut self, kind: RecordType, inner: Option<usize>) {
        self.add_all(kind, 1, inner);
    }

    /// Counts `count` records of a type, likewise.
    #[inline]
    pub fn add_all(&mut self, kind: RecordType, count: u64, inner: Option<usize>) {
        let sum = match inner {
            Some(_) => &mut self.compressed,
            None if is_header(kind) => &mut self.metadata,
            None => &mut self.records,
        };
        *sum = sum.saturating_add(count);
    }

    /// Counts records of the stream. Metadata records must be in a separate batch.
    pub fn add_batch(&mut self, batch: &RecordBatch<'_>) {
        match batch.iter().next() {
            Some(record) if batch.len() == 1 => self.add(record.kind),
            _ => self.records = self.records.saturating_add(batch.len() as u64),
        }
    }

    /// Counts records of the stream that are not metadata.
    pub(crate) fn add_records(&mut self, records: u64) {
        self.records = self.records.saturating_add(records);
    }

    /// Adds the numbers of another part.
    pub fn merge(&mut self, other: Counts) {
        self.records = self.records.saturating_add(other.records);
        self.compressed = self.compressed.saturating_add(other.compressed);
        self.metadata = self.metadata.saturating_add(other.metadata);
    }

    /// Formats the number as `890 records`, without the separate numbers.
    pub fn short(&self) -> String {
        number_of(self.records, "record")
    }

    /// Writes the fields of the object `name` in JSON.
    pub fn json(&self, json: &mut Json, name: &'static str) {
        json.object(name);
        json.number("records", self.records);
        json.number("compressed", self.compressed);
        json.number("metadata", self.metadata);
        json.close();
    }
}

/// Formats a number and its unit: `1 record`, `2 records`.
pub fn number_of(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Formats the number as `890 records`, followed by the separate numbers.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())?;
        if self.compressed > 0 {
            write!(f, ", {} inside compressed records", self.compressed)?;
        }
        if self.metadata > 0 {
            write!(f, ", {}", number_of(self.metadata, "metadata record"))?;
        }
        Ok(())
    }
}

/// Returns whether the content of records of this type is outside of the data section in a file.
pub fn is_header(kind: RecordType) -> bool {
    kind.is_metadata() || kind == RecordType::HEADER_BUILD_ID
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::Endian;
    use perfdata_core::record::{RecordHeader, TABLE};
    use perfdata_core::wire::Wire;

    #[test]
    fn metadata_are_what_the_kernel_calls_headers() {
        for info in TABLE {
            assert_eq!(
                is_header(info.kind),
                info.name.starts_with("HEADER_"),
                "{}",
                info.name
            );
        }
    }

    #[test]
    fn a_run_counts_as_its_records_do() {
        for info in TABLE {
            let mut bytes = Vec::new();
            for kind in [RecordType::COMM, info.kind, RecordType::SAMPLE] {
                RecordHeader {
                    kind,
                    misc: 0,
                    size: 8,
                }
                .encode_into(&mut bytes, Endian::Little)
                .expect("a header");
            }
            let (mut by_batch, mut by_record) = (Counts::default(), Counts::default());
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let batch = RecordBatch::first(rest, Endian::Little, 0);
                by_batch.add_batch(&batch);
                batch.iter().for_each(|record| by_record.add(record.kind));
                rest = &rest[batch.bytes().len()..];
            }
            assert_eq!(by_batch, by_record, "{}", info.name);
            assert_eq!(by_batch.records + by_batch.metadata, 3, "{}", info.name);
        }
    }

    #[test]
    fn what_is_counted_apart_is_said_where_there_is_any() {
        let text = |records, compressed, metadata| {
            Counts {
                records,
                compressed,
                metadata,
            }
            .to_string()
        };
        assert_eq!(text(1, 0, 0), "1 record");
        assert_eq!(
            text(12, 8000, 1),
            "12 records, 8000 inside compressed records, 1 metadata record"
        );
    }
}
