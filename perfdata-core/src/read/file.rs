//! Reading file mode: the header contains the offsets of attributes, records and feature sections.

use std::collections::{BTreeMap, HashSet};

use binrw::Endian;

use crate::attr::Attr;
use crate::container_layout::{FileLayout, Part, Region};
use crate::decode_context::DecodeContext;
use crate::error::{Error, Result};
use crate::feature::FeatureId;
use crate::header::{FeatureBitmap, FileHeader, FileSection, WordSize};
use crate::read::limits::Limits;
use crate::read::salvage::{Ids, Losses};
use crate::read::source::{Source, read_section};
use crate::record::EventTypeName;
use crate::recording::{Event, Events, Recording};
use crate::wire::{Wire, decode_words};

/// HOSTNAME, which every perf since 3.2 writes. Its bit indicates the word size of a bitmap.
pub(super) const HOSTNAME: FeatureId = FeatureId::HOSTNAME;

/// Reads everything except the records.
///
/// # Errors
/// Fails if the header or the attributes cannot be read. Corrupt feature sections are skipped
/// without an error.
pub(super) fn read_metadata(
    source: &(impl Source + ?Sized),
    endian: Endian,
    limits: Limits,
) -> Result<(Recording, FileLayout)> {
    let (mut recording, mut file, mut budget) = read_header(source, endian, limits)?;
    read_events(source, &mut recording, &mut file, &mut budget, None)?;
    read_event_types(source, &mut recording, &mut file)?;
    read_features(source, &mut recording, &mut file, &mut budget)?;
    file.complete();
    Ok((recording, file))
}

pub(super) fn read_header(
    source: &(impl Source + ?Sized),
    endian: Endian,
    limits: Limits,
) -> Result<(Recording, FileLayout, Budget)> {
    let len = source.len().map_err(|e| Error::io("file", e))?;
    let header = decode_header(source, endian, len)?;
    let recording = Recording {
        magic: header.magic,
        ..Recording::new(endian)
    };
    let file = FileLayout {
        words: WordSize::Bits64,
        len,
        regions: vec![Region {
            part: Part::Header,
            place: FileSection {
                offset: 0,
                size: header.size.min(len),
            },
        }],
        ids: Vec::new(),
        table: Vec::new(),
        unexplained: false,
        header,
    };
    Ok((
        recording,
        file,
        Budget {
            left: len,
            limits,
            taken: 0,
        },
    ))
}

/// Bounds the memory for sections by the size of the file and by the limit. Sections may have any
/// offset, even the same.
pub(super) struct Budget {
    left: u64,
    limits: Limits,
    taken: u64,
}

impl Budget {
    /// Deducts a section; returns false if the file does not have that many bytes left.
    fn take(&mut self, place: FileSection) -> Result<bool> {
        let Some(left) = self.left.checked_sub(place.size) else {
            return Ok(false);
        };
        self.limits
            .take(&mut self.taken, place.size)
            .map_err(|e| e.at(place.offset))?;
        self.left = left;
        Ok(true)
    }
}

/// Parts with which the IDs of an event must not share bytes.
struct TakenSections {
    others: Vec<FileSection>,
    /// IDs of the preceding events, by offset; none of them share bytes.
    ids: BTreeMap<u64, FileSection>,
}

impl TakenSections {
    /// Returns whether `ids` are complete in a file of `len` bytes and share no bytes with other
    /// parts.
    fn has_room(&self, ids: &FileSection, len: u64) -> bool {
        let overlaps = |place: &FileSection| place.overlaps(ids);
        let before = self
            .ids
            .range(..=ids.offset)
            .next_back()
            .map(|(_, place)| place);
        let behind = self.ids.range(ids.offset..).next().map(|(_, place)| place);
        ids.size.is_multiple_of(8)
            && (ids.size == 0 || ids.end().is_some_and(|end| end <= len))
            && !self.others.iter().chain(before).chain(behind).any(overlaps)
    }
}

