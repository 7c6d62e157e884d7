//! The bytes of an object: a file, or memory into which a compressed file was decompressed.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use perfdata_core::read::{Source, zstd_reader};

/// Maximum decompressed size of an object in bytes. Modules have some megabytes.
const MOST_UNPACKED: u64 = 1 << 28;

/// Maximum memory for the window of an xz stream in KiB: `xz -9` uses 64 MiB.
const MOST_WINDOW_KIB: u32 = 80 << 10;

/// Maximum window of zstd data, as a power of 2: that of `zstd` without `--long`.
pub(crate) const MOST_WINDOW_LOG: u32 = 27;

/// Magic numbers of compressed files. Many distributions compress kernel modules.
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const XZ: &[u8] = b"\xfd7zXZ\0";
const GZIP: &[u8] = b"\x1f\x8b";

/// A reader at any position.
pub(crate) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// The bytes of an object.
#[derive(Debug)]
pub(crate) enum Bytes {
    File(Arc<File>),
    Memory(Vec<u8>),
}

/// Bytes of a file that are read at once for its headers: the names of the sections are before their
/// headers, at the end of most files.
const BLOCK: u64 = 1 << 14;

/// Reads a file in blocks, and keeps the last one: [`BufReader`](io::BufReader) forgets what it read
/// when another position is sought.
struct BlockReader<'a> {
    file: &'a File,
    at: u64,
    /// The offset of the block.
    start: u64,
    block: Vec<u8>,
}

impl<'a> BlockReader<'a> {
    fn new(file: &'a File) -> Self {
        BlockReader {
            file,
            at: 0,
            start: 0,
            block: Vec::new(),
        }
    }

    /// Returns the bytes of the block from the position on.
    fn rest(&self) -> &[u8] {
        let skipped = self.at.checked_sub(self.start);
        let skipped = skipped.and_then(|skipped| usize::try_from(skipped).ok());
        let rest = skipped.and_then(|skipped| self.block.get(skipped..));
        rest.unwrap_or_default()
    }
}

/// Reads as many bytes at an offset as there are, up to the length of `bytes`. Returns their number.
pub(crate) fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(done as u64))? {
            0 => break,
            read => done = done.saturating_add(read),
        }
    }
    Ok(done)
}

impl Read for BlockReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.len() as u64 > BLOCK && self.rest().is_empty() {
            let read = self.file.read_at(bytes, self.at)?;
            self.at = self.at.saturating_add(read as u64);
            return Ok(read);
        }
        if self.rest().is_empty() {
            self.start = self.at & !BLOCK.saturating_sub(1);
            self.block
                .resize(usize::try_from(BLOCK).unwrap_or_default(), 0);
            let read = read_up_to(self.file, &mut self.block, self.start)?;
            self.block.truncate(read);
        }
        let rest = self.rest();
        let len = rest.len().min(bytes.len());
        if let Some((to, from)) = bytes.get_mut(..len).zip(rest.get(..len)) {
            to.copy_from_slice(from);
        }
        self.at = self.at.saturating_add(len as u64);
        Ok(len)
    }
}

impl Seek for BlockReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.at, by),
            SeekFrom::End(by) => (Source::len(self.file)?, by),
        };
        let at = from.checked_add_signed(by);
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Bytes {
    /// Opens the object at `path`, and decompresses it if it is compressed. Refuses everything
    /// except regular files before opening it: opening a FIFO would wait for a writer.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let file = File::open(path)?;
        Ok(match decompressed(&file)? {
            Some(bytes) => Bytes::Memory(bytes),
            None => Bytes::File(Arc::new(file)),
        })
    }

    /// Returns a reader of all bytes.
    pub fn reader(&self) -> Box<dyn ReadSeek + '_> {
        match self {
            Bytes::File(file) => Box::new(BlockReader::new(file)),
            Bytes::Memory(bytes) => Box::new(Cursor::new(bytes)),
        }
    }

    /// Returns an error if there are fewer than `size` bytes at `offset`, or more than `most`.
    fn check(&self, offset: u64, size: u64, most: u64) -> io::Result<()> {
        let len = match self {
            Bytes::File(file) => Source::len(&**file)?,
            Bytes::Memory(bytes) => bytes.len() as u64,
        };
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= len);
        match is_inside && size <= most {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Returns the file, to read `size` bytes at `offset` later; `None` if the bytes are in memory.
    /// An error if there are fewer bytes, or more than `most`.
    pub fn file_with(&self, offset: u64, size: u64, most: u64) -> io::Result<Option<Arc<File>>> {
        self.check(offset, size, most)?;
        Ok(match self {
            Bytes::File(file) => Some(Arc::clone(file)),
            Bytes::Memory(_) => None,
        })
    }

    /// Returns `size` bytes at `offset`; an error if there are fewer, or more than `most`.
    pub fn read(&self, offset: u64, size: u64, most: u64) -> io::Result<Vec<u8>> {
        self.read_part(offset, size, most, 0..size)
    }

    /// Returns the bytes in a range of the `size` bytes at `offset`, as far as these reach; an error
    /// if there are fewer than `size` bytes, or more than `most`.
    pub fn read_part(
        &self,
        offset: u64,
        size: u64,
        most: u64,
        part: Range<u64>,
    ) -> io::Result<Vec<u8>> {
        self.check(offset, size, most)?;
        let start = part.start.min(size);
        let offset = offset.saturating_add(start);
        let size = part.end.min(size).saturating_sub(start);
        let source: &dyn Source = match self {
            Bytes::File(file) => &**file,
            Bytes::Memory(bytes) => bytes,
        };
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match source.read_at(rest, offset.saturating_add(done as u64))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done = done.saturating_add(read),
            }
        }
        Ok(bytes)
    }
}

