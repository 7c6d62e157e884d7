//! Every pair of parts of a file that share bytes, with every conversion.
//!
//! Two recordings with nearly all features are used: one of perf, one of the independent writer.
//! The offset of each part in turn is set so that it overlaps another part. Either the command
//! refuses the file, names the part, and leaves no output; or the output has no error that the file
//! does not have, every section has the same contents as in the file, and `diff` finds no
//! differences other than those after the same conversion of the original recording. perf judges a
//! sample of the results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfdata_convert::io::Input;
use perfdata_convert::verify::{Report, Severity};
use perfdata_core::Version;
use perfdata_core::container_layout::Part;
use perfdata_core::feature::{self, FeatureId};
use perfdata_core::header::FileSection;
use perfdata_core::read::Limits;
use perfdata_report::diff;
use perfdata_tests::convert::{Whole, perfconv};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{fixture, in_parallel};
use perfdata_tests::{is_thorough, skipped, synth};

use crate::patched::Patched;

/// The arguments of a conversion; `in` and `out` are appended.
const CONVERSIONS: &[&str] = &[
    "convert",
    "convert --to pipe",
    "convert --to dir",
    "convert --drop CPUDESC",
    "convert --drop 13",
    "convert --set CPUDESC=another",
    "convert --set CLN_SIZE=64",
    "convert --set-raw HOSTNAME=raw",
    "convert --compat 6.1 --unknown drop",
    "convert --compat 3.2 --unknown drop",
    "convert --compat 7.2",
    "convert --compress",
    "convert --compress --compat 6.1 --unknown drop",
    "convert --decompress",
    "convert --swap-endian",
    "convert --swap-endian --unknown keep",
    "convert --endian big --to pipe",
    "convert --endian big --compress --drop NRCPUS",
    "convert --build-ids=all --sysroot . --known-build-ids KNOWN",
    "convert --decompress --mmap2-build-ids --sysroot . --known-build-ids KNOWN",
    "convert --build-ids --to pipe --sysroot . --known-build-ids KNOWN",
    "file2pipe",
    "inject -b --sysroot . --known-build-ids KNOWN -i",
    "recover",
    "recover --to pipe",
    "recover --to dir",
    "recover --compress --drop CPUDESC",
    "extract-aux --sideband side",
];

const KNOWN: &str = "abababababababababababababababababababab /usr/bin/true";

/// A recording, and the differences after each conversion of it.
struct Base {
    name: &'static str,
    patched: Patched,
    /// Findings of `diff` and `verify` after each conversion; `None` if the original recording is
    /// refused.
    usual: Vec<Option<Usual>>,
    perf: Option<&'static Perf>,
}

#[derive(Default)]
struct Usual {
    differs: BTreeMap<String, String>,
    errors: BTreeSet<String>,
    /// IDs of the sections whose bytes differ.
    sections: BTreeSet<FeatureId>,
}

/// A file to convert.
struct Case<'a> {
    base: &'a Base,
    name: String,
    bytes: Vec<u8>,
    conversions: Vec<usize>,
}

