//! Streams that are read from their start again, after a look at the metadata at their head.

use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perfdata_core::read::Limits;

use super::input::{Input, OpenInput};
use super::reader::Watch;
use crate::error::Result;

/// The way back to the start of a stream, whose reader may have read its head.
pub(crate) struct Rewind {
    kept: Shared,
    watch: Option<Arc<dyn Watch>>,
    limits: Limits,
}

/// A stream, which is shared with its reader.
#[derive(Clone)]
struct Shared(Arc<Mutex<Kept>>);

struct Kept {
    stream: Box<dyn Read + Send>,
    /// The bytes read so far, as long as they are kept.
    head: Option<Vec<u8>>,
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Shared {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut kept = self.locked();
        let read = kept.stream.read(buf)?;
        if let Some(head) = &mut kept.head {
            head.extend_from_slice(buf.get(..read).unwrap_or_default());
        }
        Ok(read)
    }
}

impl Input {
    /// Returns the same input; for a stream, also the way back to its start.
    pub(crate) fn rewindable(self) -> (Input, Option<Rewind>) {
        let OpenInput::Stream(stream) = self.kind else {
            return (self, None);
        };
        let head = Some(Vec::new());
        let kept = Shared(Arc::new(Mutex::new(Kept { stream, head })));
        let rewind = Rewind {
            kept: kept.clone(),
            watch: self.watch.clone(),
            limits: self.limits,
        };
        let kind = OpenInput::Stream(Box::new(kept));
        (Input { kind, ..self }, Some(rewind))
    }
}

impl Rewind {
    /// Frees the bytes that were read: the stream is not read again.
    pub(crate) fn release(self) {
        self.kept.locked().head = None;
    }

    /// Returns the stream from its start, as an input that can be read twice: it is stored in a
    /// temporary file. Its first reader must have ended.
    ///
    /// # Errors
    /// As [`into_seekable`](Input::into_seekable).
    pub(crate) fn into_seekable(self) -> Result<Input> {
        let head = self.kept.locked().head.take().unwrap_or_default();
        let stream = Cursor::new(head).chain(self.kept);
        let input = Input {
            watch: self.watch,
            ..Input::from(OpenInput::Stream(Box::new(stream)))
        };
        input.limited_by(self.limits).into_seekable()
    }
}
