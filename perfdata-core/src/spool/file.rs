//! Entries in one file, which is first written and then read.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Number of bytes that are read or written at once.
const BLOCK: usize = 64 << 10;

/// Something that is written to a temporary file and read again.
pub trait Entry: Default {
    /// By what entries are sorted.
    type Key: Ord + fmt::Debug;

    /// Returns the key.
    fn key(&self) -> Self::Key;

    /// Writes the entry.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, to: &mut Writer) -> io::Result<()>;

    /// Replaces the entry by the next one of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&mut self, from: &mut impl Read) -> io::Result<()>;

    /// Adds an entry that follows in the order, if both can be one; returns whether they can.
    fn join(&mut self, _next: &Self) -> bool {
        false
    }
}

/// Writes entries to a file.
#[derive(Debug)]
pub struct Writer {
    file: BufWriter<File>,
    count: u64,
}

impl Writer {
    /// Returns the writer for an empty file.
    pub fn new(file: File) -> Self {
        Writer {
            file: BufWriter::with_capacity(BLOCK, file),
            count: 0,
        }
    }

    /// Returns the number of entries.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes an entry, which consists of `parts`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.count = self.count.saturating_add(1);
        parts.iter().try_for_each(|part| self.file.write_all(part))
    }

    /// Returns all entries. None must be written afterwards.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn read<E: Entry>(&mut self) -> io::Result<Reader<&File, E>> {
        self.file.flush()?;
        Reader::new(self.file.get_ref(), self.count)
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish<E: Entry>(self) -> io::Result<Reader<File, E>> {
        let file = self.file.into_inner().map_err(|error| error.into_error())?;
        Reader::new(file, self.count)
    }
}

/// Reads the entries of a file.
#[derive(Debug)]
pub struct Reader<F: Read, E> {
    file: BufReader<F>,
    /// Number of entries that are not yet read.
    left: u64,
    /// The entry that was read last.
    pub(super) entry: E,
}

impl<F: Read + Seek, E: Entry> Reader<F, E> {
    fn new(mut file: F, count: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        Ok(Reader {
            file: BufReader::with_capacity(BLOCK, file),
            left: count,
            entry: E::default(),
        })
    }

    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_entry(&mut self) -> io::Result<Option<&mut E>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.entry.read(&mut self.file)?;
        Ok(Some(&mut self.entry))
    }
}
