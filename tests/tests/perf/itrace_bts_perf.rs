//! Traces of Intel BTS become the samples of perf inject --itrace.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::Endian;
use perfdata_tests::skipped;
use perfdata_tests::synth::branch_trace::BranchRecipe;

use super::itrace_perf::{injected, own};

/// perf shows samples without time before it reads the names of threads.
const FIELDS: &[&str] = &["-F", "hw:pid,tid,event,period,ip,addr"];

/// Letters with a meaning for Intel BTS, and some without.
const WORDS: [&str; 9] = [
    "b",
    "c",
    "r",
    "cr",
    "be",
    "ce",
    "e",
    "bes10",
    "i100usbxwpog16l8",
];

/// Returns the perfs that read recordings of this machine.
pub(super) fn judges() -> Vec<&'static Perf> {
    let all = perf::all().iter();
    let found: Vec<_> = all.filter(|perf| perf.endian == Endian::Little).collect();
    if found.is_empty() {
        skipped::note("perf");
    }
    found
}

pub(super) fn made(folder: &Path, recipe: BranchRecipe) -> PathBuf {
    let program = folder.join("program");
    fs::write(&program, BranchRecipe::program()).expect("a file");
    let path = folder.join("in.data");
    fs::write(&path, recipe.file(&program).bytes()).expect("a file");
    path
}

/// Returns the words of each line of perf script: the width of columns depends on the recording.
fn script(perf: &Perf, path: &Path, more: &[&str]) -> Vec<String> {
    let mut command = perf.command();
    command.arg("script").args(more).args(FIELDS);
    command.arg("-i").arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    said.stdout.lines().map(line).collect()
}

/// Returns the bytes of the kernel records and of errors.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let whole = Whole::read_file(path).expect("a recording");
    let order = whole.recording.endian;
    let is_compared = |kind: RecordType| kind.is_kernel() || kind == RecordType::AUXTRACE_ERROR;
    let known = whole.records.iter().filter(|(_, kind)| is_compared(*kind));
    let bytes = known.map(|(at, _)| {
        let raw = RawRecord::first(&whole.stream[*at..], order, 0).expect("a record");
        raw.bytes.to_vec()
    });
    bytes.collect()
}

fn assert_same(left: &[Vec<u8>], right: &[Vec<u8>], what: &str) {
    let differing = left.iter().zip(right).position(|(one, other)| one != other);
    if let Some(at) = differing {
        panic!("{what}: record {at}\n{:x?}\n{:x?}", left[at], right[at]);
    }
    assert_eq!(left.len(), right.len(), "{what}");
}

/// The records are those of perf inject, byte for byte, and the text is that of perf script
/// --itrace of the original recording.
#[test]
fn samples_are_those_of_perf() {
    let folder = tempfile::tempdir().expect("a folder");
    let usual = BranchRecipe::USUAL;
    let recipes = [
        usual,
        BranchRecipe {
            seed: 2,
            is_truncated: false,
            branches: 1500,
            ..usual
        },
    ];
    for recipe in recipes {
        let input = made(folder.path(), recipe);
        for judge in judges() {
            for words in WORDS {
                let what = format!("{judge} {recipe:?} {words}");
                for strip in [false, true] {
                    let expected = injected(judge, &input, words, strip);
                    let found = own(&input, None, words, strip);
                    assert_same(&records(&expected), &records(&found.path()), &what);
                }
                let found = own(&input, None, words, false);
                let option = format!("--itrace={words}");
                let theirs = script(judge, &input, &[&option]);
                let ours = script(judge, &found.path(), &[]);
                let differing = theirs.iter().zip(&ours).position(|(a, b)| a != b);
                if let Some(at) = differing {
                    panic!("{what}: line {at}\n{}\n{}", theirs[at], ours[at]);
                }
                assert_eq!(theirs.len(), ours.len(), "{what}");
                assert!(words == "e" || ours.len() > 100, "{what}");
            }
        }
    }
}

/// A snapshot repeats what the one before ended with. perf drops the last branch of each piece.
#[test]
fn each_branch_is_one_sample() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = |recipe| {
        let input = made(folder.path(), recipe);
        let text = records(&own(&input, None, "b", true).path());
        let is_sample = |bytes: &&Vec<u8>| bytes[0] == 9;
        let samples = text.iter().filter(is_sample).cloned().collect::<Vec<_>>();
        samples.len()
    };
    let usual = BranchRecipe::USUAL;
    let expected = count(usual);
    let recipe = BranchRecipe {
        ends_with_zeros: false,
        ..usual
    };
    assert_eq!(count(recipe), expected);
    let recipe = BranchRecipe {
        are_snapshots: true,
        ends_with_zeros: false,
        ..usual
    };
    assert_eq!(count(recipe), expected);
}

/// Pipes and recordings of the other byte order have the same samples.
#[test]
fn all_containers_and_byte_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path(), BranchRecipe::USUAL);
    let expected = records(&own(&input, None, "cre", false).path());
    assert!(expected.len() > 300);
    let pipe = own(&input, Some(ContainerKind::Pipe), "cre", false);
    assert_same(&expected, &records(&pipe.path()), "to a pipe");
    let as_pipe = convert(&input, Some(ContainerKind::Pipe), Vec::new()).expect("it is converted");
    let file = own(&as_pipe.path(), None, "cre", false);
    assert_same(&expected, &records(&file.path()), "of a pipe");
    let other = made(
        folder.path(),
        BranchRecipe {
            big: true,
            ..BranchRecipe::USUAL
        },
    );
    let big = own(&other, None, "cre", false);
    assert_eq!(records(&big.path()).len(), expected.len());
}
