//! Pieces of AUX data, and their storage in a file until the whole recording was read.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use perfdata_core::Endian;
use perfdata_core::record::{Auxtrace, Sample};
use perfdata_core::wire::{decode_words, encode_words};

/// One piece of AUX data. It follows an AUXTRACE record, or is part of a SAMPLE.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Offset of the record in the input. For a record in a compressed record, offset of the
    /// compressed record.
    pub record: u64,
    /// Its origin.
    pub origin: Origin,
    /// Its position in the file of its queue.
    pub at: u64,
    /// Its size in this file in bytes.
    pub size: u64,
}

/// The origin of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// An AUXTRACE record.
    Buffer {
        /// Offset in the AUX buffer.
        offset: u64,
        /// Number that determines the order of the pieces of all buffers.
        reference: u64,
    },
    /// A SAMPLE, with its fields.
    Sample {
        /// Nanoseconds on the recording's clock.
        time: Option<u64>,
        /// Event ID.
        id: Option<u64>,
        /// Process ID and thread ID.
        task: Option<(u32, u32)>,
        /// CPU.
        cpu: Option<u32>,
    },
}

impl Origin {
    /// Returns the origin of data after `record`.
    pub fn of_record(record: &Auxtrace) -> Self {
        Origin::Buffer {
            offset: record.offset,
            reference: record.reference,
        }
    }

    /// Returns the origin of data in `sample`.
    pub fn of_sample(sample: &Sample) -> Self {
        Origin::Sample {
            time: sample.time,
            id: sample.identifier.or(sample.id),
            task: sample.tid.as_ref().map(|tid| (tid.pid, tid.tid)),
            cpu: sample.cpu.as_ref().map(|cpu| cpu.cpu),
        }
    }

    /// Returns the offset in the AUX buffer, if it is known.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Origin::Buffer { offset, .. } => Some(*offset),
            Origin::Sample { .. } => None,
        }
    }
}

/// Number of words of a stored piece: position, size, record, flags for the existing fields, and
/// four words that depend on these.
const WORDS: usize = 8;

impl Piece {
    /// Appends the piece to `file`.
    pub fn note(&self, mut file: &File) -> io::Result<()> {
        let bit = |there: bool, bit: u32| u64::from(there) << bit;
        let [kind, a, b, c, d] = match self.origin {
            Origin::Buffer { offset, reference } => [0, offset, reference, 0, 0],
            Origin::Sample {
                time,
                id,
                task,
                cpu,
            } => {
                let there = bit(time.is_some(), 1) | bit(id.is_some(), 2) | bit(task.is_some(), 3);
                let (pid, tid) = task.unwrap_or_default();
                let task = u64::from(pid) << 32 | u64::from(tid);
                let cpu_there = bit(cpu.is_some(), 4);
                [
                    1 | there | cpu_there,
                    time.unwrap_or(0),
                    id.unwrap_or(0),
                    task,
                    cpu.unwrap_or(0).into(),
                ]
            }
        };
        file.write_all(&encode_words(
            &[self.at, self.size, self.record, kind, a, b, c, d],
            Endian::NATIVE,
        ))
    }

    /// Returns the pieces in `file`, starting at its current position.
    pub fn noted(file: File) -> impl Iterator<Item = io::Result<Piece>> {
        let mut file = BufReader::new(file);
        std::iter::from_fn(move || {
            let mut bytes = [0; WORDS * 8];
            match file.read_exact(&mut bytes) {
                Ok(()) => Piece::of_words(&decode_words(&bytes, Endian::NATIVE)).map(Ok),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => None,
                Err(e) => Some(Err(e)),
            }
        })
    }

    fn of_words(words: &[u64]) -> Option<Piece> {
        let &[at, size, record, kind, a, b, c, d] = words else {
            return None;
        };
        let there = |bit: u32| kind >> bit & 1 == 1;
        let origin = match there(0) {
            false => Origin::Buffer {
                offset: a,
                reference: b,
            },
            true => Origin::Sample {
                time: there(1).then_some(a),
                id: there(2).then_some(b),
                // The word contains two 32-bit numbers.
                task: there(3).then_some(((c >> 32) as u32, c as u32)),
                cpu: u32::try_from(d).ok().filter(|_| there(4)),
            },
        };
        Some(Piece {
            record,
            origin,
            at,
            size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};

    #[test]
    fn what_is_noted_is_read_again() {
        let sample = |time, id, task, cpu| Origin::Sample {
            time,
            id,
            task,
            cpu,
        };
        let origins = [
            Origin::Buffer {
                offset: u64::MAX,
                reference: 7,
            },
            sample(None, None, None, None),
            sample(Some(1), Some(u64::MAX), Some((u32::MAX, 5)), Some(u32::MAX)),
            sample(Some(0), None, Some((0, 0)), Some(0)),
        ];
        let pieces = origins.map(|origin| Piece {
            record: 3,
            origin,
            at: 1 << 40,
            size: 9,
        });
        let mut file = tempfile::tempfile().expect("a temporary file");
        pieces
            .iter()
            .try_for_each(|piece| piece.note(&file))
            .expect("a temporary file");
        file.seek(SeekFrom::Start(0)).expect("a temporary file");
        let again: Vec<Piece> = Piece::noted(file)
            .collect::<io::Result<_>>()
            .expect("a temporary file");
        assert_eq!(again, pieces);
    }
}
