//! `perfconv recover`: recordings that are truncated at any offset, were never finished, or have
//! damaged bytes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use perfdata_convert::error::{Error, Result};
use perfdata_convert::inspect::verify::Report;
use perfdata_convert::io::{Input, Output};
use perfdata_convert::recover::{Gap, Recover, Recovery};
use perfdata_core::{
    Endian,
    container_layout::ContainerLayout,
    feature::FeatureId,
    read::{Decompressor, Head, Limits, Options, RecordingReader, StreamItem},
    record::{RecordHeader, RecordType},
};
use perfdata_tests::skipped;
use perfdata_tests::{
    convert::{open, perfconv},
    fuzz::Numbers,
    is_thorough, judge,
    perf::Question,
    recordings::{self, Container, Recording, fixture},
};
use tempfile::TempDir;

/// A folder for a recording and the recovered file.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Bench {
            folder: tempfile::tempdir().expect("temporary folders can be made"),
        }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("recovered.data")
    }

    /// Recovers `bytes` to the file `output`.
    fn recover(&self, bytes: &[u8], strict: bool) -> Result<Recovery> {
        let input = self.folder.path().join("input.data");
        fs::write(&input, bytes).expect("files can be written");
        fs::remove_file(self.output()).ok();
        let result = Recover::default().with_strict(strict).run(
            Input::open(&input)?,
            Output::create(&self.output(), &input, false)?.synced(false),
        );
        fs::remove_file(input).expect("it is there");
        if result.is_err() {
            let left = fs::read_dir(&self.folder)
                .expect("the folder is there")
                .count();
            assert_eq!(left, 0, "something is left behind");
        }
        result
    }

    fn recovered(&self) -> Vec<u8> {
        fs::read(self.output()).expect("the output is there")
    }

    fn check_clean(&self) -> std::result::Result<(), String> {
        let report = Input::open(&self.output())
            .and_then(Report::of)
            .map_err(|error| error.to_string())?;
        if report.is_clean() {
            Ok(())
        } else {
            Err(report.text())
        }
    }
}

/// A record with its payload: its offset and bytes. Records in a compressed record have its offset.
#[derive(Debug, Clone)]
struct Item {
    start: u64,
    end: u64,
    compressed: bool,
    bytes: Vec<u8>,
}

/// Returns all records, including those of a pipe's head, with compressed ones decompressed.
/// COMPRESSED sections are omitted.
fn items(bytes: &[u8]) -> Vec<Item> {
    let source = std::sync::Arc::new(bytes.to_vec());
    let mut reader = RecordingReader::open_with(source, Options::default().with_head(Head::Pass))
        .expect("a recording");
    let mut items: Vec<Item> = Vec::new();
    let mut zstd = None;
    while let Some(item) = reader.next().expect("it can be read") {
        match item {
            StreamItem::Record(record) => {
                let (start, end) = (record.offset, record.offset + record.bytes.len() as u64);
                if record.kind.is_compressed() {
                    let stream = zstd.get_or_insert_with(|| {
                        Decompressor::of(record.recording(), Limits::default()).expect("a decoder")
                    });
                    stream.push(&record).expect("compressed data");
                    while let Some(inner) = stream.next().expect("compressed data") {
                        items.push(Item {
                            start,
                            end,
                            compressed: true,
                            bytes: inner.bytes.to_vec(),
                        });
                    }
                } else if record.kind != RecordType::HEADER_FEATURE
                    || record.word(RecordHeader::SIZE) != Some(u64::from(FeatureId::COMPRESSED.0))
                {
                    items.push(Item {
                        start,
                        end,
                        compressed: false,
                        bytes: record.bytes.to_vec(),
                    });
                }
            }
            StreamItem::Payload(bytes) => {
                let last = items.last_mut().expect("a payload has a record");
                last.bytes.extend_from_slice(bytes);
                last.end += bytes.len() as u64;
            }
            StreamItem::Unreadable(_) => {}
        }
    }
    items
}

fn contents(items: &[Item]) -> Vec<&[u8]> {
    items.iter().map(|item| item.bytes.as_slice()).collect()
}

