//! One queue of AUX data: the pieces of one CPU or thread.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::arrange::{Offsets, PiecePlaces, Placed, arrange};
use super::piece::{Origin, Piece};
use perfdata_convert::error::{Error, Result};
use perfdata_convert::interrupt;
use perfdata_convert::support::os::private;

/// The identity of a queue. A number with all bits set means "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueKey {
    /// Number of the buffer.
    pub idx: u32,
    /// CPU.
    pub cpu: u32,
    /// Thread ID.
    pub tid: u32,
}

/// A queue, whose bytes are written in order of arrival.
#[derive(Debug)]
pub struct Queue {
    /// The identity of its data.
    pub key: QueueKey,
    /// The file with the concatenated bytes of all pieces, and the file with the descriptions of
    /// the pieces.
    data: PathBuf,
    notes: PathBuf,
    files: Option<(File, File)>,
    len: u64,
    piece: Option<Piece>,
    /// The end of the previous piece, according to its offset.
    end: Option<u64>,
    /// Whether a piece starts before the end of the previous one.
    goes_back: bool,
}

impl Queue {
    /// Returns an empty queue, whose files are in the folder `dir` and have `number` in their
    /// names.
    pub fn new(key: QueueKey, dir: &Path, number: usize) -> Self {
        Queue {
            key,
            data: dir.join(format!(".{number}")),
            notes: dir.join(format!(".{number}.pieces")),
            files: None,
            len: 0,
            piece: None,
            end: None,
            goes_back: false,
        }
    }

    /// Returns whether its files are open.
    pub fn is_open(&self) -> bool {
        self.files.is_some()
    }

    /// Begins a piece, whose bytes are passed to [`write`](Self::write).
    ///
    /// # Errors
    /// The files cannot be written.
    pub fn begin(&mut self, record: u64, origin: Origin) -> Result<()> {
        self.end()?;
        if self.files.is_none() {
            self.files = Some((open(&self.data)?, open(&self.notes)?));
        }
        self.piece = Some(Piece {
            record,
            origin,
            at: self.len,
            size: 0,
        });
        Ok(())
    }

    /// Appends bytes to the piece.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let (Some((data, _)), Some(piece)) = (&mut self.files, &mut self.piece) {
            data.write_all(bytes).map_err(Error::io(&self.data))?;
            piece.size = piece.size.saturating_add(bytes.len() as u64);
            self.len = self.len.saturating_add(bytes.len() as u64);
        }
        Ok(())
    }

    /// Ends the piece.
    fn end(&mut self) -> Result<()> {
        if let (Some((_, notes)), Some(piece)) = (&self.files, self.piece.take()) {
            piece.note(notes).map_err(Error::io(&self.notes))?;
            if let Some(offset) = piece.origin.offset() {
                self.goes_back |= self.end.is_some_and(|end| offset < end);
                self.end = Some(offset.saturating_add(piece.size));
            }
        }
        Ok(())
    }

    /// Closes the files until the next piece.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn close(&mut self) -> Result<()> {
        self.end()?;
        self.files = None;
        Ok(())
    }

    /// Arranges the pieces, moves them to the file `path`, and calls `see` with each piece. Returns
    /// the size of the file in bytes.
    ///
    /// # Errors
    /// The files cannot be read or written, or `see` returns an error.
    pub fn finish(
        mut self,
        path: &Path,
        offsets: Offsets,
        mut see: impl FnMut(&Placed) -> Result<()>,
    ) -> Result<u64> {
        self.close()?;
        let read = |path: &Path| File::open(path).map_err(Error::io(path));
        let mut noted = Piece::noted(read(&self.notes)?);
        if self.goes_back && offsets != Offsets::Wrap {
            let pieces = noted
                .collect::<std::io::Result<_>>()
                .map_err(Error::io(&self.notes))?;
            let mut options = options();
            options.read(true).create_new(true);
            let to = interrupt::open(&options, path).map_err(Error::io(path))?;
            let placed =
                arrange(offsets, pieces, read(&self.data)?, to).map_err(Error::io(path))?;
            placed.iter().try_for_each(&mut see)?;
            fs::remove_file(&self.data).map_err(Error::io(&self.data))?;
        } else {
            let mut places = PiecePlaces::new(offsets);
            noted
                .try_for_each(|piece| see(&places.next(piece.map_err(Error::io(&self.notes))?)))?;
            fs::rename(&self.data, path).map_err(Error::io(path))?;
        }
        fs::remove_file(&self.notes).map_err(Error::io(&self.notes))?;
        Ok(fs::metadata(path).map_err(Error::io(path))?.len())
    }
}

/// Returns the options to create files: only the owner has access, as for recordings of perf.
fn options() -> OpenOptions {
    let mut options = File::options();
    private(options.write(true));
    options
}

/// Opens a file to append data.
fn open(path: &Path) -> Result<File> {
    let mut options = options();
    options.create(true).truncate(false);
    let mut file = interrupt::open(&options, path).map_err(Error::io(path))?;
    file.seek(SeekFrom::End(0)).map_err(Error::io(path))?;
    Ok(file)
}
