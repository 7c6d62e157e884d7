//! The bytes of an input as they are read, and the observers of this progress.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::input::Bytes;
use perfdata_core::read::{DataStream, Merged, PathReader, Salvaged, SourceReader};

/// Receives the progress of reading an input.
pub trait Watch: Send + Sync {
    /// Called at the start of a pass over the input, which has `total` bytes if the size is known.
    fn begin(&self, total: Option<u64>);

    /// Called when `bytes` more bytes were read; once for a block, not for a record.
    fn advance(&self, bytes: u64);

    /// Returns whether reading must end. Then each read fails with an error, and with it the
    /// conversion, which removes its temporary files. By default, it never does.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The size of an input.
pub struct Size {
    pub(super) known: Option<u64>,
    pub(super) streamed: Arc<AtomicU64>,
}

impl Size {
    /// Returns the number of bytes, unless the input is a stream.
    pub fn known(&self) -> Option<u64> {
        self.known
    }

    /// Returns the number of bytes; for a stream, the bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.known
            .unwrap_or_else(|| self.streamed.load(Ordering::Relaxed))
    }
}

/// Counts the bytes that are read.
#[derive(Clone)]
pub(super) struct Meter {
    pub(super) watch: Option<Arc<dyn Watch>>,
    pub(super) streamed: Arc<AtomicU64>,
}

impl Meter {
    pub(super) fn of(self, stream: Stream) -> InputReader {
        InputReader {
            stream,
            meter: self,
        }
    }
}

/// The record stream of an input.
pub(super) struct InputReader {
    stream: Stream,
    meter: Meter,
}

pub(super) enum Stream {
    /// A part of a file.
    File(SourceReader<Bytes>),
    /// The files of a directory.
    Path(PathReader),
    /// An input that can be read only once.
    Other(Box<dyn Read + Send>),
    /// The readable part of a corrupt file.
    Salvaged(Box<Salvaged<Bytes>>),
    /// The readable parts of the files of a corrupt directory.
    SalvagedFiles(Box<Merged<DataStream<Salvaged<Bytes>>>>),
}

impl Read for InputReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(watch) = &self.meter.watch
            && watch.is_cancelled()
        {
            return Err(io::Error::other("cancelled"));
        }
        let read = match &mut self.stream {
            Stream::File(file) => file.read(buf)?,
            Stream::Path(files) => files.read(buf)?,
            Stream::Salvaged(file) => file.read(buf)?,
            Stream::SalvagedFiles(files) => files.read(buf)?,
            Stream::Other(stream) => {
                let read = stream.read(buf)?;
                self.meter
                    .streamed
                    .fetch_add(read as u64, Ordering::Relaxed);
                read
            }
        };
        if let Some(watch) = &self.meter.watch {
            watch.advance(read as u64);
        }
        Ok(read)
    }
}
