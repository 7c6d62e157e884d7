//! Several recordings as one.

use std::collections::HashMap;

use crate::container_layout::{ContainerLayout, PipeLayout};
use crate::describe::Style;
use crate::error::{Error, Problem, Result};
use crate::read::decompress::Decompressor;
use crate::read::merged::{Lane, Merged, Order};
use crate::read::record_batch::{Chunk, RecordBatch};
use crate::read::record_source::RecordSource;
use crate::read::records::RecordStream;
use crate::read::united::unite;
use crate::read::{Collector, Limits, RecordingReader};
use crate::record::{RawRecord, RecordType, is_known_time};
use crate::recording::{Events, Recording};

/// One of several recordings that are merged.
#[derive(Debug)]
pub struct MergedRecording<S> {
    source: S,
    /// Number of the recording, from 1, for error messages.
    number: usize,
    /// The source's events, and their new IDs; only the IDs that change.
    events: Events,
    ids: HashMap<u64, u64>,
    zstd: Option<Decompressor>,
    /// Records that were read, and the offset of the next one in them.
    block: Vec<u8>,
    at: usize,
    /// Offset of the block in the source.
    offset: u64,
    /// Whether the last record has a payload, which follows.
    has_payload: bool,
    record: Vec<u8>,
    time: u64,
}

impl<S: RecordSource> RecordingReader<Merged<MergedRecording<S>>> {
    /// Merges several recordings: their records in the given order, decompressed.
    ///
    /// The model has the events of all. Events with equal attributes become one; an ID that another
    /// recording uses for a different event is replaced in the attributes and in all records. The
    /// feature sections are those of the first recording; EVENT_DESC describes all events,
    /// SAMPLE_TIME covers all samples. FINISHED_ROUND records are dropped, since each applies to
    /// one recording. Each recording is read within its own limits; those of the merged recording
    /// are those of the first.
    ///
    /// # Errors
    /// The recordings differ in byte order, the event of a record is ambiguous (an event without
    /// IDs beside others, or IDs at different offsets), or one of the recordings has no events at
    /// its start.
    pub fn merged(sources: Vec<S>, order: Order) -> Result<Self> {
        let models: Vec<&Recording> = sources.iter().map(RecordSource::recording).collect();
        let (recording, maps) = unite(&models)?;
        let limits = sources
            .first()
            .map_or_else(Limits::default, RecordSource::limits);
        let lanes = sources
            .into_iter()
            .zip(maps)
            .enumerate()
            .map(|(at, (source, ids))| MergedRecording {
                events: source.recording().events.clone(),
                source,
                number: at.saturating_add(1),
                ids,
                zstd: None,
                block: Vec::new(),
                at: 0,
                offset: 0,
                has_payload: false,
                record: Vec::new(),
                time: 0,
            });
        let lanes: Vec<_> = lanes.collect();
        let merged = Merged::new(recording.clone(), lanes, order)?;
        Ok(RecordingReader {
            records: RecordStream::new(merged, recording.endian, 0),
            recording,
            limits,
            container_layout: ContainerLayout::Pipe(PipeLayout::default()),
            collector: Collector::behind_head(limits),
        })
    }
}

impl<S: RecordSource> MergedRecording<S> {
    /// Returns the start and end of the next record in the block, if there is one.
    fn next_in_block(&mut self) -> Result<Option<(usize, usize)>> {
        let rest = self.block.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let offset = self.offset.saturating_add(self.at as u64);
        let len = RawRecord::first(rest, self.source.recording().endian, offset)?
            .bytes
            .len();
        let from = self.at;
        self.at = self.at.saturating_add(len);
        Ok(Some((from, self.at)))
    }

    /// Reads the next block of records; false at the end. Skips the payloads of records that were
    /// skipped.
    fn next_block(&mut self) -> Result<bool> {
        loop {
            match self.source.next_chunk()? {
                None => return Ok(false),
                Some((Chunk::Records(batch), _)) => {
                    fill(&batch, &mut self.block);
                    (self.at, self.offset) = (0, batch.offset());
                    return Ok(true);
                }
                Some(_) => {}
            }
        }
    }

