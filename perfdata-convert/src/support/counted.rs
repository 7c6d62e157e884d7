//! An output that counts its bytes.

use std::io::{self, Write};

/// Counts the bytes that are written to `out`.
#[derive(Debug)]
pub struct CountedWriter<W> {
    /// The output.
    pub out: W,
    /// Number of bytes so far.
    pub bytes: u64,
}

impl<W: Write> Write for CountedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
