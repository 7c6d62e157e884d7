//! Reading file mode: the header points at attributes, records and feature sections.

use std::collections::BTreeMap;

use binrw::Endian;

use crate::arrangement::{FileArrangement, Part, Region};
use crate::attr::Attr;
use crate::error::{Error, Result};
use crate::header::{FeatureBitmap, FileHeader, FileSection, WordSize};
use crate::layout::Layout;
use crate::read::source::{Source, read_section};
use crate::record::EventTypeName;
use crate::recording::{Event, Events, Recording};
use crate::wire::{Wire, decode_words};

/// HOSTNAME, which every perf since 3.2 writes: the sign by which the words of a bitmap are recognised.
const HOSTNAME: u32 = 3;

/// Reads everything but the records.
///
/// # Errors
/// A header or attributes that cannot be read. Damaged feature sections are left out, not refused.
pub(super) fn read_metadata(source: &(impl Source + ?Sized), endian: Endian) -> Result<(Recording, FileArrangement)> {
    let len = source.len().map_err(|e| Error::io("file", e))?;
    let header = read_header(source, endian, len)?;
    let mut recording = Recording { magic: header.magic, ..Recording::new(endian) };
    let mut budget = Budget { left: len };
    let mut file = FileArrangement {
        words: WordSize::Bits64,
        len,
        regions: vec![Region { part: Part::Header, place: FileSection { offset: 0, size: header.size.min(len) } }],
        ids: Vec::new(),
        table: Vec::new(),
        unexplained: false,
        header,
    };
    read_events(source, &mut recording, &mut file, &mut budget)?;
    read_event_types(source, &mut recording, &mut file);
    read_features(source, &mut recording, &mut file, &mut budget);
    file.complete();
    Ok((recording, file))
}

/// Sections may point anywhere, also all at the same place: what is held in memory never exceeds the file.
struct Budget {
    left: u64,
}

