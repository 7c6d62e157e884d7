//! Compressed records, as `perf record -z` writes them (tools/perf/builtin-record.c,
//! zstd_compress).

use std::io;

use perfdata_core::Endian;
use perfdata_core::record::{Body, Compressed, Compressed2, RawRecord, Record, RecordType};
use perfdata_core::wire::Rest;

use crate::encoder::Encoder;
use crate::error::{Error, Result};

/// Packs records into compressed records. The content is either one zstd stream, which is flushed
/// after each push, so that a reader can decode every record when it arrives, and which never ends;
/// or a sequence of frames.
pub struct Compressor {
    encoder: Encoder,
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

impl Compressor {
    /// Returns a compressor that writes one stream of `kind` records (COMPRESSED or COMPRESSED2) in
    /// byte order `endian`, at zstd's `level`. Above level 8 its tables use at most about 40 MB.
    ///
    /// # Errors
    /// zstd rejects the level, or the crate was built without the feature `zstd`.
    pub fn new(kind: RecordType, endian: Endian, level: i32) -> Result<Self> {
        Self::with(Encoder::new(level), kind, endian)
    }

    /// Returns a compressor for frames of a known size. zstd adapts its tables to this size.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn of_frames(kind: RecordType, endian: Endian, level: i32) -> Result<Self> {
        Self::with(Encoder::of_frames(level), kind, endian)
    }

    fn with(encoder: io::Result<Encoder>, kind: RecordType, endian: Endian) -> Result<Self> {
        Ok(Compressor {
            encoder: encoder.map_err(Error::io("zstd encoder"))?,
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
        self.compress(plain, false, sink)
    }

    /// Starts a frame of `size` bytes after the end of the previous one.
    ///
    /// # Errors
    /// The errors of zstd.
    pub(crate) fn begin_frame(&mut self, size: u64) -> Result<()> {
        let begun = self.encoder.begin_frame(size);
        begun.map_err(Error::io("zstd encoder"))
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
        self.compress(plain, true, sink)
    }

    /// Compresses `plain`, and writes what zstd still buffers; with `is_last` the end of the frame.
    fn compress<E: From<Error>>(
        &mut self,
        plain: &[u8],
        is_last: bool,
        mut sink: impl FnMut(&RawRecord<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = plain;
        let mut payload = vec![0; self.room()];
        loop {
            let step = self
                .encoder
                .run(rest, &mut payload, is_last)
                .map_err(Error::io("zstd encoder"))?;
            rest = rest.get(step.read..).unwrap_or_default();
            if step.written > 0 {
                let bytes = self
                    .record(payload.get(..step.written).unwrap_or_default())
                    .encode(self.endian)
                    .map_err(Error::from)?;
                self.compressed = self.compressed.saturating_add(bytes.len() as u64);
                sink(&RawRecord::first(&bytes, self.endian, 0).map_err(Error::from)?)?;
            }
            if step.is_complete {
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
