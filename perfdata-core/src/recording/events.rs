//! The events of a recording, and the assignment of records to them.

use std::collections::HashMap;
use std::sync::Arc;

use binrw::Endian;
use foldhash::fast::RandomState;

use crate::attr::{Attr, SampleType};
use crate::content::Rewriter;
use crate::decode_context::DecodeContext;
use crate::record::fixed::TrailerForm;
use crate::record::{
    FixedRecord, MISC_MMAP_BUILD_ID, Mmap2, RawRecord, RecordType, Sample, SampleId, SampleOffsets,
    SampleView,
};

/// An attribute with the IDs of its instances (one for each CPU or task).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The attribute.
    pub attr: Attr,
    /// Event IDs.
    pub ids: Vec<u64>,
}

/// The events, and the assignment of records to them. Copies share the events until one of them
/// changes.
///
/// Their names are not here: the feature EVENT_DESC has them, in a pipe EVENT_UPDATE and
/// HEADER_EVENT_TYPE records, and of a recording without these perf makes some up from the
/// attributes. [`EventNames`](crate::names::EventNames) does all of this.
#[derive(Debug, Clone, Default)]
pub struct Events(Arc<EventTable>);

#[derive(Debug, Clone, Default)]
struct EventTable {
    list: Vec<Event>,
    /// Record forms, and the index of the form of each event: adjacent events with equal forms
    /// share one.
    forms: Vec<RecordForm>,
    form_of: Vec<usize>,
    by_id: EventsById,
    position: IdPosition,
    /// Whether an event requests build IDs of mapped files.
    request_build_ids: bool,
}

/// The index of the event with each ID. The kernel numbers events in sequence, so the IDs of a
/// recording are close to the first one, and an array contains them. A map contains all others.
#[derive(Debug, Clone, Default)]
struct EventsById {
    first: u64,
    /// The index plus 1 of the event with ID `first` and those after it; 0 for none.
    near: Vec<u32>,
    others: HashMap<u64, usize, RandomState>,
}

impl EventsById {
    /// Maximum number of IDs in the array.
    const NEAR: usize = 1 << 16;

    /// Adds an ID, unless an event has it.
    fn add(&mut self, id: u64, event: usize) {
        if self.is_empty() {
            self.first = id;
        }
        let next = u32::try_from(event.saturating_add(1)).ok();
        match (self.place(id).filter(|&at| at < Self::NEAR), next) {
            (Some(at), Some(next)) => {
                if at >= self.near.len() {
                    self.near.resize(at.saturating_add(1), 0);
                }
                let known = self.near.get_mut(at).filter(|known| **known == 0);
                known.into_iter().for_each(|known| *known = next);
            }
            _ => drop(self.others.entry(id).or_insert(event)),
        }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<usize> {
        match self.place(id).and_then(|at| self.near.get(at)) {
            Some(&next) if next > 0 => usize::try_from(next.wrapping_sub(1)).ok(),
            _ if self.others.is_empty() => None,
            _ => self.others.get(&id).copied(),
        }
    }

    #[inline]
    fn place(&self, id: u64) -> Option<usize> {
        usize::try_from(id.wrapping_sub(self.first)).ok()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.near.is_empty() && self.others.is_empty()
    }
}

/// Form of the records of an event.
#[derive(Debug, Clone)]
struct RecordForm {
    layout: DecodeContext,
    offsets: SampleOffsets,
    trailer: TrailerForm,
}

impl EventTable {
    #[inline]
    fn form(&self, event: usize) -> Option<&RecordForm> {
        self.forms.get(*self.form_of.get(event)?)
    }
}

/// Position of the event ID in records, according to the first attribute's `sample_type`; perf
/// requires all attributes to agree.
#[derive(Debug, Clone, Copy, Default)]
struct IdPosition {
    /// Offset in bytes from the start of a SAMPLE.
    in_sample: Option<usize>,
    /// Offset in bytes from the end of another kernel record.
    from_end: Option<usize>,
}

impl IdPosition {
    fn of(attr: &Attr) -> Self {
        let parts = attr.sample_type;
        let id = if parts.has(SampleType::IDENTIFIER) {
            SampleType::IDENTIFIER
        } else {
            SampleType::ID
        };
        IdPosition {
            in_sample: Sample::from_start(parts, id),
            from_end: SampleId::from_end(parts, id),
        }
    }
}

impl Events {
    /// Returns where the records of an event with `attr` carry its ID: bytes from the start of a
    /// SAMPLE, and from the end of other records. `None` if they carry none.
    pub fn id_place(attr: &Attr) -> Option<(usize, usize)> {
        let IdPosition {
            in_sample,
            from_end,
        } = IdPosition::of(attr);
        in_sample.zip(from_end)
    }

