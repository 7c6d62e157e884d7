//! Recordings of `perf record --threads` and `--kcore`: conversions of directories.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use perfdata_convert::io::{Input, OutputDirectory};
use perfdata_convert::pipeline::Stage;
use perfdata_convert::pipeline::to_directory;
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_convert::verify::Report;
use perfdata_core::{
    feature::FeatureId,
    header::ContainerKind,
    read::{Decompressor, Limits, RecordStream, StreamItem},
    record::RecordType,
};
use perfdata_report::diff;
use perfdata_report::show::{dump::Dump, overview::Overview};
use perfdata_tests::{
    allowed::{COMPRESSION, DIRECTORY, OTHER_FEATURES, OTHER_SIZE},
    convert::{Converted, Whole, convert, open, perfconv},
    golden::{Allowed, Tally},
    judge,
    perf::Question,
    recordings::{self, Container, Form, Recording},
    synth,
};

/// Each file of a directory is a separate zstd stream, so the merged file contains uncompressed
/// records.
const ALLOWED: &[Allowed] = &[DIRECTORY, COMPRESSION, OTHER_SIZE, OTHER_FEATURES];

fn directories() -> Vec<Recording> {
    let mut all = recordings::fixtures();
    all.extend(recordings::shared());
    all.retain(|recording| {
        matches!(
            recording.form,
            Some(Form {
                container: Container::Directory,
                ..
            })
        )
    });
    all
}

fn merged(path: &Path) -> Result<Converted, String> {
    convert(path, None, Vec::new()).map_err(|error| error.to_string())
}

#[test]
fn perf_reads_the_file_as_the_directory() {
    let tally = Tally::default();
    recordings::check_all(&directories(), |recording| {
        let file = merged(&recording.path)?;
        let judges = judge::judges(recording)?;
        judge::compare_by(judges, recording, &file.path(), ALLOWED, &tally)
    });
    eprint!("{}", tally.describe(ALLOWED));
}

/// Returns the records of the bare file at `path`, decompressed if necessary.
fn bare(path: &Path, whole: &Whole) -> Vec<Vec<u8>> {
    let file = fs::File::open(path).expect("a file of the directory");
    let mut stream = RecordStream::new(file, whole.recording.endian, 0);
    let mut zstd = Decompressor::of(&whole.recording, Limits::default()).expect("zstd");
    let mut records = Vec::new();
    while let Some(item) = stream.next().expect("a readable file") {
        let StreamItem::Record(record) = item else {
            panic!("{}: {item:?}", path.display())
        };
        if !record.kind.is_compressed() {
            records.push(record.bytes.to_vec());
            continue;
        }
        zstd.push(&record).expect("zstd");
        while let Some(record) = zstd.next().expect("zstd") {
            records.push(record.bytes.to_vec());
        }
    }
    records
}

fn whole_records(whole: &Whole) -> Vec<Vec<u8>> {
    let records = whole.records_with_payloads();
    records.map(|(_, bytes)| bytes.to_vec()).collect()
}

/// Checks that the merged file contains all records of all files, those of each file in their
/// order, and in time order.
fn check_merge(path: &Path) -> Result<(), String> {
    let data = Whole::read_file(&path.join("data"))?;
    let file = merged(path)?;
    assert_eq!(file.summary.unreadable, None);
    let new = Whole::read_file(&file.path())?;
    let mut parts = vec![whole_records(&data)];
    for n in 0.. {
        let part = path.join(format!("data.{n}"));
        if !part.exists() {
            break;
        }
        parts.push(bare(&part, &data));
    }
    if parts.len() > 1 {
        // FINISHED_ROUND applies to one file only.
        let mut kinds = data.records.iter().map(|(_, kind)| *kind);
        parts[0].retain(|_| kinds.next() != Some(RecordType::FINISHED_ROUND));
    }
    let records = whole_records(&new);
    let mut sorted = records.clone();
    sorted.sort();
    let mut expected = parts.concat();
    expected.sort();
    if sorted != expected {
        return Err(format!("{} records of {}", records.len(), expected.len()));
    }
    for part in &parts {
        // Some records occur twice: the search for each starts after the previous one.
        let mut rest = records.iter();
        if let Some(lost) = part
            .iter()
            .position(|record| !rest.any(|other| other == record))
        {
            return Err(format!("record {lost} of a file is not in its place"));
        }
    }
    let mut features = data.recording.features.clone();
    features.remove(&FeatureId::DIR_FORMAT);
    if parts.len() > 1 {
        features.remove(&FeatureId::COMPRESSED);
    }
    if new.recording.features != features {
        Err("other features changed".into())
    } else {
        Ok(())
    }
}

