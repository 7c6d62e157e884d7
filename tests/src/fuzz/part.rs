//! One record or one feature section by itself: everything that reads it agrees.

use perfdata_core::attr::{Attr, AttrFlags, BranchSampleType, ReadFormat, SampleType};
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_core::{DecodeContext, Endian, Event, Events, describe};

use crate::convert::Whole;

/// Size in bytes of the choices before a record.
const CHOICES: usize = 10;

/// A record of an event. The first bytes choose the byte order and whether there are trailers, the
/// read format, the parts of samples, and those of branches.
///
/// It is encoded to its bytes; the view of a sample returns what decoding returns; and what is
/// written in the other byte order without decoding is what decoding and encoding write.
pub fn record(data: &[u8]) {
    let Some((choices, bytes)) = data.split_first_chunk() else {
        return;
    };
    let (endian, attr) = chosen(choices);
    let Ok(raw) = RawRecord::first(bytes, endian, 0) else {
        return;
    };
    let mut events = Events::default();
    events.push(Event {
        attr,
        ids: Vec::new(),
    });
    let mut swapped = Vec::new();
    let is_swapped = events.swap_record(&raw, &mut swapped);
    let Ok(record) = Record::decode(&raw, &events.layout_of(&raw)) else {
        assert!(!is_swapped, "a record without meaning was swapped");
        return;
    };
    let encode = |record: &Record, endian| {
        let bytes = record.encode(endian);
        bytes.expect("what was decoded can be encoded")
    };
    assert!(encode(&record, endian) == raw.bytes, "the record differs");
    let other = other_than(endian);
    if is_swapped {
        assert_eq!(swapped, encode(&record, other), "swapped without decoding");
    }
    if record.opaque().is_none() && is_announced(&record, &events) {
        let there = encode(&record, other);
        let there = RawRecord::first(&there, other, 0).expect("a record");
        let back =
            Record::decode(&there, &events.layout_of(&there)).expect("it was decoded before");
        assert!(encode(&back, endian) == raw.bytes, "there and back");
    }
    sample(&raw, &events, &record);
}

/// Compares the view of a sample with the decoded sample.
fn sample(raw: &RawRecord<'_>, events: &Events, record: &Record) {
    let (Some(view), Body::Sample(sample)) = (events.sample_view(raw), &record.body) else {
        assert!(raw.kind != RecordType::SAMPLE, "a sample has a view");
        return;
    };
    assert_eq!(
        (view.identifier(), view.ip()),
        (sample.identifier, sample.ip)
    );
    assert_eq!((view.tid(), view.time()), (sample.tid, sample.time));
    assert_eq!((view.addr(), view.id()), (sample.addr, sample.id));
    assert_eq!(
        (view.stream_id(), view.period()),
        (sample.stream_id, sample.period)
    );
    let chain = sample.callchain.as_ref().map(|chain| chain.to_vec());
    assert_eq!(
        view.callchain().collect::<Vec<_>>(),
        chain.unwrap_or_default()
    );
    if is_announced(record, events) {
        let stack = sample.branch_stack.as_ref();
        let branches = stack.map(|stack| stack.entries.to_vec());
        assert_eq!(view.branches().map(Vec::from_iter), branches);
    }
}

/// Returns whether the branch stack of a sample has the form that the attribute announces. Another
/// form only follows from the size of the record, which may allow several of them.
fn is_announced(record: &Record, events: &Events) -> bool {
    let Body::Sample(sample) = &record.body else {
        return true;
    };
    let attr = events.first().map(|event| &event.attr);
    let kinds = attr.and_then(|attr| attr.branch_sample_type);
    let has = |kind| kinds.is_some_and(|kinds| kinds.has(kind));
    sample.branch_stack.as_ref().is_none_or(|stack| {
        stack.hw_idx.is_some() == has(BranchSampleType::HW_INDEX)
            && (stack.nr == 0 || stack.counters.is_empty() != has(BranchSampleType::COUNTERS))
            && record.tail.is_empty()
    })
}

