//! Records that are processed at once.

use std::ops::Range;

use perfdata_core::Endian;
use perfdata_core::record::RawRecord;
use perfdata_session::Space;

use super::ahead::MappedPiece;
use perfdata_convert::error::Result;

/// Size of the records in bytes, and number of records, with which a batch is full.
const ENOUGH: usize = 1 << 20;
const MANY: usize = 1 << 12;

/// A sample to unwind.
#[derive(Debug)]
pub(super) struct Job {
    /// The mappings of its process, if they are known.
    pub(super) space: Option<Space<MappedPiece>>,
}

#[derive(Debug)]
struct Item {
    bytes: Range<usize>,
    offset: u64,
    job: Option<Job>,
}

/// Records in the order of the stream.
#[derive(Debug)]
pub(super) struct Batch {
    endian: Endian,
    bytes: Vec<u8>,
    items: Vec<Item>,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            endian: Endian::NATIVE,
            bytes: Vec::new(),
            items: Vec::new(),
        }
    }
}

impl Batch {
    /// Adds a record, which may be a sample to unwind.
    pub(super) fn push(&mut self, raw: &RawRecord<'_>, job: Option<Job>) {
        let start = self.bytes.len();
        self.endian = raw.endian;
        self.bytes.extend_from_slice(raw.bytes);
        let item = Item {
            bytes: start..self.bytes.len(),
            offset: raw.offset,
            job,
        };
        self.items.push(item);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= ENOUGH || self.items.len() >= MANY
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
    }

    /// Returns the samples to unwind.
    pub(super) fn jobs(&self) -> impl Iterator<Item = (RawRecord<'_>, &Job)> {
        let items = self.items.iter();
        items.filter_map(|item| Some((self.raw(item).ok()?, item.job.as_ref()?)))
    }

    /// Returns all records, and whether each is a sample to unwind.
    pub(super) fn records(&self) -> impl Iterator<Item = (Result<RawRecord<'_>>, bool)> {
        let items = self.items.iter();
        items.map(|item| (self.raw(item), item.job.is_some()))
    }

    fn raw(&self, item: &Item) -> Result<RawRecord<'_>> {
        let bytes = self.bytes.get(item.bytes.clone()).unwrap_or_default();
        Ok(RawRecord::first(bytes, self.endian, item.offset)?)
    }
}
