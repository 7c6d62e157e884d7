//! The records of an input that a filter accepts.

use std::fmt;
use std::sync::Arc;

use perfdata_core::container_layout::ContainerLayout;
use perfdata_core::read::{Chunk, Decompressor, Limits, RecordBatch, RecordSource, Tail};
use perfdata_core::record::RawRecord;
use perfdata_core::{Error, Recording, Result};

use super::input::BoxedSource;

/// Decides about the records of an input, which it receives in their order, those of compressed
/// records included. Each call returns a filter for another pass over the same input.
pub type RecordFilter = Arc<dyn Fn() -> Accepts + Send + Sync>;

/// Returns whether the next record is accepted.
pub type Accepts = Box<dyn FnMut(&RawRecord<'_>) -> bool + Send>;

/// A reader of the accepted records of another one, which are not compressed.
pub(super) struct Filtered {
    inner: BoxedSource,
    accepts: Accepts,
    decompressor: Option<Decompressor>,
    /// The accepted records of a chunk, and the offset of the chunk.
    kept: Vec<u8>,
    offset: u64,
    /// The next record of `kept` that was not returned.
    next: usize,
    /// Whether the last record was accepted, and with it its payload.
    has_payload: bool,
}

impl fmt::Debug for Filtered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").finish_non_exhaustive()
    }
}

/// What a chunk contained.
enum ChunkContent {
    Records,
    Payload,
    Unreadable,
}

impl Filtered {
    pub(super) fn new(inner: BoxedSource, filter: &RecordFilter) -> Self {
        Filtered {
            inner,
            accepts: filter(),
            decompressor: None,
            kept: Vec::new(),
            offset: 0,
            next: 0,
            has_payload: false,
        }
    }

    /// Reads the next chunk.
    fn read(&mut self) -> Result<Option<ChunkContent>> {
        let limits = self.inner.limits();
        let Filtered {
            inner,
            accepts,
            decompressor,
            kept,
            offset,
            next,
            has_payload,
        } = self;
        kept.clear();
        *next = 0;
        let Some((chunk, recording)) = inner.next_chunk()? else {
            return Ok(None);
        };
        let batch = match chunk {
            Chunk::Records(batch) => batch,
            Chunk::Payload(bytes) => {
                if *has_payload {
                    kept.extend_from_slice(bytes);
                }
                return Ok(Some(ChunkContent::Payload));
            }
            Chunk::Unreadable(bytes) => {
                kept.extend_from_slice(bytes);
                return Ok(Some(ChunkContent::Unreadable));
            }
        };
        *offset = batch.offset();
        let mut keep = |record: &RawRecord<'_>| {
            *has_payload = accepts(record);
            if *has_payload {
                kept.extend_from_slice(record.bytes);
            }
        };
        for record in batch.iter() {
            if !record.kind.is_compressed() {
                keep(&record);
                continue;
            }
            let mut inner = match decompressor.take() {
                Some(inner) => inner,
                None => Decompressor::of(recording, limits)?,
            };
            inner.push(&record)?;
            while let Some(record) = inner.next()? {
                keep(&record);
            }
            *decompressor = Some(inner);
        }
        Ok(Some(ChunkContent::Records))
    }
}

impl RecordSource for Filtered {
    fn recording(&self) -> &Recording {
        self.inner.recording()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn container_layout(&self) -> &ContainerLayout {
        self.inner.container_layout()
    }

    fn next_chunk(&mut self) -> Result<Option<(Chunk<'_>, &Recording)>> {
        let mut found = ChunkContent::Records;
        while self.next >= self.kept.len() {
            match self.read()? {
                Some(next) => found = next,
                None => return Ok(None),
            }
        }
        let rest = self.kept.get(self.next..).unwrap_or_default();
        let recording = self.inner.recording();
        let chunk = match found {
            ChunkContent::Records => {
                let offset = self.offset.saturating_add(self.next as u64);
                let batch = RecordBatch::first(rest, recording.endian, offset);
                let len = match batch.bytes().len() {
                    0 => rest.len(),
                    len => len,
                };
                self.next = self.next.saturating_add(len);
                Chunk::Records(batch)
            }
            ChunkContent::Payload => {
                self.next = self.kept.len();
                Chunk::Payload(rest)
            }
            ChunkContent::Unreadable => {
                self.next = self.kept.len();
                Chunk::Unreadable(rest)
            }
        };
        Ok(Some((chunk, recording)))
    }

    fn damage(&self) -> Option<&Error> {
        self.inner.damage()
    }

    fn take_damage(&mut self) -> Option<Error> {
        self.inner.take_damage()
    }

    fn tail(&self) -> Option<Tail> {
        self.inner.tail()
    }
}
