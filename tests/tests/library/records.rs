//! Every record of the independent writer is read, written, and converted to the other byte order
//! by the library.

use std::collections::BTreeSet;

use perfdata_core::attr::Attr;
use perfdata_core::describe::{Describe, Style, WireSize};
use perfdata_core::record::{RawRecord, Record, RecordHeader, RecordType, TABLE};
use perfdata_core::wire::Wire;
use perfdata_core::{DecodeContext, Endian};
use perfdata_tests::synth::record::{Case, cases, unknown_cases};

const ORDERS: [Endian; 2] = [Endian::Little, Endian::Big];

fn all(endian: Endian) -> Vec<Case> {
    let big = endian == Endian::Big;
    cases(big).into_iter().chain(unknown_cases(big)).collect()
}

/// Returns the layout of a record according to the case's attribute.
fn layout(case: &Case, endian: Endian) -> DecodeContext {
    let bytes = case.attr.bytes(endian == Endian::Big);
    DecodeContext::of_attr(
        &Attr::decode(&bytes, endian, DecodeContext::default())
            .expect("the attribute is read")
            .0,
    )
}

fn read(case: &Case, endian: Endian) -> Record {
    let raw = RawRecord::first(&case.record, endian, 0).expect("the header is read");
    Record::decode(&raw, &layout(case, endian))
        .unwrap_or_else(|e| panic!("{} ({endian:?}): {e}", case.name))
}

#[test]
fn what_is_read_is_written() {
    for endian in ORDERS {
        for case in all(endian) {
            let record = read(&case, endian);
            assert_eq!(
                record.encode(endian).unwrap(),
                case.record,
                "{} ({endian:?}): {record:#x?}",
                case.name
            );
            let mut size = WireSize::default();
            record.describe("", Style::Plain, &mut size);
            assert_eq!(
                size.0 + RecordHeader::SIZE,
                case.record.len(),
                "{} ({endian:?}) as described",
                case.name
            );
        }
    }
}

#[test]
fn the_other_byte_order_is_the_twin() {
    for endian in ORDERS {
        let other = if endian == Endian::Big {
            Endian::Little
        } else {
            Endian::Big
        };
        for (case, twin) in all(endian).iter().zip(all(other)) {
            let record = read(case, endian);
            // Sections and compressed data are converted by the code that parses their contents.
            let carrier = [
                RecordType::HEADER_FEATURE,
                RecordType::COMPRESSED,
                RecordType::COMPRESSED2,
            ];
            if carrier.contains(&record.kind) {
                continue;
            }
            if case.swaps {
                assert_eq!(
                    record.opaque(),
                    None,
                    "{} ({endian:?}): {record:#x?}",
                    case.name
                );
                assert_eq!(
                    record.encode(other).unwrap(),
                    twin.record,
                    "{} ({endian:?}): {record:#x?}",
                    case.name
                );
            } else if case.record.len() > RecordHeader::SIZE {
                assert!(
                    record.opaque().is_some(),
                    "{} ({endian:?}): {record:#x?}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn every_type_has_a_case() {
    let written: BTreeSet<_> = cases(false).iter().map(|case| case.kind).collect();
    let missing: Vec<_> = TABLE
        .iter()
        .filter(|info| !written.contains(&info.kind.0))
        .map(|info| info.name)
        .collect();
    assert_eq!(missing, [""; 0]);
}
