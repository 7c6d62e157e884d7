//! The rules by which a decoded record is judged, as a table in the order of their precedence.

use crate::decode_context::DecodeContext;
use crate::error::{Error, Result};
use crate::feature::{FeatureId, Section};
use crate::read::salvage::evidence::{Evidence, Verdict, is_regular, time};
use crate::record::{Body, EventIds, HeaderFeature, RawRecord, Record, RecordType};
use crate::recording::Recording;

/// A decoded record, and what is known about its recording.
pub(super) struct Seen<'a> {
    evidence: &'a Evidence,
    raw: &'a RawRecord<'a>,
    recording: &'a Recording,
    record: &'a Record,
    /// The event IDs in the record.
    pub(super) ids: EventIds,
    /// Whether the record may contain an ID and a time that an attribute selects: it is a SAMPLE,
    /// or the attribute has `sample_id_all`.
    has_sample_id: bool,
}

impl<'a> Seen<'a> {
    /// Returns the facts about `raw`, which is decoded as `record` according to `layout`.
    pub(super) fn new(
        evidence: &'a Evidence,
        raw: &'a RawRecord<'a>,
        recording: &'a Recording,
        record: &'a Record,
        layout: &DecodeContext,
    ) -> Self {
        Seen {
            evidence,
            raw,
            recording,
            record,
            ids: record.event_ids(&recording.events),
            has_sample_id: raw.kind == RecordType::SAMPLE || layout.sample_id_all,
        }
    }
}

