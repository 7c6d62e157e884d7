//! A recording that a certain release of perf reads: `--compat`.
//!
//! What a release knows is in the tables of records, features and attribute sizes, each entry with the release that
//! brought it. What came later is cut off where it is zero, left out where it stands alone, and refused else.

use std::collections::{BTreeMap, HashSet};

use perfdata_core::arrangement::{Arrangement, Part, PipeArrangement, SlotContent};
use perfdata_core::attr::{Attr, SIZES};
use perfdata_core::feature::{BuildIdEntry, Compression, EventDesc, EventDescs, Feature, FeatureId, Section};
use perfdata_core::read::{Decompressor, Limits, is_compressed};
use perfdata_core::record::{
    Body, BuildId, CpuMode, Inode, MISC_BUILD_ID_SIZE, MISC_MMAP_BUILD_ID, RawRecord, Record, RecordType, TABLE,
};
use perfdata_core::wire::{Rest, Text};
use perfdata_core::{Endian, Event, Events, Layout, Recording, Version};
use perfdata_write::Compressor;

use perfdata_core::header::{FileHeader, FileSection};

use super::{Link, Stage};
use crate::error::{Error, Result};
use crate::show::text::escaped;

/// MMAP2 records carry build ids since this release.
const MMAP2_BUILD_IDS: &str = "5.12";

/// Names of records and features that are reported, for each kind of change.
const MOST: usize = 1000;

/// Makes a recording readable for perf of one release.
pub struct Compat {
    version: Version,
    /// The model in its new form, whose metadata the stream may add to.
    events: Events,
    endian: Endian,
    limits: Limits,
    is_pipe: bool,
    /// The stream of compressed records as it was, and as it becomes.
    inner: Option<Decompressor>,
    outer: Option<Compressor>,
    level: i32,
    buffer: Vec<u8>,
    /// Whether the last record was left out, and so is its payload.
    dropped: bool,
    /// Objects whose build id is told.
    told: HashSet<Vec<u8>>,
    /// What was done, to what, and how often.
    report: BTreeMap<&'static str, BTreeMap<String, u64>>,
}

impl Compat {
    /// A stage for perf of release `version`.
    pub fn new(version: Version) -> Self {
        Compat {
            version,
            events: Events::default(),
            endian: Endian::Little,
            limits: Limits::default(),
            is_pipe: false,
            inner: None,
            outer: None,
            level: 1,
            buffer: Vec::new(),
            dropped: false,
            told: HashSet::new(),
            report: BTreeMap::new(),
        }
    }

    /// Notes what was done to a record or section.
    fn count(&mut self, what: &'static str, whom: String) {
        let report = self.report.entry(what).or_default();
        let whom = if report.len() < MOST || report.contains_key(&whom) { whom } else { "others".into() };
        *report.entry(whom).or_default() += 1;
    }

    fn knows_record(&self, kind: RecordType) -> bool {
        kind.info().is_some_and(|info| self.version.has(info.since))
    }

    fn knows_feature(&self, id: FeatureId) -> bool {
        id.info().is_some_and(|info| self.version.has(info.since))
    }

    /// Bytes of the attribute that this perf knows.
    fn attr_size(&self) -> u32 {
        SIZES.iter().rev().find(|(_, since)| self.version.has(since)).map_or(Attr::MIN_SIZE, |(size, _)| *size)
    }

    /// Whether perf of this release refuses records whose size is not a multiple of 8.
    fn demands_alignment(&self) -> bool {
        self.version.has("7.0")
    }

    fn cut(&self, attr: &Attr, what: impl FnOnce() -> String) -> Result<Attr> {
        attr.cut_to(self.attr_size())
            .map_err(|error| Error::Refused(format!("{}: perf {} cannot read it: {error}", what(), self.version)))
    }