#[test]
fn every_record_of_every_file_is_there() {
    recordings::check_all(&directories(), |recording| check_merge(&recording.path));
}

/// Writes the directory of the independent writer to `folder`.
fn synthetic(folder: &Path, big: bool, compressed: bool) {
    fs::create_dir_all(folder).expect("a temporary folder");
    for (name, bytes) in synth::dir::files(big, compressed) {
        fs::write(folder.join(name), bytes).expect("a temporary file");
    }
}

#[test]
fn directories_of_the_independent_writer_are_merged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for big in [false, true] {
        for compressed in [false, true] {
            let path = folder.path().join(format!("{big}-{compressed}.data"));
            synthetic(&path, big, compressed);
            check_merge(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// Samples are in time order, independent of their file.
#[test]
fn samples_are_in_the_order_of_time() {
    let mut split = directories();
    split.retain(|recording| recording.path.join("data.0").exists());
    assert!(!split.is_empty());
    recordings::check_all(&split, |recording| {
        let mut reader =
            open(merged(&recording.path)?.bytes()).map_err(|error| error.to_string())?;
        let (mut last, mut samples, mut back) = (0, 0, 0);
        while let Some(item) = reader.next().map_err(|error| error.to_string())? {
            let StreamItem::Record(record) = item else {
                continue;
            };
            if record.kind == RecordType::SAMPLE {
                let time = record.time().ok_or("a sample without time")?;
                samples += 1;
                back += usize::from(time < last);
                last = last.max(time);
            }
        }
        if samples == 0 || back > 0 {
            Err(format!("{back} of {samples} samples come late"))
        } else {
            Ok(())
        }
    });
}

/// Every conversion processes the merged stream.
#[test]
fn directories_are_swapped() {
    recordings::check_all(&directories(), |recording| {
        let swap = || vec![Box::new(Swap::new(Target::Other, Unknown::Error)) as _];
        let at_once = convert(&recording.path, None, swap()).map_err(|error| error.to_string())?;
        let file = merged(&recording.path)?;
        let in_two_steps =
            convert(&file.path(), None, swap()).map_err(|error| error.to_string())?;
        if at_once.bytes() == in_two_steps.bytes() {
            Ok(())
        } else {
            Err("one step differs from two".into())
        }
    });
}

#[test]
fn the_kernel_that_is_left_out_is_named() {
    for recording in directories() {
        let file =
            merged(&recording.path).unwrap_or_else(|error| panic!("{}: {error}", recording.name));
        let named = file
            .summary
            .notes
            .iter()
            .any(|note| note.starts_with("dropped kcore_dir: "));
        assert_eq!(
            named,
            recording.path.join("kcore_dir").exists(),
            "{}",
            recording.name
        );
    }
}

/// The records before the damage are shown, and each damaged file is named.
#[test]
fn damaged_files_are_looked_into() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for compressed in [false, true] {
        let path = folder.path().join(format!("{compressed}.data"));
        synthetic(&path, false, compressed);
        let input = || Input::open(&path).expect("a directory");
        let whole = Overview::of(input()).expect("a recording");
        assert_eq!(whole.damage(), [""; 0]);
        for name in ["data.0", "data.1"] {
            let bytes = fs::read(path.join(name)).expect("a file of the directory");
            fs::write(path.join(name), &bytes[..bytes.len() - 4]).expect("a temporary file");
        }
        let names = |texts: &[String]| {
            let named = |name: &&str| texts.iter().any(|text| text.contains(*name));
            ["data.0: ", "data.1: "]
                .iter()
                .filter(|name| named(name))
                .count()
        };
        let overview = Overview::of(input()).expect("a recording");
        assert_eq!(names(overview.damage()), 2, "{:?}", overview.damage());
        let mut text = Vec::new();
        let damage = Dump::default()
            .run(input(), &mut text)
            .expect("a recording")
            .damage;
        assert_eq!(names(&damage), 2, "{damage:?}");
        assert!(String::from_utf8(text).expect("text").lines().count() > 0);
        let report = Report::of(input()).expect("a recording");
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| finding.meaning.clone())
            .collect();
        assert_eq!(names(&found), 2, "{found:?}");
        assert!(!report.is_clean());
        assert!(
            !diff::Diff::default()
                .run(&path, &path, Limits::default(), &mut Vec::new())
                .expect("they are compared")
        );
    }
}

#[test]
fn a_damaged_file_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for compressed in [false, true] {
        let path = folder.path().join(format!("{compressed}.data"));
        synthetic(&path, false, compressed);
        let part = path.join("data.1");
        let bytes = fs::read(&part).expect("a file of the directory");
        fs::write(&part, &bytes[..bytes.len() - 4]).expect("a temporary file");
        let error = merged(&path).expect_err("data.1 is cut");
        assert!(error.contains("data.1: "), "{error}");
        fs::remove_file(path.join("data")).expect("a file of the directory");
        let error = merged(&path).expect_err("there is no data");
        assert!(error.contains("it has no file data"), "{error}");
    }
}