fn decode_header(source: &(impl Source + ?Sized), endian: Endian, len: u64) -> Result<FileHeader> {
    let place = FileSection {
        offset: 0,
        size: FileHeader::SIZE.min(len),
    };
    let bytes = read_section(source, place, "file header")?;
    let (header, _) = FileHeader::decode(&bytes, endian, DecodeContext::default())
        .map_err(|e| e.structure("file header").within(0))?;
    let entry = header.attr_size;
    if entry < u64::from(Attr::MIN_SIZE) + FileSection::SIZE || entry > u64::from(u16::MAX) {
        return Err(Error::invalid(
            "file header",
            "attr_size",
            entry.to_string(),
            "80 to 65535: an attribute of 64 bytes or more, and the offset and size of its IDs",
        )
        .at(16));
    }
    Ok(header)
}

/// Reduces the attributes section in the header to the whole attributes that are in the file.
/// Returns whether the records end before the attributes, at an unknown offset.
fn salvage_attrs(file: &mut FileLayout, losses: &mut Losses) -> Result<bool> {
    let FileHeader {
        mut attrs,
        attr_size,
        ..
    } = file.header;
    if attrs.offset < file.header.size {
        let found = attrs.offset.to_string();
        return Err(Error::invalid(
            "file header",
            "attrs.offset",
            found,
            "an offset after the header",
        )
        .at(24));
    }
    // The records start after the attributes, or end before them.
    let data = &mut file.header.data;
    let mut ends_somewhere = false;
    if attrs.size > 0
        && (data.offset == attrs.offset || data.overlaps(&attrs) && data.offset < attrs.offset)
    {
        ends_somewhere = data.offset >= file.header.size && data.offset < attrs.offset;
        *data = match ends_somewhere {
            // Their end is unknown.
            true => FileSection {
                size: u64::MAX.saturating_sub(data.offset),
                ..*data
            },
            false => FileSection {
                offset: attrs.end().unwrap_or(file.len),
                size: 0,
            },
        };
    }
    let data = file.header.data.offset;
    let limit = if data > attrs.offset {
        data.min(file.len)
    } else {
        file.len
    };
    let there = limit.saturating_sub(attrs.offset).min(attrs.size);
    if !there.is_multiple_of(attr_size) || attrs.size > there {
        let whole = there.checked_div(attr_size).unwrap_or(0);
        losses.attrs = attrs.size.div_ceil(attr_size).saturating_sub(whole);
        let is_cut = attrs.size > there && limit == file.len;
        attrs.size = whole.saturating_mul(attr_size);
        if whole == 0 {
            attrs.offset = file.header.size;
        }
        if is_cut {
            // A part of an attribute follows.
            file.len = attrs.end().unwrap_or(file.len);
        }
        file.header.attrs = attrs;
    }
    Ok(ends_somewhere)
}

