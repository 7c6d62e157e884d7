//! The text of recordings with traces is that of perf script, which decodes them by default.

use std::path::Path;

use perfdata_tests::convert::perfconv;
use perfdata_tests::perf::{self, Perf};
use perfdata_tests::synth::branch_trace::BranchRecipe;

use super::itrace_bts_perf::{self, judges};
use super::itrace_intel_pt_perf::{self, recipes};

/// Letters; the first are those of the default.
const WORDS: [Option<&str>; 8] = [
    None,
    Some("--itrace"),
    Some("--itrace=b"),
    Some("--itrace=i1i"),
    Some("--itrace=i50ig6"),
    Some("--itrace=i7ibxwpe"),
    Some("--itrace=bels100"),
    Some("--no-itrace"),
];

/// Returns the words of each line: the width of the names of events depends on those that perf
/// invents for unnamed events.
fn words(text: &str) -> Vec<String> {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect()
}

/// Returns the version whose text is written for a judge.
fn like(judge: &Perf) -> &'static str {
    match judge.to_string() {
        name if name.contains("6.12") => "6.12",
        name if name.contains("6.1") => "6.1",
        _ => "7.2",
    }
}

fn of_perf(judge: &Perf, path: &Path, letters: Option<&str>) -> Vec<String> {
    let mut command = judge.command();
    command.arg("script").args(letters).arg("-i").arg(path);
    let said = perf::run(command).expect("perf can be started");
    words(&said.stdout)
}

/// Returns the lines of our text; `None` if there are no samples.
fn own(judge: &Perf, path: &Path, letters: Option<&str>) -> Option<Vec<String>> {
    let mut command = perfconv();
    command.args(["export", "--unverified", "--to"]);
    command
        .args(["perf-script", "--like", like(judge)])
        .args(letters);
    command.arg(path);
    let said = perf::run(command).expect("it starts");
    if !said.success() && said.stderr.contains("the recording contains no samples") {
        return None;
    }
    assert!(said.success(), "{}", said.stderr);
    Some(words(&said.stdout))
}

fn compare(path: &Path, what: &str) -> usize {
    let mut lines = 0;
    for judge in judges() {
        // Its samples can come after the end of the thread. After 6.1, perf keeps names and mappings
        // of such threads only if it decodes Intel PT itself.
        if what == "damage" && like(judge) != "6.1" {
            continue;
        }
        for letters in WORDS {
            let left = of_perf(judge, path, letters);
            let Some(right) = own(judge, path, letters) else {
                let is_error = |line: &String| line.contains("error type");
                assert!(left.iter().all(is_error), "{judge}: {what}, {letters:?}");
                continue;
            };
            let differing = left.iter().zip(&right).find(|(left, right)| left != right);
            assert_eq!(differing, None, "{judge}: {what}, {letters:?}");
            assert_eq!(left.len(), right.len(), "{judge}: {what}, {letters:?}");
            lines += left.len();
        }
    }
    lines
}

#[test]
fn of_intel_pt() {
    for (name, recipe) in recipes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, _) = itrace_intel_pt_perf::made(folder.path(), recipe);
        let lines = compare(&path, name);
        assert!(judges().is_empty() || lines > 20, "{name}: {lines}");
    }
}

#[test]
fn of_intel_bts() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = itrace_bts_perf::made(folder.path(), BranchRecipe::USUAL);
    let lines = compare(&path, "BTS");
    assert!(judges().is_empty() || lines > 100, "{lines}");
}
