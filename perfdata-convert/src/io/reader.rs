//! The bytes of an input as they are read, and who sees it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::input::Bytes;
use perfdata_core::read::{DataStream, Merged, PathReader, Salvaged, SourceReader};

/// Sees how far an input has been read.
pub trait Watch: Send + Sync {
    /// A pass over the input begins; it has `total` bytes if that is known.
    fn begin(&self, total: Option<u64>);

    /// As many bytes more were read. Comes once for a block, not for a record.
    fn advance(&self, bytes: u64);
}

/// How many bytes an input has.
pub(crate) struct Size {
    pub(super) known: Option<u64>,
    pub(super) streamed: Arc<AtomicU64>,
}

impl Size {
    /// The number, for a stream that of the bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.known.unwrap_or_else(|| self.streamed.load(Ordering::Relaxed))
    }
}

/// What counts the bytes that are read.
#[derive(Clone)]
pub(super) struct Meter {
    pub(super) watch: Option<Arc<dyn Watch>>,
    pub(super) streamed: Arc<AtomicU64>,
}

impl Meter {
    pub(super) fn of(self, stream: Stream) -> InputReader {
        InputReader { stream, meter: self }
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
    /// What can be read only once.
    Other(Box<dyn Read + Send>),
    /// What can be believed of a damaged file.
    Salvaged(Box<Salvaged<Bytes>>),
    /// What can be believed of the files of a damaged directory.
    SalvagedFiles(Box<Merged<DataStream<Salvaged<Bytes>>>>),
}

impl Read for InputReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.stream {
            Stream::File(file) => file.read(buf)?,
            Stream::Path(files) => files.read(buf)?,
            Stream::Salvaged(file) => file.read(buf)?,
            Stream::SalvagedFiles(files) => files.read(buf)?,
            Stream::Other(stream) => {
                let read = stream.read(buf)?;
                self.meter.streamed.fetch_add(read as u64, Ordering::Relaxed);
                read
            }
        };
        if let Some(watch) = &self.meter.watch {
            watch.advance(read as u64);
        }
        Ok(read)
    }
}
