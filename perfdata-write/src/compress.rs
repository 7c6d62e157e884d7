//! Compressed records, as `perf record -z` writes them (tools/perf/builtin-record.c, zstd_compress).

use perfdata_core::Endian;
use perfdata_core::record::{Body, Compressed, Compressed2, RawRecord, Record, RecordType};
use perfdata_core::wire::Rest;
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Result};

/// Puts records into compressed ones: all of a recording into one zstd stream, which is flushed with each push and
/// never ended, so that a reader can decode every record as it comes.
pub struct Compressor {
    encoder: Encoder<'static>,
    kind: RecordType,
    endian: Endian,
    plain: u64,
    compressed: u64,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").field("kind", &self.kind).field("plain", &self.plain).finish()
    }
}

impl Compressor {
    /// A stream of `kind` records (COMPRESSED or COMPRESSED2) in byte order `endian`, at zstd's `level`.
    ///
    /// # Errors
    /// zstd refuses the level.
    pub fn new(kind: RecordType, endian: Endian, level: i32) -> Result<Self> {
        let encoder = Encoder::new(level).map_err(Error::io("zstd encoder"))?;
        Ok(Compressor { encoder, kind, endian, plain: 0, compressed: 0 })
    }

    /// Compresses `plain`, whole records or parts of them, and gives the compressed records to `sink`. The reader's
    /// room for one of them is `mmap_len` of the COMPRESSED feature: `plain` must not be longer.
    ///
    /// # Errors
    /// Those of `sink`, and zstd's.
    pub fn push<E: From<Error>>(
        &mut self,
        plain: &[u8],
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
            // Bytes that zstd still holds after a flush into the room that is left.
            let held = if input.pos() == plain.len() { self.encoder.flush(&mut output).map_err(&zstd)? } else { 1 };
            let len = output.pos();
            if len > 0 {
                let bytes =
                    self.record(payload.get(..len).unwrap_or_default()).encode(self.endian).map_err(Error::from)?;
                self.compressed += bytes.len() as u64;
                sink(&RawRecord::first(&bytes, self.endian, 0).map_err(Error::from)?)?;
            }
            if held == 0 {
                self.plain += plain.len() as u64;
                return Ok(());
            }
        }
    }

    /// Plain bytes for each byte of the records, headers and all, rounded, as the COMPRESSED feature has it; 0 before
    /// the first push.
    pub fn ratio(&self) -> u32 {
        let rounded = (self.plain + self.compressed / 2).checked_div(self.compressed).unwrap_or(0);
        u32::try_from(rounded).unwrap_or(u32::MAX)
    }

    /// The most payload that a record holds: its size is 16 bits, and for COMPRESSED2 a multiple of 8.
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
                padding: Rest(vec![0; payload.len().next_multiple_of(8) - payload.len()]),
            }),
            _ => Body::Compressed(Compressed { data }),
        };
        Record { kind: self.kind, misc: 0, body, tail: Vec::new(), sample_id: None }
    }
}
