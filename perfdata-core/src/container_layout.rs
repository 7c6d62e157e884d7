//! Where everything stands in a container: what a recording's model does not say, but an exact copy needs.

use std::fmt;

use crate::feature::FeatureId;
use crate::header::{ContainerKind, FileHeader, FileSection, WordSize};

/// A thing in a file that has a place of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The header.
    Header,
    /// The ids of one event, by its place in the list.
    Ids(usize),
    /// The attributes, each with the place of its ids.
    Attrs,
    /// Names of events.
    EventTypes,
    /// The records.
    Data,
    /// The places of the feature sections.
    FeatureTable,
    /// One feature section, by its number.
    Feature(u32),
    /// Bytes that nothing points at.
    Gap,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Header => f.write_str("the header"),
            Part::Ids(event) => write!(f, "the ids of event {event}"),
            Part::Attrs => f.write_str("the attributes"),
            Part::EventTypes => f.write_str("the names of events"),
            Part::Data => f.write_str("the records"),
            Part::FeatureTable => f.write_str("the feature table"),
            Part::Feature(id) => write!(f, "feature {}", FeatureId(*id)),
            Part::Gap => f.write_str("a gap"),
        }
    }
}

/// A part and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// What it is.
    pub part: Part,
    /// Where it stands.
    pub place: FileSection,
}

/// The places of everything in a file.
#[derive(Debug, Clone)]
pub struct FileLayout {
    /// The header as found.
    pub header: FileHeader,
    /// Of which words the feature bitmap is made.
    pub words: WordSize,
    /// Bytes of the file.
    pub len: u64,
    /// Every part that is there and takes room, and the records even if there are none, by offset. Gaps fill the rest
    /// of the file; only parts of a damaged file overlap.
    pub regions: Vec<Region>,
    /// The place of each event's ids as found, also where there are none.
    pub ids: Vec<FileSection>,
    /// The entries of the feature table as found, ascending by number. Without table (a recording that was never
    /// finished, a cut file) there are none.
    pub table: Vec<(u32, FileSection)>,
    /// Bits of the bitmap that no table explains.
    pub unexplained: bool,
}

impl FileLayout {
    /// The place of `part`.
    pub fn place(&self, part: Part) -> Option<FileSection> {
        self.regions.iter().find(|region| region.part == part).map(|region| region.place)
    }

    /// Whether two parts share bytes, as in files that perf inject damages, or the records, of which there are none,
    /// have their place in front of the header.
    pub fn overlaps(&self) -> bool {
        self.regions.first().is_some_and(|first| first.part == Part::Data)
            || self.regions.windows(2).any(|pair| match pair {
                [a, b] => a.place.end().is_none_or(|end| end > b.place.offset),
                _ => false,
            })
    }

    /// The parts that share bytes, in pairs, by offset.
    pub fn shared(&self) -> impl Iterator<Item = (Region, Region)> + '_ {
        let parts = self.regions.iter().filter(|region| region.part != Part::Gap && region.place.size > 0);
        // Of those before, one alone reaches farthest.
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

    /// The first two parts other than feature sections that share bytes: neither can be written without changing the
    /// other. Records of which there are none, but whose place is inside of the header, are such a part, too.
    pub fn conflict(&self) -> Option<(Region, Region)> {
        let parts = self.regions.iter().filter(|region| !matches!(region.part, Part::Gap | Part::Feature(_)));
        let mut farthest = None::<Region>;
        for &region in parts {
            let is_inside = |before: &Region| before.place.end().is_none_or(|end| end > region.place.offset);
            if let Some(before) = farthest.filter(is_inside) {
                return Some((before, region));
            }
            farthest = Some(region);
        }
        match self.regions.first() {
            Some(first) if first.part == Part::Data => {
                let header = self.regions.iter().find(|region| region.part == Part::Header)?;
                Some((*header, *first))
            }
            _ => None,
        }
    }

