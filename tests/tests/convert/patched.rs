//! Files in which the offset of a part is changed.

use std::collections::HashMap;

use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::FileSection;
use perfdata_tests::convert::Whole;

/// A little-endian recording in memory. The offsets in its header, attributes and feature table can
/// be changed.
pub struct Patched {
    pub bytes: Vec<u8>,
    pub places: HashMap<Part, FileSection>,
    /// Offset in the file of the table entry of each feature.
    pub entries: HashMap<FeatureId, usize>,
    /// Size of an entry of the attributes in bytes.
    attr_size: u64,
}

impl Patched {
    pub fn new(bytes: Vec<u8>) -> Self {
        let Whole {
            container_layout, ..
        } = Whole::read(bytes.clone()).expect("a recording");
        let ContainerLayout::File(file) = container_layout else {
            panic!("it is no file")
        };
        let table = file.place(Part::FeatureTable).expect("a table").offset as usize;
        let entries = file
            .table
            .iter()
            .enumerate()
            .map(|(at, entry)| (entry.0, table + 16 * at))
            .collect();
        let mut places: HashMap<_, _> = file
            .regions
            .iter()
            .map(|region| (region.part, region.place))
            .collect();
        places.entry(Part::EventTypes).or_insert(FileSection {
            offset: 0,
            size: 72,
        });
        Patched {
            bytes,
            places,
            entries,
            attr_size: file.header.attr_size,
        }
    }

    /// Returns all parts that have an offset, in a fixed order.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self
            .places
            .keys()
            .copied()
            .filter(|part| *part != Part::Gap)
            .collect();
        parts.sort_unstable();
        parts
    }

    /// Returns the file in which the offset and size of `part` are set to `place`; `None` if the
    /// file does not contain its offset.
    pub fn with(&self, part: Part, place: FileSection) -> Option<Vec<u8>> {
        let at = match part {
            Part::Attrs => 24,
            Part::Data => 40,
            Part::EventTypes => 56,
            Part::Ids(event) => {
                let entries_end =
                    self.places[&Part::Attrs].offset + self.attr_size * (event as u64 + 1);
                (entries_end - 16) as usize
            }
            Part::Feature(id) => *self.entries.get(&id)?,
            _ => return None,
        };
        let mut bytes = self.bytes.clone();
        bytes[at..at + 8].copy_from_slice(&place.offset.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&place.size.to_le_bytes());
        Some(bytes)
    }
}
