//! The model: what a recording says, whatever container holds it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use binrw::Endian;
use foldhash::fast::RandomState;

use crate::attr::{Attr, SampleType};
use crate::error::Result;
use crate::feature::{Feature, FeatureId, Section};
use crate::header::Magic;
use crate::layout::Layout;
use crate::read::Limits;
use crate::record::{EventTypeName, RawRecord, RecordType, SampleOffsets, SampleView};

/// An attribute with the ids of its instances (one for each CPU or task).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The attribute.
    pub attr: Attr,
    /// Event ids.
    pub ids: Vec<u64>,
}

/// Everything about a recording that is not a record of what happened.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Byte order of every number.
    pub endian: Endian,
    /// Version of the format.
    pub magic: Magic,
    /// The events, in the recorder's order.
    pub events: Events,
    /// Names of events (before 3.12).
    pub event_types: Vec<EventTypeName>,
    /// Feature sections by number: their bytes in the recording's byte order. A map, since their order in a file is
    /// that of the numbers.
    pub features: BTreeMap<u32, Vec<u8>>,
    /// How far a reader goes with what the recording asks for; no part of what it says.
    pub limits: Limits,
}

impl Recording {
    /// A recording without events and features.
    pub fn new(endian: Endian) -> Self {
        Recording {
            endian,
            magic: Magic::default(),
            events: Events::default(),
            event_types: Vec::new(),
            features: BTreeMap::new(),
            limits: Limits::default(),
        }
    }

    /// NRCPUS.available, on which the form of CPU_TOPOLOGY depends; 0 where it is not known.
    pub fn nr_cpus_available(&self) -> u32 {
        match self.feature(FeatureId::NRCPUS) {
            Some(Ok(Section { value: Feature::NrCpus(cpus), .. })) => cpus.available,
            _ => 0,
        }
    }

    /// The section of a feature, decoded; `None` where there is none.
    ///
    /// # Errors
    /// A section that is damaged; offsets are relative to it.
    pub fn feature(&self, id: FeatureId) -> Option<Result<Section>> {
        let bytes = self.features.get(&id.0)?;
        let nr_cpus_available = if id == FeatureId::NRCPUS { 0 } else { self.nr_cpus_available() };
        Some(Section::decode(id, bytes, self.endian, &Layout { nr_cpus_available, ..Layout::default() }))
    }

    /// Replaces, or adds, the section of a feature.
    ///
    /// # Errors
    /// A value that cannot be encoded.
    pub fn set_feature(&mut self, id: FeatureId, value: Feature) -> Result<()> {
        let bytes = Section { id, value, tail: Vec::new() }.encode(self.endian)?;
        self.features.insert(id.0, bytes);
        Ok(())
    }
}

/// The events, and which of them a record belongs to. A copy is the same events until one of the two changes.
///
/// Their names are not here: the feature EVENT_DESC has them, in a pipe EVENT_UPDATE and HEADER_EVENT_TYPE records, and
/// of a recording without these perf makes some up from the attributes. `EventNames` in `perfdata-session`
/// does all of this.
#[derive(Debug, Clone, Default)]
pub struct Events(Arc<Table>);

#[derive(Debug, Clone, Default)]
struct Table {
    list: Vec<Event>,
    /// The forms of records, and the place of each event's: events that stand side by side and have the same share one.
    forms: Vec<Form>,
    form_of: Vec<usize>,
    by_id: HashMap<u64, usize, RandomState>,
    position: IdPosition,
}

/// How the records of an event are laid out.
#[derive(Debug, Clone)]
struct Form {
    layout: Layout,
    offsets: SampleOffsets,
}

impl Table {
    fn form(&self, event: usize) -> Option<&Form> {
        self.forms.get(*self.form_of.get(event)?)
    }
}

/// Where records carry their event id, by the first attribute's `sample_type`; perf demands that all agree.
#[derive(Debug, Clone, Copy, Default)]
struct IdPosition {
    /// Bytes from the start of a SAMPLE.
    in_sample: Option<usize>,
    /// Bytes from the end of another kernel record.
    from_end: Option<usize>,
}

impl IdPosition {
    fn of(attr: &Attr) -> Self {
        // The header or, from the end, the id itself, and the parts between.
        let at = |parts: &[SampleType]| {
            let between = parts.iter().filter(|&&part| attr.sample_type.has(part)).count();
            Some(between.saturating_add(1).saturating_mul(8))
        };
        if attr.sample_type.has(SampleType::IDENTIFIER) {
            IdPosition { in_sample: Some(8), from_end: Some(8) }
        } else if attr.sample_type.has(SampleType::ID) {
            IdPosition {
                in_sample: at(&[SampleType::IP, SampleType::TID, SampleType::TIME, SampleType::ADDR]),
                from_end: at(&[SampleType::CPU, SampleType::STREAM_ID]),
            }
        } else {
            IdPosition::default()
        }
    }
}

impl Events {
    /// Adds an event behind the others.
    pub fn push(&mut self, event: Event) {
        let Table { list, forms, form_of, by_id, position } = Arc::make_mut(&mut self.0);
        if list.is_empty() {
            *position = IdPosition::of(&event.attr);
        }
        for &id in &event.ids {
            by_id.entry(id).or_insert(list.len());
        }
        let layout = Layout::of_attr(&event.attr);
        if forms.last().is_none_or(|form| form.layout != layout) {
            forms.push(Form { layout, offsets: SampleOffsets::of(&layout) });
        }
        form_of.push(forms.len().saturating_sub(1));
        list.push(event);
    }

