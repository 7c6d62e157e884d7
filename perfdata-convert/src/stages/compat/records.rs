//! The records: which of them another release reads, and in which form.

use perfdata_core::feature::{BuildIdEntry, FeatureId};
use perfdata_core::record::{
    Body, BuildId, CpuMode, MISC_BUILD_ID_SIZE, MISC_MMAP_BUILD_ID, MappedBuildId, RawRecord,
    Record, RecordHeader, RecordType,
};
use perfdata_core::wire::{Rest, Text};
use perfdata_core::{DecodeContext, Event};
use perfdata_session::Mapped;

use super::{Compat, MMAP2_BUILD_IDS, is_data};
use crate::error::{Error, Result};
use crate::stages::swap::Unknown;

impl Compat {
    /// Converts one record.
    pub(super) fn convert(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        match raw.kind {
            RecordType::HEADER_ATTR => return self.attr_record(raw, out),
            // An MMAP record has the same meaning with fewer fields.
            RecordType::MMAP2 => {}
            kind if !self.knows_record(kind) => return self.leave_out(raw),
            RecordType::HEADER_FEATURE => return self.feature_record(raw, out),
            _ => {}
        }
        let start = out.len();
        if self.forms.changes(raw) {
            self.rewrite(raw, out)?;
        } else {
            out.extend_from_slice(raw.bytes);
        }
        let misc = raw.misc & self.forms.known_misc(raw.kind);
        if misc != raw.misc && out.get(start..).is_some_and(|bytes| bytes == raw.bytes) {
            RecordHeader::put_misc(out.get_mut(start..).unwrap_or_default(), misc, self.endian);
            self.count("cleared record flags", raw.kind.to_string());
        }
        self.align(raw.kind, out, start)
    }

    /// Fills a record of an odd size up, where perf demands it.
    fn align(&mut self, kind: RecordType, out: &mut Vec<u8>, start: usize) -> Result<()> {
        let may_be_odd = matches!(
            kind,
            RecordType::HEADER_TRACING_DATA | RecordType::COMPRESSED
        );
        let len = out.len().saturating_sub(start);
        if !self.demands_alignment() || len.is_multiple_of(8) || may_be_odd {
            return Ok(());
        }
        let size = u16::try_from(len.next_multiple_of(8))
            .map_err(|_| Error::Refused(format!("a {kind} record is too long to be aligned")))?;
        out.resize(start.saturating_add(usize::from(size)), 0);
        RecordHeader::put_size(out.get_mut(start..).unwrap_or_default(), size, self.endian);
        self.count("padded records to a multiple of 8 bytes", kind.to_string());
        Ok(())
    }

    /// Drops a record of a type that this perf does not know.
    fn leave_out(&mut self, raw: &RawRecord<'_>) -> Result<()> {
        if raw.kind == RecordType::CALLCHAIN_DEFERRED {
            self.drops(|| {
                let (offset, version) = (raw.offset, self.version);
                format!(
                    "the record at offset {offset:#x} contains a callchain, but perf {version} does not know its type"
                )
            })?;
        }
        let name = raw.kind.info().map_or_else(
            || format!("type {}", raw.kind.0),
            |info| info.name.to_owned(),
        );
        self.count("dropped records", name);
        self.lacks_data |= is_data(raw.kind);
        Ok(())
    }

    fn attr_record(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut record = Record::decode(raw, &DecodeContext::default())?;
        if let Body::HeaderAttr(body) = &mut record.body {
            let new = self.attr(&body.attr, &|| {
                format!("the attribute at offset {:#x}", raw.offset)
            })?;
            self.count_flags(&body.attr, &new);
            let old = std::mem::replace(&mut body.attr, new);
            if !self.has_late_events {
                let ids = body.ids.0.clone();
                self.forms.add(
                    Event {
                        attr: old,
                        ids: ids.clone(),
                    },
                    Event {
                        attr: body.attr.clone(),
                        ids,
                    },
                );
            }
        }
        Ok(record.encode_into(out, self.endian)?)
    }

    fn feature_record(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut record = Record::decode(raw, &DecodeContext::default())?;
        if let Body::HeaderFeature(body) = &mut record.body {
            if body.section.0.is_empty() {
                if !self.is_pipe {
                    self.count(
                        "dropped end-of-features records, which only a pipe has",
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

    /// Converts a record to the form for this perf.
    fn rewrite(&mut self, raw: &RawRecord<'_>, out: &mut Vec<u8>) -> Result<()> {
        let (from, to) = match self.forms.layouts(raw) {
            Some(layouts) => layouts,
            None => {
                self.drops(|| {
                    let (offset, version) = (raw.offset, self.version);
                    format!(
                        "the event of the record at offset {offset:#x} is unknown, so it cannot be converted for perf \
                         {version}"
                    )
                })?;
                self.count("dropped records of unknown events", raw.kind.to_string());
                return Ok(());
            }
        };
        let mut record = match Record::decode(raw, &from) {
            Ok(record) => record,
            Err(_) if self.unknown == Unknown::Drop => {
                self.count("dropped corrupt records", raw.kind.to_string());
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut build_id = None;
        if let Body::Mmap2(map) = &mut record.body
            && !self.version.has(MMAP2_BUILD_IDS)
            && let Some(id) = map.build_id.take()
        {
            // Without the relocation symbol: perf gives the kernel the name in the table of build IDs.
            let dso = Mapped::of_mmap2(map, record.misc).dso;
            build_id = self.build_id(record.misc, &id, dso.name);
            map.inode = Some(perfdata_core::record::Inode {
                maj: 0,
                min: 0,
                ino: 0,
                ino_generation: 0,
            });
            record.misc &= !MISC_MMAP_BUILD_ID;
            self.count("moved build IDs to separate records", raw.kind.to_string());
        }
        let is_mmap2 = record.kind == RecordType::MMAP2;
        self.forms.rewrite(&mut record, &to);
        if is_mmap2 && record.kind == RecordType::MMAP {
            self.count("converted records to their older form", "MMAP2".into());
        }
        if let Some(entry) = build_id {
            entry.to_record().encode_into(out, self.endian)?;
        }
        Ok(record.encode_into(out, self.endian)?)
    }

    /// Returns a separate record with the build ID of a mapping, the first time that it occurs.
    fn build_id(&mut self, misc: u16, id: &MappedBuildId, name: &[u8]) -> Option<BuildIdEntry> {
        if !self.knows_record(RecordType::HEADER_BUILD_ID) || !self.told.insert(name.to_vec()) {
            return None;
        }
        let build_id = BuildId {
            pid: Some(-1),
            build_id: id.build_id,
            size: id.build_id_size,
            reserved_1: 0,
            reserved_2: 0,
            filename: Text::padded(name, 8),
        };
        let size = MISC_BUILD_ID_SIZE & self.forms.known_misc(RecordType::HEADER_BUILD_ID);
        BuildIdEntry::new(misc & CpuMode::MASK | size, build_id)
    }
}
