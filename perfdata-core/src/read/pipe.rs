//! Reading pipe mode: metadata are records of the stream.
//!
//! The records at the start of the stream become the model and a list of [`Slot`]s, from which a
//! writer recreates them. Later metadata (perf record --tail-synthesize, perf inject) enter the
//! model when they are read, and stay in the stream.

use std::collections::BTreeMap;
use std::io::Read;

use crate::attr::Attr;
use crate::container_layout::{PipeLayout, Slot, SlotContent};
use crate::decode_context::DecodeContext;
use crate::error::{Error, Result};
use crate::feature::{FeatureId, tracing};
use crate::header::FeatureBitmap;
use crate::read::limits::Limits;
use crate::read::record_batch::Chunk;
use crate::read::records::{RecordStream, StreamItem};
use crate::record::{
    EventTypeName, HeaderAttr, HeaderFeature, HeaderTracingData, RawRecord, RecordType,
};
use crate::recording::{Event, Recording};

/// Adds the metadata records of a stream to a model.
#[derive(Debug)]
pub struct Collector {
    /// Limits on the metadata.
    limits: Limits,
    /// The highest feature number so far: an empty record with the same or a higher number ends the
    /// features.
    highest: u64,
    /// Tracing data whose payload is incomplete.
    tracing: Option<Tracing>,
    /// Size of the metadata so far in bytes.
    taken: u64,
    /// Whether a record other than metadata was read.
    is_behind_head: bool,
    /// Index of the event after the last repeated one.
    next_again: usize,
}

#[derive(Debug)]
struct Tracing {
    /// Offset of the record.
    offset: u64,
    pad: Option<u32>,
    tail: Vec<u8>,
    misc: u16,
    record: Vec<u8>,
    size: usize,
    payload: Vec<u8>,
}

impl Collector {
    /// Returns a collector for a stream from its start, which holds metadata within `limits`.
    pub fn new(limits: Limits) -> Self {
        Collector {
            limits,
            highest: 0,
            tracing: None,
            taken: 0,
            is_behind_head: false,
            next_again: 0,
        }
    }

    /// Returns a collector for the stream after its initial metadata.
    pub fn behind_head(limits: Limits) -> Self {
        Collector {
            is_behind_head: true,
            ..Collector::new(limits)
        }
    }

