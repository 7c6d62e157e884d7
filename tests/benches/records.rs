//! Measures decoding, encoding and byte-swapping of each record of the independent writer:
//!
//!     cargo bench -p perfdata-benches --bench records

use std::fmt;

use divan::{Bencher, black_box, counter::BytesCount};
use perfdata_core::attr::Attr;
use perfdata_core::record::{RawRecord, Record, RecordType, SampleOffsets};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian};
use perfdata_tests::synth::record::{Case, cases};

fn main() {
    divan::main();
}

/// A record and the layout of its event.
struct Subject {
    case: Case,
    layout: DecodeContext,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.case.name)
    }
}

impl Subject {
    fn raw(&self) -> RawRecord<'_> {
        RawRecord::first(&self.case.record, Endian::Little, 0).expect("a record")
    }

    fn decode(&self) -> Record {
        Record::decode(&self.raw(), &self.layout).expect("a record")
    }

    fn len(&self) -> BytesCount {
        BytesCount::new(self.case.record.len())
    }
}

/// Returns the first record of each type, and every kind of sample.
fn subjects() -> Vec<Subject> {
    let mut seen = Vec::new();
    let mut wanted = cases(false);
    wanted.retain(|case| {
        let is_new = !seen.contains(&case.kind);
        seen.push(case.kind);
        is_new || case.kind == RecordType::SAMPLE.0
    });
    let subject = |case: Case| {
        let (attr, _) = Attr::decode(
            &case.attr.bytes(false),
            Endian::Little,
            DecodeContext::default(),
        )
        .expect("an attribute");
        Subject {
            layout: DecodeContext::of_attr(&attr),
            case,
        }
    };
    wanted.into_iter().map(subject).collect()
}

#[divan::bench(args = subjects())]
fn decode(bencher: Bencher<'_, '_>, subject: &Subject) {
    let raw = subject.raw();
    bencher
        .counter(subject.len())
        .bench(|| Record::decode(black_box(&raw), black_box(&subject.layout)));
}

#[divan::bench(args = subjects())]
fn encode(bencher: Bencher<'_, '_>, subject: &Subject) {
    let record = subject.decode();
    let mut out = Vec::new();
    bencher.counter(subject.len()).bench_local(|| {
        out.clear();
        black_box(&record).encode_into(&mut out, Endian::Little)
    });
}

/// Does the same as `perfconv --swap-endian`.
#[divan::bench(args = subjects())]
fn swap(bencher: Bencher<'_, '_>, subject: &Subject) {
    let (raw, offsets) = (subject.raw(), SampleOffsets::of(&subject.layout));
    let mut out = Vec::new();
    bencher.counter(subject.len()).bench_local(|| {
        out.clear();
        if raw.kind == RecordType::SAMPLE && offsets.swap_into(black_box(&raw), &mut out) {
            return;
        }
        let record = Record::decode(black_box(&raw), &subject.layout).expect("a record");
        black_box(record.opaque());
        record.encode_into(&mut out, Endian::Big).expect("a record");
    });
}
