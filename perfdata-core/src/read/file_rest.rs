//! Reading what is left of a truncated, unfinished or corrupt file.

use binrw::Endian;

use crate::container_layout::{FileLayout, Part, Region};
use crate::error::Result;
use crate::feature::{Feature, FeatureId, Section};
use crate::header::{FeatureBitmap, FileSection, WordSize};
use crate::read::file::{
    HOSTNAME, find_table, read_event_types, read_events, read_features, read_header,
};
use crate::read::limits::Limits;
use crate::read::salvage::{Foreknown, Losses};
use crate::read::source::Source;
use crate::recording::Recording;

/// The readable content of a truncated, unfinished or corrupt file.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) recording: Recording,
    /// DecodeContext without the lost parts: a file written with it is intact.
    pub(super) file: FileLayout,
    pub(super) losses: Losses,
    /// Search for the end of the records, if it is unknown.
    pub(super) table: Option<TableSearch>,
}

/// Reads everything available except the records; `foreknown` contains the known facts about the
/// records.
///
/// # Errors
/// Fails if the header cannot be read or no attribute is complete.
pub(super) fn read_rest(
    source: &(impl Source + ?Sized),
    endian: Endian,
    foreknown: Foreknown,
    limits: Limits,
) -> Result<Rest> {
    let Foreknown { end, ids, .. } = foreknown;
    let (mut recording, mut file, mut budget) = read_header(source, endian, limits)?;
    let mut losses = Losses::default();
    read_events(
        source,
        &mut recording,
        &mut file,
        &mut budget,
        Some((&mut losses, ids)),
    )?;
    losses.event_types = salvage_event_types(source, &mut recording, &mut file)?;
    let announced = file.header.features.unwrap_or_default();
    let is_outside = place_records(&mut file, end);
    // If the file was truncated inside the table, fewer bytes than the size of the table follow the
    // records.
    let room =
        (announced.features(WordSize::Bits64).count() as u64).saturating_mul(FileSection::SIZE);
    let data = file.header.data;
    let said = data.end().filter(|&end| end <= file.len);
    let has_size = data.size > 0;
    read_features(source, &mut recording, &mut file, &mut budget)?;
    drop_overlapping_features(&mut recording, &mut file);
    // A size of 0 is plausible only if the file ends there or the feature table follows.
    let said = said.filter(|&end| has_size || end == file.len || !file.table.is_empty());
    let is_believable =
        said.is_some_and(|end| !file.unexplained || file.len.saturating_sub(end) < room);
    losses.end_of_records = end.is_some() || is_outside || !is_believable;
    let search = TableSearch {
        bitmap: announced,
        endian,
        len: file.len,
    };
    let table = (losses.end_of_records && end.is_none()).then_some(search);
    bound_records(&mut file, table.is_some());
    keep_whole_features(&mut recording, &mut file, &announced, &mut losses);
    file.complete();
    losses.shared = file
        .shared()
        .any(|(a, b)| matches!((a.part, b.part), (Part::Feature(_), Part::Feature(_))));
    // Removes the remains of lost sections.
    file.regions.pop_if(|last| last.part == Part::Gap);
    Ok(Rest {
        recording,
        file,
        losses,
        table,
    })
}

/// Reads the names of events, unless they share bytes with something else. Returns whether they are
/// lost.
fn salvage_event_types(
    source: &(impl Source + ?Sized),
    recording: &mut Recording,
    file: &mut FileLayout,
) -> Result<bool> {
    read_event_types(source, recording, file)?;
    let names = file.header.event_types;
    let mut others = file
        .regions
        .iter()
        .filter(|region| region.part != Part::EventTypes)
        .map(|region| region.place);
    if file.header.data.overlaps(&names) || others.any(|place| place.overlaps(&names)) {
        recording.event_types.clear();
        file.regions
            .retain(|region| region.part != Part::EventTypes);
    }
    let are_lost = names.size > 0 && recording.event_types.is_empty();
    if are_lost {
        file.header.event_types = FileSection::default();
    }
    Ok(are_lost)
}

/// Sets the place of the records: that in the header, up to `end` if it is known, or the largest
/// gap if that is outside of the file. Returns whether it is.
fn place_records(file: &mut FileLayout, end: Option<u64>) -> bool {
    let is_outside = file.header.data.offset > file.len;
    if is_outside {
        file.header.data = largest_gap(&file.regions, file.len);
    }
    if let Some(end) = end {
        file.header.data.size = end.saturating_sub(file.header.data.offset);
    }
    is_outside
}

/// Discards sections that share bytes with anything except another section.
fn drop_overlapping_features(recording: &mut Recording, file: &mut FileLayout) {
    let parts: Vec<_> = file
        .regions
        .iter()
        .filter(|region| !matches!(region.part, Part::Feature(_)))
        .copied()
        .collect();
    file.regions.retain(|region| match region.part {
        Part::Feature(id) if parts.iter().any(|part| part.place.overlaps(&region.place)) => {
            recording.features.remove(&id).is_none()
        }
        _ => true,
    });
}