    /// Returns where the samples of all events have their time: bytes from the start of the record.
    /// `None` if some have none, or have it elsewhere.
    pub fn time_place(&self) -> Option<usize> {
        let place = |event: &Event| Sample::from_start(event.attr.sample_type, SampleType::TIME);
        let mut places = self.0.list.iter().map(place);
        let first = places.next()??;
        places.all(|place| place == Some(first)).then_some(first)
    }

    /// Appends an event.
    pub fn push(&mut self, event: Event) {
        let EventTable {
            list,
            forms,
            form_of,
            by_id,
            position,
            request_build_ids,
        } = Arc::make_mut(&mut self.0);
        if list.is_empty() {
            *position = IdPosition::of(&event.attr);
        }
        for &id in &event.ids {
            by_id.add(id, list.len());
        }
        // It depends on the record ([`requests_build_ids`](Self::requests_build_ids)), and only one
        // of the events that perf records together requests them.
        *request_build_ids |= event.attr.flags.build_id() != 0;
        let layout = DecodeContext::of_attr(&event.attr).with_requests_build_ids(false);
        if forms.last().is_none_or(|form| form.layout != layout) {
            forms.push(RecordForm {
                layout,
                offsets: SampleOffsets::of(&layout),
                trailer: TrailerForm::of(&layout),
            });
        }
        form_of.push(forms.len().saturating_sub(1));
        list.push(event);
    }

    /// Returns the events for modification; pass the result to `Events::from_iter`.
    pub fn into_vec(self) -> Vec<Event> {
        Arc::unwrap_or_clone(self.0).list
    }

    /// Returns the events without their IDs. Only a single event works without IDs.
    pub fn without_ids(self) -> Self {
        self.into_vec()
            .into_iter()
            .map(|event| Event {
                ids: Vec::new(),
                ..event
            })
            .collect()
    }

    /// Returns the event with this ID. For ID 0, returns the first event if no event has this ID:
    /// records about the time before the recording have ID 0 (tools/perf/util/evlist.c,
    /// evlist__id2evsel).
    #[inline]
    pub fn of_id(&self, id: u64) -> Option<usize> {
        match self.of_id_strict(id) {
            None if id == 0 && !self.0.list.is_empty() => Some(0),
            found => found,
        }
    }

    /// Returns the first event with this ID (evlist__id2evsel_strict).
    #[inline]
    pub fn of_id_strict(&self, id: u64) -> Option<usize> {
        self.0.by_id.get(id)
    }

    /// Returns whether any event has IDs.
    #[inline]
    pub fn have_ids(&self) -> bool {
        !self.0.by_id.is_empty()
    }

    /// Returns the event ID in `record`.
    #[inline]
    pub fn id_of(&self, record: &RawRecord<'_>) -> Option<u64> {
        if record.kind == RecordType::SAMPLE {
            record.word(self.0.position.in_sample?)
        } else if record.kind.is_kernel() {
            record.word(record.bytes.len().checked_sub(self.0.position.from_end?)?)
        } else {
            None
        }
    }

    /// Returns the index of the event that `record` belongs to (tools/perf/util/evlist.c,
    /// evlist__event2evsel); `None` if the ID is unknown or there are no events.
    #[inline]
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

    /// Returns whether the event of every record can be found: there is only one event, or the
    /// records of all events contain its ID at the same place (tools/perf/util/evlist.c,
    /// evlist__valid_sample_type).
    pub fn agree_on_ids(&self) -> bool {
        let mut places = self.0.list.iter().map(|event| Self::id_place(&event.attr));
        match places.next() {
            Some(first) if self.0.list.len() > 1 => {
                first.is_some() && places.all(|place| place == first)
            }
            _ => true,
        }
    }

    /// Returns whether records of all events have the same layout, in which case the event of a
    /// record does not matter.
    #[inline]
    pub fn have_one_layout(&self) -> bool {
        self.0.forms.len() <= 1
    }