    fn cut_events(&self, recording: &mut Recording) -> Result<()> {
        let names: Vec<String> = match recording.feature(FeatureId::EVENT_DESC) {
            Some(Ok(Section { value: Feature::EventDescs(descs), .. })) => {
                descs.events.0.iter().map(|event| escaped(event.name.text())).collect()
            }
            _ => Vec::new(),
        };
        let cut = |(at, event): (usize, Event)| {
            let name = || match names.get(at) {
                Some(name) => format!("event {at} ({name})"),
                None => format!("event {at}"),
            };
            Ok(Event { attr: self.cut(&event.attr, name)?, ..event })
        };
        let events = std::mem::take(&mut recording.events).into_vec();
        recording.events = events.into_iter().enumerate().map(cut).collect::<Result<_>>()?;
        Ok(())
    }

    /// The section in the form that this perf reads; nothing where it goes.
    fn section(&mut self, id: FeatureId, bytes: &[u8], endian: Endian) -> Result<Option<Vec<u8>>> {
        if !self.knows_feature(id) {
            self.count("features are left out", id.to_string());
            return Ok(None);
        }
        let section = match id {
            FeatureId::EVENT_DESC | FeatureId::COMPRESSED => Section::decode(id, bytes, endian, &Layout::default()),
            _ if bytes.is_empty() => Section::decode(id, bytes, endian, &Layout::default()),
            _ => return Ok(Some(bytes.to_vec())),
        };
        match section.map(|section| section.value) {
            // perf stat writes the section without compressing, and later ones refuse it.
            Ok(Feature::Compressed(Compression { mmap_len: 0, .. })) => {
                self.count("features are left out, since nothing is compressed", id.to_string());
                Ok(None)
            }
            // A recorder that had nothing to write.
            Ok(Feature::Empty) => {
                self.count("features are left out, since they are empty", id.to_string());
                Ok(None)
            }
            Ok(Feature::EventDescs(descs)) if descs.attr_size > self.attr_size() => {
                let cut = |event: EventDesc| {
                    let attr = self.cut(&event.attr, || format!("EVENT_DESC, event {}", escaped(event.name.text())))?;
                    Ok((attr, event.name, event.ids.0))
                };
                let events = descs.events.0.into_iter().map(cut).collect::<Result<_>>()?;
                let descs = EventDescs::new(events)
                    .ok_or_else(|| Error::Refused("EVENT_DESC has attributes of several sizes".into()))?;
                let section = Section { id, value: Feature::EventDescs(descs), tail: Vec::new() };
                Ok(Some(section.encode(endian)?))
            }
            _ => Ok(Some(bytes.to_vec())),
        }
    }

    /// The head of a pipe: the number at the end of the features. What a later record made void goes.
    fn convert_head(&self, head: &mut PipeArrangement) {
        head.slots.retain(|slot| !matches!(slot.content, SlotContent::Verbatim(_)));
        for slot in &mut head.slots {
            if let SlotContent::EndOfFeatures(id) = &mut slot.content {
                *id = u64::from(FeatureId::end_in(self.version).0);
            }
        }
    }

    /// What becomes of one record, wherever it stands.
    fn convert(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        if !self.knows_record(raw.kind) {
            let name = raw.kind.info().map_or_else(|| format!("type {}", raw.kind.0), |info| info.name.to_owned());
            self.count("records are left out", name);
            return Ok(());
        }
        match raw.kind {
            RecordType::HEADER_ATTR => return self.attr_record(raw, out),
            RecordType::HEADER_FEATURE => return self.feature_record(raw, out),
            RecordType::MMAP2 if !self.version.has(MMAP2_BUILD_IDS) => return self.mmap2(raw, out),
            _ => {}
        }
        let may_be_odd =
            matches!(raw.kind, RecordType::HEADER_TRACING_DATA | RecordType::HEADER_FEATURE | RecordType::COMPRESSED);
        let filling = raw.bytes.len().next_multiple_of(8) - raw.bytes.len();
        if self.demands_alignment() && filling > 0 && !may_be_odd {
            let size = u16::try_from(raw.bytes.len() + filling)
                .map_err(|_| Error::Refused(format!("a {} record is too long to be aligned", raw.kind)))?;
            let start = out.len();
            out.extend_from_slice(raw.bytes);
            out.resize(start + usize::from(size), 0);
            let bytes = if self.endian == Endian::Little { size.to_le_bytes() } else { size.to_be_bytes() };
            if let Some(field) = out.get_mut(start + 6..start + 8) {
                field.copy_from_slice(&bytes);
            }
            self.count("records are filled up to a multiple of 8 bytes", raw.kind.to_string());
            return Ok(());
        }
        out.extend_from_slice(raw.bytes);
        Ok(())
    }

