//! Plausibility of bytes as a record of a recording: by type, size, alignment, fields, event ID and
//! time.

use crate::attr::SampleType;
use crate::error::{Error, Problem};
use crate::feature::SampleTime;
use crate::read::salvage::report::{Foreknown, Ids};
use crate::read::salvage::rules::{self, Seen};
use crate::record::{
    CpuMode, EventIds, RawRecord, Record, RecordHeader, RecordType, SampleView, TABLE,
    is_known_time,
};
use crate::recording::Recording;

/// Plausibility of a record.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It contains the ID of an event, or a time close to that of other records.
    Sure,
    /// All fields are valid, and nothing in it is specific to this recording.
    Likely,
    /// It can be decoded, although the kernel and perf do not write such records today.
    Odd,
    /// Its content is invalid.
    Bad(Error),
}

impl Verdict {
    /// Returns whether the record is as the kernel and perf write it.
    pub(super) fn is_good(&self) -> bool {
        matches!(self, Verdict::Sure | Verdict::Likely)
    }
}

/// Plausibility of a record, and the event IDs in it.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    ids: EventIds,
}

impl From<Verdict> for Judgement {
    fn from(verdict: Verdict) -> Self {
        Judgement {
            verdict,
            ids: EventIds::default(),
        }
    }
}

/// Facts derived from the records so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evidence {
    /// Results of an earlier pass over the recording.
    before: Foreknown,
    /// The earliest and the latest time.
    times: Option<(u64, u64)>,
    /// The earliest and the latest time of SAMPLE records.
    samples: Option<(u64, u64)>,
    /// Whether records use the IDs of the recording's events.
    pub(super) knows_ids: bool,
    /// Whether kernel records were accepted.
    has_kernel_records: bool,
    /// Whether a record was accepted with an ID that belongs to no event.
    has_strangers: bool,
    /// Whether an MMAP2 record was accepted that announces a build ID, but has an inode.
    pub(super) has_false_build_ids: bool,
    /// The types, one bit each, of which regular records occurred.
    regular: u128,
}

/// Maximum distance in nanoseconds from all other records at which the time of a record is
/// plausible.
const NEAR: u64 = 3_600_000_000_000;

impl Evidence {
    pub(super) fn new(before: Foreknown) -> Self {
        Evidence {
            before,
            knows_ids: before.ids == Ids::Trusted,
            ..Evidence::default()
        }
    }

    /// Judges a complete record: whether it can be decoded, then by the [`rules`]. Rejects every
    /// record in which `perfconv verify` finds an error.
    pub(super) fn judge(&self, raw: &RawRecord<'_>, recording: &Recording) -> Judgement {
        let events = &recording.events;
        let layout = events.layout_of(raw);
        if self.before.without_events && raw.kind.is_kernel() {
            let what = "no attribute describes its fields";
            let error = Error::new(
                format!("{} record", raw.kind),
                Problem::Unknown(what.into()),
            );
            return Verdict::Bad(error.at(raw.offset)).into();
        }
        let record = match Record::decode(raw, &layout) {
            Ok(record) => record,
            Err(error) => return Verdict::Bad(error).into(),
        };
        let seen = Seen::new(self, raw, recording, &record, &layout);
        match rules::verdict(&seen) {
            bad @ Verdict::Bad(_) => bad.into(),
            verdict => Judgement {
                verdict,
                ids: seen.ids,
            },
        }
    }

    /// Returns whether a valid record belongs to this recording, by its ID (whether it is that of
    /// an event, not 0), if it has one, and by its time.
    pub(super) fn is_of_recording(&self, has_id: Option<bool>, time: Option<u64>) -> bool {
        let near = time.zip(self.times).map(|(time, (first, last))| {
            time >= first.saturating_sub(NEAR) && time <= last.saturating_add(NEAR)
        });
        match has_id {
            Some(true) => near != Some(false),
            Some(false) => false,
            None => near == Some(true),
        }
    }