/// Reads attributes and IDs. With `losses`, reads those that are present, and IDs only if they are
/// usable.
pub(super) fn read_events(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileLayout,
    budget: &mut Budget,
    mut losses: Option<(&mut Losses, Ids)>,
) -> Result<()> {
    // Whether the records end before the attributes, at an unknown offset.
    let ends_somewhere = match &mut losses {
        Some((losses, _)) => salvage_attrs(file, losses)?,
        None => false,
    };
    let FileHeader {
        attrs, attr_size, ..
    } = file.header;
    if !budget.take(attrs)? {
        return Err(Error::truncated(
            "attrs section",
            attrs.size,
            file.len.saturating_sub(attrs.offset),
        )
        .at(attrs.offset));
    }
    let bytes = read_section(source, attrs, "attrs section")?;
    let room = attr_size.saturating_sub(FileSection::SIZE);
    let layout = DecodeContext {
        attr_room: u32::try_from(room).unwrap_or(u32::MAX),
        ..DecodeContext::default()
    };
    let mut events: Vec<Event> = Vec::new();
    let mut owned: HashSet<u64> = HashSet::new();
    let mut at = attrs.offset;
    let mut taken = TakenSections {
        others: file.regions.iter().map(|region| region.place).collect(),
        ids: BTreeMap::new(),
    };
    let data = file.header.data;
    taken.others.extend([
        attrs,
        FileSection {
            size: if ends_somewhere { 0 } else { data.size },
            ..data
        },
    ]);
    for entry in bytes.chunks_exact(usize::try_from(attr_size).unwrap_or(usize::MAX)) {
        let blame = |e: Error| e.structure("attrs section").within(at);
        let (attr, used) = Attr::decode(entry, recording.endian, layout).map_err(blame)?;
        let (mut ids, _) = FileSection::decode(
            entry.get(used..).unwrap_or_default(),
            recording.endian,
            layout,
        )
        .map_err(blame)?;
        if let Some((losses, known)) = &mut losses
            && (!taken.has_room(&ids, file.len) || *known == Ids::Lost)
        {
            if ids.size > 0 {
                losses.ids.push(events.len());
            }
            ids = FileSection::default();
        }
        if !ids.size.is_multiple_of(8) || !budget.take(ids)? {
            return Err(Error::invalid(
                "attrs section",
                "ids.size",
                ids.size.to_string(),
                "a multiple of 8 inside the file",
            )
            .at(at.saturating_add(room).saturating_add(8)));
        }
        let id_bytes = if ids.size == 0 {
            Vec::new()
        } else {
            read_section(source, ids, "event IDs")?
        };
        let mut event = Event {
            attr,
            ids: decode_words(&id_bytes, recording.endian),
        };
        if let Some((losses, _)) = &mut losses
            && event.ids.iter().any(|id| owned.contains(id))
        {
            losses.ids.push(events.len());
            (event.ids, ids) = (Vec::new(), FileSection::default());
        }
        owned.extend(&event.ids);
        events.push(event);
        if ids.size > 0 {
            taken.ids.insert(ids.offset, ids);
        }
        add_region(file, Part::Ids(file.ids.len()), ids);
        file.ids.push(ids);
        at = at.saturating_add(attr_size);
    }
    let whole = (events.len() as u64).saturating_mul(attr_size);
    add_region(
        file,
        Part::Attrs,
        FileSection {
            offset: attrs.offset,
            size: whole,
        },
    );
    recording.events = Events::from_iter(events);
    Ok(())
}

fn add_region(file: &mut FileLayout, part: Part, place: FileSection) {
    if place.size > 0 {
        file.regions.push(Region { part, place });
    }
}

/// Current readers do not use event names, so a corrupt table of them is only a gap.
pub(super) fn read_event_types(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileLayout,
) -> Result<()> {
    let place = file.header.event_types;
    let Some(bytes) = if_whole(read_section(source, place, "event_types section"))? else {
        return Ok(());
    };
    if place.size == 0 || !bytes.len().is_multiple_of(EventTypeName::FILE_ENTRY) {
        return Ok(());
    }
    let entries = bytes
        .chunks_exact(EventTypeName::FILE_ENTRY)
        .map(|e| EventTypeName::decode(e, recording.endian, DecodeContext::default()));
    if let Ok(list) = entries
        .map(|e| e.map(|(entry, _)| entry))
        .collect::<Result<Vec<_>>>()
    {
        recording.event_types = list;
        add_region(file, Part::EventTypes, place);
    }
    Ok(())
}

/// Finds the records and the feature sections after them.
pub(super) fn read_features(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileLayout,
    budget: &mut Budget,
) -> Result<()> {
    let data = file.header.data;
    let data_end = data.end().filter(|&end| end <= file.len);
    let bitmap = file.header.features.unwrap_or_default();
    let is_said = data.size > 0;
    let table = match data_end {
        Some(end) => find_table(source, &bitmap, end, is_said, recording.endian, file.len)?,
        None => None,
    };
    let whole_data = if table.is_some() || (data.size > 0 && data_end.is_some()) {
        data
    } else {
        // Unfinished or truncated: the records extend to the end of the file and no sections
        // follow.
        FileSection {
            offset: data.offset,
            size: file.len.saturating_sub(data.offset),
        }
    };
    // Added even without records, because the parts that follow are located relative to it.
    if whole_data.offset <= file.len {
        file.regions.push(Region {
            part: Part::Data,
            place: whole_data,
        });
    }
    let Some((words, entries)) = table else {
        file.unexplained = bitmap != FeatureBitmap::default();
        return Ok(());
    };
    file.words = words;
    let table_place = FileSection {
        offset: whole_data.end().unwrap_or(file.len),
        size: (entries.len() as u64).saturating_mul(FileSection::SIZE),
    };
    add_region(file, Part::FeatureTable, table_place);
    load(source, recording, file, budget, &entries)?;
    file.table = entries;
    Ok(())
}