impl Budget {
    fn take(&mut self, size: u64) -> bool {
        let left = self.left.checked_sub(size);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

fn read_header(source: &(impl Source + ?Sized), endian: Endian, len: u64) -> Result<FileHeader> {
    let place = FileSection { offset: 0, size: FileHeader::SIZE.min(len) };
    let bytes = read_section(source, place, "file header")?;
    let (header, _) =
        FileHeader::decode(&bytes, endian, Layout::default()).map_err(|e| e.structure("file header").within(0))?;
    let entry = header.attr_size;
    if entry < u64::from(Attr::MIN_SIZE) + FileSection::SIZE || entry > u64::from(u16::MAX) {
        return Err(Error::invalid(
            "file header",
            "attr_size",
            entry.to_string(),
            "80 to 65535: an attribute of 64 bytes or more and the place of its ids",
        )
        .at(16));
    }
    Ok(header)
}

fn read_events(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileArrangement,
    budget: &mut Budget,
) -> Result<()> {
    let FileHeader { attrs, attr_size, .. } = file.header;
    if !budget.take(attrs.size) {
        return Err(
            Error::truncated("attrs section", attrs.size, file.len.saturating_sub(attrs.offset)).at(attrs.offset)
        );
    }
    let bytes = read_section(source, attrs, "attrs section")?;
    let room = attr_size - FileSection::SIZE;
    let layout = Layout { attr_room: u32::try_from(room).unwrap_or(u32::MAX), ..Layout::default() };
    let mut events = Vec::new();
    let mut at = attrs.offset;
    for entry in bytes.chunks_exact(usize::try_from(attr_size).unwrap_or(usize::MAX)) {
        let blame = |e: Error| e.structure("attrs section").within(at);
        let (attr, used) = Attr::decode(entry, recording.endian, layout).map_err(blame)?;
        let (ids, _) =
            FileSection::decode(entry.get(used..).unwrap_or_default(), recording.endian, layout).map_err(blame)?;
        if !budget.take(ids.size) || !ids.size.is_multiple_of(8) {
            return Err(Error::invalid(
                "attrs section",
                "ids.size",
                ids.size.to_string(),
                "a multiple of 8 inside the file",
            )
            .at(at + room + 8));
        }
        let id_bytes = if ids.size == 0 { Vec::new() } else { read_section(source, ids, "event ids")? };
        events.push(Event { attr, ids: decode_words(&id_bytes, recording.endian) });
        add_region(file, Part::Ids(file.ids.len()), ids);
        file.ids.push(ids);
        at += attr_size;
    }
    let whole = (events.len() as u64) * attr_size;
    add_region(file, Part::Attrs, FileSection { offset: attrs.offset, size: whole });
    recording.events = Events::from_iter(events);
    Ok(())
}

fn add_region(file: &mut FileArrangement, part: Part, place: FileSection) {
    if place.size > 0 {
        file.regions.push(Region { part, place });
    }
}

/// The names of events are of no use to any reader of today, so a damaged table of them is but a gap.
fn read_event_types(source: &(impl Source + ?Sized), recording: &mut Recording, file: &mut FileArrangement) {
    let place = file.header.event_types;
    let Ok(bytes) = read_section(source, place, "event_types section") else { return };
    if place.size == 0 || !bytes.len().is_multiple_of(EventTypeName::FILE_ENTRY) {
        return;
    }
    let entries = bytes
        .chunks_exact(EventTypeName::FILE_ENTRY)
        .map(|e| EventTypeName::decode(e, recording.endian, Layout::default()));
    if let Ok(list) = entries.map(|e| e.map(|(entry, _)| entry)).collect::<Result<Vec<_>>>() {
        recording.event_types = list;
        add_region(file, Part::EventTypes, place);
    }
}

/// Finds the records and, behind them, the features.
fn read_features(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileArrangement,
    budget: &mut Budget,
) {
    let data = file.header.data;
    let data_end = data.end().filter(|&end| end <= file.len);
    let bitmap = file.header.features.unwrap_or_default();
    let table = data_end.and_then(|end| find_table(source, &bitmap, end, recording.endian, file.len));
    let whole_data = if table.is_some() || (data.size > 0 && data_end.is_some()) {
        data
    } else {
        // Never finished, or cut: the records run to the end of the file, and there are no sections behind them.
        FileSection { offset: data.offset, size: file.len.saturating_sub(data.offset) }
    };
    // Also without records, since what follows them moves with it.
    if whole_data.offset <= file.len {
        file.regions.push(Region { part: Part::Data, place: whole_data });
    }
    let Some((words, entries)) = table else {
        file.unexplained = bitmap != FeatureBitmap::default();
        return;
    };
    file.words = words;
    let table_place =
        FileSection { offset: whole_data.end().unwrap_or(file.len), size: entries.len() as u64 * FileSection::SIZE };
    add_region(file, Part::FeatureTable, table_place);
    recording.features = load(source, file, budget, &entries);
    file.table = entries;
}

fn load(
    source: &(impl Source + ?Sized),
    file: &mut FileArrangement,
    budget: &mut Budget,
    entries: &[(u32, FileSection)],
) -> BTreeMap<u32, Vec<u8>> {
    let mut features = BTreeMap::new();
    for &(id, place) in entries {
        // perf inject (6.12, 7.2) writes attributes over the first section: what shares bytes with another part is not
        // the section that was meant. Its bytes belong to that part, or stay as a gap.
        if file.regions.iter().any(|region| region.place.overlaps(&place)) || !budget.take(place.size) {
            continue;
        }
        // What is empty has no place that could be outside of a cut file.
        let bytes = if place.size == 0 { Ok(Vec::new()) } else { read_section(source, place, "feature section") };
        if let Ok(bytes) = bytes {
            add_region(file, Part::Feature(id), place);
            features.insert(id, bytes);
        }
    }
    features
}

type Table = (WordSize, Vec<(u32, FileSection)>);

/// The feature table at `offset`, or nothing where the bytes there cannot be one.
///
/// On big-endian machines the bitmap's words may be 32-bit ones. As perf does, take them for 64-bit ones if that
/// gives HOSTNAME and a table that makes sense.
fn find_table(
    source: &(impl Source + ?Sized),
    bitmap: &FeatureBitmap,
    offset: u64,
    endian: Endian,
    len: u64,
) -> Option<Table> {
    let read = |words: WordSize| {
        let ids: Vec<u32> = bitmap.features(words).collect();
        let place = FileSection { offset, size: ids.len() as u64 * FileSection::SIZE };
        let bytes = read_section(source, place, "feature table").ok()?;
        let entries = bytes
            .chunks_exact(FileSection::SIZE as usize)
            .map(|entry| FileSection::decode(entry, endian, Layout::default()).map(|(section, _)| section));
        let entries = entries.collect::<Result<Vec<_>>>().ok()?;
        let behind = |s: &FileSection| s.offset >= offset && s.offset <= len;
        // One believable entry is enough where a file was cut; records taken for a table have none.
        let believable = entries.is_empty() || entries.first().is_some_and(behind);
        believable.then(|| (words, ids.into_iter().zip(entries).collect::<Vec<_>>()))
    };
    let first = read(WordSize::Bits64);
    let has_hostname = |table: &Option<Table>| table.as_ref().is_some_and(|t| t.1.iter().any(|e| e.0 == HOSTNAME));
    if endian == Endian::Big && !has_hostname(&first) {
        let second = read(WordSize::Bits32);
        if has_hostname(&second) {
            return second;
        }
    }
    first
}