    /// Counts metadata, which stay in memory, against the limit.
    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.limits.take(&mut self.taken, bytes.len() as u64)
    }

    /// Adds a metadata record to the model. Returns the data outside the model, or `None` if the
    /// payload is incomplete.
    fn record(&mut self, recording: &mut Recording, raw: &RawRecord<'_>) -> Result<Option<Slot>> {
        let layout = DecodeContext {
            misc: raw.misc,
            len: raw.body().len() as u64,
            ..DecodeContext::default()
        };
        let slot = |content, used: &dyn Fn() -> usize| {
            let padding = raw.body().get(used()..).unwrap_or_default().to_vec();
            Ok(Some(Slot {
                content,
                misc: raw.misc,
                padding,
                is_aligned: raw.bytes.len().is_multiple_of(8),
            }))
        };
        match raw.kind {
            RecordType::HEADER_ATTR => {
                let body: HeaderAttr = raw.decode_body(layout)?;
                if body.attr.own_size() < Attr::MIN_SIZE {
                    let found = body.attr.size.to_string();
                    return Err(Error::invalid(
                        "HEADER_ATTR record",
                        "attr.size",
                        found,
                        "0, or 64 or more",
                    )
                    .at(raw.offset.saturating_add(12)));
                }
                let used = (body.attr.own_size() as usize)
                    .saturating_add(body.ids.len().saturating_mul(8));
                let event = Event {
                    attr: body.attr,
                    ids: body.ids.0,
                };
                if let Some(at) = self.repeated(&event, recording) {
                    return slot(SlotContent::Attr(at), &|| used);
                }
                recording.events.push(event);
                slot(
                    SlotContent::Attr(recording.events.len().saturating_sub(1)),
                    &|| used,
                )
            }
            RecordType::HEADER_EVENT_TYPE => {
                recording
                    .event_types
                    .push(raw.decode_body::<EventTypeName>(layout)?);
                slot(
                    SlotContent::EventType(recording.event_types.len().saturating_sub(1)),
                    &|| raw.body().len(),
                )
            }
            RecordType::HEADER_TRACING_DATA => {
                let body: HeaderTracingData = raw.decode_body(layout)?;
                if let Some(data) = body.data() {
                    self.contained(recording, data);
                    return slot(SlotContent::Verbatim(raw.bytes.to_vec()), &|| {
                        raw.body().len()
                    });
                }
                self.tracing = Some(Tracing {
                    offset: raw.offset,
                    pad: body.pad,
                    tail: raw.body().get(body.len()..).unwrap_or_default().to_vec(),
                    misc: raw.misc,
                    record: raw.bytes.to_vec(),
                    size: body.size as usize,
                    payload: Vec::new(),
                });
                // There is no payload that would complete it.
                Ok(if body.size == 0 {
                    self.finish(recording)
                } else {
                    None
                })
            }
            RecordType::HEADER_FEATURE => {
                let body: HeaderFeature = raw.decode_body(layout)?;
                let section = body.section.0;
                if section.is_empty() && body.feat_id >= self.highest {
                    return slot(SlotContent::EndOfFeatures(body.feat_id), &|| {
                        raw.body().len()
                    });
                }
                self.highest = self.highest.max(body.feat_id);
                let id = u32::try_from(body.feat_id)
                    .ok()
                    .filter(|&id| id < FeatureBitmap::BITS)
                    .map(FeatureId);
                let Some(id) = id else {
                    return slot(SlotContent::Verbatim(raw.bytes.to_vec()), &|| {
                        raw.body().len()
                    });
                };
                let layout = DecodeContext {
                    nr_cpus_available: recording.nr_cpus_available(),
                    ..DecodeContext::default()
                };
                let len = id
                    .exact_len(&section, recording.endian, &layout)
                    .unwrap_or(section.len());
                let kept = section.get(..len).unwrap_or(&section);
                recording.features.insert(id, kept.to_vec());
                slot(SlotContent::Feature(id), &|| kept.len().saturating_add(8))
            }
            _ => slot(SlotContent::Verbatim(raw.bytes.to_vec()), &|| {
                raw.body().len()
            }),
        }
    }

    /// Returns the index of the event that `event` repeats: `perf record --switch-output` writes
    /// all metadata again with each output. At the start of a stream, two events without IDs may be
    /// equal.
    fn repeated(&mut self, event: &Event, recording: &Recording) -> Option<usize> {
        let at = match event.ids.first() {
            Some(&id) => recording.events.of_id_strict(id)?,
            // All events are repeated, in the same order.
            None if self.is_behind_head => [self.next_again, 0]
                .into_iter()
                .find(|&at| recording.events.get(at) == Some(event))?,
            None => return None,
        };
        recording.events.get(at).filter(|other| *other == event)?;
        self.next_again = at.saturating_add(1);
        Some(at)
    }

    /// Adds tracing data that a record contains to the model, unless it has some. In the head of a
    /// pipe, the record stays as it is.
    fn contained(&mut self, recording: &mut Recording, data: &[u8]) {
        if self.is_behind_head && !recording.features.contains_key(&FeatureId::TRACING_DATA) {
            let len = tracing::len(data).unwrap_or(data.len());
            let data = data.get(..len).unwrap_or(data).to_vec();
            recording.features.insert(FeatureId::TRACING_DATA, data);
        }
    }

    /// Adds to the payload of tracing data; adds the tracing data to the model when it is complete.
    fn payload(&mut self, recording: &mut Recording, bytes: &[u8]) -> Option<Slot> {
        let tracing = self.tracing.as_mut()?;
        tracing.payload.extend_from_slice(bytes);
        if tracing.payload.len() < tracing.size {
            None
        } else {
            self.finish(recording)
        }
    }

    /// Ends the tracing data when it is complete or the stream ends. The model contains the first
    /// of several.
    fn finish(&mut self, recording: &mut Recording) -> Option<Slot> {
        let Tracing {
            pad,
            tail,
            misc,
            mut record,
            size,
            mut payload,
            ..
        } = self.tracing.take()?;
        let len = tracing::len(&payload).unwrap_or(payload.len());
        let is_first = !recording.features.contains_key(&FeatureId::TRACING_DATA);
        if payload.len() < size || len > payload.len() || !is_first {
            record.append(&mut payload);
            return Some(Slot {
                misc,
                ..Slot::new(SlotContent::Verbatim(record))
            });
        }
        let padding = payload.split_off(len);
        recording.features.insert(FeatureId::TRACING_DATA, payload);
        Some(Slot {
            misc,
            padding,
            ..Slot::new(SlotContent::TracingData { pad, tail })
        })
    }

    /// Adds an item of the stream to the model if it is metadata; returns the data outside the
    /// model.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read.
    pub fn item(
        &mut self,
        recording: &mut Recording,
        item: &StreamItem<'_>,
    ) -> Result<Option<Slot>> {
        match item {
            StreamItem::Record(raw) if raw.kind.is_metadata() => {
                self.take(raw.bytes).map_err(|e| e.at(raw.offset))?;
                self.record(recording, raw)
            }
            StreamItem::Payload(bytes) => {
                let Some(Tracing { offset, .. }) = self.tracing else {
                    return Ok(None);
                };
                self.take(bytes).map_err(|e| e.at(offset))?;
                Ok(self.payload(recording, bytes))
            }
            StreamItem::Record(_) => {
                self.is_behind_head = true;
                Ok(None)
            }
            StreamItem::Unreadable(_) => Ok(None),
        }
    }

    /// Adds a chunk of the stream to the model if it is metadata.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read.
    pub fn chunk(&mut self, recording: &mut Recording, chunk: &Chunk<'_>) -> Result<()> {
        match chunk {
            // A metadata record is alone in its batch.
            Chunk::Records(batch) => match batch.iter().next() {
                Some(first) => self.item(recording, &StreamItem::Record(first)).map(drop),
                None => Ok(()),
            },
            Chunk::Payload(bytes) => self.item(recording, &StreamItem::Payload(bytes)).map(drop),
            Chunk::Unreadable(_) => Ok(()),
        }
    }
}

