//! Files whose parts share bytes: a conversion is refused, or perf reads the same data in its
//! output.
//!
//! The recording is real. The offset of each part in turn is set so that it overlaps another part.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use perfdata_convert::error::Result;
use perfdata_convert::pipeline::Stage;
use perfdata_convert::stages::compat::Compat;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::edit::{Change, Edit};
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::container_layout::{ContainerLayout, Part};
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::{ContainerKind, FileSection};
use perfdata_core::record::RecordType;
use perfdata_tests::convert::{Converted, Whole, convert, perfconv};
use perfdata_tests::perf::{self, Perf, Question};
use perfdata_tests::recordings::{fixture, in_parallel};
use perfdata_tests::{is_thorough, synth};

use crate::patched::Patched;

const FIXTURE: &str = "6.1-x86_64-file-default";

fn whole() -> Vec<u8> {
    fs::read(fixture(FIXTURE).path).expect("a fixture")
}

type Conversion = (&'static str, fn(&Path) -> Result<Converted>);

fn with(input: &Path, to: Option<ContainerKind>, stages: Vec<Box<dyn Stage>>) -> Result<Converted> {
    convert(input, to, stages)
}

fn edited(input: &Path, name: &str, change: Change) -> Result<Converted> {
    with(
        input,
        None,
        vec![Box::new(Edit::new([(name.to_owned(), change)])?)],
    )
}

fn swap() -> Vec<Box<dyn Stage>> {
    vec![Box::new(Swap::new(Target::Other, Unknown::Keep))]
}

const CONVERSIONS: &[Conversion] = &[
    ("a copy", |input| with(input, None, Vec::new())),
    // Features that this perf does not know, or that the comparison omits.
    ("--set", |input| {
        edited(input, "CLN_SIZE", Change::Set("64".into()))
    }),
    ("--drop", |input| edited(input, "TOTAL_MEM", Change::Drop)),
    ("--swap-endian, twice", |input| {
        with(&with(input, None, swap())?.path(), None, swap())
    }),
    ("--to pipe, and back", |input| {
        with(
            &with(input, Some(ContainerKind::Pipe), Vec::new())?.path(),
            Some(ContainerKind::File),
            Vec::new(),
        )
    }),
    ("--compat", |input| {
        with(
            input,
            None,
            vec![Box::new(Compat::new("6.1".parse().expect("a release")))],
        )
    }),
    ("--compress, and back", |input| {
        let compressed = with(
            input,
            None,
            vec![Box::new(Compress::new(RecordType::COMPRESSED, 1))],
        )?;
        with(
            &compressed.path(),
            None,
            vec![Box::new(Decompress::default())],
        )
    }),
];

/// Returns perf's output for a recording, without offsets and the intended changes of a conversion;
/// `None` if perf rejects the recording.
fn said(perf: &Perf, path: &Path, questions: &[Question]) -> Option<String> {
    let mut all = String::new();
    for &question in questions {
        let output = perf.ask(question, path).expect("perf runs");
        if !output.success() && question != Question::BuildIds {
            return None;
        }
        let skipped = [
            "# captured on",
            "# data ",
            "# feat offset",
            "# missing features",
            "# total memory",
        ];
        let lines = output
            .stdout
            .lines()
            .filter(|line| !skipped.iter().any(|start| line.starts_with(start)));
        lines.for_each(|line| all.extend([line, "\n"]));
    }
    Some(all)
}

/// Returns offsets and sizes for a part of `size` bytes such that it shares bytes with the part at
/// `other`.
fn variants(size: u64, other: FileSection) -> Vec<FileSection> {
    let end = other.offset + other.size;
    let mut all = vec![FileSection {
        offset: end.saturating_sub(8),
        size,
    }];
    if is_thorough() {
        all.push(FileSection {
            offset: other.offset,
            size,
        });
        all.push(FileSection {
            offset: other.offset.saturating_sub(size).saturating_add(8),
            size,
        });
        all.push(other);
    }
    all
}

/// Returns whether a conversion removes the part, or makes it from the records.
fn remakes(conversion: &str, part: Part) -> bool {
    match part {
        Part::Feature(FeatureId::TOTAL_MEM) => conversion == "--drop",
        Part::Feature(FeatureId::SAMPLE_TIME | FeatureId::BUILD_ID) => {
            conversion == "--to pipe, and back"
        }
        _ => false,
    }
}

#[test]
fn a_conversion_is_refused_or_perf_reads_the_same() {
    let Some(perf) = perf::all().iter().find(|perf| perf.name == "perf") else {
        eprintln!("skipped: no perf");
        return;
    };
    let base = Patched::new(whole());
    let mut features = [2, 3, 5, 6, 7, 12].map(FeatureId).to_vec();
    if is_thorough() {
        features = base.entries.keys().copied().collect();
        features.sort_unstable();
    }
    let mut parts = vec![
        Part::Header,
        Part::Ids(0),
        Part::Attrs,
        Part::EventTypes,
        Part::Data,
        Part::FeatureTable,
    ];
    parts.extend(features.into_iter().map(Part::Feature));
    let mut cases = Vec::new();
    for &part in &parts {
        for &other in parts
            .iter()
            .filter(|&&other| other != part && other != Part::EventTypes)
        {
            let size = base.places[&part].size;
            for (at, place) in variants(size, base.places[&other]).into_iter().enumerate() {
                cases.extend(
                    base.with(part, place)
                        .map(|bytes| (part, format!("{part} in {other} ({at})"), bytes)),
                );
            }
        }
        // The part extends into the following one.
        let place = base.places[&part];
        let longer = FileSection {
            size: place.size + 16,
            ..place
        };
        cases.extend(
            base.with(part, longer)
                .map(|bytes| (part, format!("{part} and 16 bytes"), bytes)),
        );
    }
    let faults = Mutex::new(Vec::new());
    let counts = Mutex::new((0, 0, 0));
    let folder = tempfile::tempdir().expect("a folder");
    in_parallel(&cases, |(part, name, bytes)| {
        let path = folder.path().join(name.replace([' ', '(', ')'], "-"));
        fs::write(&path, bytes).expect("a file");
        let whole = Whole::read(bytes.clone()).ok();
        let has_lost = whole
            .as_ref()
            .is_some_and(|whole| match &whole.container_layout {
                ContainerLayout::File(file) => file.lost_sections().next().is_some(),
                ContainerLayout::Pipe(_) => false,
            });
        // perf reads a section that is too short beyond its end, and prints memory that it did not
        // initialise.
        let is_unreadable = whole.is_some_and(|Whole { recording, .. }| {
            recording
                .features
                .keys()
                .any(|&id| matches!(recording.feature(id), Some(Err(_))))
        });
        // Without the section that cannot be read, perf looks for the build IDs on its own machine.
        let all = [Question::Header, Question::Script, Question::BuildIds];
        let questions = if has_lost { &all[..2] } else { &all };
        // Of some sections that share bytes, perf prints memory that it did not initialise: it
        // differs each time.
        let expected = said(perf, &path, questions)
            .filter(|first| !is_unreadable && said(perf, &path, questions).as_ref() == Some(first));
        // Unreadable sections are removed for an older perf.
        for (conversion, run) in CONVERSIONS
            .iter()
            .filter(|(name, _)| !has_lost || *name != "--compat")
        {
            match run(&path) {
                Err(error) => {
                    counts.lock().expect("no thread failed").0 += 1;
                    if !error.is_refusal() {
                        faults
                            .lock()
                            .expect("no thread failed")
                            .push(format!("{name}, {conversion}: {error}"));
                    }
                }
                Ok(converted) => {
                    if *conversion == "a copy" && converted.bytes() != *bytes {
                        faults
                            .lock()
                            .expect("no thread failed")
                            .push(format!("{name}: the copy has other bytes"));
                    }
                    let Some(expected) = expected.as_ref().filter(|_| !remakes(conversion, *part))
                    else {
                        counts.lock().expect("no thread failed").2 += 1;
                        continue;
                    };
                    counts.lock().expect("no thread failed").1 += 1;
                    let found = said(perf, &converted.path(), questions)
                        .unwrap_or_else(|| "perf refuses it".into());
                    if let Some((was, is)) = expected
                        .lines()
                        .zip(found.lines())
                        .find(|(was, is)| was != is)
                    {
                        let what = format!("{name}, {conversion}:\n  {was}\n  {is}");
                        faults.lock().expect("no thread failed").push(what);
                    } else if expected.lines().count() != found.lines().count() {
                        let what = format!("{name}, {conversion}: perf says more, or less");
                        faults.lock().expect("no thread failed").push(what);
                    }
                }
            }
        }
        fs::remove_file(path).expect("it is there");
    });
    let (refused, same, unread) = counts.into_inner().expect("no thread failed");
    let cases = cases.len();
    eprintln!(
        "{cases} files: {refused} conversions refused, {same} judged by {perf}, {unread} of files that it refuses or reads beyond sections"
    );
    let faults = faults.into_inner().expect("no thread failed");
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(refused > 100 && same > 100);
}

/// Returns a file in a separate folder.
fn placed(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("in.data");
    fs::write(&path, bytes).expect("a file");
    path
}

/// Returns the exit status and the output of `perfconv ARGS in.data -o out.data -f`.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = perfconv();
    let output = command
        .current_dir(folder)
        .args(args)
        .args(["-f", "in.data", "-o", "out.data"])
        .output();
    let output = output.expect("perfconv runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Checks that conversions which write the file anew refuse `in.data` for this reason, and write
/// nothing.
fn all_refuse(folder: &Path, why: &str) {
    for args in [
        &["--compress"] as &[&str],
        &["--compat", "6.1"],
        &["--to", "pipe"],
        &["--drop", "HOSTNAME"],
    ] {
        let (status, said) = run(folder, args);
        assert_eq!(status, Some(1), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
        assert!(!folder.join("out.data").exists(), "{args:?}");
    }
}

fn features(path: &Path) -> Vec<(FeatureId, Vec<u8>)> {
    Whole::read_file(path)
        .expect("a recording")
        .recording
        .features
        .into_iter()
        .collect()
}

/// perf reads each section by its entry, even if a section is too long and extends into the next.
#[test]
fn sections_that_share_bytes_are_both_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Patched::new(whole());
    let place = base.places[&Part::Feature(FeatureId::VERSION)];
    let bytes = base.with(
        Part::Feature(FeatureId::VERSION),
        FileSection {
            size: place.size + 4,
            ..place
        },
    );
    let input = placed(folder.path(), &bytes.expect("it has an entry"));
    let output = folder.path().join("out.data");
    let before = features(&fixture(FIXTURE).path);
    let found = features(&input);
    assert_eq!(found.len(), before.len());
    let differ: Vec<FeatureId> = found
        .iter()
        .zip(&before)
        .filter(|(a, b)| a != b)
        .map(|(a, _)| a.0)
        .collect();
    assert_eq!(differ, [FeatureId::VERSION]);
    for (args, changed) in [
        (&["--drop", "VERSION"] as &[&str], None),
        (&["--set", "VERSION=1"], Some(())),
        (&["--to", "pipe", "--set", "VERSION=1"], Some(())),
    ] {
        let (status, said) = run(folder.path(), args);
        assert_eq!(status, Some(0), "{args:?}: {said}");
        let mut expected = before.clone();
        expected.retain(|feature| feature.0 != FeatureId::VERSION);
        let mut found = features(&output);
        let version = found
            .iter()
            .position(|feature| feature.0 == FeatureId::VERSION);
        assert_eq!(version.is_some(), changed.is_some(), "{args:?}");
        version.map(|at| found.remove(at));
        if args[0] != "--to" {
            assert_eq!(found, expected, "{args:?}");
        } else {
            assert!(found.contains(&expected[4]), "ARCH is sent");
        }
        let verified = perfconv()
            .arg("verify")
            .arg(&output)
            .output()
            .expect("perfconv runs");
        assert_eq!(
            verified.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&verified.stdout)
        );
    }
    let verified = perfconv()
        .arg("verify")
        .arg(&input)
        .output()
        .expect("perfconv runs");
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert_eq!(verified.status.code(), Some(1), "{text}");
    assert!(
        text.contains("feature VERSION and feature ARCH share bytes"),
        "{text}"
    );
    let recovered = perfconv()
        .args(["recover", "-f", "in.data", "-o", "out.data"])
        .current_dir(&folder)
        .output();
    let said = String::from_utf8_lossy(&recovered.expect("perfconv runs").stderr).into_owned();
    assert!(
        said.contains("feature sections share bytes: they are written separately"),
        "{said}"
    );
    let report = perfconv()
        .arg("verify")
        .arg(&output)
        .output()
        .expect("perfconv runs");
    assert_eq!(
        report.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&report.stdout)
    );
}