    /// Judges a record that may need no detailed check, and learns from it if it is sure.
    #[inline]
    pub(super) fn is_sure(&mut self, raw: &RawRecord<'_>, recording: &Recording) -> bool {
        if raw.kind == RecordType::SAMPLE
            && is_regular(raw)
            && !self.before.without_events
            && let Some(sample) = recording
                .events
                .sample_view(raw)
                .filter(SampleView::is_whole)
        {
            let events = &recording.events;
            let ids = sample.event_ids(events);
            let time = sample.time();
            let has_id = sample
                .identifier()
                .or(sample.id())
                .filter(|_| events.have_ids())
                .map(|id| id != 0);
            let is_sure = ids.unknown.is_none()
                && self.is_of_recording(has_id, time.filter(|&time| is_known_time(time)));
            if is_sure {
                self.regular |= 1 << RecordType::SAMPLE.0;
                self.knows_ids |= ids.known;
                self.has_kernel_records = true;
                time.filter(|&time| is_known_time(time))
                    .into_iter()
                    .for_each(|time| widen(&mut self.times, time));
                time.filter(|&time| time != 0)
                    .into_iter()
                    .for_each(|time| widen(&mut self.samples, time));
            }
            return is_sure;
        }
        if !raw.kind.is_kernel() {
            return false;
        }
        let judgement = match self.judge_fixed(raw, recording) {
            Some(judgement) => judgement,
            None => self.judge(raw, recording),
        };
        let is_sure = matches!(judgement.verdict, Verdict::Sure);
        if is_sure {
            self.learn(raw, recording, &judgement);
        }
        is_sure
    }

    /// Judges a regular kernel record with numbers at fixed places, without decoding it: as
    /// [`judge`](Self::judge), if it is sure. `None` for other records.
    fn judge_fixed(&self, raw: &RawRecord<'_>, recording: &Recording) -> Option<Judgement> {
        let events = &recording.events;
        if self.before.without_events || events.is_empty() || !is_regular(raw) {
            return None;
        }
        let ids = events.fixed_record(raw)?.event_ids(events);
        let id = events.id_of(raw).filter(|_| events.have_ids());
        let is_sure = ids.unknown.is_none()
            && events.layout_of(raw).sample_id_all
            && self.is_of_recording(id.map(|id| id != 0), time(raw, recording));
        let verdict = Verdict::Sure;
        is_sure.then_some(Judgement { verdict, ids })
    }

    /// Returns whether a record of this type should not be odd, because others are regular.
    pub(super) fn is_regular(&self, kind: RecordType) -> bool {
        1_u128
            .checked_shl(kind.0)
            .is_some_and(|bit| self.regular & bit != 0)
    }

    /// Returns whether the end of `raw` consists of other records: its size is then wrong.
    pub(super) fn hides_others(&self, raw: &RawRecord<'_>, recording: &Recording) -> bool {
        let is_chain = |from: usize| {
            let mut rest = raw.bytes.get(from..).unwrap_or_default();
            while !rest.is_empty() {
                let Ok(record) = RawRecord::first(rest, raw.endian, raw.offset) else {
                    return false;
                };
                if record.kind.info().is_none() || !self.judge(&record, recording).verdict.is_good()
                {
                    return false;
                }
                rest = rest.get(record.bytes.len()..).unwrap_or_default();
            }
            true
        };
        let len = raw.bytes.len();
        (RecordHeader::SIZE..len)
            .filter(|&from| len.saturating_sub(from).is_multiple_of(8))
            .any(is_chain)
    }

    /// Learns from an accepted record according to `judgement`.
    pub(super) fn learn(
        &mut self,
        raw: &RawRecord<'_>,
        recording: &Recording,
        judgement: &Judgement,
    ) {
        if let Verdict::Sure | Verdict::Likely = judgement.verdict {
            self.regular |= 1_u128.checked_shl(raw.kind.0).unwrap_or(0);
        }
        self.knows_ids |= judgement.ids.known;
        self.has_strangers |= judgement.ids.unknown.is_some();
        self.has_false_build_ids |= recording.events.has_false_build_id(raw);
        if !raw.kind.is_kernel() {
            return;
        }
        self.has_kernel_records = true;
        time(raw, recording)
            .into_iter()
            .for_each(|time| widen(&mut self.times, time));
        let has_time = recording
            .events
            .layout_of(raw)
            .sample_type
            .has(SampleType::TIME);
        if let Some(time) = recording
            .events
            .sample_time(raw)
            .filter(|&time| has_time && time != 0)
        {
            widen(&mut self.samples, time);
        }
    }