/// Returns the offset after the first attribute.
fn end_of_first_attribute(bytes: &[u8]) -> u64 {
    let reader = open(bytes.to_vec()).expect("a recording");
    match reader.container_layout() {
        ContainerLayout::File(file) => file.header.attrs.offset + file.header.attr_size,
        ContainerLayout::Pipe(_) => items(bytes)
            .iter()
            .find(|item| item.bytes.contains(&64))
            .map_or(u64::MAX, |item| item.end),
    }
}

/// Checks the recovery of the first `cut` bytes of a recording.
fn check_cut(
    bench: &Bench,
    whole: &[u8],
    all: &[Item],
    first_attr: u64,
    cut: u64,
) -> std::result::Result<(), String> {
    let at = |error: String| format!("cut at {cut}: {error}");
    match bench.recover(&whole[..cut as usize], true) {
        Err(Error::Refused(why))
            if why.starts_with("nothing can be recovered: ") && cut < first_attr =>
        {
            return Ok(());
        }
        Err(error) => return Err(at(error.to_string())),
        Ok(_) if cut < first_attr => return Err(at("recovered without an attribute".into())),
        Ok(_) => {}
    }
    bench.check_clean().map_err(at)?;
    let recovered = bench.recovered();
    let wanted: Vec<Item> = all.iter().filter(|item| item.end <= cut).cloned().collect();
    let found = items(&recovered);
    if contents(&wanted) != contents(&found) {
        return Err(at(format!(
            "{} records are left of {}",
            found.len(),
            wanted.len()
        )));
    }
    let original = open(whole.to_vec()).map_err(|error| error.to_string())?;
    if let ContainerLayout::File(file) = original.container_layout() {
        let left = open(recovered).map_err(|error| error.to_string())?;
        for (id, place) in file
            .table
            .iter()
            .filter(|(_, place)| place.size > 0 && place.offset + place.size <= cut)
        {
            if left.recording().features.get(id) != original.recording().features.get(id) {
                return Err(at(format!(
                    "feature {} at {:#x} is lost",
                    *id, place.offset
                )));
            }
        }
    }
    Ok(())
}

