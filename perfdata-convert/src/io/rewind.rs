//! Streams that are read from their start again, after a look at the metadata at their head.

use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perfdata_core::feature::FeatureId;
use perfdata_core::read::{Chunk, Limits};
use perfdata_core::record::RecordType;

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
    /// Returns the same input, and whether traces in AUX data are found at its start. A recording
    /// that cannot be read has none.
    #[must_use]
    pub fn and_whether_traced(self) -> (Input, bool) {
        let (written, bundle) = (self.written, self.bundle.clone());
        let (input, rewind) = self.rewindable();
        let Some(rewind) = rewind else {
            let again = input.again().map(|again| Input {
                watch: None,
                ..again
            });
            let is_traced = again.is_some_and(|again| announces_traces(again).unwrap_or(false));
            return (input, is_traced);
        };
        let is_traced = announces_traces(input).unwrap_or(false);
        let input = Input {
            written,
            bundle,
            ..rewind.into_stream()
        };
        (input, is_traced)
    }

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

/// Returns whether the recording has traces, according to its index, or to an AUXTRACE_INFO record
/// before those of the kernel, where perf writes it.
fn announces_traces(input: Input) -> Result<bool> {
    let (mut reader, _) = input.reader()?;
    if reader
        .recording()
        .features
        .contains_key(&FeatureId::AUXTRACE)
    {
        return Ok(true);
    }
    while let Some((Chunk::Records(batch), _)) = reader.next_chunk()? {
        for record in batch.iter() {
            if record.kind == RecordType::AUXTRACE_INFO {
                return Ok(true);
            }
            if record.kind.is_kernel() {
                return Ok(false);
            }
        }
    }
    Ok(false)
}

impl Rewind {
    /// Frees the bytes that were read: the stream is not read again.
    pub(crate) fn release(self) {
        self.kept.locked().head = None;
    }

    /// Returns the stream from its start. Its first reader must have ended.
    fn into_stream(self) -> Input {
        let head = self.kept.locked().head.take().unwrap_or_default();
        let stream = Cursor::new(head).chain(self.kept);
        let input = Input {
            watch: self.watch,
            ..Input::from(OpenInput::Stream(Box::new(stream)))
        };
        input.limited_by(self.limits)
    }

    /// Returns the stream from its start, as an input that can be read twice: it is stored in a
    /// temporary file. Its first reader must have ended.
    ///
    /// # Errors
    /// As [`into_seekable`](Input::into_seekable).
    pub(crate) fn into_seekable(self) -> Result<Input> {
        self.into_stream().into_seekable()
    }
}
