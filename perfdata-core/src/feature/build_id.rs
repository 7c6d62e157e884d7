//! Build IDs of the files hit by samples (`dsos__write_buildid_table` in util/build-id.c; read by
//! `perf_header__read_build_ids`).

use std::io::{Cursor, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::content::{Content, Rewrite, Rewriter};
use crate::decode_context::DecodeContext;
use crate::describe::{Describe, Style, Visitor, WireSize};
use crate::error::Result;
use crate::feature::{FeatureId, Section};
use crate::record::{Body, BuildId, CpuMode, RawRecord, Record, RecordHeader, RecordType};
use crate::recording::Events;
use crate::values::{FromValues, Values, list_of};
use crate::wire::{Bounded, Text, Wire, until_nul, wire};

wire! {
    /// A file and its build ID, formatted as a record.
    pub struct BuildIdEntry(layout) {
        /// Type 0 (other tools also write HEADER_BUILD_ID), CPU mode, size of the entry.
        pub header: RecordHeader,
        /// File name and build ID.
        #[br(args(u64::from(header.size).saturating_sub(RecordHeader::SIZE as u64), layout))]
        pub build_id: Bounded<BuildId>,
    }
}

impl BuildIdEntry {
    /// Returns an entry for `build_id` in the form of perf 6.12: the name is padded to 8, 16, …
    /// bytes. Returns `None` if the name is too long for an entry. `misc` is the word of the record
    /// header, of which perf uses only the CPU mode and the flag for a valid build ID size.
    pub fn new(misc: u16, build_id: BuildId) -> Option<Self> {
        let filename = Text::padded(build_id.filename.text(), 8);
        Self::of_record(
            misc,
            BuildId {
                filename,
                ..build_id
            },
        )
    }

    /// Returns the entry that corresponds to a HEADER_BUILD_ID record of a pipe. The padding of the
    /// name is kept, rounded down to a multiple of 8 bytes (before 6.12, a multiple of 64). Returns
    /// `None` if the name is too long for an entry.
    pub fn of_record(misc: u16, mut build_id: BuildId) -> Option<Self> {
        let Text(name) = &mut build_id.filename;
        let needed = until_nul(name).len().saturating_add(1);
        let room = (name.len() & !7).max(needed.next_multiple_of(8));
        name.resize(room, 0);
        let mut size = WireSize(RecordHeader::SIZE);
        build_id.describe("", Style::Plain, &mut size);
        let size = u16::try_from(size.0).ok()?;
        Some(BuildIdEntry {
            header: RecordHeader {
                kind: RecordType(0),
                misc,
                size,
            },
            build_id: Bounded(build_id),
        })
    }

    /// Returns the HEADER_BUILD_ID record for a pipe that corresponds to this entry. perf 7.2
    /// requires a record size that is a multiple of 8, so the field of the name is 4 bytes longer
    /// than in a section.
    pub fn to_record(&self) -> Record {
        let RecordHeader { misc, .. } = self.header;
        let mut build_id = BuildId::clone(&self.build_id);
        let is_guest = matches!(
            CpuMode::of(misc),
            CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER
        );
        build_id.pid = Some(build_id.pid.unwrap_or(if is_guest { 0 } else { -1 }));
        let Text(name) = &mut build_id.filename;
        let without_name = BuildIdEntry::FIXED;
        let needed = name.len().max(until_nul(name).len().saturating_add(1));
        let whole = without_name.saturating_add(needed).next_multiple_of(8);
        name.resize(whole.saturating_sub(without_name), 0);
        Record::new(Body::HeaderBuildId(build_id)).with_misc(misc)
    }

    /// Returns the record in a recording with these events. Zeros follow the name if readers would
    /// take the bytes there for a trailer: simpleperf leaves garbage.
    pub fn to_record_of(&self, events: &Events, endian: Endian) -> Result<Vec<u8>> {
        let mut record = self.to_record();
        let bytes = record.encode(endian)?;
        let raw = RawRecord::first(&bytes, endian, 0)?;
        if Record::decode(&raw, &events.layout_of(&raw))?
            .sample_id
            .is_none()
        {
            return Ok(bytes);
        }
        if let Body::HeaderBuildId(BuildId { filename, .. }) = &mut record.body {
            let Text(name) = filename;
            let (text, room) = (until_nul(name).len(), name.len());
            name.truncate(text);
            name.resize(room, 0);
        }
        record.encode(endian)
    }

    /// Bytes in front of the name.
    pub const FIXED: usize = RecordHeader::SIZE + 28;
}

impl Section {
    /// Returns whether readers stop inside of a BUILD_ID section, at bytes that are not an entry.
    pub fn stops_early(&self) -> bool {
        self.id == FeatureId::BUILD_ID && self.tail.len() >= RecordHeader::SIZE
    }
}

/// The build IDs, the kernel's first.
///
/// They end at the first bytes that are not an entry, where perf stops reading, too. What follows is
/// the [tail](crate::feature::Section::tail) of the section: perf 6.12.0 wrote 36 zeros after each
/// entry, which the entry's size does not include, so that only the first one is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BuildIds(pub Vec<BuildIdEntry>);

impl Wire for BuildIds {
    const NAME: &'static str = "BuildIds";

    /// Before 2.6.35, entries had no process ID. Nothing marks this form, but if the kernel's entry
    /// is read as if it had a process ID, its name lacks the first four letters.
    fn read_wire(
        reader: &mut Cursor<&[u8]>,
        endian: Endian,
        layout: DecodeContext,
    ) -> BinResult<Self> {
        let start = reader.position();
        let mut read = |build_id_without_pid| {
            reader.set_position(start);
            let layout = DecodeContext {
                build_id_without_pid,
                ..layout
            };
            let mut entries = Vec::new();
            loop {
                let end = reader.position();
                match BuildIdEntry::read_options(reader, endian, layout) {
                    Ok(entry) => entries.push(entry),
                    Err(_) => {
                        reader.set_position(end);
                        return entries;
                    }
                }
            }
        };
        let entries = read(false);
        let shifted = entries
            .iter()
            .any(|entry| entry.build_id.filename.text() == b"nel.kallsyms]");
        Ok(BuildIds(if shifted { read(true) } else { entries }))
    }

    fn wire_from_values(
        values: &mut dyn Values,
        layout: DecodeContext,
        name: &'static str,
    ) -> Self {
        let entry =
            |values: &mut dyn Values| BuildIdEntry::from_values(values, "", Style::Plain, layout);
        BuildIds(list_of(values, name, None, entry))
    }
}

impl BinWrite for BuildIds {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(
        &self,
        writer: &mut W,
        endian: Endian,
        (): (),
    ) -> BinResult<()> {
        self.0
            .iter()
            .try_for_each(|entry| entry.write_options(writer, endian, ()))
    }
}

impl Describe for BuildIds {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.0.describe(name, style, v);
    }
}

impl Rewrite for BuildIds {
    const NEEDS_CONTENT: bool = false;
    fn rewrite(&mut self, name: &'static str, content: Content, rewriter: &mut dyn Rewriter) {
        self.0.rewrite(name, content, rewriter);
    }
}
