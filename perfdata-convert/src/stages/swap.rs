//! Conversion to the other byte order: every number according to its declaration, everything else
//! unchanged.
//!
//! A record is decoded in the recording's byte order and encoded in the other one. Payloads with a
//! byte order of their own (RAW data, stacks, AUX data, tracing data, code, build IDs, strings)
//! remain unchanged.

use perfdata_core::attr::{EventType, SampleType};
use perfdata_core::container_layout::{ContainerLayout, SlotContent};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::WordSize;
use perfdata_core::read::{Chunk, Decompressor, Limits, RecordBatch, Tail};
use perfdata_core::record::{Body, RawRecord, Record, RecordHeader, RecordType};
use perfdata_core::wire::{Rest, Wire};
use perfdata_core::{DecodeContext, Endian, Events, Recording, describe};
use perfdata_write::Compressor;

use super::decompress::check_end;
use crate::error::{Error, Result, Step};
use crate::leftover::without_place;
use crate::pipeline::{CompressedRecords, Link, Requirements, Stage};

/// How to handle content that cannot be converted with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unknown {
    /// Keep the bytes unchanged, with a converted header
    Keep,
    /// Remove it
    Drop,
    /// Refuse the conversion
    #[default]
    Error,
}

/// Converts a recording to a byte order.
///
/// The stage decompresses and compresses records by itself, although the driver could. The driver
/// passes the bytes at the end of compressed data that are not a record to
/// [unreadable](Chunk::Unreadable), like those at the end of the stream; here, the header of both
/// is converted, once each. It also divides the data of a record that decompresses to more than
/// the ring buffer of the recorder, which a higher limit permits. Both would change the output.
#[derive(Debug)]
pub struct Swap {
    to: Target,
    unknown: Unknown,
    /// Whether the input has another byte order.
    is_other: bool,
    /// The byte order to write.
    endian: Endian,
    zstd: Option<(Decompressor, Compressor)>,
    /// Offset of the last compressed record.
    compressed_at: u64,
    /// Whether the previous bytes were already unreadable.
    unreadable: bool,
    buffer: Vec<u8>,
    notes: Vec<String>,
}

/// The byte order to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The byte order that the input does not have.
    Other,
    /// A fixed byte order.
    Order(Endian),
}

