//! Writes recordings in pipe mode.

use std::io::Write;

use perfdata_core::container_layout::{Slot, SlotContent};
use perfdata_core::feature::{Feature, FeatureId};
use perfdata_core::header::PipeHeader;
use perfdata_core::read::RecordBatch;
use perfdata_core::record::{
    Body, HeaderAttr, HeaderFeature, HeaderTracingData, RawRecord, Record, RecordType,
};
use perfdata_core::wire::{Rest, ToEnd, Wire};
use perfdata_core::{Endian, Recording};

use crate::RecordSink;
use crate::buffered::Buffered;
use crate::error::{Error, Result};
use crate::incoming::Incoming;
use crate::plan::PipePlan;

/// Writes a pipe stream: [`create`](Self::create) or [`begin`](Self::begin) writes the metadata,
/// then come the records.
pub struct PipeWriter<W: Write> {
    out: Buffered<W>,
    /// `None` for a stream that contains only records: its events are not known.
    incoming: Option<Incoming>,
    /// Whether this is a copy of a stream, which may be truncated.
    is_copy: bool,
}

impl<W: Write> PipeWriter<W> {
    /// Starts a new stream, with the layout of [`PipePlan::standard`].
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub fn create(out: W, recording: &Recording) -> Result<Self> {
        Self::begin(out, PipePlan::standard(recording, PipePlan::END), recording)
    }

    /// Starts a stream with the layout in `plan`.
    ///
    /// # Errors
    /// The output cannot be written, or the metadata cannot be encoded because a section is too
    /// large for a record. In this case, nothing is written.
    pub fn begin(out: W, mut plan: PipePlan, recording: &Recording) -> Result<Self> {
        let is_copy = plan.is_copy;
        plan.settle_events(recording);
        plan.settle_features(recording);
        let mut head = PipeHeader {
            magic: recording.magic,
            size: PipeHeader::SIZE,
        }
        .encode(recording.endian)?;
        for slot in &plan.head.slots {
            head.extend(encode_slot(slot, recording)?);
        }
        let mut writer = PipeWriter {
            incoming: Some(Incoming::new(recording)),
            is_copy,
            ..Self::bare(out)
        };
        writer.put("head of the pipe", &head)?;
        Ok(writer)
    }

    /// Starts a stream that contains only records, as in the files `data.N` of a directory.
    pub fn bare(out: W) -> Self {
        PipeWriter {
            out: Buffered::new(out),
            incoming: None,
            is_copy: true,
        }
    }

    /// Writes a record of one of the events that were passed to [`begin`](Self::begin).
    ///
    /// # Errors
    /// A reader would not return the same record: see [`Record::encode_for`]. The output cannot be
    /// written. The stream contains only records, and its events are not known.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let Some(incoming) = &self.incoming else {
            return Err(Error::NoEvents);
        };
        let (bytes, endian) = (incoming.encode(record)?, incoming.endian());
        self.record(&RawRecord::first(&bytes, endian, 0)?)
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W> {
        if let Some(incoming) = self.incoming.as_ref().filter(|_| !self.is_copy) {
            incoming.end()?;
        }
        self.out.into_inner().map_err(Error::io("pipe"))
    }

    #[inline]
    fn put(&mut self, what: &'static str, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(Error::io(what))
    }
}

impl<W: Write> RecordSink for PipeWriter<W> {
    #[inline]
    fn record(&mut self, record: &RawRecord<'_>) -> Result<()> {
        if let Some(incoming) = &mut self.incoming {
            incoming.record(record)?;
        }
        self.put("record", record.bytes)
    }

    fn records(&mut self, batch: &RecordBatch<'_>) -> Result<()> {
        match (batch.iter().next(), &mut self.incoming) {
            // A record with a payload is in a separate batch.
            (Some(record), _) if batch.len() == 1 => return self.record(&record),
            (_, Some(incoming)) => incoming.records(batch.endian())?,
            _ => {}
        }
        self.put("records", batch.bytes())
    }

    fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(incoming) = &mut self.incoming {
            incoming.payload(bytes)?;
        }
        self.put("payload", bytes)
    }

    fn unreadable(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(incoming) = &mut self.incoming {
            incoming.cut();
        }
        self.put("unreadable bytes", bytes)
    }
}

