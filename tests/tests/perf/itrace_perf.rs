//! Traces of Arm SPE become the samples of perf inject --itrace.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RawRecord, RecordType};
use perfdata_edit::sort::Sort;
use perfdata_inject::itrace::{Itrace, ItraceOptions};
use perfdata_tests::convert::{Converted, Whole, convert};
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::recordings::{Endian, PerfVersion};
use perfdata_tests::skipped;
use perfdata_tests::synth::arm_spe::Recipe;

/// All kinds of samples.
const ALL: &str = "i1ibflmtaM";

fn since(version: &str) -> impl Iterator<Item = &'static Perf> {
    let since: PerfVersion = version.parse().expect("a release");
    perf::all()
        .iter()
        .filter(move |perf| perf.endian == Endian::Little && perf.version >= since)
}

fn stages(words: &str, strip: bool) -> Vec<Box<dyn Stage>> {
    let options = ItraceOptions::parse(words).expect("options");
    vec![Box::new(Sort::new()), Box::new(Itrace::new(options, strip))]
}

pub(super) fn own(input: &Path, to: Option<ContainerKind>, words: &str, strip: bool) -> Converted {
    convert(input, to, stages(words, strip)).expect("it is converted")
}

fn made(folder: &Path, recipe: Recipe) -> PathBuf {
    let path = folder.join("in.data");
    fs::write(&path, recipe.file().bytes()).expect("a file");
    path
}

/// Returns the recording that perf makes.
pub(super) fn injected(perf: &Perf, input: &Path, words: &str, strip: bool) -> PathBuf {
    let output = input.with_file_name("perf.data");
    let mut command = perf.command();
    command.arg("inject").arg(format!("--itrace={words}"));
    command.args(strip.then_some("--strip"));
    command.arg("-i").arg(input).arg("-o").arg(&output);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    output
}

/// Parts of samples that only synthesised ones have.
const PARTS: &[&str] = &[
    "-F",
    "hw:comm,pid,tid,cpu,time,event,period,ip,addr,weight,data_src,phys_addr",
];

/// Returns the text of perf script.
fn script(perf: &Perf, path: &Path, more: &[&str]) -> String {
    let mut command = perf.command();
    command.args(["script", "--ns"]).args(more);
    command.arg("-i").arg(path);
    let said = perf::run(command).expect("perf can be started");
    assert!(said.success(), "{perf}: {}", said.stderr);
    said.stdout
}

/// Returns the bytes of the kernel records, except those without a place in the order of time.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let whole = Whole::read_file(path).expect("a recording");
    let order = whole.recording.endian;
    let known = whole.records.iter().filter(|(_, kind)| kind.is_kernel());
    let bytes = known.map(|(at, _)| {
        let raw = RawRecord::first(&whole.stream[*at..], order, 0).expect("a record");
        raw.bytes.to_vec()
    });
    bytes.collect()
}

/// Asserts that the recordings have the same kernel records.
fn assert_same(expected: &Path, found: &Path, what: &str) {
    let (left, right) = (records(expected), records(found));
    assert!(right.len() > 100, "{what}");
    let differing = left
        .iter()
        .zip(&right)
        .position(|(one, other)| one != other);
    if let Some(at) = differing {
        panic!("{what}: record {at}\n{:x?}\n{:x?}", left[at], right[at]);
    }
    assert_eq!(left.len(), right.len(), "{what}");
}