impl Swap {
    /// Returns a stage that writes the byte order `to`.
    pub fn new(to: Target, unknown: Unknown) -> Self {
        Swap {
            to,
            unknown,
            is_other: false,
            endian: Endian::Little,
            zstd: None,
            compressed_at: 0,
            unreadable: false,
            buffer: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Decides about content with unknown meaning: `Ok(true)` to keep it.
    fn decide(&self, what: &str, offset: Option<u64>, why: &str) -> Result<bool> {
        match self.unknown {
            Unknown::Keep => Ok(true),
            Unknown::Drop => Ok(false),
            Unknown::Error => {
                let place = offset
                    .map(|at| format!("at offset {at:#x}: "))
                    .unwrap_or_default();
                let what =
                    format!("{place}{what} cannot be converted to the other byte order: {why}");
                Err(Error::refused_without(what, Step::Decide(Unknown::Keep)))
            }
        }
    }

    /// Returns the bytes of a feature section in the other byte order; `None` to drop it.
    fn section(
        &self,
        id: FeatureId,
        bytes: &[u8],
        from: &Recording,
        mut offset: Option<u64>,
    ) -> Result<Option<Vec<u8>>> {
        let layout = DecodeContext::default().with_nr_cpus_available(from.nr_cpus_available());
        let doubt = match Section::decode(id, bytes, from.endian, &layout) {
            Ok(section) if id == FeatureId::BUILD_ID => return Ok(Some(self.build_ids(section)?)),
            Ok(section) => match describe::opaque(&section) {
                None => return Ok(Some(section.encode(self.endian)?)),
                Some(_)
                    if self.unknown == Unknown::Keep
                        && !matches!(section.value, Feature::Unknown(_)) =>
                {
                    return Ok(Some(section.encode(self.endian)?));
                }
                Some(part) => format!("the meaning of {} is not known", part.field),
            },
            Err(error) => {
                offset = offset.map(|at| at.saturating_add(error.offset().unwrap_or(0)));
                without_place(&error)
            }
        };
        Ok(self
            .decide(&format!("feature {id}"), offset, &doubt)?
            .then(|| bytes.to_vec()))
    }

    /// Returns the bytes of the build IDs in the other byte order. Bytes after them stay as they
    /// are, unless a reader, which stops there, would find another entry in them.
    fn build_ids(&self, section: Section) -> Result<Vec<u8>> {
        let swapped = section.encode(self.endian)?;
        let layout = DecodeContext::default();
        let read = Section::decode(section.id, &swapped, self.endian, &layout)?;
        match read.tail.len() == section.tail.len() {
            true => Ok(swapped),
            false => Ok(Section {
                tail: Vec::new(),
                ..section
            }
            .encode(self.endian)?),
        }
    }

    /// Appends `raw` in the other byte order to `out`; returns false to drop it.
    fn convert(&self, raw: &RawRecord<'_>, from: &Recording, out: &mut Vec<u8>) -> Result<bool> {
        let name = || format!("{} record (type {})", raw.kind, raw.kind.0);
        let mut record = match self.decode(raw, &from.events) {
            Ok(record) => record,
            Err(doubt) => {
                if !self.decide(&name(), Some(raw.offset), &doubt)? {
                    return Ok(false);
                }
                Record {
                    kind: raw.kind,
                    misc: raw.misc,
                    body: Body::Unknown(raw.body().to_vec()),
                    tail: Vec::new(),
                    sample_id: None,
                }
            }
        };
        if let Body::HeaderFeature(feature) = &mut record.body {
            let id = FeatureId(u32::try_from(feature.feat_id).unwrap_or(u32::MAX));
            if !feature.section.0.is_empty() {
                match self.section(id, &feature.section.0, from, Some(raw.offset))? {
                    Some(bytes) => feature.section = Rest(bytes),
                    None => return Ok(false),
                }
            }
        }
        record.encode_into(out, self.endian)?;
        Ok(true)
    }

    /// Returns the record, or the reason why its meaning is unknown. With `keep`, this only
    /// concerns unreadable records.
    fn decode(&self, raw: &RawRecord<'_>, events: &Events) -> Result<Record, String> {
        if raw.kind == RecordType::SAMPLE
            && events.of_record(raw).is_none()
            && !events.have_one_layout()
        {
            return Err("its event is not known".into());
        }
        let record = Record::decode(raw, &events.layout_of(raw)).map_err(|e| e.to_string())?;
        let is_section = matches!(record.body, Body::HeaderFeature(_));
        if is_section || (self.unknown == Unknown::Keep && !matches!(record.body, Body::Unknown(_)))
        {
            return Ok(record);
        }
        match record.opaque() {
            None => Ok(record),
            Some(_) if matches!(record.body, Body::Unknown(_)) => {
                Err("its type is not known".into())
            }
            Some(part) => Err(format!(
                "the meaning of {} at its byte {} is not known",
                part.field, part.offset
            )),
        }
    }

    /// Forwards `count` converted records, the first of which was at `offset`.
    fn give(
        &self,
        bytes: &mut Vec<u8>,
        count: &mut usize,
        offset: u64,
        next: &mut Link<'_>,
    ) -> Result<()> {
        let count = std::mem::take(count);
        if count > 0 {
            next.records(&RecordBatch::new(bytes, count, self.endian, offset))?;
            bytes.clear();
        }
        Ok(())
    }

    /// Decompresses a compressed record, converts its records, and compresses them again.
    fn recompress(
        &mut self,
        raw: &RawRecord<'_>,
        from: &Recording,
        next: &mut Link<'_>,
    ) -> Result<()> {
        let (mut inner, mut outer) = match self.zstd.take() {
            Some(pair) => pair,
            None => self.open_stream(raw.kind, from, next.limits())?,
        };
        self.compressed_at = raw.offset;
        inner.push(raw)?;
        let mut plain = Vec::new();
        while let Some(record) = inner.next()? {
            if !from.events.swap_record(&record, &mut plain) {
                self.convert(&record, from, &mut plain)?;
            }
        }
        if !plain.is_empty() {
            outer.push(&plain, |record| next.record(record))?;
        }
        self.zstd = Some((inner, outer));
        Ok(())
    }

    fn open_stream(
        &self,
        kind: RecordType,
        from: &Recording,
        limits: Limits,
    ) -> Result<(Decompressor, Compressor)> {
        let level = match from.feature(FeatureId::COMPRESSED) {
            Some(Ok(Section {
                value: Feature::Compressed(params),
                ..
            })) => params.level,
            _ => 1,
        };
        let level = i32::try_from(level).unwrap_or(1);
        Ok((
            Decompressor::of(from, limits)?,
            Compressor::new(kind, self.endian, level)?,
        ))
    }

    /// Converts the parts of a pipe's head that are not in the model.
    fn convert_head(
        &mut self,
        container_layout: &mut ContainerLayout,
        from: &Recording,
    ) -> Result<()> {
        let ContainerLayout::Pipe(head) = container_layout else {
            return Ok(());
        };
        for slot in &mut head.slots {
            let SlotContent::Verbatim(bytes) = &mut slot.content else {
                continue;
            };
            let raw = RawRecord::first(bytes, from.endian, 0)?;
            let mut out = Vec::new();
            if self.convert(&raw, from, &mut out)? {
                out.extend_from_slice(bytes.get(raw.bytes.len()..).unwrap_or_default());
            }
            *bytes = out;
        }
        Ok(())
    }

    fn convert_features(
        &mut self,
        recording: &mut Recording,
        from: &Recording,
        container_layout: &ContainerLayout,
    ) -> Result<()> {
        for (&id, bytes) in &from.features {
            let offset = container_layout.section_offset(id);
            match self.section(id, bytes, from, offset)? {
                Some(bytes) => recording.features.insert(id, bytes),
                None => recording.features.remove(&id),
            };
        }
        Ok(())
    }

    /// Converts only the header of a truncated record, so that it remains recognisable. Text
    /// remains unchanged.
    fn end(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        let first = !std::mem::replace(&mut self.unreadable, true);
        let from = next.recording();
        match self.is_other && first && Tail::of(bytes, from, next.limits()) != Tail::Text {
            true => next.unreadable(&swap_header(bytes, from.endian, self.endian)?),
            false => next.unreadable(bytes),
        }
    }
}

impl Stage for Swap {
    fn compressed(&self, _: RecordType) -> CompressedRecords {
        CompressedRecords::AsTheyAre
    }

    fn requirements(&self) -> Requirements {
        Requirements {
            events_first: true,
            may_refuse: self.unknown == Unknown::Error,
            ..Requirements::none()
        }
    }

    fn begin(
        &mut self,
        recording: &mut Recording,
        container_layout: &mut ContainerLayout,
    ) -> Result<()> {
        self.endian = match self.to {
            Target::Order(endian) => endian,
            Target::Other if recording.endian == Endian::Little => Endian::Big,
            Target::Other => Endian::Little,
        };
        if self.endian == recording.endian {
            return Ok(());
        }
        let from = recording.clone();
        for (at, event) in from.events.iter().enumerate() {
            if let Some(part) = describe::opaque(&event.attr) {
                let why = format!("the meaning of {} is not known", part.field);
                self.decide(&format!("attribute {at}"), None, &why)?;
            }
        }
        self.convert_features(recording, &from, container_layout)?;
        if let ContainerLayout::File(file) = container_layout
            && file.words == WordSize::Bits32
        {
            let why = "it seems to consist of 32-bit words, but the file does not declare this";
            if !self.decide("the feature bitmap", Some(72), why)? {
                recording.features.clear();
            }
            file.words = WordSize::Bits64;
        }
        self.convert_head(container_layout, &from)?;
        recording.endian = self.endian;
        self.is_other = true;
        Ok(())
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, next: &mut Link<'_>) -> Result<()> {
        let batch = match chunk {
            Chunk::Records(batch) => batch,
            Chunk::Payload(_) => return next.chunk(chunk),
            Chunk::Unreadable(bytes) => return self.end(bytes, next),
        };
        if batch.len() == 1 {
            return batch
                .iter()
                .try_for_each(|record| self.record(&record, next));
        }
        if !self.is_other {
            return next.records(batch);
        }
        let from = next.recording();
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        // The original offset of the records in `bytes`, and their number.
        let (mut start, mut count) = (batch.offset(), 0);
        for raw in batch.iter() {
            let (before, end) = (
                bytes.len(),
                raw.offset.saturating_add(raw.bytes.len() as u64),
            );
            if raw.kind.is_compressed() {
                self.give(&mut bytes, &mut count, start, next)?;
                self.recompress(&raw, from, next)?;
                start = end;
                continue;
            }
            if !from.events.swap_record(&raw, &mut bytes) {
                self.convert(&raw, from, &mut bytes)?;
            }
            count += usize::from(bytes.len() > before);
            if bytes.len() - before != raw.bytes.len() {
                // The next record did not follow directly in the input.
                self.give(&mut bytes, &mut count, start, next)?;
                start = end;
            }
        }
        self.give(&mut bytes, &mut count, start, next)?;
        self.buffer = bytes;
        Ok(())
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if !self.is_other {
            return next.record(raw);
        }
        let from = next.recording();
        if raw.kind.is_compressed() {
            self.recompress(raw, from, next)?;
        } else {
            let mut bytes = std::mem::take(&mut self.buffer);
            bytes.clear();
            if self.convert(raw, from, &mut bytes)? {
                next.record(&RawRecord {
                    bytes: &bytes,
                    endian: self.endian,
                    ..*raw
                })?;
            }
            self.buffer = bytes;
        }
        Ok(())
    }

    fn finish(&mut self, recording: &mut Recording, next: &mut Link<'_>) -> Result<()> {
        let from = next.recording();
        if self.is_other {
            self.notes.extend(note_of_raw_data(from));
        }
        let Some((mut inner, mut outer)) = self.zstd.take() else {
            return Ok(());
        };
        check_end(&inner, self.compressed_at, from)?;
        let rest = inner.take_pending();
        if !rest.is_empty() {
            outer.push(&swap_header(&rest, from.endian, self.endian)?, |record| {
                next.record(record)
            })?;
        }
        if let Some(Ok(Section { value: Feature::Compressed(mut params), .. })) =
            recording.feature(FeatureId::COMPRESSED)
            && params.ratio != 0
            // In `data` of a directory, nothing may have been compressed, while the other files
            // contain compressed data.
            && outer.ratio() != 0
        {
            params.ratio = outer.ratio();
            recording.set_feature(FeatureId::COMPRESSED, Feature::Compressed(params))?;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// Returns a note about RAW data whose byte order is not known.
fn note_of_raw_data(from: &Recording) -> Option<String> {
    let told = |event: &perfdata_core::Event| {
        event.attr.kind == EventType::TRACEPOINT
            && from.features.contains_key(&FeatureId::TRACING_DATA)
    };
    let untold = from
        .events
        .iter()
        .filter(|e| e.attr.sample_type.has(SampleType::RAW) && !told(e))
        .count();
    let order = if from.endian == Endian::Little {
        "little"
    } else {
        "big"
    };
    (untold > 0).then(|| {
        format!(
            "RAW data of {untold} of {} events remains {order}-endian, which the output does not record: read it \
             according to the ARCH feature, or keep the original",
            from.events.len()
        )
    })
}

/// Converts the record header at the start of `bytes`, if it is complete, to the other byte order.
fn swap_header(bytes: &[u8], from: Endian, to: Endian) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(header) = RecordHeader::parse(bytes, from) {
        header.encode_into(&mut out, to)?;
    }
    out.extend_from_slice(bytes.get(out.len()..).unwrap_or_default());
    Ok(out)
}