/// Runs a conversion of `in` in a folder. Returns the exit status, the messages, and the output.
fn run(folder: &Path, words: &str) -> (Option<i32>, String, Option<PathBuf>) {
    let mut command = perfconv();
    let words = words
        .split(' ')
        .map(|word| if word == "KNOWN" { KNOWN } else { word });
    command
        .args(words)
        .args(["in", "-o", "out", "--no-sync"])
        .current_dir(folder)
        .stdin(Stdio::null());
    let output = command.output().expect("perfconv runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let made = ["side", "out/data", "out"]
        .into_iter()
        .map(|name| folder.join(name))
        .find(|path| path.exists());
    (output.status.code(), said, made)
}

/// Removes the output.
fn clear(folder: &Path) {
    for name in ["side", "out"] {
        let path = folder.join(name);
        let _ = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
    }
}

/// Returns the findings of `diff`: the parts that differ, each with the first difference.
fn differs(a: &Path, b: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    let mut see = |part: diff::Part, difference: diff::Difference| {
        let key = format!("{} {}", part.name(), difference.what);
        all.entry(key).or_insert_with(|| difference.to_string());
        Ok(ControlFlow::Continue(()))
    };
    diff::compare(a, b, Limits::default(), &mut see).map_err(|error| error.to_string())?;
    Ok(all)
}

/// Returns the errors that `verify` finds, without numbers.
fn errors(path: &Path) -> Result<BTreeSet<String>, String> {
    let report = Input::open(path)
        .and_then(Report::of)
        .map_err(|error| error.to_string())?;
    let errors = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let is_word = |word: &&str| !word.contains(|c: char| c.is_ascii_digit());
    Ok(errors
        .map(|error| {
            error
                .meaning
                .replace("MMAP2", "MMAP")
                .split(' ')
                .filter(is_word)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect())
}

/// Returns the IDs of the sections of `a` that `b` does not have, or that have different bytes in
/// `b`.
fn changed_sections(a: &Whole, b: &Whole) -> BTreeSet<FeatureId> {
    let (a, b) = (&a.recording.features, &b.recording.features);
    a.iter()
        .filter(|(id, bytes)| b.get(id) != Some(*bytes))
        .map(|(id, _)| *id)
        .collect()
}

/// Returns the IDs of the sections that cannot be read: their contents would depend on the byte
/// order and on the following bytes.
fn unreadable_sections(of: &Whole) -> BTreeSet<FeatureId> {
    let ids = of.recording.features.keys().copied();
    ids.filter(|&id| matches!(of.recording.feature(id), Some(Err(_))))
        .collect()
}

/// Returns the sections that a conversion is intended to change, regardless of their contents.
fn meant(words: &str) -> BTreeSet<FeatureId> {
    let words: Vec<&str> = words.split(' ').collect();
    let mut all = BTreeSet::new();
    for pair in words.windows(2) {
        let release = match pair {
            ["--set" | "--set-raw" | "--drop", name] => {
                let name = name.split('=').next().unwrap_or(name);
                let named = feature::TABLE
                    .iter()
                    .filter(|info| info.name == name || info.id.0.to_string() == name);
                all.extend(named.map(|info| info.id));
                continue;
            }
            ["--compat", release] => release.parse::<Version>().expect("a release"),
            _ => continue,
        };
        // Information that is not valid for a recording with compressed records is removed, with a
        // note.
        all.insert(FeatureId::COMPRESSED);
        all.extend(
            feature::TABLE
                .iter()
                .filter(|info| !release.has(info.since))
                .map(|info| info.id),
        );
    }
    all
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder");
    fs::write(folder.path().join("raw"), [2, 0, 0, 0, b'x', 0]).expect("a temporary file");
    folder
}

impl Base {
    fn new(name: &'static str, bytes: Vec<u8>, perf: Option<&'static Perf>) -> Self {
        let folder = folder();
        let input = folder.path().join("in");
        fs::write(&input, &bytes).expect("a temporary file");
        let before = Whole::read(bytes.clone()).expect("a recording");
        let usual = CONVERSIONS.iter().map(|words| {
            let (status, said, made) = run(folder.path(), words);
            let made = made.filter(|_| status == Some(0));
            assert!(
                made.is_some() || status == Some(1),
                "{name}, {words}: {said}"
            );
            let usual = made.map(|made| Usual {
                differs: differs(&input, &made).expect("a recording"),
                errors: errors(&made).expect("a recording"),
                sections: changed_sections(&before, &Whole::read_file(&made).expect("a recording")),
            });
            clear(folder.path());
            usual
        });
        let usual = usual.collect();
        Base {
            name,
            patched: Patched::new(bytes),
            usual,
            perf,
        }
    }

    /// Returns offsets and sizes for `part` such that it shares bytes with `other`.
    fn places(&self, part: Part, other: Part) -> Vec<FileSection> {
        let (own, other) = (self.patched.places[&part], self.patched.places[&other]);
        let end = other.offset + other.size;
        let mut all = vec![
            FileSection {
                offset: end.saturating_sub(8),
                ..own
            },
            FileSection {
                offset: other.offset,
                ..own
            },
            FileSection {
                offset: other.offset.saturating_sub(own.size).saturating_add(8),
                ..own
            },
            other,
            FileSection {
                offset: other.offset + other.size / 2,
                size: 4,
            },
        ];
        // From its own offset up to the other part.
        if own.offset < other.offset && other.offset - own.offset < 1 << 20 {
            all.push(FileSection {
                size: other.offset + 8 - own.offset,
                ..own
            });
        }
        all
    }

    /// Returns a file for each pair of parts, alternating between the offsets, with all
    /// conversions; by default every second file, with one conversion.
    fn cases(&self) -> Vec<Case<'_>> {
        let mut cases = Vec::new();
        let parts = self.patched.parts();
        let mut turn = 0;
        for &part in &parts {
            for &other in parts
                .iter()
                .filter(|&&other| other != part && other != Part::EventTypes)
            {
                turn += 1;
                if !is_thorough() && turn % 2 == 0 {
                    continue;
                }
                let places = self.places(part, other);
                let all = 0..CONVERSIONS.len();
                let conversions: Vec<usize> = if is_thorough() {
                    all.collect()
                } else {
                    vec![turn / 2 % all.len()]
                };
                // All offsets are combined with all conversions in turn.
                for at in 0..places.len() {
                    let of_place = conversions
                        .iter()
                        .copied()
                        .filter(|conversion| (turn / 2 + conversion) % places.len() == at);
                    let of_place: Vec<usize> = of_place.collect();
                    let bytes = self
                        .patched
                        .with(part, places[at])
                        .filter(|_| !of_place.is_empty());
                    let name = format!("{}: {part} in {other} ({at})", self.name);
                    cases.extend(bytes.map(|bytes| Case {
                        base: self,
                        name,
                        bytes,
                        conversions: of_place,
                    }));
                }
            }
        }
        cases
    }
}

/// Returns perf's output for a recording without offsets; `None` if perf rejects the recording.
fn said_by(perf: &Perf, path: &Path) -> Option<String> {
    let mut all = String::new();
    for question in [Question::Header, Question::Script] {
        let output = perf.ask(question, path).expect("perf runs");
        if !output.success() {
            return None;
        }
        let skipped = [
            "# captured on",
            "# data ",
            "# feat offset",
            "# missing features",
            "# header",
            "# compressed",
            "# cacheline",
        ];
        let lines = output
            .stdout
            .lines()
            .filter(|line| !skipped.iter().any(|start| line.starts_with(start)));
        lines.for_each(|line| all.extend([line, "\n"]));
    }
    Some(all)
}

/// Returns whether perf's output must be the same for the output and the input.
fn is_for_perf(words: &str) -> bool {
    [
        "convert",
        "convert --to dir",
        "convert --decompress",
        "convert --set CLN_SIZE=64",
        "convert --compress",
    ]
    .contains(&words)
}

/// Returns the error in the output of a conversion of `input`, if any.
fn fault(
    case: &Case<'_>,
    at: usize,
    input: &Path,
    made: &Path,
    judged: &AtomicUsize,
) -> Option<String> {
    let (words, bytes) = (CONVERSIONS[at], &case.bytes);
    if words == "convert" && fs::read(made).expect("an output") != *bytes {
        return Some("the copy has other bytes".into());
    }
    let Some(usual) = &case.base.usual[at] else {
        return Some("the whole recording is refused".into());
    };
    let found = match errors(made) {
        Ok(found) => found,
        Err(error) => return Some(format!("the output cannot be read: {error}")),
    };
    // recover reports everything that it discards.
    if words.starts_with("recover") {
        return (!found.is_empty()).then(|| format!("errors: {found:?}"));
    }
    let (Ok(before), Ok(after)) = (Whole::read_file(input), Whole::read_file(made)) else {
        return Some("it cannot be read to its end".into());
    };
    let unreadable = unreadable_sections(&before);
    let of_section = |text: &str, id: FeatureId| text.contains(&id.to_string());
    let known = errors(input).unwrap_or_default();
    // Unreadable records are preserved unchanged.
    let keeps = words.contains("--unknown keep");
    let is_new = |error: &&String| {
        let is_kept = keeps && error.contains(" record");
        !is_kept
            && !known.contains(*error)
            && !usual.errors.contains(*error)
            && !unreadable.iter().any(|&id| of_section(error, id))
    };
    let new: Vec<_> = found.iter().filter(is_new).collect();
    if !new.is_empty() {
        return Some(format!("new errors: {new:?}"));
    }
    let meant = meant(words);
    let is_same_container = words.starts_with("convert") && !words.contains("--to pipe");
    if before.recording.endian == after.recording.endian {
        let mut changed = changed_sections(&before, &after);
        changed.retain(|id| !meant.contains(id) && !usual.sections.contains(id));
        if !is_same_container {
            // A pipe does not contain the size of a section, and no sections that cannot be read.
            changed.retain(|id| {
                let (was, is) = (
                    &before.recording.features[id],
                    after.recording.features.get(id),
                );
                !unreadable.contains(id)
                    && !is.is_some_and(|is| was.starts_with(is) || is.starts_with(was))
            });
        }
        if !changed.is_empty() {
            return Some(format!("sections changed: {changed:?}"));
        }
    }
    match differs(input, made) {
        Err(error) => return Some(format!("it cannot be compared: {error}")),
        Ok(mut all) => {
            all.retain(|what, _| !usual.differs.contains_key(what));
            all.retain(|what, _| {
                !meant
                    .iter()
                    .chain(&unreadable)
                    .any(|&id| of_section(what, id))
            });
            if !is_same_container {
                // Names of events that are not in a record yet; bytes after the end of tracing data
                // or another section, and of the records, if a warning reports them.
                all.retain(|what, first| {
                    let is_behind =
                        what.contains("end of the records") || first.contains(": tail only in A: ");
                    !is_behind
                        && !what.contains("EVENT_UPDATE")
                        && !of_section(what, FeatureId::TRACING_DATA)
                });
            }
            if keeps {
                all.retain(|what, _| !what.starts_with("record "));
            }
            // Invalid attributes have arbitrary sizes; unknown bits are cleared for a release.
            let is_normal = |what: &str, first: &str| {
                what.starts_with("event ")
                    && (first.contains(": attr.size ") || words.contains("--compat"))
            };
            all.retain(|what, first| !is_normal(what, first));
            if let Some((_, first)) = all.first_key_value() {
                return Some(format!("{} differences, the first: {first}", all.len()));
            }
        }
    }
    let perf = case.base.perf.filter(|_| is_for_perf(words))?;
    let expected = said_by(perf, input)?;
    judged.fetch_add(1, Ordering::Relaxed);
    let found = said_by(perf, made).unwrap_or_else(|| "perf refuses it".into());
    let differs = expected
        .lines()
        .zip(found.lines())
        .find(|(was, is)| was != is);
    differs.map(|(was, is)| format!("perf says:\n  {was}\n  {is}"))
}

#[test]
fn each_conversion_refuses_or_keeps_everything() {
    let perf = |name| {
        let found = perf::all().iter().find(|perf| perf.name == name);
        if found.is_none() {
            skipped::note(name);
        }
        found
    };
    let of_perf = fs::read(fixture("7.2-x86_64-file-z-tp").path).expect("a fixture");
    let bases = [
        Base::new("z-tp", of_perf, perf("perf-7.2")),
        Base::new("all features", synth::file::kitchen_sink(false), None),
    ];
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
    }
    let cases: Vec<Case<'_>> = bases.iter().flat_map(Base::cases).collect();
    let faults = AtomicUsize::new(0);
    // Numbers of refused and completed conversions.
    let counts: Mutex<BTreeMap<&str, (u64, u64)>> = Mutex::default();
    let judged = AtomicUsize::new(0);
    in_parallel(&cases, |case| {
        let folder = folder();
        let input = folder.path().join("in");
        fs::write(&input, &case.bytes).expect("a temporary file");
        for &at in &case.conversions {
            let words = CONVERSIONS[at];
            let (status, said, made) = run(folder.path(), words);
            let fault = match (status, made) {
                (Some(1), None) if said.starts_with("perfconv: ") && said.len() > 30 => {
                    counts
                        .lock()
                        .expect("no thread failed")
                        .entry(words)
                        .or_default()
                        .0 += 1;
                    None
                }
                (Some(0), Some(made)) => {
                    counts
                        .lock()
                        .expect("no thread failed")
                        .entry(words)
                        .or_default()
                        .1 += 1;
                    fault(case, at, &input, &made, &judged)
                }
                (status, made) => Some(format!("status {status:?}, {made:?}: {said}")),
            };
            if let Some(fault) = fault {
                eprintln!("{}, {words}: {fault}", case.name);
                faults.fetch_add(1, Ordering::Relaxed);
            }
            clear(folder.path());
        }
    });
    let counts = counts.into_inner().expect("no thread failed");
    eprintln!(
        "{} files, {} outputs judged by perf; refused and converted:",
        cases.len(),
        judged.into_inner()
    );
    counts
        .iter()
        .for_each(|(words, (refused, done))| eprintln!("{refused:6} {done:6} {words}"));
    let faults = faults.into_inner();
    assert!(faults == 0, "{faults} faults");
    assert!(
        CONVERSIONS.iter().all(|words| counts.contains_key(words)),
        "each conversion met a file"
    );
}
