//! `perfconv dump` says of every record what perf says of it.

mod details;
mod perf_text;
mod perfs;
mod sample;

use std::{fs, path::Path};

use perfdata_convert::{io::Input, show::dump::Dump};
use perfdata_tests::{
    is_thorough, judge, per_fixture, perf,
    recordings::{self, Endian, Recording},
    snapshot,
    synth::{file, kind, pipe, sink},
};
use serde_json::Value;

fn dump(path: &Path, dump: &Dump) -> Result<String, String> {
    let mut out = Vec::new();
    let input = Input::open(path).map_err(|error| error.to_string())?;
    dump.run(input, &mut out).map_err(|error| error.to_string())?;
    String::from_utf8(out).map_err(|error| error.to_string())
}

/// Every record, with its bytes.
fn records(path: &Path) -> Result<Vec<Value>, String> {
    let text = dump(path, &Dump { json: true, hex: true, ..Dump::default() })?;
    let items = text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}")));
    items.filter(|item| item.as_ref().map_or(true, |item: &Value| item.get("part").is_none())).collect()
}

/// The dumps of small recordings, one of counts and one of samples that read a group, as they were found right:
/// `UPDATE_SNAPSHOTS=1` writes them anew.
#[test]
fn small_recordings_in_every_form() {
    let forms = [
        ("txt", Dump::default()),
        ("jsonl", Dump { json: true, ..Dump::default() }),
        ("hex", Dump { hex: true, ..Dump::default() }),
    ];
    for recording in ["6.1-i386-stat-record-I", "6.1-s390x-file-group-S"].map(recordings::fixture) {
        for (extension, form) in &forms {
            let path = recordings::root().join(format!("tests/snapshots/{}.{extension}", recording.name));
            snapshot::check(&path, &dump(&recording.path, form).expect("a fixture is readable"));
        }
    }
}

/// Every byte of every record, and of what is around the records, has a name.
#[test]
fn every_byte_is_shown() {
    recordings::check_all(&recordings::all(), |recording| {
        let form = Dump { json: true, hex: true, ..Dump::default() };
        let text = match dump(&recording.main_file(), &form) {
            Err(error) if recording.name.starts_with("crashers/") && error.contains("at offset") => return Ok(()),
            other => other?,
        };
        for line in text.lines() {
            let item: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let spans = item["spans"].as_array().ok_or("no bytes")?;
            let mut here = 0;
            for span in spans {
                if span["at"] != here || span["field"] == "" {
                    return Err(format!("{here} bytes into {item:#}"));
                }
                here += span["size"].as_u64().unwrap_or(0);
            }
            if item["size"] != here {
                return Err(format!("{here} bytes of {item:#}"));
            }
        }
        Ok(())
    });
}

#[test]
fn types_and_number_are_chosen() {
    let path = recordings::fixture("7.2-x86_64-file-z").path;
    let types = ["comm", "Mmap2", "9"].map(|name| Dump::type_of(name).expect("a type"));
    let form = Dump { types: types.to_vec(), limit: Some(30), ..Dump::default() };
    let text = dump(&path, &form).expect("a fixture is readable");
    let mut found: Vec<_> = text.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(found.len(), 30);
    found.sort();
    found.dedup();
    assert_eq!(found, ["COMM", "MMAP2", "SAMPLE"]);

    let error = Dump::type_of("MMAP3").expect_err("no type").to_string();
    assert!(error.contains("MMAP3") && error.contains("did you mean MMAP"), "{error}");
    let error = Dump::type_of("nonsense").expect_err("no type").to_string();
    assert!(error.contains("nonsense") && error.contains("MMAP2") && error.contains("SCHEDSTAT_DOMAIN"), "{error}");
}

per_fixture!(says_what_perf_says);

/// Asks the perf that made the recording, or an equal one.
fn says_what_perf_says(recording: &Recording) -> Result<(), String> {
    // perf refuses some of its own recordings.
    if recording.script_text().is_none_or(|text| text.is_empty()) {
        return Ok(());
    }
    match judge::native(recording) {
        Some(perf) => perfs::compare(perf, &recording.path),
        None => Ok(()),
    }
}

/// All recordings at hand, but those that a fuzzer made: perf knows no limits there. Those whose perf is not known are
/// shown to the oldest that reads them: newer ones leave out old records that are short, and CPUs that the reader does
/// not have.
#[test]
fn says_what_perf_says_of_all() {
    if !is_thorough() {
        eprintln!("skipped: PERFCONV_TEST_ALL is not set");
        return;
    }
    let mut recordings = recordings::shared();
    recordings.extend(recordings::corpus());
    recordings.retain(|recording| !recording.name.starts_with("crashers/"));
    recordings::check_all(&recordings, |recording| {
        if recording.recorder.is_some() {
            return says_what_perf_says(recording);
        }
        let judges = judge::judges(recording)?;
        let oldest = judges.into_iter().min_by_key(|perf| perf.version);
        oldest.map_or(Ok(()), |perf| perfs::compare(perf, &recording.path))
    });
}

/// The independent writer's recordings have what no recording at hand has: a record of every type, samples with every
/// part, AUX data.
#[test]
fn says_what_perf_says_of_everything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    type Write = fn(bool) -> Vec<u8>;
    let recordings: [(&str, Write); 4] = [
        ("file", file::kitchen_sink),
        ("pipe", pipe::kitchen_sink),
        ("compressed", |big| sink::compressed_file(big, kind::COMPRESSED).bytes()),
        ("compressed2", |big| sink::compressed_pipe(big, kind::COMPRESSED2).bytes),
    ];
    for perf in perf::all().iter().filter(|perf| perf.attr_size() >= 144) {
        for (name, write) in recordings {
            let path = folder.path().join(name);
            fs::write(&path, write(perf.endian == Endian::Big)).expect("a temporary file");
            perfs::compare(perf, &path).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
