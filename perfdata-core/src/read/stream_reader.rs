//! Opens bytes in memory, and anything that implements [`Read`].

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::header::ContainerKind;
use crate::read::reader::read_start;
use crate::read::source::{MemoryBytes, SourceReader};
use crate::read::{Options, RecordingReader};

/// The record stream of a recording opened by [`from_bytes`](RecordingReader::from_bytes).
pub type BytesReader<B> = SourceReader<Arc<MemoryBytes<B>>>;

/// The record stream of a recording opened by [`from_reader`](RecordingReader::from_reader).
#[derive(Debug)]
pub struct StreamReader<R>(StreamInput<R>);

#[derive(Debug)]
enum StreamInput<R> {
    /// The first bytes, which were read to find the container, and those after them.
    Pipe(io::Chain<Cursor<Vec<u8>>, R>),
    /// A recording in file mode.
    Memory(BytesReader<Vec<u8>>),
}

impl<R: Read> Read for StreamReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            StreamInput::Pipe(stream) => stream.read(buf),
            StreamInput::Memory(bytes) => bytes.read(buf),
        }
    }
}

impl<B: AsRef<[u8]>> RecordingReader<BytesReader<B>> {
    /// Opens a recording in memory, in file mode or pipe mode, without copying it.
    ///
    /// # Errors
    /// As for [`open`](RecordingReader::open).
    pub fn from_bytes(bytes: B, options: Options) -> Result<Self> {
        RecordingReader::open_with(Arc::new(MemoryBytes(bytes)), options)
    }
}

impl<R: Read> RecordingReader<StreamReader<R>> {
    /// Opens a recording that is read from start to end. One in pipe mode is read while its records
    /// are requested. One in file mode is read into memory first, because its header refers to what
    /// is after the records.
    ///
    /// # Errors
    /// As for [`open`](RecordingReader::open), or `reader` fails.
    pub fn from_reader(mut reader: R, options: Options) -> Result<Self> {
        let mut first = vec![0; ContainerKind::SNIFF];
        let got = read_start(&mut reader, &mut first)?;
        first.truncate(got);
        match ContainerKind::recognise(&first) {
            Some((ContainerKind::File, _)) => {
                let read = reader.read_to_end(&mut first);
                read.map_err(|error| Error::io("input", error))?;
                let file = RecordingReader::from_bytes(first, options)?;
                Ok(file.map_input(|bytes| StreamReader(StreamInput::Memory(bytes))))
            }
            _ => {
                let stream = Cursor::new(first).chain(reader);
                RecordingReader::pipe_with(StreamReader(StreamInput::Pipe(stream)), options)
            }
        }
    }
}