fn chosen(choices: &[u8; CHOICES]) -> (Endian, Attr) {
    let [order, format, a, b, c, d, branches @ ..] = *choices;
    let attr = Attr {
        sample_type: SampleType(u64::from(u32::from_le_bytes([a, b, c, d]))),
        read_format: ReadFormat(u64::from(format)),
        flags: AttrFlags::default().with_sample_id_all(order & 2 != 0),
        branch_sample_type: Some(BranchSampleType(u64::from(u32::from_le_bytes(branches)))),
        sample_regs_user: Some(0x1ff),
        sample_stack_user: Some(64),
        sample_regs_intr: Some(0x7),
        ..Attr::default()
    };
    (byte_order(order), attr)
}

fn byte_order(choice: u8) -> Endian {
    match choice & 1 {
        0 => Endian::Little,
        _ => Endian::Big,
    }
}

fn other_than(endian: Endian) -> Endian {
    match endian {
        Endian::Little => Endian::Big,
        Endian::Big => Endian::Little,
    }
}

/// Returns records of the small fixtures, at most three of each type of each of them.
pub(super) fn record_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for whole in super::recordings()
        .into_iter()
        .filter_map(|bytes| Whole::read(bytes).ok())
    {
        let endian = whole.recording.endian;
        let mut last = None;
        let mut same = 0;
        for &(at, kind) in &whole.records {
            let bytes = whole.stream.get(at..).unwrap_or_default();
            let Ok(raw) = RawRecord::first(bytes, endian, 0) else {
                continue;
            };
            same = if last == Some(kind) { same + 1 } else { 0 };
            last = Some(kind);
            let event = whole.recording.events.of_record(&raw).unwrap_or(0);
            let attr = whole.recording.events.get(event).map(|event| &event.attr);
            let Some(attr) = attr.filter(|_| same < 3 && raw.bytes.len() < 2048) else {
                continue;
            };
            let order =
                u8::from(endian == Endian::Big) | u8::from(attr.flags.sample_id_all() != 0) << 1;
            let parts = (attr.sample_type.0 as u32).to_le_bytes();
            let branches = attr.branch_sample_type.map_or(0, |kinds| kinds.0 as u32);
            let choices = [
                &[order, attr.read_format.0 as u8][..],
                &parts,
                &branches.to_le_bytes(),
            ];
            seeds.push([&choices.concat(), raw.bytes].concat());
        }
    }
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}

/// A feature section, behind its number and the byte order: it is encoded to its bytes, and has the
/// same values in the other byte order.
pub fn section(data: &[u8]) {
    let Some((&[id, order], bytes)) = data.split_first_chunk() else {
        return;
    };
    let (id, endian) = (FeatureId(u32::from(id)), byte_order(order));
    let layout = DecodeContext::default().with_nr_cpus_available(u32::from(order >> 1));
    let Ok(section) = Section::decode(id, bytes, endian, &layout) else {
        return;
    };
    let encode = |section: &Section, endian| {
        let bytes = section.encode(endian);
        bytes.expect("what was decoded can be encoded")
    };
    assert!(encode(&section, endian) == bytes, "feature {id} differs");
    if describe::opaque(&section).is_none() {
        let other = other_than(endian);
        let back = Section::decode(id, &encode(&section, other), other, &layout);
        let back = back.expect("it was decoded before");
        assert!(encode(&back, endian) == bytes, "there and back");
    }
}

/// Returns the feature sections of the small fixtures.
pub(super) fn section_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for whole in super::recordings()
        .into_iter()
        .filter_map(|bytes| Whole::read(bytes).ok())
    {
        let recording = &whole.recording;
        let order = u8::from(recording.endian == Endian::Big);
        let cpus = (recording.nr_cpus_available() as u8).min(127);
        for (id, bytes) in &recording.features {
            if let Some(id) = u8::try_from(id.0).ok().filter(|_| bytes.len() < 2048) {
                seeds.push([&[id, order | cpus << 1], &bytes[..]].concat());
            }
        }
    }
    seeds.sort_unstable();
    seeds.dedup();
    seeds
}
