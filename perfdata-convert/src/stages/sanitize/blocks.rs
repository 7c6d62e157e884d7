//! The records of the output in blocks, which two threads check.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use perfdata_core::record::RawRecord;
use perfdata_core::{Endian, Events};

use super::check::{Common, Fields, wrong};
use crate::error::Result;

/// Size in bytes of a block: it fits into the cache of a processor.
const SIZE: usize = 1 << 16;

/// Maximum number of blocks that wait for the other thread.
const WAITING: usize = 8;

/// Adjacent records, with their events.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// Offset of the first one.
    offset: u64,
    endian: Option<Endian>,
    events: Events,
}

impl Block {
    fn check(&self, fields: &mut Fields<'_>) -> Result<()> {
        let Some(endian) = self.endian else {
            return Ok(());
        };
        let mut bytes = self.bytes.as_slice();
        let mut offset = self.offset;
        while !bytes.is_empty() {
            let raw = RawRecord::first(bytes, endian, offset)?;
            fields.check(&raw, &self.events)?;
            offset = offset.saturating_add(raw.bytes.len() as u64);
            bytes = bytes.get(raw.bytes.len()..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Checks blocks of records, on this thread and on another one.
pub(super) struct Blocks<'a, 'b> {
    block: Block,
    /// Blocks for the other thread, which is absent if the system does not start it.
    other: Option<SyncSender<Block>>,
    fields: &'b mut Fields<'a>,
}

impl Blocks<'_, '_> {
    /// Checks all records that `read` adds. With one of `threads`, only the calling thread does.
    ///
    /// # Errors
    /// Those of `read`, or a record is not clean.
    pub(super) fn check(
        common: &Common<'_>,
        threads: usize,
        read: impl FnOnce(&mut Blocks<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        thread::scope(|scope| {
            let (sender, queue) = sync_channel::<Block>(WAITING);
            let work = move || {
                let mut fields = Fields::new(common);
                queue.iter().try_for_each(|block| block.check(&mut fields))
            };
            let handle = (threads > 1)
                .then(|| thread::Builder::new().spawn_scoped(scope, work).ok())
                .flatten();
            let mut fields = Fields::new(common);
            let mut blocks = Blocks {
                block: Block::default(),
                other: handle.is_some().then_some(sender),
                fields: &mut fields,
            };
            let result = read(&mut blocks).and_then(|()| blocks.end());
            // The other thread ends when nothing more can be sent.
            drop(blocks);
            let ended = || Err(wrong("the checking thread has ended"));
            let other = handle.map_or(Ok(()), |handle| handle.join().unwrap_or_else(|_| ended()));
            result.and(other)
        })
    }

    /// Adds a record. If records are elsewhere, their offsets are not adjacent.
    pub(super) fn add(
        &mut self,
        raw: &RawRecord<'_>,
        events: &Events,
        is_elsewhere: bool,
    ) -> Result<()> {
        let block = &self.block;
        let end = block.offset.saturating_add(block.bytes.len() as u64);
        // Events are only added.
        let fits = block.events.len() == events.len() && (is_elsewhere || raw.offset == end);
        if !fits || block.bytes.len() >= SIZE {
            self.end()?;
        }
        if self.block.endian.is_none() {
            self.block.offset = raw.offset;
            self.block.endian = Some(raw.endian);
            self.block.events = events.clone();
        }
        self.block.bytes.extend_from_slice(raw.bytes);
        Ok(())
    }

    /// Checks the records so far.
    fn end(&mut self) -> Result<()> {
        let mut block = std::mem::take(&mut self.block);
        if block.bytes.len() >= SIZE
            && let Some(other) = &self.other
        {
            block = match other.try_send(block) {
                Ok(()) => return Ok(()),
                // It is busy, or found something and has ended.
                Err(TrySendError::Full(block) | TrySendError::Disconnected(block)) => block,
            };
        }
        block.check(self.fields)?;
        // Its memory is used again.
        block.bytes.clear();
        self.block.bytes = block.bytes;
        Ok(())
    }
}