fn check_cuts(name: &str, step: usize) {
    let whole = fs::read(&fixture(name).path).expect("the fixture is there");
    let (all, first_attr) = (items(&whole), end_of_first_attribute(&whole));
    let step = if is_thorough() { 1 } else { step };
    let cuts: Vec<u64> = (0..=whole.len() as u64).step_by(step).collect();
    let parts: Vec<&[u64]> = cuts.chunks(64).collect();
    let failures = std::sync::Mutex::new(Vec::new());
    recordings::in_parallel(&parts, |part| {
        let bench = Bench::new();
        for &cut in *part {
            if let Err(error) = check_cut(&bench, &whole, &all, first_attr, cut) {
                failures.lock().expect("no panic").push(error);
            }
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(
        failures.is_empty(),
        "{name}: {} of {} cuts:\n{}",
        failures.len(),
        cuts.len(),
        failures[..failures.len().min(5)].join("\n")
    );
}

#[test]
fn a_file_cut_at_every_byte() {
    check_cuts("6.12-x86_64-file-tid", 1);
}

#[test]
fn a_big_endian_file_cut_at_every_byte() {
    check_cuts("6.12-s390x-file-perthread", 1);
}

#[test]
fn a_pipe_cut_at_every_byte() {
    check_cuts("6.12-x86_64-pipe-stat-I", 1);
    check_cuts("6.12-x86_64-pipe-default", 29);
}

#[test]
fn a_big_endian_pipe_cut_at_every_byte() {
    check_cuts("6.12-s390x-pipe-stat-I", 1);
    check_cuts("7.2-s390x-pipe-default", 29);
}

#[test]
fn compressed_recordings_cut() {
    check_cuts("7.2-s390x-file-z", 11);
    check_cuts("6.12-x86_64-pipe-z", 11);
}

/// An intact recording is copied byte for byte, and nothing is reported.
fn stays_identical(recording: &Recording) -> std::result::Result<(), String> {
    if recording.path.is_dir() || recording.form.is_none() {
        return Ok(());
    }
    let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
    let bench = Bench::new();
    if !Input::open(&recording.path)
        .and_then(Report::of)
        .is_ok_and(|report| report.is_clean())
    {
        bench
            .recover(&whole, true)
            .map_err(|error| error.to_string())?;
        return bench.check_clean();
    }
    let Recovery {
        skipped, losses, ..
    } = bench
        .recover(&whole, true)
        .map_err(|error| error.to_string())?;
    if bench.recovered() != whole {
        return Err(format!("it changed: {skipped:?} {losses:?}"));
    }
    if !skipped.is_empty() || !losses.is_empty() {
        return Err(format!("something is said of it: {skipped:?} {losses:?}"));
    }
    Ok(())
}

/// With a `data.size` of 0, or a `data.offset` outside of the file, and a feature table after the
/// records, everything is recovered.
fn finds_the_records_again(recording: &Recording) -> std::result::Result<(), String> {
    if recording.path.is_dir()
        || recording
            .form
            .is_none_or(|form| form.container != Container::File)
    {
        return Ok(());
    }
    let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
    let is_sound = Input::open(&recording.path)
        .and_then(Report::of)
        .is_ok_and(|report| report.is_clean());
    for (field, byte) in [(48..56, 0), (40..48, 0x11)] {
        let mut damaged = whole.clone();
        damaged[field].fill(byte);
        let bench = Bench::new();
        let recovery = bench
            .recover(&damaged, true)
            .map_err(|error| error.to_string())?;
        if !is_sound {
            bench.check_clean()?;
        } else if bench.recovered() != whole {
            return Err(format!(
                "with {byte}, it is another file: {:?} {:?}",
                recovery.skipped, recovery.losses
            ));
        }
    }
    Ok(())
}

mod identity {
    perfdata_tests::per_fixture!(super::stays_identical);
}

mod records_lost {
    perfdata_tests::per_fixture!(super::finds_the_records_again);
}

#[test]
fn other_recordings() {
    if !is_thorough() {
        skipped::note(skipped::TEST_ALL);
        return;
    }
    recordings::check_all(&recordings::shared(), stays_identical);
    recordings::check_all(&recordings::shared(), finds_the_records_again);
    let sound = |recording: &&Recording| {
        Input::open(&recording.path)
            .and_then(Report::of)
            .is_ok_and(|r| r.is_clean())
    };
    let corpus: Vec<Recording> = recordings::corpus().iter().filter(sound).cloned().collect();
    recordings::check_all(&corpus, stays_identical);
}

#[test]
fn killed_recordings_give_their_samples_back() {
    let mut killed = recordings::fixtures();
    killed.extend(recordings::shared());
    killed.retain(|recording| recording.name.contains("-file-crashed"));
    assert!(!killed.is_empty());
    recordings::check_all(&killed, |recording| {
        let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
        let bench = Bench::new();
        let recovery = bench
            .recover(&whole, true)
            .map_err(|error| error.to_string())?;
        bench.check_clean()?;
        let (was, is) = (items(&whole), items(&bench.recovered()));
        if contents(&was) != contents(&is) {
            return Err(format!("{} records are left of {}", is.len(), was.len()));
        }
        let says = |what: &str| recovery.losses.iter().any(|line| line.contains(what));
        if !says("the recording is unfinished") || !says("names of events") {
            return Err(format!("not said: {:?}", recovery.losses));
        }
        if recording.name.ends_with("-tp") {
            return if says("tracing data") {
                Ok(())
            } else {
                Err("the tracing data is not missed".into())
            };
        }
        let samples = is.iter().filter(|item| {
            let header = item.bytes.first_chunk::<4>().expect("a record");
            [u32::from_le_bytes(*header), u32::from_be_bytes(*header)]
                .contains(&RecordType::SAMPLE.0)
        });
        let Some(perf) = judge::native(recording) else {
            skipped::note("a perf of the recorder's release and byte order");
            return Ok(());
        };
        let script = perf
            .ask(Question::Script, &bench.output())
            .map_err(|error| error.to_string())?;
        let shown = script
            .stdout
            .lines()
            .filter(|line| line.contains("cpu-clock"))
            .count();
        if !script.success() || shown != samples.count() {
            return Err(format!("{perf} shows {shown} samples: {}", script.stderr));
        }
        Ok(())
    });
}

/// Returns the first record in `wanted` that is not in `found`, in order.
fn missing<'a>(wanted: &'a [&Item], found: &[Item]) -> Option<&'a Item> {
    let mut found = found.iter();
    wanted
        .iter()
        .copied()
        .find(|item| !found.any(|other| other.bytes == item.bytes))
}

/// Bytes that replace a range of a recording; an empty range is an offset at which they are
/// inserted.
#[derive(Debug)]
struct Damage {
    from: u64,
    to: u64,
    bytes: Vec<u8>,
    kind: usize,
}

impl Damage {
    /// Returns damage between `start` and `end`: zeros, ones or noise, of the same length as the
    /// replaced bytes.
    fn in_place(numbers: &mut Numbers, start: u64, end: u64) -> Self {
        let from = start + numbers.below((end - start) as usize) as u64;
        let most = 1 << numbers.below(9);
        let to = (from + 1 + numbers.below(most) as u64).min(end);
        let kind = numbers.below(3);
        let byte = |_| [0, 0xff, numbers.next_number() as u8][kind];
        Damage {
            from,
            to,
            bytes: (from..to).map(byte).collect(),
            kind,
        }
    }

    /// Returns the same, or a flipped bit, removed bytes, or inserted bytes: noise, or a copy of
    /// other bytes.
    fn any(numbers: &mut Numbers, whole: &[u8], start: u64, end: u64) -> Self {
        let plain = Self::in_place(numbers, start, end);
        let from = plain.from;
        match numbers.below(7) {
            kind @ 3 => {
                let byte = whole[from as usize] ^ (1 << numbers.below(8));
                Damage {
                    from,
                    to: from + 1,
                    bytes: vec![byte],
                    kind,
                }
            }
            kind @ 4 => Damage {
                bytes: Vec::new(),
                kind,
                ..plain
            },
            kind @ 5 => Damage {
                from,
                to: from,
                bytes: plain.bytes,
                kind,
            },
            kind @ 6 => {
                let copy = whole[plain.from as usize..plain.to as usize].to_vec();
                let to = start + numbers.below((end - start) as usize) as u64;
                Damage {
                    from: to,
                    to,
                    bytes: copy,
                    kind,
                }
            }
            _ => plain,
        }
    }

    fn apply(&self, whole: &[u8]) -> Vec<u8> {
        [
            &whole[..self.from as usize],
            &self.bytes,
            &whole[self.to as usize..],
        ]
        .concat()
    }

    fn hits(&self, item: &Item) -> bool {
        item.start < self.to.max(self.from + u64::from(self.from > item.start))
            && self.from < item.end
    }
}

/// A recording with damaged records.
struct Patient {
    whole: Vec<u8>,
    all: Vec<Item>,
    /// Offset after the metadata at the head of a pipe; `end` is the end of the records.
    start: u64,
    end: u64,
    /// Whether the attributes follow the records, as in files of perf inject.
    attrs_are_last: bool,
    numbers: Numbers,
}

impl Patient {
    /// Returns `None` if there are no records, or no complete ones.
    fn of(recording: &Recording) -> std::result::Result<Option<Self>, String> {
        if recording.path.is_dir() || recording.form.is_none() {
            return Ok(None);
        }
        if recording.name.contains("-file-crashed") || recording.name.ends_with("-pipe-cut") {
            return Ok(None);
        }
        let whole = fs::read(&recording.path).map_err(|error| error.to_string())?;
        // The metadata of a pipe may also be damaged. Then the data after it is reported, but not
        // the contents of the metadata.
        let all: Vec<Item> = items(&whole);
        let reader = open(whole.clone()).map_err(|error| error.to_string())?;
        let endian = reader.recording().endian;
        let attrs_are_last = match reader.container_layout() {
            ContainerLayout::File(file) => file.header.attrs.offset > file.header.data.offset,
            ContainerLayout::Pipe(_) => false,
        };
        let behind_metadata = |item: &&Item| {
            RecordHeader::parse(&item.bytes, endian)
                .is_some_and(|header| !header.kind.is_metadata())
        };
        let Some(first) = all.iter().find(behind_metadata) else {
            return Ok(None);
        };
        let (start, end) = (first.start, all.last().map_or(0, |item| item.end));
        let numbers = Numbers(crc32fast::hash(recording.name.as_bytes()).into());
        Ok(Some(Patient {
            start,
            end,
            whole,
            all,
            attrs_are_last,
            numbers,
        }))
    }

    /// Recovers the rest after `damage`, and returns it. Records outside of the damage survive. The
    /// result is intact, and does not change when it is recovered again. If the damage moves bytes,
    /// the offsets of the data after it are wrong; then only records before the damage survive, if
    /// the attributes do.
    fn recover(
        &self,
        bench: &Bench,
        damage: &Damage,
    ) -> std::result::Result<Option<(Recovery, Vec<Item>)>, String> {
        let moves = damage.to - damage.from != damage.bytes.len() as u64;
        let recovery = match bench.recover(&damage.apply(&self.whole), false) {
            Err(Error::Refused(_)) if moves && self.attrs_are_last => return Ok(None),
            other => other.map_err(|error| error.to_string())?,
        };
        bench.check_clean()?;
        let recovered = bench.recovered();
        bench
            .recover(&recovered, true)
            .map_err(|error| error.to_string())?;
        if bench.recovered() != recovered {
            return Err("what was recovered changes when it is recovered again".into());
        }
        let found = items(&recovered);
        // Compressed data continues from record to record.
        let is_exempt = |item: &&Item| {
            damage.hits(item)
                || (item.end > damage.from && (item.compressed || moves))
                || (moves && self.attrs_are_last)
        };
        let wanted: Vec<&Item> = self.all.iter().filter(|item| !is_exempt(item)).collect();
        match missing(&wanted, &found) {
            Some(lost) => Err(format!(
                "lost the record at {:#x}: {:?}",
                lost.start, recovery.skipped
            )),
            None => Ok(Some((recovery, found))),
        }
    }
}

/// With damaged bytes among the records, the records outside of them survive, and the report
/// contains the offset.
fn survives_damage(recording: &Recording) -> std::result::Result<(), String> {
    let is_large = fs::metadata(&recording.path).is_ok_and(|meta| meta.len() > 64 << 10);
    if is_large && !is_thorough() {
        return Ok(());
    }
    let Some(mut patient) = Patient::of(recording)? else {
        return Ok(());
    };
    let bench = Bench::new();
    let rounds = if is_thorough() { 64 } else { 8 };
    for round in 0..rounds {
        let damage = Damage::in_place(&mut patient.numbers, patient.start, patient.end);
        let place = format!(
            "round {round}, {:#x} to {:#x}, kind {}",
            damage.from, damage.to, damage.kind
        );
        let recovered = patient
            .recover(&bench, &damage)
            .map_err(|error| format!("{place}: {error}"))?;
        let Some((recovery, found)) = recovered else {
            continue;
        };
        let damaged = damage.apply(&patient.whole);
        let hit: Vec<&Item> = patient
            .all
            .iter()
            .filter(|item| damage.hits(item))
            .collect();
        let (low, high) = hit.iter().fold((u64::MAX, 0), |(low, high), item| {
            (low.min(item.start), high.max(item.end))
        });
        let names =
            |gap: &Gap| gap.place.offset <= high && gap.place.end().is_some_and(|end| end >= low);
        let is_told = recovery
            .losses
            .iter()
            .any(|line| line.contains("ends inside a record"));
        // A damaged record that is still valid, for example one of an unknown type, is preserved.
        let stays = |item: &&Item| {
            found
                .iter()
                .any(|left| left.bytes == damaged[item.start as usize..item.end as usize])
        };
        let is_less = found.len() < patient.all.len() && !hit.iter().all(stays);
        if is_less && !is_told && !recovery.skipped.iter().any(names) {
            return Err(format!(
                "{place}: a record is lost and nothing is said: {:?}",
                recovery.skipped
            ));
        }
        let is_compressed = patient.all.iter().any(|item| item.compressed);
        if let Some(wide) = recovery
            .skipped
            .iter()
            .find(|gap| !is_compressed && !names(gap))
        {
            return Err(format!("{place}: skipped elsewhere: {wide}"));
        }
    }
    Ok(())
}

/// All kinds of damage, including damage that moves the following data.
fn survives_any_damage(recording: &Recording) -> std::result::Result<(), String> {
    let Some(mut patient) = Patient::of(recording)? else {
        return Ok(());
    };
    let bench = Bench::new();
    let mut failures = Vec::new();
    for round in 0..16 {
        let damage = Damage::any(
            &mut patient.numbers,
            &patient.whole,
            patient.start,
            patient.end,
        );
        if let Err(error) = patient.recover(&bench, &damage) {
            let Damage { from, to, kind, .. } = damage;
            failures.push(format!(
                "round {round}, {from:#x} to {to:#x}, kind {kind}: {error}"
            ));
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n  "))
    }
}

#[test]
fn any_damage() {
    let all = recordings::all();
    let step = if is_thorough() { 1 } else { 16 };
    let is_small = |recording: &&Recording| {
        fs::metadata(&recording.path).is_ok_and(|meta| meta.len() < 64 << 10)
    };
    let sound = |recording: &&Recording| {
        Input::open(&recording.path)
            .and_then(Report::of)
            .is_ok_and(|r| r.is_clean())
    };
    let some: Vec<Recording> = all
        .iter()
        .filter(|recording| step == 1 || is_small(recording))
        .step_by(step)
        .filter(sound)
        .cloned()
        .collect();
    recordings::check_all(&some, survives_any_damage);
}

mod damages {
    perfdata_tests::per_fixture!(super::survives_damage);
}

fn run(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = perfconv()
        .args(args)
        .current_dir(folder)
        .output()
        .expect("perfconv runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_command() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let whole = fs::read(&fixture("6.12-x86_64-file-tid").path).expect("the fixture is there");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).expect("it can be written")
    };
    write("early", &whole[..100]);
    let (status, said) = run(&["recover", "early", "-o", "out"], folder.path());
    assert_eq!(status, Some(1));
    assert!(said.contains("nothing can be recovered: "), "{said}");
    assert!(!folder.path().join("out").exists());

    let all = items(&whole);
    let mut damaged = whole.clone();
    let middle = &all[all.len() / 2];
    damaged[middle.start as usize + 6] = 3;
    damaged[middle.start as usize + 7] = 0;
    write("damaged", &damaged);
    let (status, said) = run(
        &["recover", "--strict", "damaged", "-o", "out"],
        folder.path(),
    );
    assert_eq!(status, Some(1));
    assert!(
        said.contains("there are intact records after corrupt bytes"),
        "{said}"
    );
    assert!(!folder.path().join("out").exists());
    let (status, said) = run(&["recover", "damaged", "-o", "out"], folder.path());
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains(&format!("skipped {:#x} to {:#x}", middle.start, middle.end)),
        "{said}"
    );
    let (status, said) = run(&["recover", "damaged", "-o", "out"], folder.path());
    assert_eq!(status, Some(2), "{said}");
}

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

/// Commands that refuse a recording that was never finished suggest a solution.
#[test]
fn others_point_at_it() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let killed = fixture("7.2-x86_64-file-crashed").path;
    let (status, said) = run(
        &["--compress", killed.to_str().expect("a path"), "-o", "out"],
        folder.path(),
    );
    assert_eq!(status, Some(1));
    assert!(said.contains("try: perfconv recover"), "{said}");
}

