//! The AUX data of a recording, read piece by piece.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;

use perfdata_core::DecodeContext;
use perfdata_core::arm_spe::{RecordBuilder, Records, SpeRecord};
use perfdata_core::intel_bts::BtsRecord;
use perfdata_core::read::Source;
use perfdata_core::record::{
    Auxtrace, AuxtraceInfo, Body, RawRecord, Record, RecordType, TimeConv,
};

use perfdata_convert::error::{Error, Result};
use perfdata_convert::io::InputSource;
use perfdata_convert::support::files::{temporary_file, temporary_file_failed};
use perfdata_convert::walk::{Item, walk};

/// Number of bytes decoded at once.
const BLOCK: usize = 64 << 10;

/// All AUX data, in a temporary file, and the records that describe them.
#[derive(Debug, Default)]
pub(super) struct Traces {
    pub(super) info: Option<AuxtraceInfo>,
    pub(super) clock: Option<TimeConv>,
    /// By the number of the buffer.
    pub(super) queues: Vec<Trace>,
    /// Number of AUXTRACE records.
    pieces: u64,
    file: Option<File>,
}

/// The AUX data of one buffer.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Number of the buffer.
    idx: u32,
    /// CPU, or -1.
    pub(super) cpu: u32,
    /// Thread ID, or -1.
    pub(super) tid: u32,
    /// In order of arrival.
    pieces: Vec<TracePiece>,
    /// Index of the piece that is being decoded.
    piece: usize,
    /// Number of its bytes that were read.
    read: u64,
    /// Bytes that were read, from `at` on not decoded.
    block: Vec<u8>,
    at: usize,
    builder: RecordBuilder,
    /// Number of records that could not be decoded.
    pub(super) damaged: u64,
}

#[derive(Debug, Clone, Copy)]
struct TracePiece {
    /// Offset in the temporary file.
    start: u64,
    /// Size in bytes.
    size: u64,
    /// Offset in the AUX buffer.
    offset: u64,
    /// Orders the pieces of all buffers; for Intel BTS, the value of the time stamp counter.
    reference: u64,
    /// Its number among the pieces of all buffers, from 1.
    number: u64,
}

/// The records of a piece of Intel BTS, read block by block.
#[derive(Debug)]
pub(super) struct BtsReader {
    /// Offset of the rest in the temporary file, and its size.
    start: u64,
    left: u64,
    block: Vec<u8>,
    at: usize,
}

impl BtsReader {
    /// Returns the next record. An incomplete one at the end is none.
    pub(super) fn next(&mut self, traces: &Traces) -> Result<Option<BtsRecord>> {
        loop {
            let rest = self.block.get(self.at..).unwrap_or_default();
            if let Some(record) = BtsRecord::first(rest) {
                self.at = self.at.saturating_add(BtsRecord::SIZE);
                return Ok(Some(record));
            }
            let size = usize::try_from(self.left).map_or(BTS_BLOCK, |left| left.min(BTS_BLOCK));
            if size == 0 {
                return Ok(None);
            }
            self.block.clear();
            self.block.resize(size, 0);
            self.at = 0;
            traces.read_at(&mut self.block, self.start)?;
            self.start = self.start.saturating_add(size as u64);
            self.left = self.left.saturating_sub(size as u64);
        }
    }
}

/// A part of the trace data of a buffer.
#[derive(Debug)]
pub(super) struct TracePart {
    pub(super) bytes: Vec<u8>,
    /// Whether it is the first one.
    pub(super) is_first: bool,
    /// Reference and number of its piece.
    pub(super) reference: u64,
    pub(super) number: u64,
}

/// The trace data of a buffer, read part by part.
#[derive(Debug)]
pub(super) struct TraceReader {
    queue: usize,
    piece: usize,
    /// Number of bytes of the piece that were read.
    read: u64,
    has_begun: bool,
}

impl TraceReader {
    pub(super) fn new(queue: usize) -> Self {
        TraceReader {
            queue,
            piece: 0,
            read: 0,
            has_begun: false,
        }
    }

