//! Storage for records until the whole recording is known.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use perfdata_core::Endian;
use perfdata_core::record::{RawRecord, RecordHeader};

use perfdata_convert::error::{Error, Result};

/// Records in a temporary file, each after its offset in the input.
#[derive(Debug)]
pub struct Spool {
    file: BufWriter<File>,
    endian: Endian,
}

impl Spool {
    /// Returns an empty storage in `file` for records in byte order `endian`.
    pub fn new(file: File, endian: Endian) -> Self {
        Spool {
            file: BufWriter::new(file),
            endian,
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, record: &RawRecord<'_>) -> Result<()> {
        let written = self.file.write_all(&record.offset.to_ne_bytes());
        written
            .and_then(|()| self.file.write_all(record.bytes))
            .map_err(failed())
    }

    /// Calls `see` with all records, in order of arrival.
    ///
    /// # Errors
    /// The file cannot be read, or `see` returns an error.
    pub fn each(&mut self, mut see: impl FnMut(&RawRecord<'_>) -> Result<()>) -> Result<()> {
        self.file.flush().map_err(failed())?;
        let mut file = self.file.get_ref();
        file.seek(SeekFrom::Start(0)).map_err(failed())?;
        let mut file = BufReader::new(file);
        let mut bytes = Vec::new();
        let mut read = |len: usize, bytes: &mut Vec<u8>| {
            (&mut file)
                .take(len as u64)
                .read_to_end(bytes)
                .map_err(failed())
        };
        loop {
            bytes.clear();
            if read(PREFIX + RecordHeader::SIZE, &mut bytes)? == 0 {
                return Ok(());
            }
            let header = bytes
                .get(PREFIX..)
                .and_then(|header| RecordHeader::parse(header, self.endian));
            read(
                header
                    .map_or(0, |header| usize::from(header.size))
                    .saturating_sub(RecordHeader::SIZE),
                &mut bytes,
            )?;
            let (offset, record) = bytes
                .split_first_chunk::<PREFIX>()
                .unwrap_or((&[0; PREFIX], &[]));
            see(&RawRecord::first(
                record,
                self.endian,
                u64::from_ne_bytes(*offset),
            )?)?;
        }
    }
}

/// Size of the offset before a record in bytes.
const PREFIX: usize = size_of::<u64>();

fn failed() -> impl FnOnce(io::Error) -> Error {
    Error::io("temporary file")
}