/// The records, attributes and names are those of perf 7.2, byte for byte; the text is that of
/// perf script --itrace of the original recording.
#[test]
fn samples_are_those_of_perf() {
    let Some(judge) = since("7.2").next() else {
        skipped::note("perf 7.2 or newer");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let usual = Recipe::USUAL;
    let recipes = [
        usual,
        Recipe {
            seed: 2,
            is_v2: false,
            ..usual
        },
        Recipe {
            seed: 3,
            has_contexts: false,
            ..usual
        },
        Recipe {
            seed: 4,
            records: 4000,
            ..usual
        },
    ];
    for recipe in recipes {
        let input = made(folder.path(), recipe);
        for (words, strip) in [
            (ALL, false),
            (ALL, true),
            ("b", false),
            ("i10il1", false),
            ("Mt", true),
        ] {
            let what = format!("{recipe:?} {words}");
            let expected = injected(judge, &input, words, strip);
            let found = own(&input, None, words, strip);
            let (left, right) = (records(&expected), records(&found.path()));
            assert!(right.len() > 100, "{what}");
            let differing = left
                .iter()
                .zip(&right)
                .position(|(one, other)| one != other);
            if let Some(at) = differing {
                panic!("{what}: record {at}\n{:x?}\n{:x?}", left[at], right[at]);
            }
            assert_eq!(left.len(), right.len(), "{what}");
            let more = if strip { PARTS } else { &[] };
            let texts = [&expected, &found.path()].map(|path| script(judge, path, more));
            assert!(texts[0] == texts[1], "{what}");
        }
        let decoded = format!("--itrace={ALL}");
        let decoded = [&[decoded.as_str()], PARTS].concat();
        let found = own(&input, None, ALL, true);
        let texts = [
            script(judge, &input, &decoded),
            script(judge, &found.path(), PARTS),
        ];
        assert!(texts[0] == texts[1], "{recipe:?}");
    }
}

/// perf 6.12 reads the older form of AUXTRACE_INFO. Its samples of caches and memory are the same,
/// except for the parts that later releases changed: the period and the source of the data.
#[test]
fn samples_of_caches_are_those_of_older_releases() {
    let is_old = |perf: &&Perf| perf.version < "6.13".parse().expect("a release");
    let judges: Vec<_> = since("6.12").filter(is_old).collect();
    if judges.is_empty() {
        skipped::note("perf 6.12");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe {
        is_v2: false,
        has_calls: true,
        ..Recipe::USUAL
    };
    let input = made(folder.path(), recipe);
    let fields = [
        "-F",
        "hw:comm,pid,tid,cpu,time,event,ip,addr,weight,phys_addr",
    ];
    for judge in judges {
        let expected = injected(judge, &input, "fmta", true);
        let found = own(&input, None, "fmta", true);
        let texts = [&expected, &found.path()].map(|path| script(judge, path, &fields));
        assert!(texts[0].lines().count() > 1000, "{judge}");
        assert!(texts[0] == texts[1], "{judge}");
    }
}

/// Without times, the samples come after all other records, by CPU. perf ignores thread IDs in such
/// a trace, and adds a sample of an empty record for `i`.
#[test]
fn recordings_without_times() {
    let Some(judge) = since("7.2").next() else {
        skipped::note("perf 7.2 or newer");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe {
        has_times: false,
        has_contexts: false,
        ..Recipe::USUAL
    };
    let input = made(folder.path(), recipe);
    let expected = injected(judge, &input, "bfmtaM", false);
    let found = own(&input, None, "bfmtaM", false);
    assert_same(&expected, &found.path(), "without times");
}

/// Traces are removed as by perf inject --no-itrace.
#[test]
fn traces_may_be_removed_undecoded() {
    let Some(judge) = since("7.2").next() else {
        skipped::note("perf 7.2 or newer");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path(), Recipe::USUAL);
    let expected = folder.path().join("perf.data");
    for strip in [false, true] {
        let mut command = judge.command();
        command.args(["inject", "--no-itrace", "-i"]).arg(&input);
        command.arg("-o").arg(&expected);
        command.args(strip.then_some("--strip"));
        let said = perf::run(command).expect("perf can be started");
        assert!(said.success(), "{judge}: {}", said.stderr);
        let removed = Box::new(Itrace::without_samples(strip)) as Box<dyn Stage>;
        let found = convert(&input, None, vec![Box::new(Sort::new()), removed]);
        let converted = found.expect("it is converted");
        let found = converted.path();
        let (left, right) = (records(&expected), records(&found));
        assert!(left == right && !right.is_empty(), "{strip}");
        let whole = Whole::read_file(&found).expect("a recording");
        let is_trace = |kind: &RecordType| kind.has_payload() || *kind == RecordType::AUX;
        assert!(!whole.records.iter().any(|(_, kind)| is_trace(kind)));
        let before = Whole::read_file(&input).expect("a recording");
        assert!(before.records.iter().any(|(_, kind)| is_trace(kind)));
    }
}

/// perf 7.2 regards calls and returns as accesses to memory, because two of its constants have the
/// same value. Other samples are the same.
#[test]
fn calls_are_no_accesses_to_memory() {
    let Some(judge) = since("7.2").next() else {
        skipped::note("perf 7.2 or newer");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = Recipe {
        has_calls: true,
        ..Recipe::USUAL
    };
    let input = made(folder.path(), recipe);
    let fields = [
        "-F",
        "hw:comm,pid,tid,cpu,time,event,period,ip,addr,weight,brstack",
    ];
    let text = |words, strip| {
        let expected = injected(judge, &input, words, strip);
        let found = own(&input, None, words, strip);
        [&expected, &found.path()].map(|path| script(judge, path, &fields))
    };
    let [expected, found] = text("bi1il", true);
    assert!(expected == found && found.contains("/CALL/") && found.contains("/RET/"));
    let [expected, found] = text("fmta", true);
    assert!(expected == found);
    let count = |text: &str| text.matches("memory:").count();
    let [expected, found] = text("M", true);
    assert!(0 < count(&found) && count(&found) < count(&expected));
}

/// Older and newer releases of perf read the result, and print the same.
#[test]
fn all_releases_read_the_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path(), Recipe::USUAL);
    let found = own(&input, None, ALL, true);
    let texts: Vec<_> = since("6.1")
        .map(|perf| (perf, script(perf, &found.path(), PARTS)))
        .collect();
    let Some((_, first)) = texts.first() else {
        skipped::note("perf");
        return;
    };
    assert!(first.lines().count() > 1000);
    for (perf, text) in &texts {
        assert_eq!(text.lines().count(), first.lines().count(), "{perf}");
    }
}

/// Pipes, compressed records and the other byte order give the same samples.
#[test]
fn containers_make_no_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path(), Recipe::USUAL);
    let expected = own(&input, None, ALL, false);
    let expected = records(&expected.path());
    let compress =
        || -> Vec<Box<dyn Stage>> { vec![Box::new(Compress::new(RecordType::COMPRESSED, 1))] };
    for (before, kind) in [
        (Vec::new(), ContainerKind::Pipe),
        (compress(), ContainerKind::File),
        (compress(), ContainerKind::Pipe),
    ] {
        let from = convert(&input, Some(kind), before).expect("it is converted");
        for to in [ContainerKind::File, ContainerKind::Pipe] {
            let result = own(&from.path(), Some(to), ALL, false);
            let plain: Vec<Box<dyn Stage>> = vec![Box::new(Decompress::default())];
            let plain = convert(&result.path(), Some(ContainerKind::File), plain);
            let plain = plain.expect("plain records");
            assert!(records(&plain.path()) == expected, "{kind} {to}");
            for judge in since("6.12") {
                let text = script(judge, &result.path(), &[]);
                assert!(text.contains("remote-access:"), "{judge} {kind} {to}");
            }
        }
    }
    let big = made(
        folder.path(),
        Recipe {
            big: true,
            ..Recipe::USUAL
        },
    );
    let swapped = || -> Box<dyn Stage> { Box::new(Swap::new(Target::Other, Unknown::Error)) };
    let one = own(&big, None, ALL, false);
    let one = convert(&one.path(), None, vec![swapped()]).expect("it is converted");
    assert!(records(&one.path()) == expected, "big-endian");
}