    /// Returns the next part; `None` at the end.
    pub(super) fn next(&mut self, traces: &Traces) -> Result<Option<TracePart>> {
        loop {
            let queue = traces.queues.get(self.queue);
            let Some(piece) = queue.and_then(|queue| queue.pieces.get(self.piece)) else {
                return Ok(None);
            };
            let left = piece.size.saturating_sub(self.read);
            if left == 0 {
                (self.piece, self.read) = (self.piece.saturating_add(1), 0);
                continue;
            }
            let size = usize::try_from(left).map_or(PART, |left| left.min(PART));
            let mut bytes = vec![0; size];
            traces.read_at(&mut bytes, piece.start.saturating_add(self.read))?;
            self.read = self.read.saturating_add(size as u64);
            return Ok(Some(TracePart {
                bytes,
                is_first: !std::mem::replace(&mut self.has_begun, true),
                reference: piece.reference,
                number: piece.number,
            }));
        }
    }
}

/// Number of bytes of a part.
const PART: usize = 256 << 10;

/// Number of bytes of Intel BTS that are read at once: whole records.
const BTS_BLOCK: usize = BtsRecord::SIZE << 10;

impl Traces {
    /// Reads the whole input.
    pub(super) fn read(source: &InputSource) -> Result<Self> {
        let mut traces = Traces::default();
        let Some(mut reader) = source.reopen()? else {
            return Ok(traces);
        };
        let limits = source.limits();
        let mut out: Option<BufWriter<File>> = None;
        let mut by_idx: HashMap<u32, usize> = HashMap::new();
        let mut len = 0_u64;
        let mut held = 0_u64;
        let mut current: Option<usize> = None;
        walk(&mut *reader, |item, _| {
            match item {
                Item::Records(batch, _) => {
                    for raw in batch.iter() {
                        current = None;
                        match raw.kind {
                            RecordType::AUXTRACE => {
                                held = held.saturating_add(size_of::<TracePiece>() as u64);
                                limits.check_metadata("AUXTRACE records", held)?;
                                current = Some(traces.begin(&raw, &mut by_idx, len)?);
                            }
                            RecordType::AUXTRACE_INFO | RecordType::TIME_CONV => {
                                traces.learn(&raw)?;
                            }
                            _ => {}
                        }
                    }
                }
                Item::Payload(bytes) => {
                    if let Some(piece) = current
                        .and_then(|at| traces.queues.get_mut(at))
                        .and_then(|queue| queue.pieces.last_mut())
                    {
                        let out = match &mut out {
                            Some(out) => out,
                            none => none.insert(BufWriter::new(temporary_file()?)),
                        };
                        out.write_all(bytes).map_err(temporary_file_failed())?;
                        len = len.saturating_add(bytes.len() as u64);
                        piece.size = piece.size.saturating_add(bytes.len() as u64);
                    }
                }
                Item::Undecodable(error) => return Err(Error::from(error).of_records()),
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(out) = out {
            let file = out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error);
            traces.file = Some(file.map_err(temporary_file_failed())?);
        }
        traces.queues.sort_by_key(|queue| queue.idx);
        Ok(traces)
    }

    /// Begins a piece, and returns the index of its queue.
    fn begin(
        &mut self,
        raw: &RawRecord<'_>,
        by_idx: &mut HashMap<u32, usize>,
        start: u64,
    ) -> Result<usize> {
        let body: Auxtrace = raw.decode_body(DecodeContext::default())?;
        let next = self.queues.len();
        let at = *by_idx.entry(body.idx).or_insert(next);
        if at == next {
            self.queues.push(Trace {
                idx: body.idx,
                cpu: body.cpu,
                tid: body.tid,
                ..Trace::default()
            });
        }
        self.pieces = self.pieces.saturating_add(1);
        if let Some(queue) = self.queues.get_mut(at) {
            queue.pieces.push(TracePiece {
                start,
                size: 0,
                offset: body.offset,
                reference: body.reference,
                number: self.pieces,
            });
        }
        Ok(at)
    }

    /// Returns whether a buffer was written more than once.
    pub(super) fn has_several_pieces(&self) -> bool {
        self.queues.iter().any(|queue| queue.pieces.len() > 1)
    }

    fn learn(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        match Record::decode(raw, &DecodeContext::default())?.body {
            Body::AuxtraceInfo(info) if self.info.is_none() => self.info = Some(info),
            Body::TimeConv(clock) if self.clock.is_none() => self.clock = Some(clock),
            _ => {}
        }
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        match &self.file {
            Some(file) => file
                .read_exact_at(bytes, at)
                .map_err(temporary_file_failed()),
            None => Ok(()),
        }
    }

    /// Returns the records of a piece of Intel BTS, without the first `skip` bytes.
    pub(super) fn reader(&self, queue: usize, piece: usize, skip: u64) -> BtsReader {
        let piece = self
            .queues
            .get(queue)
            .and_then(|queue| queue.pieces.get(piece));
        let (start, size) = piece.map_or((0, 0), |piece| (piece.start, piece.size));
        BtsReader {
            start: start.saturating_add(skip),
            left: size.saturating_sub(skip),
            block: Vec::new(),
            at: 0,
        }
    }

    /// Returns the number of bytes at the start of a piece that the piece before it ends with: a
    /// snapshot contains the whole buffer (`intel_bts_find_overlap`).
    pub(super) fn overlap(&self, queue: usize, piece: usize) -> Result<u64> {
        let pieces = self.queues.get(queue).map(|queue| queue.pieces.as_slice());
        let at = |number: usize| pieces.and_then(|pieces| pieces.get(number));
        let (Some(before), Some(this)) = (piece.checked_sub(1).and_then(at), at(piece)) else {
            return Ok(0);
        };
        let mut skip = before.size.saturating_sub(this.size);
        let Some(first) = self.reader(queue, piece, 0).next(self)? else {
            return Ok(0);
        };
        let mut records = self.reader(queue, piece.saturating_sub(1), skip);
        while let Some(record) = records.next(self)? {
            let size = before.size.saturating_sub(skip);
            let start = before.start.saturating_add(skip);
            if record == first && self.is_equal(start, this.start, size)? {
                return Ok(size);
            }
            skip = skip.saturating_add(BtsRecord::SIZE as u64);
        }
        Ok(0)
    }

    /// Returns whether `size` bytes at two places of the temporary file are the same.
    fn is_equal(&self, mut left: u64, mut right: u64, mut size: u64) -> Result<bool> {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        while size > 0 {
            let part = usize::try_from(size).map_or(BTS_BLOCK, |size| size.min(BTS_BLOCK));
            one.resize(part, 0);
            other.resize(part, 0);
            self.read_at(&mut one, left)?;
            self.read_at(&mut other, right)?;
            if one != other {
                return Ok(false);
            }
            let part = part as u64;
            (left, right) = (left.saturating_add(part), right.saturating_add(part));
            size = size.saturating_sub(part);
        }
        Ok(true)
    }

    /// Decodes the next record of a queue; `None` at its end.
    pub(super) fn next(&mut self, queue: usize) -> Result<Option<SpeRecord>> {
        match (self.queues.get_mut(queue), &self.file) {
            (Some(queue), Some(file)) => queue.next(file),
            _ => Ok(None),
        }
    }
}

impl Trace {
    /// Returns the reference of a piece.
    pub(super) fn reference(&self, piece: usize) -> Option<u64> {
        self.pieces.get(piece).map(|piece| piece.reference)
    }

    fn next(&mut self, file: &File) -> Result<Option<SpeRecord>> {
        while let Some(&piece) = self.pieces.get(self.piece) {
            let left = piece.size.saturating_sub(self.read);
            let rest = self.block.get(self.at..).unwrap_or_default();
            let position = piece
                .offset
                .wrapping_add(self.read.saturating_sub(rest.len() as u64));
            let mut records = Records::after(self.builder, rest, position);
            let found = records.decode(left > 0);
            self.builder = records.builder();
            self.at = self.block.len().saturating_sub(records.remaining());
            match found {
                Some(Ok(record)) => return Ok(Some(record)),
                Some(Err(_)) => self.damaged = self.damaged.saturating_add(1),
                None if left > 0 => self.fill(piece, left, file)?,
                None => {
                    (self.piece, self.read) = (self.piece.saturating_add(1), 0);
                    (self.block, self.at) = (Vec::new(), 0);
                }
            }
        }
        Ok(None)
    }

    /// Reads the next block of a piece behind the bytes that are not decoded.
    fn fill(&mut self, piece: TracePiece, left: u64, file: &File) -> Result<()> {
        self.block.drain(..self.at.min(self.block.len()));
        self.at = 0;
        let size = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        let known = self.block.len();
        self.block.resize(known.saturating_add(size), 0);
        let free = self.block.get_mut(known..).unwrap_or_default();
        file.read_exact_at(free, piece.start.saturating_add(self.read))
            .map_err(temporary_file_failed())?;
        self.read = self.read.saturating_add(size as u64);
        Ok(())
    }
}