/// Bytes after the last record of a pipe are discarded.
#[test]
fn trailing_garbage() {
    let bench = Bench::new();
    for name in ["6.12-x86_64-pipe-default", "6.12-s390x-pipe-stat-I"] {
        let whole = fs::read(&fixture(name).path).expect("the fixture is there");
        let mut longer = whole.clone();
        longer.extend_from_slice(b"this is no record of any recording\0\0\0");
        let recovery = bench.recover(&longer, true).expect("it is recovered");
        assert_eq!(bench.recovered(), whole);
        let gap = recovery.skipped.first().expect("a range").place;
        assert_eq!(
            (gap.offset, gap.end()),
            (whole.len() as u64, Some(longer.len() as u64))
        );
    }
}

/// A file whose IDs and attributes follow the records, with a size of the records that includes
/// them, or exceeds the file.
#[test]
fn records_in_front_of_their_attributes_are_told_apart() {
    let bench = Bench::new();
    for name in [
        "6.12-x86_64-pipe-injected",
        "7.2-x86_64-pipe-injected",
        "6.1-s390x-pipe-injected",
    ] {
        let whole = fs::read(fixture(name).path).expect("a fixture");
        let attrs_are_last = match open(whole.clone()).expect("a recording").container_layout() {
            ContainerLayout::File(file) => file.header.attrs.offset > file.header.data.offset,
            ContainerLayout::Pipe(_) => false,
        };
        if !attrs_are_last {
            continue;
        }
        let is_big = name.contains("s390x");
        let word = |at: usize| {
            let bytes = whole[at..at + 8].try_into().expect("eight bytes");
            if is_big {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            }
        };
        let records = contents(&items(&whole)).len();
        for size in [
            50_000,
            word(48) + 16,
            word(48) + 40,
            word(48) + 200,
            whole.len() as u64 - word(40),
            0,
            u64::MAX,
        ] {
            let mut bytes = whole.clone();
            bytes[48..56].copy_from_slice(&if is_big {
                size.to_be_bytes()
            } else {
                size.to_le_bytes()
            });
            let recovery = bench
                .recover(&bytes, false)
                .unwrap_or_else(|error| panic!("{name}, {size}: {error}"));
            bench
                .check_clean()
                .unwrap_or_else(|report| panic!("{name}, {size}: {report}"));
            assert_eq!(
                contents(&items(&bench.recovered())).len(),
                records,
                "{name}, {size}"
            );
            assert!(
                !recovery.losses.is_empty(),
                "{name}, {size}: nothing is said"
            );
        }
    }
}

