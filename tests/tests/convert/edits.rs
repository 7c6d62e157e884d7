//! Changing a feature section changes only this section.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;

use perfdata_convert::json::Json;
use perfdata_convert::stages::edit::{self, Change, Edit};
use perfdata_core::container_layout::{ContainerLayout, Part, SlotContent};
use perfdata_core::feature::{Feature, FeatureId, Section, TABLE};
use perfdata_core::header::ContainerKind;
use perfdata_core::wire::{HeaderString, Wire};
use perfdata_core::{DecodeContext, Endian, Recording as Model};
use perfdata_tests::convert::{Whole, convert};
use perfdata_tests::recordings::{self, Container, Form, Recording, fixture};
use perfdata_tests::{is_thorough, per_fixture, synth};

per_fixture!(only_the_section_changes);

fn edited(
    recording: &Recording,
    to: Option<ContainerKind>,
    changes: &[(&str, Change)],
) -> Result<Whole, String> {
    let changes = changes
        .iter()
        .map(|(name, change)| ((*name).to_owned(), change.clone()));
    let edit = Edit::new(changes).map_err(|error| error.to_string())?;
    let converted =
        convert(&recording.path, to, vec![Box::new(edit)]).map_err(|error| error.to_string())?;
    Whole::read(converted.bytes()).map_err(|error| error.to_string())
}

/// Drops two sections, changes one, adds a known one and an unknown one.
fn only_the_section_changes(recording: &Recording) -> Result<(), String> {
    let is_pipe = match recording.form {
        Some(Form {
            container: Container::File,
            ..
        }) => false,
        Some(Form {
            container: Container::Pipe,
            ..
        }) => true,
        _ => return Ok(()),
    };
    let mut expected = Whole::read_file(&recording.path)?;
    if let ContainerLayout::File(file) = &expected.container_layout
        && (file.overlaps()
            || file.unexplained
            || expected.records.iter().any(|(_, kind)| kind.0 == 80))
    {
        return Ok(());
    }
    let changes = [
        ("osrelease", Change::Drop),
        ("CMDLINE", Change::Drop),
        ("HostName", Change::Set("elsewhere".into())),
        ("CLN_SIZE", Change::Set("77".into())),
        ("60", Change::Raw(b"from the future".to_vec())),
    ];
    let found = edited(recording, None, &changes)?;

    let features = &mut expected.recording.features;
    for id in [FeatureId::OSRELEASE, FeatureId::CMDLINE] {
        features.remove(&id);
    }
    let endian = found.recording.endian;
    let number = if endian == Endian::Little {
        77u32.to_le_bytes()
    } else {
        77u32.to_be_bytes()
    };
    let name = HeaderString::new(b"elsewhere")
        .encode(endian)
        .map_err(|error| error.to_string())?;
    features.insert(FeatureId::HOSTNAME, name);
    features.insert(FeatureId::CLN_SIZE, number.to_vec());
    features.insert(FeatureId(60), b"from the future".to_vec());
    if found.recording.features != *features {
        return Err("the features are not those expected".into());
    }
    if found.recording.events[..] != expected.recording.events[..] {
        return Err("the events changed".into());
    }
    let is_late = expected.records.iter().any(|(_, kind)| kind.0 == 80);
    if found.stream != expected.stream && !(is_pipe && is_late) {
        return Err("the records changed".into());
    }
    in_order(&found)
}

/// Sections follow the data in ascending order; in a pipe, they precede the record that ends them,
/// which has a higher ID.
fn in_order(whole: &Whole) -> Result<(), String> {
    let ids: Vec<u64> = match &whole.container_layout {
        ContainerLayout::File(file) => {
            let sections = file.regions.iter().filter_map(|region| match region.part {
                Part::Feature(id) => Some(u64::from(id.0)),
                _ => None,
            });
            sections.collect()
        }
        ContainerLayout::Pipe(head) => {
            let records = head.slots.iter().filter_map(|slot| match slot.content {
                SlotContent::Feature(id) => Some(u64::from(id.0)),
                SlotContent::EndOfFeatures(id) => Some(id),
                _ => None,
            });
            records.collect()
        }
    };
    if ids.is_sorted() && ids.len() > 2 {
        Ok(())
    } else {
        Err(format!("the sections stand in the order {ids:?}"))
    }
}

/// Every feature can be set from its bytes and dropped again, in both containers.
#[test]
fn every_feature_can_be_set_and_dropped() {
    for name in ["6.1-x86_64-file-default", "7.2-s390x-file-default"] {
        let recording = fixture(name);
        for info in TABLE {
            let set = edited(&recording, None, &[(info.name, Change::Raw(vec![1; 24]))])
                .expect("a change");
            assert_eq!(
                set.recording.features.get(&info.id),
                Some(&vec![1; 24]),
                "{name}: {}",
                info.name
            );
            let dropped = edited(&recording, None, &[(info.name, Change::Drop)]).expect("a change");
            let left = dropped
                .recording
                .feature(info.id)
                .map(|section| section.expect("it is valid").value);
            let is_as_expected = match info.id {
                // Readers of files rely on them.
                FeatureId::HOSTNAME => {
                    matches!(left, Some(Feature::Hostname(host)) if host.text().is_empty())
                }
                FeatureId::EVENT_DESC => left.is_some(),
                _ => left.is_none(),
            };
            assert!(is_as_expected, "{name}: {}", info.name);
        }
    }
}

