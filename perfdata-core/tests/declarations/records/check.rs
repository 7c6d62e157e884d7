//! Properties of every record that can be decoded.

use perfdata_core::attr::{Attr, SampleType};
use perfdata_core::describe::{Describe, Leaf, Opaque, Style, Visitor, WireSize};
use perfdata_core::record::{
    Body, FixedRecord, MISC_MMAP_BUILD_ID, RawRecord, Record, RecordHeader, RecordType, Sample,
    SampleOffsets, SampleView,
};
use perfdata_core::{DecodeContext, Endian, Error, Event, Events};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of records converted to the other byte order without decoding, and of those among them
/// that are no samples.
pub static SWAPPED: AtomicU64 = AtomicU64::new(0);
pub static FIXED: AtomicU64 = AtomicU64::new(0);

/// Checks that removing parts of a sample, and words of its callchain, gives the same bytes with
/// and without decoding it.
fn cut_as_decoded(raw: &RawRecord<'_>, offsets: &SampleOffsets, record: &Record, is_whole: bool) {
    let Body::Sample(sample) = &record.body else {
        return;
    };
    let cut = |parts: u64, words: usize| {
        let parts = SampleType(parts);
        let mut out = b"before".to_vec();
        let is_cut = offsets.keep_into(raw, parts, words, &mut out);
        assert_eq!(is_cut, is_whole, "{record:#x?}");
        let mut expected = b"before".to_vec();
        if is_whole {
            let mut sample = sample.clone();
            sample.keep_parts(parts);
            if let Some(chain) = &mut sample.callchain {
                *chain = chain[..chain.len().min(words)].to_vec().into();
            }
            let body = Body::Sample(sample);
            let less = Record {
                body,
                ..record.clone()
            };
            less.encode_into(&mut expected, raw.endian)
                .expect("a part of what was decoded is encoded");
        }
        assert!(
            out == expected,
            "without {parts:x?}, {words} words:\n{expected:02x?}\n{out:02x?}\n{record:#x?}"
        );
    };
    for field in SampleType::FIELDS {
        cut(!(1 << field.bit), usize::MAX);
    }
    for words in [0, 1, 3] {
        cut(u64::MAX, words);
    }
}

/// Returns the other byte order.
pub fn other(endian: Endian) -> Endian {
    if endian == Endian::Little {
        Endian::Big
    } else {
        Endian::Little
    }
}

/// Decodes the record in `bytes` and checks that it is encoded as the same bytes, that its fields
/// cover all bytes, and that its meaning is the same in the other byte order.
pub fn record(bytes: &[u8], endian: Endian, layout: &DecodeContext) -> Result<Record, Error> {
    let raw = RawRecord::first(bytes, endian, 0)?;
    let mut swapped = b"before".to_vec();
    let offsets = SampleOffsets::of(layout);
    let sample_view = (raw.kind == RecordType::SAMPLE).then(|| offsets.look(&raw));
    let is_whole = sample_view.is_some() && offsets.swap_into(&raw, &mut swapped);
    assert_eq!(
        sample_view.is_some_and(|sample_view| sample_view.is_whole()),
        is_whole
    );
    let fixed = FixedRecord::of(&raw, layout);
    if let Some(fixed) = &fixed {
        fixed.swap_into(&mut swapped);
    }
    let is_swapped = is_whole || fixed.is_some();
    let record = Record::decode(&raw, layout)
        .inspect_err(|e| assert!(!is_swapped, "{e}, but swapped:\n{bytes:02x?}"))?;
    let mut again = Vec::with_capacity(bytes.len());
    record
        .encode_into(&mut again, endian)
        .expect("what was decoded is encoded");
    assert!(
        again == bytes,
        "written as it was read:\n{bytes:02x?}\n{again:02x?}\n{record:#x?}"
    );

    if let (Body::Sample(sample), Some(sample_view)) = (&record.body, sample_view) {
        seen_as_decoded(sample, &sample_view, layout);
    }

    cut_as_decoded(&raw, &offsets, &record, is_whole);
    if let Some(fixed) = &fixed {
        let event = Event {
            attr: Attr::default(),
            ids: vec![0x0807_0605_0403_0201],
        };
        let events: Events = [event].into_iter().collect();
        assert_eq!(fixed.event_ids(&events), record.event_ids(&events));
        assert!(record.tail.is_empty(), "{record:#x?}");
        FIXED.fetch_add(1, Ordering::Relaxed);
    }

    let mut size = WireSize::default();
    record.describe("", Style::Plain, &mut size);
    assert_eq!(
        size.0 + RecordHeader::SIZE,
        bytes.len(),
        "described whole: {record:#x?}"
    );

    assert_eq!(record.opaque(), opaque_one_by_one(&record));

    again.clear();
    record
        .encode_into(&mut again, other(endian))
        .expect("what was decoded is encoded");
    if is_swapped {
        SWAPPED.fetch_add(1, Ordering::Relaxed);
        assert_eq!(record.opaque(), None, "{record:#x?}");
        assert!(
            swapped == [b"before", &again[..]].concat(),
            "swapped:\n{again:02x?}\n{swapped:02x?}\n{record:#x?}"
        );
    } else {
        assert_eq!(swapped, b"before");
    }
    // Without the flag of an inode that announces a build ID, as conversions write it: in the other
    // byte order, a device may have the form of a build ID.
    let is_false = matches!(&record.body, Body::Mmap2(map) if map.inode.is_some())
        && record.misc & MISC_MMAP_BUILD_ID != 0;
    if record.opaque().is_none() && !is_false {
        let raw = RawRecord::first(&again, other(endian), 0).expect("the header was encoded");
        let twin = Record::decode(&raw, layout)
            .unwrap_or_else(|e| panic!("{e}\n{record:#x?} in the other byte order:\n{again:02x?}"));
        // The values cannot be compared: a factor that is NaN differs from itself.
        again.clear();
        twin.encode_into(&mut again, endian)
            .expect("what was decoded is encoded");
        assert!(
            again == bytes,
            "there and back:\n{bytes:02x?}\n{again:02x?}\n{record:#x?}\n{twin:#x?}"
        );
    }
    Ok(record)
}