/// Reads the metadata at the start of the stream.
pub(super) fn read_head<R: Read>(
    stream: &mut RecordStream<R>,
    recording: &mut Recording,
    collector: &mut Collector,
) -> Result<PipeLayout> {
    let mut slots: Vec<Slot> = Vec::new();
    // Slot and record of each feature, because a later record of the same feature replaces it.
    let mut made: BTreeMap<FeatureId, (usize, Vec<u8>)> = BTreeMap::new();
    while collector.tracing.is_some() || stream.peek_kind()?.is_some_and(RecordType::is_metadata) {
        let Some(item) = stream.next()? else { break };
        if let StreamItem::Unreadable(_) = item {
            break;
        }
        let record = if let StreamItem::Record(raw) = item {
            Some(raw.bytes.to_vec())
        } else {
            None
        };
        let Some(slot) = collector.item(recording, &item)? else {
            continue;
        };
        if let (&SlotContent::Feature(id), Some(record)) = (&slot.content, record)
            && let Some((at, earlier)) = made.insert(id, (slots.len(), record))
            && let Some(old) = slots.get_mut(at)
        {
            old.content = SlotContent::Verbatim(earlier);
            old.padding.clear();
        }
        slots.push(slot);
    }
    slots.extend(collector.finish(recording));
    Ok(PipeLayout { slots })
}
