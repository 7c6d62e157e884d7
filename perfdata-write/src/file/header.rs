//! The parts of a file that contain offsets: the header, the attributes and the feature table.

use std::io::{Seek, Write};

use perfdata_core::attr::Attr;
use perfdata_core::container_layout::Part;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::{FeatureBitmap, FileHeader, FileSection};
use perfdata_core::wire::Wire;
use perfdata_core::{Endian, Recording};

use super::FileWriter;
use crate::error::{Error, Result};

impl<W: Write + Seek> FileWriter<'_, W> {
    pub(super) fn header(
        &self,
        recording: &Recording,
        table: &[(FeatureId, FileSection)],
    ) -> Result<FileHeader> {
        let mut header = FileHeader {
            magic: recording.magic,
            ..self.plan.header(recording)
        };
        header.attr_size = self.attr_room(recording)?.saturating_add(FileSection::SIZE);
        if let Some(found) = &self.plan.found {
            // In a truncated or unfinished file, sizes in the header do not match the data. They
            // are preserved, so that the output is also recognized as truncated or unfinished.
            let adjust = |section: FileSection, part: Part| match (
                found.place(part),
                self.placed.get(&part),
            ) {
                (Some(was), Some(is)) if was.size == section.size => *is,
                (Some(_), Some(is)) => FileSection {
                    offset: is.offset,
                    ..section
                },
                _ => section,
            };
            header.attrs = adjust(header.attrs, Part::Attrs);
            header.data = adjust(header.data, Part::Data);
            header.event_types = adjust(header.event_types, Part::EventTypes);
        } else {
            let place = |part: Part| self.placed.get(&part).copied().unwrap_or_default();
            header.attrs = place(Part::Attrs);
            header.data = place(Part::Data);
            header.event_types = place(Part::EventTypes);
            if header.event_types.size == 0 {
                header.event_types = FileSection::default();
            }
        }
        let unexplained = self
            .plan
            .found
            .as_ref()
            .is_some_and(|found| found.unexplained)
            && table.is_empty();
        if header.features.is_some() && !unexplained {
            header.features = Some(FeatureBitmap::of(
                table.iter().map(|(id, _)| *id),
                self.plan.words(),
            ));
        }
        Ok(header)
    }

    /// Returns the entries of the feature table in ascending order.
    pub(super) fn table(&self, recording: &Recording) -> Vec<(FeatureId, FileSection)> {
        let found = |id: FeatureId| {
            let table = self
                .plan
                .found
                .as_ref()
                .map(|found| found.table.as_slice())
                .unwrap_or_default();
            table
                .iter()
                .find(|entry| entry.0 == id)
                .map(|entry| entry.1)
        };
        let mut table: Vec<_> = recording
            .features
            .keys()
            .map(
                |&id| match (self.placed.get(&Part::Feature(id)), found(id)) {
                    (Some(place), Some(was)) if place.size == 0 && was.size == 0 => (
                        id,
                        FileSection {
                            offset: self.moved(was.offset),
                            size: 0,
                        },
                    ),
                    (Some(place), _) => (id, *place),
                    (None, Some(was)) => (
                        id,
                        FileSection {
                            offset: self.moved(was.offset),
                            ..was
                        },
                    ),
                    (None, None) => (
                        id,
                        FileSection {
                            offset: self.here,
                            size: 0,
                        },
                    ),
                },
            )
            .collect();
        // Sections that could not be read have moved as well. An offset after the end of the file
        // would hide the whole table.
        table.extend(self.plan.lost_entries(recording).map(|(id, was)| {
            (
                id,
                FileSection {
                    offset: self.moved(was.offset),
                    ..was
                },
            )
        }));
        table.sort_by_key(|entry| entry.0);
        // Readers recognize the table by an entry with an offset after it. In a damaged file, the
        // remaining sections may all be empty, and offsets of empty sections are arbitrary.
        let table_start = self
            .placed
            .get(&Part::FeatureTable)
            .map_or(self.here, |place| place.offset);
        let is_behind = |place: &FileSection| (table_start..=self.here).contains(&place.offset);
        if !table.iter().any(|(_, place)| is_behind(place))
            && let Some((_, empty)) = table.iter_mut().find(|(_, place)| place.size == 0)
        {
            empty.offset = self.here;
        }
        table
    }

    /// Converts an offset in the original file to the output: it moves with the part that contains
    /// it.
    pub(super) fn moved(&self, offset: u64) -> u64 {
        let regions = self
            .plan
            .found
            .as_ref()
            .map(|found| found.regions.as_slice())
            .unwrap_or_default();
        let holder = regions
            .iter()
            .rev()
            .find(|r| r.part != Part::Gap && r.place.offset <= offset);
        match holder.and_then(|r| Some((r.place.offset, self.placed.get(&r.part)?.offset))) {
            Some((was, is)) => is.wrapping_add(offset.wrapping_sub(was)),
            None => offset,
        }
    }

    /// Returns the size of an attribute in the file, in bytes: as in the original file, or that of
    /// the longest attribute; the current size if there are no attributes.
    pub(super) fn attr_room(&self, recording: &Recording) -> Result<u64> {
        let mut room = self.plan.found.as_ref().map_or(0, |found| {
            found.header.attr_size.saturating_sub(FileSection::SIZE)
        });
        for event in recording.events.iter() {
            room = room.max(event.attr.encode(self.endian)?.len() as u64);
        }
        Ok(if room == 0 {
            u64::from(Attr::KNOWN_SIZE)
        } else {
            room
        })
    }

    pub(super) fn attrs(&self, recording: &Recording) -> Result<Vec<u8>> {
        let room = self.attr_room(recording)?;
        let mut bytes = Vec::new();
        // For an event without IDs, perf writes the offset where its IDs would be.
        let mut running = Self::ids_start(recording.events.len(), |part| {
            self.placed.get(&part).copied()
        });
        let found = self.plan.found.as_ref();
        let mut running_found =
            found.map(|found| Self::ids_start(found.ids.len(), |part| found.place(part)));
        for (at, event) in recording.events.iter().enumerate() {
            bytes.extend(encode_attr(&event.attr, room, self.endian)?);
            let found = found.and_then(|found| found.ids.get(at));
            let elsewhere = found.filter(|was| was.size == 0 && Some(was.offset) != running_found);
            let place = match (self.placed.get(&Part::Ids(at)), elsewhere) {
                (Some(place), _) => *place,
                (None, Some(was)) => FileSection {
                    offset: self.moved(was.offset),
                    size: 0,
                },
                (None, None) => FileSection {
                    offset: running,
                    size: 0,
                },
            };
            running_found = found.and_then(FileSection::end);
            running = place.offset.wrapping_add(place.size);
            place.encode_into(&mut bytes, self.endian)?;
        }
        Ok(bytes)
    }

    /// Returns the actual or potential offset of the first IDs, which precede the attributes.
    pub(super) fn ids_start(events: usize, place: impl Fn(Part) -> Option<FileSection>) -> u64 {
        let ids = (0..events).find_map(|event| place(Part::Ids(event)));
        ids.or_else(|| place(Part::Attrs))
            .unwrap_or_default()
            .offset
    }

    /// Returns an error if feature sections were added to a file that cannot contain any.
    pub(super) fn check_room(&self, recording: &Recording) -> Result<()> {
        let Some(found) = &self.plan.found else {
            return Ok(());
        };
        match recording.features.keys().next() {
            Some(&id) if !found.has_room_for_features() => Err(Error::Unfinished {
                name: id.to_string(),
            }),
            _ => Ok(()),
        }
    }
}

/// Encodes an attribute in `room` bytes. All attributes of a file have the same size: a shorter one
/// is padded with zeros, as a newer perf would have written it.
fn encode_attr(attr: &Attr, room: u64, endian: Endian) -> Result<Vec<u8>> {
    let mut bytes = attr.encode(endian)?;
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if bytes.len() < room {
        let grown = Attr {
            size: u32::try_from(room).unwrap_or(u32::MAX),
            ..attr.clone()
        };
        bytes = grown.encode(endian)?;
        bytes.resize(room, 0);
    }
    Ok(bytes)
}