    /// Returns the index of a SAMPLE's event and a view of the sample, without decoding it; `None`
    /// for other records and for unknown events.
    #[inline]
    pub fn look<'a>(&'a self, record: &RawRecord<'a>) -> Option<(usize, SampleView<'a>)> {
        if record.kind != RecordType::SAMPLE {
            return None;
        }
        let event = self.of_record(record)?;
        Some((event, self.0.form(event)?.offsets.look(record)))
    }

    /// Returns a view of a SAMPLE without decoding it; `None` for other records and for unknown
    /// events.
    #[inline]
    pub fn sample_view<'a>(&'a self, record: &RawRecord<'a>) -> Option<SampleView<'a>> {
        let form = self.0.form(self.of_record(record)?)?;
        (record.kind == RecordType::SAMPLE).then(|| form.offsets.look(record))
    }

    /// Appends a record in the other byte order to `out`, without decoding it. Returns false if
    /// this is not possible. See [`SampleOffsets::swap_into`] and [`FixedRecord`].
    #[inline]
    pub fn swap_record(&self, record: &RawRecord<'_>, out: &mut Vec<u8>) -> bool {
        if record.kind != RecordType::SAMPLE {
            let fixed = self.fixed_record(record);
            return fixed.map(|fixed| fixed.swap_into(out)).is_some();
        }
        let form = || self.0.form(self.of_record(record)?);
        form().is_some_and(|form| form.offsets.swap_into(record, out))
    }