    /// The events, for changing them: give the result to `Events::from_iter`.
    pub fn into_vec(self) -> Vec<Event> {
        Arc::unwrap_or_clone(self.0).list
    }

    /// The events without their ids, which only one event alone can do without.
    pub fn without_ids(self) -> Self {
        self.into_vec().into_iter().map(|event| Event { ids: Vec::new(), ..event }).collect()
    }

    /// The event that has the id, or any event for 0, which records of the time before the recording carry
    /// (tools/perf/util/evlist.c, evlist__id2evsel).
    pub fn of_id(&self, id: u64) -> Option<usize> {
        match self.of_id_strict(id) {
            None if id == 0 && !self.0.list.is_empty() => Some(0),
            found => found,
        }
    }

    /// The first event that has the id (evlist__id2evsel_strict).
    pub fn of_id_strict(&self, id: u64) -> Option<usize> {
        self.0.by_id.get(&id).copied()
    }

    /// Whether any event has ids.
    pub fn have_ids(&self) -> bool {
        !self.0.by_id.is_empty()
    }

    /// The id that `record` carries.
    pub fn id_of(&self, record: &RawRecord<'_>) -> Option<u64> {
        if record.kind == RecordType::SAMPLE {
            record.word(self.0.position.in_sample?)
        } else if record.kind.is_kernel() {
            record.word(record.bytes.len().checked_sub(self.0.position.from_end?)?)
        } else {
            None
        }
    }

    /// The event that `record` belongs to (tools/perf/util/evlist.c, evlist__event2evsel): its place in the list.
    /// `None` where the id is not known, or there are no events.
    pub fn of_record(&self, record: &RawRecord<'_>) -> Option<usize> {
        let first = self.0.forms.first()?;
        if self.0.list.len() == 1
            || (record.kind != RecordType::SAMPLE && !first.layout.sample_id_all)
            || !record.kind.is_kernel()
        {
            return Some(0);
        }
        self.of_id(self.id_of(record)?)
    }

    /// Whether records of all events have the same layout, so that it does not matter whose a record is.
    pub fn have_one_layout(&self) -> bool {
        self.0.forms.len() <= 1
    }

    /// The place of a SAMPLE's event in the list, and a look at the sample without decoding it; `None` for other records,
    /// and where the event is not known.
    #[inline]
    pub fn look<'a>(&'a self, record: &RawRecord<'a>) -> Option<(usize, SampleView<'a>)> {
        if record.kind != RecordType::SAMPLE {
            return None;
        }
        let event = self.of_record(record)?;
        Some((event, self.0.form(event)?.offsets.look(record)))
    }

    /// A look at a SAMPLE without decoding it; `None` for other records, and where the event is not known.
    #[inline]
    pub fn sample_view<'a>(&'a self, record: &RawRecord<'a>) -> Option<SampleView<'a>> {
        let form = self.0.form(self.of_record(record)?)?;
        (record.kind == RecordType::SAMPLE).then(|| form.offsets.look(record))
    }

    /// Appends a SAMPLE in the other byte order to `out`, without decoding it; false where that is not possible, as for
    /// other records. See [`SampleOffsets::swap_into`].
    #[inline]
    pub fn swap_sample(&self, record: &RawRecord<'_>, out: &mut Vec<u8>) -> bool {
        let form = || self.0.form(self.of_record(record)?);
        record.kind == RecordType::SAMPLE && form().is_some_and(|form| form.offsets.swap_into(record, out))
    }

    /// The time of a SAMPLE, in nanoseconds on the recording's clock, without decoding the rest of it.
    #[inline]
    pub fn sample_time(&self, record: &RawRecord<'_>) -> Option<u64> {
        self.sample_view(record)?.time()
    }

    /// The time of a record of the kernel, in nanoseconds on the recording's clock, without decoding the rest of it.
    pub fn time(&self, record: &RawRecord<'_>) -> Option<u64> {
        if record.kind == RecordType::SAMPLE {
            return self.sample_time(record);
        }
        let layout = self.layout_of(record);
        let behind = SampleType::ID.0 | SampleType::STREAM_ID.0 | SampleType::CPU.0 | SampleType::IDENTIFIER.0;
        let words = (layout.sample_type.0 & behind).count_ones().saturating_add(1);
        let from_end = (words as usize).saturating_mul(8);
        let timed = record.kind.is_kernel() && layout.sample_id_all && layout.sample_type.has(SampleType::TIME);
        if timed { record.word(record.bytes.len().checked_sub(from_end)?) } else { None }
    }

    /// The layout of `record`: its event's, or the first event's where the id is not known (the trailer of a record
    /// is the same for all events that perf records together).
    pub fn layout_of(&self, record: &RawRecord<'_>) -> Layout {
        let event = self.of_record(record).unwrap_or(0);
        self.0.form(event).map(|form| form.layout).unwrap_or_default()
    }
}

impl std::ops::Deref for Events {
    type Target = [Event];
    fn deref(&self) -> &[Event] {
        &self.0.list
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut all = Events::default();
        events.into_iter().for_each(|event| all.push(event));
        all
    }
}
