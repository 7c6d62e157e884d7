//! Offsets and padding in a container: the data outside the recording's model that an exact copy
//! needs.

use std::fmt;

use crate::feature::FeatureId;
use crate::header::{ContainerKind, FileHeader, FileSection, WordSize};

/// A part of a file with its own location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The header.
    Header,
    /// The IDs of one event, by its index in the list.
    Ids(usize),
    /// The attributes, each with the location of its IDs.
    Attrs,
    /// Event names.
    EventTypes,
    /// The records.
    Data,
    /// The locations of the feature sections.
    FeatureTable,
    /// One feature section.
    Feature(FeatureId),
    /// Bytes to which no offset points.
    Gap,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Header => f.write_str("the header"),
            Part::Ids(event) => write!(f, "the IDs of event {event}"),
            Part::Attrs => f.write_str("the attributes"),
            Part::EventTypes => f.write_str("the names of events"),
            Part::Data => f.write_str("the records"),
            Part::FeatureTable => f.write_str("the feature table"),
            Part::Feature(id) => write!(f, "feature {id}"),
            Part::Gap => f.write_str("a gap"),
        }
    }
}

/// A part and its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The part.
    pub part: Part,
    /// Its location.
    pub place: FileSection,
}

/// The locations of all parts of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileLayout {
    /// The header as read.
    pub header: FileHeader,
    /// Size of the words of the feature bitmap.
    pub words: WordSize,
    /// Size of the file in bytes.
    pub len: u64,
    /// All parts that are present and not empty, and the records even if there are none, by offset.
    /// Gaps cover the rest of the file; parts overlap only in a corrupt file.
    pub regions: Vec<Region>,
    /// The location of each event's IDs as read, even if there are none.
    pub ids: Vec<FileSection>,
    /// The entries of the feature table as read, ascending by number. Empty if there is no table
    /// (an unfinished recording, a truncated file).
    pub table: Vec<(FeatureId, FileSection)>,
    /// Whether the bitmap has bits set although no table was found.
    pub unexplained: bool,
}

impl FileLayout {
    /// Returns the location of `part`.
    pub fn place(&self, part: Part) -> Option<FileSection> {
        self.regions
            .iter()
            .find(|region| region.part == part)
            .map(|region| region.place)
    }

    /// Returns whether two parts share bytes, as in files that perf inject corrupts, or the
    /// location of empty records precedes the header.
    pub fn overlaps(&self) -> bool {
        self.regions
            .first()
            .is_some_and(|first| first.part == Part::Data)
            || self.regions.windows(2).any(|pair| match pair {
                [a, b] => a.place.end().is_none_or(|end| end > b.place.offset),
                _ => false,
            })
    }

    /// Returns the pairs of parts that share bytes, by offset.
    pub fn shared(&self) -> impl Iterator<Item = (Region, Region)> + '_ {
        let parts = self
            .regions
            .iter()
            .filter(|region| region.part != Part::Gap && region.place.size > 0);
        // It is enough to compare with the part that ends last.
        parts
            .scan(None::<Region>, |farthest, &region| {
                let before = farthest.filter(|before| before.place.overlaps(&region.place));
                if farthest.is_none_or(|before| before.place.end() <= region.place.end()) {
                    *farthest = Some(region);
                }
                Some(before.map(|before| (before, region)))
            })
            .flatten()
    }

    /// Returns the first two parts other than feature sections that share bytes: neither can be
    /// written without changing the other. This includes empty records whose location is inside the
    /// header.
    pub fn conflict(&self) -> Option<(Region, Region)> {
        let parts = self
            .regions
            .iter()
            .filter(|region| !matches!(region.part, Part::Gap | Part::Feature(_)));
        let mut farthest = None::<Region>;
        for &region in parts {
            let is_inside = |before: &Region| {
                before
                    .place
                    .end()
                    .is_none_or(|end| end > region.place.offset)
            };
            if let Some(before) = farthest.filter(is_inside) {
                return Some((before, region));
            }
            farthest = Some(region);
        }
        match self.regions.first() {
            Some(first) if first.part == Part::Data => {
                let header = self
                    .regions
                    .iter()
                    .find(|region| region.part == Part::Header)?;
                Some((*header, *first))
            }
            _ => None,
        }
    }

    /// Returns whether the file can contain feature sections. They follow the records: without the
    /// size of the records in the header, or without a bitmap, readers would interpret sections as
    /// records.
    pub fn has_room_for_features(&self) -> bool {
        let is_unfinished = self
            .place(Part::Data)
            .is_some_and(|data| data.size != self.header.data.size);
        self.place(Part::FeatureTable).is_some()
            || !is_unfinished && !self.unexplained && self.header.features.is_some()
    }

    /// Returns the feature sections, by number, that have an entry in the table but cannot be read:
    /// they are outside the file, or their bytes belong to another part.
    pub fn lost_sections(&self) -> impl Iterator<Item = (FeatureId, FileSection)> + '_ {
        let is_there = |id: FeatureId| {
            self.regions
                .iter()
                .any(|region| region.part == Part::Feature(id))
        };
        self.table
            .iter()
            .copied()
            .filter(move |(id, place)| place.size > 0 && !is_there(*id))
    }

    /// Returns the first part that shares bytes with `place`.
    pub fn part_at(&self, place: &FileSection) -> Option<Part> {
        let parts = self
            .regions
            .iter()
            .filter(|region| region.part != Part::Gap);
        parts
            .clone()
            .find(|region| region.place.overlaps(place))
            .map(|region| region.part)
    }

    /// Sorts the regions by offset and adds the gaps between them.
    pub(crate) fn complete(&mut self) {
        self.regions
            .sort_by_key(|region| (region.place.offset, region.place.size, region.part));
        let mut with_gaps = Vec::with_capacity(self.regions.len());
        let mut here = 0;
        let gap = |from: u64, to: u64| Region {
            part: Part::Gap,
            place: FileSection {
                offset: from,
                size: to.saturating_sub(from),
            },
        };
        for &region in &self.regions {
            if region.place.offset > here {
                with_gaps.push(gap(here, region.place.offset));
            }
            with_gaps.push(region);
            here = here.max(region.place.end().unwrap_or(here));
        }
        if self.len > here {
            with_gaps.push(gap(here, self.len));
        }
        self.regions = with_gaps;
    }
}