    fn attr_record(&self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut record = Record::decode(raw, &Layout::default())?;
        if let Body::HeaderAttr(body) = &mut record.body {
            body.attr = self.cut(&body.attr, || format!("the attribute at offset {:#x}", raw.offset))?;
        }
        Ok(record.encode_into(out, self.endian)?)
    }

    fn feature_record(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut record = Record::decode(raw, &Layout::default())?;
        if let Body::HeaderFeature(body) = &mut record.body {
            if body.section.0.is_empty() {
                if !self.is_pipe {
                    self.count(
                        "ends of features are left out, which a pipe has and a file has not",
                        raw.kind.to_string(),
                    );
                    return Ok(());
                }
                body.feat_id = u64::from(FeatureId::end_in(self.version).0);
            } else {
                let id = FeatureId(u32::try_from(body.feat_id).unwrap_or(u32::MAX));
                match self.section(id, &body.section.0, self.endian)? {
                    Some(section) => body.section = Rest(section),
                    None => return Ok(()),
                }
            }
        }
        Ok(record.encode_into(out, self.endian)?)
    }

    /// A build id in the record of a mapping becomes a record of its own.
    fn mmap2(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut record = Record::decode(raw, &self.events.layout_of(raw))?;
        if let Body::Mmap2(map) = &mut record.body
            && let Some(id) = map.build_id.take()
        {
            let name = map.filename.text().to_vec();
            if self.told.insert(name.clone()) {
                let build_id = BuildId {
                    pid: Some(-1),
                    build_id: id.build_id,
                    size: id.build_id_size,
                    reserved_1: 0,
                    reserved_2: 0,
                    filename: Text::padded(&name, 8),
                };
                let size_flag = if self.version.has("5.11") { MISC_BUILD_ID_SIZE } else { 0 };
                if let Some(entry) = BuildIdEntry::new(record.misc & CpuMode::MASK | size_flag, build_id) {
                    entry.to_record().encode_into(out, self.endian)?;
                }
            }
            map.inode = Some(Inode { maj: 0, min: 0, ino: 0, ino_generation: 0 });
            record.misc &= !MISC_MMAP_BUILD_ID;
            self.count("build ids stand in records of their own", raw.kind.to_string());
        }
        Ok(record.encode_into(out, self.endian)?)
    }

    /// Whether there is something in compressed records that this perf does not know.
    fn opens(&self, kind: RecordType) -> bool {
        let is_new = |kind: RecordType| kind.is_kernel() && !self.knows_record(kind);
        !self.knows_record(kind) || !self.version.has(MMAP2_BUILD_IDS) || TABLE.iter().any(|info| is_new(info.kind))
    }

    /// Opens a compressed record, converts what is in it, and compresses it again as far as this perf knows how.
    fn recompress(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        let mut inner = match self.inner.take() {
            Some(inner) => inner,
            None => Decompressor::new(self.endian, self.limits)?,
        };
        let mut plain = std::mem::take(&mut self.buffer);
        plain.clear();
        inner.push(raw)?;
        while let Some(record) = inner.next()? {
            self.convert(&record, &mut plain)?;
        }
        self.inner = Some(inner);
        let known = [raw.kind, RecordType::COMPRESSED].into_iter().find(|&kind| self.knows_record(kind));
        match known {
            Some(kind) => {
                if kind != raw.kind {
                    self.count("records are compressed in the older form", raw.kind.to_string());
                }
                let mut outer = match self.outer.take() {
                    Some(outer) => outer,
                    None => Compressor::new(kind, self.endian, self.level)?,
                };
                if !plain.is_empty() {
                    outer.push(&plain, |record| next.record(record))?;
                }
                self.outer = Some(outer);
            }
            None => {
                self.count("records are decompressed", raw.kind.to_string());
                give(&plain, self.endian, next)?;
            }
        }
        self.buffer = plain;
        Ok(())
    }
}

