//! A background thread that consumes items in order.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// A thread that consumes items of type `T` and returns `R` at the end. Consumed items come back,
/// so that their memory is used again.
#[derive(Debug)]
pub struct Background<T, R> {
    items: SyncSender<T>,
    spare: Receiver<T>,
    handle: JoinHandle<R>,
}

impl<T: Default + Send + 'static, R: Send + 'static> Background<T, R> {
    /// Starts `work` with the items, of which at most `waiting` wait, and the channel for consumed
    /// ones.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(
        waiting: usize,
        work: impl FnOnce(Receiver<T>, Sender<T>) -> R + Send + 'static,
    ) -> io::Result<Self> {
        let (items, queue) = sync_channel(waiting);
        let (done, spare) = channel();
        let handle = thread::Builder::new().spawn(move || work(queue, done))?;
        Ok(Background {
            items,
            spare,
            handle,
        })
    }

    /// Returns a consumed item, or a new one.
    pub fn spare(&self) -> T {
        self.spare.try_recv().unwrap_or_default()
    }

    /// Passes an item to the thread. Returns false if the thread has ended.
    pub fn send(&self, item: T) -> bool {
        self.items.send(item).is_ok()
    }

    /// Waits until all items are consumed.
    pub fn join(self) -> thread::Result<R> {
        drop(self.items);
        self.handle.join()
    }
}