/// One metadata record at the start of a pipe: the data outside the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Content of the record.
    pub content: SlotContent,
    /// `misc` of its header.
    pub misc: u16,
    /// Padding after the content.
    pub padding: Vec<u8>,
    /// Whether the size of the record is a multiple of 8 bytes, and remains one when the content
    /// changes.
    pub is_aligned: bool,
}

/// Content of a metadata record.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotContent {
    /// An attribute, by its index in the list.
    Attr(usize),
    /// A feature section.
    Feature(FeatureId),
    /// The empty last feature record, with its feature number.
    EndOfFeatures(u64),
    /// The tracing data (feature 1), and whether the record has the padding of perf 6.0.
    TracingData {
        /// The padding word, if present.
        pad: Option<u32>,
        /// Bytes of the record after the padding word.
        tail: Vec<u8>,
    },
    /// The build IDs (feature 2), each in a HEADER_BUILD_ID record. Readers of pipes do not produce
    /// this: they return the records with the rest of the stream.
    BuildIds,
    /// An event name, by its index in the list.
    EventType(usize),
    /// A complete record that a later one replaced.
    Verbatim(Vec<u8>),
}

impl Slot {
    /// Returns a record without padding.
    pub fn new(content: SlotContent) -> Self {
        Slot {
            content,
            misc: 0,
            padding: Vec::new(),
            is_aligned: false,
        }
    }

    /// Returns the record that contains the `section` of a feature. Returns `None` for features
    /// that perf reads only from a file, and for empty sections: perf treats a record without a
    /// section as the end of the features.
    pub fn of_feature(id: FeatureId, section: &[u8]) -> Option<Self> {
        let slot = match id {
            FeatureId::TRACING_DATA => {
                let padding = vec![
                    0;
                    section
                        .len()
                        .next_multiple_of(8)
                        .saturating_sub(section.len())
                ];
                Slot {
                    padding,
                    ..Slot::new(SlotContent::TracingData {
                        pad: Some(0),
                        tail: Vec::new(),
                    })
                }
            }
            FeatureId::BUILD_ID => Slot::new(SlotContent::BuildIds),
            _ if id.info().is_none_or(|info| info.from_pipe) => Slot::new(SlotContent::Feature(id)),
            _ => return None,
        };
        (!section.is_empty()).then_some(slot)
    }

    /// Returns the feature whose section the record contains.
    pub fn feature(&self) -> Option<FeatureId> {
        match self.content {
            SlotContent::Feature(id) => Some(id),
            SlotContent::TracingData { .. } => Some(FeatureId::TRACING_DATA),
            SlotContent::BuildIds => Some(FeatureId::BUILD_ID),
            _ => None,
        }
    }
}

impl SlotContent {
    /// Returns the sort key for the order of records in pipes written by current perf.
    pub fn order(&self) -> impl Ord {
        match self {
            SlotContent::Attr(_) | SlotContent::EventType(_) | SlotContent::Verbatim(_) => (0, 0),
            SlotContent::Feature(id) => (1, id.0),
            SlotContent::EndOfFeatures(_) => (2, 0),
            SlotContent::TracingData { .. } => (3, 0),
            SlotContent::BuildIds => (4, 0),
        }
    }
}

/// The start of a pipe: the metadata records before the first other record.
#[derive(Debug, Clone, Default)]
pub struct PipeLayout {
    /// The records, in order.
    pub slots: Vec<Slot>,
}

/// DecodeContext of the recording in its container.
#[derive(Debug, Clone)]
pub enum ContainerLayout {
    /// In a file.
    File(FileLayout),
    /// In a pipe.
    Pipe(PipeLayout),
}

impl ContainerLayout {
    /// Returns the offset of a feature section in a file, in bytes.
    pub fn section_offset(&self, id: FeatureId) -> Option<u64> {
        match self {
            ContainerLayout::File(file) => {
                let entry = file.table.iter().find(|(found, _)| *found == id);
                entry.map(|(_, place)| place.offset)
            }
            ContainerLayout::Pipe(_) => None,
        }
    }

    /// Returns the container.
    pub fn container(&self) -> ContainerKind {
        match self {
            ContainerLayout::File(_) => ContainerKind::File,
            ContainerLayout::Pipe(_) => ContainerKind::Pipe,
        }
    }

    /// Returns whether the size of the data section in the header is correct. It is wrong if the
    /// recording is unfinished or truncated; a pipe has no such size.
    pub fn is_finished(&self) -> bool {
        match self {
            ContainerLayout::File(file) => file
                .place(Part::Data)
                .is_none_or(|data| data.size == file.header.data.size),
            ContainerLayout::Pipe(_) => true,
        }
    }
}
