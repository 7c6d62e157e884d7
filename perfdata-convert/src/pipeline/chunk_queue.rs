//! What the stages of a conversion have made of a chunk of the input, before it is read.
//!
//! One record of a trace can become millions of samples. What does not fit into memory waits in a
//! temporary file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;

use perfdata_core::read::Chunk;
use perfdata_core::record::{RawRecord, RecordType};

use super::chain::Sink;
use crate::error::Result;
use crate::io::spool::{failed, temporary_file};

/// Number of bytes of a block.
const BLOCK: usize = 4 << 20;

/// Chunks in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct ChunkQueue {
    /// The block that is read.
    first: ChunkBlock,
    /// Blocks in `file`.
    stored: VecDeque<StoredBlock>,
    /// The block that is filled, if it is not the first one.
    last: ChunkBlock,
    file: Option<File>,
    /// The size of `file` in bytes.
    size: u64,
}

/// Adjacent chunks in memory.
#[derive(Debug, Default)]
struct ChunkBlock {
    bytes: Vec<u8>,
    chunks: VecDeque<BufferedChunk>,
}

/// The same in the temporary file.
#[derive(Debug)]
struct StoredBlock {
    start: u64,
    size: usize,
    chunks: VecDeque<BufferedChunk>,
}

/// A part of the bytes of a block.
#[derive(Debug)]
pub(super) struct BufferedChunk {
    pub kind: ChunkKind,
    range: Range<usize>,
    /// Offset in the input.
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkKind {
    Records,
    /// A record of its own, because it changes the model or has a payload.
    Alone(RecordType),
    Payload,
    Unreadable,
}

impl ChunkBlock {
    fn push(&mut self, kind: ChunkKind, bytes: &[u8], offset: u64) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        match self.chunks.back_mut() {
            Some(last) if kind == ChunkKind::Records && last.kind == kind => last.range.end = end,
            _ => self.chunks.push_back(BufferedChunk {
                kind,
                range: start..end,
                offset,
            }),
        }
    }

    fn has_space(&self, bytes: &[u8]) -> bool {
        self.bytes.len().saturating_add(bytes.len()) <= BLOCK || self.chunks.is_empty()
    }
}

impl ChunkQueue {
    fn push(&mut self, kind: ChunkKind, bytes: &[u8], offset: u64) -> Result<()> {
        if self.stored.is_empty() && self.last.chunks.is_empty() && self.first.has_space(bytes) {
            self.first.push(kind, bytes, offset);
            return Ok(());
        }
        if !self.last.has_space(bytes) {
            self.store()?;
        }
        self.last.push(kind, bytes, offset);
        Ok(())
    }

    /// Moves the last block to the file.
    fn store(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary_file()?),
        };
        let (start, size) = (self.size, self.last.bytes.len());
        file.seek(SeekFrom::Start(start)).map_err(failed())?;
        file.write_all(&self.last.bytes).map_err(failed())?;
        self.size = start.saturating_add(size as u64);
        self.last.bytes.clear();
        self.stored.push_back(StoredBlock {
            start,
            size,
            chunks: std::mem::take(&mut self.last.chunks),
        });
        Ok(())
    }

    /// Returns the next chunk, whose bytes are [`bytes`](Self::bytes) until the next call; `None` if
    /// all were returned.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(super) fn pop(&mut self) -> Result<Option<BufferedChunk>> {
        if let Some(chunk) = self.first.chunks.pop_front() {
            return Ok(Some(chunk));
        }
        self.first.bytes.clear();
        match (self.stored.pop_front(), &mut self.file) {
            (Some(stored), Some(file)) => {
                file.seek(SeekFrom::Start(stored.start)).map_err(failed())?;
                self.first.bytes.resize(stored.size, 0);
                file.read_exact(&mut self.first.bytes).map_err(failed())?;
                self.first.chunks = stored.chunks;
            }
            _ => {
                // The file is written again from its start.
                self.size = 0;
                std::mem::swap(&mut self.first, &mut self.last);
            }
        }
        Ok(self.first.chunks.pop_front())
    }

    /// Returns the bytes of the chunk that was returned last.
    pub(super) fn bytes(&self, chunk: &BufferedChunk) -> &[u8] {
        let bytes = self.first.bytes.get(chunk.range.clone());
        bytes.unwrap_or_default()
    }

    /// Forgets all chunks.
    pub(super) fn clear(&mut self) {
        *self = ChunkQueue::default();
    }
}

impl Sink for ChunkQueue {
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        let is_alone = record.kind.is_metadata() || record.kind.has_payload();
        let kind = match is_alone {
            true => ChunkKind::Alone(record.kind),
            false => ChunkKind::Records,
        };
        self.push(kind, record.bytes, record.offset)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        match chunk {
            Chunk::Records(batch) => match batch.iter().next() {
                Some(record) if batch.len() == 1 => self.record(&record),
                _ => self.push(ChunkKind::Records, batch.bytes(), batch.offset()),
            },
            Chunk::Payload(bytes) => self.push(ChunkKind::Payload, bytes, 0),
            Chunk::Unreadable(bytes) => self.push(ChunkKind::Unreadable, bytes, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_in_the_file_keep_their_order() {
        let mut queue = ChunkQueue::default();
        for round in 0..3_u8 {
            // More than two blocks of each of two kinds, while some are read.
            let numbers: Vec<u8> = (0..40).map(|number| number + round).collect();
            let mut read = Vec::new();
            let take = |queue: &mut ChunkQueue, read: &mut Vec<u8>| {
                let Some(chunk) = queue.pop().expect("it is read") else {
                    return false;
                };
                let bytes = queue.bytes(&chunk);
                let size = if chunk.kind == ChunkKind::Records {
                    1 << 19
                } else {
                    1 << 18
                };
                assert!(
                    bytes
                        .chunks(size)
                        .all(|one| one.iter().all(|byte| *byte == one[0]))
                );
                read.extend(bytes.chunks(size).map(|one| one[0]));
                true
            };
            for &number in &numbers {
                let (kind, size) = match number % 3 {
                    0 => (ChunkKind::Payload, 1 << 18),
                    _ => (ChunkKind::Records, 1 << 19),
                };
                queue
                    .push(kind, &vec![number; size], 0)
                    .expect("it is stored");
                if number % 7 == 0 {
                    take(&mut queue, &mut read);
                }
            }
            assert!(queue.file.is_some());
            assert!(queue.last.bytes.len() <= BLOCK && queue.first.bytes.len() <= BLOCK);
            while take(&mut queue, &mut read) {}
            assert_eq!(read, numbers);
            assert_eq!((queue.size, queue.stored.len()), (0, 0));
        }
    }
}
