//! Plans: the order of the parts of a recording in the output, and the bytes between them.

use perfdata_core::Recording;
use perfdata_core::container_layout::{FileLayout, Part, PipeLayout, Region, Slot, SlotContent};
use perfdata_core::feature::FeatureId;
use perfdata_core::header::{FileHeader, FileSection, WordSize};

/// The order of a file's parts.
#[derive(Debug, Clone)]
pub struct FilePlan {
    /// The parts in file order. The offsets are those of the recording that the plan was made from;
    /// a part that follows another one moves with it.
    pub(crate) steps: Vec<Region>,
    /// The layout of the recording that the plan was made from, if any.
    pub(crate) found: Option<FileLayout>,
    /// Whether every part keeps its offset, because parts of the file share bytes.
    pub(crate) pinned: bool,
}

impl FilePlan {
    /// Returns the layout of `perf record` (tools/perf/util/header.c,
    /// perf_session__do_write_header): header, IDs, attributes, records, feature table, sections.
    /// All events must be known before the first record is written.
    pub fn standard() -> Self {
        Self::of(&[Part::Header, Part::Attrs, Part::EventTypes, Part::Data])
    }

    /// Returns the layout for a stream whose events become known only after the records: IDs and
    /// attributes come last.
    pub fn events_last() -> Self {
        Self::of(&[Part::Header, Part::Data, Part::Attrs])
    }

    fn of(parts: &[Part]) -> Self {
        let steps = parts
            .iter()
            .map(|&part| Region {
                part,
                place: FileSection::default(),
            })
            .collect();
        FilePlan {
            steps,
            found: None,
            pinned: false,
        }
    }

    /// Returns the layout of an existing file, with its gaps.
    pub fn exact(found: &FileLayout) -> Self {
        FilePlan {
            steps: found.regions.clone(),
            found: Some(found.clone()),
            pinned: found.overlaps(),
        }
    }

    /// Returns the layout of an existing file in which feature sections may share bytes; each
    /// section gets separate bytes in the output. Other parts that share bytes cannot be separated:
    /// see [`FileLayout::conflict`].
    pub fn apart(found: &FileLayout) -> Self {
        let others: Vec<_> = found
            .regions
            .iter()
            .filter(|region| !matches!(region.part, Part::Feature(_) | Part::Gap))
            .collect();
        let is_inside = |step: &Region| {
            matches!(step.part, Part::Feature(_))
                && others.iter().any(|other| other.place.overlaps(&step.place))
        };
        let (inside, mut steps): (Vec<_>, Vec<_>) =
            found.regions.iter().copied().partition(is_inside);
        steps.extend(inside);
        FilePlan {
            steps,
            found: Some(found.clone()),
            pinned: false,
        }
    }

    /// Returns the word size of the feature bitmap.
    pub(crate) fn words(&self) -> WordSize {
        self.found
            .as_ref()
            .map_or(WordSize::Bits64, |found| found.words)
    }

    /// Returns the original header, or an empty one of the current size.
    pub(crate) fn header(&self, recording: &Recording) -> FileHeader {
        match &self.found {
            Some(found) => found.header.clone(),
            None => FileHeader {
                magic: recording.magic,
                size: FileHeader::SIZE,
                attr_size: 0,
                attrs: FileSection::default(),
                data: FileSection::default(),
                event_types: FileSection::default(),
                features: Some(Default::default()),
            },
        }
    }

    /// Returns whether the attributes follow the records.
    pub(crate) fn has_events_last(&self) -> bool {
        self.position(Part::Attrs) > self.position(Part::Data)
    }

    /// Adapts the IDs to the current events of the recording. IDs precede the attributes. An event
    /// without IDs has an empty section, except in files without such sections.
    pub(crate) fn settle_events(&mut self, recording: &Recording) {
        let count = recording.events.len();
        let mut wanted: Vec<bool> = recording
            .events
            .iter()
            .map(|event| self.found.is_none() || !event.ids.is_empty())
            .collect();
        // IDs that keep their step need no new one.
        self.steps.retain(|step| match step.part {
            Part::Ids(event) => wanted.get_mut(event).is_some_and(std::mem::take),
            _ => true,
        });
        let last = self
            .steps
            .iter()
            .rposition(|step| matches!(step.part, Part::Ids(_)));
        let at = match last {
            Some(last) => last.saturating_add(1),
            None => self.position(Part::Attrs).unwrap_or(self.steps.len()),
        };
        let place = self.end_before(at);
        let missing = (0..count).filter(|&event| wanted.get(event) == Some(&true));
        let missing: Vec<Region> = missing
            .map(|event| Region {
                part: Part::Ids(event),
                place,
            })
            .collect();
        self.steps.splice(at..at, missing);
    }

    /// Adapts the steps after the records to the current features of the recording: removes missing
    /// sections, inserts new ones in ascending order, and puts the table after the records.
    pub(crate) fn settle_features(&mut self, recording: &Recording) {
        self.steps.retain(|step| match step.part {
            Part::Feature(id) => recording.features.contains_key(&id),
            _ => true,
        });
        for &id in recording.features.keys() {
            if self.steps.iter().any(|step| step.part == Part::Feature(id)) {
                continue;
            }
            let before = |step: &Region| matches!(step.part, Part::Feature(other) if other < id);
            let at = self
                .steps
                .iter()
                .rposition(before)
                .or_else(|| self.position(Part::FeatureTable));
            self.insert_behind(at.or_else(|| self.position(Part::Data)), Part::Feature(id));
        }
        let has_table = self.position(Part::FeatureTable).is_some();
        let entries = recording
            .features
            .len()
            .saturating_add(self.lost_entries(recording).count());
        if !has_table && entries > 0 {
            self.insert_behind(self.position(Part::Data), Part::FeatureTable);
        }
    }