/// The first opaque piece, found by looking at every number for itself.
fn opaque_one_by_one(record: &Record) -> Option<Opaque> {
    struct Finder(Vec<&'static str>, usize, Option<Opaque>);
    impl Visitor for Finder {
        fn begin(&mut self, name: &'static str) {
            self.0.push(name);
        }
        fn begin_list(&mut self, name: &'static str, _: usize) {
            self.0.push(name);
        }
        fn end(&mut self) {
            self.0.pop();
        }
        fn leaf(&mut self, name: &'static str, size: usize, value: Leaf<'_>) {
            if value.is_opaque() && self.2.is_none() {
                let names: Vec<_> = self
                    .0
                    .iter()
                    .chain([&name])
                    .copied()
                    .filter(|name| !name.is_empty())
                    .collect();
                self.2 = Some(Opaque {
                    field: names.join("."),
                    offset: self.1,
                });
            }
            self.1 += size;
        }
    }
    let mut finder = Finder(Vec::new(), RecordHeader::SIZE, None);
    record.describe("", Style::Plain, &mut finder);
    finder.2
}

/// Checks that a look at a sample sees what decoding gives. Behind parts that are not known it sees
/// nothing.
fn seen_as_decoded(sample: &Sample, sample_view: &SampleView<'_>, layout: &DecodeContext) {
    let words = |sample: &Sample| {
        let Sample {
            identifier,
            ip,
            time,
            addr,
            id,
            stream_id,
            period,
            ..
        } = sample;
        [*identifier, *ip, *time, *addr, *id, *stream_id, *period]
    };
    let seen = [
        sample_view.identifier(),
        sample_view.ip(),
        sample_view.time(),
        sample_view.addr(),
        sample_view.id(),
        sample_view.stream_id(),
        sample_view.period(),
    ];
    assert_eq!(seen, words(sample));
    assert_eq!(sample_view.tid(), sample.tid);
    assert_eq!(sample_view.cpu(), sample.cpu.as_ref().map(|cpu| cpu.cpu));
    if layout.sample_type.unknown() == 0 && layout.read_format.unknown() == 0 {
        assert!(
            sample_view.callchain().eq(sample
                .callchain
                .iter()
                .flat_map(|chain| chain.iter().copied()))
        );
        let raw: Option<&[u8]> = sample.raw.as_ref().map(|raw| &raw[..]);
        assert_eq!(sample_view.raw(), raw);
    }
}