/// Returns the decompressed content of a file, up to 256 MiB; `None` if it is not compressed with
/// zstd, xz or gzip.
///
/// # Errors
/// The compressed data is corrupt, or cannot be read.
pub fn decompressed(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut start = [0; 6];
    let len = Source::read_at(file, &mut start, 0)?;
    let start = start.get(..len).unwrap_or_default();
    let (form, content) = if start.starts_with(ZSTD) {
        ("zstd", zstd_reader(file, MOST_WINDOW_LOG).and_then(all))
    } else if start.starts_with(XZ) {
        ("xz", unpack_xz(file))
    } else if start.starts_with(GZIP) {
        ("gzip", all(MultiGzDecoder::new(file)))
    } else {
        return Ok(None);
    };
    let corrupt = |error: io::Error| match error.kind() {
        io::ErrorKind::Unsupported => error,
        kind => io::Error::new(kind, format!("corrupt {form} data: {error}")),
    };
    content.map(Some).map_err(corrupt)
}

/// Decompresses xz data.
pub(crate) fn unpack_xz(data: impl Read) -> io::Result<Vec<u8>> {
    all(XzReader::new_mem_limit(data, true, MOST_WINDOW_KIB))
}

/// Returns the output of a decoder, up to [`MOST_UNPACKED`].
fn all(decoder: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder.take(MOST_UNPACKED).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the output of a decoder, which must have `size` bytes.
pub(crate) fn unpack_exactly(decoder: impl Read, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Returns the content of a file without a size, such as those in `/proc`, up to `most` bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = File::open(path)?;
    // The text is not moved, unless the size is not known.
    let size = file.metadata()?.len().min(most);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("more than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn files_are_read_in_blocks() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        file.write_all(&content).unwrap();
        let mut blocks = BlockReader::new(&file);
        for (at, len) in [
            (0, 10),
            (99_990, 100),
            (16_380, 10),
            (5, 70_000),
            (100_005, 1),
        ] {
            assert_eq!(blocks.seek(SeekFrom::Start(at)).unwrap(), at);
            let mut read = Vec::new();
            (&mut blocks).take(len).read_to_end(&mut read).unwrap();
            let rest = content.get(at as usize..).unwrap_or_default();
            assert_eq!(read, rest[..rest.len().min(len as usize)], "{at}");
        }
        assert_eq!(blocks.seek(SeekFrom::End(-1)).unwrap(), 99_999);
        assert_eq!(blocks.seek(SeekFrom::Current(-9)).unwrap(), 99_990);
        assert!(blocks.seek(SeekFrom::Current(-99_991)).is_err());
    }

    #[test]
    fn parts_stay_inside() {
        let bytes = Bytes::Memory((0..10).collect());
        let part = |range| bytes.read_part(2, 5, 100, range).unwrap();
        assert_eq!(part(0..5), [2, 3, 4, 5, 6]);
        assert_eq!(part(1..3), [3, 4]);
        assert_eq!(part(3..u64::MAX), [5, 6]);
        assert!(part(5..9).is_empty() && part(u64::MAX..u64::MAX).is_empty());
        // The whole must be there, and must not be too large.
        assert!(bytes.read_part(2, 9, 100, 0..1).is_err());
        assert!(bytes.read_part(2, 5, 4, 0..1).is_err());
    }
}
