//! Counter values of samples (`perf record -e '{…}:S'`) that go back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use perfdata_core::Endian;
use perfdata_core::record::RecordType;
use perfdata_tests::convert::in_shell;
use perfdata_tests::recordings;

/// Where each sample of a recording is, and its number of bytes.
fn samples(path: &Path) -> Vec<(usize, usize)> {
    let mut records = perfdata_core::open(path).expect("a recording").by_time();
    let mut samples = Vec::new();
    while let Some(record) = records.next().expect("a record") {
        if record.kind == RecordType::SAMPLE {
            let at = usize::try_from(record.offset).expect("a small file");
            samples.push((at, record.bytes.len()));
        }
    }
    samples
}

/// Lets the counters of a recording start again at 0 in the middle, as they do in two parts of a
/// recording, one after the other. Returns the number of samples and of counters that are lower
/// than before.
fn restart(path: &Path, out: &Path) -> (usize, usize) {
    let reader = perfdata_core::open(path).expect("a recording");
    let events = reader.recording().events.clone();
    let mut bytes = fs::read(path).expect("a file");
    let samples = samples(path);
    let (before, after) = samples.split_at(samples.len() / 2);
    let mut last = BTreeMap::new();
    let mut each = |&(at, len): &(usize, usize), count: &mut dyn FnMut(Option<u64>, u64) -> u64| {
        events.rewrite_counters(0, &mut bytes[at..at + len], Endian::Little, count);
    };
    for sample in before {
        each(sample, &mut |id, value| {
            last.insert(id, value);
            value
        });
    }
    let mut lower = (0, BTreeSet::new());
    let mut known = BTreeSet::new();
    for sample in after {
        let mut is_lower = false;
        each(sample, &mut |id, value| {
            let before = last.get(&id).copied().unwrap_or(0);
            let is_first = known.insert(id);
            // Otherwise, it would not be seen.
            if is_first && value - before >= before {
                last.remove(&id);
                return value;
            }
            if is_first {
                is_lower = true;
                lower.1.insert(id);
            }
            value - before
        });
        lower.0 += usize::from(is_lower);
    }
    fs::write(out, bytes).expect("a file");
    (lower.0, lower.1.len())
}

#[test]
fn counters_that_go_back_count_from_0_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = recordings::fixture("6.1-x86_64-file-group-S").path;
    fs::copy(&fixture, folder.path().join("a.data")).expect("a fixture");
    let (samples, counters) = restart(&fixture, &folder.path().join("b.data"));
    assert!(samples > 0 && counters > 1, "{samples}, {counters}");
    let run = |words: &str| {
        let output = in_shell(folder.path(), words);
        assert!(output.success(), "{words}: {}", output.stderr);
        output
    };
    let note = format!("counters go back in {samples} sample");
    let formats = [
        "folded",
        "pprof",
        "speedscope",
        "firefox",
        "otlp-1.10",
        "flamegraph",
        "perf-script",
    ];
    for format in formats {
        let export = |input: &str| {
            run(&format!(
                "perfconv export --no-symbols --to {format} {input} -o -"
            ))
        };
        let (a, b) = (export("a.data"), export("b.data"));
        assert!(!a.stderr.contains(&note), "{format}: {}", a.stderr);
        assert_eq!(b.stderr.matches(&note).count(), 1, "{format}: {}", b.stderr);
        // The others contain the name of the file.
        if !["flamegraph", "speedscope", "firefox"].contains(&format) {
            assert!(a.stdout == b.stdout, "{format}");
        }
    }
    for (input, count) in [("a.data", 0), ("b.data", counters)] {
        let report = run(&format!("perfconv verify {input}")).stdout;
        let found = report.matches("is lower than in the sample before").count();
        assert_eq!(found, count, "{input}: {report}");
    }
}