/// Hands all records in `bytes` on.
fn give(mut bytes: &[u8], endian: Endian, next: &mut Link<'_>) -> Result<()> {
    while !bytes.is_empty() {
        let record = RawRecord::first(bytes, endian, 0)?;
        next.record(&record)?;
        bytes = bytes.get(record.bytes.len()..).unwrap_or_default();
    }
    Ok(())
}

impl Stage for Compat {
    fn needs_events(&self) -> bool {
        !self.version.has(MMAP2_BUILD_IDS)
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn late_events(&mut self, events: &Events) {
        self.events = events.clone();
    }

    fn end_of_features(&self) -> Option<FeatureId> {
        Some(FeatureId::end_in(self.version))
    }

    fn begin(&mut self, recording: &mut Recording, arrangement: &mut Arrangement) -> Result<()> {
        (self.endian, self.limits) = (recording.endian, recording.limits);
        self.inner = Some(Decompressor::of(recording)?);
        if let Some(Ok(Section { value: Feature::Compressed(params), .. })) = recording.feature(FeatureId::COMPRESSED) {
            self.level = i32::try_from(params.level).unwrap_or(self.level);
        }
        self.cut_events(recording)?;
        let damaged: Vec<u32> = match arrangement {
            Arrangement::File(file) => {
                // Those that another stage has taken out have a place.
                let is_lost =
                    |id: &u32| file.place(Part::Feature(*id)).is_none() && !recording.features.contains_key(id);
                file.table.iter().map(|(id, _)| *id).filter(is_lost).collect()
            }
            Arrangement::Pipe(_) => Vec::new(),
        };
        for (id, bytes) in std::mem::take(&mut recording.features) {
            if let Some(section) = self.section(FeatureId(id), &bytes, recording.endian)? {
                recording.features.insert(id, section);
            }
        }
        match arrangement {
            Arrangement::Pipe(head) => {
                self.is_pipe = true;
                self.convert_head(head);
            }
            Arrangement::File(file) => {
                // Where the section says that there are others than those that can be read, a number of another size
                // would be found in it.
                let FileHeader { attrs, attr_size, .. } = &mut file.header;
                if Some(attrs.size) == attr_size.checked_mul(recording.events.len() as u64) {
                    *attr_size = (*attr_size).min(u64::from(self.attr_size()) + FileSection::SIZE);
                }
                // Sections that cannot be read, as perf inject makes them: perf stops there.
                for (id, place) in std::mem::take(&mut file.table) {
                    if recording.features.contains_key(&id) || !damaged.contains(&id) {
                        file.table.push((id, place));
                    } else {
                        self.count("features are left out, since they are damaged", FeatureId(id).to_string());
                    }
                }
            }
        }
        if !recording.events.is_empty() {
            self.events = recording.events.clone();
        }
        Ok(())
    }

    fn record(&mut self, raw: &RawRecord<'_>, next: &mut Link<'_>) -> Result<()> {
        if is_compressed(raw.kind) && self.opens(raw.kind) {
            return self.recompress(raw, next);
        }
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        self.convert(raw, &mut bytes)?;
        self.dropped = bytes.is_empty();
        give(&bytes, self.endian, next)?;
        self.buffer = bytes;
        Ok(())
    }

    fn payload(&mut self, bytes: &[u8], next: &mut Link<'_>) -> Result<()> {
        if self.dropped { Ok(()) } else { next.payload(bytes) }
    }

    fn notes(&self) -> Vec<String> {
        let whom = |(whom, count): (&String, &u64)| match count {
            1 => whom.clone(),
            _ => format!("{whom} ({count})"),
        };
        let line = |(what, those): (&&str, &BTreeMap<String, u64>)| {
            format!("for perf {} {what}: {}", self.version, those.iter().map(whom).collect::<Vec<_>>().join(", "))
        };
        self.report.iter().map(line).collect()
    }
}
