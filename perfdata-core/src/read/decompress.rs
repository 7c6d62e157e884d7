//! Decompression of compressed records (`perf record -z`).
//!
//! The compressed records of a recording contain the pieces of one zstd stream, which is never
//! ended. A piece may decompress to parts of records, whose rest is in the next piece
//! (tools/perf/util/session.c, perf_session__process_compressed_event).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "start and end are places in the buffer, start not behind end; sums of bytes that were there"
)]

use binrw::Endian;

use crate::decode_context::DecodeContext;
use crate::error::{Error, Problem, Result};
use crate::feature::{Feature, FeatureId, Section};
use crate::read::limits::Limits;
use crate::read::tail::Tail;
use crate::read::zstd::{DecoderStep, Stream};
use crate::record::{Compressed, Compressed2, RawRecord, RecordHeader, RecordType};
use crate::recording::Recording;

/// Decompresses the compressed records of one stream, in order. Only one block of the decompressed
/// data is in memory at a time, regardless of its size.
pub struct Decompressor {
    decoder: Stream,
    endian: Endian,
    /// The payload of the last compressed record; the bytes before `taken` are decompressed.
    input: Vec<u8>,
    taken: usize,
    /// Whether the decoder may still have bytes that did not fit in the buffer.
    held: bool,
    /// Whether the decoder is inside a frame, between two blocks.
    between_blocks: bool,
    /// Whether the decoder is before a frame.
    between_frames: bool,
    /// Buffer for decompressed bytes; those from `start` to `end` are not yet returned.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Decompressed size of the last compressed record so far in bytes.
    decoded: u64,
    limits: Limits,
    /// Type and offset of the last compressed record.
    place: (RecordType, u64),
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor")
            .field("pending", &self.pending())
            .field("limits", &self.limits)
            .finish()
    }
}

/// Size of the buffer for decompressed bytes: one block of zstd, and the part of a record before
/// it.
const BUFFER: usize = 192 << 10;

/// The first bytes of a frame. A block cannot start with them: its size would exceed the maximum.
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// The decoder's hint between blocks: the size of a block header in bytes.
const BLOCK_HEADER: usize = 3;

/// Returns the compressed data in a record.
fn payload(raw: &RawRecord<'_>) -> Result<Vec<u8>> {
    let layout = DecodeContext {
        len: raw.body().len() as u64,
        ..DecodeContext::default()
    };
    let data = match raw.kind {
        RecordType::COMPRESSED2 => raw.decode_body::<Compressed2>(layout)?.data,
        _ => raw.decode_body::<Compressed>(layout)?.data,
    };
    Ok(data.0)
}

impl Decompressor {
    /// Returns a decoder for the stream of a recording in byte order `endian`.
    ///
    /// # Errors
    /// Fails if zstd cannot be initialised, or not with this window.
    pub fn new(endian: Endian, limits: Limits) -> Result<Self> {
        Ok(Decompressor {
            decoder: Stream::new(limits.max_window_log)?,
            endian,
            input: Vec::new(),
            taken: 0,
            held: false,
            between_blocks: false,
            between_frames: true,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            decoded: 0,
            limits,
            place: (RecordType::COMPRESSED, 0),
        })
    }

    /// Returns a decoder for the stream of `recording`, within the [`limits_of`](Self::limits_of)
    /// this stream.
    ///
    /// # Errors
    /// Fails if zstd cannot be initialised.
    pub fn of(recording: &Recording, limits: Limits) -> Result<Self> {
        Self::new(recording.endian, Self::limits_of(recording, limits))
    }

    /// Returns the limits of a decoder for the stream of `recording`: `limits`, and if they contain
    /// no maximum of the decompressed size, the size of the recorder's ring buffer.
    pub fn limits_of(recording: &Recording, mut limits: Limits) -> Limits {
        if limits.max_decompressed.is_none()
            && let Some(Ok(Section {
                value: Feature::Compressed(params),
                ..
            })) = recording.feature(FeatureId::COMPRESSED)
            && params.mmap_len > 0
        {
            limits.max_decompressed = Some(params.mmap_len.into());
        }
        limits
    }

