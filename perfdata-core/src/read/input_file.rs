//! Input files, limited to their size when they were opened.
//!
//! Bytes appended later are not read. If a file becomes shorter, bytes of the recording are lost:
//! every read then fails, so that no part of the recording is mistaken for all of it.

use std::fs::{File, Metadata};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::source::Source;

/// An open file, and its size when it was opened.
#[derive(Debug)]
pub struct InputFile {
    file: File,
    len: u64,
    is_cut: AtomicBool,
}

impl InputFile {
    /// Returns `file` with its current size.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(InputFile {
            file,
            len,
            is_cut: AtomicBool::new(false),
        })
    }

    /// Returns the current metadata of the file.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Returns the error of a read that finds fewer bytes than the file had when it was opened.
    fn cut(&self) -> io::Error {
        self.is_cut.store(true, Ordering::Relaxed);
        let InputFile { file, len, .. } = self;
        let now = file.metadata().map_or(String::new(), |meta| {
            format!(", and has {} now", meta.len())
        });
        io::Error::other(format!(
            "the file was truncated while it was read: it had {len} bytes when it was opened{now}"
        ))
    }
}

impl Source for InputFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.is_cut.load(Ordering::Relaxed) {
            return Err(self.cut());
        }
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let room = buf.len().min(left);
        match Source::read_at(&self.file, buf.get_mut(..room).unwrap_or_default(), offset)? {
            0 if room > 0 => Err(self.cut()),
            got => Ok(got),
        }
    }
}
