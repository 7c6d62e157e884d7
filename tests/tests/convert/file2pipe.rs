//! Converting a file to a pipe and back, or a pipe to a file and back, results in the same
//! recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use perfdata_core::Endian;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::header::ContainerKind::{File, Pipe};
use perfdata_core::record::RecordType;
use perfdata_tests::convert::{Converted, Whole, convert, differences};
use perfdata_tests::recordings::{self, Container, Form, Recording};
use perfdata_tests::{per_fixture, synth};

per_fixture!(comes_back);

#[test]
fn recordings_outside_come_back() {
    recordings::check_all(&recordings::shared(), comes_back);
}

#[test]
fn published_recordings_come_back() {
    let whole: Vec<_> = recordings::corpus()
        .into_iter()
        .filter(|r| !r.is_damaged())
        .collect();
    recordings::check_all(&whole, comes_back);
}

/// Every record and feature of the independent writer, and the forms of old perfs.
#[test]
fn synthetic_recordings_come_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for big in [false, true] {
        let recordings = [
            ("file", synth::file::kitchen_sink(big)),
            ("pipe", synth::pipe::kitchen_sink(big)),
            ("without ids", synth::file::without_ids(big).bytes()),
        ];
        for (name, bytes) in recordings {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("a temporary file");
            if let Err(message) = comes_back(&Recording::at(&path)) {
                panic!("{name}, big-endian {big}: {message}");
            }
        }
    }
}

/// A section that is different after the conversion to a pipe and back, and the reason.
struct Changed {
    id: FeatureId,
    reason: &'static str,
    applies: fn(&Whole) -> bool,
}

const CHANGED: &[Changed] = &[
    Changed {
        id: FeatureId::AUXTRACE,
        reason: "the places of records in the file, which has another header",
        applies: |_| true,
    },
    Changed {
        id: FeatureId::DIR_FORMAT,
        reason: "no perf takes it from a pipe, which is never part of a directory",
        applies: |_| true,
    },
    Changed {
        id: FeatureId::SAMPLE_TIME,
        reason: "0 like in a recorded pipe, where perf record -B did not look at the samples: the file gets the times",
        applies: |before| {
            let section = before.recording.features.get(&FeatureId::SAMPLE_TIME);
            section.is_some_and(|section| section.iter().all(|&byte| byte == 0))
        },
    },
    Changed {
        id: FeatureId::STAT,
        reason: "the flag follows from STAT records, of which a damaged file may have none",
        applies: |before| {
            before
                .records
                .iter()
                .all(|(_, kind)| *kind != RecordType::STAT)
        },
    },
    Changed {
        id: FeatureId::CPUDESC,
        reason: "in a pipe an empty section ends the features",
        applies: |before| {
            before
                .recording
                .features
                .get(&FeatureId::CPUDESC)
                .is_some_and(Vec::is_empty)
        },
    },
    Changed {
        id: FeatureId::BUILD_ID,
        reason: "the type of an entry is 0, even if another tool wrote that of the record",
        applies: |before| {
            matches!(
                before.recording.feature(FeatureId::BUILD_ID),
                Some(Ok(Section { value: Feature::BuildIds(ids), .. })) if ids.0.iter().all(|entry| entry.header.kind.0 != 0)
            )
        },
    },
    Changed {
        id: FeatureId::BUILD_ID,
        reason: "perf 3.8 leaves stale bytes behind the names, which look like the trailer of perf 6.12",
        applies: |before| {
            matches!(
                before.recording.feature(FeatureId::VERSION),
                Some(Ok(Section { value: Feature::Version(version), .. })) if version.text().starts_with(b"3.8")
            )
        },
    },
    Changed {
        id: FeatureId::BUILD_ID,
        reason: "perf inject leaves build ids in the data, which enter the section",
        applies: |before| {
            before
                .records
                .iter()
                .any(|(_, kind)| *kind == RecordType::HEADER_BUILD_ID)
        },
    },
];

/// The sections that every file gets, because readers rely on them.
const ADDED: [FeatureId; 4] = [
    FeatureId::TRACING_DATA,
    FeatureId::HOSTNAME,
    FeatureId::ARCH,
    FeatureId::EVENT_DESC,
];

fn comes_back(recording: &Recording) -> Result<(), String> {
    match recording.form {
        Some(Form {
            container: Container::File,
            ..
        }) => file_comes_back(recording),
        Some(Form {
            container: Container::Pipe,
            ..
        }) => pipe_comes_back(recording),
        _ => Ok(()),
    }
}

fn to(kind: perfdata_core::header::ContainerKind, path: &Path) -> Result<Converted, String> {
    convert(path, Some(kind), Vec::new()).map_err(|error| error.to_string())
}

fn read(converted: &Converted) -> Result<Whole, String> {
    Whole::read(converted.bytes()).map_err(|error| error.to_string())
}

fn file_comes_back(recording: &Recording) -> Result<(), String> {
    let before = Whole::read_file(&recording.path)?;
    // perf inject overwrites the section with attributes: it cannot be converted to records.
    let damaged = before
        .recording
        .feature(FeatureId::BUILD_ID)
        .is_some_and(|section| section.is_err());
    let pipe = match to(Pipe, &recording.path) {
        Err(message) if damaged && message.contains("BUILD_ID") => return Ok(()),
        other => other?,
    };
    let file = to(File, &pipe.path())?;
    let after = read(&file)?;
    same_model(&before, &after)?;
    same_data(&before, &after, pipe.summary.unreadable.is_some())?;
    nothing_differs(&recording.path, &file.path(), &before)
}

