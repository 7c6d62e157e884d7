//! A record in a temporary file.

use std::io::{self, Read};

use binrw::Endian;

use crate::error::Result;
use crate::record::RawRecord;

use super::file::{Entry, Writer};

/// A record with its time and its offset in the input.
#[derive(Debug)]
pub struct StoredRecord {
    time: u64,
    offset: u64,
    endian: Endian,
    bytes: Vec<u8>,
}

impl Default for StoredRecord {
    fn default() -> Self {
        StoredRecord {
            time: 0,
            offset: 0,
            endian: Endian::NATIVE,
            bytes: Vec::new(),
        }
    }
}

impl StoredRecord {
    /// Writes a record with a time, by which it is sorted.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub fn store(time: u64, record: &RawRecord<'_>, to: &mut Writer) -> io::Result<()> {
        store(time, record.offset, record.endian, record.bytes, to)
    }

    /// Returns the record.
    ///
    /// # Errors
    /// None, because only complete records are stored.
    pub fn record(&self) -> Result<RawRecord<'_>> {
        RawRecord::first(&self.bytes, self.endian, self.offset)
    }
}

/// Writes the numbers, and the length with the byte order in its highest bit.
fn store(time: u64, offset: u64, endian: Endian, bytes: &[u8], to: &mut Writer) -> io::Result<()> {
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    let is_big = u32::from(endian == Endian::Big) << 31;
    let numbers = [time.to_le_bytes(), offset.to_le_bytes()];
    to.push(&[numbers.as_flattened(), &(len | is_big).to_le_bytes(), bytes])
}

impl Entry for StoredRecord {
    type Key = u64;

    fn key(&self) -> u64 {
        self.time
    }

    fn write(&self, to: &mut Writer) -> io::Result<()> {
        store(self.time, self.offset, self.endian, &self.bytes, to)
    }

    fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        let (mut word, mut len) = ([0; 8], [0; 4]);
        from.read_exact(&mut word)?;
        self.time = u64::from_le_bytes(word);
        from.read_exact(&mut word)?;
        self.offset = u64::from_le_bytes(word);
        from.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len);
        self.endian = match len >> 31 {
            0 => Endian::Little,
            _ => Endian::Big,
        };
        self.bytes.resize((len & u32::MAX >> 1) as usize, 0);
        from.read_exact(&mut self.bytes)
    }
}