type Stages = Vec<Box<dyn Stage>>;

/// Converts a recording with `--to dir` to `made` in the folder.
fn directory_of(path: &Path, stages: impl Fn() -> Stages) -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = OutputDirectory::create(
        &folder.path().join("made"),
        path,
        false,
        to_directory::is_part,
    );
    let input = Input::open(path).map_err(|error| error.to_string())?;
    output
        .and_then(|output| to_directory::convert(input, output, || Ok(stages())))
        .map(|_| ())
        .map_err(|error| {
            assert_eq!(
                fs::read_dir(folder.path()).expect("a folder").count(),
                0,
                "{error}"
            );
            error.to_string()
        })
        .map(|()| folder)
}

/// Returns the files in a folder and its subfolders with their contents.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("UTF-8")
            .to_owned();
        if path.is_dir() {
            files.extend(
                tree(&path)
                    .into_iter()
                    .map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)),
            );
        } else {
            files.insert(name, fs::read(&path).expect("a file"));
        }
    }
    files
}

#[test]
fn a_directory_is_copied_as_it_is() {
    let mut kernels = 0;
    for recording in directories() {
        let made = directory_of(&recording.path, Vec::new)
            .unwrap_or_else(|error| panic!("{}: {error}", recording.name));
        let (old, new) = (tree(&recording.path), tree(&made.path().join("made")));
        assert!(
            old == new,
            "{}: {:?}, {:?}",
            recording.name,
            old.keys(),
            new.keys()
        );
        kernels += usize::from(new.keys().any(|name| name.starts_with("kcore_dir/")));
        let mode = |folder: &Path| {
            fs::metadata(folder.join("kcore_dir"))
                .ok()
                .map(|meta| meta.permissions())
        };
        assert_eq!(
            mode(&recording.path),
            mode(&made.path().join("made")),
            "{}",
            recording.name
        );
    }
    assert!(kernels > 0, "no directory with a kernel");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (big, compressed) in [(false, false), (true, true)] {
        let path = folder.path().join(format!("{big}.data"));
        synthetic(&path, big, compressed);
        let made = directory_of(&path, Vec::new).expect("a sound directory");
        assert_eq!(tree(&path), tree(&made.path().join("made")));
    }
}

#[test]
fn perf_reads_directories_that_were_converted() {
    let tally = Tally::default();
    recordings::check_all(&directories(), |recording| {
        let made = directory_of(&recording.path, || vec![Box::new(Decompress::default())])?;
        let judges = judge::judges(recording)?;
        judge::compare_by(
            judges,
            recording,
            &made.path().join("made"),
            ALLOWED,
            &tally,
        )
    });
    eprint!("{}", tally.describe(ALLOWED));
}

/// Each file is converted separately, so the order of merging and converting does not matter.
#[test]
fn files_of_a_directory_are_converted_each() {
    let swap = || vec![Box::new(Swap::new(Target::Other, Unknown::Error)) as Box<dyn Stage>];
    recordings::check_all(&directories(), |recording| {
        let plain = directory_of(&recording.path, || vec![Box::new(Decompress::default())])?;
        let (plain, original) = (plain.path().join("made"), merged(&recording.path)?.bytes());
        if recording.path.join("data.0").exists() && merged(&plain)?.bytes() != original {
            return Err("decompressed and merged it is another recording".into());
        }
        let there = directory_of(&plain, swap)?;
        let back = directory_of(&there.path().join("made"), swap)?;
        if tree(&there.path().join("made")) == tree(&plain) {
            return Err("the byte order did not change".into());
        }
        if tree(&back.path().join("made")) != tree(&plain) {
            return Err("there and back it is another directory".into());
        }
        // Compressed data is compressed again, with the same contents.
        let there = directory_of(&recording.path, swap)?;
        let back = directory_of(&there.path().join("made"), swap)?;
        if merged(&back.path().join("made"))?.bytes() != original {
            Err("merged it differs".into())
        } else {
            Ok(())
        }
    });
}