    /// Accepts `raw` if it belongs in the merged recording.
    fn take(&mut self, raw: &RawRecord<'_>) -> Result<bool> {
        match raw.kind {
            RecordType::FINISHED_ROUND => return Ok(false),
            RecordType::HEADER_ATTR if self.source.recording().events.len() > self.events.len() => {
                let what = "its attributes come after the first record: convert it to a file first";
                return Err(Error::new("recording", Problem::Unknown(what.into())).at(raw.offset));
            }
            // The model already contains them.
            kind if kind.is_metadata() => return Ok(false),
            RecordType::FINISHED_INIT if self.number > 1 => return Ok(false),
            _ => {}
        }
        self.record.clear();
        self.record.extend_from_slice(raw.bytes);
        if !self.ids.is_empty() {
            map_ids(raw, &self.events, &self.ids, &mut self.record)?;
        }
        self.time = self
            .events
            .time(raw)
            .filter(|&time| is_known_time(time))
            .unwrap_or(self.time);
        self.has_payload = raw.kind.has_payload();
        Ok(true)
    }

    fn read(&mut self) -> Result<bool> {
        loop {
            if let Some(mut zstd) = self.zstd.take() {
                let taken = zstd.next()?.map(|record| self.take(&record)).transpose()?;
                self.zstd = Some(zstd);
                match taken {
                    Some(true) => return Ok(true),
                    Some(false) => continue,
                    None => {}
                }
            }
            let Some((from, to)) = self.next_in_block()? else {
                if !self.next_block()? {
                    return self.end();
                }
                continue;
            };
            let block = std::mem::take(&mut self.block);
            let taken = self.take_from(&block, from, to);
            self.block = block;
            if taken? {
                return Ok(true);
            }
        }
    }

    /// Accepts the record at these offsets in the block, or decompresses it if it is compressed.
    fn take_from(&mut self, block: &[u8], from: usize, to: usize) -> Result<bool> {
        let bytes = block.get(from..to).unwrap_or_default();
        let offset = self.offset.saturating_add(from as u64);
        let raw = RawRecord::first(bytes, self.source.recording().endian, offset)?;
        if !raw.kind.is_compressed() {
            return self.take(&raw);
        }
        match &mut self.zstd {
            Some(zstd) => zstd.push(&raw)?,
            none => none
                .insert(Decompressor::of(
                    self.source.recording(),
                    self.source.limits(),
                )?)
                .push(&raw)?,
        }
        Ok(false)
    }

    /// Checks that the recording was read to its end.
    fn end(&mut self) -> Result<bool> {
        if let Some(damage) = self.source.take_damage() {
            return Err(damage);
        }
        match self.zstd.as_ref().map_or(0, Decompressor::pending) {
            0 => Ok(false),
            rest => Err(Error::truncated(
                "compressed record stream",
                (rest as u64).saturating_add(1),
                rest as u64,
            )),
        }
    }
}

impl<S: RecordSource> Lane for MergedRecording<S> {
    fn advance(&mut self, _: &Recording) -> Result<bool> {
        self.read()
            .map_err(|error| error.inside(&format!("recording {}", self.number)))
    }

    fn record(&self) -> &[u8] {
        &self.record
    }

    fn time(&self) -> u64 {
        self.time
    }

    fn payload(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        // A payload follows its record, the last one of a block.
        if !self.has_payload || self.at < self.block.len() {
            return Ok(false);
        }
        match self.source.next_chunk()? {
            Some((Chunk::Payload(bytes), _)) => {
                out.extend_from_slice(bytes);
                Ok(true)
            }
            Some((Chunk::Records(batch), _)) => {
                fill(&batch, &mut self.block);
                (self.at, self.offset, self.has_payload) = (0, batch.offset(), false);
                Ok(false)
            }
            Some((Chunk::Unreadable(_), _)) | None => {
                self.has_payload = false;
                Ok(false)
            }
        }
    }
}

fn fill(batch: &RecordBatch<'_>, block: &mut Vec<u8>) {
    block.clear();
    block.extend_from_slice(batch.bytes());
}

/// Replaces the event IDs in `bytes`, a copy of `raw`.
fn map_ids(
    raw: &RawRecord<'_>,
    events: &Events,
    ids: &HashMap<u64, u64>,
    bytes: &mut [u8],
) -> Result<()> {
    raw.replace_numbers(
        &events.layout_of(raw),
        bytes,
        &mut |number, style, _| match style {
            Style::Id => ids.get(&number).copied().unwrap_or(number),
            _ => number,
        },
    )
}