/// Every section of every fixture can be set from the output of `perfconv info --json`.
#[test]
fn what_info_prints_can_be_set() {
    let mut recordings = recordings::fixtures();
    if is_thorough() {
        recordings.extend(recordings::shared());
    }
    let seen = Mutex::new(BTreeSet::new());
    recordings::check_all(&recordings, |recording| {
        let bytes = fs::read(recording.main_file()).map_err(|error| error.to_string())?;
        sections_come_back(bytes, &seen)
    });
    let seen = seen
        .into_inner()
        .expect("no check panics while it holds the lock");
    let missing: Vec<_> = TABLE
        .iter()
        .filter(|info| !seen.contains(&info.id))
        .map(|info| info.name)
        .collect();
    // Its numbers have a separate byte order.
    assert!(
        missing.contains(&"TRACING_DATA") && missing.len() < 10,
        "not seen: {missing:?}"
    );
}

/// Every line of the table of features can be set, in both byte orders.
#[test]
fn every_feature_can_be_set_from_json() {
    let seen = Mutex::new(BTreeSet::new());
    for big in [false, true] {
        sections_come_back(synth::file::kitchen_sink(big), &seen)
            .unwrap_or_else(|message| panic!("{message}"));
    }
    let seen = seen
        .into_inner()
        .expect("no check panics while it holds the lock");
    let missing: Vec<_> = TABLE
        .iter()
        .filter(|info| !seen.contains(&info.id))
        .map(|info| info.name)
        .collect();
    // DIR_FORMAT exists only in directories.
    assert_eq!(missing, ["TRACING_DATA", "DIR_FORMAT"]);
}

/// Checks all sections of a recording that are printed completely, except for tracing data.
fn sections_come_back(bytes: Vec<u8>, seen: &Mutex<BTreeSet<FeatureId>>) -> Result<(), String> {
    let recording = Whole::read(bytes)
        .map_err(|error| error.to_string())?
        .recording;
    let mut faults = Vec::new();
    for (&id, bytes) in &recording.features {
        let Some(Ok(section)) = recording.feature(id) else {
            continue;
        };
        if id == FeatureId::TRACING_DATA || !section.tail.is_empty() || id.info().is_none() {
            continue;
        }
        let value = json_of(&section);
        match edit::section(id, &value, &recording) {
            // The kernel leaves stale bytes after names and arrays.
            Ok(set)
                if set == *bytes
                    || (id == FeatureId::BPF_PROG_INFO
                        && shows_as(id, &set, &recording, &value)) =>
            {
                seen.lock()
                    .expect("no check panics while it holds the lock")
                    .insert(id);
            }
            Ok(set) => faults.push(format!(
                "{id}: {} bytes, not {}, from {value:.300}",
                set.len(),
                bytes.len()
            )),
            Err(error) => faults.push(format!("{id}: {error}, from {value:.300}")),
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

fn shows_as(id: FeatureId, bytes: &[u8], recording: &Model, value: &str) -> bool {
    let section = Section::decode(id, bytes, recording.endian, &DecodeContext::default());
    section.is_ok_and(|section| json_of(&section) == value)
}

/// Returns the section as printed by `perfconv info --json`.
fn json_of(section: &Section) -> String {
    let mut json = Json::compact();
    json.object("");
    json.value("value", &section.value);
    json.close();
    let json: serde_json::Value = serde_json::from_slice(&json.out).expect("JSON");
    json["value"].to_string()
}

/// Features that the change of container adds are changed, too.
#[test]
fn changes_come_behind_the_change_of_container() {
    let stat = fixture("6.1-i386-pipe-stat");
    let file = Some(ContainerKind::File);
    assert!(
        edited(&stat, file, &[])
            .expect("a file")
            .recording
            .features
            .contains_key(&FeatureId::STAT)
    );
    let found = edited(
        &stat,
        file,
        &[("STAT", Change::Drop), ("BUILD_ID", Change::Drop)],
    )
    .expect("a file");
    assert!(
        found
            .recording
            .features
            .keys()
            .all(|&id| id != FeatureId::STAT && id != FeatureId::BUILD_ID)
    );
}

/// A section that is too large for a record of a pipe is named in the error, with a solution.
#[test]
fn sections_too_large_for_a_pipe_are_named() {
    let recording = fixture("6.1-x86_64-file-default");
    let pipe = Some(ContainerKind::Pipe);
    let large = |len| edited(&recording, pipe, &[("BPF_BTF", Change::Raw(vec![0; len]))]).map(drop);
    assert_eq!(large(65_519), Ok(()));
    let error = large(65_520).expect_err("too large");
    assert_eq!(
        error,
        "feature BPF_BTF has 65520 bytes, but a record of a pipe can contain at most 65519"
    );
    assert_eq!(
        edited(&recording, pipe, &[("BPF_BTF", Change::Drop)]).map(drop),
        Ok(())
    );
}