/// Encodes the record for `slot` from the model. Returns no bytes if the model no longer contains
/// the item.
fn encode_slot(slot: &Slot, recording: &Recording) -> Result<Vec<u8>> {
    let padded = |kind: RecordType, body: Body, padding: Vec<u8>| -> Result<Vec<u8>> {
        let record = Record {
            kind,
            misc: slot.misc,
            body,
            tail: padding,
            sample_id: None,
        };
        Ok(record.encode(recording.endian)?)
    };
    let record = |kind, body| padded(kind, body, slot.padding.clone());
    match &slot.content {
        SlotContent::Verbatim(bytes) => Ok(bytes.clone()),
        SlotContent::Attr(at) => match recording.events.get(*at) {
            Some(event) => {
                let body = HeaderAttr {
                    attr: event.attr.self_sized()?,
                    ids: ToEnd(event.ids.clone()),
                };
                record(RecordType::HEADER_ATTR, Body::HeaderAttr(body))
            }
            None => Ok(Vec::new()),
        },
        SlotContent::EventType(at) => match recording.event_types.get(*at) {
            Some(name) => record(
                RecordType::HEADER_EVENT_TYPE,
                Body::HeaderEventType(name.clone()),
            ),
            None => Ok(Vec::new()),
        },
        SlotContent::EndOfFeatures(id) => {
            let body = HeaderFeature {
                feat_id: *id,
                section: Rest::default(),
            };
            record(RecordType::HEADER_FEATURE, Body::HeaderFeature(body))
        }
        SlotContent::Feature(id) => match recording.features.get(id) {
            Some(section) => {
                let body = HeaderFeature {
                    feat_id: u64::from(id.0),
                    section: Rest(section.clone()),
                };
                let padding = feature_padding(slot, section.len());
                let body = Body::HeaderFeature(body);
                padded(RecordType::HEADER_FEATURE, body, padding).map_err(|_| Error::TooLarge {
                    name: id.to_string(),
                    size: section.len(),
                    max: usize::from(u16::MAX - 16),
                })
            }
            None => Ok(Vec::new()),
        },
        SlotContent::BuildIds => build_ids(recording).map_err(|source| Error::Section {
            name: FeatureId::BUILD_ID.to_string(),
            source,
        }),
        SlotContent::TracingData { pad, tail } => {
            match recording.features.get(&FeatureId::TRACING_DATA) {
                Some(data) => tracing_data(data, *pad, tail, slot, recording.endian),
                None => Ok(Vec::new()),
            }
        }
    }
}

/// Returns the padding of a feature's record: that of the input, unless the section has got a size
/// with which the record is no longer a multiple of 8 bytes.
fn feature_padding(slot: &Slot, section: usize) -> Vec<u8> {
    let whole = section.saturating_add(slot.padding.len());
    match slot.is_aligned && !whole.is_multiple_of(8) {
        true => vec![0; section.next_multiple_of(8).saturating_sub(section)],
        false => slot.padding.clone(),
    }
}

/// Encodes the records of all build IDs.
fn build_ids(recording: &Recording) -> perfdata_core::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(Feature::BuildIds(ids)) = recording
        .feature(FeatureId::BUILD_ID)
        .transpose()?
        .map(|s| s.value)
    {
        for entry in &ids.0 {
            bytes.append(&mut entry.to_record_of(&recording.events, recording.endian)?);
        }
    }
    Ok(bytes)
}

/// Encodes the record of tracing data, and the data. The record's size includes neither the data
/// nor its padding.
fn tracing_data(
    data: &[u8],
    pad: Option<u32>,
    tail: &[u8],
    slot: &Slot,
    endian: Endian,
) -> Result<Vec<u8>> {
    let size = data.len().saturating_add(slot.padding.len());
    let size = u32::try_from(size).map_err(|_| Error::TooLarge {
        name: FeatureId::TRACING_DATA.to_string(),
        size,
        max: u32::MAX as usize,
    })?;
    let body = Body::HeaderTracingData(HeaderTracingData {
        size,
        pad,
        data: None,
    });
    let record = Record {
        kind: RecordType::HEADER_TRACING_DATA,
        misc: slot.misc,
        body,
        tail: tail.to_vec(),
        sample_id: None,
    };
    let mut bytes = record.encode(endian)?;
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&slot.padding);
    Ok(bytes)
}
