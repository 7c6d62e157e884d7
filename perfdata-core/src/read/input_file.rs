//! Files that are read: what counts is how many bytes one has when it is opened.
//!
//! What a file grows by later is not read. One that becomes shorter has lost bytes of the recording: from then on every
//! read fails, so that no part of it is taken for the whole.

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
    /// `file` as it is now.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(InputFile { file, len, is_cut: AtomicBool::new(false) })
    }

    /// What the operating system says of the file now.
    ///
    /// # Errors
    /// The operating system's.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// The error of a read that finds less than there was.
    fn cut(&self) -> io::Error {
        self.is_cut.store(true, Ordering::Relaxed);
        let InputFile { file, len, .. } = self;
        let now = file.metadata().map_or(String::new(), |meta| format!(", and has {} now", meta.len()));
        io::Error::other(format!("the file was cut while it was read: it had {len} bytes when it was opened{now}"))
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
