//! Reads the records of an input on a thread, ahead of the merge.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use perfdata_core::Result;

use super::blocks::{Block, Changed};

/// Maximum number of blocks that wait.
const WAITING: usize = 2;

/// The blocks of an input, which a thread reads ahead.
pub(super) struct Ahead {
    blocks: Receiver<Result<Block>>,
    /// Returns blocks to the thread, so that their memory is used again.
    spare: Sender<Block>,
}

impl Ahead {
    /// Starts a thread that reads `input`. Returns it if the system starts no thread.
    pub(super) fn start(input: Changed) -> std::result::Result<Ahead, Box<Changed>> {
        let (give, blocks) = sync_channel(WAITING);
        let (spare, take) = channel();
        // The input remains here until the thread has started.
        let (send, receive) = channel::<Changed>();
        let work = move || {
            if let Ok(input) = receive.recv() {
                read(input, &give, &take);
            }
        };
        if thread::Builder::new().spawn(work).is_err() {
            return Err(Box::new(input));
        }
        match send.send(input) {
            Ok(()) => Ok(Ahead { blocks, spare }),
            Err(unsent) => Err(Box::new(unsent.0)),
        }
    }

    /// Replaces `block` by the next one, which is empty at the end.
    ///
    /// # Errors
    /// The input cannot be read or is corrupt.
    pub(super) fn next(&mut self, block: &mut Block) -> Result<()> {
        let next = self.blocks.recv().unwrap_or_else(|_| Ok(Block::default()));
        let old = std::mem::replace(block, next?);
        // The thread may have ended.
        let _ = self.spare.send(old);
        Ok(())
    }
}

/// Passes blocks to `give` up to the end, until nobody takes them.
fn read(mut input: Changed, give: &SyncSender<Result<Block>>, spare: &Receiver<Block>) {
    loop {
        let mut block = spare.try_recv().unwrap_or_default();
        let next = input.next(&mut block).map(|()| block);
        let is_end = next.as_ref().map_or(true, Block::is_empty);
        if give.send(next).is_err() || is_end {
            return;
        }
    }
}
