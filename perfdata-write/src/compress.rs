//! Compressed records, as `perf record -z` writes them (tools/perf/builtin-record.c,
//! zstd_compress).

use std::io;

use perfdata_core::Endian;
use perfdata_core::record::{Body, Compressed, Compressed2, RawRecord, Record, RecordType};
use perfdata_core::wire::Rest;
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Result};

/// Packs records into compressed records. The content is either one zstd stream, which is flushed
/// after each push, so that a reader can decode every record when it arrives, and which never ends;
/// or a sequence of frames.
pub struct Compressor {
    encoder: Encoder<'static>,
    kind: RecordType,
    endian: Endian,
    plain: u64,
    compressed: u64,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor")
            .field("kind", &self.kind)
            .field("plain", &self.plain)
            .finish()
    }
}

/// The highest level for which zstd chooses the sizes of its tables. Above this level, it would use
/// up to 700 MB, and the level may be an arbitrary number in a recording.
const FREE_LEVEL: i32 = 8;

/// Table sizes above this level, as powers of two: the window in bytes, the others in words.
const TABLES: [CParameter; 3] = [
    CParameter::WindowLog(21),
    CParameter::HashLog(22),
    CParameter::ChainLog(22),
];

impl Compressor {
    /// Returns a compressor that writes one stream of `kind` records (COMPRESSED or COMPRESSED2) in
    /// byte order `endian`, at zstd's `level`. Above level 8 its tables use at most about 40 MB.
    ///
    /// # Errors
    /// zstd rejects the level.
    pub fn new(kind: RecordType, endian: Endian, level: i32) -> Result<Self> {
        let mut new = Self::of_frames(kind, endian, level)?;
        if level > FREE_LEVEL {
            let set = |table| new.encoder.set_parameter(table);
            TABLES
                .into_iter()
                .try_for_each(set)
                .map_err(Error::io("zstd encoder"))?;
        }
        Ok(new)
    }

    /// Returns a compressor for frames of a known size. zstd adapts its tables to this size.
    ///
    /// # Errors
    /// zstd rejects the level.
    pub(crate) fn of_frames(kind: RecordType, endian: Endian, level: i32) -> Result<Self> {
        let encoder = Encoder::new(level).map_err(Error::io("zstd encoder"))?;
        Ok(Compressor {
            encoder,
            kind,
            endian,
            plain: 0,
            compressed: 0,
        })
    }

    /// Compresses `plain`, which contains whole records or parts of them, and passes the compressed
    /// records to `sink`. `plain` must not be longer than `mmap_len` of the COMPRESSED feature:
    /// this is the size of the reader's buffer for one record.
    ///
    /// # Errors
    /// The errors of `sink` and of zstd.
    pub fn push<E: From<Error>>(
        &mut self,
        plain: &[u8],
        sink: impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.compress(plain, Self::flush, sink)
    }

    /// Starts a frame of `size` bytes after the end of the previous one.
    ///
    /// # Errors
    /// The errors of zstd.
    pub(crate) fn begin_frame(&mut self, size: u64) -> Result<()> {
        let zstd = Error::io("zstd encoder");
        self.encoder.reinit().map_err(&zstd)?;
        self.encoder.set_pledged_src_size(Some(size)).map_err(&zstd)
    }

    /// Does the same as [`push`](Self::push) for the last bytes of a frame.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub(crate) fn push_last<E: From<Error>>(
        &mut self,
        plain: &[u8],
        sink: impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.compress(plain, Self::end, sink)
    }

    fn flush(encoder: &mut Encoder<'_>, output: &mut OutBuffer<'_, [u8]>) -> io::Result<usize> {
        encoder.flush(output)
    }

    fn end(encoder: &mut Encoder<'_>, output: &mut OutBuffer<'_, [u8]>) -> io::Result<usize> {
        encoder.finish(output, true)
    }

    /// Compresses `plain`. Then `complete` writes the data that zstd still buffers, as far as the
    /// output has space for it, and returns the number of bytes that remain.
    fn compress<E: From<Error>>(
        &mut self,
        plain: &[u8],
        complete: impl Fn(&mut Encoder<'_>, &mut OutBuffer<'_, [u8]>) -> io::Result<usize>,
        mut sink: impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let zstd = Error::io("zstd encoder");
        let mut input = InBuffer::around(plain);
        let mut payload = vec![0; self.room()];
        loop {
            let mut output = OutBuffer::around(payload.as_mut_slice());
            while input.pos() < plain.len() && output.pos() < output.capacity() {
                self.encoder.run(&mut input, &mut output).map_err(&zstd)?;
            }
            let held = match input.pos() == plain.len() {
                true => complete(&mut self.encoder, &mut output).map_err(&zstd)?,
                false => 1,
            };
            let len = output.pos();
            if len > 0 {
                let bytes = self
                    .record(payload.get(..len).unwrap_or_default())
                    .encode(self.endian)
                    .map_err(Error::from)?;
                self.compressed = self.compressed.saturating_add(bytes.len() as u64);
                sink(&RawRecord::first(&bytes, self.endian, 0).map_err(Error::from)?)?;
            }
            if held == 0 {
                self.plain = self.plain.saturating_add(plain.len() as u64);
                return Ok(());
            }
        }
    }

    /// Returns the compression ratio as in the COMPRESSED feature: plain bytes for each byte of the
    /// compressed records including headers, rounded; 0 before the first push.
    pub fn ratio(&self) -> u32 {
        ratio(self.plain, self.compressed)
    }

    /// Returns the number of plain bytes so far, and the size of the resulting records in bytes.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        (self.plain, self.compressed)
    }

    /// Returns the maximum payload of a record in bytes. The size of a record has 16 bits, and for
    /// COMPRESSED2 it is a multiple of 8.
    fn room(&self) -> usize {
        match self.kind {
            RecordType::COMPRESSED2 => 65_528 - 16,
            _ => 65_535 - 8,
        }
    }

    fn record(&self, payload: &[u8]) -> Record {
        let data = Rest(payload.to_vec());
        let body = match self.kind {
            RecordType::COMPRESSED2 => Body::Compressed2(Compressed2 {
                data_size: payload.len() as u64,
                data,
                padding: Rest(vec![
                    0;
                    payload
                        .len()
                        .next_multiple_of(8)
                        .saturating_sub(payload.len())
                ]),
            }),
            _ => Body::Compressed(Compressed { data }),
        };
        Record {
            kind: self.kind,
            misc: 0,
            body,
            tail: Vec::new(),
            sample_id: None,
        }
    }
}

/// Returns plain bytes for each byte of the records, rounded; 0 before the first record.
pub(crate) fn ratio(plain: u64, compressed: u64) -> u32 {
    let rounded = plain
        .saturating_add(compressed / 2)
        .checked_div(compressed)
        .unwrap_or(0);
    u32::try_from(rounded).unwrap_or(u32::MAX)
}
