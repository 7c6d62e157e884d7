//! An older perf reads converted recordings of a newer one, and a newer perf those of an older one.

mod forms;
mod made;
mod perf;
mod releases;
mod sections;
mod values;

use std::path::Path;

use perfdata_core::Version;
use perfdata_core::attr::Attr;
use perfdata_core::feature::{Feature, FeatureId, Section};
use perfdata_core::record::{RawRecord, Record, RecordType};
use perfdata_tests::convert::Whole;
use perfdata_tests::recordings::{self, Container, Endian, Form, Recording};

fn version(text: &str) -> Version {
    text.parse().expect("a release")
}

fn all_recordings() -> Vec<Recording> {
    let mut all = recordings::fixtures();
    all.extend(recordings::shared());
    all
}

fn single_recordings() -> Vec<Recording> {
    let mut all = all_recordings();
    all.retain(|r| {
        matches!(
            r.form,
            Some(Form {
                container: Container::File | Container::Pipe,
                endian: Endian::Little
            })
        )
    });
    all
}

/// Checks that the recording contains nothing newer than `release`, and that every record matches
/// its event.
fn check_known(path: &Path, release: Version) -> Result<(), String> {
    let whole = Whole::read_file(path)?;
    let events = &whole.recording.events;
    for event in events.iter() {
        if event.attr != event.attr.known_in(release)
            || event
                .attr
                .self_sized()
                .is_ok_and(|a| a.size > Attr::size_in(release))
        {
            return Err(format!("{:?} for {release}", event.attr));
        }
    }
    if let Some(Ok(Section {
        value: Feature::EventDescs(descs),
        ..
    })) = whole.recording.feature(FeatureId::EVENT_DESC)
    {
        for desc in descs.events.0 {
            if *desc.attr != desc.attr.known_in(release) {
                return Err(format!("EVENT_DESC: {:?} for {release}", desc.attr));
            }
        }
    }
    for (at, kind) in &whole.records {
        let raw = RawRecord::first(&whole.stream[*at..], whole.recording.endian, 0)
            .map_err(|error| error.to_string())?;
        let Some(info) = kind.info() else {
            return Err(format!("{kind} for {release}"));
        };
        if !release.has(info.since) && *kind != RecordType::HEADER_ATTR {
            return Err(format!("{kind} for {release}"));
        }
        if info
            .misc
            .iter()
            .any(|flag| raw.misc >> flag.bit & 1 == 1 && !release.has(flag.since))
        {
            return Err(format!("misc {:#x} of {kind} for {release}", raw.misc));
        }
        if kind.is_compressed() {
            continue;
        }
        let record =
            Record::decode(&raw, &events.layout_of(&raw)).map_err(|error| error.to_string())?;
        if record
            .encode_for(events, raw.endian)
            .map_err(|error| error.to_string())?
            != raw.bytes
        {
            return Err(format!("{kind} is another one when it is read"));
        }
    }
    Ok(())
}
