//! Traces of Intel PT become the samples of perf inject --itrace, and the instructions and branches
//! are those of the run that they were made from.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{Body, RawRecord, Record, RecordType};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::traces::encoder::Features;
use perfdata_tests::traces::flow::{FlowRecipe, FlowRecording};

use super::itrace_bts_perf::judges;
use super::itrace_perf::{injected, own};

const USUAL: FlowRecipe = FlowRecipe::USUAL;

/// What is recorded, from the simplest on.
pub(super) fn recipes() -> Vec<(&'static str, FlowRecipe)> {
    let plain = USUAL.features;
    let timed = Features {
        tsc: true,
        return_compression: true,
        ..plain
    };
    let cycles = Features {
        mtc: true,
        cyc: true,
        ..timed
    };
    let all = Features {
        interrupts: true,
        others: true,
        ..cycles
    };
    vec![
        ("without times", USUAL),
        (
            "TSC",
            FlowRecipe {
                seed: 2,
                features: timed,
                ..USUAL
            },
        ),
        (
            "MTC",
            FlowRecipe {
                seed: 3,
                features: Features { mtc: true, ..timed },
                ..USUAL
            },
        ),
        (
            "CYC",
            FlowRecipe {
                seed: 4,
                features: cycles,
                ..USUAL
            },
        ),
        (
            "interrupts",
            FlowRecipe {
                seed: 5,
                features: Features {
                    interrupts: true,
                    ..cycles
                },
                ..USUAL
            },
        ),
        (
            "others",
            FlowRecipe {
                seed: 6,
                features: all,
                ..USUAL
            },
        ),
        (
            "CPUs",
            FlowRecipe {
                seed: 11,
                features: Features { mtc: true, ..timed },
                per_cpu: true,
                ..USUAL
            },
        ),
        // Times by CYC are too late at first, and so code is followed in the next thread.
        (
            "CPUs, CYC",
            FlowRecipe {
                seed: 7,
                features: Features {
                    interrupts: true,
                    ..cycles
                },
                per_cpu: true,
                ..USUAL
            },
        ),
        (
            "overflows",
            FlowRecipe {
                seed: 8,
                features: Features {
                    overflows: true,
                    ..all
                },
                ..USUAL
            },
        ),
        (
            "damage",
            FlowRecipe {
                seed: 9,
                features: all,
                damage: 30,
                ..USUAL
            },
        ),
        (
            "no code",
            FlowRecipe {
                seed: 10,
                features: cycles,
                is_elsewhere: true,
                ..USUAL
            },
        ),
    ]
}

/// Letters. Those of `I` are not compared: perf writes more data than there are.
const WORDS: [&str; 14] = [
    "b",
    "i1i",
    "cr",
    "i20usbe",
    "i7ibxwpe",
    "i100ig",
    "i50ig6l12",
    "bel",
    "i64tp",
    "qi",
    "qqi",
    "qbe",
    "bes100",
    "Zi13ibe",
];

/// Writes a recording and its program into a folder.
pub(super) fn made(folder: &Path, recipe: FlowRecipe) -> (PathBuf, FlowRecording) {
    let program = folder.join("program");
    let recording = recipe.make(&program);
    fs::write(&program, recording.program.object()).expect("a file");
    let path = folder.join("in.data");
    fs::write(&path, recording.file.bytes()).expect("a file");
    (path, recording)
}

/// Returns the records that can differ.
fn records(path: &Path) -> Vec<String> {
    let whole = Whole::read_file(path).expect("a recording");
    let order = whole.recording.endian;
    let is_compared = |kind: RecordType| kind.is_kernel() || kind == RecordType::AUXTRACE_ERROR;
    let known = whole.records.iter().filter(|(_, kind)| is_compared(*kind));
    known
        .map(|(at, _)| {
            let raw = RawRecord::first(&whole.stream[*at..], order, 0).expect("a record");
            let layout = whole.recording.events.layout_of(&raw);
            let record = Record::decode(&raw, &layout).expect("a known record");
            format!("{:#x} {:?}", raw.misc, record.body)
        })
        .collect()
}

