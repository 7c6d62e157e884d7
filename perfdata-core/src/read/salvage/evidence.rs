//! How well bytes pass for a record of a recording: by type, size, alignment, fields, event id and time.

use crate::attr::SampleType;
use crate::error::{Error, Problem};
use crate::feature::{FeatureId, SampleTime, Section};
use crate::layout::Layout;
use crate::read::salvage::report::{Foreknown, Ids};
use crate::record::{
    Body, CpuMode, EventIds, HeaderFeature, RawRecord, Record, RecordHeader, RecordType, SampleView, TABLE,
};
use crate::recording::Recording;

/// What is thought of a record.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It bears the id of an event, or a time near that of others.
    Sure,
    /// All fields fit, but nothing in it belongs to this recording alone.
    Likely,
    /// It can be read, but is not what the kernel or perf write today.
    Odd,
    /// It cannot be what it says.
    Bad(Error),
}

impl Verdict {
    /// Whether the record is as the kernel and perf write them.
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Verdict::Sure | Verdict::Likely)
    }
}

/// What is thought of a record, and which ids it bears.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    ids: EventIds,
}

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Self {
        Judgement { verdict, ids: EventIds::default() }
    }
}

/// What the records so far have shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evidence {
    /// What was found out by reading the recording before.
    before: Foreknown,
    /// The lowest and the highest time.
    times: Option<(u64, u64)>,
    /// The same of SAMPLE records.
    samples: Option<(u64, u64)>,
    /// Whether records bear ids of the recording's events.
    knows_ids: bool,
    /// Whether records of the kernel are believed.
    has_kernel_records: bool,
    /// Whether a record is believed that bears an id that no event has.
    has_strangers: bool,
    /// The types, a bit for each, of which there were records that are as they should be.
    regular: u128,
}

/// Nanoseconds that a record may be away from all others before its time speaks against it.
const NEAR: u64 = 3_600_000_000_000;

impl Evidence {
    pub(super) fn new(before: Foreknown) -> Self {
        Evidence { before, knows_ids: before.ids == Ids::Trusted, ..Evidence::default() }
    }

    /// Judges a whole record. None is believed that `perfconv verify` finds an error in.
    pub(super) fn judge(&self, raw: &RawRecord<'_>, recording: &Recording) -> Judgement {
        let events = &recording.events;
        let layout = events.layout_of(raw);
        if self.before.without_events && raw.kind.is_kernel() {
            let what = "no attribute says what is in it";
            let error = Error::new(format!("{} record", raw.kind), Problem::Unknown(what.into()));
            return Verdict::Bad(error.at(raw.offset)).into();
        }
        let record = match Record::decode(raw, &layout) {
            Ok(record) => record,
            Err(error) => return Verdict::Bad(error).into(),
        };
        if let Body::HeaderFeature(feature) = &record.body
            && let Err(error) = section(feature, recording)
        {
            return Verdict::Bad(error.within(raw.offset.saturating_add(16))).into();
        }
        let ids = record.event_ids(events);
        if let Some(id) = ids.unknown.filter(|_| self.knows_ids) {
            let error = Error::invalid(format!("{} record", raw.kind), "id", id.to_string(), "the id of an event");
            return Verdict::Bad(error.at(raw.offset)).into();
        }
        let tail_is_odd = match raw.kind {
            RecordType::SAMPLE => !record.tail.is_empty(),
            _ => record.tail.iter().any(|&byte| byte != 0),
        };
        // Nobody can read the kernel's records without an event.
        let is_odd =
            !is_regular(raw) || tail_is_odd || ids.unknown.is_some() || (events.is_empty() && raw.kind.is_kernel());
        let verdict = if is_odd {
            Verdict::Odd
        } else if !raw.kind.is_kernel() || (raw.kind != RecordType::SAMPLE && !layout.sample_id_all) {
            Verdict::Likely
        } else {
            let id = events.id_of(raw).filter(|_| events.have_ids());
            self.weigh(id.map(|id| id != 0), time(raw, recording))
        };
        Judgement { verdict, ids }
    }

    /// Judges a record in which nothing is wrong: by its id, which is that of an event or 0, if it has one, and its
    /// time.
    fn weigh(&self, has_id: Option<bool>, time: Option<u64>) -> Verdict {
        let near = time
            .zip(self.times)
            .map(|(time, (first, last))| time >= first.saturating_sub(NEAR) && time <= last.saturating_add(NEAR));
        match has_id {
            Some(true) if near != Some(false) => Verdict::Sure,
            None if near == Some(true) => Verdict::Sure,
            _ => Verdict::Likely,
        }
    }

