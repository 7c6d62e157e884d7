//! Looking into compressed records (`perf record -z`).
//!
//! The compressed records of a recording hold the pieces of one zstd stream, which is never ended; a piece may decode
//! to parts of records, whose rest comes with the next one (tools/perf/util/session.c,
//! perf_session__process_compressed_event).

#![allow(
    clippy::arithmetic_side_effects,
    reason = "start and end are places in the buffer, start not behind end; sums of bytes that were there"
)]

use binrw::Endian;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Problem, Result};
use crate::feature::{Feature, FeatureId, Section};
use crate::layout::Layout;
use crate::read::limits::Limits;
use crate::read::tail::Tail;
use crate::record::{Compressed, Compressed2, RawRecord, RecordHeader, RecordType};
use crate::recording::Recording;

/// Decodes the compressed records of one stream, in order. However much a record decodes to, only a block of it is in
/// memory at a time.
pub struct Decompressor {
    decoder: Decoder<'static>,
    endian: Endian,
    /// The payload of the last compressed record; the bytes before `taken` are decoded.
    input: Vec<u8>,
    taken: usize,
    /// Whether the decoder may hold back bytes for which there was no room.
    held: bool,
    /// Whether it stands inside a frame, between two blocks.
    between_blocks: bool,
    /// Whether it stands before a frame.
    between_frames: bool,
    /// Room for decoded bytes, of which those from `start` to `end` are decoded but not handed out.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes that the last compressed record decoded to so far, and the most that it may.
    decoded: u64,
    limit: u64,
    window_log: u32,
    /// Type and offset of the last compressed record.
    place: (RecordType, u64),
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("pending", &self.pending()).field("limit", &self.limit).finish()
    }
}

/// Room for decoded bytes: one block of zstd, and the part of a record before it.
const BUFFER: usize = 192 << 10;

/// The first bytes of a frame. A block cannot start with them: it would be larger than blocks may be.
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// The decoder's hint between blocks: bytes of a block's header.
const BLOCK_HEADER: usize = 3;

/// zstd's code for a stream that asks for a larger window than is granted (lib/zstd_errors.h,
/// ZSTD_error_frameParameter_windowTooLarge).
const WINDOW_TOO_LARGE: usize = 0_usize.wrapping_sub(16);

/// Whether records of this type hold compressed ones.
pub fn is_compressed(kind: RecordType) -> bool {
    matches!(kind, RecordType::COMPRESSED | RecordType::COMPRESSED2)
}

/// The compressed data in a record.
fn payload(raw: &RawRecord<'_>) -> Result<Vec<u8>> {
    let layout = Layout { len: raw.body().len() as u64, ..Layout::default() };
    let data = match raw.kind {
        RecordType::COMPRESSED2 => raw.decode_body::<Compressed2>(layout)?.data,
        _ => raw.decode_body::<Compressed>(layout)?.data,
    };
    Ok(data.0)
}

/// What zstd says of data that it does not decode.
fn problem(error: &std::io::Error, window_log: u32) -> Problem {
    let text = error.to_string();
    if text == zstd::zstd_safe::get_error_name(WINDOW_TOO_LARGE) {
        return Problem::Limit { found: None, name: "max-window-log", limit: window_log.into() };
    }
    Problem::Unknown(format!("zstd: {text}").into())
}

impl Decompressor {
    /// A decoder for the stream of a recording in byte order `endian`.
    ///
    /// # Errors
    /// zstd cannot be set up, or not for such a window.
    pub fn new(endian: Endian, limits: Limits) -> Result<Self> {
        let mut decoder = Decoder::new().map_err(|e| Error::io("zstd decoder", e))?;
        let window = DParameter::WindowLogMax(limits.max_window_log);
        decoder.set_parameter(window).map_err(|e| Error::io("zstd decoder", e))?;
        Ok(Decompressor {
            decoder,
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
            limit: limits.max_decompressed.unwrap_or(Limits::DECOMPRESSED),
            window_log: limits.max_window_log,
            place: (RecordType::COMPRESSED, 0),
        })
    }

    /// A decoder for the stream of `recording`, by its limits.
    ///
    /// # Errors
    /// zstd cannot be set up.
    pub fn of(recording: &Recording) -> Result<Self> {
        Self::new(recording.endian, Self::limits_of(recording))
    }

