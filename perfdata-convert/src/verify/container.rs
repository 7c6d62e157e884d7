//! What is around the records of a file: header, attributes, and the places of all parts.

use std::collections::HashMap;

use perfdata_core::Recording;
use perfdata_core::arrangement::{FileArrangement, Part, Region};
use perfdata_core::attr::Attr;
use perfdata_core::feature::FeatureId;
use perfdata_core::header::FileSection;
use perfdata_core::wire::Wire;

use super::{Report, Severity, difference};
use crate::error::Result;
use crate::io::InputSource;

/// Checks everything of `file` but records and features.
pub(super) fn check(
    report: &mut Report,
    file: &FileArrangement,
    recording: &Recording,
    source: &InputSource,
) -> Result<()> {
    let header = source.bytes(file.place(Part::Header).unwrap_or_default())?;
    if let Some(what) = difference(&header, &file.header.encode(recording.endian)?) {
        report.add(Severity::Error, 0, format!("file header: {what}"));
    }
    check_attrs(report, file, recording, source)?;
    check_ids(report, file, recording);
    check_places(report, file);
    for region in file.regions.iter().filter(|region| region.part == Part::Gap) {
        let FileSection { offset, size } = region.place;
        let gap = source.bytes(region.place)?;
        if gap.iter().any(|&byte| byte != 0) {
            report.add(Severity::Note, offset, format!("{size} bytes that nothing points at"));
        }
    }
    Ok(())
}

fn check_attrs(report: &mut Report, file: &FileArrangement, recording: &Recording, source: &InputSource) -> Result<()> {
    let place = file.header.attrs;
    let entry_size = file.header.attr_size;
    if !place.size.is_multiple_of(entry_size) {
        let meaning = format!("attrs section: {} bytes are no multiple of the entries' {entry_size}", place.size);
        report.add(Severity::Error, place.offset, meaning);
    }
    let mut offset = place.offset;
    for (event, ids) in recording.events.iter().zip(&file.ids) {
        let found = source.bytes(FileSection { offset, size: entry_size })?;
        let mut again = event.attr.encode(recording.endian)?;
        ids.encode_into(&mut again, recording.endian)?;
        if let Some(what) = difference(&found, &again) {
            report.add(Severity::Error, offset, format!("attribute: {what}"));
        }
        let own = u64::from(event.attr.own_size()) + FileSection::SIZE;
        if own != entry_size {
            let meaning = format!("attribute: says {} bytes, the header gives it {}", own - 16, entry_size - 16);
            report.add(Severity::Warning, offset, meaning);
        }
        if event.attr.own_size() > Attr::KNOWN_SIZE {
            report.add(Severity::Note, offset, "attribute: newer than what is known by name");
        }
        offset = offset.saturating_add(entry_size);
    }
    Ok(())
}

fn check_ids(report: &mut Report, file: &FileArrangement, recording: &Recording) {
    let mut owners = HashMap::new();
    for ((at, event), place) in recording.events.iter().enumerate().zip(&file.ids) {
        for &id in &event.ids {
            if owners.insert(id, at).is_some_and(|other| other != at) {
                report.add(Severity::Error, place.offset, format!("event id {id} belongs to two events"));
            }
        }
    }
}

fn name(part: Part) -> String {
    match part {
        Part::Header => "the header".into(),
        Part::Ids(event) => format!("the ids of event {event}"),
        Part::Attrs => "the attributes".into(),
        Part::EventTypes => "the names of events".into(),
        Part::Data => "the records".into(),
        Part::FeatureTable => "the feature table".into(),
        Part::Feature(id) => format!("feature {}", FeatureId(id)),
        Part::Gap => "a gap".into(),
    }
}

fn check_places(report: &mut Report, file: &FileArrangement) {
    let data = file.header.data;
    if data.size == 0 && file.place(Part::Data).is_none_or(|place| place.size == 0) {
        report.add(Severity::Warning, 48, "there are no records");
    } else if data.size == 0 {
        report.add(Severity::Error, 48, "the recording was not finished: the header gives the records no size");
    } else if data.end().is_none_or(|end| end > file.len) {
        let meaning = format!("the header gives the records {} bytes, more than the file has", data.size);
        report.add(Severity::Error, 48, meaning);
    }
    if file.unexplained {
        report.add(Severity::Error, 72, "the header announces feature sections, but there is no table of them");
    }
    if file.header.event_types.size > 0 && file.place(Part::EventTypes).is_none() {
        report.add(Severity::Error, 56, "the names of events are not where the header says");
    }
    let solid: Vec<Region> = file.regions.iter().copied().filter(|region| region.part != Part::Gap).collect();
    for pair in solid.windows(2) {
        if let [a, b] = pair
            && a.place.overlaps(&b.place)
        {
            report.add(Severity::Error, b.place.offset, format!("{} and {} share bytes", name(a.part), name(b.part)));
        }
    }
    for &(id, place) in
        file.table.iter().filter(|(id, place)| place.size > 0 && file.place(Part::Feature(*id)).is_none())
    {
        let lost = name(Part::Feature(id));
        let other = solid.iter().find(|region| region.place.overlaps(&place));
        let meaning = match other {
            Some(other) => format!("{lost} and {} share bytes", name(other.part)),
            None => format!("{lost}: {} bytes, more than the file has", place.size),
        };
        report.add(Severity::Error, place.offset, meaning);
    }
}