/// A section outside of the file can be set and dropped; no other change affects its content or
/// entry.
#[test]
fn a_section_that_is_not_there_is_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Patched::new(whole());
    let id = FeatureId::CPUDESC;
    let place = FileSection {
        offset: 1_000_000_000,
        ..base.places[&Part::Feature(id)]
    };
    let bytes = base
        .with(Part::Feature(id), place)
        .expect("it has an entry");
    placed(folder.path(), &bytes);
    let output = folder.path().join("out.data");
    let mut others = features(&fixture(FIXTURE).path);
    others.retain(|feature| feature.0 != id);
    for (args, is_there) in [
        (["--set", "CPUDESC=zzz"], true),
        (["--drop", "CPUDESC"], false),
    ] {
        let (status, said) = run(folder.path(), &args);
        assert_eq!(status, Some(0), "{args:?}: {said}");
        let mut found = features(&output);
        assert_eq!(
            found.iter().any(|feature| feature.0 == id),
            is_there,
            "{args:?}"
        );
        found.retain(|feature| feature.0 != id);
        assert_eq!(found, others, "{args:?}");
        let ContainerLayout::File(file) = Whole::read_file(&output)
            .expect("a recording")
            .container_layout
        else {
            panic!("{args:?}: a file stays one")
        };
        assert_eq!(file.lost_sections().count(), 0, "{args:?}");
        let report = perfconv()
            .arg("verify")
            .arg(&output)
            .output()
            .expect("perfconv runs");
        assert_eq!(
            report.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&report.stdout)
        );
    }
    // Other changes preserve it, and an error names it if this is impossible.
    let (status, said) = run(folder.path(), &["--drop", "HOSTNAME"]);
    assert_eq!(status, Some(0), "{said}");
    let ContainerLayout::File(file) = Whole::read_file(&output)
        .expect("a recording")
        .container_layout
    else {
        panic!("a file")
    };
    let lost: Vec<_> = file.lost_sections().map(|(id, _)| id).collect();
    assert_eq!(lost, [id]);
    let (status, said) = run(folder.path(), &["--to", "pipe"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("note: dropped feature CPUDESC: its section cannot be read"),
        "{said}"
    );
}