    /// The limits of a decoder for the stream of `recording`: where none is set, a compressed record holds as many bytes
    /// as the recorder's ring buffer did.
    pub fn limits_of(recording: &Recording) -> Limits {
        let mut limits = recording.limits;
        if limits.max_decompressed.is_none()
            && let Some(Ok(Section { value: Feature::Compressed(params), .. })) =
                recording.feature(FeatureId::COMPRESSED)
            && params.mmap_len > 0
        {
            limits.max_decompressed = Some(params.mmap_len.into());
        }
        limits
    }

    /// Takes the payload of `raw`, a compressed record; [`next`](Self::next) then gives the records in it, and must be
    /// called until it has no more.
    ///
    /// # Errors
    /// A record that is too short for its payload.
    pub fn push(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        self.input = payload(raw)?;
        self.taken = 0;
        self.decoded = 0;
        self.place = (raw.kind, raw.offset);
        if self.between_blocks && self.input.starts_with(&FRAME_MAGIC) {
            // A writer that lost its context begins a new frame without ending the old one.
            self.restart()?;
        }
        Ok(())
    }

    /// Whether the payload of `raw`, a compressed record, starts with a new frame, which needs none of the data before.
    ///
    /// # Errors
    /// A record that is too short for its payload.
    pub fn begins_frame(raw: &RawRecord<'_>) -> Result<bool> {
        Ok(payload(raw)?.starts_with(&FRAME_MAGIC))
    }

    /// The type of the last compressed record.
    pub fn kind(&self) -> RecordType {
        self.place.0
    }

    /// Whether what was decoded ends with a block, so that a new frame may follow.
    pub fn is_between_blocks(&self) -> bool {
        self.between_blocks || self.between_frames
    }

    fn restart(&mut self) -> Result<()> {
        self.held = false;
        self.between_blocks = false;
        self.between_frames = true;
        self.decoder.reinit().map_err(|e| Error::io("zstd decoder", e))
    }

    /// The next whole record in the stream; its offset is that of the compressed record that ends it.
    ///
    /// # Errors
    /// A payload that is not zstd, or decodes to more than the limit; a record with a size below 8, or one that is
    /// itself compressed or has a payload behind it.
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
        if is_compressed(record.kind) || record.payload_len()? > 0 {
            let (kind, offset) = self.place;
            let found = format!("a compressed {} record", record.kind);
            return Err(Error::invalid(format!("{kind} record"), "data", found, "records of the kernel").at(offset));
        }
        self.start += record.bytes.len();
        Ok(Some(record))
    }

    fn has_record(&self) -> bool {
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
        RecordHeader::parse(bytes, self.endian).is_some_and(|header| usize::from(header.size) <= bytes.len())
    }

    /// Decodes more of the payload, as far as there is room; false at its end.
    fn decode(&mut self) -> Result<bool> {
        if self.taken == self.input.len() && !self.held {
            return Ok(false);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let (kind, offset) = self.place;
        let fault = |problem| Error::new(format!("{kind} record"), problem).at(offset);
        let mut input = InBuffer::around(self.input.get(self.taken..).unwrap_or_default());
        let mut output = OutBuffer::around_pos(self.buffer.as_mut_slice(), self.end);
        let hint = self.decoder.run(&mut input, &mut output).map_err(|e| fault(problem(&e, self.window_log)))?;
        let (read, end) = (input.pos(), output.pos());
        self.taken += read;
        self.decoded += (end - self.end) as u64;
        self.end = end;
        self.held = end == self.buffer.len();
        self.between_blocks = hint == BLOCK_HEADER;
        self.between_frames = false;
        if self.decoded > self.limit {
            return Err(fault(Problem::Limit {
                found: Some(self.decoded),
                name: "max-decompressed",
                limit: self.limit,
            }));
        }
        if hint == 0 {
            self.restart()?;
        }
        Ok(true)
    }

    /// Takes out the decoded bytes that make no whole record yet.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default().to_vec();
        self.start = self.end;
        bytes
    }

    /// What the decoded bytes are that make no whole record, at the end of the stream: nothing where there are none.
    pub fn tail(&self, recording: &Recording) -> Option<Tail> {
        let bytes = self.buffer.get(self.start..self.end).filter(|bytes| !bytes.is_empty())?;
        Some(Tail::of(bytes, recording))
    }

    /// Number of decoded bytes that make no whole record yet.
    pub fn pending(&self) -> usize {
        self.end - self.start
    }
}
