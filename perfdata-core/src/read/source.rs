//! Sources of a file's bytes.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::header::FileSection;

/// Bytes that can be read at any offset, by several readers at once.
pub trait Source {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    fn len(&self) -> io::Result<u64>;

    /// Returns whether there are no bytes.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Reads some bytes at `offset`; returns 0 at the end.
    ///
    /// # Errors
    /// Fails if the operating system reports an error.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `buf` with the bytes at `offset`.
    ///
    /// # Errors
    /// There are fewer bytes, or the operating system reports an error.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => {
                    buf = buf.get_mut(got..).unwrap_or_default();
                    offset = offset.saturating_add(got as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Source for File {
    fn len(&self) -> io::Result<u64> {
        self.metadata().map(|meta| meta.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // The system knows only offsets below 2^63, and reports an error for others.
        if i64::try_from(offset).is_err() {
            return Ok(0);
        }
        #[cfg(unix)]
        loop {
            match std::os::unix::fs::FileExt::read_at(self, buf, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
        #[cfg(not(unix))]
        return seek_and_read(self, buf, offset);
    }
}

/// Reads at `offset` where no call of the system does both: readers of one file share its position,
/// take turns, and leave it as it was.
#[cfg(any(not(unix), test))]
fn seek_and_read(mut file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::io::{Seek, SeekFrom};
    use std::sync::{Mutex, PoisonError};

    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = file.stream_position()?;
    file.seek(SeekFrom::Start(offset))?;
    let got = file.read(buf);
    file.seek(SeekFrom::Start(before))?;
    got
}

impl Source for [u8] {
    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut rest = usize::try_from(offset)
            .ok()
            .and_then(|at| self.get(at..))
            .unwrap_or_default();
        rest.read(buf)
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> io::Result<u64> {
        Source::len(self.as_slice())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buf, offset)
    }
}

/// Bytes in memory: a `Vec<u8>`, a mapped file, or anything else that contains bytes. It can be shared
/// as `Arc<MemoryBytes<_>>` without copying them.
#[derive(Debug, Clone, Default)]
pub struct MemoryBytes<B>(pub B);

impl<B: AsRef<[u8]>> Source for MemoryBytes<B> {
    fn len(&self) -> io::Result<u64> {
        Source::len(self.0.as_ref())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.as_ref().read_at(buf, offset)
    }
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn len(&self) -> io::Result<u64> {
        (**self).len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn len(&self) -> io::Result<u64> {
        (**self).len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }
}

/// A part of a source as a stream.
#[derive(Debug)]
pub struct SourceReader<S> {
    source: S,
    offset: u64,
    end: u64,
}

impl<S: Source> SourceReader<S> {
    /// Returns a stream of the bytes of `place`, as far as they exist.
    pub fn new(source: S, place: FileSection) -> Self {
        SourceReader {
            source,
            offset: place.offset,
            end: place.end().unwrap_or(u64::MAX),
        }
    }
}

impl<S: Source> Read for SourceReader<S> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let len = buf.len().min(left);
        let got = self
            .source
            .read_at(buf.get_mut(..len).unwrap_or_default(), self.offset)?;
        self.offset = self.offset.saturating_add(got as u64);
        Ok(got)
    }
}

/// Returns whether all bytes are zero, as in a hole of a sparse file.
pub fn is_zero(bytes: &[u8]) -> bool {
    // Avoids a branch for each byte.
    bytes
        .chunks(256)
        .all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Reads all bytes of `place`, which must be inside the source.
pub(crate) fn read_section(
    source: &(impl Source + ?Sized),
    place: FileSection,
    what: &'static str,
) -> Result<Vec<u8>> {
    let len = source.len().map_err(|e| Error::io(what, e))?;
    let inside = place
        .end()
        .filter(|&end| end <= len)
        .and_then(|_| usize::try_from(place.size).ok());
    let Some(size) = inside else {
        return Err(
            Error::truncated(what, place.size, len.saturating_sub(place.offset)).at(place.offset),
        );
    };
    let mut bytes = vec![0; size];
    SourceReader::new(source, place)
        .read_exact(&mut bytes)
        .map_err(|e| Error::io(what, e).at(place.offset))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeking_reads_what_reading_at_an_offset_reads() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let (mut file, bytes) = (File::open(path).unwrap(), std::fs::read(path).unwrap());
        io::Seek::seek(&mut file, io::SeekFrom::Start(7)).unwrap();
        for offset in [
            0,
            1,
            100,
            bytes.len() as u64 - 3,
            bytes.len() as u64,
            1 << 40,
        ] {
            let (mut one, mut other, mut third) = ([0; 16], [0; 16], [0; 16]);
            let got = seek_and_read(&file, &mut one, offset).unwrap();
            assert_eq!(got, Source::read_at(&file, &mut other, offset).unwrap());
            assert_eq!(got, Source::read_at(&bytes, &mut third, offset).unwrap());
            assert_eq!((one, one), (other, third));
        }
        assert_eq!(io::Seek::stream_position(&mut file).unwrap(), 7);
    }

    #[test]
    fn a_buffer_is_filled_or_there_are_too_few_bytes() {
        let source: &[u8] = b"0123456789";
        let mut buf = [0; 4];
        source.read_exact_at(&mut buf, 6).unwrap();
        assert_eq!(&buf, b"6789");
        let error = source.read_exact_at(&mut buf, 7).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
