//! Directories with damaged files.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata_convert::io::{Input, Output};
use perfdata_convert::recover::{Gap, Recover, Recovery};
use perfdata_core::Endian;
use perfdata_core::record::RecordHeader;
use perfdata_tests::fuzz::Numbers;
use perfdata_tests::recordings::fixture;
use tempfile::TempDir;

use super::{Bench, contents, items, run};

/// A directory with files that a test changes.
struct Threads {
    folder: TempDir,
    all: Vec<Vec<u8>>,
}

impl Threads {
    /// Returns the files of a fixture, with or without compressed records.
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("temporary folders can be made");
        for entry in fs::read_dir(fixture(name).path).expect("the fixture is there") {
            let entry = entry.expect("a file");
            fs::copy(entry.path(), folder.path().join(entry.file_name()))
                .expect("it can be copied");
        }
        let converted = folder.path().with_extension("converted");
        let (status, said) = run(
            &[
                folder.path().to_str().expect("a path"),
                "-o",
                converted.to_str().expect("a path"),
            ],
            Path::new("."),
        );
        assert_eq!(status, Some(0), "{said}");
        let all = contents(&items(&fs::read(&converted).expect("it is there")))
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect();
        fs::remove_file(converted).expect("it is there");
        Threads { folder, all }
    }

    /// Recovers the directory. The result must be intact.
    fn recover(&self, bench: &Bench) -> (Recovery, Vec<Vec<u8>>) {
        fs::remove_file(bench.output()).ok();
        let output = Output::create(&bench.output(), self.folder.path(), false)
            .expect("a new file")
            .synced(false);
        let input = Input::open(self.folder.path()).expect("it is there");
        let recovery = Recover::default()
            .run(input, output)
            .expect("it is recovered");
        bench.check_clean().expect("it is sound");
        (
            recovery,
            items(&bench.recovered())
                .into_iter()
                .map(|item| item.bytes)
                .collect(),
        )
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.folder.path())
            .expect("it is there")
            .map(|entry| entry.expect("a file").path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some()).collect();
        files.sort();
        files
    }
}

/// An intact directory is converted to the same file as by `convert`.
#[test]
fn a_whole_directory() {
    let bench = Bench::new();
    for name in [
        "6.1-x86_64-file-threads",
        "7.2-x86_64-file-threads",
        "6.1-s390x-file-threads",
    ] {
        let threads = Threads::of(name);
        let (recovery, found) = threads.recover(&bench);
        assert!(
            recovery.skipped.is_empty() && recovery.losses.is_empty(),
            "{:?}",
            recovery.losses
        );
        assert!(found == threads.all, "{name}");
    }
}

/// Returns start and end of the records of a file beside `data`.
fn bare(bytes: &[u8], endian: Endian) -> Vec<(usize, usize)> {
    let mut records = Vec::new();
    let mut at = 0;
    while let Some(header) = RecordHeader::parse(&bytes[at..], endian) {
        records.push((at, at + usize::from(header.size)));
        at += usize::from(header.size);
    }
    records
}

/// From truncated or damaged files beside `data`, the rest is recovered, and nothing is lost from
/// other files.
#[test]
fn damaged_files_of_a_directory() {
    let bench = Bench::new();
    let mut numbers = Numbers(1);
    let names = [
        "6.1-x86_64-file-threads",
        "6.1-x86_64-file-threads-z",
        "7.2-s390x-file-threads",
    ];
    for (name, endian) in names
        .into_iter()
        .zip([Endian::Little, Endian::Little, Endian::Big])
    {
        let threads = Threads::of(name);
        for file in threads.files() {
            let whole = fs::read(&file).expect("it is there");
            let short = file
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a name");
            let records = bare(&whole, endian);
            for round in 0..16 {
                let mut damaged = whole.clone();
                let (from, is_cut) = (numbers.below(whole.len()), round % 2 == 0);
                let to = if is_cut {
                    whole.len()
                } else {
                    whole.len().min(from + 20)
                };
                damaged[from..to]
                    .iter_mut()
                    .for_each(|byte| *byte = numbers.next_number() as u8);
                damaged.truncate(if is_cut { from } else { whole.len() });
                fs::write(&file, &damaged).expect("it can be written");
                let (recovery, found) = threads.recover(&bench);
                let what = format!("{name}, {short}, {from} to {to}: {:?}", recovery.skipped);
                let of_file = |gap: &Gap| gap.file.as_deref() == Some(short);
                assert!(recovery.skipped.iter().all(of_file), "{what}");
                // The contents of compressed records continue from one to the next.
                if !name.ends_with("-z") {
                    let hit = records
                        .iter()
                        .filter(|(start, end)| *start < to && from < *end)
                        .count();
                    assert!(
                        found.len() + hit >= threads.all.len(),
                        "{what}: {} are left",
                        found.len()
                    );
                    let others = found
                        .iter()
                        .filter(|record| !threads.all.contains(record))
                        .count();
                    assert!(others <= hit, "{what}: {others} were not there");
                }
            }
            fs::write(&file, &whole).expect("it can be written");
        }
    }
}