/// A rule: the verdict on the records to which it applies. The parameters of its function name what
/// the rule looks at.
enum Rule {
    /// The record is invalid, for the returned reason.
    Bad(fn(&Seen<'_>) -> Option<Error>),
    /// The record is unusual.
    Odd(fn(&Seen<'_>) -> bool),
    /// The record belongs to this recording.
    Sure(fn(&Seen<'_>) -> bool),
}

/// All rules. The first one that applies decides: errors precede what is unusual, and only a
/// regular record can be sure.
const RULES: [Rule; 7] = [
    Rule::Bad(invalid_section),
    Rule::Bad(foreign_id),
    Rule::Odd(has_irregular_header),
    Rule::Odd(has_unknown_tail),
    Rule::Odd(has_unknown_id),
    Rule::Odd(has_no_event),
    Rule::Sure(is_of_recording),
];

/// Returns the verdict of the first rule that applies to a record. If none does, the record is
/// likely: it is valid, but such bytes may also be part of another recording or of other data.
pub(super) fn verdict(seen: &Seen<'_>) -> Verdict {
    RULES
        .iter()
        .find_map(|rule| rule.verdict(seen))
        .unwrap_or(Verdict::Likely)
}

impl Rule {
    /// Returns the verdict on a record; `None` if the rule does not apply to it.
    fn verdict(&self, seen: &Seen<'_>) -> Option<Verdict> {
        match self {
            Rule::Bad(reason) => reason(seen).map(Verdict::Bad),
            Rule::Odd(applies) => applies(seen).then_some(Verdict::Odd),
            Rule::Sure(applies) => applies(seen).then_some(Verdict::Sure),
        }
    }
}

/// A feature section in a record of a pipe cannot be decoded. The record itself has only a number
/// and bytes, so that nearly any bytes would be one.
fn invalid_section(
    Seen {
        raw,
        record,
        recording,
        ..
    }: &Seen<'_>,
) -> Option<Error> {
    let Body::HeaderFeature(feature) = &record.body else {
        return None;
    };
    let error = section(feature, recording).err()?;
    Some(error.within(raw.offset.saturating_add(16)))
}

/// The ID belongs to no event, although other records have the IDs of events. The kernel writes no
/// other IDs than those it gave to perf, and these are then known to be intact.
fn foreign_id(
    Seen {
        raw, ids, evidence, ..
    }: &Seen<'_>,
) -> Option<Error> {
    let id = ids.unknown.filter(|_| evidence.knows_ids)?;
    let error = Error::invalid(
        format!("{} record", raw.kind),
        "id",
        id.to_string(),
        "the ID of an event",
    );
    Some(error.at(raw.offset))
}

/// Type, size or `misc` are not as the kernel and perf write them today. Newer ones may: the record
/// is not invalid.
fn has_irregular_header(Seen { raw, .. }: &Seen<'_>) -> bool {
    !is_regular(raw)
}

/// Bytes follow the known fields. Nothing follows those of a SAMPLE; other records may be padded
/// with zeros. A newer kernel may append fields: the record is not invalid.
fn has_unknown_tail(Seen { raw, record, .. }: &Seen<'_>) -> bool {
    match raw.kind {
        RecordType::SAMPLE => !record.tail.is_empty(),
        _ => record.tail.iter().any(|&byte| byte != 0),
    }
}

/// The ID belongs to no event, and no record has the ID of an event so far. The IDs in the
/// attributes may be the corrupt ones: the record is not invalid.
fn has_unknown_id(Seen { ids, .. }: &Seen<'_>) -> bool {
    ids.unknown.is_some()
}

/// Records of the kernel cannot be decoded without an event. Its attribute may follow, or be lost:
/// the record is not invalid.
fn has_no_event(Seen { raw, recording, .. }: &Seen<'_>) -> bool {
    recording.events.is_empty() && raw.kind.is_kernel()
}

/// The ID is that of an event, or the time is close to that of other records: other bytes rarely
/// contain them. The records that only perf writes do not have these fields.
fn is_of_recording(
    Seen {
        raw,
        recording,
        evidence,
        has_sample_id,
        ..
    }: &Seen<'_>,
) -> bool {
    if !raw.kind.is_kernel() || !has_sample_id {
        return false;
    }
    let events = &recording.events;
    let id = events.id_of(raw).filter(|_| events.have_ids());
    evidence.is_of_recording(id.map(|id| id != 0), time(raw, recording))
}

/// Checks that the section in a record of a pipe can be decoded.
fn section(record: &HeaderFeature, recording: &Recording) -> Result<(), Error> {
    let Ok(id) = u32::try_from(record.feat_id) else {
        return Ok(());
    };
    if record.section.0.is_empty() || id > FeatureId::END.0 {
        return Ok(());
    }
    let layout = DecodeContext {
        nr_cpus_available: recording.nr_cpus_available(),
        ..DecodeContext::default()
    };
    Section::decode(FeatureId(id), &record.section.0, recording.endian, &layout).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags, SampleType};
    use crate::read::salvage::report::Foreknown;
    use crate::record::RecordHeader;
    use crate::recording::Event;
    use crate::wire::{Wire, encode_words};
    use binrw::Endian;

    /// Each rule decides about some record, and no rule about records that nothing tells from those
    /// of another recording.
    #[test]
    fn each_rule_decides() {
        let endian = Endian::Little;
        let without_events = Recording::new(endian);
        let mut with_events = without_events.clone();
        with_events.events = [5, 6]
            .map(|id| Event {
                attr: Attr {
                    sample_type: SampleType::TIME | SampleType::ID,
                    flags: AttrFlags::default().with_sample_id_all(true),
                    ..Attr::default()
                },
                ids: vec![id],
            })
            .into_iter()
            .collect();
        let stranger = Evidence::new(Foreknown::default());
        let mut acquainted = stranger;
        acquainted.knows_ids = true;

        let hostname = u64::from(FeatureId::HOSTNAME.0);
        let (sample, feature) = (RecordType::SAMPLE, RecordType::HEADER_FEATURE);
        let round = RecordType::FINISHED_ROUND;
        let with = &with_events;
        let cases: [(Option<usize>, _, _, _, u16, &[u64]); 11] = [
            (Some(0), &stranger, with, feature, 0, &[hostname, u64::MAX]),
            (Some(1), &acquainted, with, sample, 0, &[1500, 7]),
            (Some(1), &acquainted, with, sample, 7, &[1500, 7, 1]),
            (Some(2), &stranger, with, sample, 7, &[1500, 5]),
            (Some(2), &stranger, with, RecordType(200), 0, &[]),
            (Some(3), &stranger, with, sample, 0, &[1500, 5, 0]),
            (Some(4), &stranger, with, sample, 0, &[1500, 7]),
            (Some(5), &stranger, &without_events, sample, 0, &[]),
            (Some(6), &stranger, with, sample, 0, &[1500, 5]),
            (None, &stranger, with, sample, 0, &[1500, 0]),
            (None, &stranger, with, round, 0, &[]),
        ];
        for (rule, evidence, recording, kind, misc, words) in cases {
            let size = u16::try_from(RecordHeader::SIZE + 8 * words.len()).unwrap();
            let mut bytes = RecordHeader { kind, misc, size }.encode(endian).unwrap();
            bytes.extend(encode_words(words, endian));
            let raw = RawRecord::first(&bytes, endian, 0).unwrap();
            let layout = recording.events.layout_of(&raw);
            let record = Record::decode(&raw, &layout).unwrap();
            let seen = Seen::new(evidence, &raw, recording, &record, &layout);
            let decides = RULES.iter().position(|rule| rule.verdict(&seen).is_some());
            assert_eq!(decides, rule, "{kind} {misc} {words:?}");
            let judged = evidence.judge(&raw, recording).verdict;
            assert_eq!(format!("{judged:?}"), format!("{:?}", verdict(&seen)));
        }
    }
}