    /// Returns whether the IDs of the events are removed.
    pub(super) fn has_lost_ids(&self) -> bool {
        self.before.ids == Ids::Lost
    }

    /// Returns the earliest and the latest time of SAMPLE records.
    pub(super) fn samples(&self) -> Option<SampleTime> {
        self.samples.map(|(first, last)| SampleTime { first, last })
    }

    /// Returns the facts that another pass must know, as derived from this one.
    pub(super) fn foreknown(&self, recording: &Recording) -> Foreknown {
        let ids = match self.before.ids {
            Ids::Unclear if !self.has_strangers => Ids::Unclear,
            // No record uses the IDs of the only event: they are corrupt, and not needed.
            Ids::Unclear if !self.knows_ids && recording.events.len() == 1 => Ids::Lost,
            Ids::Unclear => Ids::Trusted,
            known => known,
        };
        let without_events =
            self.before.without_events || (recording.events.is_empty() && self.has_kernel_records);
        Foreknown {
            ids,
            without_events,
            ..self.before
        }
    }
}

fn widen(times: &mut Option<(u64, u64)>, time: u64) {
    let (first, last) = times.unwrap_or((time, time));
    *times = Some((first.min(time), last.max(time)));
}

/// The time of a record, if it has one and it says something.
pub(super) fn time(raw: &RawRecord<'_>, recording: &Recording) -> Option<u64> {
    let has_time = recording
        .events
        .layout_of(raw)
        .sample_type
        .has(SampleType::TIME);
    recording
        .events
        .time(raw)
        .filter(|&time| has_time && is_known_time(time))
}

/// Returns whether type, size and `misc` are as the kernel and perf write them.
pub(super) fn is_regular(raw: &RawRecord<'_>) -> bool {
    raw.kind.info().is_some()
        && (!raw.kind.is_kernel()
            || (raw.bytes.len().is_multiple_of(8)
                && CpuMode::of(raw.misc).0 <= CpuMode::GUEST_USER.0))
}

