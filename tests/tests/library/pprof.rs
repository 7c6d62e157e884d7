//! Profiles for pprof, decoded independently of what wrote them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::read::GzDecoder;
use perfdata_core::attr::{EventType, SampleType, SoftwareEvent};
use perfdata_core::record::CpuMode;
use perfdata_export::{Label, Pprof, export};
use perfdata_session::Samples;
use perfdata_tests::generate::{Generator, Mix};
use perfdata_tests::recordings::{self, Recording};

use crate::export::{Totals, run};
use crate::messages::{contents, fields, number_in, packed};

/// Returns the decompressed profile of a recording.
fn profile(recording: &Recording, labels: &[Label]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    run(
        recording,
        &mut Pprof::new(&mut out).with_labels(labels.to_vec()),
    );
    let mut profile = Vec::new();
    GzDecoder::new(&*out)
        .read_to_end(&mut profile)
        .map_err(|error| error.to_string())?;
    Ok(profile)
}

pub fn check_pprof(recording: &Recording, totals: &Totals) -> Result<(), String> {
    let profile = profile(recording, &Label::ALL)?;
    let profile = fields(&profile);
    let of = |number: u64| profile.iter().filter(move |field| field.0 == number);
    let strings: Vec<String> = of(6)
        .map(|field| String::from_utf8(field.2.clone()).expect("UTF-8"))
        .collect();
    let string = |at: u64| strings[usize::try_from(at).expect("small")].clone();
    let types: Vec<String> = of(1).map(|field| string(number_in(&field.2, 1))).collect();
    let (mappings, locations) = (of(3).count() as u64, of(4).count() as u64);
    // Numbers count from 1 without gaps, and refer to entries that exist.
    let are_numbered = |number: u64| {
        let mut numbers: Vec<u64> = of(number).map(|field| number_in(&field.2, 1)).collect();
        numbers.sort_unstable();
        (1..).zip(numbers).all(|(at, number)| at == number)
    };
    let are_mapped = of(4).all(|field| number_in(&field.2, 2) <= mappings);
    if ![3, 4, 5].into_iter().all(are_numbered) || !are_mapped || strings[0] != *"" {
        return Err("pprof: wrong numbers".into());
    }
    for field in of(3) {
        let _ = (
            string(number_in(&field.2, 5)),
            string(number_in(&field.2, 6)),
        );
    }
    let mut sums = vec![0_u64; types.len()];
    for sample in of(2) {
        for (number, _, content) in fields(&sample.2) {
            let numbers = packed(&content);
            match number {
                1 if numbers.iter().any(|&at| at == 0 || at > locations) => {
                    return Err("pprof: no such location".into());
                }
                2 if numbers.len() != types.len() => return Err("pprof: values".into()),
                2 => sums
                    .iter_mut()
                    .zip(&numbers)
                    .for_each(|(sum, value)| *sum += value),
                3 => {
                    let key = string(number_in(&content, 1));
                    assert!(Label::ALL.iter().any(|label| label.key() == key), "{key}");
                }
                _ => {}
            }
        }
    }
    let mut expected: Vec<u64> = totals
        .0
        .values()
        .flat_map(|sums| [sums.0, sums.1])
        .collect();
    expected.sort_unstable();
    sums.sort_unstable();
    if sums != expected {
        return Err(format!("pprof: {sums:?}, expected {expected:?}"));
    }
    let default = of(14).next().map(|field| string(field.1));
    let first = totals.1.as_deref().map(String::from_utf8_lossy);
    let is_first = |name: &String| {
        types.contains(name)
            && (name == "cpu"
                || first
                    .as_ref()
                    .is_some_and(|first| name.starts_with(&**first)))
    };
    match totals.1.is_none() || default.as_ref().is_some_and(is_first) {
        true => Ok(()),
        false => Err("pprof: the default type".into()),
    }
}