fn assert_same(left: &[String], right: &[String], what: &str) {
    let differing = left.iter().zip(right).position(|(one, other)| one != other);
    if let Some(at) = differing {
        panic!(
            "{what}: record {at}\n{}\n{}\nafter\n{}",
            left[at],
            right[at],
            left[at.saturating_sub(1)]
        );
    }
    assert_eq!(left.len(), right.len(), "{what}");
}

#[test]
fn samples_are_those_of_perf() {
    for (name, recipe) in recipes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (input, _) = made(folder.path(), recipe);
        for words in WORDS {
            let found = own(&input, None, words, false);
            let found = records(&found.path());
            for judge in judges() {
                let expected = records(&injected(judge, &input, words, false));
                assert_same(&expected, &found, &format!("{judge}: {name}, {words}"));
            }
        }
    }
}

/// Returns the addresses in the samples of our output.
fn addresses(input: &Path, words: &str) -> Vec<(u64, u64)> {
    let found = own(input, None, words, true);
    let whole = Whole::read_file(&found.path()).expect("a recording");
    let order = whole.recording.endian;
    let samples = whole.records.iter().filter_map(|(at, _)| {
        let raw = RawRecord::first(&whole.stream[*at..], order, 0).expect("a record");
        let layout = whole.recording.events.layout_of(&raw);
        match Record::decode(&raw, &layout).expect("a known record").body {
            Body::Sample(sample) => Some((sample.ip?, sample.addr.unwrap_or(0))),
            Body::AuxtraceError(error) => panic!("{input:?}: {error:?}"),
            _ => None,
        }
    });
    samples.collect()
}

/// Without lost packets, each instruction and each branch of the run is there.
#[test]
fn samples_are_the_run() {
    for (name, recipe) in recipes() {
        let is_wrong = recipe.per_cpu && recipe.features.cyc;
        if is_wrong || recipe.features.overflows || recipe.damage > 0 || recipe.is_elsewhere {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (input, recording) = made(folder.path(), recipe);
        let branches: Vec<(u64, u64)> = addresses(&input, "be");
        let count = recording.branches.len();
        if recipe.per_cpu {
            // With the ends of turns; those of two CPUs are mixed.
            let mut found: Vec<_> = branches.iter().filter(|branch| branch.1 != 0).collect();
            let mut expected: Vec<_> = recording
                .branches
                .iter()
                .filter(|branch| branch.1 != 0)
                .collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name}");
            continue;
        }
        assert_eq!(
            branches[..count.min(branches.len())],
            recording.branches,
            "{name}"
        );
        let instructions: Vec<u64> = addresses(&input, "i1ie")
            .iter()
            .map(|found| found.0)
            .collect();
        // The last one is behind the last packet.
        let expected = &recording.run[..recording.run.len() - 1];
        assert!(
            instructions.len() >= expected.len() - 10,
            "{name}: {}",
            instructions.len()
        );
        let last = instructions.len().min(expected.len());
        assert_eq!(instructions[..last], expected[..last], "{name}");
    }
}

/// Pipes and recordings of the other byte order have the same samples.
#[test]
fn containers_make_no_difference() {
    for (name, recipe) in recipes() {
        if !["without times", "CPUs", "others"].contains(&name) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (input, _) = made(folder.path(), recipe);
        let expected = records(&own(&input, None, "i20usbe", false).path());
        assert!(expected.len() > 100, "{name}");
        let pipe = own(&input, Some(ContainerKind::Pipe), "i20usbe", false);
        assert_same(&expected, &records(&pipe.path()), name);
        let as_pipe = convert(&input, Some(ContainerKind::Pipe), Vec::new());
        let of_pipe = own(&as_pipe.expect("a pipe").path(), None, "i20usbe", false);
        assert_same(&expected, &records(&of_pipe.path()), name);
        let swap: Box<dyn Stage> = Box::new(Swap::new(Target::Other, Unknown::Error));
        let swapped = convert(&input, None, vec![swap]).expect("the other byte order");
        let of_swapped = own(&swapped.path(), None, "i20usbe", false);
        assert_same(&expected, &records(&of_swapped.path()), name);
    }
}
