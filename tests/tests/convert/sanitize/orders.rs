//! Conversions before or after sanitizing give the same recording, and directories stay
//! directories.

use std::fs;
use std::path::Path;

use perfdata_convert::io::{Input, OutputDirectory};
use perfdata_convert::pipeline::{Stage, to_directory};
use perfdata_convert::stages::compress::Compress;
use perfdata_convert::stages::decompress::Decompress;
use perfdata_convert::stages::swap::{Swap, Target, Unknown};
use perfdata_core::DecodeContext;
use perfdata_core::feature::{FeatureId, Section};
use perfdata_core::header::ContainerKind;
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_sanitize::{Audience, Policy};
use perfdata_tests::convert::{Whole, convert, into_memory};
use perfdata_tests::recordings::{self, Container, Form, Recording};

use super::stages;

type Stages = Vec<Box<dyn Stage>>;

fn sanitize() -> Stages {
    stages(Policy::new(Audience::Public))
}

/// Returns all records and features of an uncompressed recording in a file, without its container
/// and its byte order, and without the features that depend on the container.
fn model(bytes: Vec<u8>) -> Result<(Vec<String>, Vec<String>), String> {
    let stages: Stages = vec![Box::new(Decompress::default())];
    let file = into_memory(Input::from_source(bytes), Some(ContainerKind::File), stages);
    let whole = Whole::read(file.map_err(|error| error.to_string())?);
    let whole = whole.map_err(|error| error.to_string())?;
    let recording = &whole.recording;
    let layout = DecodeContext::default().with_nr_cpus_available(recording.nr_cpus_available());
    let features = recording.features.iter().map(|(&id, bytes)| {
        let section = Section::decode(id, bytes, recording.endian, &layout);
        format!("{:?}", section.map(|section| section.value))
    });
    let features = features.collect();
    let mut records = Vec::new();
    for &(at, kind) in &whole.records {
        if kind.is_metadata() || kind == RecordType::EVENT_UPDATE {
            continue;
        }
        let raw = RawRecord::first(&whole.stream[at..], recording.endian, 0)
            .map_err(|error| error.to_string())?;
        let record = Record::decode(&raw, &recording.events.layout_of(&raw));
        records.push(format!("{:?}", record.map_err(|error| error.to_string())?));
    }
    Ok((records, features))
}

/// Converts in two steps.
fn in_two(
    path: &Path,
    first: (Option<ContainerKind>, Stages),
    second: (Option<ContainerKind>, Stages),
) -> Result<Vec<u8>, String> {
    let made = convert(path, first.0, first.1).map_err(|error| error.to_string())?;
    let made = convert(&made.path(), second.0, second.1).map_err(|error| error.to_string())?;
    Ok(made.bytes())
}

fn check(recording: &Recording) -> Result<(), String> {
    let swap = || Box::new(Swap::new(Target::Other, Unknown::Keep)) as Box<dyn Stage>;
    let compress = || {
        vec![
            Box::new(Decompress::default()) as Box<dyn Stage>,
            Box::new(Compress::new(RecordType::COMPRESSED2, 1)),
        ]
    };
    let path = &recording.path;
    let plain = |to| (to, sanitize());
    type Conversion<'a> = (&'a str, Box<dyn Fn() -> (Option<ContainerKind>, Stages)>);
    let conversions: [Conversion<'_>; 4] = [
        ("swap", Box::new(move || (None, vec![swap()]))),
        ("compress", Box::new(move || (None, compress()))),
        ("pipe", Box::new(|| (Some(ContainerKind::Pipe), Vec::new()))),
        ("file", Box::new(|| (Some(ContainerKind::File), Vec::new()))),
    ];
    for (name, conversion) in conversions {
        let (to, _) = conversion();
        let alone = {
            let (to, stages) = conversion();
            convert(path, to, stages)
        };
        if alone.is_err() {
            // It cannot be converted. Sanitized, it may be another one.
            continue;
        }
        let before = in_two(path, conversion(), plain(None));
        let after = in_two(path, plain(None), conversion());
        let in_one = {
            let (to, stages) = conversion();
            let stages = sanitize().into_iter().chain(stages).collect();
            convert(path, to, stages)
                .map(|made| made.bytes())
                .map_err(|error| error.to_string())
        };
        let (before, after, in_one) = match (before, after, in_one) {
            (Ok(before), Ok(after), Ok(in_one)) => (before, after, in_one),
            (before, after, in_one) => {
                let result = |made: Result<Vec<u8>, String>| made.map(|bytes| bytes.len());
                return Err(format!(
                    "{name}: before {:?}, after {:?}, in one {:?}",
                    result(before),
                    result(after),
                    result(in_one)
                ));
            }
        };
        let (before, after, in_one) = (model(before)?, model(after)?, model(in_one)?);
        let difference = |one: &(Vec<String>, Vec<String>), other: &(Vec<String>, Vec<String>)| {
            let pairs = one.0.iter().zip(&other.0).chain(one.1.iter().zip(&other.1));
            let first = pairs.clone().find(|(one, other)| one != other);
            let counts = (one.0.len(), other.0.len(), one.1.len(), other.1.len());
            format!("{name} to {to:?}: {counts:?} {first:#?}")
        };
        if after != in_one {
            return Err(format!(
                "after, and in one: {}",
                difference(&after, &in_one)
            ));
        }
        if before != after {
            return Err(format!(
                "before, and after: {}",
                difference(&before, &after)
            ));
        }
    }
    Ok(())
}

