//! One Parquet file.

use std::fmt;
use std::io::Write;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::encoder::Encoder;
use crate::error::{Error, Result};

/// Number of batches that wait for a thread that encodes.
const WAITING: usize = 1;

/// Where a file is written. It reaches the file in parts, from start to end.
pub(super) type Out = Box<dyn Write + Send>;

/// Writes record batches to a Parquet file, compressed with zstd.
///
/// A row group has at most 1,048,576 rows, and about 24 MiB of encoded data; it is written when it
/// is complete. The output is not read and needs no seeking. It is valid after
/// [`finish`](Self::finish).
///
/// ```
/// use perfdata_columns::{Options, ParquetFile, SampleBatches};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/6.1-x86_64-file-z.data");
/// # let output = tempfile::tempfile()?;
/// # if cfg!(target_endian = "big") {
/// #     return Ok(());
/// # }
/// let mut batches = SampleBatches::new(perfdata_session::open(path)?, None, &Options::default());
/// let mut file = ParquetFile::new(output, batches.schema(), 2)?;
/// while let Some(batch) = batches.next_batch()? {
///     file.write(batch)?;
/// }
/// file.finish(&[])?;
/// # Ok(())
/// # }
/// ```
pub struct ParquetFile {
    writer: FileState,
}

enum FileState {
    /// Encodes in this thread.
    Here(Box<Encoder>),
    /// Encodes in other threads.
    Behind(Background),
}

/// The threads that encode.
struct Background {
    batches: Option<SyncSender<RecordBatch>>,
    thread: Option<JoinHandle<Result<Box<Encoder>>>>,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile").finish_non_exhaustive()
    }
}

impl ParquetFile {
    /// Starts a file with this schema. With `threads`, that many other threads encode the columns
    /// of a batch at the same time, while this one makes the next batch; without, this one encodes.
    ///
    /// # Errors
    /// The output cannot be written, or the host is big-endian.
    pub fn new(
        out: impl Write + Send + 'static,
        schema: SchemaRef,
        threads: usize,
    ) -> Result<Self> {
        let encoder = Box::new(Encoder::new(Box::new(out), schema, threads.max(1))?);
        if threads == 0 {
            return Ok(ParquetFile {
                writer: FileState::Here(encoder),
            });
        }
        let (batches, receiver) = sync_channel(WAITING);
        // The encoder remains here until the thread has started.
        let (give, take) = sync_channel(1);
        let work = move || match take.recv() {
            Ok(encoder) => encode(encoder, &receiver),
            Err(_) => Err(ended()),
        };
        let started = thread::Builder::new().name("parquet".into()).spawn(work);
        let writer = match started {
            Ok(thread) => {
                // The thread waits for it.
                let _ = give.send(encoder);
                FileState::Behind(Background {
                    batches: Some(batches),
                    thread: Some(thread),
                })
            }
            Err(_) => FileState::Here(encoder),
        };
        Ok(ParquetFile { writer })
    }

    /// Writes rows.
    ///
    /// # Errors
    /// The output cannot be written. With threads, this may be an error of an earlier batch.
    pub fn write(&mut self, batch: RecordBatch) -> Result<()> {
        match &mut self.writer {
            FileState::Here(encoder) => encoder.write(&batch),
            FileState::Behind(background) => {
                let sent = background
                    .batches
                    .as_ref()
                    .is_some_and(|batches| batches.send(batch).is_ok());
                if sent {
                    return Ok(());
                }
                // The thread has ended, because of an error.
                background.encoder().map(drop)
            }
        }
    }

    /// Returns the size of the data in memory in bytes; 0 if other threads have them.
    pub(super) fn memory(&self) -> usize {
        match &self.writer {
            FileState::Here(encoder) => encoder.memory(),
            FileState::Behind(_) => 0,
        }
    }

    /// Writes the row group, unless other threads do.
    pub(super) fn flush(&mut self) -> Result<()> {
        match &mut self.writer {
            FileState::Here(encoder) => encoder.flush(),
            FileState::Behind(_) => Ok(()),
        }
    }

    /// Writes the last row group and the end of the file, with the metadata in the order of
    /// `metadata`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self, metadata: &[(String, String)]) -> Result<()> {
        let encoder = match self.writer {
            FileState::Here(encoder) => encoder,
            FileState::Behind(mut background) => background.encoder()?,
        };
        encoder.finish(metadata)
    }
}

impl Background {
    /// Waits for the end of the threads, and returns the encoder.
    fn encoder(&mut self) -> Result<Box<Encoder>> {
        self.batches = None;
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(result)) => result,
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(ended()),
        }
    }
}

fn ended() -> Error {
    Error::Encoding("the thread that encodes has ended".into())
}

impl Drop for Background {
    /// Waits for the thread: its output must not be written any more.
    fn drop(&mut self) {
        self.batches = None;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Encodes all batches.
fn encode(mut encoder: Box<Encoder>, batches: &Receiver<RecordBatch>) -> Result<Box<Encoder>> {
    for batch in batches {
        encoder.write(&batch)?;
    }
    Ok(encoder)
}