/// pprof takes the first mapping for the program.
#[test]
fn profiles_for_pprof_begin_with_the_program() {
    let recording = recordings::fixture("6.1-x86_64-file-g");
    let profile = profile(&recording, &[]).expect("compressed");
    let first = &contents(&profile, 3)[0];
    assert_ne!(number_in(first, 1), 1);
    let strings = contents(&profile, 6);
    let name = &strings[number_in(first, 5) as usize];
    assert_eq!(name, b"/usr/local/bin/perf-workload");
}

/// Addresses of user code outside of all mappings of their process are one location. Others without
/// a mapping are locations with addresses: those of the kernel, of guests, and of processes without
/// mappings.
#[test]
fn addresses_that_are_not_mapped_are_one_location() {
    let (with_one, without) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let check = |recording: &Recording| {
        let Ok(mut samples) = Samples::open(&recording.path) else {
            return Ok(());
        };
        let (mut is_there, mut addresses) = (false, BTreeSet::new());
        loop {
            let sample = match samples.next() {
                Ok(Some(sample)) => sample,
                Ok(None) => break,
                Err(_) => return Ok(()),
            };
            let Some(attr) = sample.attr() else { continue };
            if attr.sample_type.has(SampleType::READ) {
                // Samples of groups may count for no event.
                return Ok(());
            }
            if attr.kind == EventType::SOFTWARE && attr.config == SoftwareEvent::DUMMY.0 {
                continue;
            }
            for frame in sample.frames().filter(|frame| frame.mapping.is_none()) {
                if frame.mode == CpuMode::USER && sample.has_mappings(CpuMode::USER) {
                    is_there = true;
                } else {
                    addresses.insert(frame.address.saturating_sub(frame.is_return.into()));
                }
            }
        }
        let profile = profile(recording, &[])?;
        let (strings, functions) = (contents(&profile, 6), contents(&profile, 5));
        let (mut unmapped, mut others) = (0, BTreeSet::new());
        for location in contents(&profile, 4) {
            if number_in(&location, 2) != 0 {
                continue;
            }
            let address = number_in(&location, 3);
            let Some(line) = contents(&location, 4).pop() else {
                others.insert(address);
                continue;
            };
            let function = number_in(&line, 1);
            let is_it = |of: &&Vec<u8>| number_in(of, 1) == function;
            let function = functions.iter().find(is_it).ok_or("no such function")?;
            assert_eq!(strings[number_in(function, 2) as usize], b"[unknown]");
            assert_eq!(address, 0);
            unmapped += 1;
        }
        with_one.fetch_add(is_there.into(), Ordering::Relaxed);
        without.fetch_add((!others.is_empty()).into(), Ordering::Relaxed);
        match unmapped == usize::from(is_there) && others == addresses {
            true => Ok(()),
            false => Err(format!(
                "{unmapped} ({is_there}), {others:x?}, {addresses:x?}"
            )),
        }
    };
    recordings::check_all(&recordings::fixtures(), check);
    let counts = [with_one.into_inner(), without.into_inner()];
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

/// Different stacks that need more memory than a profile keeps are counted in several parts. All of
/// the samples are in the profile.
#[test]
fn stacks_in_several_parts_are_all_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("generated.data");
    let file = File::create_new(&path).expect("a temporary file");
    let generator = Generator::new(Mix::Callchains, 20_000_000);
    generator.file(file).expect("a temporary file");
    let mut samples = Samples::open(&path).expect("a recording");
    let (mut count, mut weight) = (0, 0);
    while let Some(sample) = samples.next().expect("a recording") {
        count += 1;
        weight += sample.weight();
    }
    let mut out = Vec::new();
    let mut samples = Samples::open(&path).expect("a recording");
    export(&mut samples, None, &mut Pprof::new(&mut out)).expect("a recording");
    let mut profile = Vec::new();
    let decompressed = GzDecoder::new(&*out).read_to_end(&mut profile);
    decompressed.expect("compressed");
    let mut sums = [0; 2];
    for sample in contents(&profile, 2) {
        let values = packed(&contents(&sample, 2)[0]);
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    assert!(count > 50_000);
    assert_eq!(sums, [count, weight]);
}
