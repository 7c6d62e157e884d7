//! Byte orders, containers, and conversions of the result.

use std::fs;
use std::path::Path;

use perfdata_convert::io::Input;
use perfdata_core::Endian;
use perfdata_core::header::ContainerKind;
use perfdata_core::record::RecordType;
use perfdata_edit::merge::Merge;
use perfdata_tests::convert::Whole;
use perfdata_tests::synth::attr::sample_type::*;

use super::{BASE, Small, event, merge, merge_noting, records, samples};

#[test]
fn byte_orders_containers_and_attribute_sizes_are_brought_to_one() {
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100, 300]);
    let mut two = Small::new(event(BASE, 4000, &[8]), "two", &[200, 400]);
    let expected = samples(&merge(&[&one.bytes(), &two.bytes()]));
    two.big = true;
    let both = merge(&[&one.bytes(), &two.bytes()]);
    assert_eq!(samples(&both), expected);
    let whole = Whole::read(both).expect("a recording");
    assert_eq!(whole.recording.endian, Endian::Little);
    assert_eq!(whole.recording.events.len(), 1);
    let other = Whole::read(merge(&[&two.bytes(), &one.bytes()])).expect("a recording");
    assert_eq!(other.recording.endian, Endian::Big);
    two.big = false;
    two.events[0].attr.size = 144;
    let both = Whole::read(merge(&[&one.bytes(), &two.bytes()])).expect("a recording");
    let sizes: Vec<u32> = both
        .recording
        .events
        .iter()
        .map(|event| event.attr.size)
        .collect();
    assert_eq!(sizes, [144], "the attribute is the same with more zeros");
    let pipe = {
        let input = Input::from_source(two.bytes());
        let pipe = Some(ContainerKind::Pipe);
        merge_noting(Merge::default(), vec![input], pipe)
            .expect("a pipe")
            .0
    };
    assert_eq!(samples(&merge(&[&one.bytes(), &pipe])).len(), 4);
}

/// The records are in no order and there are no rounds: they are sorted in a temporary file.
#[test]
fn records_without_rounds_are_sorted() {
    let count = 150_000_u64;
    // Larger than what is sorted in memory, and the youngest first.
    let times: Vec<u64> = (0..count).rev().map(|at| 1_000 + 10 * at).collect();
    let mut parts = event(BASE | STACK_USER, 4000, &[7]);
    parts.attr.sample_stack_user = 256;
    let one = Small::new(parts, "one", &times).bytes();
    assert!(one.len() > 11 << 20, "{}", one.len());
    let two = Small::new(event(BASE, 5000, &[8]), "two", &[2_005, 300_005]).bytes();
    let both = merge(&[&one, &two]);
    let times: Vec<u64> = records(&both)
        .into_iter()
        .filter(|(event, ..)| event.is_some())
        .filter_map(|(_, time, _)| time)
        .collect();
    assert_eq!(times.len() as u64, count + 2);
    assert!(times.is_sorted());
    let rounds = Whole::read(both).expect("a recording");
    let rounds = rounds
        .records
        .iter()
        .filter(|(_, kind)| *kind == RecordType::FINISHED_ROUND);
    assert!(rounds.count() > 1);
}

/// A merged recording can be read as often as a conversion needs.
#[test]
fn a_merge_can_be_converted_further() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let one = Small::new(event(BASE, 4000, &[7]), "one", &[100, 300]).bytes();
    let two = Small::new(event(BASE, 5000, &[8]), "two", &[200, 400]).bytes();
    fs::write(path("one"), &one).expect("a file");
    fs::write(path("two"), &two).expect("a file");
    let run = |words: &[&str]| {
        let output = perfdata_tests::convert::perfconv()
            .args(words)
            .current_dir(folder.path())
            .output()
            .expect("perfconv runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (status, text) = run(&[
        "merge",
        "one",
        "two",
        "--compress",
        "--swap-endian",
        "--build-ids=all",
        "-o",
        "both",
    ]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text) = run(&[
        "convert",
        "both",
        "--decompress",
        "--endian",
        "little",
        "-o",
        "plain",
    ]);
    assert_eq!(status, Some(0), "{text}");
    let plain = fs::read(path("plain")).expect("a file");
    let mut expected = samples(&one);
    expected.extend(samples(&two));
    expected.sort();
    assert_eq!(samples(&plain), expected);
    for (words, expected) in [
        (&["merge", "one", "two", "-o", "one", "-f"][..], 2),
        (&["merge", "one", "two", "-o", "two", "-f"][..], 2),
        (&["merge", "one", "two", "-o", "both"][..], 2),
        (&["merge", "one", "none", "-o", "more"][..], 2),
        (
            &["merge", "one", "two", "--align", "wall", "-o", "more"][..],
            1,
        ),
    ] {
        let (status, text) = run(words);
        assert_eq!(status, Some(expected), "{words:?}: {text}");
        assert!(!Path::new(&path("more")).exists());
    }
    assert_eq!(fs::read(path("two")).expect("a file"), two);
}