    /// Returns a kernel record other than a SAMPLE if it consists of numbers at fixed places, one
    /// text at most, and the trailer of its event.
    #[inline]
    pub fn fixed_record<'a>(&self, record: &RawRecord<'a>) -> Option<FixedRecord<'a>> {
        let trailer = self.form_of(record).map(|form| form.trailer);
        let requests_build_ids = self.requests_build_ids(record);
        FixedRecord::with_trailer(record, trailer.unwrap_or_default(), requests_build_ids)
    }

    /// Returns whether the event of an MMAP2 record requests build IDs; if the record names no
    /// event, whether one of them does: the tools synthesize the mappings before the recording with
    /// the ID 0.
    #[inline]
    pub(crate) fn requests_build_ids(&self, record: &RawRecord<'_>) -> bool {
        if record.kind != RecordType::MMAP2 || !self.0.request_build_ids {
            return false;
        }
        let event = self.id_of(record).and_then(|id| self.of_id_strict(id));
        event
            .and_then(|event| self.0.list.get(event))
            .is_none_or(|event| event.attr.flags.build_id() != 0)
    }

    /// Returns whether an MMAP2 record contains an inode, although its `misc` announces a build ID.
    /// The kernel writes such records while another recorder requests build IDs, and perf up to 6.12
    /// writes past the end of a variable when it reads one of a large size.
    #[inline]
    pub fn has_false_build_id(&self, record: &RawRecord<'_>) -> bool {
        record.kind == RecordType::MMAP2
            && record.misc & MISC_MMAP_BUILD_ID != 0
            && !Mmap2::has_build_id(record, self.requests_build_ids(record))
    }

    /// Returns the form of `record`: that of its event, or of the first event if the ID is unknown.
    #[inline]
    fn form_of(&self, record: &RawRecord<'_>) -> Option<&RecordForm> {
        match self.0.forms.as_slice() {
            [form] => Some(form),
            _ => self.0.form(self.of_record(record).unwrap_or(0)),
        }
    }

    /// Appends a SAMPLE to `out` with only those of its parts that are in `parts`, and with at most
    /// `words` words of its callchain, without decoding it. Returns false if this is not possible.
    /// See [`SampleOffsets::keep_into`].
    pub fn keep_sample(
        &self,
        record: &RawRecord<'_>,
        parts: SampleType,
        words: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let form = || self.0.form(self.of_record(record)?);
        record.kind == RecordType::SAMPLE
            && form().is_some_and(|form| form.offsets.keep_into(record, parts, words, out))
    }

    /// Passes the fields of a SAMPLE of this event to `rewriter`, the words of its callchain to
    /// `chain`, and writes the new ones in place, without decoding it. Returns false if this is not
    /// possible. See [`SampleOffsets::rewrite`].
    #[inline]
    pub fn rewrite_sample<R: Rewriter>(
        &self,
        event: usize,
        sample: &mut [u8],
        endian: Endian,
        rewriter: &mut R,
        chain: impl FnOnce(&mut R, &mut [[u8; 8]]),
    ) -> bool {
        let form = self.0.form(event);
        form.is_some_and(|form| form.offsets.rewrite(sample, endian, rewriter, chain))
    }

    /// Replaces the counts in the read value of a SAMPLE of this event. See
    /// [`SampleOffsets::rewrite_counters`].
    pub fn rewrite_counters(
        &self,
        event: usize,
        sample: &mut [u8],
        endian: Endian,
        count: impl FnMut(Option<u64>, u64) -> u64,
    ) {
        if let Some(form) = self.0.form(event) {
            form.offsets.rewrite_counters(sample, endian, count);
        }
    }

    /// Passes the fields of a SAMPLE to `rewriter` and the words of its callchain to `chain`, as
    /// [`rewrite_sample`](Self::rewrite_sample) does, and ignores the new ones.
    #[inline]
    pub fn inspect_sample<R: Rewriter>(
        &self,
        sample: &RawRecord<'_>,
        rewriter: &mut R,
        chain: impl FnOnce(&mut R, &[[u8; 8]]),
    ) -> bool {
        let form = self.of_record(sample).and_then(|event| self.0.form(event));
        let (bytes, endian) = (sample.bytes, sample.endian);
        form.is_some_and(|form| form.offsets.inspect(bytes, endian, rewriter, chain))
    }

    /// Returns the time of a SAMPLE in nanoseconds on the recording's clock, without decoding the
    /// rest.
    #[inline]
    pub fn sample_time(&self, record: &RawRecord<'_>) -> Option<u64> {
        self.sample_view(record)?.time()
    }

    /// Returns the time of a kernel record in nanoseconds on the recording's clock, without
    /// decoding the rest.
    #[inline]
    pub fn time(&self, record: &RawRecord<'_>) -> Option<u64> {
        if record.kind == RecordType::SAMPLE {
            return self.sample_time(record);
        }
        record.word(self.place_in_trailer(record, SampleType::TIME)?)
    }

    /// Returns the process and the thread in the trailer of a kernel record other than a sample:
    /// the thread that ran when the kernel wrote the record.
    pub fn trailer_tid(&self, record: &RawRecord<'_>) -> Option<(u32, u32)> {
        record.pair(self.place_in_trailer(record, SampleType::TID)?)
    }

    /// Returns the CPU in the trailer of a kernel record other than a sample.
    pub fn trailer_cpu(&self, record: &RawRecord<'_>) -> Option<u32> {
        let at = self.place_in_trailer(record, SampleType::CPU)?;
        Some(record.pair(at)?.0)
    }

    /// Returns the offset of a part of the trailer in bytes from the start of the record.
    #[inline]
    fn place_in_trailer(&self, record: &RawRecord<'_>, part: SampleType) -> Option<usize> {
        let layout = &self.form_of(record)?.layout;
        let from_end = SampleId::from_end(layout.sample_type, part)?;
        let has_trailer =
            record.kind != RecordType::SAMPLE && record.kind.is_kernel() && layout.sample_id_all;
        if has_trailer {
            record.bytes.len().checked_sub(from_end)
        } else {
            None
        }
    }

    /// Returns the layout of `record`: that of its event, or of the first event if the ID is
    /// unknown (the trailer of a record is the same for all events that perf records together).
    #[inline]
    pub fn layout_of(&self, record: &RawRecord<'_>) -> DecodeContext {
        self.form_of(record)
            .map(|form| form.layout)
            .unwrap_or_default()
            .with_requests_build_ids(self.requests_build_ids(record))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An ID belongs to the first event that has it, wherever it is stored.
    #[test]
    fn ids_belong_to_the_first_event() {
        let near = EventsById::NEAR as u64;
        let lists: [&[u64]; 4] = [
            &[100, 101, 99, 100],
            &[100 + near, 99 + near, 0, 101],
            &[u64::MAX, 100 + near, 99, 5_000_000],
            &[],
        ];
        let events = lists.iter().map(|ids| Event {
            attr: Attr::default(),
            ids: ids.to_vec(),
        });
        let events: Events = events.collect();
        for id in lists
            .concat()
            .into_iter()
            .chain([1, 98, 102, near, u64::MAX - 1])
        {
            let expected = lists.iter().position(|ids| ids.contains(&id));
            assert_eq!(events.of_id_strict(id), expected, "{id}");
        }
        assert!(events.have_ids() && !events.without_ids().have_ids());
    }
}