/// One run creates a readable file, for any combination of repairs.
#[test]
fn what_is_recovered_can_be_converted_at_once() {
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let whole = fs::read(fixture("7.2-x86_64-pipe-default").path).expect("a fixture");
    let (cut, step) = (
        folder.path().join("cut.data"),
        folder.path().join("step.data"),
    );
    fs::write(&cut, &whole[..whole.len() - 30]).expect("a temporary file");
    let run = |args: &[&str]| {
        let output = perfconv()
            .current_dir(&folder)
            .args(args)
            .output()
            .expect("perfconv runs");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    run(&["recover", "cut.data", "-o", "step.data"]);
    assert!(step.exists());
    for options in [
        &["--to", "file"] as &[&str],
        &["--swap-endian"],
        &["--compress"],
        &["--compat", "6.1", "--to", "file"],
        &["--drop", "HOSTNAME", "--set", "CPUDESC=none"],
        &["--to", "dir"],
    ] {
        run(&[options, &["step.data", "-o", "two.data"]].concat());
        let said = run(&[&["recover"], options, &["cut.data", "-o", "one.data"]].concat());
        assert!(said.contains("warning: skipped 0x"), "{options:?}: {said}");
        let (one, two) = (
            folder.path().join("one.data"),
            folder.path().join("two.data"),
        );
        let read = |path: &Path| {
            fs::read(if path.is_dir() {
                path.join("data")
            } else {
                path.to_owned()
            })
        };
        assert!(
            read(&one).expect("an output") == read(&two).expect("an output"),
            "{options:?}"
        );
        for path in [one, two] {
            if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .expect("it is there");
        }
    }
    let output = perfconv()
        .current_dir(&folder)
        .args(["recover", "--set", "NOBODY=1", "cut.data", "-o", "x"])
        .output();
    assert_eq!(output.expect("perfconv runs").status.code(), Some(2));
    assert!(!folder.path().join("x").exists());
}

/// `verify` and `recover` report the same about the end of a recording.
#[test]
fn a_cut_is_told_in_the_same_words() {
    let input = fixture("7.2-x86_64-pipe-cut").path;
    let folder = tempfile::tempdir().expect("temporary folders can be made");
    let output = folder.path().join("out.data");
    let text = |command: &mut std::process::Command| {
        let output = command.output().expect("perfconv runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let verified = text(perfconv().arg("verify").arg(&input));
    let recovered = text(perfconv().arg("recover").arg(&input).arg("-o").arg(&output));
    let said =
        "SAMPLE record: 88 bytes needed, 19 available: the recording ends inside this record";
    assert!(verified.contains(&format!("0x4e18: {said}")), "{verified}");
    assert!(
        recovered.contains(&format!("skipped 0x4e18 to 0x4e2b (19 bytes): {said}")),
        "{recovered}"
    );
    assert!(
        verified.ends_with("1 error, 0 warnings, 0 notes\n"),
        "{verified}"
    );
}