/// What perf writes can be swapped: also its own types of events, and branches that were not taken.
#[test]
fn samples_of_perf_are_swapped() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = made(folder.path(), Recipe::USUAL);
    let swap =
        || -> Vec<Box<dyn Stage>> { vec![Box::new(Swap::new(Target::Other, Unknown::Error))] };
    let mut judges = 0;
    for judge in since("7.2") {
        judges += 1;
        let made = injected(judge, &input, ALL, false);
        let other = convert(&made, None, swap()).expect("the other byte order");
        let back = convert(&other.path(), None, swap()).expect("the first byte order");
        assert!(records(&back.path()) == records(&made), "{judge}");
        assert!(not_taken(&made) > 10, "{judge}");
        assert_eq!(not_taken(&other.path()), not_taken(&made), "{judge}");
        // perf shows the same branches, but it does not find this flag in the other byte order.
        let text = |path: &Path| script(judge, path, &["-F", "event,brstack"]);
        let (expected, found) = (text(&made), text(&other.path()));
        let shown = [&expected, &found].map(|text| text.matches("N/").count());
        eprintln!("{judge}: {shown:?} branches that were not taken");
        assert!(shown[0] > 10, "{judge}");
        let known = |text: &str| text.replace("PN/", "P/").replace("MN/", "M/");
        let lines = |text: &str| known(text).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&found), lines(&expected), "{judge}");
    }
    if judges == 0 {
        skipped::note("perf 7.2 or newer");
    }
}

/// Returns the number of branches that were not taken.
fn not_taken(path: &Path) -> usize {
    let whole = Whole::read_file(path).expect("a recording");
    let (events, order) = (&whole.recording.events, whole.recording.endian);
    let branches = |(at, _): &(usize, RecordType)| {
        let raw = RawRecord::first(&whole.stream[*at..], order, 0).expect("a record");
        let view = events.sample_view(&raw)?;
        let branches = view.branches()?;
        Some(
            branches
                .filter(|branch| branch.flags.not_taken() == 1)
                .count(),
        )
    };
    whole.records.iter().filter_map(branches).sum()
}
