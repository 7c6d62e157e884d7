//! Feature sections of the independent writer in every revision are read, written, and converted to
//! the other byte order. The writer's own twin is the expected result.

use std::collections::BTreeSet;

use perfdata_core::describe::{Describe, Style, WireSize, opaque};
use perfdata_core::feature::{Feature, FeatureId, Section, TABLE};
use perfdata_core::{DecodeContext, Endian};
use perfdata_tests::synth::{FeatureCase, feature};

fn decode(case: &FeatureCase, endian: Endian) -> Section {
    let layout = DecodeContext::default().with_nr_cpus_available(case.cpus.0);
    Section::decode(FeatureId(case.bit), &case.section, endian, &layout)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

#[test]
fn sections_are_read_and_written() {
    for (big, endian) in [(false, Endian::Little), (true, Endian::Big)] {
        for case in feature::cases(big) {
            let section = decode(&case, endian);
            assert_eq!(
                section.encode(endian).unwrap(),
                case.section,
                "{}",
                case.name
            );
            let padding: &[u8] = if case.name.ends_with("padded") {
                &[0; 4]
            } else {
                &[]
            };
            assert_eq!(section.tail, padding, "{}", case.name);
            let mut size = WireSize::default();
            section.describe("", Style::Plain, &mut size);
            assert_eq!(size.0, case.section.len(), "{}", case.name);
        }
    }
}

#[test]
fn sections_are_converted_to_the_other_byte_order() {
    for (little, big) in feature::cases(false)
        .iter()
        .zip(&feature::cases(true))
        .filter(|(little, _)| little.swaps)
    {
        let section = decode(little, Endian::Little);
        assert_eq!(opaque(&section), None, "{}", little.name);
        assert_eq!(
            section.encode(Endian::Big).unwrap(),
            big.section,
            "{} to big-endian",
            little.name
        );
        assert_eq!(
            section,
            decode(big, Endian::Big),
            "{} means the same",
            little.name
        );
    }
}

#[test]
fn what_nobody_knows_is_not_converted() {
    for case in feature::cases(false).iter().filter(|case| !case.swaps) {
        let section = decode(case, Endian::Little);
        assert!(
            matches!(section.value, Feature::Unknown(_)),
            "{}",
            case.name
        );
        assert!(opaque(&section).is_some(), "{}", case.name);
    }
}

#[test]
fn the_table_agrees_with_the_independent_writer() {
    let written: BTreeSet<(u32, bool)> = feature::cases(false)
        .iter()
        .filter(|case| case.swaps)
        .map(|case| (case.bit, case.pipe))
        .collect();
    let known: BTreeSet<(u32, bool)> = TABLE.iter().map(|info| (info.id.0, info.in_pipe)).collect();
    assert_eq!(written, known);
}