#[test]
fn the_order_of_conversions_does_not_matter_to_any_fixture() {
    let mut all = recordings::fixtures();
    // It has no room for HOSTNAME, which another byte order needs. Sanitized, it has.
    all.retain(|recording| recording.name != "7.2-x86_64-file-crashed");
    recordings::check_all(&all, check);
}

fn is_directory(recording: &Recording) -> bool {
    let Some(Form { container, .. }) = recording.form else {
        return false;
    };
    container == Container::Directory
}

/// A directory can be sanitized as a directory: together, its files are what a sanitized file is,
/// and the image of the kernel is not in it.
#[test]
fn directories_stay_directories() {
    let mut all = recordings::fixtures();
    all.extend(recordings::shared());
    all.retain(is_directory);
    assert!(!all.is_empty());
    recordings::check_all(&all, |recording| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let made = folder.path().join("made");
        let path = &recording.path;
        let output = OutputDirectory::create(&made, path, false, to_directory::is_part);
        let input = Input::open(path).map_err(|error| error.to_string())?;
        let summary = output
            .and_then(|output| to_directory::convert(input, output, || Ok(sanitize())))
            .map_err(|error| error.to_string())?;
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).expect("a folder");
            let name = |entry: std::io::Result<fs::DirEntry>| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            };
            let mut names: Vec<String> = entries.map(name).collect();
            names.sort();
            names
        };
        let (mut old, new) = (names(path), names(&made));
        let has_kernel = old.iter().any(|name| name.starts_with("kcore_dir"));
        old.retain(|name| !name.starts_with("kcore_dir"));
        if old != new {
            return Err(format!("{old:?} became {new:?}"));
        }
        if has_kernel
            != summary
                .notes
                .iter()
                .any(|note| note.contains("image of the kernel"))
        {
            return Err(format!("{:?}", summary.notes));
        }
        // perf separates the files only in time, and not otherwise.
        let merged = |path: &Path, stages| {
            let made = convert(path, Some(ContainerKind::File), stages);
            made.map_err(|error| error.to_string())
                .and_then(|made| model(made.bytes()))
        };
        let (mut one, mut other) = (merged(&made, Vec::new())?, merged(path, sanitize())?);
        for features in [&mut one.1, &mut other.1] {
            features.retain(|feature| !feature.starts_with("DirFormat"));
        }
        if one != other {
            let pairs = one.0.iter().zip(&other.0).chain(one.1.iter().zip(&other.1));
            let first = pairs.clone().find(|(one, other)| one != other);
            return Err(format!("{first:#?}"));
        }
        // Nothing of the original is in any file.
        let whole = convert(path, Some(ContainerKind::File), Vec::new());
        let whole = Whole::read_file(&whole.map_err(|error| error.to_string())?.path())?;
        let host = match whole.recording.feature(FeatureId::HOSTNAME) {
            Some(Ok(section)) => format!("{:?}", section.value),
            _ => String::new(),
        };
        let host: Vec<u8> = host.split('"').nth(1).unwrap_or_default().into();
        for name in new {
            let bytes = fs::read(made.join(&name)).map_err(|error| error.to_string())?;
            if host.len() > 3 && bytes.windows(host.len()).any(|window| window == host) {
                return Err(format!("the host name is in {name}"));
            }
        }
        Ok(())
    });
}