    /// The feature sections, by number, that the table tells of but that cannot be read: they are outside of the file,
    /// or what stands there belongs to another part.
    pub fn lost_sections(&self) -> impl Iterator<Item = (u32, FileSection)> + '_ {
        let is_there = |id: u32| self.regions.iter().any(|region| region.part == Part::Feature(id));
        self.table.iter().copied().filter(move |(id, place)| place.size > 0 && !is_there(*id))
    }

    /// The first part that has bytes of `place`.
    pub fn part_at(&self, place: &FileSection) -> Option<Part> {
        let parts = self.regions.iter().filter(|region| region.part != Part::Gap);
        parts.clone().find(|region| region.place.overlaps(place)).map(|region| region.part)
    }

    /// Sorts the regions by offset and adds the gaps between them.
    pub(crate) fn complete(&mut self) {
        self.regions.sort_by_key(|region| (region.place.offset, region.place.size, region.part));
        let mut with_gaps = Vec::with_capacity(self.regions.len());
        let mut here = 0;
        let gap = |from: u64, to: u64| Region {
            part: Part::Gap,
            place: FileSection { offset: from, size: to.saturating_sub(from) },
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

/// One metadata record at the head of a pipe: what the model does not say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// What it holds.
    pub content: SlotContent,
    /// `misc` of its header.
    pub misc: u16,
    /// Bytes behind the content: padding.
    pub padding: Vec<u8>,
}

/// What a metadata record holds.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotContent {
    /// An attribute, by its place in the list.
    Attr(usize),
    /// A feature section, by its number.
    Feature(u32),
    /// The empty last feature record, with the number that it carries.
    EndOfFeatures(u64),
    /// The tracing data (feature 1), and whether the record has the padding of perf 6.0.
    TracingData {
        /// The padding word, where there is one.
        pad: Option<u32>,
        /// Bytes of the record behind that.
        tail: Vec<u8>,
    },
    /// The build ids (feature 2), each in a HEADER_BUILD_ID record. No pipe is read as this: a later reader finds the
    /// records in the stream.
    BuildIds,
    /// A name of an event, by its place in the list.
    EventType(usize),
    /// A whole record that a later one made void.
    Verbatim(Vec<u8>),
}

impl Slot {
    /// A record without padding.
    pub fn new(content: SlotContent) -> Self {
        Slot { content, misc: 0, padding: Vec::new() }
    }

    /// The record that holds the `section` of a feature. Nothing for those that perf takes from a file only, and for
    /// empty ones: perf takes a record without a section for the end of the features.
    pub fn of_feature(id: FeatureId, section: &[u8]) -> Option<Self> {
        let slot = match id {
            FeatureId::TRACING_DATA => {
                let padding = vec![0; section.len().next_multiple_of(8).saturating_sub(section.len())];
                Slot { padding, ..Slot::new(SlotContent::TracingData { pad: Some(0), tail: Vec::new() }) }
            }
            FeatureId::BUILD_ID => Slot::new(SlotContent::BuildIds),
            _ if id.info().is_none_or(|info| info.from_pipe) => Slot::new(SlotContent::Feature(id.0)),
            _ => return None,
        };
        (!section.is_empty()).then_some(slot)
    }

    /// The feature section that it holds.
    pub fn feature(&self) -> Option<FeatureId> {
        match self.content {
            SlotContent::Feature(id) => Some(FeatureId(id)),
            SlotContent::TracingData { .. } => Some(FeatureId::TRACING_DATA),
            SlotContent::BuildIds => Some(FeatureId::BUILD_ID),
            _ => None,
        }
    }
}

impl SlotContent {
    /// Where it stands among the others: ascending in the pipes of today's perf.
    pub fn order(&self) -> impl Ord {
        match self {
            SlotContent::Attr(_) | SlotContent::EventType(_) | SlotContent::Verbatim(_) => (0, 0),
            SlotContent::Feature(id) => (1, *id),
            SlotContent::EndOfFeatures(_) => (2, 0),
            SlotContent::TracingData { .. } => (3, 0),
            SlotContent::BuildIds => (4, 0),
        }
    }
}

/// The head of a pipe: metadata records before the first other one.
#[derive(Debug, Clone, Default)]
pub struct PipeLayout {
    /// The records, in order.
    pub slots: Vec<Slot>,
}

/// How the recording stood in its container.
#[derive(Debug, Clone)]
pub enum ContainerLayout {
    /// In a file.
    File(FileLayout),
    /// In a pipe.
    Pipe(PipeLayout),
}

impl ContainerLayout {
    /// The container.
    pub fn container(&self) -> ContainerKind {
        match self {
            ContainerLayout::File(_) => ContainerKind::File,
            ContainerLayout::Pipe(_) => ContainerKind::Pipe,
        }
    }

    /// Whether the header says truly how many bytes of records there are. That of a recording that was never finished,
    /// or cut, does not; a pipe has no such number.
    pub fn is_finished(&self) -> bool {
        match self {
            ContainerLayout::File(file) => file.place(Part::Data).is_none_or(|data| data.size == file.header.data.size),
            ContainerLayout::Pipe(_) => true,
        }
    }
}
