//! Reads the sorted records of an input on a thread, ahead of the merge.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use perfdata_core::record::RawRecord;
use perfdata_core::{Endian, Result};

use super::sorted::Sorted;

/// Size in bytes of the records that are passed at once.
const BLOCK: usize = 128 << 10;

/// Maximum number of blocks that wait.
const WAITING: usize = 2;

/// The records of an input in the order of time, which a thread reads ahead.
pub(super) struct Ahead {
    blocks: Receiver<Result<Block>>,
    /// Returns blocks to the thread, so that their memory is used again.
    spare: Sender<Block>,
    block: Block,
    /// Index of the current record in the block, and the offset of its first byte and of the next
    /// record. Before the first record, the index is that of no record.
    at: usize,
    start: usize,
    next: usize,
    endian: Endian,
}

/// Some records.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    records: Vec<Place>,
}

/// A record in a block.
struct Place {
    /// Its size in bytes.
    size: usize,
    /// Its offset in the input.
    offset: u64,
    time: Option<u64>,
}

impl Ahead {
    /// Starts a thread that reads `records`. Returns them if the system starts no thread.
    pub(super) fn start(records: Sorted, endian: Endian) -> std::result::Result<Ahead, Sorted> {
        let (give, blocks) = sync_channel(WAITING);
        let (spare, take) = channel();
        // The records remain here until the thread has started.
        let (send, receive) = channel::<Sorted>();
        let work = move || {
            if let Ok(records) = receive.recv() {
                read(records, &give, &take);
            }
        };
        if thread::Builder::new().spawn(work).is_err() {
            return Err(records);
        }
        match send.send(records) {
            Ok(()) => Ok(Ahead {
                blocks,
                spare,
                block: Block::default(),
                at: 0,
                start: 0,
                next: 0,
                endian,
            }),
            Err(unsent) => Err(unsent.0),
        }
    }

    /// Moves to the next record; returns false at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.at = self.at.saturating_add(1);
        while self.at >= self.block.records.len() {
            let Ok(block) = self.blocks.recv() else {
                self.block = Block::default();
                return Ok(false);
            };
            let old = std::mem::replace(&mut self.block, block?);
            // The thread may have ended.
            let _ = self.spare.send(old);
            (self.at, self.next) = (0, 0);
        }
        self.start = self.next;
        let size = self
            .block
            .records
            .get(self.at)
            .map_or(0, |place| place.size);
        self.next = self.next.saturating_add(size);
        Ok(true)
    }

    /// Returns the current record.
    #[inline]
    pub(super) fn current(&self) -> Option<RawRecord<'_>> {
        let place = self.block.records.get(self.at)?;
        let bytes = self.block.bytes.get(self.start..self.next)?;
        RawRecord::first(bytes, self.endian, place.offset).ok()
    }

    /// Returns the time of this record, if it has a known one.
    #[inline]
    pub(super) fn time(&self) -> Option<u64> {
        self.block.records.get(self.at)?.time
    }
}

/// Passes records in blocks to `give`, until nobody takes them.
fn read(mut records: Sorted, give: &SyncSender<Result<Block>>, spare: &Receiver<Block>) {
    loop {
        let mut block = spare.try_recv().unwrap_or_default();
        block.bytes.clear();
        block.records.clear();
        let mut end = None;
        while block.bytes.len() < BLOCK {
            match records.advance() {
                Ok(true) => {}
                other => {
                    end = Some(other);
                    break;
                }
            }
            if let Some(record) = records.current() {
                block.bytes.extend_from_slice(record.bytes);
                block.records.push(Place {
                    size: record.bytes.len(),
                    offset: record.offset,
                    time: records.time(),
                });
            }
        }
        if give.send(Ok(block)).is_err() {
            return;
        }
        match end {
            None => {}
            Some(Ok(_)) => return,
            Some(Err(error)) => {
                // Nobody may wait for it.
                let _ = give.send(Err(error));
                return;
            }
        }
    }
}