    /// Accepts the payload of `raw`, a compressed record. [`next`](Self::next) then returns the
    /// records in it, and must be called until it returns `None`.
    ///
    /// # Errors
    /// Fails if the record is too short for its payload.
    pub fn push(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        self.input = payload(raw)?;
        self.taken = 0;
        self.decoded = 0;
        self.place = (raw.kind, raw.offset);
        if self.between_blocks && self.input.starts_with(&FRAME_MAGIC) {
            // A writer that lost its context starts a new frame without ending the old one.
            self.restart()?;
        }
        Ok(())
    }

    /// Returns whether the payload of `raw`, a compressed record, starts with a new frame, which
    /// does not need earlier data.
    ///
    /// # Errors
    /// Fails if the record is too short for its payload.
    pub fn begins_frame(raw: &RawRecord<'_>) -> Result<bool> {
        Ok(payload(raw)?.starts_with(&FRAME_MAGIC))
    }

    /// Returns the type of the last compressed record.
    pub fn kind(&self) -> RecordType {
        self.place.0
    }

    /// Returns whether the decompressed data ends with a block, so that a new frame may follow.
    pub fn is_between_blocks(&self) -> bool {
        self.between_blocks || self.between_frames
    }

    fn restart(&mut self) -> Result<()> {
        self.held = false;
        self.between_blocks = false;
        self.between_frames = true;
        self.decoder.restart()
    }

    /// Returns the next whole record of the stream. Its offset is that of the compressed record
    /// that completes it.
    ///
    /// # Errors
    /// Fails if a payload is not zstd or decompresses to more than the limit, or if a record has a
    /// size below 8, is itself compressed or has a payload.
    // Not an iterator: a record borrows from the decoder.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RawRecord<'_>>> {
        while !self.has_record() {
            if !self.decode()? {
                return Ok(None);
            }
        }
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
        let record = RawRecord::first(bytes, self.endian, self.place.1)?;
        if record.kind.is_compressed() || record.payload_len()? > 0 {
            let (kind, offset) = self.place;
            let found = format!("a compressed {} record", record.kind);
            return Err(Error::invalid(
                format!("{kind} record"),
                "data",
                found,
                "records of the kernel",
            )
            .at(offset));
        }
        self.start += record.bytes.len();
        Ok(Some(record))
    }

    fn has_record(&self) -> bool {
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
        RecordHeader::parse(bytes, self.endian)
            .is_some_and(|header| usize::from(header.size) <= bytes.len())
    }

    /// Decompresses more of the payload, as far as it fits into the buffer; returns false at the
    /// end of the payload.
    fn decode(&mut self) -> Result<bool> {
        if self.taken == self.input.len() && !self.held {
            return Ok(false);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let (kind, offset) = self.place;
        let fault = |problem| Error::new(format!("{kind} record"), problem).at(offset);
        let input = self.input.get(self.taken..).unwrap_or_default();
        let DecoderStep { read, end, hint } = self
            .decoder
            .run(input, &mut self.buffer, self.end)
            .map_err(fault)?;
        self.taken += read;
        self.decoded += (end - self.end) as u64;
        self.end = end;
        self.held = end == self.buffer.len();
        self.between_blocks = hint == BLOCK_HEADER;
        self.between_frames = false;
        let limit = self.limits.max_decompressed.unwrap_or(Limits::DECOMPRESSED);
        if self.decoded > limit {
            return Err(fault(Problem::Limit {
                found: Some(self.decoded),
                name: "max-decompressed",
                limit,
            }));
        }
        if hint == 0 {
            self.restart()?;
        }
        Ok(true)
    }

    /// Removes and returns the decompressed bytes that are not yet a complete record.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let bytes = self
            .buffer
            .get(self.start..self.end)
            .unwrap_or_default()
            .to_vec();
        self.start = self.end;
        bytes
    }

    /// Classifies the decompressed bytes that are not a complete record, at the end of the stream;
    /// `None` if there are none.
    pub fn tail(&self, recording: &Recording) -> Option<Tail> {
        let bytes = self
            .buffer
            .get(self.start..self.end)
            .filter(|bytes| !bytes.is_empty())?;
        Some(Tail::of(bytes, recording, self.limits))
    }

    /// Returns the number of decompressed bytes that are not yet a complete record.
    pub fn pending(&self) -> usize {
        self.end - self.start
    }
}