/// New build IDs replace those that perf inject has overwritten.
#[test]
fn a_lost_section_that_is_made_anew_has_one_entry() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = fs::read(fixture("7.2-x86_64-pipe-injected").path).expect("a fixture");
    placed(folder.path(), &bytes);
    let known = format!("{} /known", "ab".repeat(20));
    let known = ["--known-build-ids", known.as_str(), "--sysroot", "."];
    let (status, said) = run(
        folder.path(),
        &[&["--build-ids=all", "--compress=1"] as &[&str], &known].concat(),
    );
    assert_eq!(status, Some(0), "{said}");
    let output = folder.path().join("out.data");
    let Whole {
        recording,
        container_layout,
        ..
    } = Whole::read_file(&output).expect("a recording");
    let ContainerLayout::File(file) = container_layout else {
        panic!("a file stays one")
    };
    let mut entries: Vec<FeatureId> = file.table.iter().map(|entry| entry.0).collect();
    let count = entries.len();
    entries.dedup();
    assert_eq!(entries.len(), count, "each feature has one entry");
    let compressed = recording
        .feature(FeatureId::COMPRESSED)
        .expect("it was compressed")
        .expect("a section");
    assert_eq!(compressed.tail, Vec::<u8>::new());
    assert!(
        file.place(Part::Feature(FeatureId::COMPRESSED))
            .is_some_and(|place| place.size == 20)
    );
}

