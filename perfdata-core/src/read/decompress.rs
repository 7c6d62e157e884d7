//! Looking into compressed records (`perf record -z`).
//!
//! The compressed records of a recording hold the pieces of one zstd stream, which is never ended; a piece may decode
//! to parts of records, whose rest comes with the next one (tools/perf/util/session.c,
//! perf_session__process_compressed_event).

use binrw::Endian;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Problem, Result};
use crate::layout::Layout;
use crate::record::{Compressed, Compressed2, RawRecord, RecordHeader, RecordType};

/// Decodes the compressed records of one stream, in order.
pub struct Decompressor {
    decoder: Decoder<'static>,
    endian: Endian,
    /// Decoded bytes; those before `start` are handed out.
    buffer: Vec<u8>,
    start: usize,
    /// The most bytes that one compressed record may decode to.
    limit: usize,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("buffered", &self.buffer.len()).field("limit", &self.limit).finish()
    }
}

/// Bytes that one compressed record decodes to at most, where the COMPRESSED feature says nothing: perf's ring
/// buffers are far smaller.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// Bytes decoded at once.
const STEP: usize = 128 << 10;

impl Decompressor {
    /// A decoder for the stream of a recording in byte order `endian`. One compressed record may decode to `limit`
    /// bytes: `mmap_len` of the COMPRESSED feature.
    ///
    /// # Errors
    /// zstd cannot be set up.
    pub fn new(endian: Endian, limit: usize) -> Result<Self> {
        let decoder = Decoder::new().map_err(|e| Error::io("zstd decoder", e))?;
        Ok(Decompressor { decoder, endian, buffer: Vec::new(), start: 0, limit })
    }

    /// Decodes the payload of `raw`, a compressed record; [`next`](Self::next) then gives the records.
    ///
    /// # Errors
    /// A payload that is not zstd, or decodes to more than the limit.
    pub fn push(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        let layout = Layout { len: raw.body().len() as u64, ..Layout::default() };
        let payload = match raw.kind {
            RecordType::COMPRESSED2 => raw.decode_body::<Compressed2>(layout)?.data,
            _ => raw.decode_body::<Compressed>(layout)?.data,
        };
        self.buffer.drain(..self.start);
        self.start = 0;
        let most = self.buffer.len().saturating_add(self.limit);
        let place = || format!("{} record", raw.kind);
        let mut input = InBuffer::around(&payload.0);
        loop {
            let filled = self.buffer.len();
            self.buffer.resize(filled + STEP, 0);
            let mut output = OutBuffer::around_pos(&mut self.buffer, filled);
            let hint = self.decoder.run(&mut input, &mut output);
            let end = output.pos();
            self.buffer.truncate(end);
            match hint {
                Err(e) => {
                    return Err(Error::new(place(), Problem::Unknown(format!("zstd: {e}").into())).at(raw.offset));
                }
                // A writer that lost its context begins a new frame.
                Ok(0) => self.decoder.reinit().map_err(|e| Error::io("zstd decoder", e))?,
                Ok(_) => {}
            }
            if end > most {
                let found = (end - filled.min(most)) as u64;
                return Err(Error::new(place(), Problem::Limit { found, limit: self.limit as u64 }).at(raw.offset));
            }
            // All input taken and room left in the output: nothing is held back.
            if input.pos() == payload.0.len() && end < filled + STEP {
                return Ok(());
            }
        }
    }

    /// The next whole record that is decoded; its offset is `offset`, that of the compressed record.
    ///
    /// # Errors
    /// A size below 8.
    // Not an iterator: a record borrows from the decoder.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, offset: u64) -> Result<Option<RawRecord<'_>>> {
        let bytes = self.buffer.get(self.start..).unwrap_or_default();
        let Some(header) = RecordHeader::parse(bytes, self.endian) else { return Ok(None) };
        if usize::from(header.size) > bytes.len() {
            return Ok(None);
        }
        let record = RawRecord::first(bytes, self.endian, offset)?;
        self.start += record.bytes.len();
        Ok(Some(record))
    }

    /// Takes out the decoded bytes that make no whole record yet.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let bytes = self.buffer.split_off(self.start.min(self.buffer.len()));
        self.start = self.buffer.len();
        bytes
    }

    /// Number of decoded bytes that make no whole record yet.
    pub fn pending(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }
}