/// Returns the offset of the first header in `bytes` that may belong to a known record. Checks only
/// the header.
pub(super) fn find_header(bytes: &[u8], endian: binrw::Endian) -> Option<usize> {
    let last = TABLE.last().map_or(0, |info| info.kind.0);
    bytes.windows(RecordHeader::SIZE).position(|header| {
        RecordHeader::parse(header, endian).is_some_and(|header| {
            header.kind.0 <= last
                && usize::from(header.size) >= RecordHeader::SIZE
                && header.kind.info().is_some()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags};
    use crate::decode_context::DecodeContext;
    use crate::recording::Event;
    use crate::wire::{Wire, encode_words};
    use binrw::Endian;

    /// Numbers that are the same in every run (xorshift64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn one_of<T: Copy, const N: usize>(&mut self, choice: [T; N]) -> T {
            choice[usize::try_from(self.next() >> 33).unwrap() % N]
        }
    }

    /// A record is judged without decoding it as it is judged with all its fields, and as much is
    /// learnt from it.
    #[test]
    fn the_quick_judgement_is_the_thorough_one() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let common = SampleType::IP | SampleType::TID;
        let types = [
            common | SampleType::TIME | SampleType::ID,
            common | SampleType::TIME | SampleType::IDENTIFIER | SampleType::CALLCHAIN,
            common | SampleType::TIME | SampleType::READ | SampleType::ID,
            common | SampleType::TIME,
            common | SampleType::ID | SampleType::RAW,
            common | SampleType::WEIGHT | SampleType::TIME,
        ];
        let (mut sure, mut unsure) = ([0; 2], 0);
        for round in 0..120_000 {
            let endian = random.one_of([Endian::Little, Endian::Big]);
            let sample_type = types[round % types.len()];
            let sample_id_all = random.one_of([true, true, false]);
            let flags = AttrFlags::default().with_sample_id_all(sample_id_all);
            let event = |id| Event {
                attr: Attr {
                    sample_type,
                    flags,
                    ..Attr::default()
                },
                ids: vec![id],
            };
            let mut recording = Recording::new(endian);
            recording.events = [event(5), event(6)]
                .into_iter()
                .take(random.one_of([1, 2]))
                .collect();
            let ids = random.one_of([Ids::Unclear, Ids::Trusted]);
            let before = Foreknown {
                ids,
                without_events: random.one_of([false, false, true]),
                ..Foreknown::default()
            };
            let mut quick = Evidence::new(before);
            quick.times = random.one_of([None, Some((1000, 2000))]);
            let mut thorough = quick;
            let parts = usize::try_from(sample_type.0.count_ones()).unwrap();
            let kind = random.one_of([
                RecordType::SAMPLE,
                RecordType::SAMPLE,
                RecordType::COMM,
                RecordType::FORK,
                RecordType::LOST,
                RecordType::MMAP2,
                RecordType::SWITCH,
                RecordType(200),
            ]);
            let count = match kind {
                RecordType::SAMPLE => random.one_of([parts, parts, parts, parts + 1, parts - 1]),
                _ => random.one_of([0, 1, 2, 3, 4, 5, 6, 8, 10, 12]),
            };
            let words: Vec<u64> = (0..count)
                .map(|_| random.one_of([0, 1, 5, 6, 7, 1500, 1500, NEAR + 2001, u64::MAX]))
                .collect();
            let size = RecordHeader::SIZE + 8 * words.len() + random.one_of([0, 0, 0, 4]);
            let misc = random.one_of([0, 1, 2, 7]);
            let size = u16::try_from(size).unwrap();
            let mut bytes = RecordHeader { kind, misc, size }.encode(endian).unwrap();
            bytes.extend(encode_words(&words, endian));
            bytes.resize(usize::from(size), 0);
            let raw = RawRecord::first(&bytes, endian, 0).unwrap();

            let judgement = thorough.judge(&raw, &recording);
            let is_sure = matches!(judgement.verdict, Verdict::Sure);
            if is_sure {
                thorough.learn(&raw, &recording, &judgement);
            }
            assert_eq!(
                quick.is_sure(&raw, &recording),
                is_sure,
                "{words:?} {sample_type:?} {judgement:?}"
            );
            assert_eq!(
                format!("{quick:?}"),
                format!("{thorough:?}"),
                "{words:?} {sample_type:?}"
            );
            let sums = &mut sure[usize::from(kind == RecordType::SAMPLE)];
            *(if is_sure { sums } else { &mut unsure }) += 1;
        }
        assert!(sure.iter().all(|&sum| sum > 500), "{sure:?}");
        assert!(unsure > 1000, "{unsure}");
    }

    /// Headers are found where decoding finds one of a known type.
    #[test]
    fn headers_are_found_where_the_declaration_has_them() {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut found = 0;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..40)
                .map(|_| random.one_of([0, 0, 0, 1, 9, 22, 23, 64, 86, 87, 255]))
                .collect();
            for endian in [Endian::Little, Endian::Big] {
                let is_header = |bytes: &[u8]| {
                    let (header, _) =
                        RecordHeader::decode(bytes, endian, DecodeContext::default()).unwrap();
                    usize::from(header.size) >= RecordHeader::SIZE
                        && TABLE.iter().any(|info| info.kind == header.kind)
                };
                let declared =
                    (0..=bytes.len() - RecordHeader::SIZE).find(|&at| is_header(&bytes[at..]));
                assert_eq!(find_header(&bytes, endian), declared, "{bytes:?}");
                found += usize::from(declared.is_some());
            }
        }
        assert!(found > 1000, "{found}");
    }
}
