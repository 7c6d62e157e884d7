//! The output buffer of the writers: collects small records, and forwards large blocks without
//! copying them.

use std::io::{self, Seek, SeekFrom, Write};

/// Size of the buffer in bytes.
const SIZE: usize = 256 << 10;

/// Minimum size of a block that is not copied, in bytes. It is smaller than what a pipe of the
/// system holds, so that the blocks of a stream are not copied.
const LARGE: usize = 32 << 10;

/// A writer with a buffer. Errors of the last bytes are only returned by
/// [`into_inner`](Self::into_inner).
#[derive(Debug)]
pub(crate) struct Buffered<W: Write> {
    /// `None` only after [`into_inner`](Self::into_inner).
    out: Option<W>,
    bytes: Vec<u8>,
}

impl<W: Write> Buffered<W> {
    pub(crate) fn new(out: W) -> Self {
        Buffered {
            out: Some(out),
            bytes: Vec::with_capacity(SIZE),
        }
    }

    #[inline]
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let len = self.bytes.len().saturating_add(bytes.len());
        if bytes.len() >= LARGE || len > SIZE {
            return self.write_past(bytes);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes bytes for which the buffer has no space.
    #[cold]
    fn write_past(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.empty()?;
        match &mut self.out {
            Some(out) if bytes.len() >= LARGE => out.write_all(bytes),
            _ => {
                self.bytes.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Writes what is in the buffer.
    fn empty(&mut self) -> io::Result<()> {
        // After an error, no byte is written twice.
        let bytes = std::mem::take(&mut self.bytes);
        if let Some(out) = &mut self.out {
            out.write_all(&bytes)?;
        }
        self.bytes = bytes;
        self.bytes.clear();
        Ok(())
    }

    /// Returns the output, to which everything is written.
    pub(crate) fn into_inner(mut self) -> io::Result<W> {
        self.empty()?;
        let gone = || io::Error::other("internal error: the output is gone");
        self.out.take().ok_or_else(gone)
    }
}

impl<W: Write + Seek> Buffered<W> {
    pub(crate) fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.empty()?;
        self.out.as_mut().map_or(Ok(0), |out| out.seek(to))
    }
}

impl<W: Write> Drop for Buffered<W> {
    /// A stream contains what was complete before an error.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn blocks_of_any_size_arrive_in_order() {
        let sizes = [1, 100, LARGE - 1, LARGE, 3, SIZE - 2, SIZE, 7, SIZE + 1, 5];
        let mut buffered = Buffered::new(Cursor::new(Vec::new()));
        let mut expected = Vec::new();
        for (at, size) in sizes.into_iter().cycle().take(100).enumerate() {
            let block = vec![at as u8; size];
            buffered.write_all(&block).expect("memory");
            expected.extend(block);
        }
        buffered.seek(SeekFrom::Start(2)).expect("memory");
        buffered.write_all(b"here").expect("memory");
        expected[2..6].copy_from_slice(b"here");
        let out = buffered.into_inner().expect("memory").into_inner();
        assert!(out == expected);
    }

    #[test]
    fn what_was_complete_before_an_error_is_written_once() {
        struct Limited<'a>(&'a mut Vec<u8>);
        impl Write for Limited<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let len = bytes.len().min((LARGE + 1).saturating_sub(self.0.len()));
                self.0
                    .extend_from_slice(bytes.get(..len).unwrap_or_default());
                Ok(len)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut out = Vec::new();
        let mut buffered = Buffered::new(Limited(&mut out));
        buffered.write_all(&[1; LARGE]).expect("room");
        buffered.write_all(&[2; 3]).expect("a buffer");
        drop(buffered);
        assert_eq!(out.len(), LARGE + 1);
        let mut out = Vec::new();
        let mut buffered = Buffered::new(Limited(&mut out));
        buffered.write_all(&[2; 3]).expect("a buffer");
        assert!(buffered.write_all(&[1; LARGE]).is_err());
        drop(buffered);
        assert_eq!(out.len(), LARGE + 1);
    }
}