#[test]
fn parts_that_share_bytes_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Patched::new(whole());
    let (attrs, data) = (base.places[&Part::Attrs], base.places[&Part::Data]);
    let into = attrs.offset + attrs.size - data.offset + 16;
    let place = FileSection {
        offset: data.offset - 16,
        size: data.size + 16,
    };
    assert_eq!(into, 16);
    let bytes = base.with(Part::Data, place).expect("the header says it");
    placed(folder.path(), &bytes);
    for args in [
        &["--swap-endian"] as &[&str],
        &["--to", "pipe"],
        &["--compress"],
        &["--set", "HOSTNAME=x"],
    ] {
        let (status, said) = run(folder.path(), args);
        assert_eq!(status, Some(1), "{args:?}: {said}");
        assert!(
            said.contains("the records")
                && said.contains("the attributes")
                && said.contains(" share bytes"),
            "{said}"
        );
        assert!(
            said.contains("perfconv: try: perfconv recover in.data"),
            "{said}"
        );
        assert!(!folder.path().join("out.data").exists(), "{args:?}");
    }
    let (status, said) = run(folder.path(), &[]);
    assert_eq!(status, Some(0), "{said}");
    assert!(fs::read(folder.path().join("out.data")).expect("a copy") == bytes);
}

/// The last attribute is incomplete.
#[test]
fn attributes_are_whole_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = Patched::new(whole());
    let attrs = base.places[&Part::Attrs];
    for size in [4, attrs.size - 4, attrs.size + 8] {
        let bytes = base
            .with(Part::Attrs, FileSection { size, ..attrs })
            .expect("the header says it");
        placed(folder.path(), &bytes);
        let why = format!("the size of the attributes ({size}) is not a multiple of");
        all_refuse(folder.path(), &why);
    }
}