#[test]
fn what_needs_all_records_is_refused() {
    let compress = || vec![Box::new(Compress::new(RecordType::COMPRESSED2, 1)) as Box<dyn Stage>];
    for recording in directories() {
        let result = directory_of(&recording.path, compress);
        match recording.path.join("data.0").exists() {
            true => assert!(
                result.is_err_and(|error| error.contains("--to file")),
                "{}",
                recording.name
            ),
            false => assert!(result.is_ok(), "{}", recording.name),
        }
    }
}

/// A file or pipe becomes the `data` of a directory, which perf can read.
#[test]
fn a_file_becomes_a_directory() {
    for name in [
        "6.1-x86_64-file-default",
        "6.1-x86_64-pipe-default",
        "6.1-s390x-file-default",
    ] {
        let recording = recordings::fixture(name);
        let made = directory_of(&recording.path, Vec::new).expect("a sound recording");
        let made = made.path().join("made");
        assert_eq!(tree(&made).keys().collect::<Vec<_>>(), ["data"]);
        let alone = convert(&recording.path, Some(ContainerKind::File), Vec::new())
            .expect("a sound recording");
        assert_eq!(fs::read(made.join("data")).expect("a file"), alone.bytes());
        for perf in judge::judges(&recording).expect("perf runs") {
            let [old, new] = [alone.path(), made.clone()]
                .map(|path| perf.ask(Question::Script, &path).expect("perf runs"));
            assert!(
                new.success() && old.stdout == new.stdout,
                "{name}: {perf}: {}",
                new.stderr
            );
        }
    }
}

/// Also with the command: only files of a recording are overwritten.
#[test]
fn only_recordings_are_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("made");
    let input = recordings::fixture("6.1-x86_64-file-default").path;
    let run = |force: &[&str]| {
        let mut command = perfconv();
        command
            .args(["convert", "-q", "--to", "dir"])
            .args(force)
            .arg(&input)
            .arg("-o")
            .arg(&target);
        command.output().expect("perfconv runs").status.code()
    };
    assert_eq!(run(&[]), Some(0));
    assert_eq!(run(&[]), Some(2));
    fs::write(target.join("data.0"), "").expect("a temporary file");
    assert_eq!(run(&["--force"]), Some(0));
    assert_eq!(tree(&target).len(), 1);
    fs::write(target.join("mine"), "").expect("a temporary file");
    assert_eq!(run(&["--force"]), Some(2));
    fs::remove_file(target.join("mine")).expect("a temporary file");
    fs::remove_file(target.join("data")).expect("a temporary file");
    fs::create_dir(target.join("data")).expect("a temporary folder");
    assert_eq!(run(&["--force"]), Some(2));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

/// A folder that is not writable for its owner could not be overwritten later.
#[test]
fn a_folder_of_the_kernel_stays_writable() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir_all(input.join("kcore_dir")).expect("a folder");
    fs::copy(
        recordings::fixture("7.2-x86_64-file-kcore")
            .path
            .join("data"),
        input.join("data"),
    )
    .expect("a copy");
    fs::write(input.join("kcore_dir/kcore"), b"kernel").expect("a file");
    fs::set_permissions(input.join("kcore_dir"), Permissions::from_mode(0o500))
        .expect("it is ours");
    for _ in 0..2 {
        let made = perfconv()
            .args(["--to", "dir", "-f"])
            .arg(&input)
            .arg("-o")
            .arg(&output)
            .output();
        assert!(made.expect("perfconv runs").status.success());
        let mode = fs::metadata(output.join("kcore_dir"))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(
            fs::read(output.join("kcore_dir/kcore")).expect("it is there"),
            b"kernel"
        );
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 2);
    }
    fs::set_permissions(input.join("kcore_dir"), Permissions::from_mode(0o700))
        .expect("it is ours");
}
