//! Several streams of bytes in one temporary file.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use perfdata_core::read::Source;
use perfdata_core::spool::temporary_file;

use crate::error::{Error, Result};

/// Size of all buffers at which they are written to the file, in bytes.
const MOST_MEMORY: usize = 32 << 20;

/// A part of a stream in the file.
#[derive(Debug, Clone, Copy)]
struct Block {
    offset: u64,
    len: usize,
}

/// A stream.
#[derive(Debug, Default)]
struct Stream {
    blocks: Vec<Block>,
    buffer: Vec<u8>,
}

/// The streams.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    streams: Vec<Stream>,
    held: usize,
    file: Option<File>,
    end: u64,
}

impl Spool {
    /// Adds a stream and returns its number.
    pub fn add(&mut self) -> usize {
        self.streams.push(Stream::default());
        self.streams.len().saturating_sub(1)
    }

    /// Appends bytes to a stream.
    pub fn write(&mut self, stream: usize, bytes: &[u8]) -> Result<()> {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.buffer.extend_from_slice(bytes);
            self.held = self.held.saturating_add(bytes.len());
        }
        if self.held > MOST_MEMORY {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes all buffers to the file.
    fn flush(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary_file(tempfile::tempfile).map_err(Error::Temporary)?),
        };
        file.seek(SeekFrom::Start(self.end))
            .map_err(Error::Temporary)?;
        for stream in &mut self.streams {
            if stream.buffer.is_empty() {
                continue;
            }
            file.write_all(&stream.buffer).map_err(Error::Temporary)?;
            let len = stream.buffer.len();
            stream.blocks.push(Block {
                offset: self.end,
                len,
            });
            self.end = self.end.saturating_add(len as u64);
            stream.buffer = Vec::new();
        }
        self.held = 0;
        Ok(())
    }

    /// Passes all bytes of a stream to `read`, in parts of any size.
    pub fn read(&self, stream: usize, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(stream) = self.streams.get(stream) else {
            return Ok(());
        };
        if let Some(file) = &self.file {
            for block in &stream.blocks {
                let mut bytes = vec![0; block.len];
                file.read_exact_at(&mut bytes, block.offset)
                    .map_err(Error::Temporary)?;
                read(&bytes)?;
            }
        }
        read(&stream.buffer)
    }
}