/// Data with an offset after the end of the file would be inside of other parts after these have
/// been moved there.
#[test]
fn names_of_events_are_in_the_file_or_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = Patched::new(whole());
    let place = FileSection {
        offset: base.bytes.len() as u64 - 8,
        size: 72,
    };
    placed(
        folder.path(),
        &base
            .with(Part::EventTypes, place)
            .expect("the header says it"),
    );
    let why = "the names of events (72 bytes) are outside of the file";
    all_refuse(folder.path(), why);
}

/// Build IDs that are added to bytes that are not build IDs are read.
#[test]
fn build_ids_are_added_before_bytes_that_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = Patched::new(whole());
    let place = FileSection {
        size: 4,
        ..base.places[&Part::Feature(FeatureId::BUILD_ID)]
    };
    placed(
        folder.path(),
        &base
            .with(Part::Feature(FeatureId::BUILD_ID), place)
            .expect("it has an entry"),
    );
    let known = format!("{} /usr/local/bin/perf-workload", "ab".repeat(20));
    let (status, said) = run(
        folder.path(),
        &[
            "--build-ids=all",
            "--sysroot",
            ".",
            "--known-build-ids",
            &known,
        ],
    );
    assert_eq!(status, Some(0), "{said}");
    let written = fs::read(folder.path().join("out.data")).expect("an output");
    let whole = Whole::read(written).expect("a recording");
    let section = whole.recording.feature(FeatureId::BUILD_ID);
    let Some(Ok(Section {
        value: Feature::BuildIds(ids),
        ..
    })) = section
    else {
        panic!("no build IDs: {section:?}");
    };
    let names: Vec<_> = ids
        .0
        .iter()
        .map(|entry| entry.build_id.filename.text())
        .collect();
    assert_eq!(names, [b"/usr/local/bin/perf-workload"], "{said}");
    assert_eq!(run(folder.path(), &["--drop", "BUILD_ID"]).0, Some(0));
}

/// The end of the records determines the offset of the table. If it is wrong, the table contains
/// other bytes.
#[test]
fn other_bytes_are_not_taken_for_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = Patched::new(synth::file::kitchen_sink(false));
    for (&part, place) in &base.places {
        let Part::Feature(_) = part else { continue };
        let data = FileSection {
            offset: place.offset + place.size / 2,
            size: 4,
        };
        let bytes = base
            .with(Part::Data, data)
            .expect("the header says where the records are");
        let is_cut = data.offset + data.size > bytes.len() as u64;
        placed(folder.path(), &bytes);
        let (status, said) = run(folder.path(), &["convert", "--compat", "7.2"]);
        let is_refused = status == Some(1) && said.contains("the feature table is missing");
        assert!(is_cut || is_refused, "{part}: {said}");
    }
}