fn load(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileLayout,
    budget: &mut Budget,
    entries: &[(FeatureId, FileSection)],
) -> Result<()> {
    let mut shared = Vec::new();
    let mut read = |place: FileSection| {
        // An empty section has no bytes that could be outside a truncated file.
        if place.size == 0 {
            return Ok(Some(Vec::new()));
        }
        if !budget.take(place)? {
            return Ok(None);
        }
        if_whole(read_section(source, place, "feature section"))
    };
    for &(id, place) in entries {
        if file
            .regions
            .iter()
            .any(|region| region.place.overlaps(&place))
        {
            shared.push((id, place));
        } else if let Some(bytes) = read(place)? {
            add_region(file, Part::Feature(id), place);
            recording.features.insert(id, bytes);
        }
    }
    // perf reads each section at the offset in its entry, regardless of other parts, so the first
    // and the last bytes of a section may belong to its neighbours. perf inject (6.12, 7.2)
    // overwrites the first section with attributes: a section that cannot be decoded was
    // overwritten. Its bytes belong to the other part, or remain a gap.
    for (id, place) in shared {
        let Some(bytes) = read(place)? else { continue };
        recording.features.insert(id, bytes);
        match recording.feature(id) {
            Some(Ok(section)) if !section.stops_early() => {
                add_region(file, Part::Feature(id), place);
            }
            _ => drop(recording.features.remove(&id)),
        }
    }
    Ok(())
}

type SectionTable = (WordSize, Vec<(FeatureId, FileSection)>);

/// Returns the feature table at `offset`, or `None` if the bytes there cannot be a table. If
/// `is_said` is true, the header states that the table is there.
///
/// On big-endian machines the bitmap may consist of 32-bit words. Like perf, this function assumes
/// 64-bit words if they give HOSTNAME and a plausible table.
pub(super) fn find_table(
    source: &(impl Source + ?Sized),
    bitmap: &FeatureBitmap,
    offset: u64,
    is_said: bool,
    endian: Endian,
    len: u64,
) -> Result<Option<SectionTable>> {
    let read = |words: WordSize| -> Result<Option<SectionTable>> {
        let ids: Vec<FeatureId> = bitmap.features(words).collect();
        let place = FileSection {
            offset,
            size: (ids.len() as u64).saturating_mul(FileSection::SIZE),
        };
        let Some(bytes) = if_whole(read_section(source, place, "feature table"))? else {
            return Ok(None);
        };
        let entries = bytes.chunks_exact(FileSection::SIZE as usize).map(|entry| {
            FileSection::decode(entry, endian, DecodeContext::default()).map(|(section, _)| section)
        });
        let Ok(entries) = entries.collect::<Result<Vec<_>>>() else {
            return Ok(None);
        };
        let behind = |s: &FileSection| s.offset >= offset && s.offset <= len;
        // One plausible entry suffices in a truncated or corrupt file; records mistaken for a table
        // have none. An empty section may have any offset, also by chance.
        let mut sections = entries.iter().filter(|section| section.size > 0).peekable();
        let believable = match is_said && sections.peek().is_some() {
            true => sections.any(behind),
            false => entries.first().is_none_or(behind),
        };
        Ok(believable.then(|| (words, ids.into_iter().zip(entries).collect::<Vec<_>>())))
    };
    let first = read(WordSize::Bits64)?;
    let has_hostname = |table: &Option<SectionTable>| {
        table
            .as_ref()
            .is_some_and(|t| t.1.iter().any(|e| e.0 == HOSTNAME))
    };
    if endian == Endian::Big && !has_hostname(&first) {
        let second = read(WordSize::Bits32)?;
        if has_hostname(&second) {
            return Ok(second);
        }
    }
    Ok(first)
}

/// Returns the bytes read, or `None` if the file does not contain them. A failed system call
/// remains an error: data that a file has lost since it was opened must not be treated as data that
/// never existed.
fn if_whole(read: Result<Vec<u8>>) -> Result<Option<Vec<u8>>> {
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_io() => Err(error),
        Err(_) => Ok(None),
    }
}
