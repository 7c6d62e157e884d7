//! Build ids of the files that samples hit (`dsos__write_buildid_table` in util/build-id.c; read by
//! `perf_header__read_build_ids`).

use std::io::{Cursor, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};

use crate::describe::{Describe, Style, Visitor, WireSize};
use crate::layout::Layout;
use crate::record::{Body, BuildId, CpuMode, Record, RecordHeader, RecordType};
use crate::wire::{Bounded, LayoutToEnd, Text, Wire, until_nul, wire};

wire! {
    /// A file and its build id, in the form of a record.
    pub struct BuildIdEntry(layout) {
        /// Type 0 (other tools also write HEADER_BUILD_ID), CPU mode, size of the entry.
        pub header: RecordHeader,
        /// The file.
        #[br(args(u64::from(header.size).saturating_sub(RecordHeader::SIZE as u64), layout))]
        pub build_id: Bounded<BuildId>,
    }
}

impl BuildIdEntry {
    /// An entry for `build_id` in the form of perf 6.12: with the name in a room of 8, 16, … bytes. Nothing if the name
    /// is too long for an entry. Of `misc`, the record's header, the CPU mode and the flag of a valid size count.
    pub fn new(misc: u16, build_id: BuildId) -> Option<Self> {
        let filename = Text::padded(build_id.filename.text(), 8);
        Self::of_record(misc, BuildId { filename, ..build_id })
    }

    /// The entry that says what a HEADER_BUILD_ID record says in a pipe; the name keeps its room, down to a multiple of
    /// 8 (before 6.12 that is one of 64). Nothing if the name is too long for an entry.
    pub fn of_record(misc: u16, mut build_id: BuildId) -> Option<Self> {
        let Text(name) = &mut build_id.filename;
        let needed = until_nul(name).len().saturating_add(1);
        let room = (name.len() & !7).max(needed.next_multiple_of(8));
        name.resize(room, 0);
        let mut size = WireSize(RecordHeader::SIZE);
        build_id.describe("", Style::Plain, &mut size);
        let size = u16::try_from(size.0).ok()?;
        Some(BuildIdEntry { header: RecordHeader { kind: RecordType(0), misc, size }, build_id: Bounded(build_id) })
    }

    /// The HEADER_BUILD_ID record that says the same in a pipe. Its size is a multiple of 8, on which perf 7.2 insists,
    /// so the name has a room that is 4 bytes longer than in a section.
    pub fn to_record(&self) -> Record {
        let RecordHeader { misc, .. } = self.header;
        let mut build_id = BuildId::clone(&self.build_id);
        let is_guest = matches!(CpuMode::of(misc), CpuMode::GUEST_KERNEL | CpuMode::GUEST_USER);
        build_id.pid = Some(build_id.pid.unwrap_or(if is_guest { 0 } else { -1 }));
        let Text(name) = &mut build_id.filename;
        let without_name = BuildIdEntry::FIXED;
        let needed = name.len().max(until_nul(name).len().saturating_add(1));
        let whole = without_name.saturating_add(needed).next_multiple_of(8);
        name.resize(whole.saturating_sub(without_name), 0);
        let body = Body::HeaderBuildId(build_id);
        Record { kind: RecordType::HEADER_BUILD_ID, misc, body, tail: Vec::new(), sample_id: None }
    }

    /// Bytes in front of the name.
    const FIXED: usize = RecordHeader::SIZE + 28;
}

/// The build ids, the kernel's first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BuildIds(pub Vec<BuildIdEntry>);

impl Wire for BuildIds {
    const NAME: &'static str = "BuildIds";

    /// Before 2.6.35 entries had no process id. Nothing says so, but the kernel's entry, read with one, then
    /// lacks the first four letters of its name.
    fn read_wire(reader: &mut Cursor<&[u8]>, endian: Endian, layout: Layout) -> BinResult<Self> {
        let start = reader.position();
        let mut read = |build_id_without_pid| {
            reader.set_position(start);
            let layout = Layout { build_id_without_pid, ..layout };
            LayoutToEnd::<BuildIdEntry>::read_options(reader, endian, (RecordHeader::SIZE as u64, layout))
        };
        let entries = read(false)?;
        let shifted = entries.iter().any(|entry| entry.build_id.filename.text() == b"nel.kallsyms]");
        let LayoutToEnd(entries) = if shifted { read(true)? } else { entries };
        Ok(BuildIds(entries))
    }
}

impl BinWrite for BuildIds {
    type Args<'a> = ();
    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        self.0.iter().try_for_each(|entry| entry.write_options(writer, endian, ()))
    }
}

impl Describe for BuildIds {
    fn describe(&self, name: &'static str, style: Style, v: &mut dyn Visitor) {
        self.0.describe(name, style, v);
    }
}
