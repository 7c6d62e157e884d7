//! An output that a stage sees as it is written.

use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Sees the bytes of an output file as they are written.
pub trait WatchOutput: Send {
    /// The records begin at `offset`. What was written before is not part of them.
    fn records_from(&mut self, offset: u64);

    /// The records end before `offset`. Some of them may still be written.
    fn records_until(&mut self, offset: u64);

    /// `bytes` were written at `offset`, over those that may have been there.
    fn written(&mut self, offset: u64, bytes: &[u8]);
}

/// A [`WatchOutput`] that a stage shares with the output.
pub type SharedWatch = Arc<Mutex<dyn WatchOutput>>;

/// An output with a watch.
pub(super) struct Watched<W> {
    out: W,
    /// Offset of the next byte.
    at: u64,
    watch: Option<SharedWatch>,
}

impl<W: Seek> Watched<W> {
    pub(super) fn new(mut out: W, watch: Option<SharedWatch>) -> io::Result<Self> {
        let at = match watch {
            Some(_) => out.stream_position()?,
            None => 0,
        };
        Ok(Watched { out, at, watch })
    }
}

/// Tells something to a watch, if there is one.
pub(super) fn tell(watch: Option<&SharedWatch>, tell: impl FnOnce(&mut dyn WatchOutput)) {
    if let Some(watch) = watch {
        tell(&mut *watch.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes)?;
        let written = bytes.get(..len).unwrap_or(bytes);
        tell(self.watch.as_ref(), |watch| watch.written(self.at, written));
        self.at = self.at.saturating_add(len as u64);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Seek> Seek for Watched<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.out.seek(to)?;
        Ok(self.at)
    }
}
