//! Writing files on a background thread.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use std::sync::mpsc::Receiver;

use crate::error::{Error, Result};
use crate::support::background::Background;

/// Minimum size of a file for which a thread is started, in bytes.
const WORTH: u64 = 4 << 20;

/// Maximum number of blocks that are queued for the thread.
const WAITING: usize = 2;

/// A file that a background thread writes when it becomes large, so that the caller does not wait
/// for the system. With one thread, or if the system cannot start another one, the calling thread
/// writes.
/// Errors are returned by a later call, at the latest by [`flush`](Write::flush), which waits until
/// everything is written.
pub struct BackgroundWriter<'a> {
    file: &'a File,
    written: u64,
    thread: Option<Background<Vec<u8>, io::Result<()>>>,
    /// Whether the calling thread writes: another one would only compete with it for the CPU, or
    /// the system cannot start one.
    is_alone: bool,
}

impl<'a> BackgroundWriter<'a> {
    /// Returns a writer to `file`, from its current position. With one of `threads`, the calling
    /// thread writes.
    pub fn new(file: &'a File, threads: usize) -> Self {
        BackgroundWriter {
            file,
            written: 0,
            thread: None,
            is_alone: threads <= 1,
        }
    }

    /// Writes to `file` with `write`, and waits until everything is written. With one of `threads`,
    /// the calling thread writes.
    ///
    /// # Errors
    /// The errors of `write`, and of the operating system.
    pub fn write_all<T>(
        file: &'a File,
        threads: usize,
        write: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        let mut behind = BackgroundWriter::new(file, threads);
        let result = write(&mut behind)?;
        behind.flush().map_err(Error::io("output"))?;
        Ok(result)
    }

    fn start(&self) -> io::Result<Background<Vec<u8>, io::Result<()>>> {
        let mut file = self.file.try_clone()?;
        Background::start(WAITING, move |queue: Receiver<Vec<u8>>, done| {
            for block in queue {
                file.write_all(&block)?;
                // At the end, the receiver no longer exists.
                let _ = done.send(block);
            }
            Ok(())
        })
    }

    /// Waits until the thread has written everything.
    fn settle(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        thread.join().unwrap_or_else(|_| {
            Err(io::Error::other(
                "internal error: the writing thread has ended",
            ))
        })
    }
}

impl Write for BackgroundWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.thread.is_none() && !self.is_alone && self.written >= WORTH {
            self.thread = self.start().ok();
            self.is_alone = self.thread.is_none();
        }
        let Some(thread) = &mut self.thread else {
            return self.file.write(bytes);
        };
        let mut block = thread.spare();
        block.clear();
        block.extend_from_slice(bytes);
        if !thread.send(block) {
            self.settle()?;
            return Err(io::Error::other(
                "internal error: the writing thread has ended",
            ));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        self.file.flush()
    }
}

impl Seek for BackgroundWriter<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.settle()?;
        // Only a few bytes are written after a seek.
        self.written = 0;
        self.file.seek(to)
    }
}

impl Drop for BackgroundWriter<'_> {
    fn drop(&mut self) {
        // A caller that needs the result has called `flush`.
        let _ = self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_written_is_there() {
        for threads in [1, 2] {
            check(threads);
        }
    }

    fn check(threads: usize) {
        let mut file = tempfile::tempfile().expect("a temporary file");
        let block: Vec<u8> = (0..1 << 20).map(|at: u32| at as u8).collect();
        let mut behind = BackgroundWriter::new(&file, threads);
        for _ in 0..10 {
            behind.write_all(&block).expect("room");
        }
        behind.seek(SeekFrom::Start(3)).expect("a file");
        behind
            .write_all(b"here")
            .and_then(|()| behind.flush())
            .expect("room");
        drop(behind);
        let mut expected = block.repeat(10);
        expected[3..7].copy_from_slice(b"here");
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_end(&mut bytes))
            .expect("a file");
        assert!(bytes == expected);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_noticed() {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        let mut behind = BackgroundWriter::new(&full, 2);
        behind.written = WORTH;
        let write = |behind: &mut BackgroundWriter<'_>| {
            (0..8).try_for_each(|_| behind.write_all(&[0; 1024]))
        };
        let result = write(&mut behind).and_then(|()| behind.flush());
        assert_eq!(
            result.map_err(|error| error.kind()),
            Err(io::ErrorKind::StorageFull)
        );
    }
}
