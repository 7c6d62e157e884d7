//! Records: the header of each, and every type in every variant.

use super::attr::{Attr, Stamp, sample_type};
use super::buf::Buf;
use super::{auxtrace, kernel_cases, sample_cases, stat, user_cases};

/// `PERF_RECORD_MISC_CPUMODE_*`: the CPU mode.
#[allow(missing_docs, reason = "the kernel's names")]
pub mod misc {
    pub const KERNEL: u16 = 1;
    pub const USER: u16 = 2;
    pub const HYPERVISOR: u16 = 3;
    pub const GUEST_KERNEL: u16 = 4;
    pub const GUEST_USER: u16 = 5;
}

/// A record of a known type.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel's or perf's name of the type, then the variant.
    pub name: String,
    /// Record type number.
    pub kind: u32,
    /// The header's misc word.
    pub misc: u16,
    /// The whole record, header included.
    pub record: Vec<u8>,
    /// The attribute of the record's event, which is required for reading the record.
    pub attr: Attr,
    /// Bytes that follow the record and are not included in its size (AUXTRACE, tracing data).
    pub payload: Vec<u8>,
    /// Whether swapping the byte order of this record produces exactly its twin of the other byte
    /// order. False where this is impossible: compressed records, future fields.
    pub swaps: bool,
}

/// Returns a record: a header and `body`.
pub fn frame(big: bool, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("a record is shorter than 64 KiB");
    Buf::new(big)
        .u32(kind)
        .u16(misc)
        .u16(size)
        .bytes(body)
        .bytes
}

/// Writes successive records with a current attribute, and a clock that advances.
#[derive(Clone, Debug)]
pub struct Scribe {
    /// Byte order.
    pub big: bool,
    /// The attribute of the next records.
    pub attr: Attr,
    /// The fields of the next record's trailer.
    pub stamp: Stamp,
    /// Nanoseconds by which the time advances with every kernel record.
    pub tick: u64,
    /// The records so far.
    pub cases: Vec<Case>,
}

impl Scribe {
    /// Returns a scribe without records.
    pub fn new(big: bool, attr: Attr, stamp: Stamp) -> Self {
        Scribe {
            big,
            attr,
            stamp,
            tick: 1_000,
            cases: Vec::new(),
        }
    }

    /// Returns a scribe whose records have the full trailer.
    pub fn standard(big: bool) -> Self {
        let attr = Attr::new(
            sample_type::TRAILER | sample_type::IP,
            "sample_id_all mmap comm",
        );
        Scribe::new(big, attr, Stamp::SOME)
    }

    /// Writes a record of a kernel type: the body, then the trailer for the attribute.
    pub fn kernel(
        &mut self,
        name: &str,
        kind: u32,
        misc: u16,
        body: impl FnOnce(Buf) -> Buf,
    ) -> &mut Case {
        let trailer = self.attr.trailer(self.big, &self.stamp);
        self.stamp.time += self.tick;
        self.user(name, kind, misc, |buf| body(buf).bytes(&trailer))
    }

    /// Writes a record without a trailer: records of the perf tool, and samples.
    pub fn user(
        &mut self,
        name: &str,
        kind: u32,
        misc: u16,
        body: impl FnOnce(Buf) -> Buf,
    ) -> &mut Case {
        let body = body(Buf::new(self.big)).bytes;
        self.cases.push(Case {
            name: name.to_owned(),
            kind,
            misc,
            record: frame(self.big, kind, misc, &body),
            attr: self.attr.clone(),
            payload: Vec::new(),
            swaps: true,
        });
        self.cases.last_mut().expect("just pushed")
    }
}

/// Returns the bytes of several records, each followed by its payload.
pub fn stream(cases: &[Case]) -> Vec<u8> {
    cases
        .iter()
        .flat_map(|case| [&case.record[..], &case.payload])
        .flatten()
        .copied()
        .collect()
}

/// Returns every record type that perf 7.2 knows, in every variant.
pub fn cases(big: bool) -> Vec<Case> {
    let mut scribe = Scribe::standard(big);
    kernel_cases::plain(&mut scribe);
    kernel_cases::variants(&mut scribe);
    sample_cases::cases(&mut scribe);
    scribe.attr = Scribe::standard(big).attr;
    user_cases::cases(&mut scribe);
    stat::cases(&mut scribe);
    auxtrace::cases(&mut scribe);
    scribe.cases
}