/// Bytes at the end of a damaged stream that are not a record are lost.
fn same_data(before: &Whole, after: &Whole, damaged: bool) -> Result<(), String> {
    let (before, after) = (data(before), data(after));
    if before == after || (damaged && before.starts_with(&after)) {
        return Ok(());
    }
    Err(format!(
        "the records differ: {} bytes before, {} after",
        before.len(),
        after.len()
    ))
}

/// A pipe made from a file comes back unchanged. A recorded pipe is the same after the first and
/// the second conversion.
fn pipe_comes_back(recording: &Recording) -> Result<(), String> {
    let file = to(File, &recording.path)?;
    let pipe = to(Pipe, &file.path())?;
    let again = to(Pipe, &to(File, &pipe.path())?.path())?;
    if pipe.bytes() != again.bytes() {
        return Err("file → pipe → file → pipe differs from file → pipe".into());
    }
    let (before, made, after) = (
        Whole::read_file(&recording.path)?,
        read(&file)?,
        read(&pipe)?,
    );
    for (id, section) in &before.recording.features {
        // SAMPLE_TIME is 0 in a recorded pipe, and contains the times in a file.
        let now = if *id == FeatureId::SAMPLE_TIME {
            &made
        } else {
            &before
        };
        if after.recording.features.get(id) != now.recording.features.get(id) && !section.is_empty()
        {
            return Err(format!("feature {} differs", *id));
        }
    }
    if after.recording.events[..] != before.recording.events[..] {
        return Err("the events differ".into());
    }
    same_data(&before, &after, file.summary.unreadable.is_some())?;
    nothing_differs(&recording.path, &pipe.path(), &before)
}

/// Checks that `perfconv diff` finds no differences except those in [`CHANGED`] and the following.
fn nothing_differs(before: &Path, after: &Path, whole: &Whole) -> Result<(), String> {
    let has = |kind| whole.records.iter().any(|record| record.1 == kind);
    let has_metadata = has(RecordType::HEADER_FEATURE) || has(RecordType::HEADER_BUILD_ID);
    let mut found = differences(before, after)?;
    found.retain(|line| {
        // Bytes that are not a record are discarded.
        let is_end = line.starts_with("end of the records: only in A: ")
            && whole.records_end < whole.stream.len();
        // perf inject leaves metadata among the records; after the conversion it is at the head.
        let is_moved = (line.starts_with("HEADER_BUILD_ID record: only in ")
            || (line.starts_with("feature ") && line.contains(": only in B: ")))
            && has_metadata;
        // The file had to have them.
        let is_made = ADDED
            .iter()
            .any(|id| line.starts_with(&format!("feature {id}: only in B: ")));
        // The names of common formats, where the recording has none.
        let is_made =
            is_made || (line.starts_with("event ") && line.contains("unknown:tracepoint_"));
        let is_known = CHANGED.iter().any(|changed| {
            line.starts_with(&format!("feature {}: ", changed.id)) && (changed.applies)(whole)
        });
        !(is_end || is_moved || is_made || is_known)
    });
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("{found:#?}"))
    }
}

/// Returns the record stream without metadata, which is now at its head, and without the names of
/// events that a pipe made from a file contains before it.
fn data(whole: &Whole) -> Vec<u8> {
    let ends = whole
        .records
        .iter()
        .skip(1)
        .map(|(start, _)| *start)
        .chain([whole.stream.len()]);
    let records = whole.records.iter().zip(ends);
    records
        .filter(|((_, kind), _)| !kind.is_metadata() && *kind != RecordType::HEADER_BUILD_ID)
        .skip_while(|((start, kind), _)| {
            *kind == RecordType::EVENT_UPDATE
                && is_name(&whole.stream[start + 8..], whole.recording.endian)
        })
        .flat_map(|((start, _), end)| whole.stream[*start..end].to_vec())
        .collect()
}

/// Returns whether the body of an EVENT_UPDATE contains the name of an event.
fn is_name(body: &[u8], endian: Endian) -> bool {
    let name = if endian == Endian::Little {
        2_u64.to_le_bytes()
    } else {
        2_u64.to_be_bytes()
    };
    body.starts_with(&name)
}

fn same_model(before: &Whole, after: &Whole) -> Result<(), String> {
    let (old, new) = (&before.recording, &after.recording);
    if old.events[..] != new.events[..] || old.event_types != new.event_types {
        return Err("the events differ".into());
    }
    let ids: BTreeSet<FeatureId> = old
        .features
        .keys()
        .chain(new.features.keys())
        .copied()
        .collect();
    for id in ids {
        let is_added = ADDED.contains(&id) && !old.features.contains_key(&id);
        if is_added || old.features.get(&id) == new.features.get(&id) {
            continue;
        }
        // perf inject leaves features among the records, too.
        if before
            .records
            .iter()
            .any(|(_, kind)| *kind == RecordType::HEADER_FEATURE)
        {
            continue;
        }
        let known = CHANGED
            .iter()
            .find(|changed| changed.id == id && (changed.applies)(before));
        let Some(Changed { reason, .. }) = known else {
            let len = |features: &BTreeMap<FeatureId, Vec<u8>>| features.get(&id).map(Vec::len);
            let (old, new) = (len(&old.features), len(&new.features));
            return Err(format!(
                "feature {id} differs: {old:?} bytes before, {new:?} after"
            ));
        };
        eprintln!("{id} differs: {reason}");
    }
    Ok(())
}