    /// Returns the entries of the table whose sections could not be read, and which `recording`
    /// does not contain. They are preserved.
    pub(crate) fn lost_entries<'a>(
        &'a self,
        recording: &'a Recording,
    ) -> impl Iterator<Item = (FeatureId, FileSection)> + 'a {
        let lost = self.found.iter().flat_map(FileLayout::lost_sections);
        lost.filter(|(id, _)| !recording.features.contains_key(id))
    }

    fn position(&self, part: Part) -> Option<usize> {
        self.steps.iter().position(|step| step.part == part)
    }

    fn insert_behind(&mut self, at: Option<usize>, part: Part) {
        let at = at
            .map_or(self.steps.len(), |at| at.saturating_add(1))
            .min(self.steps.len());
        let place = self.end_before(at);
        self.steps.insert(at, Region { part, place });
    }

    /// Returns the offset after the part before step `at`, where a new part is inserted.
    fn end_before(&self, at: usize) -> FileSection {
        let before = at.checked_sub(1).and_then(|before| self.steps.get(before));
        FileSection {
            offset: before.and_then(|step| step.place.end()).unwrap_or(0),
            size: 0,
        }
    }
}

/// The metadata records at the head of a pipe.
#[derive(Debug, Clone)]
pub struct PipePlan {
    pub(crate) head: PipeLayout,
    /// The ID of the record that ends the features, unless the pipe already contains one.
    end: FeatureId,
    /// Whether this is the plan of an existing pipe.
    pub(crate) is_copy: bool,
}

impl PipePlan {
    /// The default ID of the record that ends the features. perf 5.14 to 6.19 define features below
    /// this number, and their `report` stops at any other number; later versions accept every
    /// number above those of the features.
    pub const END: FeatureId = FeatureId(32);

    /// Returns the records of an existing pipe.
    pub fn exact(found: &PipeLayout) -> Self {
        PipePlan {
            head: found.clone(),
            end: Self::END,
            is_copy: true,
        }
    }

    /// Returns the order of `perf record -o -` (tools/perf/builtin-record.c, record__synthesize):
    /// attributes, features in ascending order, tracing data; then the build IDs. The record that
    /// ends the features has the ID `end`, or a larger one if a feature has this ID or a larger
    /// one.
    pub fn standard(recording: &Recording, end: FeatureId) -> Self {
        let attrs = (0..recording.events.len()).map(SlotContent::Attr);
        let names = (0..recording.event_types.len()).map(SlotContent::EventType);
        let slots = attrs.chain(names).map(Slot::new).collect();
        PipePlan {
            head: PipeLayout { slots },
            end,
            is_copy: false,
        }
    }

    /// Adapts the records to the current events of the recording: new ones follow the others.
    pub(crate) fn settle_events(&mut self, recording: &Recording) {
        let slots = &mut self.head.slots;
        let event = |slot: &Slot| match slot.content {
            SlotContent::Attr(event) => Some(event),
            _ => None,
        };
        slots.retain(|slot| event(slot).is_none_or(|event| event < recording.events.len()));
        let known = slots
            .iter()
            .filter_map(event)
            .max()
            .map_or(0, |last| last.saturating_add(1));
        let at = slots
            .iter()
            .rposition(|slot| event(slot).is_some())
            .map_or(0, |at| at.saturating_add(1));
        slots.splice(
            at..at,
            (known..recording.events.len())
                .map(SlotContent::Attr)
                .map(Slot::new),
        );
    }

    /// Adapts the records to the current features of the recording: removes missing ones, and
    /// inserts new ones in ascending order.
    pub(crate) fn settle_features(&mut self, recording: &Recording) {
        let mut added = false;
        let slots = &mut self.head.slots;
        slots.retain(|slot| {
            slot.feature()
                .is_none_or(|id| recording.features.contains_key(&id))
        });
        for (&id, section) in &recording.features {
            if slots.iter().any(|slot| slot.feature() == Some(id)) {
                continue;
            }
            if let Some(slot) = Slot::of_feature(id, section) {
                let at = slots
                    .iter()
                    .rposition(|other| other.content.order() < slot.content.order());
                slots.insert(at.map_or(0, |at| at.saturating_add(1)), slot);
                added = true;
            }
        }
        // The records of an existing pipe remain unchanged, whatever record ends its features.
        if added {
            self.settle_end();
        }
    }

    /// Ensures that the record that ends the features has an ID above theirs: perf interprets any
    /// other ID as a feature.
    fn settle_end(&mut self) {
        let slots = &mut self.head.slots;
        let is_feature = |slot: &Slot| matches!(slot.content, SlotContent::Feature(_));
        let Some(last) = slots.iter().rposition(is_feature) else {
            return;
        };
        let highest = slots
            .iter()
            .filter(|slot| is_feature(slot))
            .filter_map(Slot::feature)
            .max();
        let least = highest.map_or(0, |id| u64::from(id.0) + 1);
        let mut ends = slots.iter_mut().filter_map(|slot| match &mut slot.content {
            SlotContent::EndOfFeatures(id) => Some(id),
            _ => None,
        });
        match ends.next_back() {
            Some(id) => *id = least.max(*id),
            None => {
                slots.insert(
                    last.saturating_add(1),
                    Slot::new(SlotContent::EndOfFeatures(least.max(u64::from(self.end.0)))),
                );
            }
        }
    }
}