/// Returns records of undefined types. Only their bytes can be preserved.
pub fn unknown_cases(big: bool) -> Vec<Case> {
    let mut scribe = Scribe::standard(big);
    for kind in [0, 23, 63, 87, 1_000_000] {
        let name = format!("unknown type {kind}");
        scribe
            .user(&name, kind, 0x8001, |b| b.bytes(&super::buf::island(24)))
            .swaps = false;
    }
    scribe
        .user("unknown type 88, header only", 88, 0, |b| b)
        .swaps = false;
    scribe.cases
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::synth::bits::ATTR_FLAGS;
    use crate::synth::{feature, kind, sink};

    fn kinds(cases: &[Case]) -> BTreeSet<u32> {
        cases.iter().map(|case| case.kind).collect()
    }

    fn every_kind() -> BTreeSet<u32> {
        (1..=22).chain(64..=86).collect()
    }

    #[test]
    fn every_type_has_a_case() {
        assert_eq!(kinds(&cases(false)), every_kind());
    }

    #[test]
    fn every_feature_has_a_case() {
        let bits: BTreeSet<u32> = feature::cases(false).iter().map(|case| case.bit).collect();
        assert_eq!(bits, (1..=34).collect());
    }

    #[test]
    fn names_are_unique() {
        let cases = cases(false);
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
        let features = feature::cases(false);
        let names: BTreeSet<_> = features.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), features.len());
    }

    #[test]
    fn both_orders_have_the_same_cases() {
        for (little, big) in cases(false).iter().zip(cases(true)) {
            assert_eq!(little.name, big.name);
            assert_eq!(little.attr, big.attr);
            assert_eq!(little.record.len(), big.record.len());
            assert_eq!(
                little.payload, big.payload,
                "{}: what follows a record has no byte order",
                little.name
            );
            assert_eq!(little.record[..4], little.kind.to_le_bytes());
            assert_eq!(big.record[..4], big.kind.to_be_bytes());
        }
        for (little, big) in feature::cases(false).iter().zip(feature::cases(true)) {
            assert_eq!(
                (&little.name, little.section.len()),
                (&big.name, big.section.len())
            );
        }
    }

    /// All types except compressed ones and those whose content is elsewhere in the container.
    #[test]
    fn the_sink_holds_every_type() {
        use kind::*;
        let held = kinds_of_stream(&sink::file(false).data);
        let elsewhere = [
            HEADER_ATTR,
            HEADER_EVENT_TYPE,
            HEADER_TRACING_DATA,
            HEADER_FEATURE,
            COMPRESSED,
            COMPRESSED2,
        ];
        assert_eq!(
            held,
            every_kind()
                .difference(&elsewhere.into())
                .copied()
                .collect()
        );
        let held = kinds_of_stream(&sink::pipe(false).bytes[16..]);
        assert_eq!(
            held,
            every_kind()
                .difference(&[COMPRESSED, COMPRESSED2].into())
                .copied()
                .collect()
        );
    }

    #[test]
    fn the_sink_holds_every_feature_of_a_file() {
        let bits: BTreeSet<u32> = sink::file(false)
            .features
            .iter()
            .map(|feature| feature.0)
            .collect();
        assert_eq!(bits, (1..=34).filter(|bit| *bit != 24).collect());
    }

    #[test]
    fn the_sink_uses_every_flag_and_part() {
        let events = sink::events();
        for field in ATTR_FLAGS {
            let used = events.iter().any(|event| {
                event
                    .attr
                    .flags
                    .split_whitespace()
                    .any(|flag| flag.split('=').next() == Some(field.0))
            });
            assert!(used, "{} is in no attribute", field.0);
        }
        let parts = events
            .iter()
            .fold(0, |parts, event| parts | event.attr.sample_type);
        assert_eq!(parts, (1 << 25) - 1);
    }

    fn kinds_of_stream(mut data: &[u8]) -> BTreeSet<u32> {
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | usize::from(*byte))
        };
        let mut kinds = BTreeSet::new();
        while !data.is_empty() {
            let kind = number(&data[..4]) as u32;
            let behind = match kind {
                kind::AUXTRACE => number(&data[8..16]),
                kind::HEADER_TRACING_DATA => number(&data[8..12]),
                _ => 0,
            };
            kinds.insert(kind);
            data = &data[number(&data[6..8]) + behind..];
        }
        kinds
    }
}