    /// Judges a record that does not have to be looked at closely, and learns from it if it is sure.
    #[inline]
    pub(super) fn is_sure(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> bool {
        if raw.kind == RecordType::SAMPLE
            && is_regular(raw)
            && !self.before.without_events
            && let Some(sample) = recording.events.sample_view(raw).filter(SampleView::is_whole)
        {
            let events = &recording.events;
            let ids = sample.event_ids(events);
            let time = sample.time();
            let has_id = sample.identifier().or(sample.id()).filter(|_| events.have_ids()).map(|id| id != 0);
            let verdict = self.weigh(has_id, time.filter(|&time| says_something(time)));
            let is_sure = ids.unknown.is_none() && matches!(verdict, Verdict::Sure);
            if is_sure {
                self.regular |= 1 << RecordType::SAMPLE.0;
                self.knows_ids |= ids.known;
                self.has_kernel_records = true;
                time.filter(|&time| says_something(time)).into_iter().for_each(|time| widen(&mut self.times, time));
                time.filter(|&time| time != 0).into_iter().for_each(|time| widen(&mut self.samples, time));
            }
            return is_sure;
        }
        if !raw.kind.is_kernel() {
            return false;
        }
        let judgement = self.judge(raw, recording);
        let is_sure = matches!(judgement.verdict, Verdict::Sure);
        if is_sure {
            self.learn(raw, recording, &judgement);
        }
        is_sure
    }

    /// Whether a record of this type should not be odd, since others are not.
    pub(super) fn is_regular(&self, kind: RecordType) -> bool {
        1_u128.checked_shl(kind.0).is_some_and(|bit| self.regular & bit != 0)
    }

    /// Whether the end of `raw` is made of other records: then its size is not its own.
    pub(super) fn hides_others(&self, raw: &RawRecord<'_>, recording: &Recording) -> bool {
        let is_chain = |from: usize| {
            let mut rest = raw.bytes.get(from..).unwrap_or_default();
            while !rest.is_empty() {
                let Ok(record) = RawRecord::first(rest, raw.endian, raw.offset) else { return false };
                if record.kind.info().is_none() || !self.judge(&record, recording).verdict.is_good() {
                    return false;
                }
                rest = rest.get(record.bytes.len()..).unwrap_or_default();
            }
            true
        };
        let len = raw.bytes.len();
        (RecordHeader::SIZE..len).filter(|&from| len.saturating_sub(from).is_multiple_of(8)).any(is_chain)
    }

    /// Learns from a record that is believed, for what `judgement` says.
    pub(super) fn learn(&mut self, raw: &RawRecord<'_>, recording: &Recording, judgement: &Judgement) {
        if let Verdict::Sure | Verdict::Likely = judgement.verdict {
            self.regular |= 1_u128.checked_shl(raw.kind.0).unwrap_or(0);
        }
        self.knows_ids |= judgement.ids.known;
        self.has_strangers |= judgement.ids.unknown.is_some();
        if !raw.kind.is_kernel() {
            return;
        }
        self.has_kernel_records = true;
        time(raw, recording).into_iter().for_each(|time| widen(&mut self.times, time));
        let has_time = recording.events.layout_of(raw).sample_type.has(SampleType::TIME);
        if let Some(time) = recording.events.sample_time(raw).filter(|&time| has_time && time != 0) {
            widen(&mut self.samples, time);
        }
    }

    /// Whether the ids of the events are left out.
    pub(super) fn has_lost_ids(&self) -> bool {
        self.before.ids == Ids::Lost
    }

    /// The first and the last time of SAMPLE records.
    pub(super) fn samples(&self) -> Option<SampleTime> {
        self.samples.map(|(first, last)| SampleTime { first, last })
    }

    /// What another reading should know, because of what this one has shown.
    pub(super) fn foreknown(&self, recording: &Recording) -> Foreknown {
        let ids = match self.before.ids {
            Ids::Unclear if !self.has_strangers => Ids::Unclear,
            // No record bears the ids of the one event there is: they are damaged, and nobody needs them.
            Ids::Unclear if !self.knows_ids && recording.events.len() == 1 => Ids::Lost,
            Ids::Unclear => Ids::Trusted,
            known => known,
        };
        let without_events = self.before.without_events || (recording.events.is_empty() && self.has_kernel_records);
        Foreknown { ids, without_events, ..self.before }
    }
}

fn widen(times: &mut Option<(u64, u64)>, time: u64) {
    let (first, last) = times.unwrap_or((time, time));
    *times = Some((first.min(time), last.max(time)));
}

fn says_something(time: u64) -> bool {
    time != 0 && time != u64::MAX
}

/// The time of a record, if it has one and it says something.
fn time(raw: &RawRecord<'_>, recording: &Recording) -> Option<u64> {
    let has_time = recording.events.layout_of(raw).sample_type.has(SampleType::TIME);
    recording.events.time(raw).filter(|&time| has_time && says_something(time))
}

/// Whether type, size and `misc` are such as the kernel and perf write.
fn is_regular(raw: &RawRecord<'_>) -> bool {
    raw.kind.info().is_some()
        && (!raw.kind.is_kernel()
            || (raw.bytes.len().is_multiple_of(8) && CpuMode::of(raw.misc).0 <= CpuMode::GUEST_USER.0))
}

/// Whether the section in a record of a pipe can be read.
fn section(record: &HeaderFeature, recording: &Recording) -> Result<(), Error> {
    let Ok(id) = u32::try_from(record.feat_id) else { return Ok(()) };
    if record.section.0.is_empty() || id > FeatureId::END.0 {
        return Ok(());
    }
    let layout = Layout { nr_cpus_available: recording.nr_cpus_available(), ..Layout::default() };
    Section::decode(FeatureId(id), &record.section.0, recording.endian, &layout).map(drop)
}

/// Where the first header in `bytes` is that may be one of a known record; only that much of it is looked at.
pub(super) fn find_header(bytes: &[u8], endian: binrw::Endian) -> Option<usize> {
    let last = TABLE.last().map_or(0, |info| info.kind.0);
    bytes.windows(RecordHeader::SIZE).position(|header| {
        RecordHeader::parse(header, endian).is_some_and(|header| {
            header.kind.0 <= last && usize::from(header.size) >= RecordHeader::SIZE && header.kind.info().is_some()
        })
    })
}
