//! The records of a recording in blocks, which all threads receive.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;

use perfdata_core::Recording;
use perfdata_core::read::RecordRef;
use perfdata_core::record::{RawRecord, RecordType};

use super::MOST_THREADS;
use crate::error::{Error, Result};

/// Number of blocks after which it is known how many threads are of use.
const TRIED: u64 = 8;

/// Maximum size in bytes of all copies of the metadata of a stream, which a block has if they changed.
const MOST_COPIED: u64 = 4 << 30;

/// Records in the order of time.
#[derive(Debug)]
pub(super) struct RecordBlock {
    pub number: u64,
    bytes: Vec<u8>,
    /// Of each record its offset in the input, and where it ends in `bytes`.
    places: Vec<(u64, usize)>,
    pub recording: Arc<Recording>,
    /// Whether there are no records after them.
    pub is_last: bool,
    /// Whether a thread resolves its samples.
    pub is_taken: AtomicBool,
}

impl RecordBlock {
    pub fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        let mut start = 0;
        self.places.iter().map_while(move |&(offset, end)| {
            let bytes = self.bytes.get(start..end)?;
            start = end;
            let record = RawRecord::first(bytes, self.recording.endian, offset).ok()?;
            Some(RecordRef::new(record, &self.recording))
        })
    }
}

/// Sends the records of a recording to all threads.
pub(super) struct Feed {
    /// Size of the records at which they are sent.
    block: usize,
    threads: Vec<SyncSender<Arc<RecordBlock>>>,
    pub number: u64,
    bytes: Vec<u8>,
    places: Vec<(u64, usize)>,
    /// The metadata for the records that wait.
    recording: Arc<Recording>,
    is_recording_old: bool,
    /// Whether one of the records that wait needs its metadata.
    has_events: bool,
    copied: u64,
    /// Number of samples, and of other records.
    samples: usize,
    others: usize,
}

impl Feed {
    pub fn new(
        recording: &Recording,
        threads: Vec<SyncSender<Arc<RecordBlock>>>,
        block: usize,
    ) -> Self {
        Feed {
            block,
            threads,
            number: 0,
            bytes: Vec::new(),
            places: Vec::new(),
            recording: Arc::new(recording.clone()),
            is_recording_old: false,
            has_events: false,
            copied: 0,
            samples: 0,
            others: 0,
        }
    }

    /// Adds a record. Returns whether all threads are still there.
    pub fn add(&mut self, record: &RecordRef<'_>) -> Result<bool> {
        let recording = record.recording();
        let is_metadata = record.kind.is_metadata() || record.kind == RecordType::HEADER_BUILD_ID;
        self.is_recording_old |=
            is_metadata || recording.events.len() != self.recording.events.len();
        let mut is_complete = true;
        if self.is_recording_old && (!is_metadata || self.has_events) {
            if self.has_events {
                is_complete = self.send(false);
            }
            if !is_metadata {
                self.renew(recording)?;
            }
        }
        self.has_events |= !is_metadata;
        let count = match record.kind {
            RecordType::SAMPLE => &mut self.samples,
            _ => &mut self.others,
        };
        *count = count.saturating_add(1);
        self.bytes.extend_from_slice(record.bytes);
        self.places.push((record.offset, self.bytes.len()));
        if self.bytes.len() >= self.block {
            is_complete &= self.send(false);
        }
        Ok(is_complete)
    }

    /// Takes over the metadata.
    #[cold]
    fn renew(&mut self, recording: &Recording) -> Result<()> {
        let features = recording.features.values().map(Vec::len);
        let events = recording.events.len().saturating_mul(512);
        let size = features.fold(events, usize::saturating_add);
        self.copied = self.copied.saturating_add(size as u64);
        if self.copied > MOST_COPIED {
            return Err(Error::ChangesTooOften);
        }
        self.recording = Arc::new(recording.clone());
        self.is_recording_old = false;
        Ok(())
    }

    /// Sends the records that wait. Returns whether all threads received them.
    pub fn send(&mut self, is_last: bool) -> bool {
        let block = Arc::new(RecordBlock {
            number: self.number,
            bytes: std::mem::replace(&mut self.bytes, Vec::with_capacity(self.block)),
            places: std::mem::take(&mut self.places),
            recording: Arc::clone(&self.recording),
            is_last,
            is_taken: AtomicBool::new(false),
        });
        self.number = self.number.saturating_add(1);
        self.has_events = false;
        if self.number == TRIED {
            // Every thread has to process all records that are not samples.
            let useful = self.samples.checked_div(self.others);
            self.threads
                .truncate(useful.map_or(MOST_THREADS, |useful| useful.saturating_add(1)));
        }
        self.threads
            .iter()
            .all(|thread| thread.send(Arc::clone(&block)).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use perfdata_core::Endian;
    use perfdata_core::feature::FeatureId;

    use super::*;

    /// Returns a record that consists of its header.
    fn header(kind: RecordType) -> Vec<u8> {
        let kind = kind.0.to_le_bytes();
        [&kind[..], &[0, 0, 8, 0]].concat()
    }

    /// Adds a record of a type to the feed.
    fn add(feed: &mut Feed, kind: RecordType) -> Result<bool> {
        let bytes = header(kind);
        let recording = Recording::new(Endian::Little);
        let raw = RawRecord::first(&bytes, Endian::Little, 0).unwrap();
        feed.add(&RecordRef::new(raw, &recording))
    }

    fn feed(threads: usize, block: usize) -> (Feed, Vec<Receiver<Arc<RecordBlock>>>) {
        let (inputs, outputs) = (0..threads).map(|_| sync_channel(100)).unzip();
        let recording = Recording::new(Endian::Little);
        (Feed::new(&recording, inputs, block), outputs)
    }

    #[test]
    fn a_block_has_the_metadata_of_its_records() {
        let (mut feed, outputs) = feed(1, 1000);
        let kinds = [
            RecordType::HEADER_ATTR,
            RecordType::HEADER_ATTR,
            RecordType::SAMPLE,
            RecordType::SAMPLE,
            RecordType::HEADER_ATTR,
            RecordType::COMM,
        ];
        for kind in kinds {
            assert!(add(&mut feed, kind).unwrap());
        }
        assert!(feed.send(true));
        drop(feed);
        let blocks = outputs[0].iter();
        let blocks = blocks.map(|block| (block.records().count(), block.is_last));
        assert_eq!(blocks.collect::<Vec<_>>(), [(4, false), (2, true)]);
    }

    #[test]
    fn metadata_that_change_always_are_an_error() {
        let (mut feed, _outputs) = feed(1, 1000);
        feed.copied = MOST_COPIED;
        assert!(add(&mut feed, RecordType::HEADER_ATTR).unwrap());
        let mut recording = Recording::new(Endian::Little);
        recording.features.insert(FeatureId::HOSTNAME, vec![0]);
        let error = feed.renew(&recording).unwrap_err();
        assert!(matches!(error, Error::ChangesTooOften));
    }

    #[test]
    fn threads_that_would_only_follow_are_not_used() {
        for (others, threads) in [(1, 4), (2, 2), (9, 1)] {
            let (mut feed, _outputs) = feed(4, 8);
            for number in 0..TRIED * 2 {
                let is_sample = others == 1 && number % 4 > 0 || others == 2 && number % 2 > 0;
                let kind = match is_sample {
                    true => RecordType::SAMPLE,
                    false => RecordType::COMM,
                };
                assert!(add(&mut feed, kind).unwrap());
            }
            assert_eq!(feed.threads.len(), threads, "{others}");
        }
    }
}
