//! Recordings that are truncated at any offset.

use std::fs;

use perfdata_convert::error::Error;
use perfdata_core::container_layout::ContainerLayout;
use perfdata_tests::convert::open;
use perfdata_tests::is_thorough;
use perfdata_tests::recordings::{self, fixture};

use super::{Bench, Item, contents, items};

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
) -> Result<(), String> {
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