/// Sets the place of the records in the header. If their end is searched for, they reach up to the
/// next part: attributes may follow the records.
fn bound_records(file: &mut FileLayout, is_open: bool) {
    let Some(place) = file.place(Part::Data) else {
        return;
    };
    let later = file
        .regions
        .iter()
        .map(|region| region.place.offset)
        .filter(|&other| other > place.offset);
    let limit = later.min().unwrap_or(file.len);
    let open = FileSection {
        size: limit.saturating_sub(place.offset),
        ..place
    };
    file.header.data = if is_open { open } else { place };
    let records = file
        .regions
        .iter_mut()
        .filter(|region| region.part == Part::Data);
    records.for_each(|region| region.place = file.header.data);
}

/// Returns the largest contiguous range not covered by `regions`, in a file of `len` bytes.
fn largest_gap(regions: &[Region], len: u64) -> FileSection {
    let mut places: Vec<FileSection> = regions.iter().map(|region| region.place).collect();
    places.sort_by_key(|place| place.offset);
    places.push(FileSection {
        offset: len,
        size: 0,
    });
    let mut largest = FileSection {
        offset: len,
        size: 0,
    };
    let mut end = 0;
    for place in places {
        let size = place.offset.saturating_sub(end);
        if size > largest.size {
            largest = FileSection { offset: end, size };
        }
        end = end.max(place.end().unwrap_or(len));
    }
    largest
}

/// Removes sections from the table that are outside the file or unreadable, and lists the features
/// that are missing although the header announces them. Sections that are empty even in an intact
/// file are present.
fn keep_whole_features(
    recording: &mut Recording,
    file: &mut FileLayout,
    announced: &FeatureBitmap,
    losses: &mut Losses,
) {
    let mut readable: Vec<FeatureId> = recording
        .features
        .keys()
        .copied()
        .filter(|&id| match recording.feature(id) {
            // perf inject overwrites build IDs.
            Some(Ok(Section {
                value: Feature::BuildIds(ids),
                tail,
                ..
            })) => !ids.0.is_empty() || tail.is_empty(),
            Some(section) => section.is_ok(),
            None => false,
        })
        .collect();
    // HOSTNAME indicates the word size of a big-endian bitmap. If it is lost, no other bit may be
    // mistaken for it.
    if recording.endian == Endian::Big && !readable.contains(&HOSTNAME) {
        readable.retain(|&id| id.0 != HOSTNAME.0 ^ 32);
    }
    recording.features.retain(|id, _| readable.contains(id));
    let has_table = file.place(Part::FeatureTable).is_some();
    let has_bytes = |id: FeatureId| {
        file.table
            .iter()
            .any(|(other, place)| *other == id && place.size > 0)
    };
    for id in announced
        .features(file.words)
        .filter(|id| !readable.contains(id))
    {
        match id {
            FeatureId::BRANCH_STACK | FeatureId::STAT if has_table && !has_bytes(id) => {
                recording.features.insert(id, Vec::new());
            }
            lost => losses.features.push(lost),
        }
    }
    file.regions.retain(|region| match region.part {
        Part::Feature(id) => recording.features.contains_key(&id),
        Part::FeatureTable => !recording.features.is_empty(),
        _ => true,
    });
    // Empty sections may have any offset in a corrupt table, but the table must be plausible when
    // it is read again.
    let last = file
        .regions
        .iter()
        .filter_map(|region| region.place.end())
        .max();
    let behind_records = file.header.data.end().unwrap_or(file.len)..=last.unwrap_or(file.len);
    file.table.retain(|(id, place)| {
        readable.contains(id) && (place.size > 0 || behind_records.contains(&place.offset))
    });
    file.unexplained = false;
    // Without HOSTNAME, readers assume 64-bit words.
    if !recording.features.contains_key(&HOSTNAME) {
        file.words = WordSize::Bits64;
    }
}

/// Finds the feature table of a file whose header does not contain the end of the preceding
/// records.
#[derive(Debug)]
pub(super) struct TableSearch {
    bitmap: FeatureBitmap,
    endian: Endian,
    len: u64,
}

impl TableSearch {
    /// Returns whether the table is at `offset`: its sections follow it without gaps between them.
    /// perf reserves space in the table for sections that it later fails to write.
    ///
    /// # Errors
    /// Fails if the source cannot be read.
    pub(super) fn is_at(&self, source: &(impl Source + ?Sized), offset: u64) -> Result<bool> {
        let Some((_, entries)) =
            find_table(source, &self.bitmap, offset, false, self.endian, self.len)?
        else {
            return Ok(false);
        };
        let table_end =
            offset.checked_add((entries.len() as u64).saturating_mul(FileSection::SIZE));
        let first = entries.first().map(|(_, section)| section.offset);
        let spare = first
            .zip(table_end)
            .and_then(|(first, end)| first.checked_sub(end));
        let most = u64::from(FeatureBitmap::BITS) * FileSection::SIZE;
        let follows = |pair: &[(FeatureId, FileSection)]| matches!(pair, [a, b] if a.1.end() == Some(b.1.offset));
        Ok(
            spare.is_some_and(|spare| spare < most && spare.is_multiple_of(FileSection::SIZE))
                && entries.windows(2).all(follows),
        )
    }
}
